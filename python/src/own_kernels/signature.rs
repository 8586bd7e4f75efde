//! What a PTX text says of its kernels: their parameters and launch bounds. `cutlet-ptx-builder` writes the names and
//! types of parameters into a comment line of each entry.

use std::fmt;

use cutlet_device::{LaunchBounds, MAX_ARGS};

use crate::data_type::DataType;

/// Begins the comment line with the names and types of an entry's parameters.
const PARAMETERS: &str = "// cutlet-parameters ";

/// Begins the comment line with the bytes of shared memory that each launch gives a block.
const SHARED: &str = "// cutlet-shared ";

/// Why Python cannot launch a kernel.
pub type Refusal = String;

/// A kernel's parameters and launch bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    pub parameters: Vec<Parameter>,
    pub bounds: Bounds,
}

/// Numbers that [`LaunchBounds::new`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub threads: u32,
    min_blocks: u32,
    pub cluster: u32,
    pub shared_bytes: u32,
}

/// A parameter that Python can pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: String,
    /// As the kernel's source has it: `*const f32`.
    pub type_name: String,
    pub kind: Kind,
}

/// What is passed for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The address of an array.
    Array {
        element: DataType,
        may_write: bool,
    },
    Number(DataType),
    /// A struct by value, as so many bytes.
    Bytes(usize),
}

/// A kernel of a text.
pub struct Entry<'a> {
    pub name: &'a str,
    pub signature: Result<Signature, Refusal>,
}

impl Bounds {
    /// The bounds as the host has them. They were checked when the text was read.
    pub fn launch_bounds(self) -> LaunchBounds {
        LaunchBounds::new(
            self.threads,
            self.min_blocks,
            self.cluster,
            self.shared_bytes,
        )
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.type_name)
    }
}

/// The target in a text: `sm_80`.
pub fn target(ptx: &str) -> Option<&str> {
    let line = ptx
        .lines()
        .find_map(|line| line.trim().strip_prefix(".target "))?;
    line.split([',', ' ']).next()
}

/// The kernels of a text, in its order.
pub fn entries(ptx: &str) -> Vec<Entry<'_>> {
    const WORD: &str = ".entry ";
    let mut found = Vec::new();
    let mut rest = ptx;
    while let Some(at) = rest.find(WORD) {
        let line = rest[..at].rsplit('\n').next().unwrap_or_default();
        let is_comment = line.contains("//");
        rest = &rest[at + WORD.len()..];
        // Neither parameters nor directives have braces.
        let head = &rest[..rest.find('{').unwrap_or(rest.len())];
        if let (false, Some((name, of_entry))) = (is_comment, head.split_once('(')) {
            found.push(Entry {
                name: name.trim(),
                signature: signature(of_entry),
            });
        }
    }
    found
}

/// The signature of an entry, from the text behind `(` to its body.
fn signature(head: &str) -> Result<Signature, Refusal> {
    let (declared, directives) = head.split_once(')').ok_or("its parameters have no end")?;
    let declared = declared_bytes(declared)?;
    let described = match comment(directives, PARAMETERS) {
        Some(line) => line.split(", ").map(parameter).collect(),
        None if declared.is_empty() => Vec::new(),
        None => {
            return Err(format!(
                "no line `{}` says the types of its parameters; build it with cutlet-ptx-builder of this version",
                PARAMETERS.trim()
            ));
        }
    };
    if described.len() != declared.len() || declared.len() > MAX_ARGS {
        return Err(format!(
            "it has {} parameters, and `{}` names {}, of at most {MAX_ARGS}",
            declared.len(),
            PARAMETERS.trim(),
            described.len()
        ));
    }
    let parameters = described.into_iter().collect::<Result<Vec<_>, _>>()?;
    for (parameter, bytes) in parameters.iter().zip(declared) {
        if parameter.kind.bytes() != bytes {
            return Err(format!("`{parameter}` has {bytes} bytes in the PTX"));
        }
    }
    if !parameters.iter().any(|it| it.kind.is_array()) {
        return Err("none of its parameters is a pointer, so no array says where it runs".into());
    }
    Ok(Signature {
        parameters,
        bounds: bounds(directives)?,
    })
}

/// The sizes of parameters, as the driver reads them.
fn declared_bytes(parameters: &str) -> Result<Vec<usize>, Refusal> {
    let each = parameters.split(',').map(str::trim);
    each.filter(|it| !it.is_empty())
        .map(|it| {
            size_of_declared(it).ok_or_else(|| format!("the parameter `{it}` is no size of bytes"))
        })
        .collect()
}

