//! Work of two streams on one buffer without an order is refused, and work with an order never is, on the CPU and on a
//! GPU if there is one.

#![cfg(debug_assertions)]

mod at_random;

use std::thread;

use cutlet_device::{PtxFamily, PtxLibrary, PtxModule, PtxText};
use cutlet_host::{Backend, Buffer, Device, Error, Event, Graph, PinnedBuffer, Result, Stream};

static PTX: PtxLibrary = PtxLibrary {
    families: &[PtxFamily {
        name: "kernels",
        modules: &[PtxModule {
            target: "sm_80",
            ptx: PtxText::Plain(include_str!("../ptx/launch_sm_80.ptx")),
        }],
    }],
};

mod kernels {
    use cutlet_device::{Global, GlobalMut, block_idx, kernel, thread_idx};

    /// `y = a·x + y`, one element per thread.
    ///
    /// # Safety
    /// `x` and `y` have `n` elements.
    #[kernel(threads = 256)]
    pub unsafe fn saxpy(n: u32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
        let i = block_idx().x.get() * 256 + thread_idx().get();
        if i < n {
            let i = i64::from(i);
            // SAFETY: `i` is below `n`, and no two threads have the same.
            unsafe { y.store(i, a * x.load(i) + y.load(i)) };
        }
    }
}

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

/// Buffers of 8 elements in two streams. The host has waited for both streams.
struct Setting {
    first: Stream,
    second: Stream,
    x: Buffer<f32>,
    /// A buffer for each stream alone.
    of_first: Buffer<f32>,
    of_second: Buffer<f32>,
}

impl Setting {
    fn new(device: &Device) -> Result<Setting> {
        let (first, second) = (device.stream()?, device.stream()?);
        Ok(Setting {
            x: first.upload(&[1.0; 8])?,
            of_first: first.upload(&[1.0; 8])?,
            of_second: second.upload(&[1.0; 8])?,
            first,
            second,
        })
    }

    fn write_in_first(&mut self) -> Result<()> {
        self.first.fill_bytes(&mut self.x, 0)
    }

    fn read_in_first(&mut self) -> Result<()> {
        self.first.copy(&self.x, &mut self.of_first)
    }

    fn write_in_second(&mut self) -> Result<()> {
        self.second.fill_bytes(&mut self.x, 0)
    }

    fn read_in_second(&mut self) -> Result<()> {
        self.second.copy(&self.x, &mut self.of_second)
    }
}

/// Calls `test` with new settings on all devices.
fn on_devices(test: impl Fn(Setting) -> Result<()>) -> Result<()> {
    devices()
        .iter()
        .try_for_each(|device| test(Setting::new(device)?))
}

fn launch(stream: &Stream, x: &Buffer<f32>, y: &mut Buffer<f32>) -> Result<()> {
    let saxpy = stream.device().load(&PTX, &kernels::saxpy)?;
    // SAFETY: the buffers have 8 elements, and are freed after the launch.
    unsafe { stream.launch(&saxpy, 1, (8, 1.0, x, y)) }
}

#[track_caller]
fn is_refused<T>(result: Result<T>) -> String {
    let error = result.err().expect("nothing orders the streams");
    assert!(matches!(error, Error::Unordered { .. }), "{error}");
    error.to_string()
}

/// Calls that read or write the first buffer. The second one is for them alone.
type Calls<'a> = &'a [fn(&Stream, &mut Buffer<f32>, &mut Buffer<f32>) -> Result<()>];

const WRITES: Calls<'static> = &[
    |stream, x, _| stream.fill_bytes(x, 0),
    |stream, x, _| stream.copy_from_host(&[2.0; 8], x),
    // SAFETY: the source is a constant, and the buffer is freed after the copy.
    |stream, x, _| unsafe { stream.copy_from_host_async(const { &[2.0; 8] }, x) },
    |stream, x, other| stream.copy(&*other, x),
    |stream, x, other| launch(stream, other, x),
    |stream, x, _| x.view_mut().use_in(stream, "sum", "the output"),
];

