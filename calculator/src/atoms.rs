//! The instructions of tiled operations, by their names in Rust and in CuTe: `Mma16816<bf16>`,
//! `SM80_16x8x16_F32BF16BF16F32_TN`.

use cutlet_layout_core::{
    CopyAtom, Fma, M8N8K4Bits64, M16N8K8Bits16, M16N8K8Bits32, M16N8K8Bits64, M16N8K16Bits8,
    M16N8K16Bits16, M16N8K16Bits64, M16N8K32Bits8, Mma, MmaAtom,
};

use crate::refusal::{Refusal, cut};
use crate::tiled::Tiled;

/// The element types by their names in Rust and C++, with their bits.
const TYPES: &[(i64, &[&str])] = &[
    (8, &["i8", "u8", "s8", "e4m3", "e5m2", "F8E4M3", "F8E5M2"]),
    (8, &["int8_t", "uint8_t", "float_e4m3_t", "float_e5m2_t"]),
    (16, &["bf16", "f16", "i16", "u16", "half_t", "bfloat16_t"]),
    (16, &["half", "uint16_t", "int16_t", "Float16", "BFloat16"]),
    (32, &["f32", "tf32", "i32", "u32", "float", "tfloat32_t"]),
    (32, &["int", "uint32_t", "int32_t", "Float32"]),
    (64, &["f64", "i64", "u64", "double", "uint64_t", "int64_t"]),
    (128, &["u128", "uint128_t", "uint4"]),
];

/// The types of operands as the names of CuTe's instructions have them, with their bits.
const OPERANDS: &[(&str, i64)] = &[
    ("BF16", 16),
    ("F16", 16),
    ("TF32", 32),
    ("F32", 32),
    ("F64", 64),
    ("S8", 8),
    ("U8", 8),
    ("S32", 32),
    ("E4M3", 8),
    ("E5M2", 8),
];

/// Whether this is the name of an instruction, or of a type that wraps one.
pub(crate) fn is_atom(name: &str) -> bool {
    let names = [
        "Mma16816",
        "Mma16832",
        "Mma1688Tf32",
        "Mma884F64",
        "Mma1688F64",
        "Mma16816F64",
        "UniversalFma",
        "UniversalFMA",
        "Wgmma",
        "MMA_Atom",
        "Copy_Atom",
        "Width",
        "CpAsync",
    ];
    names.contains(&name) || (name.starts_with("SM") && shape_of(name).is_some())
}

/// The instruction of a name with the text of its template arguments.
///
/// # Errors
/// If there is no such instruction, or the arguments do not fit it.
pub(crate) fn atom(name: &str, arguments: &str) -> Result<Tiled, Refusal> {
    let arguments = separated(arguments);
    match (name, arguments.as_slice()) {
        ("Copy_Atom", [operation, element]) => {
            copy(operation, bits_of(element)?).map(Tiled::of_copy_atom)
        }
        // A copy of so many values, of any type.
        ("Width" | "CpAsync", [values]) => {
            let values: i64 = number(values)?;
            Ok(Tiled::of_copy_atom(CopyAtom::universal(8 * values, 8)))
        }
        ("MMA_Atom", [atom]) => {
            let (name, arguments) = split(atom);
            mma(name, &separated(arguments)).map(Tiled::of_mma_atom)
        }
        (_, arguments) => mma(name, arguments).map(Tiled::of_mma_atom),
    }
}

/// A matrix instruction.
fn mma(name: &str, arguments: &[&str]) -> Result<MmaAtom, Refusal> {
    let of_width = |wanted: i64, atom: MmaAtom| match arguments {
        [element] if bits_of(element)? == wanted => Ok(atom),
        _ => Err(Refusal::new(format!(
            "`{name}` takes an element type of {wanted} bits in angle brackets"
        ))),
    };
    match (name, arguments) {
        ("Mma16816", _) => of_width(16, M16N8K16Bits16::ATOM),
        ("Mma16832", _) => of_width(8, M16N8K32Bits8::ATOM),
        ("Mma1688Tf32", []) => Ok(M16N8K8Bits32::ATOM),
        ("Mma884F64", []) => Ok(M8N8K4Bits64::ATOM),
        ("Mma1688F64", []) => Ok(M16N8K8Bits64::ATOM),
        ("Mma16816F64", []) => Ok(M16N8K16Bits64::ATOM),
        ("UniversalFma" | "UniversalFMA", _) => Ok(Fma::ATOM),
        ("Wgmma", [n, element]) => wgmma(number(n)?, bits_of(element)?, "SS"),
        _ => cutes(name),
    }
}

