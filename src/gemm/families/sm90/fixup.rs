//! The counters of the fixup: the splits of each tile count their arrival in them.

use std::sync::Arc;

use cutlet_device::collective::ArrivalCounters;
use cutlet_host::{Buffer, Stream};

use crate::matrix::pointer_mut;

/// Key of the counters that are kept per stream.
#[derive(PartialEq, Eq, Hash)]
struct Key;

/// The most M atoms of tiles with splits. It is the most multiprocessors: at most half as many tiles have splits, of at
/// most two M atoms each.
const M_ATOMS: u32 = 1024;

/// The counters of a stream. All of them are zero between launches.
#[derive(Clone, Debug)]
pub struct FixupCounters(Arc<Buffer<u32>>);

impl FixupCounters {
    /// The counters of this stream. None if its launches cannot have counters.
    pub fn of(stream: &Stream) -> Option<Self> {
        if stream.device().multiprocessors() > M_ATOMS {
            return None;
        }
        let words = stream.resident(Key, || {
            Ok(Some(vec![0; (M_ATOMS * ArrivalCounters::WARPS) as usize]))
        });
        // Without counters, a second kernel adds the partials. So an error is no reason to refuse the product.
        words.ok().flatten().map(Self)
    }

    /// The kernel's argument.
    pub fn arrivals(&self) -> ArrivalCounters {
        ArrivalCounters::at(pointer_mut(self.0.view().address()))
    }
}
