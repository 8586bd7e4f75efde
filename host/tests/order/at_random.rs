//! Random uses of buffers in streams that random calls order: what is refused is what a model with all uses refuses.

use std::collections::BTreeMap;
use std::ops::Range;

use cutlet_host::{Buffer, Device, Error, Event, Result, Stream};

const BYTES: usize = 100;
const STEPS: usize = 3000;

/// The number of a stream.
type Name = usize;

/// For each stream, the number of its last use that comes before something.
type Order = BTreeMap<Name, usize>;

fn join(order: &mut Order, other: &Order) {
    for (&stream, &number) in other {
        let last = order.entry(stream).or_default();
        *last = (*last).max(number);
    }
}

struct Use {
    stream: Name,
    number: usize,
    bytes: Range<usize>,
    writes: bool,
    /// The use, and what comes before it.
    before: Order,
}

/// All uses of all buffers, and what comes before the later work of streams, before events, and before everything.
#[derive(Default)]
struct Model {
    last: usize,
    buffers: BTreeMap<usize, Vec<Use>>,
    streams: BTreeMap<Name, Order>,
    events: BTreeMap<usize, Order>,
    done: Order,
}

impl Model {
    /// Whether the use of a buffer is in conflict with one that does not come before.
    fn conflicts(&self, buffer: usize, of: &Use) -> bool {
        let before = self.streams.get(&of.stream);
        let is_before = |other: &Use| {
            let is_in = |order: &Order| order.get(&other.stream) >= Some(&other.number);
            other.stream == of.stream || is_in(&self.done) || before.is_some_and(is_in)
        };
        let uses = self.buffers.get(&buffer).into_iter().flatten();
        let mut overlapping = uses
            .filter(|other| other.bytes.start < of.bytes.end && of.bytes.start < other.bytes.end);
        overlapping.any(|other| (of.writes || other.writes) && !is_before(other))
    }

    /// A call was refused. It, and what comes before it, counts as done.
    fn refuses(&mut self, of: &Use) {
        join(&mut self.done, &of.before);
    }

    fn enqueued(&self, stream: Name) -> Order {
        let mut order = self.streams.get(&stream).cloned().unwrap_or_default();
        order.insert(stream, self.last);
        order
    }

    fn waits(&mut self, stream: Name, order: &Order) {
        join(self.streams.entry(stream).or_default(), order);
    }

    fn event(&self, event: usize) -> Order {
        self.events.get(&event).cloned().unwrap_or_default()
    }

    /// Drops a buffer, which orders nothing.
    fn drops(&mut self, buffer: usize) {
        self.buffers.remove(&buffer);
    }
}

/// Numbers below a bound, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // The generator of Knuth's MMIX.
        self.0 = self.0.wrapping_mul(6364136223846793005);
        self.0 = self.0.wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % bound
    }
}

struct Run {
    streams: Vec<Stream>,
    events: Vec<Event>,
    buffers: Vec<Buffer<u8>>,
    model: Model,
    random: Random,
}

impl Run {
    fn new(streams: usize, seed: u64) -> Result<Run> {
        let device = Device::cpu();
        let streams: Vec<Stream> = (0..streams)
            .map(|_| device.stream())
            .collect::<Result<_>>()?;
        let buffers = (0..3).map(|_| streams[0].upload(&[0; BYTES]));
        let buffers = buffers.collect::<Result<_>>()?;
        let events = (0..3).map(|_| Event::new(&device)).collect::<Result<_>>()?;
        Ok(Run {
            streams,
            events,
            buffers,
            model: Model::default(),
            random: Random(seed),
        })
    }

