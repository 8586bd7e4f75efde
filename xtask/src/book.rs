//! Makes a book of the guide: the pages in `docs/`, by mdBook, with links to the repository's files that lead to the
//! web.

mod links;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{
    playground,
    process::{self, Outcome, cargo, root},
    workspace::target_dir,
};

/// The version of mdBook that is installed if there is none.
const MDBOOK: &str = "0.5.4";

/// What stands where a figure is to come.
const GAP: &str = "not measured yet";

/// Makes the book in `target/book/html`, with the playground beside its pages.
pub fn run() -> Outcome {
    let pages = pages()?;
    check_gaps(&pages)?;
    links::check(&pages)?;
    let book = target_dir()?.join("book");
    let (source, html) = (book.join("source"), book.join("html"));
    remove(&book)?;
    copy_folder(&root().join("docs"), &source)?;
    let playground = source.join("playground/index.html");
    write(&playground, read(&playground::build()?.page)?)?;
    for (page, text) in &pages {
        write(&source.join(page), links::for_the_web(page, text))?;
    }
    let mut build = Command::new(mdbook()?);
    process::run(build.arg("build").arg(&source).arg("--dest-dir").arg(&html))?;
    println!("\nthe book is {}", html.join("index.html").display());
    Ok(())
}

/// An installed mdBook, or one that is compiled into the target folder, which takes minutes the first time.
fn mdbook() -> Outcome<PathBuf> {
    if process::is_there("mdbook") {
        return Ok("mdbook".into());
    }
    let folder = target_dir()?.join("mdbook");
    let program = folder.join("bin/mdbook");
    if !program.exists() {
        let install = format!("install mdbook --locked --version {MDBOOK} --root");
        process::run(cargo(&install).arg(&folder))?;
    }
    Ok(program)
}

/// The text of each page in `docs/`, by its path there.
type Pages = BTreeMap<PathBuf, String>;

fn pages() -> Outcome<Pages> {
    let mut pages = Pages::new();
    let docs = root().join("docs");
    for path in files(&docs)? {
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = std::fs::read_to_string(docs.join(&path))
                .map_err(|error| format!("cannot read docs/{}: {error}", path.display()))?;
            pages.insert(path, text);
        }
    }
    Ok(pages)
}

/// Returns an error if a figure is missing somewhere.
fn check_gaps(pages: &Pages) -> Outcome {
    match pages.iter().find(|(_, text)| text.contains(GAP)) {
        None => Ok(()),
        Some((page, _)) => Err(format!(
            "docs/{} has a row \"{GAP}\": measure what it asks for, and replace the row",
            page.display()
        )),
    }
}

/// The files in a folder and in its folders, by their paths there.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        if path.is_dir() {
            found.extend(files(&path)?.iter().map(|file| name.join(file)));
        } else {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    for file in files(from)? {
        write(&to.join(&file), read(&from.join(&file))?)?;
    }
    Ok(())
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Outcome {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, bytes))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn remove(folder: &Path) -> Outcome {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_guide_leads_somewhere() {
        links::check(&pages().unwrap()).unwrap();
    }

    #[test]
    fn every_page_is_in_the_summary() {
        let pages = pages().unwrap();
        let summary = &pages[Path::new("SUMMARY.md")];
        for page in pages.keys().filter(|page| !page.ends_with("SUMMARY.md")) {
            let link = format!("({})", page.display());
            assert!(summary.contains(&link), "docs/SUMMARY.md lacks {link}");
        }
    }

    #[test]
    fn a_gap_is_found() {
        let page = |text: &str| Pages::from([(PathBuf::from("a.md"), text.to_owned())]);
        check_gaps(&page("| 790 | 0.97 |")).unwrap();
        assert_eq!(
            check_gaps(&page("| H100: not measured yet |")).unwrap_err(),
            "docs/a.md has a row \"not measured yet\": measure what it asks for, and replace the row"
        );
    }

    /// The pages show parts of examples' files, which are compiled and tested there.
    #[test]
    fn what_pages_show_of_examples_is_in_their_files() {
        check_shown("gemm-in-nine-steps.md", "gemm-steps", 10);
        check_shown("convolution.md", "10_convolution", 2);
    }

    /// Compares the blocks of a page that are not compiled with the files of an example. There are at least so many.
    fn check_shown(page: &str, example: &str, least: usize) {
        let lines = |text: &str| -> String {
            let lines = text.lines().map(|line| format!("{}\n", line.trim()));
            format!("\n{}", lines.collect::<String>())
        };
        let folder = root().join("examples").join(example).join("src");
        let sources: Vec<String> = (files(&folder).unwrap().iter())
            .map(|file| lines(&std::fs::read_to_string(folder.join(file)).unwrap()))
            .collect();
        let pages = pages().unwrap();
        let blocks = pages[Path::new(page)].split("```rust,ignore\n").skip(1);
        assert!(blocks.clone().count() >= least);
        for block in blocks {
            let shown = lines(block.split("```").next().unwrap());
            let found = sources.iter().any(|source| source.contains(&shown));
            assert!(found, "in no file of examples/{example}:{shown}");
        }
    }
}
