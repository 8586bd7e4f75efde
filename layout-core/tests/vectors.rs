//! Every reference result of `data/algebra.jsonl`, checked as its `expect` field says.

use cutlet_layout_core::*;
use serde_json::Value;

fn tuple(value: &Value) -> IntTuple {
    match value {
        Value::Null => IntTuple::UNDERSCORE,
        Value::Array(modes) => IntTuple::tuple(&modes.iter().map(tuple).collect::<Vec<_>>()),
        number => IntTuple::int(Int::fixed(number.as_i64().expect("an integer"))),
    }
}

fn layout(value: &Value) -> Layout {
    if value.is_object() {
        Layout::from_shape_stride(&tuple(&value["shape"]), &tuple(&value["stride"]))
    } else {
        Layout::col_major(&tuple(value))
    }
}

fn tiler(value: &Value) -> Tiler {
    match value {
        Value::Null => Tiler::UNDERSCORE,
        Value::Array(modes) => Tiler::tuple(&modes.iter().map(tiler).collect::<Vec<_>>()),
        other => Tiler::layout(&layout(other)),
    }
}

/// The text of a layout with the strides of modes of extent 1 zeroed, because these have no effect.
fn normal(layout: &Layout) -> String {
    let stride: Vec<i64> = (0..layout.num_leaves())
        .map(|i| match layout.leaf_shape(i).value() {
            1 => 0,
            _ => layout.leaf_stride(i).value(),
        })
        .collect();
    let stride = IntTuple::fixed(&stride).unflatten(&layout.shape());
    Layout::from_shape_stride(&layout.shape(), &stride).to_string()
}

/// The reference's division of which tiles and rests are gathered, with the modes whose tiler is `_`
/// among the tiles. Pycute has them among the rests, and so breaks "it is always the case that
/// `layout<0>(zipped_divide(a, b)) == composition(a, b)`".
fn with_kept_modes_as_tiles(op: &str, tiler: &Value, out: &Value) -> Value {
    let modes = tiler.as_array().map_or(&[][..], Vec::as_slice);
    let mut out = out.clone();
    for part in ["shape", "stride"] {
        for kept in (0..modes.len()).filter(|&i| modes[i].is_null()) {
            let (tile, rest) = match op {
                "zipped_divide_by_mode" => (format!("/0/{kept}"), format!("/1/{kept}")),
                "tiled_divide_by_mode" => (format!("/0/{kept}"), format!("/{}", 1 + kept)),
                "flat_divide_by_mode" => (format!("/{kept}"), format!("/{}", modes.len() + kept)),
                _ => continue,
            };
            let tuple = &mut out[part];
            let moved = tuple.pointer_mut(&rest).expect("a rest").take();
            let one = std::mem::replace(tuple.pointer_mut(&tile).expect("a tile"), moved);
            *tuple.pointer_mut(&rest).expect("a rest") = one;
        }
    }
    out
}

type Outcome = Result<(), String>;

fn same(found: Result<Layout, LayoutError>, expected: &Value) -> Outcome {
    let found = found.map_err(|e| format!("refused: {e}"))?;
    let (found, expected) = (normal(&found), normal(&layout(expected)));
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found}, not {expected}"))
    }
}

fn same_text(found: String, expected: String) -> Outcome {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{found}, not {expected}"))
    }
}

fn ensure(condition: bool, what: impl Into<String>) -> Outcome {
    if condition { Ok(()) } else { Err(what.into()) }
}

fn image(layout: &Layout) -> Vec<i64> {
    (0..layout.size()).map(|c| layout.at(c)).collect()
}

/// Whether `complement` is ordered, disjoint from `layout`, bounded, and reaches the cotarget
/// together with it.
fn complement_holds(layout: &Layout, complement: &Layout, target: i64, least: i64) -> Outcome {
    let (own, rest) = (image(layout), image(complement));
    ensure(
        rest.windows(2).all(|w| w[0] < w[1]),
        format!("{complement} is not ordered"),
    )?;
    ensure(
        rest[1..].iter().all(|i| !own.contains(i)),
        format!("{complement} is not disjoint"),
    )?;
    ensure(
        Layout::concat2(layout, complement).cosize() >= target,
        format!("{complement} does not reach {target}"),
    )?;
    // The last repetition begins before the cotarget.
    let last = complement.num_leaves() - 1;
    let begin = (complement.leaf_shape(last).value() - 1) * complement.leaf_stride(last).value();
    ensure(
        begin < target,
        format!("{complement} is not bounded by {target}"),
    )?;
    ensure(
        complement.size() >= least,
        format!("{complement} is shorter than {least}"),
    )
}