    /// Uses bytes of a buffer in a stream. Whether it was refused, and whether it should be.
    fn uses(&mut self, bytes: Range<usize>) -> [bool; 2] {
        let buffer = self.random.below(self.buffers.len());
        let stream = self.random.below(self.streams.len());
        let writes = self.random.below(3) == 0;
        let (of, used) = (&self.streams[stream], &mut self.buffers[buffer]);
        let result = match writes {
            true => {
                let view = used.slice_mut(bytes.clone()).unwrap();
                view.use_in(of, "a test", "bytes")
            }
            false => {
                let view = used.slice(bytes.clone()).unwrap();
                view.use_in(of, "a test", "bytes")
            }
        };
        self.model.last += 1;
        let this = Use {
            stream,
            number: self.model.last,
            bytes,
            writes,
            before: self.model.enqueued(stream),
        };
        let expected = self.model.conflicts(buffer, &this);
        match &result {
            Ok(()) => self.model.buffers.entry(buffer).or_default().push(this),
            Err(Error::Unordered { .. }) => self.model.refuses(&this),
            Err(error) => panic!("{error}"),
        }
        [result.is_err(), expected]
    }

    /// Orders streams.
    fn orders(&mut self) -> Result<()> {
        let [one, another] = [(); 2].map(|()| self.random.below(self.streams.len()));
        let event = self.random.below(self.events.len());
        let (of, mark) = (&self.streams[one], &self.events[event]);
        match self.random.below(12) {
            0..4 => {
                of.wait_for(&self.streams[another])?;
                let enqueued = self.model.enqueued(another);
                self.model.waits(one, &enqueued);
            }
            4..7 => {
                mark.record(of)?;
                let enqueued = self.model.enqueued(one);
                self.model.events.insert(event, enqueued);
            }
            7..10 => {
                of.wait(mark)?;
                let before = self.model.event(event);
                self.model.waits(one, &before);
            }
            10 => {
                mark.synchronize()?;
                let before = self.model.event(event);
                join(&mut self.model.done, &before);
            }
            _ => {
                of.synchronize()?;
                let enqueued = self.model.enqueued(one);
                join(&mut self.model.done, &enqueued);
            }
        }
        Ok(())
    }

    fn replaces_a_buffer(&mut self) -> Result<()> {
        let buffer = self.random.below(self.buffers.len());
        self.buffers[buffer] = self.streams[0].upload(&[0; BYTES])?;
        self.model.drops(buffer);
        // An upload waits for its stream.
        let enqueued = self.model.enqueued(0);
        join(&mut self.model.done, &enqueued);
        Ok(())
    }
}

#[test]
fn what_has_no_order_is_refused_and_nothing_else() -> Result<()> {
    for seed in 0..20 {
        // A buffer remembers a write, and a read in each stream.
        let mut run = Run::new(7, seed)?;
        let mut refused = 0;
        for step in 0..STEPS {
            if run.random.below(2) == 0 {
                run.orders()?;
                continue;
            }
            let [was, should_be] = run.uses(0..BYTES);
            assert_eq!(was, should_be, "step {step} of seed {seed}");
            refused += usize::from(was);
        }
        assert!((STEPS / 20..STEPS / 2).contains(&refused), "{refused}");
    }
    Ok(())
}

#[test]
fn what_has_an_order_is_not_refused_where_uses_are_forgotten() -> Result<()> {
    for seed in 0..20 {
        // More streams and more parts than a buffer remembers.
        let mut run = Run::new(50, seed)?;
        let [mut refused, mut should_be] = [0; 2];
        for step in 0..STEPS {
            match run.random.below(300) {
                0 => run.replaces_a_buffer()?,
                1..150 => run.orders()?,
                _ => {
                    let first = run.random.below(BYTES - 10);
                    let conflict = run.uses(first..first + 10);
                    assert_ne!(conflict, [true, false], "step {step} of seed {seed}");
                    refused += usize::from(conflict[0]);
                    should_be += usize::from(conflict[1]);
                }
            }
        }
        assert!(
            (should_be / 10..should_be).contains(&refused),
            "{refused} of {should_be}"
        );
    }
    Ok(())
}
