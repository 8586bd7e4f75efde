//! Operations of the library in graphs that own their buffers.

use cutlet::{
    Activation, Bags, Device, DeviceTensor, Error, Gemm, HostError, IndexedRows, Linear, Pooling,
    Result, Stream, Tensor, add, bf16, capture_owned, check_indices, contract, embedding_bag,
    gather, interleave_rows, layout, permute,
};

use crate::small::{small, upload};

fn tensor(stream: &Stream, shape: [usize; 2], seed: u64) -> Result<DeviceTensor<bf16>> {
    let buffer = upload(stream, &small(shape[0] * shape[1], seed))?;
    DeviceTensor::new(buffer, shape)
}

/// What a step of a small model uses.
struct Step {
    tokens: DeviceTensor<i32>,
    table: DeviceTensor<bf16>,
    x: DeviceTensor<bf16>,
    gated: Linear<bf16>,
    hidden: DeviceTensor<bf16>,
    down: Linear<bf16>,
    y: DeviceTensor<bf16>,
    turned: DeviceTensor<bf16>,
    sums: DeviceTensor<bf16>,
}

const ROWS: usize = 6;
const WIDTH: usize = 16;
const INNER: usize = 24;

impl Step {
    fn new(stream: &Stream) -> Result<Self> {
        let (gates, ups) = (
            tensor(stream, [INNER, WIDTH], 1)?,
            tensor(stream, [INNER, WIDTH], 2)?,
        );
        let mut weights = DeviceTensor::zeroed(stream, [2 * INNER, WIDTH])?;
        interleave_rows(stream, &gates, &ups, &mut weights)?;
        let down = Linear::new(tensor(stream, [WIDTH, INNER], 3)?)?;
        let zeroed = |shape: [usize; 2]| DeviceTensor::<bf16>::zeroed(stream, shape);
        Ok(Step {
            tokens: DeviceTensor::upload(stream, &[0; ROWS], [ROWS, 1])?,
            table: tensor(stream, [10, WIDTH], 4)?,
            x: zeroed([ROWS, WIDTH])?,
            gated: Linear::new(weights)?.swiglu(),
            hidden: zeroed([ROWS, INNER])?,
            down: down
                .bias(upload(stream, &small(WIDTH, 5))?)
                .activation(Activation::Relu),
            y: zeroed([ROWS, WIDTH])?,
            turned: DeviceTensor::zeroed(stream, layout!((6, 16):(1, 6)))?,
            sums: zeroed([ROWS / 2, WIDTH])?,
        })
    }

    fn run(&mut self, stream: &Stream) -> Result<()> {
        gather(stream, &self.table, self.tokens.buffer(), &mut self.x)?;
        self.gated.run(stream, &self.x, &mut self.hidden)?;
        self.down.gemm(&self.hidden, &mut self.y).run(stream)?;
        permute(stream, &self.y, &mut self.turned)?;
        let (indices, bags) = (self.tokens.buffer(), Bags::of_len(2));
        embedding_bag(
            stream,
            Pooling::Sum,
            &self.table,
            indices,
            bags,
            &mut self.sums,
        )
    }

    fn results(&self, stream: &Stream) -> Result<[Vec<bf16>; 2]> {
        Ok([self.turned.download(stream)?, self.sums.download(stream)?])
    }
}

#[test]
fn a_step_of_a_model_is_replayed_with_other_tokens() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let mut graph = capture_owned(&device, Step::new(&stream)?, |stream, step| {
        step.run(stream)?;
        Ok(())
    })?;
    let mut alone = Step::new(&stream)?;
    for tokens in [[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]] {
        for step in [graph.get_mut(), &mut alone] {
            stream.copy_from_host(&tokens, step.tokens.view_mut())?;
        }
        graph.launch(&stream)?;
        alone.run(&stream)?;
        let found = graph.get().results(&stream)?;
        assert_eq!(found, alone.results(&stream)?);
        assert!(found.iter().flatten().any(|it| *it != bf16::ZERO));
    }
    check_indices(&stream)
}

