//! The choice of experts, rows sorted by expert, and their weighted sums, against plain loops on the host, on a GPU if
//! there is one.

use cutlet::{
    Device, DeviceData, Error, Logit, Matrix, MatrixMut, MoeRows, Order, RouterWeights, Stream,
    top_k,
};
use half::{bf16, f16};

/// Checks choices and weights of random logits, whose rows are `padding` elements apart.
fn check_top_k<T: Logit>(
    [tokens, experts, chosen]: [usize; 3],
    padding: usize,
    to_element: impl Fn(f32) -> T,
    to_f32: impl Fn(T) -> f32,
) {
    let mut random = fastrand::Rng::with_seed((tokens + experts) as u64);
    let ld = experts + padding;
    let logits: Vec<T> = (0..tokens * ld)
        // Few values, so that some are equal.
        .map(|_| to_element(f32::from(random.i8(-30..30)) / 4.0))
        .collect();
    let stream = Device::auto().stream().unwrap();
    let on_logits = stream.upload(&logits).unwrap();
    for router_weights in [RouterWeights::Softmax, RouterWeights::Normalised] {
        let mut choices = stream.filled::<i32>(tokens * chosen, 0xff).unwrap();
        let mut weights = stream.filled::<f32>(tokens * chosen, 0xff).unwrap();
        top_k(
            &stream,
            Matrix::with_ld(&on_logits, tokens, experts, Order::RowMajor, ld).unwrap(),
            router_weights,
            MatrixMut::row_major(&mut choices, tokens, chosen).unwrap(),
            MatrixMut::row_major(&mut weights, tokens, chosen).unwrap(),
        )
        .unwrap();
        let choices = stream.download(&choices).unwrap();
        let weights = stream.download(&weights).unwrap();
        for token in 0..tokens {
            let row: Vec<f32> = (0..experts)
                .map(|e| to_f32(logits[token * ld + e]))
                .collect();
            let mut order: Vec<usize> = (0..experts).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let found = &choices[token * chosen..][..chosen];
            assert!(
                found
                    .iter()
                    .map(|&e| e as usize)
                    .eq(order[..chosen].iter().copied()),
                "token {token} of {experts} experts chose {found:?}, not {order:?}"
            );
            let among = match router_weights {
                RouterWeights::Softmax => &order[..],
                RouterWeights::Normalised => &order[..chosen],
            };
            let total: f32 = among.iter().map(|&e| row[e].exp()).sum();
            for (&expert, &weight) in order.iter().zip(&weights[token * chosen..][..chosen]) {
                let expected = row[expert].exp() / total;
                assert!((weight - expected).abs() < 1e-5, "{weight}, not {expected}");
            }
        }
    }
}

#[test]
fn the_highest_logits_are_chosen() {
    for (extents, padding) in [
        ([1, 1, 1], 3),
        ([9, 8, 2], 3),
        ([20, 60, 4], 3),
        ([11, 128, 8], 3),
        ([3, 512, 32], 3),
        // A block has a row.
        ([3, 512, 33], 3),
        ([2, 513, 5], 0),
        ([3, 2056, 40], 8),
        ([2, 9000, 1], 3),
        // Each of the logits' values is met about 80 times, and the last one that is chosen is met below the list's end.
        ([2, 20_000, 700], 0),
        ([1, 20_001, 1500], 0),
        ([2, 2048, 2048], 8),
    ] {
        check_top_k(extents, padding, |x| x, |x| x);
        check_top_k(extents, padding, bf16::from_f32, bf16::to_f32);
        check_top_k(extents, padding, f16::from_f32, f16::to_f32);
    }
}

