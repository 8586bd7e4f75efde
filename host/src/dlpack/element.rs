//! The element types that DLPack and this crate have in common.

use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use dlpark::ffi::{DLDataType, DLDataTypeCode};
use half::{bf16, f16};

/// An element type that DLPack has, too.
///
/// # Safety
/// `DATA_TYPE` describes elements of this size, of which this type has the alignment.
pub unsafe trait Element: DeviceData {
    /// DLPack's description of the type.
    const DATA_TYPE: DLDataType;
}

macro_rules! elements {
    ($($element:ty: $data_type:ident;)*) => {$(
        // SAFETY: a number with as many bits as the description says.
        unsafe impl Element for $element {
            const DATA_TYPE: DLDataType = {
                let data_type = DLDataType::$data_type;
                assert!(data_type.element_size() == size_of::<$element>());
                data_type
            };
        }
    )*};
}

elements! {
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    u8: U8;
    u16: U16;
    u32: U32;
    u64: U64;
    f16: F16;
    bf16: BF16;
    f32: F32;
    f64: F64;
    F8E4M3: F8E4M3FN;
    F8E5M2: F8E5M2;
}

/// The name of a type, as Rust has it: `f32`, `bf16`, `i8 in vectors of 4`.
pub(super) fn name(data_type: DLDataType) -> String {
    let DLDataType { code, bits, lanes } = data_type;
    let scalar = match code {
        DLDataTypeCode::INT => format!("i{bits}"),
        DLDataTypeCode::UINT => format!("u{bits}"),
        DLDataTypeCode::FLOAT => format!("f{bits}"),
        DLDataTypeCode::BFLOAT => format!("bf{bits}"),
        DLDataTypeCode::BOOL => "bool".to_string(),
        DLDataTypeCode::COMPLEX => format!("complex numbers of {bits} bits"),
        DLDataTypeCode::FLOAT8_E4M3FN => "F8E4M3".to_string(),
        DLDataTypeCode::FLOAT8_E5M2 => "F8E5M2".to_string(),
        DLDataTypeCode(code) => format!("{bits} bits with DLPack's type code {code}"),
    };
    match lanes {
        1 => scalar,
        _ => format!("{scalar} in vectors of {lanes}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_rust() {
        let names = [
            <bf16 as Element>::DATA_TYPE,
            u64::DATA_TYPE,
            F8E5M2::DATA_TYPE,
            DLDataType::new(DLDataTypeCode::INT, 8, 4),
            DLDataType::F4E2M1FN,
            DLDataType::C64,
        ];
        let expected = [
            "bf16",
            "u64",
            "F8E5M2",
            "i8 in vectors of 4",
            "4 bits with DLPack's type code 17",
            "complex numbers of 64 bits",
        ];
        assert_eq!(names.map(name), expected);
    }
}
