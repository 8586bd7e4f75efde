//! The convolution on the CPU backend, against loops in f64.

use convolution::Convolution;
use convolution::check::check;
use cutlet_host::{Device, cpu};
use cutlet_layout_core::{IntTuple, Layout, composition};

fn checked(of: Convolution) {
    cpu::check_races(true); // also in release builds
    let stream = Device::cpu().stream().unwrap();
    let result = check(&stream, &of, usize::MAX).unwrap();
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// Of extents that no tile divides.
#[test]
fn strides_dilations_and_paddings() {
    for stride in [1, 2] {
        for dilation in [1, 2] {
            for padding in [0, 1, 2] {
                checked(Convolution {
                    input: [1, 9, 12, 8],
                    filters: [8, 3, 2],
                    stride,
                    dilation,
                    padding,
                    tile: [8, 8, 2],
                });
            }
        }
    }
}

/// Channels are no whole k-tiles, filters are no whole tiles, and the number of tiles is odd.
#[test]
fn more_channels_filters_and_images_than_a_tile_has() {
    checked(Convolution {
        input: [5, 6, 9, 136],
        filters: [264, 2, 3],
        stride: 1,
        dilation: 1,
        padding: 1,
        tile: [8, 8, 2],
    });
}

#[test]
fn windows_of_one_pixel_and_strides_beyond_it() {
    checked(Convolution {
        input: [3, 20, 17, 64],
        filters: [24, 1, 1],
        stride: 3,
        dilation: 1,
        padding: 0,
        tile: [4, 16, 2],
    });
}

/// An extent of zeros alone: all taps of some windows are outside of the input.
#[test]
fn more_padding_than_input() {
    checked(Convolution {
        input: [2, 1, 3, 16],
        filters: [16, 3, 3],
        stride: 2,
        dilation: 1,
        padding: 4,
        tile: [8, 8, 2],
    });
}

fn packed(extents: [u64; 4]) -> Layout {
    Layout::col_major(&IntTuple::dynamic(&extents.map(|it| it as i64)))
}

/// Without padding, A is the input itself by a layout that visits pixels in several windows.
#[test]
fn windows_are_a_layout_of_the_input() {
    let of = Convolution {
        input: [2, 9, 10, 64],
        filters: [16, 3, 2],
        stride: 2,
        dilation: 1,
        padding: 0,
        tile: [8, 8, 2],
    };
    let windows = composition(&packed([64, 10, 9, 2]), &of.windows());
    assert_eq!(
        windows.to_string(),
        "((5,4,2),(64,2,3)):((128,1280,5760),(_1,64,640))"
    );
    assert!(windows.size() > windows.cosize(), "windows overlap");
}

#[test]
fn what_tma_cannot_move_is_refused() {
    let of = Convolution {
        input: [1, 4, 4, 12],
        filters: [8, 3, 3],
        stride: 1,
        dilation: 1,
        padding: 1,
        tile: [8, 8, 2],
    };
    let stream = Device::cpu().stream().unwrap();
    let (input, filters) = (
        stream.zeroed(4 * 4 * 12).unwrap(),
        stream.zeroed(8 * 9 * 12).unwrap(),
    );
    let mut output = stream.zeroed(4 * 4 * 8).unwrap();
    let mut refusal = |of: Convolution| {
        let error = of.run(&stream, (&input, &filters, &mut output));
        error.unwrap_err().to_string()
    };
    let lines = refusal(of);
    assert!(lines.contains("rows are 24 bytes apart"), "{lines}");
    let tile = refusal(Convolution {
        input: [1, 9, 9, 8],
        tile: [8, 8, 1],
        ..of
    });
    assert!(tile.contains("no box of the tensor"), "{tile}");
}
