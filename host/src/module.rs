//! PTX modules: the driver compiles the best one for a device once, and the device keeps it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, RwLock};

use cudarc::driver::sys::{
    self, CUfunction, CUfunction_attribute, CUjit_option, CUmodule, CUresult,
};
use cutlet_device::{LaunchBounds, PtxFamily, PtxLibrary, PtxModule, for_sm_90};

use crate::driver::{RelaxedCaptureMode, check};
use crate::gpu::Gpu;
use crate::lock::{lock, read, write};
use crate::{Error, Limits, Result, driver, ptx_text};

/// Bytes of dynamic shared memory that every GPU gives a block by default; more needs an attribute.
const SHARED_WITHOUT_ASKING: u32 = 48 * 1024;
/// Blocks of a cluster that every GPU with clusters allows by default; more need an attribute.
const CLUSTER_WITHOUT_ASKING: u32 = 8;

/// The modules that were compiled for a device, and the kernels looked up in them.
#[derive(Default)]
pub(crate) struct ModuleCache {
    functions: RwLock<HashMap<Key, Entry>>,
    /// By address of the library's module. Locked while the driver compiles one, which does not block look-ups in
    /// `functions`.
    modules: Mutex<HashMap<usize, Module>>,
}

/// A kernel of a library: address and number of the library's families, the family, the kernel's name.
type Key = ((usize, usize), &'static str, &'static str);

#[derive(Clone, Copy)]
struct Module(CUmodule);

// SAFETY: a module's handle may be used from any thread. A module is never unloaded, because its
// device stays open until the process ends.
unsafe impl Send for Module {}

/// A kernel loaded on one GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) function: CUfunction,
    /// Whether the kernel can begin while the kernel before it ends, because it can wait for that kernel.
    pub(crate) can_begin_early: bool,
}

// SAFETY: a function's handle may be used from any thread while its module is loaded, which it is
// until the process ends.
unsafe impl Send for Entry {}
// SAFETY: as above. The handle itself is never written.
unsafe impl Sync for Entry {}

/// A kernel to load, and the device to load it on.
pub(crate) struct Request<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) device: &'a str,
    pub(crate) limits: Limits,
    pub(crate) library: &'a PtxLibrary,
    pub(crate) kernel: &'static str,
    pub(crate) family: &'static str,
    pub(crate) bounds: LaunchBounds,
}

impl ModuleCache {
    /// The requested kernel. The first request compiles its family and checks its needs.
    pub(crate) fn get(&self, request: &Request) -> Result<Entry> {
        let families = request.library.families;
        let library = (families.as_ptr().addr(), families.len());
        let key = (library, request.family, request.kernel);
        if let Some(entry) = read(&self.functions).get(&key) {
            return Ok(*entry);
        }
        let family = request
            .library
            .family(request.family)
            .ok_or_else(|| unknown_family(request.library, request.kernel, request.family))?;
        let (module, text) = choose(
            request.library,
            family,
            request.kernel,
            request.gpu.capability,
            request.device,
        )?;
        // Kernels of PTX for an older target wait for earlier ones on this device, if the text says how.
        let is_newer = request.gpu.capability >= (9, 0) && for_sm_90(&text).is_some();
        request.gpu.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        let entry = Entry {
            function: look_up(
                self.compiled(family, module, (&text, is_newer), request.kernel)?,
                request.kernel,
            )?,
            can_begin_early: module.can_begin_early() || is_newer,
        };
        prepare(entry, request)?;
        write(&self.functions).insert(key, entry);
        Ok(entry)
    }

    /// The module compiled for the current context, with the instructions of sm_90 if it is for a newer device than its
    /// target says.
    fn compiled(
        &self,
        family: &PtxFamily,
        module: &'static PtxModule,
        (text, is_newer): (&str, bool),
        kernel: &'static str,
    ) -> Result<Module> {
        let address = ptr::from_ref(module).addr();
        let mut modules = lock(&self.modules);
        if let Some(compiled) = modules.get(&address) {
            return Ok(*compiled);
        }
        let newer = is_newer.then(|| for_sm_90(text)).flatten();
        let newer: Option<String> = newer.map(Iterator::collect);
        let text = newer.as_deref().unwrap_or(text);
        let compiled = compile(family, module, text, kernel)?;
        modules.insert(address, compiled);
        Ok(compiled)
    }
}

