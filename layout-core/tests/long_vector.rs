//! Vectors of more than 2³¹ elements, whose memory is computed: element `i` is `i`, if it exists.

use cutlet_layout_core::{Engine, L, LongVector, RowMajor, Tensor, Tv};

/// Elements, from `first` on, of a vector of `len`. It refuses others.
#[derive(Clone, Copy)]
struct Computed {
    first: i64,
    len: i64,
}

impl Engine for Computed {
    type Element = i64;

    fn offset(self, index: i64) -> Self {
        Computed {
            first: self.first + index,
            ..self
        }
    }

    unsafe fn load(self, index: i64) -> i64 {
        let element = self.first + index;
        assert!((0..self.len).contains(&element), "element {element}");
        element
    }
}

type Tile = L!((1, 1024):(1@0, 1@1));
type Threads = Tv<L!(256:1@1), L!(4:256@1)>;

/// A vector of `len` elements.
fn computed(len: i64) -> LongVector<Computed> {
    // SAFETY: no memory is read.
    unsafe { LongVector::new(Computed { first: 0, len }, len) }
}

#[test]
fn each_element_of_a_long_vector_is_in_one_tile() {
    let len = 3_000_000_100;
    let vector = computed(len);
    let tiles = vector.tiles::<Tile>();
    assert_eq!(tiles, 2_929_688);
    // Tiles at the beginning, around 2³¹ and at the end.
    let around = (1u32 << 21) - 1;
    for tile in [0, 1, around, around + 1, tiles - 2, tiles - 1] {
        let tensor = vector.local_tile::<Tile>(tile);
        let begin = i64::from(tile) * 1024;
        for thread in 0..256u32 {
            let values = tensor.partition::<Threads>(thread).load(-1);
            for v in 0..4 {
                let element = begin + i64::from(thread) + 256 * v as i64;
                let expected = if element < len { element } else { -1 };
                assert_eq!(
                    values.get(v),
                    expected,
                    "tile {tile}, thread {thread}, value {v}"
                );
            }
        }
    }
}

#[test]
fn a_tile_beyond_the_vector_is_empty() {
    for (len, tile) in [(1024, 1), (1, 7), (0, 0), (1 << 40, u32::MAX)] {
        let share = computed(len)
            .local_tile::<Tile>(tile)
            .partition::<Threads>(0u32);
        let expected = i64::from(tile) * 1024;
        let expected = if expected < len { expected } else { -1 };
        assert_eq!(share.load(-1).get(0), expected, "{len} {tile}");
    }
}

#[test]
fn a_short_vector_has_the_tiles_of_a_row() {
    let engine = Computed {
        first: 0,
        len: 2100,
    };
    // SAFETY: no memory is read.
    let row = unsafe { Tensor::new(engine, RowMajor::new([1, 2100], 0)) };
    let vector = computed(2100);
    assert_eq!(row.tiles::<Tile>(), [1, vector.tiles::<Tile>()]);
    for tile in 0..3u32 {
        for thread in 0..256u32 {
            let of_row = row
                .local_tile::<Tile>((0u32, tile))
                .partition::<Threads>(thread);
            let of_vector = vector.local_tile::<Tile>(tile).partition::<Threads>(thread);
            for v in 0..4 {
                assert_eq!(of_vector.load(-1).get(v), of_row.load(-1).get(v));
            }
        }
    }
}
