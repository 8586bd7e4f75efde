//! Builds the playground: one page with the calculator as WebAssembly inside, which needs no server.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    process::{self, Outcome, is_there, root},
    rust_std::RustStd,
};

const TARGET: &str = "wasm32-unknown-unknown";

/// The most bytes of the page.
const LARGEST: usize = 1_500_000;

/// Builds the page into `target/page`, and tests it with the tools that are there.
pub fn run() -> Outcome {
    let Built { module, page } = build()?;
    test(&module, &page)
}

/// The files of a build.
pub struct Built {
    module: PathBuf,
    /// The page, which is one file.
    pub page: PathBuf,
}

/// Builds the page into `target/page`.
pub fn build() -> Outcome<Built> {
    let line = "build --package cutlet-playground --profile playground";
    process::run(&mut RustStd::get(&[TARGET])?.cargo(line, &[TARGET]))?;
    let built = root().join(format!("target/{TARGET}/playground/cutlet_playground.wasm"));
    let module = fs::read(&built).map_err(|error| format!("{}: {error}", built.display()))?;
    let page = page(&module)?;
    let folder = root().join("target/page");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file = folder.join("index.html");
    fs::write(&file, &page).map_err(|error| format!("{}: {error}", file.display()))?;
    println!(
        "{}: {} kB, of which the calculator is {} kB before base64",
        file.display(),
        page.len() / 1000,
        module.len() / 1000
    );
    if page.len() > LARGEST {
        return Err(format!(
            "the page has {} bytes; the most are {LARGEST}",
            page.len()
        ));
    }
    Ok(Built {
        module: built,
        page: file,
    })
}

/// The page with its styles, its scripts and the module inside.
fn page(module: &[u8]) -> Result<String, String> {
    let mut page = source("index.html")?;
    let style = format!("<style>\n{}</style>", source("style.css")?);
    page = replaced(
        &page,
        "<link rel=\"stylesheet\" href=\"style.css\">",
        &style,
    )?;
    for name in ["calculator.js", "picture.js", "threads.js", "playground.js"] {
        let mut script = source(name)?;
        if name == "playground.js" {
            script = format!("const CALCULATOR = \"{}\";\n{script}", base64(module));
        }
        let inside = format!("<script>\n{script}</script>");
        page = replaced(&page, &format!("<script src=\"{name}\"></script>"), &inside)?;
    }
    Ok(page)
}

fn source(name: &str) -> Result<String, String> {
    let file = root().join("playground/web").join(name);
    fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn replaced(page: &str, tag: &str, inside: &str) -> Result<String, String> {
    match page.split_once(tag) {
        Some((before, after)) => Ok(format!("{before}{inside}{after}")),
        None => Err(format!("playground/web/index.html has no `{tag}`")),
    }
}

/// Bytes as base64.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, i| {
            bits << 8 | u32::from(*group.get(i).unwrap_or(&0))
        });
        for digit in 0..4 {
            if digit <= group.len() {
                text.push(char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// Runs the module in node, and the page in Chromium. Without these programs, it says so.
fn test(module: &Path, page: &Path) -> Outcome {
    if !is_there("node") {
        println!("node is not installed: the page is built, but not tested");
        return Ok(());
    }
    process::run(
        Command::new("node")
            .arg("playground/tests/module.mjs")
            .arg(module)
            .current_dir(root()),
    )?;
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = browsers.into_iter().find(|browser| is_there(browser)) else {
        println!("Chromium is not installed: the module is tested, but not the page");
        return Ok(());
    };
    process::run(
        Command::new("node")
            .arg("--experimental-websocket")
            .arg("playground/tests/page.mjs")
            .args([browser.as_ref(), page.as_os_str()])
            .current_dir(root()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any static host can serve it, from any folder.
    #[test]
    fn the_page_loads_nothing_else() {
        let page = page(b"module").unwrap();
        assert!(page.contains("const CALCULATOR = \"bW9kdWxl\";"));
        for loads in [" src=", "<link", " href=", "@import", "url(", "fetch("] {
            assert!(!page.contains(loads), "{loads}");
        }
        let addresses = page.matches("://").count();
        let of_svg = page.matches("http://www.w3.org/2000/svg").count();
        assert_eq!(addresses, of_svg);
    }

    #[test]
    fn base64_pads_the_last_group() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }
}
