//! Assembles every kernel's PTX for every GPU that it is meant for, and checks that PTX and machine code are those of
//! fast kernels.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use cutlet_machine_code::{
    Nvdisasm, Ptxas, Usage,
    assembly::{self, Assembled},
};
use cutlet_ptx_builder::{Built, BuiltModule, Toolchain};

use crate::{
    barriers::{Barriers, Record},
    fetched,
    gpus::{self, ALL_GPUS, FEW_GPUS, PORTABLE},
    hot_loop, instructions,
    kernel_package::{Formats, KERNELS},
    process::Outcome,
    workspace::target_dir,
};

/// The versions of PTX that kernels for a target may have. A compiler that takes a later one by itself would make
/// kernels that older drivers refuse.
///
/// Drivers accept 7.0 since CUDA 11.0, and 7.5 since CUDA 11.5. It is the first one with `cp.async` under a condition.
/// They accept 8.1 since CUDA 12.1.
const VERSIONS: [(&str, &[&str]); 2] = [(PORTABLE, &["7.0", "7.5"]), ("sm_90a", &["8.1"])];

/// Assembles the instructions of the device crate, then assembles and checks the kernels that are compiled. Kernels for
/// f16 and e5m2 whose text is made of that for bf16 and e4m3 are a quarter of the assembler's time. What it reports of
/// them is what it reports of the other text, so they wait for [`run_for_all`].
pub fn run() -> Outcome {
    check(Formats::Derived, FEW_GPUS)
}

/// The same of all kernels and for more GPUs. Compiles the kernels for f16 and e5m2 as well, and compares them with those
/// that are made of the text for bf16 and e4m3.
pub fn run_for_all() -> Outcome {
    check(Formats::Compared, ALL_GPUS)
}

/// Writes the kernels' numbers of barriers into the file that [`run`] compares them with.
pub fn record() -> Outcome {
    let built = KERNELS.build(Formats::Derived)?;
    let found = barriers(&built)?;
    Record::read()?.updated(&compiler()?, &found)?.write()
}

/// What the device compiler prints as its version.
fn compiler() -> Outcome<String> {
    let toolchain = Toolchain::find().map_err(|error| error.to_string())?;
    Ok(toolchain.version().to_owned())
}

/// The texts of the modules, in their order.
fn texts(modules: &[BuiltModule]) -> Outcome<Vec<String>> {
    let read = |module: &BuiltModule| {
        std::fs::read_to_string(&module.path)
            .map_err(|error| format!("cannot read {}: {error}", module.path.display()))
    };
    modules.iter().map(read).collect()
}

fn barriers(built: &Built) -> Outcome<Barriers> {
    let mut barriers = Barriers::default();
    for (module, text) in built.modules().iter().zip(texts(built.modules())?) {
        barriers.add(&module.target, &text);
    }
    Ok(barriers)
}

/// The modules that are assembled: all that are compiled.
fn assembled(built: &Built, formats: Formats) -> Vec<BuiltModule> {
    let shipped: BTreeSet<PathBuf> = built.shipped().collect();
    let is_compiled =
        |module: &&BuiltModule| formats == Formats::Compared || shipped.contains(&module.path);
    built
        .modules()
        .iter()
        .filter(is_compiled)
        .cloned()
        .collect()
}

