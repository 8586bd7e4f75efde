//! What the host knows of a multistage kernel: how to choose it, and how to launch it.

use core::marker::PhantomData;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};

use super::args::MultistageArgs;
use super::config::Config;
use super::staging::{Read, Staging};
use crate::gemm::config::TileShape;
use crate::gemm::epilogue::ElementC;

/// The arguments of a kernel: A, B, C, the partials, the arguments and the epilogue.
pub type Arguments<T, D, Epi> = (
    Global<T>,
    Global<T>,
    GlobalMut<D>,
    GlobalMut<<D as ElementC>::Acc>,
    MultistageArgs,
    Epi,
);

/// The types of a kernel's operands, of C and of its epilogue.
pub type Types<T, D, Epi> = PhantomData<fn() -> (T, D, Epi)>;

/// A kernel, and what its configuration says.
#[derive(Debug)]
pub struct Instance<T: 'static, D: ElementC, Epi: 'static> {
    /// The kernel.
    pub kernel: &'static Kernel<Arguments<T, D, Epi>>,
    /// The types of its operands, of C and of its epilogue.
    pub of: Types<T, D, Epi>,
    /// How it reads A and B.
    pub reads: [Read; 2],
    /// Rows and columns of a block's tile of C, and the k of a k-tile.
    pub tile: [u32; 3],
    /// Blocks that a multiprocessor runs at the same time.
    pub blocks: u32,
    /// The share of its multiprocessors' peak that it reaches at a large problem.
    pub speed: f64,
}

impl<T: DeviceData, D: ElementC, Epi> Instance<T, D, Epi> {
    /// The instance of a kernel with this configuration, of which a multiprocessor runs `blocks` blocks at the same
    /// time, at `speed`.
    pub const fn new<C: Config>(
        kernel: &'static Kernel<Arguments<T, D, Epi>>,
        blocks: u32,
        speed: f64,
    ) -> Self
    where
        C::A: Staging<Element = T>,
    {
        Self {
            kernel,
            of: PhantomData,
            reads: [C::A::READ, C::B::READ],
            tile: [C::Tile::M as u32, C::Tile::N as u32, C::Tile::K as u32],
            blocks,
            speed,
        }
    }
}