#[test]
fn of_equal_logits_of_long_rows_the_first_are_chosen() {
    use RouterWeights::Normalised;
    for (experts, chosen) in [(5000, 3), (5000, 1024), (5000, 2048), (2050, 2048)] {
        let (choices, weights) = choose(&vec![0.25; experts], chosen, Normalised);
        assert!(choices.into_iter().eq(0..chosen as i32));
        let share = 1.0 / chosen as f32;
        assert!(weights.iter().all(|it| (it / share - 1.0).abs() < 1e-5));
    }
    // Few are above many that are equal.
    let mut logits = vec![-0.0; 4100];
    logits[4001] = 2.0;
    logits[7] = 2.0;
    logits[3] = f32::NEG_INFINITY;
    let (choices, _) = choose(&logits, 6, Normalised);
    assert_eq!(choices, [7, 4001, 0, 1, 2, 4]);
}

#[test]
fn long_rows_may_have_infinities_and_nan() {
    use RouterWeights::{Normalised, Softmax};
    for router_weights in [Softmax, Normalised] {
        let mut logits = vec![1.0; 3000];
        (logits[2999], logits[5]) = (f32::INFINITY, f32::NEG_INFINITY);
        let (choices, weights) = choose(&logits, 3, router_weights);
        assert_eq!((choices, weights), (vec![2999, 0, 1], vec![1.0, 0.0, 0.0]));
        logits[2000] = f32::NAN;
        let (choices, weights) = choose(&logits, 2048, router_weights);
        assert!(weights.iter().all(|weight| weight.is_nan()));
        assert!(!choices.contains(&5) && !choices.contains(&2000));
        // All are −∞ or NaN.
        let mut logits = vec![f32::NEG_INFINITY; 2500];
        let (choices, weights) = choose(&logits, 4, Normalised);
        assert_eq!((choices, weights), (vec![0, 1, 2, 3], vec![0.25; 4]));
        logits[1] = f32::NAN;
        let (choices, _) = choose(&logits, 4, router_weights);
        assert_eq!(choices, [0, 1, 2, 3]);
    }
}

/// The choices and the weights of a single token.
fn choose(logits: &[f32], chosen: usize, router_weights: RouterWeights) -> (Vec<i32>, Vec<f32>) {
    let stream = Device::auto().stream().unwrap();
    let on_logits = stream.upload(logits).unwrap();
    let mut choices = stream.zeroed::<i32>(chosen).unwrap();
    let mut weights = stream.zeroed::<f32>(chosen).unwrap();
    top_k(
        &stream,
        Matrix::row_major(&on_logits, 1, logits.len()).unwrap(),
        router_weights,
        MatrixMut::row_major(&mut choices, 1, chosen).unwrap(),
        MatrixMut::row_major(&mut weights, 1, chosen).unwrap(),
    )
    .unwrap();
    (
        stream.download(&choices).unwrap(),
        stream.download(&weights).unwrap(),
    )
}

#[test]
fn infinite_logits_have_weights() {
    let (high, low) = (f32::INFINITY, f32::NEG_INFINITY);
    use RouterWeights::{Normalised, Softmax};
    let check = |logits: &[f32], router_weights, choices: &[i32], weights: &[f32]| {
        let found = choose(logits, choices.len(), router_weights);
        assert_eq!(found, (choices.to_vec(), weights.to_vec()), "{logits:?}");
    };
    for router_weights in [Softmax, Normalised] {
        check(
            &[1.0, high, 2.0],
            router_weights,
            &[1, 2, 0],
            &[1.0, 0.0, 0.0],
        );
        check(&[high, 0.0, high], router_weights, &[0, 2], &[0.5, 0.5]);
        check(&[low, 3.0, low], router_weights, &[1, 0], &[1.0, 0.0]);
        check(&[high, low], router_weights, &[0, 1], &[1.0, 0.0]);
        check(&[f32::MAX, f32::MIN], router_weights, &[0, 1], &[1.0, 0.0]);
    }
    check(&[low; 4], Softmax, &[0, 1], &[0.25, 0.25]);
    check(&[low; 4], Normalised, &[0, 1], &[0.5, 0.5]);
    check(&[high; 4], Softmax, &[0, 1], &[0.25, 0.25]);
}

