//! Collectives: the parts that kernels are built of. Each combines several instructions, and many threads use it
//! together.
//!
//! | topic | types |
//! |---|---|
//! | which tiles a block computes | [`PersistentTileScheduler`], [`StreamKTileScheduler`], [`GroupedTileScheduler`], [`WorkTile`], [`Splits`], [`Cluster`] |
//! | stages of tiles in shared memory | [`Pipeline`], [`CpAsyncPipeline`], [`CopyProducer`], [`Stages`], [`TileRing`], [`VectorRing`] |
//! | ping-pong consumers | [`OrderedBarrier`] |
//! | one value of all threads of a block | [`BlockReduce`] |
//! | adding partial accumulators | [`ClusterReduce`] in distributed shared memory, [`Fixup`] in global memory |
//! | tiles for multiprocessors that share a path to the L2 cache | [`SmAffinity`], [`AffinitySlot`] |
//! | operands fetched into the L2 cache | [`Prefetch`] |
//! | rows that begin anywhere | [`UnalignedRows`] |

mod back_and_forth;
mod block_reduce;
mod cluster_reduce;
mod cluster_shape;
mod copy_producer;
mod cp_async_pipeline;
mod fixup;
mod fragment_words;
mod groups;
mod ordered_barrier;
mod pipeline;
mod prefetch;
mod scheduler;
mod sm_affinity;
mod stream_k;
mod tile_ring;
mod transform;
mod unaligned_rows;
mod vector_ring;

pub use back_and_forth::BackAndForth;
pub use block_reduce::BlockReduce;
pub use cluster_reduce::{ClusterReduce, DsmemBuffer, DsmemReceiver, DsmemSender};
pub use cluster_shape::{Cluster, ClusterShape, DynamicCluster};
pub use copy_producer::CopyProducer;
pub use cp_async_pipeline::CpAsyncPipeline;
pub use fixup::{ArrivalCounters, Fixup};
pub use groups::{Group, GroupedTileScheduler, Groups, SizesAre};
pub use ordered_barrier::OrderedBarrier;
pub use pipeline::{Consumer, Filled, Filling, Pipeline, Producer, StageCount, StageIdx, Stages};
pub use prefetch::Prefetch;
use scheduler::KTilesOf;
pub use scheduler::{KTiles, PersistentTileScheduler, Share, Splits, WorkTile, cluster_raster};
pub use sm_affinity::{AffinitySlot, SmAffinity};
pub use stream_k::{StreamKTileScheduler, StreamedTiles};
pub use tile_ring::TileRing;
pub use transform::{TransformBarriers, Transformer};
pub use unaligned_rows::UnalignedRows;
pub use vector_ring::VectorRing;
