//! `cargo xtask new-format`: copies the format template under a new name. The tests of the library check the template against
//! the laws.

use std::fs;
use std::path::Path;

use stenograph::Registry;

use crate::{Failure, tree};

/// The name of the template, and its folder in `formats/`.
pub const TEMPLATE: (&str, &str) = ("format-template", "format_template");

/// The files of the template that a new format begins with.
const FILES: [&str; 6] =
    ["mod.rs", "read.rs", "write.rs", "README.md", "fixtures/demo.jsonl", "fixtures/demo.jsonl.golden"];

/// Writes the folder of a new format and its line in `formats/mod.rs`.
pub fn new_format(name: &str) -> Result<(), Failure> {
    if Registry::built_in().named(name).is_some() {
        return Err(format!("the format {name} exists already").into());
    }
    create(&tree::formats(), name)?;
    println!("wrote crates/stenograph/src/formats/{}, and its line in formats/mod.rs", name.replace('-', "_"));
    println!("next: `cargo test --workspace --test conformance -- {name}` checks it; change the files into the format");
    println!("      then `cargo xtask gen` writes the documents");
    Ok(())
}

/// Writes a new format into a folder of formats.
fn create(formats: &Path, name: &str) -> Result<(), Failure> {
    let is_good = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    if !name.starts_with(|char: char| char.is_ascii_lowercase()) || !name.chars().all(is_good) {
        let hint = "use lowercase letters, digits and hyphens, as in `my-agent`";
        return Err(format!("{name:?} cannot be the name of a format\nhint: {hint}").into());
    }
    let (template, folder) = (formats.join(TEMPLATE.1), formats.join(name.replace('-', "_")));
    if folder.exists() {
        return Err(format!("{}: exists already", folder.display()).into());
    }
    let list = formats.join("mod.rs");
    let registered = register(&fs::read_to_string(&list)?, name).ok_or("formats/mod.rs has no list FORMATS")?;
    let files: Vec<(&str, String)> = FILES
        .iter()
        .map(|file| Ok((*file, renamed(&fs::read_to_string(template.join(file))?, name))))
        .collect::<Result<_, std::io::Error>>()?;
    fs::create_dir_all(folder.join("fixtures"))?;
    for (file, text) in files {
        fs::write(folder.join(file), text)?;
    }
    fs::write(&list, registered)?;
    Ok(())
}

/// A file of the template under another name. Removes the declaration of its tests, and corrects the length of the record in
/// the golden.
fn renamed(text: &str, name: &str) -> String {
    let old_length =
        text.rsplit_once("\"length\":").and_then(|(_, rest)| rest.split('}').next()?.parse::<usize>().ok());
    let text = text.trim_end_matches("\n#[cfg(test)]\nmod tests;\n").to_owned();
    let text = match old_length {
        Some(length) => {
            let now = length + name.len() - TEMPLATE.0.len();
            text.replace(&format!("\"length\":{length}}}"), &format!("\"length\":{now}}}"))
        }
        None => text,
    };
    text.replace(TEMPLATE.0, name).replace(&type_name(TEMPLATE.0), &type_name(name))
}

fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    name.split('-').map(word).collect()
}

/// `formats/mod.rs` with one more format: a module in alphabetical order, and a last entry in the list.
fn register(list: &str, name: &str) -> Option<String> {
    let module = name.replace('-', "_");
    let mut out = String::new();
    let mut declared = false;
    let mut lines = list.lines().peekable();
    while let Some(line) = lines.next() {
        let is_before = line.strip_prefix("pub mod ").is_some_and(|other| *other > *format!("{module};"));
        if !declared && is_before {
            out.push_str(&format!("pub mod {module};\n"));
            declared = true;
        }
        out.push_str(line);
        out.push('\n');
        let last = line.starts_with("pub mod ") && !lines.peek().is_some_and(|next| next.starts_with("pub mod "));
        if !declared && last {
            out.push_str(&format!("pub mod {module};\n"));
            declared = true;
        }
    }
    let start = out.find("FORMATS: ")?;
    let open = start + out.get(start..)?.find("= &[")? + "= &[".len();
    let end = open + out.get(open..)?.find("];")?;
    let entry = format!("&{module}::{}", type_name(name));
    let entries = out.get(open..end)?;
    let with = if entries.contains('\n') {
        format!("{}    {entry},\n", entries.trim_end_matches(' '))
    } else {
        let one_line = format!("{entries}, {entry}");
        // The formatter breaks the list when it is wider than a line.
        if one_line.len() + "pub static FORMATS: &[&dyn Format] = &[];".len() <= 120 {
            one_line
        } else {
            let broken: Vec<String> = one_line.split(", ").map(|entry| format!("    {entry},\n")).collect();
            format!("\n{}", broken.concat())
        }
    };
    out.replace_range(open..end, &with);
    declared.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "//! Head.\n\npub mod chibi;\npub mod steno;\n\n/// All.\npub static FORMATS: &[&dyn Format] = &[&steno::Steno];\n";

    #[test]
    fn a_format_is_registered_in_its_place() {
        let found = register(LIST, "my-agent").unwrap();
        assert!(found.contains("pub mod chibi;\npub mod my_agent;\npub mod steno;\n"), "{found}");
        assert!(found.ends_with("= &[&steno::Steno, &my_agent::MyAgent];\n"), "{found}");
        let found = register(LIST, "zed").unwrap();
        assert!(found.contains("pub mod steno;\npub mod zed;\n"), "{found}");
    }

    #[test]
    fn a_long_list_grows_by_a_line() {
        let list = LIST.replace("&[&steno::Steno];", "&[\n    &steno::Steno,\n];");
        let found = register(&list, "my-agent").unwrap();
        assert!(found.ends_with("&[\n    &steno::Steno,\n    &my_agent::MyAgent,\n];\n"), "{found}");
    }

    /// The tests of the library check that the template compiles and obeys the laws, so a copy does too if only names differ.
    #[test]
    fn a_new_format_is_the_template_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let formats = folder.path();
        fs::create_dir_all(formats.join(TEMPLATE.1).join("fixtures")).unwrap();
        fs::copy(tree::formats().join("mod.rs"), formats.join("mod.rs")).unwrap();
        for file in FILES {
            fs::copy(tree::formats().join(TEMPLATE.1).join(file), formats.join(TEMPLATE.1).join(file)).unwrap();
        }
        create(formats, "zed").unwrap();
        assert!(create(formats, "zed").is_err() && create(formats, "Zed").is_err() && create(formats, "").is_err());
        let read = |file: &str| fs::read_to_string(formats.join("zed").join(file)).unwrap();
        let list = fs::read_to_string(formats.join("mod.rs")).unwrap();
        assert!(list.contains("pub mod zed;\n") && list.contains("    &zed::Zed,\n"), "{list}");
        let record = read("fixtures/demo.jsonl");
        let golden = read("fixtures/demo.jsonl.golden");
        assert!(golden.ends_with(&format!("\"length\":{}}}}}\n", record.trim_end().len())), "{golden}");
        for file in FILES {
            assert!(!read(file).contains("emplate"), "{file}");
        }
        assert!(read("mod.rs").contains("impl Format for Zed {") && !read("mod.rs").contains("mod tests"));
    }

    #[test]
    fn names_become_types() {
        assert_eq!(type_name("my-agent2"), "MyAgent2");
    }
}
