//! Chooses queries: rare and common words from a sample of the files in the tree. The same tree gives the same queries. It must
//! not search.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::in_process::Order;
use crate::Failure;

/// One kind of query.
pub struct Kind {
    pub name: &'static str,
    pub order: Order,
    pub queries: Vec<Query>,
}

/// A query, and the equivalent plain scan if there is one.
pub struct Query {
    pub text: String,
    pub scan: Option<Scan>,
}

/// The text or pattern of a plain scan.
#[derive(Clone)]
pub enum Scan {
    Text(String),
    Pattern(String),
}

/// The largest number of files in the sample, and how many bytes of each are read.
const FILES_MAX: usize = 240;
const FILE_PART: u64 = 192 << 10;

/// The largest number of queries of a kind.
const QUERIES: usize = 8;

/// The words and names in a sample of the tree, with the number of occurrences.
#[derive(Default)]
struct Sample {
    words: HashMap<String, u32>,
    pairs: HashMap<String, u32>,
    /// Pairs of adjacent Chinese characters.
    characters: HashMap<String, u32>,
    files: HashMap<String, u32>,
    tools: HashMap<String, u32>,
}

/// The kinds of query over a tree.
pub fn kinds(tree: &Path) -> Result<Vec<Kind>, Failure> {
    let sample = sample(tree)?;
    let (common, rare) = (most_frequent(&sample.words, 2 * QUERIES), words_met_once(&sample.words));
    let (characters, files) = (most_frequent(&sample.characters, QUERIES), most_frequent(&sample.files, QUERIES));
    let tool = most_frequent(&sample.tools, 1).pop().unwrap_or_default();
    let twos = || common.iter().zip(common.iter().skip(QUERIES));
    let text = |word: &String| Some(Scan::Text(word.clone()));
    let pattern = |pattern: String| Some(Scan::Pattern(pattern));
    let (singles, pairs) = (chinese_singles(&characters), most_frequent(&sample.pairs, QUERIES));
    use Order::{Best, Newest};
    let kinds = [
        (Best, "rare word", queries(&rare, |word| (word.clone(), text(word)))),
        (Best, "common word", queries(&common, |word| (word.clone(), text(word)))),
        (Newest, "common word, newest", queries(&common, |word| (word.clone(), None))),
        (Best, "two words", queries(twos(), |(one, other)| (format!("{one} {other}"), None))),
        (
            Best,
            "either word",
            queries(twos(), |(one, other)| (format!("{one} OR {other}"), pattern(format!("{one}|{other}")))),
        ),
        (Best, "phrase", queries(&pairs, |pair| (format!("\"{pair}\""), text(pair)))),
        (Best, "prefix", queries(&rare, |word| (format!("{}*", start(word)), pattern(format!("\\b{}", start(word)))))),
        (Best, "fuzzy", queries(&rare, |word| (format!("{}~", misspelt(word)), None))),
        (Best, "Chinese, 2 characters", queries(&characters, |word| (word.clone(), text(word)))),
        (Best, "Chinese, 1 character", queries(&singles, |word| (word.clone(), text(word)))),
        (Best, "tool and word", queries(&common, |word| (format!("tool:{tool} {word}"), None))),
        (Best, "file", queries(&files, |file| (format!("file:{file}"), None))),
        (
            Best,
            "narrowed pattern",
            queries(&rare, |word| {
                let regex = format!("{}[a-z_]+", start(word));
                (format!("{word} /{regex}/"), pattern(regex))
            }),
        ),
        (Best, "one without another", queries(twos(), |(one, other)| (format!("{one} -{other}"), None))),
    ];
    Ok(kinds.into_iter().map(|(order, name, queries)| Kind { name, order, queries }).collect())
}

fn queries<T>(from: impl IntoIterator<Item = T>, make: impl Fn(T) -> (String, Option<Scan>)) -> Vec<Query> {
    let made = from.into_iter().take(QUERIES).map(make);
    made.map(|(text, scan)| Query { text, scan }).collect()
}

/// Samples the tree: evenly spaced files, and the first part of each.
fn sample(tree: &Path) -> Result<Sample, Failure> {
    let mut files = Vec::new();
    files_below(tree, &mut files)?;
    files.sort();
    let mut sample = Sample::default();
    let step = files.len().div_ceil(FILES_MAX).max(1);
    for file in files.iter().step_by(step) {
        let mut bytes = Vec::new();
        File::open(file)?.take(FILE_PART).read_to_end(&mut bytes)?;
        sample.add(&String::from_utf8_lossy(&bytes));
    }
    Ok(sample)
}

