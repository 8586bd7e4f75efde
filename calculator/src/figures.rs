//! The figures of the guide to layouts. The operation that a figure shows computes it.

use std::collections::BTreeMap;

use cutlet_layout_core::picture::{Color, Figure, LayoutPanel, Panel};
use cutlet_layout_core::{
    Layout, Tiler, blocked_product, complement, composition_by_mode, layout, logical_divide,
    logical_product, raked_product, shape, tile, zipped_divide, zipped_product,
};

/// A figure: its file's name, and the function that draws it as SVG.
pub type Drawing = (&'static str, fn() -> String);

/// All figures.
pub const FIGURES: [Drawing; 11] = [
    ("composition1", || composition(&tile!(<3:4, 8:2>))),
    ("composition2", || composition(&tile!((3, 8)))),
    ("complement1", complement1),
    ("divide1", divide1),
    ("divide2", divide2),
    ("divide3", divide3),
    ("product1", || product(&layout!(6:1))),
    ("product2", || product(&layout!((4, 2):(2, 1)))),
    ("product2d", product2d),
    ("productblocked2d", || {
        ranked("blocked_product", blocked_product)
    }),
    ("productraked2d", || ranked("raked_product", raked_product)),
];

/// The tile of each index, from a layout whose second mode runs over tiles.
fn tiles(zipped: &Layout) -> BTreeMap<i64, i64> {
    let tile = zipped.mode(0).size();
    (0..zipped.size())
        .map(|c| (zipped.at(c), c / tile))
        .collect()
}

/// Colours indices by tile, and indices in no tile white.
fn by_tile(tiles: &BTreeMap<i64, i64>) -> impl Fn(i64) -> Color {
    |index| {
        tiles
            .get(&index)
            .map_or(Color::WHITE, |&tile| Color::of_tile(tile))
    }
}

/// [`by_tile`], with the first tile marked.
fn first_marked(tiles: &BTreeMap<i64, i64>) -> impl Fn(i64) -> Color {
    |index| match tiles.get(&index) {
        Some(0) => Color::SELECTED,
        Some(&tile) => Color::of_tile(tile),
        None => Color::WHITE,
    }
}

fn white(_: i64) -> Color {
    Color::WHITE
}

fn figure(panels: &[&dyn Panel]) -> String {
    Figure::new(panels).to_string()
}

/// A part of a matrix: marked in the matrix, and alone.
fn composition(tiler: &Tiler) -> String {
    let a = layout!((12, (4, 8)):(59, (13, 1)));
    let result = composition_by_mode(&a, tiler);
    let picked: BTreeMap<i64, i64> = (0..result.size()).map(|c| (result.at(c), 0)).collect();
    let marked = first_marked(&picked);
    let titles = [format!("A = {a}"), format!("A o {tiler} = {result}")];
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &marked),
        &LayoutPanel::new(&titles[1], &result, &marked),
    ])
}

/// The codomain that a layout and its complement fill together.
fn complement1() -> String {
    let a = layout!((2, 2):(1, 6));
    let rest = complement(&a, &shape!(24));
    let whole = Layout::concat2(&a, &rest);
    let repetitions = tiles(&whole);
    let title = format!("A = {a} and complement(A, 24) = {rest}");
    let codomain = layout!(24:1);
    figure(&[&LayoutPanel::new(
        &title,
        &codomain,
        &first_marked(&repetitions),
    )])
}

/// A vector with its tiles in colours, and divided into tiles.
fn divide1() -> String {
    let (a, tiler) = (layout!((4, 2, 3):(2, 1, 8)), tile!(4:2));
    let result = logical_divide(&a, &tiler);
    let tiles = tiles(&result);
    let titles = [
        format!("A = {a}"),
        format!("logical_divide(A, {tiler}) = {result}"),
    ];
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &first_marked(&tiles)).in_a_row(),
        &LayoutPanel::new(&titles[1], &result, &by_tile(&tiles)),
    ])
}

fn matrix_and_tiler() -> (Layout, Tiler) {
    (
        layout!((9, (4, 8)):(59, (13, 1))),
        tile!(<3:3, (2, 4):(1, 8)>),
    )
}

/// A matrix with its tiles in colours, and permuted so that tiles are blocks.
fn divide2() -> String {
    let (a, tiler) = matrix_and_tiler();
    let result = logical_divide(&a, &tiler);
    let tiles = tiles(&zipped_divide(&a, &tiler));
    let titles = [
        format!("A = {a}"),
        format!("logical_divide(A, {tiler}) = {result}"),
    ];
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &first_marked(&tiles)),
        &LayoutPanel::new(&titles[1], &result, &by_tile(&tiles)),
    ])
}

/// The same matrix with a tile in each column.
fn divide3() -> String {
    let (a, tiler) = matrix_and_tiler();
    let result = zipped_divide(&a, &tiler);
    let title = format!("zipped_divide({a}, {tiler}) = {result}");
    figure(&[&LayoutPanel::new(
        &title,
        &result,
        &by_tile(&tiles(&result)),
    )])
}

/// The product of two vectors: one repeated by the other.
fn product(b: &Layout) -> String {
    let a = layout!((2, 2):(4, 1));
    let result = logical_product(&a, &Tiler::layout(b));
    let repetition = |tile| Color::of_tile(tile);
    let titles = [
        format!("A = {a}"),
        format!("B = {b}"),
        format!("logical_product(A, B) = {result}"),
    ];
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &white).in_a_row(),
        &LayoutPanel::new(&titles[1], b, &repetition).in_a_row(),
        &LayoutPanel::new(&titles[2], &result, &by_repetition(&result, b)),
    ])
}

/// Colours a product's indices by the element of B whose block they are in.
fn by_repetition(product: &Layout, b: &Layout) -> impl Fn(i64) -> Color {
    let blocks: BTreeMap<i64, i64> = tiles(product)
        .into_iter()
        .map(|(index, block)| (index, b.at(block)))
        .collect();
    move |index| {
        blocks
            .get(&index)
            .map_or(Color::WHITE, |&block| Color::of_tile(block))
    }
}

/// A block repeated mode by mode, by a tiler that depends on the block's strides.
fn product2d() -> String {
    let (a, tiler) = (layout!((2, 5):(5, 1)), tile!(<3:5, 4:6>));
    let result = logical_product(&a, &tiler);
    let titles = [
        format!("A = {a}"),
        format!("logical_product(A, {tiler}) = {result}"),
    ];
    let tiles = tiles(&zipped_product(&a, &tiler));
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &white),
        &LayoutPanel::new(&titles[1], &result, &by_tile(&tiles)),
    ])
}

/// A block repeated over a layout of blocks.
fn ranked(name: &str, operation: fn(&Layout, &Layout) -> Layout) -> String {
    let (a, b) = (layout!((2, 5):(5, 1)), layout!((3, 4):(1, 3)));
    let result = operation(&a, &b);
    let titles = [
        format!("A = {a}"),
        format!("B = {b}"),
        format!("{name}(A, B) = {result}"),
    ];
    let blocks = logical_product(&a, &Tiler::layout(&b));
    let repetition = |tile| Color::of_tile(tile);
    figure(&[
        &LayoutPanel::new(&titles[0], &a, &white),
        &LayoutPanel::new(&titles[1], &b, &repetition),
        &LayoutPanel::new(&titles[2], &result, &by_repetition(&blocks, &b)),
    ])
}
