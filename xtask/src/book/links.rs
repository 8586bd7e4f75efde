//! The links of pages: whether they lead somewhere, and where they lead in the book.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::Pages;
use crate::process::{Outcome, root};

/// Where the repository's files are on the web.
const REPOSITORY: &str = "https://github.com/cutlet-rs/cutlet";
/// The playground, as pages link to it: relative to the repository.
const PLAYGROUND: &str = "target/page";

/// Returns an error that names each link to a file or heading that does not exist.
pub fn check(pages: &Pages) -> Outcome {
    let mut broken = String::new();
    for (page, text) in pages {
        for link in links(text) {
            let link = &text[link];
            if !leads_somewhere(pages, page, link) {
                broken += &format!("\n  docs/{}: {link}", page.display());
            }
        }
    }
    match broken.as_str() {
        "" => Ok(()),
        broken => Err(format!("links that lead nowhere:{broken}")),
    }
}

/// A page's text with links for the book: those to files outside of `docs/` lead to the repository on the web.
pub fn for_the_web(page: &Path, text: &str) -> String {
    let mut changed = String::new();
    let mut end = 0;
    for link in links(text) {
        changed += &text[end..link.start];
        changed += &on_the_web(page, &text[link.clone()]);
        end = link.end;
    }
    changed + &text[end..]
}

fn on_the_web(page: &Path, link: &str) -> String {
    let (file, heading) = split(link);
    let path = from_root(page, file);
    if is_elsewhere(link) || file.is_empty() || path.starts_with("docs") {
        return link.to_owned();
    }
    if let Ok(file) = path.strip_prefix(PLAYGROUND) {
        let up = "../".repeat(page.components().count() - 1);
        return format!("{up}playground/{}{heading}", file.display());
    }
    let kind = if root().join(&path).is_dir() {
        "tree"
    } else {
        "blob"
    };
    format!("{REPOSITORY}/{kind}/main/{}{heading}", path.display())
}

fn leads_somewhere(pages: &Pages, page: &Path, link: &str) -> bool {
    let (file, heading) = split(link);
    let path = match file {
        "" => Path::new("docs").join(page),
        file => from_root(page, file),
    };
    if is_elsewhere(link) || path.starts_with(PLAYGROUND) {
        return true;
    }
    let Some(heading) = heading.strip_prefix('#') else {
        return root().join(path).exists();
    };
    let read = || std::fs::read_to_string(root().join(&path)).unwrap_or_default();
    let page = path
        .strip_prefix("docs")
        .ok()
        .and_then(|page| pages.get(page));
    let text = page.cloned().unwrap_or_else(read);
    text.lines().any(|line| is_heading(line, heading))
}

/// Whether a line is the heading with this anchor.
fn is_heading(line: &str, anchor: &str) -> bool {
    let title = line.trim_start_matches('#');
    title.len() < line.len() && anchor_of(title.trim()) == anchor
}

/// The anchor of a heading, as GitHub and mdBook make it.
fn anchor_of(title: &str) -> String {
    let letters = title.chars().flat_map(char::to_lowercase);
    letters
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// The file and the heading of a link. The heading begins with `#`, or is empty.
fn split(link: &str) -> (&str, &str) {
    link.split_at(link.find('#').unwrap_or(link.len()))
}

fn is_elsewhere(link: &str) -> bool {
    link.contains("://")
}

/// The path of a file that a page links to, from the repository's root.
fn from_root(page: &Path, file: &str) -> PathBuf {
    let mut path = PathBuf::from("docs").join(page);
    path.pop();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// Where the destinations of links are in a text: behind `](`, and behind `]: ` at the beginning of a line. Code has
/// none.
fn links(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            found.extend(links_of_line(line).map(|link| start + link.start..start + link.end));
        }
        start += line.len();
    }
    found
}

fn links_of_line(line: &str) -> impl Iterator<Item = Range<usize>> {
    let definition = (line.starts_with('[').then(|| line.find("]: ")).flatten())
        .map(|at| at + 3..line.trim_end().len());
    let in_text = line.match_indices("](").filter_map(|(at, opening)| {
        let start = at + opening.len();
        let is_code = line[..at].matches('`').count() % 2 == 1;
        let length = line[start..].find(')')?;
        (!is_code).then_some(start..start + length)
    });
    definition.into_iter().chain(in_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_of_code() {
        let text =
            "See [`a`](a.md#b), `[b](b.md)` and\n```\n[c](c.md)\n```\n![d](d.svg)\n[e]: e.md\n";
        let found: Vec<&str> = links(text).into_iter().map(|link| &text[link]).collect();
        assert_eq!(found, ["a.md#b", "d.svg", "e.md"]);
    }

    #[test]
    fn links_that_leave_the_pages_lead_to_the_web() {
        let page = Path::new("worklog/build.md");
        let in_book = |link: &str| for_the_web(page, &format!("[x]({link})"));
        assert_eq!(in_book("../layouts.md#tiles"), "[x](../layouts.md#tiles)");
        assert_eq!(in_book("#top"), "[x](#top)");
        assert_eq!(
            in_book("../../README.md#status"),
            "[x](https://github.com/cutlet-rs/cutlet/blob/main/README.md#status)"
        );
        assert_eq!(
            in_book("../../kernels"),
            "[x](https://github.com/cutlet-rs/cutlet/tree/main/kernels)"
        );
        let playground = "../../target/page/index.html#e=4";
        assert_eq!(in_book(playground), "[x](../playground/index.html#e=4)");
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let page = |text: &str| Pages::from([(PathBuf::from("a.md"), text.to_owned())]);
        check(&page(
            "# One `two`, three\n[x](#one-two-three) [y](../README.md) [z](https://a.b)",
        ))
        .unwrap();
        assert_eq!(
            check(&page("[x](#four) [y](b.md)")).unwrap_err(),
            "links that lead nowhere:\n  docs/a.md: #four\n  docs/a.md: b.md"
        );
    }
}
