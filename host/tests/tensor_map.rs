//! Tensor maps: a kernel that copies matrices through them, and tensors that TMA cannot move.

use cutlet_device::tile::KMajorTile;
use cutlet_device::tiled::TmaTensor;
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_host::{Device, Error, L2Promotion, Result, TensorMapSpec};
use cutlet_layout_core::{CoordinateLayout, Layout, layout};

mod kernels {
    use cutlet_device::mbarrier::Mbarrier;
    use cutlet_device::tile::KMajorTile;
    use cutlet_device::tma::{LoadOptions, TensorMap, tma_store_commit, tma_store_wait};
    use cutlet_device::{block_idx, kernel, thread_idx};

    pub type Tile = KMajorTile<f32, 16, 32>;

    /// Copies a stack of matrices, one tile per block.
    ///
    /// # Safety
    /// The maps are of boxes of [`Tile`], and their tensors' memory is alive.
    #[kernel(threads = 32, arch = "sm_90a")]
    pub unsafe fn copy(
        #[grid_constant] from: &TensorMap,
        tiles: u32,
        #[grid_constant] to: &TensorMap,
        #[shared] tile: Tile,
        #[shared] barrier: Mbarrier,
    ) {
        let (x, y) = (block_idx().x.get(), block_idx().y.get());
        let at = [(x / tiles * 16) as i32, (x % tiles * 32) as i32, y as i32];
        if thread_idx().get() == 0 {
            // SAFETY: only this thread uses tile and barrier. The maps are as promised.
            unsafe {
                barrier.init(1);
                barrier.arrive_expect_tx(Tile::BYTES);
                tile.load(from, at, barrier, LoadOptions::DEFAULT);
                barrier.wait(0);
                tile.store(to, at);
            }
            tma_store_commit();
            tma_store_wait::<0>();
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn a_kernel_copies_a_stack_of_matrices() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let (count, rows, columns, ld) = (3usize, 50usize, 70usize, 72usize);
    let source: Vec<f32> = (0..count * rows * ld).map(|i| i as f32).collect();
    let a = stream.upload(&source)?;
    let b = stream.zeroed::<f32>(count * rows * columns.next_multiple_of(4))?;
    let spec = |ld: usize| {
        TensorMapSpec::rows(rows as u64, columns as u64, ld as u64)
            .stacked(count as u64, (rows * ld) as u64)
            .promotion(L2Promotion::Bytes256)
    };
    let from = spec(ld).encode(&a, kernels::Tile::tile_box(1))?;
    let to = spec(72).encode(&b, kernels::Tile::tile_box(1))?;
    let function = device.load(&PTX, &kernels::copy)?;
    let grid = [4 * 3, count as u32, 1];
    // SAFETY: the maps are of the kernel's tile and of these buffers, and the grid covers them.
    unsafe { stream.launch(&function, grid, (from, 3u32, to))? };
    let result = stream.download(&b)?;
    for (i, &value) in result.iter().enumerate() {
        let expected = if i % 72 < columns { i as f32 } else { 0.0 };
        assert_eq!(value, expected, "element {i}");
    }
    Ok(())
}

static PTX: cutlet_device::PtxLibrary = cutlet_device::PtxLibrary { families: &[] };

#[test]
fn tensors_that_tma_cannot_move_are_errors() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let buffer = stream.zeroed::<u16>(64 * 128)?;
    let tile = |x, y, span| TmaBox {
        extent: [x, y],
        swizzle_bytes: span,
    };
    let good = tile(64, 64, 128);
    TensorMapSpec::rows(64, 128, 128).encode(&buffer, good)?;
    // 127 columns are allowed as long as rows are aligned.
    TensorMapSpec::rows(64, 127, 128).encode(&buffer, good)?;
    let says = |result: Result<TensorMap>, found: &str| {
        let error = result.expect_err("this must be refused");
        assert!(matches!(error, Error::BadTensorMap { .. }), "{error}");
        assert!(error.to_string().contains(found), "{error}");
    };
    let rows = TensorMapSpec::rows;
    says(
        rows(64, 127, 127).encode(&buffer, good),
        "rows are 254 bytes apart",
    );
    says(
        rows(65, 128, 128).encode(&buffer, good),
        "beyond the 8192 elements",
    );
    says(
        rows(u64::MAX, 128, 128).encode(&buffer, good),
        "dimension 1 has",
    );
    says(
        rows(0, 128, 128).encode(&buffer, good),
        "dimension 1 has 0 elements",
    );
    says(
        rows(63, 128, 128).encode(buffer.slice(1..)?, good),
        "its address is",
    );
    says(
        rows(8, 128, 128).stacked(2, 1028).encode(&buffer, good),
        "matrices are 2056 bytes apart",
    );
    says(
        rows(64, 128, 128).encode(&buffer, tile(64, 257, 128)),
        "the box has 257 elements along dimension 1",
    );
    says(
        rows(64, 128, 128).encode(&buffer, tile(32, 64, 128)),
        "a line of the box has 64 bytes",
    );
    says(
        rows(64, 128, 128).encode(&buffer, tile(4, 64, 16)),
        "a line of the box has 8 bytes",
    );
    Ok(())
}

#[test]
fn tensors_of_rank_4_and_5_are_checked_in_every_dimension() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let buffer = stream.zeroed::<f32>(2 * 3 * 4 * 5 * 8)?;
    // 5 rows of 8 elements in stacks of 4, 3 and 2.
    let tensor = TensorMapSpec::rows(5, 8, 8).stacked(4, 40).stacked(3, 160);
    let whole = tensor.stacked(2, 480);
    let boxes = TmaBox {
        extent: [8, 2, 2, 1, 2],
        swizzle_bytes: 32,
    };
    whole.encode(&buffer, boxes)?;
    let says = |result: Result<TensorMap>, parts: &[&str]| {
        let error = result.expect_err("this must be refused").to_string();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    says(
        tensor.stacked(2, 484).encode(&buffer, boxes),
        &[
            "2 × 3 × 4 × 5 × 8 elements of 4 bytes",
            "boxes of 2 × 1 × 2 × 2 × 8",
            "reaches beyond the 960 elements",
        ],
    );
    says(
        tensor.stacked(2, 482 - 4).encode(&buffer, boxes),
        &["stacks of stacks are 1912 bytes apart", "copy the tensor"],
    );
    says(
        tensor.stacked(0, 480).encode(&buffer, boxes),
        &["dimension 4 has 0 elements"],
    );
    says(
        tensor.encode(&buffer, boxes),
        &["the box has 5 dimensions, and the tensor 4"],
    );
    says(
        whole.stacked(1, 960).encode(&buffer, boxes),
        &["the tensor has 6 dimensions", "merge dimensions"],
    );
    let large = TmaBox {
        extent: [8, 200, 200, 1],
        swizzle_bytes: 32,
    };
    says(
        whole.encode(&buffer, large),
        &["a box has 1280000 bytes", "227 KiB"],
    );
    Ok(())
}

#[test]
fn the_box_of_a_matrix_is_where_its_first_rows_and_columns_are() -> Result<()> {
    type Tile = KMajorTile<u16, 64, 64>;
    let stream = Device::cpu().stream()?;
    let buffer = stream.zeroed::<u16>(64 * 20 * 10 * 3)?;
    let image = TensorMapSpec::packed(&[64, 20, 10, 3]);
    let tensor = |matrix: &Layout| -> Result<TmaTensor<4, 6, 1>> {
        image.encode_tensor(&buffer, matrix, [0, -1, 0, 0], Tile::tile_box(1))
    };
    // Every second pixel of every third line, in tiles of 8×4 pixels of two images.
    let pixels = layout!((((8, 4, 2), (2, 1, 2)), 64):(((2@1, 3@2, 1@3), (16@1, 12@2, 2@3)), 1@0));
    let boxes = TmaBox {
        extent: [64, 8, 4, 2],
        swizzle_bytes: 128,
    };
    let map = (image.element_stride(1, 2).element_stride(2, 3)).encode(&buffer, boxes)?;
    let expected = TmaTensor::new(map, CoordinateLayout::new(&pixels, [0, -1, 0, 0]));
    assert_eq!(tensor(&pixels)?, expected);

    let refused = [
        // Lines before pixels.
        layout!((((4, 8, 2), (2, 1, 2)), 64):(((3@2, 2@1, 1@3), (12@2, 16@1, 2@3)), 1@0)),
        // Half a tile, and tiles that go on elsewhere.
        layout!((((8, 4, 1), (2, 1, 3)), 64):(((2@1, 3@2, 1@3), (16@1, 12@2, 1@3)), 1@0)),
        // Lines of 24 pixels, of which tiles are no part.
        layout!((((24, 1, 4), (1, 1, 1)), 64):(((1@1, 1@2, 1@3), (1@1, 1@2, 1@3)), 1@0)),
    ];
    for matrix in &refused {
        let error = tensor(matrix)
            .expect_err("this must be refused")
            .to_string();
        assert!(error.contains("no box of the tensor"), "{error}");
    }
    let flat = TensorMapSpec::packed(&[64, 20, 30]);
    let error = flat.encode_tensor::<_, 4, 6, 1>(&buffer, &pixels, [0; 4], Tile::tile_box(1));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("a tensor of rank 3")
    );
    Ok(())
}
