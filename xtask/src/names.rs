//! Finds public type names that several types share. One name should mean one thing. `allowed.txt` lists the remaining
//! exceptions, each with its count, and may only shrink: another type with a listed name fails, and so does a count that is too
//! large. It reads source text and must not judge anything but names.

use std::fs;
use std::path::Path;

use crate::allow_list::{AllowList, Found};
use crate::{Failure, code, tree};

/// The list of names that may still be shared, from the root of the repository.
const LIST: &str = "xtask/src/names/allowed.txt";

/// Names that each command or crate uses by convention.
const CONVENTIONAL: [&str; 2] = ["Error", "Options"];

/// One failure for each name that more types share than allowed, and for each entry of the list that is out of date.
pub fn check() -> Result<Vec<String>, Failure> {
    Ok(AllowList::read(LIST)?.failures("the public type name", &shared()?))
}

/// Lowers the counts of the list to the actual numbers.
pub fn shrink() -> Result<(), Failure> {
    AllowList::read(LIST)?.shrink(&shared()?)
}

/// The public type names, of all crates, that more than one type has.
fn shared() -> Result<Found, Failure> {
    let mut found = Found::new();
    for file in tree::files()?.into_iter().filter(|file| is_source(file)) {
        let text = fs::read_to_string(tree::root().join(&file))?;
        for (line, name) in types(code::without_tests(&text)) {
            found.entry(name.to_owned()).or_default().push(format!("{}:{line}", file.display()));
        }
    }
    found.retain(|name, places| places.len() > 1 && !CONVENTIONAL.contains(&name.as_str()));
    Ok(found)
}

fn is_source(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    matches!(parts.as_slice(), ["crates", _, "src", ..])
        && file.extension().is_some_and(|ending| ending == "rs")
        && !tree::is_test(file)
}

/// The types that a source makes public, each with its line.
fn types(source: &str) -> impl Iterator<Item = (usize, &str)> {
    source.lines().enumerate().filter_map(|(at, line)| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let name =
            ["struct ", "enum ", "trait ", "type ", "union "].into_iter().find_map(|word| rest.strip_prefix(word))?;
        let end = name.find(|char: char| !char.is_alphanumeric() && char != '_').unwrap_or(name.len());
        Some((at + 1, name.get(..end)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_types_are_found_and_others_are_not() {
        let source = "pub struct One<T>(T);\npub(crate) struct Two;\n    pub enum Three {\nstruct Four;\npub type Five = u8;\npub fn six() {}\n";
        let found: Vec<(usize, &str)> = types(source).collect();
        assert_eq!(found, [(1, "One"), (3, "Three"), (5, "Five")]);
    }
}
