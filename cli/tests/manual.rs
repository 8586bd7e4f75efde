//! `cutlet completions` and `cutlet man`: each command and option is in them.

use std::path::Path;
use std::process::{Command, Output};

fn cutlet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments)
        .output()
        .expect("the command starts")
}

/// What a successful command prints.
fn printed(arguments: &[&str]) -> String {
    let output = cutlet(arguments);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {complaints}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

#[test]
fn every_shell_completes_commands_options_and_values() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = printed(&["completions", shell]);
        for word in [
            "gemm",
            "bench",
            "moe",
            "contract",
            "layout-a",
            "completions",
            "out-of-range",
        ] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
    }
    let refused = cutlet(&["completions", "dos"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("bash, elvish, fish"));
}

/// Sources the script in a shell and completes as it does.
#[test]
fn bash_takes_the_script() {
    let script = Path::new(env!("CARGO_TARGET_TMPDIR")).join("completions.bash");
    std::fs::write(&script, printed(&["completions", "bash"])).expect("a file is written");
    let complete = format!(
        "source '{}' && COMP_WORDS=(cutlet bench m) COMP_CWORD=2 && _cutlet cutlet m bench && echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let Ok(output) = Command::new("bash").args(["-c", &complete]).output() else {
        cutlet_not_run::not_run("there is no bash");
        return;
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        "movement moe",
        "{complaints}"
    );
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let page = printed(&["man"]);
    for expected in [
        ".TH cutlet 1",
        "CUTLET_TUNING",
        "cutlet\\-bench(1)",
        "Exit codes",
    ] {
        assert!(page.contains(expected), "no {expected} in {page}");
    }
    let page = printed(&["man", "bench", "gemm"]);
    assert!(page.contains("\\-\\-instances"), "{page}");
    let page = printed(&["man", "contract"]);
    assert!(page.contains("bshd,bthd\\->bhst"), "{page}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("man1");
    printed(&["man", "--out", folder.to_str().expect("the path is UTF-8")]);
    for name in [
        "cutlet.1",
        "cutlet-tune.1",
        "cutlet-contract.1",
        "cutlet-bench.1",
        "cutlet-bench-gemm.1",
    ] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let refused = cutlet(&["man", "gem"]);
    assert_eq!(refused.status.code(), Some(2));
    let complaint = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        complaint.contains("`cutlet` has the commands gemm, gather"),
        "{complaint}"
    );
}