#[test]
fn nan_makes_its_own_tokens_weights_nan() {
    let stream = Device::auto().stream().unwrap();
    let (nan, low) = (f32::NAN, f32::NEG_INFINITY);
    let logits = [nan, low, 1.0, nan, nan, nan, 0.0, 1.0, 0.0];
    for router_weights in [RouterWeights::Softmax, RouterWeights::Normalised] {
        let on_logits = stream.upload(&logits).unwrap();
        let mut choices = stream.zeroed::<i32>(9).unwrap();
        let mut weights = stream.zeroed::<f32>(9).unwrap();
        top_k(
            &stream,
            Matrix::row_major(&on_logits, 3, 3).unwrap(),
            router_weights,
            MatrixMut::row_major(&mut choices, 3, 3).unwrap(),
            MatrixMut::row_major(&mut weights, 3, 3).unwrap(),
        )
        .unwrap();
        let choices = stream.download(&choices).unwrap();
        assert_eq!(choices, [2, 0, 1, 0, 1, 2, 1, 0, 2]);
        let weights = stream.download(&weights).unwrap();
        assert!(
            weights[..6].iter().all(|weight| weight.is_nan()),
            "{weights:?}"
        );
        assert!(
            (weights[6..].iter().sum::<f32>() - 1.0).abs() < 1e-6,
            "{weights:?}"
        );
    }
}

#[test]
fn a_rank_may_have_no_tokens() {
    let stream = Device::auto().stream().unwrap();
    let mut rows = MoeRows::new(stream.device(), 0, 2, 3).unwrap();
    let choices = stream.zeroed::<i32>(0).unwrap();
    let none = stream.zeroed::<f32>(0).unwrap();
    let (mut permuted, mut sums) = (
        stream.zeroed::<f32>(0).unwrap(),
        stream.zeroed::<f32>(0).unwrap(),
    );
    rows.route(&stream, &choices).unwrap();
    let x = Matrix::row_major(&none, 0, 8).unwrap();
    let to = MatrixMut::row_major(&mut permuted, 0, 8).unwrap();
    rows.permute(&stream, x, to).unwrap();
    let to = MatrixMut::row_major(&mut sums, 0, 8).unwrap();
    rows.unpermute(&stream, x, &none, to).unwrap();
    rows.check(&stream).unwrap();
    assert_eq!(rows.rows(), 0);
    assert_eq!(stream.download(rows.offsets()).unwrap(), [0; 4]);
    assert_eq!(stream.download(rows.counts()).unwrap(), [0; 3]);
}

