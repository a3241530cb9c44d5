//! Updates the rules that find secrets from a set that a crate publishes: downloads the crate with cargo, keeps what redaction
//! needs, and writes one rule per line. The literals that a match can begin with are computed here, so that the library starts
//! quickly. No rule is entered by hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use serde_json::{Map, Value, json};
use toml_edit::{DocumentMut, Item, TableLike};

use crate::{Failure, tree};

/// The crate, its version, and the file in it.
const PACKAGE: &str = "secrets_scanner";
const VERSION: &str = "0.2.3";
const LIST: &str = "assets/gitleaks.toml";

/// Where the rules are.
const TABLE: &str = "crates/stenograph/src/redact/rules/gitleaks.jsonl";

/// The part of a rule that means "a name, an operator and a value".
const ASSIGNMENT: &str = r#"(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"#;

/// The pattern for text before the name. A search that starts at the name does not need it.
const BEFORE_NAME: &str = r"[\w.-]{0,50}?";

/// The pattern for text after a value. It lacks commas and brackets, which often follow secrets in conversations.
const TAIL: &str = r#"(?:[\x60'"\s;]|\\[nr]|$)"#;
const ASSIGNMENT_TAIL: &str = r#"(?:[\x60'"\s;,)\]}<>&\\]|$)"#;
const PREFIX_TAIL: &str = r"(?:\W|$)";

/// The shortest literal to search for.
const BEGINNING_MIN: usize = 2;

/// Where the rules come from.
#[derive(clap::Args)]
pub struct Options {
    /// Take the rules from this file instead of the crate
    #[arg(long, value_name = "TOML")]
    from: Option<PathBuf>,
}

/// Writes the rules and prints how many there are.
pub fn write(options: &Options) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = match &options.from {
        Some(path) => path.clone(),
        None => download(folder.path())?,
    };
    let document: DocumentMut = fs::read_to_string(&path)?.parse()?;
    let rules = document.get("rules").and_then(Item::as_array_of_tables).ok_or("no rules in this file")?;
    let allowed = document.get("allowlist").and_then(Item::as_table_like).map(allow).unwrap_or_default();
    let mut lines = vec![json!({ "source": format!("gitleaks, from {PACKAGE} {VERSION}"), "allow": allowed })];
    for table in rules {
        // A rule that applies only to certain files is useless for conversations.
        if table.contains_key("path") {
            continue;
        }
        lines.push(rule(table)?);
    }
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(tree::root().join(TABLE), text)?;
    println!("{} rules in {TABLE}", lines.len() - 1);
    Ok(())
}

