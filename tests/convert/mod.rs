//! Numbers of every element type, from f64 and to f64.

use cutlet::{DeviceData, F8E4M3, F8E5M2};
use half::{bf16, f16};

/// A type that holds numbers.
pub trait Convert: DeviceData {
    /// The nearest number of this type.
    fn of(value: f64) -> Self;
    /// The number.
    fn number(self) -> f64;
}

macro_rules! convert {
    ($($type:ty: of $of:expr, to $to:expr;)+) => {$(
        impl Convert for $type {
            fn of(value: f64) -> Self {
                $of(value)
            }
            fn number(self) -> f64 {
                $to(self)
            }
        }
    )+};
}
convert! {
    bf16: of bf16::from_f64, to bf16::to_f64;
    f16: of f16::from_f64, to f16::to_f64;
    F8E4M3: of |it| F8E4M3::from_f32(it as f32), to |it| F8E4M3::to_f32(it).into();
    F8E5M2: of |it| F8E5M2::from_f32(it as f32), to |it| F8E5M2::to_f32(it).into();
    f32: of |it| it as f32, to f64::from;
    f64: of |it| it, to |it| it;
    i8: of |it| it as i8, to f64::from;
    i32: of |it| it as i32, to f64::from;
}