#[test]
fn rows_are_sorted_by_expert_and_summed_by_token() {
    let stream = Device::auto().stream().unwrap();
    for (tokens, chosen, experts, columns) in [
        (37, 2, 5, 8),
        (700, 8, 128, 3),
        (60, 3, 300, 40),
        (21, 7, 16, 515),
        (45, 8, 32, 100),
        (50, 5, 9, 1028),
        (9, 1, 4, 129),
    ] {
        let mut random = fastrand::Rng::with_seed(tokens as u64);
        // The last expert is never chosen.
        let choices: Vec<i64> = (0..tokens * chosen)
            .map(|_| random.i64(0..experts as i64 - 1))
            .collect();
        let weights: Vec<f32> = (0..tokens * chosen).map(|_| random.f32()).collect();
        let x: Vec<f32> = (0..tokens * columns).map(|_| random.f32()).collect();
        let mut rows = MoeRows::new(stream.device(), tokens, chosen, experts).unwrap();
        rows.route(&stream, &stream.upload(&choices).unwrap())
            .unwrap();
        rows.check(&stream).unwrap();

        let mut order: Vec<usize> = (0..choices.len()).collect();
        order.sort_by_key(|&choice| choices[choice]);
        let counts: Vec<i32> = (0..experts as i64)
            .map(|expert| choices.iter().filter(|&&it| it == expert).count() as i32)
            .collect();
        let mut offsets = vec![0];
        offsets.extend(counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        }));
        assert_eq!(stream.download(rows.counts()).unwrap(), counts);
        assert_eq!(stream.download(rows.offsets()).unwrap(), offsets);
        let tokens_of: Vec<i32> = order
            .iter()
            .map(|choice| (choice / chosen) as i32)
            .collect();
        assert_eq!(stream.download(rows.token_of_row()).unwrap(), tokens_of);

        let mut permuted = stream.zeroed::<f32>(rows.rows() * columns).unwrap();
        rows.permute(
            &stream,
            Matrix::row_major(&stream.upload(&x).unwrap(), tokens, columns).unwrap(),
            MatrixMut::row_major(&mut permuted, rows.rows(), columns).unwrap(),
        )
        .unwrap();
        let found = stream.download(&permuted).unwrap();
        for (row, token) in tokens_of.iter().enumerate() {
            let expected = &x[*token as usize * columns..][..columns];
            assert_eq!(&found[row * columns..][..columns], expected, "row {row}");
        }

        let mut sums = stream.zeroed::<f32>(tokens * columns).unwrap();
        rows.unpermute(
            &stream,
            Matrix::row_major(&permuted, tokens * chosen, columns).unwrap(),
            &stream.upload(&weights).unwrap(),
            MatrixMut::row_major(&mut sums, tokens, columns).unwrap(),
        )
        .unwrap();
        for (at, sum) in stream.download(&sums).unwrap().into_iter().enumerate() {
            let own = &weights[at / columns * chosen..][..chosen];
            let expected = own.iter().sum::<f32>() * x[at];
            assert!(
                (sum - expected).abs() < 1e-5 * expected.max(1.0),
                "{sum}, not {expected}"
            );
        }
    }
}

/// Checks the permuted rows of tokens of a type, whose rows have elements between them.
fn check_permuted<T: DeviceData + PartialEq + std::fmt::Debug>(
    stream: &Stream,
    columns: usize,
    to_element: impl Fn(u8) -> T,
) {
    let (tokens, chosen, experts, ld) = (19, 3, 4, columns + 2);
    let mut random = fastrand::Rng::with_seed(columns as u64);
    let choices: Vec<i32> = (0..tokens * chosen)
        .map(|_| random.i32(0..experts))
        .collect();
    let x: Vec<T> = (0..tokens * ld)
        .map(|_| to_element(random.u8(..100)))
        .collect();
    let mut rows = MoeRows::new(stream.device(), tokens, chosen, experts as usize).unwrap();
    rows.route(stream, &stream.upload(&choices).unwrap())
        .unwrap();
    let mut permuted = stream
        .upload(&vec![to_element(127); rows.rows() * ld])
        .unwrap();
    rows.permute(
        stream,
        Matrix::with_ld(
            &stream.upload(&x).unwrap(),
            tokens,
            columns,
            Order::RowMajor,
            ld,
        )
        .unwrap(),
        MatrixMut::with_ld(&mut permuted, rows.rows(), columns, Order::RowMajor, ld).unwrap(),
    )
    .unwrap();
    let found = stream.download(&permuted).unwrap();
    let tokens_of = stream.download(rows.token_of_row()).unwrap();
    for (row, token) in tokens_of.into_iter().enumerate() {
        let expected = &x[token as usize * ld..][..columns];
        assert_eq!(&found[row * ld..][..columns], expected, "row {row}");
        let between = &found[row * ld + columns..][..2];
        assert_eq!(
            between,
            [to_element(127); 2],
            "the elements after row {row} are written"
        );
    }
}

#[test]
fn rows_of_any_width_and_alignment_are_permuted() {
    let stream = Device::auto().stream().unwrap();
    for columns in [1, 14, 130, 1022] {
        check_permuted(&stream, columns, |x| x);
        check_permuted(&stream, columns, u16::from);
        check_permuted(&stream, columns, |x| bf16::from_f32(x.into()));
        check_permuted(&stream, columns, u64::from);
    }
}