fn check(formats: Formats, portable: &[&str]) -> Outcome {
    let (ptxas, nvdisasm) = (
        fetched::program(Ptxas::get)?,
        fetched::program(Nvdisasm::get)?,
    );
    instructions::assemble(&ptxas)?;
    let built = KERNELS.build(formats)?;
    let found = barriers(&built)?;
    let modules = assembled(&built, formats);
    let texts = texts(&modules)?;
    println!(
        "\nPTX for {PORTABLE} is assembled for {}; its figures are the largest of these",
        portable.join(", ")
    );
    println!(
        "{:<32} {:<20} {:<8} {:>9} {:>6} {:>7} {:>13}",
        "entry", "family", "target", "registers", "stack", "spilled", "static shared"
    );
    let mut findings = Findings {
        faults: Record::read()?.faults(&compiler()?, &found)?,
        ..Findings::default()
    };
    let mut with_wgmma = Vec::new();
    let mut texts = texts.iter();
    let folder = target_dir()?.join("machine-code");
    assembly::assemble(
        &ptxas,
        &modules,
        |target| gpus::of(target, portable),
        &folder,
        |module, assembled| {
            let text = texts.next().map_or("", String::as_str);
            findings.check(module, text, &assembled);
            if text.contains("wgmma.mma_async") {
                let made = assembled.into_iter().filter(|one| one.report.is_ok());
                with_wgmma.extend(made.map(|one| one.cubin));
            }
        },
    )
    .map_err(|error| error.to_string())?;
    println!(
        "\n{:<32} {:>18} {:>6}",
        "loop with wgmma of", "its instructions", "wgmma"
    );
    for cubin in with_wgmma {
        findings.disassemble(&nvdisasm, &cubin)?;
    }
    let Findings {
        entries,
        hot_loops,
        faults,
    } = findings;
    if faults.is_empty() {
        println!(
            "\n{entries} entries in {} modules: no spills but those that are allowed, no local memory, no calls, no warnings, their versions \
             of PTX and as many barriers as in xtask/barriers.txt; no memory barrier and no yield in the {hot_loops} \
             loops with wgmma",
            modules.len()
        );
        Ok(())
    } else {
        Err(format!(
            "{} faults in the kernels:\n{}",
            faults.len(),
            faults.join("\n")
        ))
    }
}

/// The number of things that were checked, and the faults found.
#[derive(Default)]
struct Findings {
    entries: usize,
    hot_loops: usize,
    faults: Vec<String>,
}

impl Findings {
    /// Checks a module's text and machine code, and prints what its entries use.
    fn check(&mut self, module: &BuiltModule, text: &str, assembled: &[Assembled<'_>]) {
        let BuiltModule { family, target, .. } = module;
        let of_module = |fault: String| format!("{family} for {target}: {fault}");
        self.faults.extend(slow_lines(text).map(of_module));
        self.faults.extend(doubled_barriers(text).map(of_module));
        self.faults
            .extend(other_version(target, text).map(of_module));
        let mut worst = BTreeMap::<&str, Usage>::new();
        for Assembled { gpu, report, .. } in assembled {
            let of_gpu = |fault: &str| format!("{}: {fault}", assembly::describe(module, gpu));
            let report = match report {
                Err(error) => {
                    self.faults.push(of_gpu(&error.to_string()));
                    continue;
                }
                Ok(report) => report,
            };
            self.faults
                .extend(report.warnings.iter().map(|warning| of_gpu(warning)));
            for (entry, usage) in &report.entries {
                if !may_spill(entry, usage) {
                    self.faults.extend(
                        slow_usage(usage).map(|fault| of_gpu(&format!("{entry}: {fault}"))),
                    );
                }
                let worst = worst.entry(entry).or_default();
                *worst = worst.worst(usage);
            }
            if report.entries.is_empty() {
                self.faults.push(of_gpu("ptxas saw no entry in it"));
            }
        }
        for (entry, usage) in &worst {
            println!(
                "{entry:<32} {family:<20} {target:<8} {:>9} {:>6} {:>7} {:>13}",
                usage.registers,
                usage.stack,
                usage.spill_stores + usage.spill_loads,
                usage.shared
            );
        }
        self.entries += worst.len();
    }

    /// Disassembles a cubin with `wgmma` into a listing beside it, and prints its loops with `wgmma`.
    fn disassemble(&mut self, nvdisasm: &Nvdisasm, cubin: &Path) -> Outcome {
        let text = nvdisasm.list(cubin).map_err(|error| error.to_string())?;
        let listing = cubin.with_extension("sass");
        std::fs::write(&listing, &text)
            .map_err(|error| format!("cannot write {}: {error}", listing.display()))?;
        let listing = listing.display();
        let found = hot_loop::find(&text).map_err(|error| format!("{listing}: {error}"))?;
        if found.is_empty() {
            self.faults.push(format!("{listing}: it has no wgmma"));
        }
        for (entry, hot) in found
            .iter()
            .flat_map(|(entry, loops)| loops.iter().map(move |hot| (entry, hot)))
        {
            println!("{entry:<32} {:>18} {:>6}", hot.instructions, hot.wgmma);
            if !WAITING.contains(&entry.as_str()) {
                self.faults
                    .extend(hot.misplaced.iter().map(|(line, misplaced)| {
                        format!("{entry}: `{misplaced}` in the loop with wgmma, {listing}:{line}")
                    }));
            }
            self.hot_loops += 1;
        }
        Ok(())
    }
}

/// Lines with local memory, functions or calls, which no fast kernel has.
fn slow_lines(ptx: &str) -> impl Iterator<Item = String> + '_ {
    ptx.lines().enumerate().filter_map(|(number, line)| {
        let code = line.split("//").next().unwrap_or_default();
        let mut words = code
            .split([' ', '\t', ';', '{', '}', '('])
            .filter(|word| !word.is_empty());
        let slow = words.any(|word| {
            word == "call"
                || word.starts_with("call.")
                || word == ".func"
                || word.split('.').skip(1).any(|part| part == "local")
        });
        slow.then(|| format!("line {}: `{}`", number + 1, code.trim()))
    })
}

