//! The run time of the layout algebra, for layouts of six leaves.

use criterion::{Criterion, criterion_group, criterion_main};
use cutlet_layout_core::{
    Layout, Tiler, coalesce, try_complement, try_composition, try_logical_divide, try_zipped_divide,
};
use std::hint::black_box;

fn parse(text: &str) -> Layout {
    text.parse().unwrap()
}

fn algebra(criterion: &mut Criterion) {
    for (kind, underscore) in [("static", "_"), ("dynamic", "")] {
        let read = |text: &str| parse(&text.replace('#', underscore));
        let a = read("((#4,#8),(#2,#16),(#4,#8)):((#1,#64),(#4,#1024),(#32768,#8))");
        let b = read("((#4,#4),(#2,#2),(#8,#4)):((#1,#8),(#4,#32),(#64,#512))");
        let holes = read("((#2,#4),(#2,#2),(#4,#2)):((#1,#4),(#32,#128),(#512,#4096))");
        let tile = Tiler::layout(&read("(#8,#4):(#1,#64)"));
        let tiles = "<(#4,#4):(#1,#8),#2:#4,(#4,#2):(#2,#16)>".replace('#', underscore);
        let tiles: Tiler = tiles.parse().unwrap();
        let size = read("#32768").shape();
        let mut group = criterion.benchmark_group(kind);
        group.bench_function("coalesce", |bench| bench.iter(|| coalesce(black_box(&a))));
        group.bench_function("composition", |bench| {
            assert!(try_composition(&a, &b).is_ok());
            bench.iter(|| try_composition(black_box(&a), black_box(&b)))
        });
        group.bench_function("complement", |bench| {
            assert!(try_complement(&holes, &size).is_ok());
            bench.iter(|| try_complement(black_box(&holes), black_box(&size)))
        });
        group.bench_function("logical_divide", |bench| {
            assert!(try_logical_divide(&a, &tile).is_ok());
            bench.iter(|| try_logical_divide(black_box(&a), black_box(&tile)))
        });
        group.bench_function("zipped_divide by mode", |bench| {
            assert!(try_zipped_divide(&a, &tiles).is_ok());
            bench.iter(|| try_zipped_divide(black_box(&a), black_box(&tiles)))
        });
        group.finish();
    }
}

criterion_group!(benches, algebra);
criterion_main!(benches);
