//! The guide's links to the page: each opens a layout that has a value, and the view that it names has something to show.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::ask;

/// How pages of the guide link to the page: `cargo xtask playground` builds it there.
const PAGE: &str = "target/page/index.html#";

/// The lessons that are about layouts.
const LESSONS: [&str; 9] = [
    "first-layouts.md",
    "tensors.md",
    "kernels.md",
    "layouts.md",
    "sticking-points.md",
    "tiled.md",
    "gemm-in-nine-steps.md",
    "softmax.md",
    "rms-norm.md",
];

#[test]
fn every_lesson_about_layouts_links_to_the_page() {
    let links = links();
    for lesson in LESSONS {
        assert!(
            links.iter().any(|(page, _)| page.ends_with(lesson)),
            "docs/{lesson} has no link"
        );
    }
}

#[test]
fn links_of_the_guide_have_values() {
    let links = links();
    assert!(links.len() > 40, "{}", links.len());
    for (page, link) in links {
        if let Err(wrong) = opens(&link) {
            panic!("{}: {link}: {wrong}", page.display());
        }
    }
}

/// All links to the page, each with the page of the guide that has it.
fn links() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for page in pages(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")) {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            let Some((up, fields)) = target.split_once(PAGE) else {
                continue;
            };
            // Relative, so that it leads to the page from the repository, and from the book beside it.
            assert!(up.starts_with("../"), "{}: {target}", page.display());
            found.push((page.clone(), fields.to_owned()));
        }
    }
    found
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// Asks what the page asks when it is opened with these fields.
fn opens(link: &str) -> Result<(), String> {
    let fields: BTreeMap<&str, String> = link
        .split('&')
        .map(|field| {
            field
                .split_once('=')
                .ok_or(format!("`{field}` has no value"))
        })
        .map(|field| field.map(|(key, value)| (key, decoded(value))))
        .collect::<Result<_, _>>()?;
    let mut request = json!({ "ask": "answer", "bits": 32 });
    for (&key, value) in &fields {
        match key {
            "e" => request["expression"] = value.as_str().into(),
            "tile" | "color" => request[key] = value.as_str().into(),
            "bits" => request[key] = number(value)?.into(),
            "view" | "thread" | "value" => {}
            other => return Err(format!("the page has no field `{other}`")),
        }
    }
    let view = fields.get("view").map_or("layout", String::as_str);
    if view == "threads" && request["tile"].is_null() {
        request["tile"] = "".into();
    }
    let answer = ask(request);
    no_errors(&answer)?;
    let holders = [&answer["thread_values"], &answer["tiled"]]
        .into_iter()
        .find(|it| it.is_object());
    match (view, holders) {
        ("layout", _) if answer["cells"].is_object() || answer["contraction"].is_array() => Ok(()),
        ("threads", Some(holders)) => {
            let threads = holders["threads"].as_i64().unwrap_or(0);
            let chosen = fields
                .get("thread")
                .map_or(Ok(0), |thread| number(thread))?;
            (chosen < threads)
                .then_some(())
                .ok_or(format!("there are {threads} threads"))
        }
        ("banks", _) if answer["banks"]["text"].is_string() => Ok(()),
        ("steps", _) if answer["explanations"][0].is_array() => Ok(()),
        _ => Err(format!("the view `{view}` has nothing to show")),
    }
}

/// Refuses an answer if a part of it has an error.
fn no_errors(answer: &Value) -> Result<(), String> {
    let parts = ["cells", "thread_values", "tiled"].map(|part| &answer[part]);
    let tensors = answer["contraction"].as_array().into_iter().flatten();
    match parts
        .into_iter()
        .chain(tensors.map(|tensor| &tensor["cells"]))
        .chain([answer])
        .find(|part| part["error"].is_object())
    {
        Some(wrong) => Err(wrong["error"]["message"].to_string()),
        None => Ok(()),
    }
}

fn number(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

/// The text of a part of a link, in which `%28` is a parenthesis.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let byte = u8::from_str_radix(&part[..2], 16).unwrap();
        text + &char::from(byte).to_string() + &part[2..]
    })
}

#[test]
fn a_wrong_link_is_found() {
    assert!(opens("e=%284,2%29:%281,4%29").is_ok());
    for wrong in [
        "e=%284,2",
        "e=%284,2%29:%281,4%29&zoom=2",
        "e=%284,2%29:%281,4%29&view=threads&tile=%282,2%29",
        "e=%284,2%29:%281,4%29&view=threads&tile=%281,8%29&thread=4",
        "e=%284,2%29:%281,4%29&view=steps",
        "e=Mma16816%3Cbf16%3E",
    ] {
        assert!(opens(wrong).is_err(), "{wrong}");
    }
}
