//! The element types of arrays, by the names that NumPy and PyTorch give them.

use cutlet::dlpack::dlpark::ffi::{DLDataType, DLDataTypeCode as Code};

macro_rules! data_types {
    ($($name:ident $text:literal $bytes:literal = $code:ident;)+) => {
        /// An element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DataType {
            $(#[doc = $text] $name,)+
        }

        impl DataType {
            /// The name in NumPy and PyTorch.
            pub const fn name(self) -> &'static str {
                match self {
                    $(DataType::$name => $text,)+
                }
            }

            /// Bytes of an element.
            pub const fn size(self) -> usize {
                match self {
                    $(DataType::$name => $bytes,)+
                }
            }

            /// The type of this name; `None` if there is none.
            pub fn named(name: &str) -> Option<DataType> {
                match name {
                    $($text => Some(DataType::$name),)+
                    _ => None,
                }
            }

            /// The type that DLPack describes so; `None` for types that no kernel moves.
            pub fn of_dlpack(found: DLDataType) -> Option<DataType> {
                if found.lanes != 1 {
                    return None;
                }
                match (found.code, found.bits) {
                    $((Code::$code, bits) if usize::from(bits) == 8 * $bytes => Some(DataType::$name),)+
                    _ => None,
                }
            }
        }
    };
}
data_types! {
    Bool "bool" 1 = BOOL;
    I8 "int8" 1 = INT;
    I16 "int16" 2 = INT;
    I32 "int32" 4 = INT;
    I64 "int64" 8 = INT;
    U8 "uint8" 1 = UINT;
    U16 "uint16" 2 = UINT;
    U32 "uint32" 4 = UINT;
    U64 "uint64" 8 = UINT;
    F16 "float16" 2 = FLOAT;
    F32 "float32" 4 = FLOAT;
    F64 "float64" 8 = FLOAT;
    Bf16 "bfloat16" 2 = BFLOAT;
    F8E4M3 "float8_e4m3fn" 1 = FLOAT8_E4M3FN;
    F8E5M2 "float8_e5m2" 1 = FLOAT8_E5M2;
    C64 "complex64" 8 = COMPLEX;
}

impl DataType {
    /// The type of an array interface's `typestr`. Types that NumPy does not have are bytes there (`V`), or floats of one
    /// byte (`f1`), and have the name of their `dtype` alone.
    pub fn of_typestr(typestr: &str, name: Option<&str>) -> Option<DataType> {
        let (order, rest) = typestr.split_at_checked(1)?;
        let is_one_byte = rest.ends_with('1') && rest.len() == 2;
        if order == ">" && !is_one_byte {
            return None;
        }
        match rest {
            "b1" => Some(DataType::Bool),
            "i1" => Some(DataType::I8),
            "i2" => Some(DataType::I16),
            "i4" => Some(DataType::I32),
            "i8" => Some(DataType::I64),
            "u1" => Some(DataType::U8),
            "u2" => Some(DataType::U16),
            "u4" => Some(DataType::U32),
            "u8" => Some(DataType::U64),
            "f2" => Some(DataType::F16),
            "f4" => Some(DataType::F32),
            "f8" => Some(DataType::F64),
            "c8" => Some(DataType::C64),
            "V1" | "V2" | "f1" => DataType::named(name?),
            _ => None,
        }
    }
}