/// The size of `.param .u64 .ptr .align 1 name` or `.param .align 16 .b8 name[128]`.
fn size_of_declared(parameter: &str) -> Option<usize> {
    if let Some((_, array)) = parameter.split_once(".b8 ") {
        let (_, count) = array.strip_suffix(']')?.split_once('[')?;
        return count.parse().ok();
    }
    let ty = parameter.strip_prefix(".param ")?.split(' ').next()?;
    let bits: usize = ty.strip_prefix(['.'])?.get(1..)?.parse().ok()?;
    Some(bits / 8)
}

/// A parameter of the comment line: `name: type`.
fn parameter(text: &str) -> Result<Parameter, Refusal> {
    let (name, type_name) = text
        .split_once(": ")
        .ok_or_else(|| format!("`{text}` is no parameter"))?;
    Ok(Parameter {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        kind: kind(type_name).map_err(|why| format!("its parameter `{name}` {why}"))?,
    })
}

fn kind(type_name: &str) -> Result<Kind, Refusal> {
    let pointer = |element: &str, may_write| match number(element) {
        Some(element) => Ok(Kind::Array { element, may_write }),
        None => Err("points to elements that are no numbers".to_owned()),
    };
    if let Some(element) = type_name.strip_prefix("*const ") {
        return pointer(element, false);
    }
    if let Some(element) = type_name.strip_prefix("*mut ") {
        return pointer(element, true);
    }
    if type_name == "TensorMap" {
        return Err("is a tensor map, which Python does not make".to_owned());
    }
    let bytes = type_name
        .strip_prefix("[u8; ")
        .and_then(|rest| rest.strip_suffix(']')?.parse().ok());
    match (number(type_name), bytes) {
        (Some(number), _) => Ok(Kind::Number(number)),
        (_, Some(bytes)) => Ok(Kind::Bytes(bytes)),
        _ => Err(format!("is of the type `{type_name}`, which is not known")),
    }
}

/// The type of this name in Rust.
fn number(name: &str) -> Option<DataType> {
    Some(match name {
        "bool" => DataType::Bool,
        "i8" => DataType::I8,
        "i16" => DataType::I16,
        "i32" => DataType::I32,
        "i64" => DataType::I64,
        "u8" => DataType::U8,
        "u16" => DataType::U16,
        "u32" => DataType::U32,
        "u64" => DataType::U64,
        "f16" => DataType::F16,
        "f32" => DataType::F32,
        "f64" => DataType::F64,
        "bf16" => DataType::Bf16,
        _ => return None,
    })
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Array { .. } => size_of::<u64>(),
            Kind::Number(number) => number.size(),
            Kind::Bytes(bytes) => bytes,
        }
    }

    pub fn is_array(self) -> bool {
        matches!(self, Kind::Array { .. })
    }
}

/// The bounds in the directives behind the parameters.
fn bounds(directives: &str) -> Result<Bounds, Refusal> {
    let threads = extents(directives, ".maxntid ")?.ok_or(
        "no `.maxntid` says how many threads a block has; build it with cutlet-ptx-builder",
    )?;
    let shared = comment(directives, SHARED).map(str::parse).transpose();
    let min_blocks = extents(directives, ".minnctapersm ")?;
    let bounds = Bounds {
        threads,
        min_blocks: min_blocks.unwrap_or(0),
        cluster: extents(directives, ".reqnctapercluster ")?.unwrap_or(1),
        shared_bytes: shared
            .map_err(|_| format!("`{SHARED}` has no number"))?
            .unwrap_or(0),
    };
    let is_possible = (1..=1024).contains(&bounds.threads)
        && bounds.min_blocks <= 32
        && (1..=16).contains(&bounds.cluster)
        && bounds.shared_bytes <= LaunchBounds::MOST_SHARED_BYTES;
    match is_possible {
        true => Ok(bounds),
        false => Err(format!(
            "no GPU has blocks of {} threads with {} bytes of shared memory in clusters of {}",
            bounds.threads, bounds.shared_bytes, bounds.cluster
        )),
    }
}

/// The number of a directive, whose other extents are 1; `None` if it is not there.
fn extents(directives: &str, word: &str) -> Result<Option<u32>, Refusal> {
    let Some(rest) = comment(directives, word) else {
        return Ok(None);
    };
    let mut extents = rest.split(',').map(|it| it.trim().parse::<u32>());
    match (extents.next(), extents.all(|it| it == Ok(1))) {
        (Some(Ok(first)), true) => Ok(Some(first)),
        _ => Err(format!("`{word}{rest}` is not along x alone")),
    }
}

/// The rest of the line that begins so.
fn comment<'a>(directives: &'a str, beginning: &str) -> Option<&'a str> {
    let mut lines = directives.lines();
    lines.find_map(|line| Some(line.trim().strip_prefix(beginning)?.trim()))
}