#[test]
fn choices_of_no_expert_have_no_row() {
    let stream = Device::auto().stream().unwrap();
    let choices = stream.upload(&[1i32, 7, 0, -1]).unwrap();
    let mut rows = MoeRows::new(stream.device(), 2, 2, 2).unwrap();
    rows.route(&stream, &choices).unwrap();
    let error = rows.check(&stream).unwrap_err();
    assert!(
        matches!(error, Error::IndexMissed { position: 1, .. }),
        "{error}"
    );
    assert_eq!(stream.download(rows.offsets()).unwrap(), [0, 1, 2]);
    let x = stream.upload(&[1.0f32, 10.0]).unwrap();
    let mut permuted = stream.upload(&[9.0f32; 4]).unwrap();
    rows.permute(
        &stream,
        Matrix::row_major(&x, 2, 1).unwrap(),
        MatrixMut::row_major(&mut permuted, 4, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(stream.download(&permuted).unwrap(), [10.0, 1.0, 9.0, 9.0]);
    let mut sums = stream.zeroed::<f32>(2).unwrap();
    rows.unpermute(
        &stream,
        Matrix::row_major(&permuted, 4, 1).unwrap(),
        &stream.upload(&[0.5f32; 4]).unwrap(),
        MatrixMut::row_major(&mut sums, 2, 1).unwrap(),
    )
    .unwrap();
    assert_eq!(stream.download(&sums).unwrap(), [0.5, 5.0]);
}

#[test]
fn extents_are_checked() {
    let stream = Device::auto().stream().unwrap();
    let said = MoeRows::new(stream.device(), 2, 0, 2)
        .unwrap_err()
        .to_string();
    assert!(
        said.contains("2 tokens that choose 0 of 2 experts"),
        "{said}"
    );
    let mut rows = MoeRows::new(stream.device(), 3, 2, 2).unwrap();
    let choices = stream.zeroed::<i32>(5).unwrap();
    let said = rows.route(&stream, &choices).unwrap_err().to_string();
    assert!(
        said.contains("there are 5 choices, but 3 tokens choose 2"),
        "{said}"
    );
    let logits = stream.zeroed::<f32>(4).unwrap();
    let mut choices = stream.zeroed::<i32>(6).unwrap();
    let mut weights = stream.zeroed::<f32>(6).unwrap();
    let said = top_k(
        &stream,
        Matrix::row_major(&logits, 2, 2).unwrap(),
        RouterWeights::Softmax,
        MatrixMut::row_major(&mut choices, 2, 3).unwrap(),
        MatrixMut::row_major(&mut weights, 2, 3).unwrap(),
    );
    let said = said.unwrap_err().to_string();
    assert!(said.contains("3 of 2 experts were asked for"), "{said}");
}

#[test]
fn a_graph_routes_the_choices_of_its_run() {
    let stream = Device::auto().stream().unwrap();
    let mut choices = stream.upload(&[0i32, 1, 2]).unwrap();
    let x = stream.upload(&[1.0f32, 10.0, 100.0]).unwrap();
    let mut permuted = stream.zeroed::<f32>(3).unwrap();
    let mut rows = MoeRows::new(stream.device(), 3, 1, 3).unwrap();
    let captured = stream.device().capture(|stream| {
        rows.route(stream, &choices)?;
        rows.permute(
            stream,
            Matrix::row_major(&x, 3, 1)?,
            MatrixMut::row_major(&mut permuted, 3, 1)?,
        )
    });
    let graph = captured.unwrap();
    for (chosen, expected) in [
        ([2, 1, 0], [100.0, 10.0, 1.0]),
        ([1, 0, 0], [10.0, 100.0, 1.0]),
    ] {
        stream.copy_from_host(&chosen, &mut choices).unwrap();
        // SAFETY: the rows and the buffers live past the download.
        unsafe { graph.launch(&stream).unwrap() };
        assert_eq!(stream.download(&permuted).unwrap(), expected);
    }
}