/// The memory is asked for by an address that a kernel gets in a struct, or a tensor map.
#[test]
fn operands_that_are_passed_by_address_are_kept() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let [m, n, k] = [64, 64, 64];
    let a = tensor(&stream, [m, k], 1)?;
    let b = tensor(&stream, [n, k], 2)?;
    let residual = tensor(&stream, [m, n], 3)?;
    let mut rows = IndexedRows::new(&device)?;
    let indices = stream.upload(&(0..m as i32).rev().collect::<Vec<_>>())?;
    let y = DeviceTensor::<bf16>::zeroed(&stream, [m, n])?;
    let record = |stream: &Stream, y: &mut DeviceTensor<bf16>| {
        Gemm::new(&a, b.tensor().transpose()?, y)
            .gather_a(rows.by(&indices)?)
            .residual(&residual)
            .run(stream)
    };
    let mut alone = DeviceTensor::<bf16>::zeroed(&stream, [m, n])?;
    record(&stream, &mut alone)?;
    let mut graph = capture_owned(&device, y, record)?;
    rows.check(&stream)?;
    // What is freed is the graph's alone by now.
    drop((a, b, residual, indices, rows));
    let others = [0xaa; 8].map(|byte| stream.filled::<bf16>(m * n, byte).unwrap());
    graph.launch(&stream)?;
    assert_eq!(graph.get().download(&stream)?, alone.download(&stream)?);
    drop(others);
    Ok(())
}

#[test]
fn an_operand_that_a_graph_cannot_keep_is_refused() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let elements = stream.upload(&[1.0f32; 64])?;
    // SAFETY: the buffer lives past the captures.
    let view = unsafe { cutlet::View::from_raw(&device, elements.view().address(), 64)? };
    let matrix = Tensor::new(view, [8, 8])?;
    let y = || DeviceTensor::<f32>::zeroed(&stream, [8, 8]);
    let refused = [
        capture_owned(&device, y()?, |stream, y| {
            Gemm::new(matrix, matrix, y).run(stream)
        }),
        capture_owned(&device, y()?, |stream, y| permute(stream, matrix, y)),
        capture_owned(&device, y()?, |stream, y| {
            contract(stream, "ij,jk->ik", matrix, matrix, y)
        }),
    ];
    for refused in refused {
        let Err(Error::Host(error @ HostError::Capture { .. })) = refused else {
            panic!("{refused:?}")
        };
        assert!(error.to_string().contains("a graph cannot own"), "{error}");
    }
    Ok(())
}

/// The prompt's graph and the step's use the same tensors, and own none. What a capture allocates lives as long.
#[test]
fn two_graphs_share_tensors_that_neither_owns() -> Result<()> {
    let device = Device::auto();
    let stream = device.stream()?;
    let numbers = |first: i32| move |nth: usize| (first + nth as i32) as f32;
    let start = DeviceTensor::from_fn(&stream, [3, 4], numbers(1))?;
    let mut x = DeviceTensor::from_fn(&stream, [3, 4], numbers(100))?;
    let mut begin = capture_owned(&device, (), |stream, ()| permute(stream, &start, &mut x))?;
    let mut double = capture_owned(&device, (), |stream, ()| {
        let mut sum = DeviceTensor::<f32>::zeroed(stream, [3, 4])?;
        add(stream, &x, &x, &mut sum)?;
        permute(stream, &sum, &mut x)
    })?;
    drop(start);
    // Other memory takes the place of what was freed.
    let _others: Vec<_> = (0..8)
        .map(|_| DeviceTensor::from_fn(&stream, [3, 4], numbers(-50)))
        .collect::<Result<_>>()?;
    for _ in 0..2 {
        begin.launch(&stream)?;
        double.launch(&stream)?;
        double.launch(&stream)?;
        let expected: Vec<f32> = (1..=12).map(|it| 4.0 * it as f32).collect();
        assert_eq!(x.download(&stream)?, expected);
    }
    Ok(())
}
