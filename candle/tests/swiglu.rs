//! `swiglu` against its definition, by candle in f64.

use candle_core::{D, DType, Result};
use cutlet_candle::swiglu;

use crate::close::{assert_close, in_f64, rounding};
use crate::on_device::{FLOATS, random};

#[test]
fn halves_of_any_layout() -> Result<()> {
    for dtype in FLOATS {
        let wide = random(1, (3, 5, 64), dtype)?;
        for halves in [
            wide.clone(),
            wide.narrow(2, 3, 22)?,
            wide.narrow(1, 1, 2)?,
            wide.transpose(1, 2)?.narrow(2, 0, 4)?,
            random(1, 10, dtype)?,
        ] {
            let exact = in_f64(&halves)?.contiguous()?;
            let [gates, ups] = &exact.chunk(2, D::Minus1)?[..] else {
                unreachable!("there are two halves");
            };
            let exact = (gates.silu()? * ups)?;
            assert_close(&swiglu(&halves)?, &exact, 2.0 * rounding(dtype))?;
        }
    }
    assert!(swiglu(&random(1, (2, 3), DType::F32)?).is_err());
    assert_eq!(swiglu(&random(1, (0, 4), DType::F32)?)?.dims(), [0, 2]);
    Ok(())
}