/// The instruction of a name of CuTe: `SM80_16x8x16_F32BF16BF16F32_TN`.
fn cutes(name: &str) -> Result<MmaAtom, Refusal> {
    let unknown = || {
        Refusal::new(format!(
            "there is no instruction `{}`: use one such as Mma16816<bf16> or SM80_16x8x16_F32BF16BF16F32_TN",
            cut(name)
        ))
    };
    let shape = shape_of(name).ok_or_else(unknown)?;
    let parts: Vec<&str> = name.split('_').collect();
    let bits = operand_bits(parts.get(2).copied().unwrap_or_default()).ok_or_else(unknown)?;
    match (shape, bits) {
        ([64, n, _], bits) if name.starts_with("SM90_64x") => {
            wgmma(n, bits, parts.last().copied().unwrap_or_default())
        }
        ([16, 8, 16], 16) => Ok(M16N8K16Bits16::ATOM),
        ([16, 8, 8], 16) => Ok(M16N8K8Bits16::ATOM),
        ([16, 8, 8], 32) => Ok(M16N8K8Bits32::ATOM),
        ([16, 8, 16], 8) => Ok(M16N8K16Bits8::ATOM),
        ([16, 8, 32], 8) => Ok(M16N8K32Bits8::ATOM),
        ([8, 8, 4], 64) => Ok(M8N8K4Bits64::ATOM),
        ([16, 8, 8], 64) => Ok(M16N8K8Bits64::ATOM),
        ([16, 8, 16], 64) => Ok(M16N8K16Bits64::ATOM),
        _ => Err(unknown()),
    }
}

/// An instruction of a warpgroup. `RS` has A in registers.
pub(crate) fn wgmma(n: i64, bits: i64, operands: &str) -> Result<MmaAtom, Refusal> {
    if !(8..=256).contains(&n) || n % 8 != 0 || !matches!(bits, 8 | 16 | 32) {
        return Err(Refusal::new(format!(
            "there is no wgmma with N = {n} for elements of {bits} bits: N is a multiple of 8 up to 256, \
             and elements have 8, 16 or 32 bits"
        )));
    }
    Ok(match operands {
        "RS" => MmaAtom::wgmma_from_registers(n, bits),
        _ => MmaAtom::wgmma(n, bits),
    })
}

/// The shape in a name of CuTe, behind the architecture.
fn shape_of(name: &str) -> Option<[i64; 3]> {
    let mut extents = name.split('_').nth(1)?.split('x').map(|it| it.parse().ok());
    let shape = [extents.next()??, extents.next()??, extents.next()??];
    extents.next().is_none().then_some(shape)
}

/// The bits of A in the types of D, A, B and C, such as `F32BF16BF16F32`.
fn operand_bits(mut types: &str) -> Option<i64> {
    let mut found = Vec::new();
    while !types.is_empty() {
        let (rest, bits) =
            (OPERANDS.iter()).find_map(|(name, bits)| Some((types.strip_prefix(name)?, *bits)))?;
        found.push(bits);
        types = rest;
    }
    found.get(1).copied()
}

