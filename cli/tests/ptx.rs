//! `cutlet ptx`, with stand-ins for NVIDIA's programs that always print the same.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::json::{assert_result, line};

const PTX: &str = ".version 7.0
.target sm_80
.address_size 64

.visible .entry scale(
	.param .u32 scale_param_0
)
.maxntid 256, 1, 1
// cutlet-shared 1024
{
	ret;
}
";

/// Refuses PTX for sm_70, and reports the usage of the kernel for every other GPU.
const PTXAS: &str = "#!/bin/sh
case \"$*\" in
*--version) echo 'Cuda compilation tools, release 13.0, V13.0.88' ;;
*sm_70*) echo 'ptxas fatal: .target is higher' >&2; exit 1 ;;
*) cat >&2 <<'END' ;;
ptxas info    : Compiling entry function 'scale' for 'sm_80'
ptxas info    : Function properties for scale
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 48 bytes smem
ptxas info    : (C7509) Potential Performance Loss
END
esac
";

const NVDISASM: &str = "#!/bin/sh
cat <<'END'
.text.scale:
        /*0000*/                   MOV R1, R2 ;
.L_1:
        /*0010*/                   FADD R1, R1, R1 ;
        /*0020*/              @P0 BRA `(.L_1) ;
        /*0030*/                   EXIT ;
END
";

/// A folder with the stand-ins.
struct Machine {
    folder: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Machine {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        let machine = Machine { folder };
        for (name, script) in [("ptxas", PTXAS), ("nvdisasm", NVDISASM)] {
            let program = machine.write(name, script);
            let may_run = fs::Permissions::from_mode(0o755);
            fs::set_permissions(program, may_run).expect("permissions can be set");
        }
        machine
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.folder.join(name);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder can be made");
        fs::write(&file, text).expect("a file is written");
        file
    }

    fn ptx(&self, folder: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_cutlet"))
            .arg("ptx")
            .args(arguments)
            .current_dir(self.folder.join(folder))
            .env("CUTLET_PTXAS", self.folder.join("ptxas"))
            .env("CUTLET_NVDISASM", self.folder.join("nvdisasm"))
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .expect("the command starts")
    }
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn files_are_assembled_and_disassembled() {
    let machine = Machine::new("ptx-files");
    machine.write("mine.sm_80.ptx", PTX);
    let output = machine.ptx("", &["mine.sm_80.ptx", "--gpu", "sm_80,sm_90", "--json"]);
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(complaint(&output).contains("C7509"), "{output:?}");
    let result = line(&output.stdout);
    assert_result(&result, "`cutlet ptx`", &["ptxas", "kernels", "files"]);
    assert_eq!(result["ptxas"]["version"], "13.0.88");
    let [first, second] = &result["kernels"].as_array().expect("kernels")[..] else {
        panic!("there is one kernel for two GPUs: {result}");
    };
    for (key, expected) in [
        ("registers", 40),
        ("threads", 256),
        ("spill_store_bytes", 4),
        ("spill_load_bytes", 8),
        ("local_bytes", 16),
        ("shared_bytes", 48 + 1024),
        ("instructions", 4),
    ] {
        assert_eq!(first[key], expected, "{key}");
    }
    let hot_loop = serde_json::json!({"instructions": 2, "line": 4});
    assert_eq!([&first["hot_loop"], &second["hot_loop"]], [&hot_loop; 2]);
    assert_eq!([&first["gpu"], &second["gpu"]], ["sm_80", "sm_90"]);
    let listing = machine.folder.join("machine-code/mine.sm_80.sm_90.sass");
    let listing = fs::read_to_string(listing).expect("there is a listing");
    assert!(listing.starts_with(".text.scale:"), "{listing}");
}

#[test]
fn what_the_assembler_refuses_is_an_error_beside_the_rest() {
    let machine = Machine::new("ptx-refused");
    machine.write("ptx/mine.ptx", PTX);
    let output = machine.ptx("", &["ptx", "--gpu", "sm_70,sm_80", "--out", "made"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaint = complaint(&output);
    assert!(complaint.contains(".target is higher"), "{complaint}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("ptxas 13.0.88"), "{printed}");
    let row =
        "scale   sm_80                   40       12    1072     16             4  2, line 4\n";
    assert!(printed.contains(row), "{printed}");
    assert!(machine.folder.join("made/mine.sass").is_file());

    machine.write("no.ptx", "text");
    let output = machine.ptx("", &["no.ptx"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it is no PTX"));
}

/// A package whose build script does what cutlet-ptx-builder does, as far as it matters here.
fn package(machine: &Machine, build: &str) {
    let manifest = "[package]\nname = \"mine\"\nedition = \"2024\"\n[workspace]\n";
    machine.write("mine/Cargo.toml", manifest);
    machine.write("mine/src/lib.rs", "");
    machine.write("mine/build.rs", build);
}

#[test]
fn a_package_is_built_and_its_ptx_found() {
    let machine = Machine::new("ptx-package");
    machine.write("ptx/scale.sm_80.ptx", PTX);
    let ptx = machine.folder.join("ptx");
    let folder = ptx.display();
    let build =
        format!("fn main() {{ println!(\"cargo::rustc-env=CUTLET_PTX_FOLDER={folder}\") }}");
    package(&machine, &build);
    // The second time, nothing is built.
    for _ in 0..2 {
        let output = machine.ptx("mine/src", &["--json", "--", "--offline"]);
        assert!(output.status.success(), "{}", complaint(&output));
        let result: Value = line(&output.stdout);
        assert_eq!(result["kernels"][0]["kernel"], "scale");
        let listing = "mine/target/machine-code/mine/scale.sm_80.sass";
        let listing = machine.folder.join(listing).display().to_string();
        assert_eq!(result["files"][0]["sass"], listing);
    }
}

#[test]
fn a_package_without_kernels_or_with_errors_is_refused() {
    let machine = Machine::new("ptx-no-package");
    package(&machine, "fn main() {}");
    let output = machine.ptx("mine", &["--", "--offline"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(complaint(&output).contains("cargo built no kernels in ."));

    machine.write("mine/src/lib.rs", "fn");
    let output = machine.ptx("mine", &["--json", "--", "--offline"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = line(&output.stderr);
    let message = error["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("`cargo build` failed\n"), "{message}");
    assert!(message.contains("expected identifier"), "{message}");
}