/// Lets cargo unpack the crate below `folder`.
fn download(folder: &Path) -> Result<PathBuf, Failure> {
    let manifest = format!(
        "[package]\nname = \"rules\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n{PACKAGE} = \"={VERSION}\"\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest)?;
    fs::create_dir(folder.join("src"))?;
    fs::write(folder.join("src/lib.rs"), "")?;
    let vendored = Command::new("cargo").args(["vendor", "--quiet"]).current_dir(folder).output()?;
    if !vendored.status.success() {
        return Err(String::from_utf8_lossy(&vendored.stderr).into());
    }
    Ok(folder.join("vendor").join(PACKAGE).join(LIST))
}

fn rule(table: &dyn TableLike) -> Result<Value, Failure> {
    let text = |key: &str| table.get(key).and_then(Item::as_str).unwrap_or_default();
    let (id, given) = (text("id"), text("regex"));
    let is_assignment = given.contains(ASSIGNMENT);
    let pattern = match is_assignment {
        true => given.replace(BEFORE_NAME, "").replace(TAIL, ASSIGNMENT_TAIL),
        false => given.replace(TAIL, PREFIX_TAIL),
    };
    // Some rules accept a backslash before a slash. Redaction removes escapes first, and `\\n` would continue the secret.
    let pattern = pattern.replace(r"\/\\_", r"\/_");
    let keywords = strings(table, "keywords");
    let beginnings = beginnings(&pattern, &keywords)?;
    let shape = match (&beginnings, is_assignment) {
        (None, _) => "floating",
        (Some(_), true) => "assignment",
        (Some(_), false) => "prefix",
    };
    let mut line = Map::new();
    line.insert("id".into(), id.into());
    line.insert("shape".into(), shape.into());
    line.insert("begins".into(), beginnings.unwrap_or(keywords).into());
    line.insert("regex".into(), pattern.clone().into());
    let hir = parse(&pattern)?;
    line.insert("length".into(), hir.properties().minimum_len().unwrap_or(0).into());
    let solid = pattern.replace(PREFIX_TAIL, "").replace(ASSIGNMENT_TAIL, "");
    let is_solid =
        !is_assignment && ![r"\s", ".*", "[^", " ", r"\n", "'", "\""].iter().any(|part| solid.contains(part));
    line.insert("solid".into(), is_solid.into());
    let entropy = table.get("entropy").and_then(|item| item.as_float().or(item.as_integer().map(|whole| whole as f64)));
    if let Some(entropy) = entropy {
        line.insert("entropy".into(), entropy.into());
    }
    if let Some(group) = table.get("secretGroup").and_then(Item::as_integer) {
        line.insert("group".into(), group.into());
    }
    let lists = table.get("allowlists").and_then(Item::as_array_of_tables);
    let lists = lists.map(|lists| lists.iter().filter(|list| !list.contains_key("paths")).flat_map(|list| allow(list)));
    let lists: Vec<Value> = lists.into_iter().flatten().collect();
    if !lists.is_empty() {
        line.insert("allow".into(), lists.into());
    }
    Ok(Value::Object(line))
}

/// The part of an allow list that applies to the text of a secret.
fn allow(list: &dyn TableLike) -> Vec<Value> {
    let target = list.get("regexTarget").and_then(Item::as_str).unwrap_or("secret");
    let regexes: Vec<String> = strings(list, "regexes").iter().map(|regex| escaped_braces(regex)).collect();
    let stopwords = strings(list, "stopwords");
    if regexes.is_empty() && stopwords.is_empty() {
        return Vec::new();
    }
    vec![json!({ "target": target, "regexes": regexes, "stopwords": stopwords })]
}

/// The pattern with a backslash before each brace that repeats nothing: it is literal in Go, and an error in Rust.
fn escaped_braces(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut is_escaped = false;
    for (at, char) in pattern.char_indices() {
        let rest = pattern.get(at + char.len_utf8()..).unwrap_or_default();
        let count = rest.split_once('}').map_or("", |(count, _)| count);
        let is_count = count.starts_with(|char: char| char.is_ascii_digit())
            && count.chars().all(|char| char.is_ascii_digit() || char == ',');
        if char == '{' && !is_escaped && !is_count {
            out.push('\\');
        }
        is_escaped = char == '\\' && !is_escaped;
        out.push(char);
    }
    out
}

fn strings(table: &dyn TableLike, key: &str) -> Vec<String> {
    let array = table.get(key).and_then(Item::as_array);
    array.into_iter().flatten().filter_map(|value| value.as_str()).map(str::to_owned).collect()
}

fn parse(pattern: &str) -> Result<regex_syntax::hir::Hir, Failure> {
    Ok(ParserBuilder::new().unicode(false).utf8(false).build().parse(pattern)?)
}

/// The literals that a match can begin with, in lower case; `None` if they are unknown or too short to search for.
fn beginnings(pattern: &str, keywords: &[String]) -> Result<Option<Vec<String>>, Failure> {
    let hir = parse(pattern)?;
    let mut extractor = Extractor::new();
    extractor.kind(ExtractKind::Prefix).limit_total(4096).limit_class(64).limit_repeat(4);
    let sequence = extractor.extract(&hir);
    let Some(literals) = sequence.literals() else { return Ok(None) };
    let lower: BTreeSet<String> =
        literals.iter().map(|literal| String::from_utf8_lossy(literal.as_bytes()).to_lowercase()).collect();
    let agrees = |literal: &String, keyword: &String| keyword.starts_with(literal) || literal.starts_with(keyword);
    let shortest: Vec<String> =
        keywords.iter().filter(|word| lower.iter().any(|literal| agrees(literal, word))).cloned().collect();
    if !lower.is_empty() && lower.iter().all(|literal| shortest.iter().any(|word| agrees(literal, word))) {
        return Ok(Some(shortest));
    }
    let is_usable =
        !lower.is_empty() && lower.len() <= 32 && lower.iter().all(|literal| literal.len() >= BEGINNING_MIN);
    Ok(is_usable.then(|| lower.into_iter().collect()))
}
