//! Public type names that several types share. One name should mean one thing, so `allowed.txt` lists the names that do not yet,
//! each with its count, and the list may only shrink: a name that spreads fails, and so does an entry that is larger than the truth.
//! It reads source text and must not judge anything but names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, code, tree};

/// The list of names that may still be shared, from the root of the repository.
const LIST: &str = "xtask/src/names/allowed.txt";

/// Names that every command or every crate has one of, by convention.
const CONVENTIONAL: [&str; 2] = ["Error", "Options"];

/// How often each shared name is used, and where.
type Shared = BTreeMap<String, Vec<String>>;

/// What is wrong: names that spread, and entries that are out of date.
pub fn check() -> Result<Vec<String>, Failure> {
    let text = fs::read_to_string(tree::root().join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    Ok(compared(&allowed(&text)?, &shared()?))
}

/// Lowers the counts of the list to the truth. It raises none: a name that spreads stays a failure.
pub fn shrink() -> Result<(), Failure> {
    let path = tree::root().join(LIST);
    let mut list = allowed(&fs::read_to_string(&path).map_err(|error| format!("{LIST}: {error}"))?)?;
    let shared = shared()?;
    list.retain(|name, count| {
        *count = (*count).min(shared.get(name).map_or(0, Vec::len));
        *count > 1
    });
    let text: String = list.iter().map(|(name, count)| format!("{name} {count}\n")).collect();
    fs::write(path, text)?;
    println!("{LIST}: {} names", list.len());
    Ok(())
}

fn compared(allowed: &BTreeMap<String, usize>, shared: &Shared) -> Vec<String> {
    let mut said = Vec::new();
    for (name, places) in shared {
        let most = allowed.get(name).copied().unwrap_or(1);
        if places.len() > most {
            let places = places.join(", ");
            said.push(format!(
                "the public type name `{name}` is used {} times, {most} allowed: {places}",
                name_count(shared, name)
            ));
        }
    }
    for (name, most) in allowed {
        let count = name_count(shared, name);
        if count < *most {
            said.push(format!(
                "{LIST}: `{name} {most}` is out of date, it is used {count} times; run cargo xtask tidy --shrink"
            ));
        }
    }
    said
}

fn name_count(shared: &Shared, name: &str) -> usize {
    shared.get(name).map_or(1, Vec::len)
}

/// Reads the list: a name and a count on each line.
fn allowed(text: &str) -> Result<BTreeMap<String, usize>, Failure> {
    let entry = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    text.lines()
        .map(|line| entry(line).ok_or_else(|| format!("{LIST}: `{line}` is not a name and a count").into()))
        .collect()
}

/// The public type names of all crates that more than one type has.
fn shared() -> Result<Shared, Failure> {
    let mut found = Shared::new();
    for file in tree::files()?.into_iter().filter(is_source) {
        let text = fs::read_to_string(tree::root().join(&file))?;
        for (line, name) in types(code::without_tests(&text)) {
            found.entry(name.to_owned()).or_default().push(format!("{}:{line}", file.display()));
        }
    }
    found.retain(|name, places| places.len() > 1 && !CONVENTIONAL.contains(&name.as_str()));
    Ok(found)
}

fn is_source(file: &PathBuf) -> bool {
    let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
    let is_test = file.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"));
    matches!(parts.as_slice(), ["crates", _, "src", ..])
        && Path::new(file).extension().is_some_and(|ending| ending == "rs")
        && !is_test
        && !parts.contains(&"tests")
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

    fn shared(names: &[(&str, usize)]) -> Shared {
        names.iter().map(|(name, count)| ((*name).to_owned(), vec!["a.rs:1".to_owned(); *count])).collect()
    }

    #[test]
    fn public_types_are_found_and_others_are_not() {
        let source = "pub struct One<T>(T);\npub(crate) struct Two;\n    pub enum Three {\nstruct Four;\npub type Five = u8;\npub fn six() {}\n";
        let found: Vec<(usize, &str)> = types(source).collect();
        assert_eq!(found, [(1, "One"), (3, "Three"), (5, "Five")]);
    }

    #[test]
    fn a_name_that_spreads_fails_and_so_does_an_entry_out_of_date() {
        let list = allowed("Place 3\nState 4\nTurn 2\n").unwrap();
        let said = compared(&list, &shared(&[("Place", 4), ("State", 4), ("Found", 2)]));
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].starts_with("the public type name `Found` is used 2 times, 1 allowed"));
        assert!(said[1].starts_with("the public type name `Place` is used 4 times, 3 allowed"));
        assert!(said[2].contains("`Turn 2` is out of date, it is used 1 times"));
    }

    #[test]
    fn an_entry_that_is_not_a_name_and_a_count_is_refused() {
        assert!(allowed("Place\n").is_err() && allowed("Place many\n").is_err());
    }
}
