//! The layers of the library: a module uses modules of its own layer and of the layers below it. `allowed.txt` lists the uses that
//! still point upward, and may only shrink. It reads source text and must not judge anything but the direction of a use.

use std::fs;
use std::path::Path;

use crate::allow_list::{AllowList, Found};
use crate::{Failure, code, tree};

/// The list of uses that may still point upward, from the root of the repository.
const LIST: &str = "xtask/src/layers/allowed.txt";

/// The folder that has layers.
const LIBRARY: &str = "crates/stenograph/src";

/// The layers, lowest first, each with its modules. A path below a module may have a layer of its own; the longest path counts.
const LAYERS: [(&str, &[&str]); 5] = [
    ("json", &["text", "time", "json"]),
    ("model", &["evidence", "frame", "model", "shell"]),
    ("formats", &["carry", "format", "formats", "read", "record_schema", "registry", "synthesizer", "wire", "write"]),
    ("folds", &["calls", "ledger", "loss", "repeat", "run_state", "turns"]),
    (
        "features",
        &[
            "audit",
            "cassette",
            "changes",
            "compare",
            "contents",
            "convert",
            "edit",
            "error",
            "formats::peers",
            "query",
            "redact",
            "render",
            "prelude",
            "replay",
            "resume",
            "serialize",
            "session",
            "status",
        ],
    ),
];

/// Modules that may use everything: the crate root, and the laws, which test all layers.
const EXEMPT: [&str; 2] = ["lib", "laws"];

/// One failure for each new use that points upward, each entry of the list that is out of date, and each module without a layer.
pub fn check() -> Result<Vec<String>, Failure> {
    let (found, mut failures) = upward()?;
    failures.extend(AllowList::read(LIST)?.failures("the upward use", &found));
    Ok(failures)
}

/// Lowers the counts of the list to the actual numbers.
pub fn shrink() -> Result<(), Failure> {
    AllowList::read(LIST)?.shrink(&upward()?.0)
}

/// The uses that point upward, and the modules that have no layer.
fn upward() -> Result<(Found, Vec<String>), Failure> {
    let (mut found, mut unassigned) = (Found::new(), Vec::new());
    for file in tree::files()? {
        let Ok(inside) = file.strip_prefix(LIBRARY) else { continue };
        if inside.extension().is_none_or(|ending| ending != "rs") || tree::is_test(inside) {
            continue;
        }
        let path = module_path(inside);
        if path.first().is_some_and(|first| EXEMPT.contains(&first.as_str())) {
            continue;
        }
        let Some((layer, module)) = layer_of(&path) else {
            unassigned.push(format!("{}: the module has no layer; add it to LAYERS in xtask", file.display()));
            continue;
        };
        let text = fs::read_to_string(tree::root().join(&file))?;
        for (line, target) in uses(code::without_tests(&text), path.len()) {
            let above = layer_of(&target).filter(|(of_target, _)| *of_target > layer);
            if let Some((_, target)) = above {
                found.entry(format!("{module} -> {target}")).or_default().push(format!("{}:{line}", file.display()));
            }
        }
    }
    Ok((found, unassigned))
}

/// The path of the module in a file: `json/mod.rs` and `json.rs` are `json`, `json/scan.rs` is `json::scan`.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> =
        file.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") {
        path.pop();
    }
    path
}

/// The layer of a module and its entry in the table.
fn layer_of(path: &[String]) -> Option<(usize, &'static str)> {
    let is_within = |module: &str| module.split("::").zip(path).filter(|(one, other)| one == other).count();
    let entries =
        LAYERS.iter().enumerate().flat_map(|(layer, (_, modules))| modules.iter().map(move |module| (layer, *module)));
    entries.filter(|(_, module)| is_within(module) == module.split("::").count()).max_by_key(|(_, module)| module.len())
}

/// The modules that a source uses by a path from the crate root, each with its line. `depth` is the depth of the source's
/// module: that many `super` lead to the root.
fn uses(source: &str, depth: usize) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let from_root = code.match_indices("crate::").map(|(at, start)| at + start.len());
        let up = "super::".repeat(depth);
        let over_supers = code.match_indices(&up).map(|(at, start)| at + start.len());
        for start in from_root.chain(over_supers) {
            let rest = code.get(start..).unwrap_or_default();
            let (group, is_group) = match rest.strip_prefix('{') {
                Some(group) => (group.split('}').next().unwrap_or_default(), true),
                None => (rest, false),
            };
            let paths = group.split(',').take(if is_group { usize::MAX } else { 1 });
            found.extend(paths.map(|path| (number + 1, names(path))));
        }
    }
    found
}

/// The names at the beginning of a path.
fn names(path: &str) -> Vec<String> {
    let name = |part: &str| part.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect::<String>();
    path.trim().split("::").map(name).take_while(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split("::").map(str::to_owned).collect()
    }

    #[test]
    fn the_longest_entry_gives_the_layer() {
        assert_eq!(layer_of(&path("json::scan")), Some((0, "json")));
        assert_eq!(layer_of(&path("formats::codex::read")), Some((2, "formats")));
        assert_eq!(layer_of(&path("formats::peers::codex")), Some((4, "formats::peers")));
        assert_eq!(layer_of(&path("Text")), None);
    }

    #[test]
    fn a_file_is_a_module() {
        assert_eq!(module_path(Path::new("json/mod.rs")), ["json"]);
        assert_eq!(module_path(Path::new("json.rs")), ["json"]);
        assert_eq!(module_path(Path::new("json/scan.rs")), ["json", "scan"]);
    }

    #[test]
    fn uses_are_found_and_comments_are_not() {
        let source = "//! [`crate::audit`]\nuse crate::model::{Event, Note};\nuse crate::{read, json::Object};\nfn f() { super::super::query::parts() } // crate::edit\n";
        let expected =
            [(2, vec!["model"]), (3, vec!["read"]), (3, vec!["json", "Object"]), (4, vec!["query", "parts"])];
        let expected = expected.map(|(line, names)| (line, names.into_iter().map(str::to_owned).collect::<Vec<_>>()));
        assert_eq!(uses(source, 2), expected);
    }
}