/// A copy instruction of CuTe.
fn copy(operation: &str, bits: i64) -> Result<CopyAtom, Refusal> {
    let (name, arguments) = split(operation);
    if matches!(
        name,
        "UniversalCopy" | "AutoVectorizingCopyWithAssumedAlignment"
    ) || name.starts_with("SM80_CP_ASYNC_CACHE")
    {
        let access = match separated(arguments).as_slice() {
            [width] if width.parse::<i64>().is_ok() => number(width)?,
            [element, ..] => bits_of(element)?,
            [] => bits,
        };
        return universal(access, bits);
    }
    match name {
        "SM75_U32x1_LDSM_N" => matrices("ldmatrix", 1, bits),
        "SM75_U32x2_LDSM_N" => matrices("ldmatrix", 2, bits),
        "SM75_U32x4_LDSM_N" => matrices("ldmatrix", 4, bits),
        "SM75_U16x2_LDSM_T" => matrices("ldmatrix_transposed", 1, bits),
        "SM75_U16x4_LDSM_T" => matrices("ldmatrix_transposed", 2, bits),
        "SM75_U16x8_LDSM_T" => matrices("ldmatrix_transposed", 4, bits),
        "SM90_U32x1_STSM_N" => matrices("stmatrix", 1, bits),
        "SM90_U32x2_STSM_N" => matrices("stmatrix", 2, bits),
        "SM90_U32x4_STSM_N" => matrices("stmatrix", 4, bits),
        "SM90_U16x2_STSM_T" => matrices("stmatrix_transposed", 1, bits),
        "SM90_U16x4_STSM_T" => matrices("stmatrix_transposed", 2, bits),
        "SM90_U16x8_STSM_T" => matrices("stmatrix_transposed", 4, bits),
        _ => Err(Refusal::new(format!(
            "there is no copy instruction `{}`: use one such as UniversalCopy<uint128_t> or SM75_U32x4_LDSM_N",
            cut(operation)
        ))),
    }
}

/// Each thread copies so many bits for itself.
pub(crate) fn universal(access_bits: i64, bits: i64) -> Result<CopyAtom, Refusal> {
    if bits < 1 || access_bits < bits || access_bits % bits != 0 {
        return Err(Refusal::new(format!(
            "an access of {access_bits} bits is not a whole number of elements of {bits} bits: make it a multiple"
        )));
    }
    Ok(CopyAtom::universal(access_bits, bits))
}

/// An instruction that copies 8×8 matrices of 16-bit elements.
pub(crate) fn matrices(name: &str, matrices: i64, bits: i64) -> Result<CopyAtom, Refusal> {
    let widest = if name.ends_with("transposed") { 16 } else { 32 };
    if !matches!(matrices, 1 | 2 | 4) || bits < 1 || widest % bits != 0 {
        return Err(Refusal::new(format!(
            "{name} moves 1, 2 or 4 matrices, and elements whose width divides {widest} bits: \
             here are {matrices} and {bits}"
        )));
    }
    Ok(match name {
        "ldmatrix" => CopyAtom::ldmatrix(matrices, bits),
        "ldmatrix_transposed" => CopyAtom::ldmatrix_transposed(matrices, bits),
        "stmatrix" => CopyAtom::stmatrix(matrices, bits),
        _ => CopyAtom::stmatrix_transposed(matrices, bits),
    })
}

/// The bits of an element type.
fn bits_of(element: &str) -> Result<i64, Refusal> {
    let name = element.rsplit("::").next().unwrap_or(element);
    let found = TYPES.iter().find(|(_, names)| names.contains(&name));
    found.map(|(bits, _)| *bits).ok_or_else(|| {
        let message = "is no element type that is known here: use one such as bf16 or half_t";
        Refusal::new(format!("`{}` {message}", cut(element)))
    })
}

fn number(text: &str) -> Result<i64, Refusal> {
    let digits = text.trim_start_matches('_').parse::<i64>();
    let number = digits.ok().filter(|number| (1..=1 << 20).contains(number));
    number.ok_or_else(|| Refusal::new(format!("a number is needed, but here is `{}`", cut(text))))
}

/// A name and the text of its arguments in angle brackets.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim_end_matches("{}").trim();
    match text.split_once('<') {
        Some((name, arguments)) => (
            name.trim(),
            arguments.strip_suffix('>').unwrap_or(arguments),
        ),
        None => (text, ""),
    }
}

/// The parts between commas that are in no inner angle brackets.
fn separated(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(text[begin..].trim());
    }
    parts
}