const READS: Calls<'static> = &[
    |stream, x, _| stream.download(&*x).map(drop),
    |stream, x, _| stream.copy_to_host(&*x, &mut [0.0; 8]),
    |stream, x, other| stream.copy(&*x, other),
    |stream, x, other| launch(stream, x, other),
    |stream, x, _| x.view().use_in(stream, "sum", "the input"),
];

#[test]
fn a_read_after_a_write_is_refused() -> Result<()> {
    for read in READS {
        on_devices(|mut it| {
            it.write_in_first()?;
            let message = is_refused(read(&it.second, &mut it.x, &mut it.of_second));
            assert!(
                message.contains(
                    "(8 × f32) is read in a stream, after a fill (host/tests/order/main.rs:"
                ),
                "{message}"
            );
            assert!(message.contains(") wrote it in another one"), "{message}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_write_after_a_read_is_refused() -> Result<()> {
    for write in WRITES {
        on_devices(|mut it| {
            it.read_in_first()?;
            let message = is_refused(write(&it.second, &mut it.x, &mut it.of_second));
            assert!(
                message.contains("is written in a stream, after a copy on the device (host/tests/"),
                "{message}"
            );
            assert!(message.contains(") read it in another one"), "{message}");
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_write_after_a_write_is_refused() -> Result<()> {
    for write in WRITES {
        on_devices(|mut it| {
            it.write_in_first()?;
            let message = is_refused(write(&it.second, &mut it.x, &mut it.of_second));
            assert!(
                message.contains("is written in a stream, after a fill"),
                "{message}"
            );
            Ok(())
        })?;
    }
    Ok(())
}

/// Copies from and to host memory wait, unless they are asynchronous.
#[test]
fn every_call_that_does_not_wait_is_remembered() -> Result<()> {
    for (calls, waiting) in [(WRITES, 1..2), (READS, 0..2)] {
        for (nth, call) in calls.iter().enumerate() {
            on_devices(|mut it| {
                call(&it.first, &mut it.x, &mut it.of_first)?;
                match waiting.contains(&nth) {
                    true => it.write_in_second(),
                    false => {
                        is_refused(it.write_in_second());
                        Ok(())
                    }
                }
            })?;
        }
    }
    on_devices(|mut it| {
        let mut pinned = PinnedBuffer::zeroed(it.first.device(), 8)?;
        // SAFETY: both stay alive, and nothing reads the host's memory.
        unsafe { it.first.copy_to_host_async(&it.x, &mut pinned)? };
        is_refused(it.write_in_second());
        it.first.synchronize()
    })
}

#[test]
fn messages_name_arguments_and_kernels() -> Result<()> {
    on_devices(|mut it| {
        launch(&it.first, &it.of_first, &mut it.x)?;
        let message = is_refused(launch(&it.second, &it.x, &mut it.of_second));
        assert!(
            message.starts_with(
                "argument 3 (`x`) of kernel `saxpy` (8 × f32) is read in a stream, after kernel `saxpy` (host/tests/order/main.rs:"
            ),
            "{message}"
        );
        let message = is_refused(it.x.view().use_in(&it.second, "sum", "the input"));
        assert!(
            message.starts_with("sum: the input (8 × f32) is read"),
            "{message}"
        );
        Ok(())
    })
}

#[test]
fn reads_need_no_order() -> Result<()> {
    on_devices(|mut it| {
        it.read_in_first()?;
        it.read_in_second()?;
        it.read_in_first()?;
        // A write needs one after both.
        it.second.wait_for(&it.first)?;
        it.write_in_second()
    })?;
    on_devices(|mut it| {
        let third = it.first.device().stream()?;
        it.read_in_first()?;
        it.read_in_second()?;
        third.wait_for(&it.first)?;
        is_refused(third.fill_bytes(&mut it.x, 0));
        third.wait_for(&it.second)?;
        third.fill_bytes(&mut it.x, 0)
    })
}

/// Everything that makes the second stream's later work come after the first one's.
const ORDERS: &[fn(&mut Setting) -> Result<()>] = &[
    |it| it.second.wait_for(&it.first),
    |it| {
        let mark = Event::new(it.first.device())?;
        mark.record(&it.first)?;
        it.second.wait(&mark)
    },
    |it| it.first.synchronize(),
    |it| {
        let mark = Event::new(it.first.device())?;
        mark.record(&it.first)?;
        mark.synchronize()
    },
    |it| {
        let (start, end) = (
            Event::new(it.first.device())?,
            Event::new(it.first.device())?,
        );
        start.record(&it.first)?;
        end.record(&it.second)?;
        end.elapsed_since(&start).map(drop)
    },
    |it| it.first.download(&it.of_first).map(drop),
    |it| it.first.copy_to_host(&it.of_first, &mut [0.0; 8]),
    |it| it.first.copy_from_host(&[0.0; 8], &mut it.of_first),
    |it| it.first.upload(&[0u8]).map(drop),
    // A fork comes after the stream that it forks from, and before that stream's work after the join.
    |it| {
        let fork = it.first.fork()?;
        it.second.wait_for(&fork)
    },
    |it| {
        let fork = it.second.fork()?;
        fork.wait_for(&it.first)?;
        fork.join()
    },
    // Through a third stream.
    |it| {
        let (third, mark) = (it.first.device().stream()?, Event::new(it.first.device())?);
        third.wait_for(&it.first)?;
        mark.record(&third)?;
        it.second.wait(&mark)
    },
    |it| {
        let third = it.first.device().stream()?;
        third.wait_for(&it.first)?;
        third.synchronize()
    },
    // The second replay comes after the first one.
    |it| {
        let graph = it.first.device().capture(|_| Ok::<_, Error>(()))?;
        replay(&graph, &it.first)?;
        replay(&graph, &it.second)
    },
    // In another thread.
    |it| {
        thread::scope(|scope| {
            let waits = scope.spawn(|| it.first.synchronize());
            waits
                .join()
                .expect("a thread returns errors and does not panic")
        })
    },
];

fn replay(graph: &Graph, stream: &Stream) -> Result<()> {
    // SAFETY: the memory of the graph outlives the tests' last wait.
    unsafe { graph.launch(stream) }
}

#[test]
fn work_in_an_order_is_not_refused() -> Result<()> {
    for order in ORDERS {
        on_devices(|mut it| {
            it.write_in_first()?;
            order(&mut it)?;
            it.read_in_second()
        })?;
        on_devices(|mut it| {
            it.read_in_first()?;
            order(&mut it)?;
            it.write_in_second()
        })?;
    }
    Ok(())
}

#[test]
fn an_order_is_of_earlier_work_alone() -> Result<()> {
    for order in ORDERS {
        on_devices(|mut it| {
            order(&mut it)?;
            it.write_in_first()?;
            is_refused(it.read_in_second());
            Ok(())
        })?;
    }
    Ok(())
}

/// The other stream's work has the order, and this one's has not.
#[test]
fn an_order_has_a_direction() -> Result<()> {
    on_devices(|mut it| {
        it.write_in_first()?;
        it.first.wait_for(&it.second)?;
        is_refused(it.read_in_second());
        it.second.synchronize()?;
        is_refused(it.read_in_second());
        let fork = it.second.fork()?;
        fork.wait_for(&it.first)?;
        is_refused(it.second.download(&it.x));
        fork.join()?;
        it.second.download(&it.x).map(drop)
    })
}

#[test]
fn an_event_has_its_latest_mark() -> Result<()> {
    on_devices(|mut it| {
        let mark = Event::new(it.first.device())?;
        it.write_in_first()?;
        // Never recorded.
        it.second.wait(&mark)?;
        mark.synchronize()?;
        is_refused(it.read_in_second());
        mark.record(&it.first)?;
        mark.record(&it.second)?;
        it.second.wait(&mark)?;
        is_refused(it.read_in_second());
        mark.record(&it.first)?;
        it.second.wait(&mark)?;
        it.read_in_second()
    })
}

#[test]
fn a_new_buffer_is_filled_in_its_stream() -> Result<()> {
    on_devices(|it| {
        let mut filled = it.first.filled::<f32>(8, 1)?;
        let message = is_refused(it.second.copy(&it.x, &mut filled));
        assert!(
            message.contains("after a fill (host/tests/order/main.rs:"),
            "{message}"
        );
        // An upload waits.
        let mut uploaded = it.first.upload(&[0.0; 8])?;
        it.second.copy(&it.x, &mut uploaded)
    })
}

#[test]
fn parts_of_a_buffer_are_told_apart() -> Result<()> {
    on_devices(|mut it| {
        let (mut low, mut high) = it.x.view_mut().split_at(3)?;
        it.first.fill_bytes(&mut low, 0)?;
        it.second.fill_bytes(&mut high, 0)?;
        it.first.fill_bytes(&mut low, 1)?;
        it.second.download(it.x.slice(3..)?)?;
        let message = is_refused(it.second.download(it.x.slice(2..)?));
        assert!(message.contains("(6 × f32)"), "{message}");
        // The last byte of the first stream's part.
        let bytes = it.x.view().cast::<u8>()?;
        is_refused(it.second.download(bytes.slice(11..12)?));
        it.second.download(bytes.slice(12..)?)?;
        // Nothing is used of an empty part.
        it.second.download(bytes.slice(4..4)?)?;
        Ok(())
    })?;
    // A later use of a part does not stand for a use of more.
    on_devices(|mut it| {
        it.write_in_first()?;
        it.first.fill_bytes(it.x.slice_mut(..3)?, 1)?;
        is_refused(it.second.download(it.x.slice(3..)?));
        Ok(())
    })
}

/// A buffer remembers eight uses that have no order.
#[test]
fn uses_that_are_done_are_not_remembered() -> Result<()> {
    on_devices(|mut it| {
        it.first.fill_bytes(it.x.slice_mut(..1)?, 0)?;
        let mut bytes = it.x.view_mut().cast::<u8>()?;
        for at in 4..32 {
            let third = it.first.device().stream()?;
            third.fill_bytes(bytes.slice_mut(at..=at)?, 0)?;
            third.synchronize()?;
        }
        is_refused(it.read_in_second());
        Ok(())
    })
}

#[test]
fn dropping_a_buffer_orders_nothing() -> Result<()> {
    on_devices(|mut it| {
        let y = it.second.upload(&[0u8])?;
        it.write_in_first()?;
        y.view().use_in(&it.first, "sum", "y")?;
        drop(y);
        is_refused(it.read_in_second());
        Ok(())
    })
}

#[test]
fn relaxed_uses_conflict_with_uses_of_all_elements() -> Result<()> {
    on_devices(|mut it| {
        it.x.view_mut()
            .relaxed()
            .use_in(&it.first, "scatter", "the table")?;
        it.x.view()
            .relaxed()
            .use_in(&it.second, "gather", "the table")?;
        it.x.view_mut()
            .relaxed()
            .use_in(&it.second, "scatter", "the table")?;
        // It may be that the first stream uses other elements.
        it.second.download(it.x.slice(1..)?)?;
        it.second.fill_bytes(it.x.slice_mut(..7)?, 0)?;
        is_refused(it.second.download(&it.x));
        is_refused(it.write_in_second());
        it.second.wait_for(&it.first)?;
        it.write_in_second()?;
        // The second stream has filled all of it.
        is_refused(
            it.x.view()
                .relaxed()
                .use_in(&it.first, "gather", "the table"),
        );
        is_refused(
            it.x.slice(2..4)?
                .relaxed()
                .use_in(&it.first, "gather", "a part"),
        );
        Ok(())
    })?;
    // A relaxed use does not stand for an earlier use of all elements.
    on_devices(|mut it| {
        it.write_in_first()?;
        let relaxed = it.x.view_mut().relaxed();
        relaxed.use_in(&it.first, "scatter", "the table")?;
        is_refused(
            it.x.view()
                .relaxed()
                .use_in(&it.second, "gather", "the table"),
        );
        Ok(())
    })
}

#[test]
fn a_refused_call_uses_nothing() -> Result<()> {
    on_devices(|mut it| {
        it.second.fill_bytes(&mut it.of_second, 0)?;
        // The source is named first, and the copy is never made.
        is_refused(it.first.copy(&it.x, &mut it.of_second));
        it.write_in_second()
    })?;
    on_devices(|mut it| {
        let mut scratch = it.second.scratch::<f32>(8)?;
        let refused = it.first.copy(&it.x, scratch.view_mut()).unwrap_err();
        assert!(matches!(refused, Error::WrongStream { .. }), "{refused}");
        it.second.fill_bytes(&mut it.x, 0)
    })
}

#[test]
fn memory_at_the_address_of_a_dropped_buffer_is_new() -> Result<()> {
    for device in devices() {
        let (first, second) = (device.stream()?, device.stream()?);
        let mut addresses = Vec::new();
        for _ in 0..100 {
            let mut x = first.upload(&[1.0f32; 8])?;
            addresses.push(x.view().address());
            first.fill_bytes(&mut x, 0)?;
            drop(x);
            let mut y = second.upload(&[1.0f32; 8])?;
            addresses.push(y.view().address());
            second.fill_bytes(&mut y, 0)?;
        }
        addresses.sort_unstable();
        addresses.dedup();
        assert!(addresses.len() < 200, "no address was used again");
    }
    Ok(())
}

/// The stream's work may still be under way.
#[test]
fn work_of_a_dropped_stream_needs_an_order() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let x = device.stream()?.zeroed::<f32>(8)?;
        is_refused(stream.download(&x));
    }
    Ok(())
}

#[test]
fn scratch_memory_is_of_one_stream_and_waits_for_nothing() -> Result<()> {
    on_devices(|mut it| {
        it.write_in_first()?;
        let mut scratch = it.second.scratch::<f32>(8)?;
        it.second.fill_bytes(scratch.view_mut(), 0)?;
        drop(scratch);
        is_refused(it.read_in_second());
        Ok(())
    })
}

#[test]
fn words_of_a_stream_are_ready_for_all() -> Result<()> {
    on_devices(|it| {
        let words = it.first.resident("words", || Ok(Some(vec![1, 2])))?;
        let words = words.expect("the stream is our own");
        assert_eq!(it.second.download(&*words)?, [1, 2]);
        Ok(())
    })
}

#[test]
fn threads_that_read_need_no_order() -> Result<()> {
    on_devices(|mut it| {
        let device = it.first.device().clone();
        let read = || {
            let stream = device.stream()?;
            (0..20).try_for_each(|_| stream.download(&it.x).map(drop))
        };
        thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(read));
            threads.into_iter().try_for_each(|thread| {
                thread
                    .join()
                    .expect("a thread returns errors and does not panic")
            })
        })?;
        // All downloads have returned.
        it.write_in_second()
    })
}

/// Threads hand a buffer over to each other. It makes no order on a GPU.
#[test]
fn a_hand_over_to_another_thread_is_no_order() -> Result<()> {
    on_devices(|mut it| {
        thread::scope(|scope| {
            let writes = scope.spawn(|| it.write_in_first());
            writes
                .join()
                .expect("a thread returns errors and does not panic")
        })?;
        is_refused(it.read_in_second());
        Ok(())
    })
}

#[test]
fn work_of_captures_and_replays_is_not_followed() -> Result<()> {
    on_devices(|mut it| {
        it.write_in_first()?;
        // Nothing runs, so nothing needs an order.
        let graph = it.first.device().capture(|stream| {
            stream.fill_bytes(&mut it.x, 1)?;
            let fork = stream.fork()?;
            fork.fill_bytes(&mut it.x, 2)?;
            fork.join()?;
            // It is filled at once.
            let made = stream.zeroed::<f32>(8)?;
            it.second.copy(&made, &mut it.of_second)
        })?;
        is_refused(it.read_in_second());
        // Only what comes before the capture needed an order.
        it.second.wait_for(&it.first)?;
        it.write_in_second()?;
        replay(&graph, &it.first)?;
        it.write_in_second()?;
        it.first.synchronize()
    })
}
