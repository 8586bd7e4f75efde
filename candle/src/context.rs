//! What a thread keeps for a stream: the stream as one of cutlet's, with its plans, and the state of operations on rows.

use candle_core::{Error, Result};
use cutlet::{Gather, MoeRows, ScatterAdd, Stream};

/// A stream as one of cutlet's, and what operations in it keep from call to call.
pub(crate) struct Context {
    pub stream: Stream,
    pub gather: Gather,
    pub scatter_add: ScatterAdd,
    moe_rows: Vec<([usize; 3], MoeRows)>,
}

/// The most numbers of tokens for which the rows of a mixture of experts are kept. A program that has more is likely to
/// have a new number with each call.
const MOST_MOE_ROWS: usize = 8;

impl Context {
    pub fn new(stream: Stream) -> Result<Self> {
        Ok(Context {
            gather: Gather::new(stream.device()).map_err(Error::wrap)?,
            scatter_add: ScatterAdd::new(stream.device()).map_err(Error::wrap)?,
            stream,
            moe_rows: Vec::new(),
        })
    }

    /// The stream, and the rows of a mixture of experts with so many tokens, choices of a token, and experts.
    pub fn moe_rows(
        &mut self,
        tokens: usize,
        top_k: usize,
        experts: usize,
    ) -> Result<(&Stream, &mut MoeRows)> {
        let extents = [tokens, top_k, experts];
        let kept = self.moe_rows.iter().position(|(of, _)| *of == extents);
        let at = match kept {
            Some(at) => at,
            None => {
                let made = MoeRows::new(self.stream.device(), tokens, top_k, experts);
                if self.moe_rows.len() == MOST_MOE_ROWS {
                    self.moe_rows.remove(0);
                }
                self.moe_rows.push((extents, made.map_err(Error::wrap)?));
                self.moe_rows.len() - 1
            }
        };
        Ok((&self.stream, &mut self.moe_rows[at].1))
    }
}