/// Entries with more than one cluster barrier. No kernel here has two in its source. But the compiler does not know
/// that the threads of a warp must meet at the barrier: it may copy a barrier that follows a branch into both sides.
fn doubled_barriers(ptx: &str) -> impl Iterator<Item = String> + '_ {
    ptx.split(".entry ").skip(1).filter_map(|entry| {
        let name = entry.split('(').next().unwrap_or_default();
        let barriers = entry
            .lines()
            .filter(|line| line.trim_start().starts_with("barrier.cluster.arrive"))
            .count();
        (barriers > 1).then(|| format!("{name} has {barriers} cluster barriers"))
    })
}

/// The text's version of PTX, if it is none of [`VERSIONS`].
fn other_version(target: &str, ptx: &str) -> Option<String> {
    let line = ptx.lines().find_map(|line| line.strip_prefix(".version "));
    let version = line.unwrap_or("unknown").trim();
    let (_, expected) = VERSIONS.iter().find(|(of, _)| *of == target)?;
    (!expected.contains(&version)).then(|| {
        let expected = expected.join(" or ");
        format!("its PTX is of version {version}, but that of kernels for {target} is {expected}")
    })
}

/// Kernels that may have a stack of so many bytes. The registers of attention are those of outputs, scores and weights,
/// and what is spilled is used between tiles, but for `attention_*_256_modified`. A thread of sampling has 64 registers,
/// because a block has 1024 threads; rows without vectors spill on Ampere alone. The last kernel reads an address again
/// for each k-tile.
const SPILLING: &[(&str, u32)] = &[
    ("attention_bf16_128_modified", 40),
    ("attention_bf16_256", 40),
    ("attention_bf16_256_modified", 112),
    ("attention_f16_128_modified", 40),
    ("attention_f16_256", 40),
    ("attention_f16_256_modified", 112),
    ("attention_mma_bf16_256_modified", 64),
    ("attention_mma_f16_256_modified", 64),
    ("reduce_columns_f32", 8),
    ("sample_bf16_any", 24),
    ("sample_f16_any", 16),
    ("scaled_pass_of_f32_bf16", 8),
    ("scaled_pass_of_f32_f16", 8),
    ("tf32x3_256x96x32_coop", 8),
];

/// Kernels whose loop with `wgmma` may have memory barriers and yields. Those of the backward pass wait for other blocks
/// there, if results must not vary, and nothing runs them otherwise. Those that quantise C have a yield in each k-tile:
/// why `ptxas` puts it there is not known.
const WAITING: &[&str] = &[
    "attention_backward_bf16_128",
    "attention_backward_bf16_64",
    "attention_backward_f16_128",
    "attention_backward_f16_64",
    "e4m3_256x128x128_2x1_coop_blocks_e4m3",
    "e4m3_64x128x128_1x1_ws_blocks_e4m3",
];