/// All files of a folder and the folders in it.
pub fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files_below(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

impl Sample {
    fn add(&mut self, text: &str) {
        // Take only the text of messages: nobody searches for keys and ids.
        for message in after(text, "\"text\":\"").chain(after(text, "\"content\":\"")) {
            let mut last: Option<&str> = None;
            for word in message.split(|character: char| !character.is_ascii_lowercase()) {
                if word.len() < 4 {
                    last = None;
                    continue;
                }
                *self.words.entry(word.to_owned()).or_default() += 1;
                if let Some(last) = last.filter(|last| message.contains(&format!("{last} {word}"))) {
                    *self.pairs.entry(format!("{last} {word}")).or_default() += 1;
                }
                last = Some(word);
            }
            let mut last = None;
            for character in message.chars() {
                let chinese = ('\u{4e00}'..='\u{9fff}').contains(&character);
                if let (true, Some(last)) = (chinese, last) {
                    *self.characters.entry(format!("{last}{character}")).or_default() += 1;
                }
                last = chinese.then_some(character);
            }
        }
        for path in after(text, "\"file_path\":\"") {
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && name.len() > 3 {
                *self.files.entry(name.to_owned()).or_default() += 1;
            }
        }
        for name in after(text, "\"type\":\"tool_use\",\"id\":\"").filter_map(|id| text_after(text, id, "\"name\":\""))
        {
            *self.tools.entry(name.to_owned()).or_default() += 1;
        }
    }
}

/// The string value after each occurrence of a key.
fn after<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(key).map(move |(at, key)| {
        let rest = text.get(at + key.len()..).unwrap_or_default();
        let end = rest
            .match_indices('"')
            .map(|(end, _)| end)
            .find(|end| !rest.get(..*end).unwrap_or_default().ends_with('\\'));
        rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
    })
}

/// The string value after a key, if the key follows `piece` closely; `piece` is a part of `text`.
fn text_after<'a>(text: &'a str, piece: &'a str, key: &'a str) -> Option<&'a str> {
    let start = piece.as_ptr() as usize - text.as_ptr() as usize + piece.len();
    let (between, value) = text.get(start..)?.split_once(key)?;
    if between.len() > CLOSE {
        return None;
    }
    value.split_once('"').map(|(value, _)| value)
}

/// The largest distance between two keys of one block.
const CLOSE: usize = 40;

/// The most frequent entries; entries with equal counts in alphabetical order.
fn most_frequent(counts: &HashMap<String, u32>, count: usize) -> Vec<String> {
    let mut entries: Vec<(&String, &u32)> = counts.iter().collect();
    entries.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
    entries.into_iter().take(count).map(|(entry, _)| entry.clone()).collect()
}

/// Long words that occur once, evenly spaced in the alphabet.
fn words_met_once(words: &HashMap<String, u32>) -> Vec<String> {
    let once = words.iter().filter(|(word, count)| **count == 1 && (8..=14).contains(&word.len()));
    let mut once: Vec<String> = once.map(|(word, _)| word.clone()).collect();
    once.sort();
    let step = (once.len() / QUERIES).max(1);
    once.into_iter().step_by(step).take(QUERIES).collect()
}

fn chinese_singles(characters: &[String]) -> Vec<String> {
    characters.iter().filter_map(|pair| pair.chars().next()).map(String::from).collect()
}

fn start(word: &str) -> &str {
    word.get(..5).unwrap_or(word)
}

/// The word without its middle letter.
fn misspelt(word: &str) -> String {
    let middle = word.len() / 2;
    word.char_indices().filter(|(at, _)| *at != middle).map(|(_, letter)| letter).collect()
}

#[cfg(test)]
mod tests {
    use super::{Sample, misspelt};

    #[test]
    fn a_sample_knows_words_pairs_files_and_tools() {
        let mut sample = Sample::default();
        sample.add(
            r#"{"content":[{"type":"text","text":"turn that \"wheel\" again 问题"},{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/a/wheel.rs"}}]}"#,
        );
        assert_eq!(sample.words.get("wheel"), Some(&1));
        assert_eq!(sample.pairs.get("turn that"), Some(&1));
        assert_eq!(sample.characters.get("问题"), Some(&1));
        assert_eq!(sample.files.get("wheel.rs"), Some(&1));
        assert_eq!(sample.tools.get("Read"), Some(&1));
    }

    #[test]
    fn a_misspelt_word_lacks_one_letter() {
        assert_eq!(misspelt("governor"), "govenor");
    }
}
