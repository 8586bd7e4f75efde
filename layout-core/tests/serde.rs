//! Serialisation as CuTe's text.

use cutlet_layout_core::*;

#[test]
fn values_go_through_json_as_text() {
    let layout = layout!((2, (4, 3)):(12, (1, 4)));
    let json = serde_json::to_string(&layout).unwrap();
    assert_eq!(json, "\"(_2,(_4,_3)):(_12,(_1,_4))\"");
    let back: Layout = serde_json::from_str(&json).unwrap();
    assert_eq!(back.to_string(), layout.to_string());

    let tiler: Tiler = serde_json::from_str("\"<4,_>\"").unwrap();
    assert_eq!(serde_json::to_string(&tiler).unwrap(), "\"<4:_1,_>\"");
    let swizzled: ComposedLayout<Swizzle> =
        serde_json::from_str("\"Sw<3,4,3> o 0 o (8,64):(64,1)\"").unwrap();
    assert_eq!(
        serde_json::to_string(&swizzled).unwrap(),
        "\"Sw<3,4,3> o 0 o (8,64):(64,1)\""
    );
    let tuple: IntTuple = serde_json::from_str("\"(1,_,_2)\"").unwrap();
    assert_eq!(serde_json::to_string(&tuple).unwrap(), "\"(1,_,_2)\"");
}

#[test]
fn errors_carry_the_column() {
    let error = serde_json::from_str::<Layout>("\"(2,4:1\"").unwrap_err();
    assert!(
        error.to_string().contains("column 5: expected `,` or `)`"),
        "{error}"
    );
}