/// The same function as the definition of a blocked or raked product, each mode coalesced.
fn ranked_product_holds(block: &Layout, tiler: &Layout, found: &Layout, raked: bool) -> Outcome {
    let rank = block.rank().max(tiler.rank());
    let pad = |l: &Layout| {
        let mut modes: Vec<Layout> = (0..l.rank()).map(|i| l.mode(i)).collect();
        modes.resize(rank, Layout::UNIT);
        Layout::concat(&modes)
    };
    let product =
        try_logical_product(&pad(block), &Tiler::layout(&pad(tiler))).map_err(|e| e.to_string())?;
    ensure(found.rank() == rank, format!("{found} has another rank"))?;
    for mode in 0..rank {
        let (b, t) = (product.mode(0).mode(mode), product.mode(1).mode(mode));
        let both = if raked {
            Layout::concat2(&t, &b)
        } else {
            Layout::concat2(&b, &t)
        };
        ensure(
            image(&both) == image(&found.mode(mode)),
            format!("mode {mode} of {found}"),
        )?;
        ensure(
            normal(&coalesce(&found.mode(mode))) == normal(&found.mode(mode)),
            format!("mode {mode} of {found} is not coalesced"),
        )?;
    }
    Ok(())
}

fn layout_operation(op: &str, input: &Value) -> Option<Result<Layout, LayoutError>> {
    let a = || layout(&input["a"]);
    let b = || {
        if input["tiler"].is_null() {
            tiler(&input["b"])
        } else {
            tiler(&input["tiler"])
        }
    };
    let own = || layout(&input["layout"]);
    Some(match op.strip_suffix("_by_mode").unwrap_or(op) {
        "coalesce" if op == "coalesce" => Ok(coalesce(&own())),
        "coalesce" => try_coalesce_by_mode(&own(), &tuple(&input["profile"])),
        "filter" => Ok(filter(&own())),
        "complement" => try_complement(&own(), &tuple(&input["cosize_hi"])),
        "composition" => try_composition_by_mode(&a(), &b()),
        "logical_divide" => try_logical_divide(&a(), &b()),
        "zipped_divide" => try_zipped_divide(&a(), &b()),
        "tiled_divide" => try_tiled_divide(&a(), &b()),
        "flat_divide" => try_flat_divide(&a(), &b()),
        "logical_product" => try_logical_product(&a(), &b()),
        "zipped_product" => try_zipped_product(&a(), &b()),
        "tiled_product" => try_tiled_product(&a(), &b()),
        "flat_product" => try_flat_product(&a(), &b()),
        "blocked_product" => try_blocked_product(&a(), &layout(&input["b"])),
        "raked_product" => try_raked_product(&a(), &layout(&input["b"])),
        "left_inverse" => try_left_inverse(&own()),
        "right_inverse" => try_right_inverse(&own()),
        _ => return None,
    })
}

/// These layouts are injective, but no layout is their left inverse: for the places of every mixed
/// radix (each a prime multiple of the last, up to the greatest index), the equations for the
/// weights of the places contradict each other. The reference's answers are no left inverses
/// either.
///
/// `((6,3),2,2):((2,50),25,12)`, `(3,(4,4)):(8,(2,26))`, `((2,2),(12,4)):((37,592),(3,148))` and
/// `((3,3,1),2,5):((2,110,22),10,22)`.
const NO_LEFT_INVERSE: [u64; 4] = [8411, 16274, 17649, 19786];

