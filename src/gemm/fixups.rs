//! Fixups: the memory of a launch whose blocks add the parts of tiles themselves.

use std::sync::Arc;

use cutlet_device::collective::ArrivalCounters;
use cutlet_host::{Buffer, Stream};

use crate::matrix::pointer_mut;

/// What the words are for that stay with a stream.
#[derive(PartialEq, Eq, Hash)]
struct OfFixups;

/// Times that 64 rows of a tile have parts that blocks add: as many as multiprocessors, as no more than half as many
/// tiles have several parts, and these have 128 rows at most.
const PLACES: u32 = 1024;

/// Where the blocks of a launch count themselves, which stays with the stream.
#[derive(Clone, Debug)]
pub struct Fixups(Arc<Buffer<u32>>);

impl Fixups {
    /// Those of the stream; none where its launches cannot have any.
    pub fn of(stream: &Stream) -> Option<Self> {
        if stream.device().multiprocessors() > PLACES {
            return None;
        }
        let words = stream.resident(OfFixups, || {
            Ok(Some(vec![0; (PLACES * ArrivalCounters::WARPS) as usize]))
        });
        // Without them, another kernel adds the parts: this is no reason to refuse the product.
        words.ok().flatten().map(Self)
    }

    /// As the kernel has them.
    pub fn arrivals(&self) -> ArrivalCounters {
        ArrivalCounters::at(pointer_mut(self.0.view().address()))
    }
}
