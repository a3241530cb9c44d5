//! The beginning of a new format: a folder that compiles and keeps the laws, to be changed into what the format really is.

use std::fs;

use stenograph::Registry;

use crate::{Failure, tree};

/// Writes the folder of a new format and its line in `formats/mod.rs`.
pub fn new_format(name: &str) -> Result<(), Failure> {
    let good = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    if !name.starts_with(|char: char| char.is_ascii_lowercase()) || !name.chars().all(good) {
        return Err(format!(
            "{name:?} is no name for a format\nhint: small letters, digits and hyphens, as in `my-agent`"
        )
        .into());
    }
    let module = name.replace('-', "_");
    let folder = tree::formats().join(&module);
    if Registry::built_in().named(name).is_some() || folder.exists() {
        return Err(format!("there is a format {name} already").into());
    }
    let list = tree::formats().join("mod.rs");
    let registered = register(&fs::read_to_string(&list)?, name).ok_or("formats/mod.rs has no list FORMATS")?;
    fs::create_dir_all(folder.join("fixtures"))?;
    let templates = [
        ("mod.rs", include_str!("template/mod.rs.txt")),
        ("read.rs", include_str!("template/read.rs.txt")),
        ("write.rs", include_str!("template/write.rs.txt")),
        ("README.md", include_str!("template/README.md.txt")),
        ("fixtures/demo.jsonl", include_str!("template/demo.jsonl.txt")),
    ];
    for (file, template) in templates {
        fs::write(folder.join(file), fill(template, name))?;
    }
    fs::write(&list, registered)?;
    println!("wrote crates/stenograph/src/formats/{module}, and its line in formats/mod.rs");
    println!("next: `STENO_UPDATE=1 cargo test -p stenograph --test conformance {name}` writes the golden; read it");
    println!("      then `cargo xtask gen`");
    Ok(())
}

fn fill(template: &str, name: &str) -> String {
    template.replace("@NAME@", name).replace("@TYPE@", &type_name(name))
}

fn type_name(name: &str) -> String {
    let word = |word: &str| {
        let mut chars = word.chars();
        chars.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + chars.as_str())
    };
    name.split('-').map(word).collect()
}

/// `formats/mod.rs` with one more format: a module in its place, and a last entry in the list.
fn register(list: &str, name: &str) -> Option<String> {
    let module = name.replace('-', "_");
    let mut out = String::new();
    let mut declared = false;
    let mut lines = list.lines().peekable();
    while let Some(line) = lines.next() {
        let stands_before = line.strip_prefix("pub mod ").is_some_and(|other| *other > *format!("{module};"));
        if !declared && stands_before {
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
        // The formatter breaks the list when it grows over the width.
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

    #[test]
    fn names_become_types() {
        assert_eq!(type_name("my-agent2"), "MyAgent2");
    }
}