fn check(row: &Value) -> Outcome {
    let (op, input, out) = (row["op"].as_str().unwrap(), &row["in"], &row["out"]);
    let number = |name: &str| input[name].as_i64().unwrap();
    match (row["expect"].as_str().unwrap(), op) {
        ("reject", _) => match layout_operation(op, input).expect("an operation on layouts") {
            Ok(found) => Err(format!("{found} instead of a refusal")),
            Err(_) => Ok(()),
        },
        ("postcondition", "left_inverse") => {
            let l = layout(&input["layout"]);
            let undoes = |inverse: &Layout| (0..l.size()).all(|i| inverse.at(l.at(i)) == i);
            match try_left_inverse(&l) {
                Ok(inverse) => ensure(undoes(&inverse), format!("{inverse}")),
                Err(error) => ensure(
                    !undoes(&layout(out)) && NO_LEFT_INVERSE.contains(&row["id"].as_u64().unwrap()),
                    format!("refused: {error}"),
                ),
            }
        }
        ("postcondition", "right_inverse") => {
            let l = layout(&input["layout"]);
            let inverse = try_right_inverse(&l).map_err(|e| format!("refused: {e}"))?;
            ensure(
                (0..inverse.size()).all(|i| l.at(inverse.at(i)) == i),
                format!("{inverse}"),
            )?;
            let reference = layout(out).size();
            ensure(
                inverse.size() >= reference,
                format!("{inverse} is shorter than {reference}"),
            )
        }
        ("postcondition", "complement") => {
            let l = layout(&input["layout"]);
            let target = number("cosize_hi");
            let found = try_complement(&l, &tuple(&input["cosize_hi"]))
                .map_err(|e| format!("refused: {e}"))?;
            complement_holds(&l, &found, target, layout(out).size())
        }
        ("postcondition", "blocked_product" | "raked_product") => {
            let (a, b) = (layout(&input["a"]), layout(&input["b"]));
            let raked = op == "raked_product";
            let found = layout_operation(op, input)
                .unwrap()
                .map_err(|e| format!("refused: {e}"))?;
            ranked_product_holds(&a, &b, &found, raked)
        }
        ("exact", "cosize") => ensure(
            layout(&input["layout"]).cosize() == out.as_i64().unwrap(),
            "cosize",
        ),
        ("exact", "size") => ensure(
            layout(&input["layout"]).size() == out.as_i64().unwrap(),
            "size",
        ),
        ("exact", "crd2idx_1d_table") => {
            let l = layout(&input["layout"]);
            let table: Vec<i64> = (0..out.as_array().unwrap().len() as i64)
                .map(|c| l.at(c))
                .collect();
            ensure(Value::from(table) == *out, "table")
        }
        ("exact", "idx2crd_crd2idx_table") => {
            let l = layout(&input["layout"]);
            for r in out["rows"].as_array().unwrap() {
                let hier = idx2crd(&tuple(&r["i"]), &l.shape());
                same_text(hier.to_string(), tuple(&r["hier"]).to_string())?;
                same_text(
                    l.call(&tuple(&r["i"])).to_string(),
                    tuple(&r["idx"]).to_string(),
                )?;
                same_text(l.call(&hier).to_string(), tuple(&r["idx"]).to_string())?;
                if !r["flat"].is_null() {
                    same_text(
                        l.call(&tuple(&r["flat"])).to_string(),
                        tuple(&r["idx"]).to_string(),
                    )?;
                    let flat = IntTuple::tuple(
                        &(0..l.rank())
                            .map(|i| linear_coordinate(&hier.mode(i), &l.mode(i).shape()))
                            .collect::<Vec<_>>(),
                    );
                    same_text(flat.to_string(), tuple(&r["flat"]).to_string())?;
                }
            }
            Ok(())
        }
        ("exact", "idx2crd_strided_table") => {
            let l = layout(&input["layout"]);
            for (i, crd) in out.as_array().unwrap().iter().enumerate() {
                let found = l.get_hier_coord(Int::fixed(i as i64));
                same_text(found.to_string(), tuple(crd).to_string())?;
            }
            Ok(())
        }
        ("exact", "inner_product") => same_text(
            inner_product(&tuple(&input["a"]), &tuple(&input["b"])).to_string(),
            tuple(out).to_string(),
        ),
        ("exact", "prefix_product") => same_text(
            prefix_product(&tuple(&input["a"])).to_string(),
            tuple(out).to_string(),
        ),
        ("exact", "shape_div") => same_text(
            shape_div(&tuple(&input["a"]), &tuple(&input["b"])).to_string(),
            tuple(out).to_string(),
        ),
        ("exact", "slice_and_offset") => {
            let l = layout(&input["layout"]);
            let (found, offset) = try_slice_and_offset(&tuple(&input["coord"]), &l)
                .map_err(|e| format!("refused: {e}"))?;
            same(Ok(found), &out["layout"])?;
            same_text(offset.to_string(), tuple(&out["offset"]).to_string())
        }
        ("exact", "swizzle_table" | "composed_swizzle_table") => {
            let swizzle = Swizzle::new(number("bits"), number("base"), number("shift"));
            let table: Vec<i64> = if op == "swizzle_table" {
                (0..out.as_array().unwrap().len() as i64)
                    .map(|i| swizzle.apply(i))
                    .collect()
            } else {
                let composed =
                    ComposedLayout::new(swizzle, tuple(&input["offset"]), layout(&input["layout"]));
                (0..composed.size()).map(|c| composed.at(c)).collect()
            };
            ensure(Value::from(table.clone()) == *out, format!("{table:?}"))
        }
        ("exact", _) => match layout_operation(op, input) {
            Some(found) => same(found, &with_kept_modes_as_tiles(op, &input["tiler"], out)),
            None => Err("the test does not know this operation".into()),
        },
        (expect, _) => Err(format!("the test does not know `{expect}`")),
    }
}

#[test]
fn every_reference_result_holds() {
    let text = include_str!("data/algebra.jsonl");
    let mut checked = 0;
    let mut failures = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a JSON object");
        if let Err(why) = check(&row) {
            failures.push(format!("{}: {why}\n  {line}", row["id"]));
        }
        checked += 1;
    }
    assert_eq!(checked, 5986);
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