fn look_up(module: Module, kernel: &'static str) -> Result<CUfunction> {
    let doing = format!("looking up kernel `{kernel}` in its module");
    let Ok(name) = CString::new(kernel) else {
        return Err(driver::error(&doing, CUresult::CUDA_ERROR_NOT_FOUND));
    };
    let mut function: CUfunction = ptr::null_mut();
    // SAFETY: the module is loaded, the name ends in NUL, and the driver writes one handle.
    let code = unsafe { sys::cuModuleGetFunction(&mut function, module.0, name.as_ptr()) };
    check(&doing, code)?;
    Ok(function)
}

/// Checks that the device has the resources that the kernel needs, and allows the kernel to use them.
fn prepare(entry: Entry, request: &Request) -> Result<()> {
    let Request { kernel, bounds, .. } = *request;
    let too_much = |asked: String, found: String, fix: &'static str| Error::TooMuchForDevice {
        kernel,
        asked,
        device: request.device.to_string(),
        found,
        fix,
    };
    let threads = attribute(
        entry,
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    )?;
    if bounds.threads() > threads {
        return Err(too_much(
            format!("{} threads a block", bounds.threads()),
            format!("registers for {threads} of its threads"),
            "use fewer threads a block, or fewer registers a thread",
        ));
    }
    let fixed = attribute(
        entry,
        CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
    )?;
    let shared = fixed.saturating_add(bounds.shared_bytes());
    if shared > request.limits.shared_bytes {
        return Err(too_much(
            format!("{shared} bytes of shared memory a block"),
            format!("at most {}", request.limits.shared_bytes),
            "use smaller tiles or fewer pipeline stages on this device",
        ));
    }
    if bounds.cluster() > request.limits.cluster {
        return Err(too_much(
            format!("clusters of {} blocks", bounds.cluster()),
            "none (clusters need compute capability 9.0)".to_string(),
            "use a kernel without clusters on this device",
        ));
    }
    if bounds.shared_bytes() > SHARED_WITHOUT_ASKING {
        allow(
            entry,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            bounds.shared_bytes(),
        )?;
    }
    // A kernel whose launches choose the cluster may be launched in the largest.
    let largest_cluster = bounds.in_clusters_of(request.limits.cluster).cluster();
    if largest_cluster > CLUSTER_WITHOUT_ASKING {
        allow(
            entry,
            CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
            1,
        )?;
    }
    Ok(())
}

/// A property of a compiled kernel, such as its registers per thread.
pub(crate) fn attribute(entry: Entry, attribute: CUfunction_attribute) -> Result<u32> {
    let mut value = 0;
    // SAFETY: the handle is a loaded function's, and the driver writes one int.
    let code = unsafe { sys::cuFuncGetAttribute(&mut value, attribute, entry.function) };
    check("querying a kernel's properties", code)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

fn allow(entry: Entry, attribute: CUfunction_attribute, value: u32) -> Result<()> {
    let value = i32::try_from(value).unwrap_or(i32::MAX);
    // SAFETY: the handle is a loaded function's.
    let code = unsafe { sys::cuFuncSetAttribute(entry.function, attribute, value) };
    check("raising a kernel's resource limits", code)
}

fn unknown_family(library: &PtxLibrary, kernel: &'static str, family: &'static str) -> Error {
    /// The most families whose names an error says.
    const MOST_NAMED: usize = 8;
    let names: Vec<&str> = library.families.iter().map(|family| family.name).collect();
    let found = match names.len() {
        0 => "no kernels at all".to_string(),
        1..=MOST_NAMED => format!("only {}", names.join(", ")),
        others => format!("only {others} others"),
    };
    Error::UnknownFamily {
        kernel,
        family,
        found,
    }
}

/// The best module for a device of this compute capability, and its text. A kernel that is built for some targets
/// only is missing from the family's other modules.
fn choose(
    library: &PtxLibrary,
    family: &PtxFamily,
    kernel: &'static str,
    (major, minor): (u32, u32),
    device: &str,
) -> Result<(&'static PtxModule, Cow<'static, str>)> {
    let with_kernel = |module: &'static PtxModule| {
        let text = ptx_text(module.ptx).filter(|text| has_entry(text, kernel))?;
        Some((module, text))
    };
    family
        .best_for(major, minor)
        .and_then(with_kernel)
        .ok_or_else(|| {
            let targets: Vec<&str> = family
                .modules
                .iter()
                .filter_map(with_kernel)
                .map(|(module, _)| module.target)
                .collect();
            // If other families are built for the device, this kernel does not support it.
            let builds_for_it = |it: &PtxFamily| it.best_for(major, minor).is_some();
            let left_out = !targets.is_empty() && library.families.iter().any(builds_for_it);
            Error::NoTarget {
                kernel,
                built_for: if targets.is_empty() {
                    "no target".to_string()
                } else {
                    targets.join(", ")
                },
                device: device.to_string(),
                major,
                minor,
                fix: if left_out {
                    "use another kernel on this device".to_string()
                } else {
                    format!(
                        "add a target that runs there, such as `sm_{major}{minor}`, to the kernels' build.rs, if the \
                         kernel's `arch` allows it"
                    )
                },
            }
        })
}

