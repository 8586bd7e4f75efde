//! The launch: which layouts A, B and C are.

use cutlet_device::collective::cluster_raster;
use cutlet_host::{Buffer, Result, Stream, TensorMapSpec};
use cutlet_layout_core::{IntTuple, Layout, Tiler, layout, zipped_divide};
use half::bf16;

use crate::kernel::{TileA, TileB, TileC, convolution};

/// A convolution of an input (n, h, w, c) by filters (k, r, s, c), where c and k are multiples of 8.
#[derive(Clone, Copy, Debug)]
pub struct Convolution {
    /// n, h, w and c.
    pub input: [u64; 4],
    /// k, r and s.
    pub filters: [u64; 3],
    /// Pixels from one window to the next.
    pub stride: u64,
    /// Pixels from one tap of a window to the next.
    pub dilation: u64,
    /// Zeros before and after the pixels of a line, and of a column.
    pub padding: u64,
    /// Pixels of a tile along q, p and n: 128, and the fewest tiles that cover the output are the fastest.
    pub tile: [i64; 3],
}

impl Convolution {
    /// The output's n, p, q and k.
    pub fn output(&self) -> [u64; 4] {
        let ([n, h, w, _], [k, r, s]) = (self.input, self.filters);
        let steps = |extent, taps| extent + 2 * self.padding - self.dilation * (taps - 1) - 1;
        let windows = |extent, taps| steps(extent, taps) / self.stride + 1;
        [n, windows(h, r), windows(w, s), k]
    }

    /// A: where ((q, p, n), (c, s, r)) is in the input, as a layout of coordinates (c, w, h, n). Channels are rounded
    /// up to whole k-tiles: TMA loads zeros for what the input does not have.
    pub fn windows(&self) -> Layout {
        let ([n, p, q, _], [_, r, s]) = (self.output(), self.filters);
        let (c, by) = (self.input[3].next_multiple_of(64), self.stride);
        let apart = self.dilation;
        layout!(((dyn q, dyn p, dyn n), (dyn c, dyn s, dyn r)):
            ((dyn by@1, dyn by@2, 1@3), (1@0, dyn apart@1, dyn apart@2)))
    }

    /// Computes the output, (n, p, q, k).
    ///
    /// # Errors
    /// If a buffer is too short, TMA cannot move a tensor, or a tile has not 128 pixels.
    pub fn run(
        &self,
        stream: &Stream,
        (input, filters, output): (&Buffer<bf16>, &Buffer<bf16>, &mut Buffer<bf16>),
    ) -> Result<()> {
        let ([n, h, w, c], [k, r, s], [_, p, q, _]) = (self.input, self.filters, self.output());
        let (rs, before) = (r * s, -(self.padding as i32));
        let packed = TensorMapSpec::packed;
        let tile = Tiler::shape(&IntTuple::dynamic(&self.tile));
        let tiled = |pixels| zipped_divide(&pixels, &tile);
        let (pixels, channels) = (self.windows().mode(0), self.windows().mode(1));
        let a = Layout::concat2(&tiled(pixels), &channels);
        let b = layout!((dyn k, (dyn (channels.size() as u64 / rs), dyn rs)):(1@2, (1@0, 1@1)));
        let pixels = tiled(layout!((dyn q, dyn p, dyn n):(1@1, 1@2, 1@3)));
        let of_c = Layout::concat2(&pixels, &layout!(dyn k:1@0));

        let origin = [0, before, before, 0];
        let a = packed(&[c, w, h, n]).encode_tensor(input, &a, origin, TileA::tile_box(1))?;
        let b = packed(&[c, rs, k]).encode_tensor(filters, &b, [0; 3], TileB::multicast_box(2))?;
        let c = packed(&[k, q, p, n]).encode_tensor(&*output, &of_c, [0; 4], TileC::tile_box(2))?;
        let tiles = [pixels.mode(1).size() as u32, k.div_ceil(256) as u32];
        let raster = cluster_raster(tiles, [2, 1], 8);
        let clusters = stream.device().clusters_at_a_time(2)?.min(raster.size());
        let kernel = stream.device().load(&crate::PTX, &convolution)?;
        let args = (a, b, c, raster, (channels.size() / 64) as u32);
        // SAFETY: the tensors are of the kernel's tiles, and the output is borrowed mutably.
        unsafe { stream.launch(&kernel, 2 * clusters, args) }
    }
}