/// Whether an entry's stack is one that it may have.
fn may_spill(entry: &str, usage: &Usage) -> bool {
    let most = SPILLING.iter().find(|(name, _)| *name == entry);
    most.is_some_and(|(_, most)| usage.stack <= *most)
}

fn slow_usage(usage: &Usage) -> impl Iterator<Item = String> {
    let kinds = [
        (usage.stack, "of stack"),
        (usage.spill_stores, "of spill stores"),
        (usage.spill_loads, "of spill loads"),
    ];
    kinds
        .into_iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, what)| format!("{bytes} bytes {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_memory_and_calls_are_found() {
        for slow in [
            "\t.local .align 16 .b8 \t__local_depot0[64];",
            "\tst.local.b32 \t[%rd1], %r1;",
            "\t@%p1 ld.local.v4.b32 {%r1, %r2, %r3, %r4}, [%rd1];",
            "\tcvta.local.u64 %rd1, %rd2;",
            "\tcall.uni (retval0), memcpy, (param0);",
            "\t{ call vprintf, (a, b); }",
            ".func helper(",
            ".visible .func  (.param .b32 func_retval0) f(",
        ] {
            assert_eq!(slow_lines(slow).count(), 1, "{slow}");
        }
    }

    #[test]
    fn some_kernels_may_spill_so_much() {
        let stack = |stack| Usage {
            stack,
            ..Usage::default()
        };
        assert!(may_spill("attention_bf16_256", &stack(40)));
        assert!(!may_spill("attention_bf16_256", &stack(48)));
        assert!(!may_spill("attention_bf16_128", &stack(8)));
    }

    #[test]
    fn a_barrier_that_stands_twice_is_found() {
        let once = ".visible .entry a(\n)\n{\n\tbarrier.cluster.arrive.relaxed;\n}\n";
        let twice = ".visible .entry b(\n)\n{\n\tbarrier.cluster.arrive.relaxed;\n\
                     $L:\n\tbarrier.cluster.arrive.relaxed;\n}\n";
        let doubled: Vec<String> = doubled_barriers(&format!("{once}{twice}{once}")).collect();
        assert_eq!(doubled, ["b has 2 cluster barriers"]);
    }

    #[test]
    fn a_version_that_older_drivers_refuse_is_found() {
        let text = |version| format!(".version {version}\n.target sm_80\n.address_size 64\n");
        assert_eq!(other_version("sm_80", &text("7.0")), None);
        assert_eq!(other_version("sm_80", &text("7.5")), None);
        assert_eq!(other_version("sm_90a", &text("8.1")), None);
        let fault = other_version("sm_80", &text("7.8")).unwrap();
        assert!(
            fault.contains("version 7.8") && fault.contains("7.0 or 7.5"),
            "{fault}"
        );
        let fault = other_version("sm_90a", "").unwrap();
        assert!(fault.contains("version unknown"), "{fault}");
    }

    #[test]
    fn ordinary_lines_pass() {
        for fine in [
            "\tst.global.b32 \t[%rd1], %r1;",
            "// .local is a comment, and so is call",
            "\tbra.uni \t$L__BB0_2; // call",
            ".visible .entry recall_local(",
            "\t.reg .b32 \t%local<4>;",
        ] {
            assert_eq!(slow_lines(fine).count(), 0, "{fine}");
        }
    }

    #[test]
    fn stack_and_spills_are_faults() {
        let clean = Usage {
            registers: 255,
            shared: 49152,
            ..Usage::default()
        };
        assert_eq!(slow_usage(&clean).count(), 0);
        let spilling = Usage {
            stack: 16,
            spill_stores: 8,
            spill_loads: 4,
            ..Usage::default()
        };
        let faults: Vec<_> = slow_usage(&spilling).collect();
        assert_eq!(
            faults,
            [
                "16 bytes of stack",
                "8 bytes of spill stores",
                "4 bytes of spill loads"
            ]
        );
    }
}