/// Whether a PTX text defines an entry of this name.
fn has_entry(ptx: &str, kernel: &str) -> bool {
    ptx.match_indices(".entry").any(|(at, word)| {
        let rest = ptx[at + word.len()..].trim_start();
        let end = rest.find(|c: char| c == '(' || c.is_whitespace());
        end.is_some_and(|end| &rest[..end] == kernel)
    })
}

/// Compiles a PTX text for the current context, by the driver.
fn compile(
    family: &PtxFamily,
    module: &PtxModule,
    text: &str,
    kernel: &'static str,
) -> Result<Module> {
    const LOG_BYTES: usize = 16 * 1024;
    let refused = |code: CUresult, log: &str| Error::Jit {
        kernel,
        family: family.name,
        target: module.target,
        code: driver::words(code).0,
        log: log.trim_end().to_string(),
    };
    // A build with `CUTLET_LINE_INFO=1` has them, for profilers.
    let has_source_lines = text.contains("\n\t.loc\t");
    let Ok(text) = CString::new(text) else {
        return Err(refused(
            CUresult::CUDA_ERROR_INVALID_PTX,
            "the PTX text contains a NUL byte",
        ));
    };
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
        CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CUjit_option::CU_JIT_GENERATE_LINE_INFO,
    ];
    // The driver takes option values that are numbers as pointers.
    let mut values: [*mut c_void; 3] = [
        log.as_mut_ptr().cast(),
        ptr::without_provenance_mut(LOG_BYTES),
        ptr::without_provenance_mut(usize::from(has_source_lines)),
    ];
    let mut handle: CUmodule = ptr::null_mut();
    // SAFETY: `text` ends in NUL, there are as many values as options, and the log has `LOG_BYTES`.
    // All of them live past the call.
    let code = unsafe {
        sys::cuModuleLoadDataEx(
            &mut handle,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if code != CUresult::CUDA_SUCCESS {
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        return Err(refused(code, &String::from_utf8_lossy(&log[..end])));
    }
    Ok(Module(handle))
}

#[cfg(test)]
mod tests {
    use cutlet_device::PtxText;

    use super::*;

    const TWO_ENTRIES: &str = ".visible .entry gemm_f32(\n)\n.visible .entry gemm_bf16 (\n)";
    const FAMILY: PtxFamily = PtxFamily {
        name: "gemm",
        modules: &[
            PtxModule {
                target: "sm_80",
                ptx: PtxText::Plain(".visible .entry gemm_f32(\n)"),
            },
            PtxModule {
                target: "sm_90a",
                ptx: PtxText::Plain(TWO_ENTRIES),
            },
        ],
    };
    const LIBRARY: PtxLibrary = PtxLibrary {
        families: &[FAMILY],
    };

    #[test]
    fn the_best_target_that_runs_is_chosen() {
        let target = |capability| {
            let chosen = choose(&LIBRARY, &FAMILY, "gemm_f32", capability, "gpu 0");
            chosen.map(|(module, _)| module.target)
        };
        assert_eq!(target((9, 0)).unwrap(), "sm_90a");
        assert_eq!(target((8, 0)).unwrap(), "sm_80");
        assert_eq!(target((10, 0)).unwrap(), "sm_80");
        let error = target((7, 5)).unwrap_err().to_string();
        assert!(error.contains("built for sm_80, sm_90a"), "{error}");
        assert!(error.contains("such as `sm_75`"), "{error}");
        assert!(error.ends_with("run on `Device::cpu()`"), "{error}");
    }

    #[test]
    fn a_kernel_of_one_target_says_so_elsewhere() {
        let error = choose(&LIBRARY, &FAMILY, "gemm_bf16", (8, 9), "gpu 0: L4").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("`gemm_bf16` is built for sm_90a, none of which"),
            "{error}"
        );
        assert!(
            error.contains("gpu 0: L4 (compute capability 8.9); use another kernel on this device"),
            "{error}"
        );
        assert!(error.ends_with("run on `Device::cpu()`"), "{error}");
    }

    #[test]
    fn entries_are_found_by_their_whole_name() {
        assert!(has_entry(TWO_ENTRIES, "gemm_bf16"));
        assert!(!has_entry(TWO_ENTRIES, "gemm"));
        assert!(!has_entry(TWO_ENTRIES, "bf16"));
    }
}
