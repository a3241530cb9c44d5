//! The laws for every format and fixture, and for the corpus of real files if it is available: one test for every file.
//!
//! `STENO_UPDATE=1` writes the golden files; review them like code.

use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use stenograph::convert::{Carry, convert};
use stenograph::format::Format;
use stenograph::formats::FORMATS;
use stenograph::laws::{Effort, check};
use stenograph::model::{Note, NoteKind};
use stenograph::read;
use stenograph::wire;
use stenograph::{Detected, Registry};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let all: Vec<PathBuf> = FORMATS.iter().flat_map(|format| files(*format, "fixtures")).collect();
    for format in FORMATS {
        let fixtures = files(*format, "fixtures");
        let name = format.info().name;
        trials.push(trial(format!("{name}/has fixtures"), {
            let empty = fixtures.is_empty();
            move || if empty { Err("no fixture".into()) } else { Ok(()) }
        }));
        for path in fixtures {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let format = *format;
            let add = |law: &str| format!("{name}/{file}/{law}");
            trials.push(trial(add("golden"), {
                let path = path.clone();
                move || golden(format, &path)
            }));
            trials.push(trial(add("sole"), {
                let path = path.clone();
                move || sole(format, &path)
            }));
            if format.info().traits.lossy {
                trials.push(trial(add("losses"), {
                    let path = path.clone();
                    move || self_losses(format, &path)
                }));
            }
            trials.push(trial(add("native"), {
                let path = path.clone();
                move || native(format, &read_file(&path)?)
            }));
            trials.push(trial(add("laws"), move || laws(format, &read_file(&path)?, Effort { places: 64 })));
        }
        for path in files(*format, "hostile") {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let trying = move || laws(*format, &read_file(&path)?, Effort { places: 64 });
            trials.push(trial(format!("{name}/hostile {file}/laws"), trying));
        }
        let all = all.clone();
        trials.push(trial(format!("{name}/all that is not of this format"), move || strangers(*format, &all)));
    }
    trials.extend(corpus());
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: String, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, test)
}

/// The files of a format: its fixtures, or its hostile files: sources of no format, on which this format once broke a law.
fn files(format: &dyn Format, folder: &str) -> Vec<PathBuf> {
    let of = format.info().name.replace('-', "_");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/formats").join(of).join(folder);
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.retain(|path| !matches!(path.extension().and_then(|ending| ending.to_str()), Some("golden" | "losses")));
    found.sort();
    found
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failed> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn compare_golden(path: &Path, found: &str) -> Result<(), Failed> {
    if std::env::var_os("STENO_UPDATE").is_some() {
        return fs::write(path, found).map_err(|error| error.to_string().into());
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    let line = expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let show = |text: &str| text.lines().nth(line).unwrap_or("(end)").to_owned();
    Err(format!("{} line {}:\n  golden {}\n  found  {}", path.display(), line + 1, show(&expected), show(found)).into())
}

fn golden(format: &dyn Format, path: &Path) -> Result<(), Failed> {
    let found = read::all(format, &read_file(path)?);
    let events = found.events.iter().map(wire::event_at);
    let lines: Vec<String> = events.chain(found.notes.iter().map(wire::note)).collect();
    compare_golden(&beside(path, "golden"), &(lines.join("\n") + "\n"))
}

fn sole(format: &dyn Format, path: &Path) -> Result<(), Failed> {
    match Registry::built_in().detect(&read_file(path)?) {
        Detected::Format(found) if found.info().name == format.info().name => Ok(()),
        other => Err(format!("detected as {other:?}").into()),
    }
}

fn self_losses(format: &dyn Format, path: &Path) -> Result<(), Failed> {
    let source = read_file(path)?;
    let mut out = Vec::new();
    let outcome = stenograph::convert::rewrite_own(format, &mut source.as_slice(), &mut out)?;
    compare_golden(&beside(path, "losses"), &(outcome.losses.to_json() + "\n"))
}

fn laws(format: &'static dyn Format, source: &[u8], effort: Effort) -> Result<(), Failed> {
    let broken = check(format, source, effort);
    if broken.is_empty() {
        return Ok(());
    }
    let messages = broken.iter().map(|broken| {
        let line = broken.at.map_or(String::new(), |at| format!(" (line {}, byte {})", at.line, at.offset));
        format!("{}{line}: {}", broken.law, broken.what)
    });
    Err(messages.collect::<Vec<_>>().join("\n").into())
}

/// The laws hold for any bytes, including those of every other format.
fn strangers(format: &'static dyn Format, files: &[PathBuf]) -> Result<(), Failed> {
    for path in files {
        laws(format, &read_file(path)?, Effort { places: 2 }).map_err(|failed| {
            let message = failed.message().unwrap_or_default();
            Failed::from(format!("{}:\n{message}", path.display()))
        })?;
    }
    Ok(())
}

/// The formats of corpus folders. A file may be of another agent, but never of another format we read.
const FOLDERS: [(&str, &str); 5] = [
    ("claude-code/", "claude-code"),
    ("codex/", "codex"),
    ("cycod/", "openai-chat"),
    ("made/pi/", "pi"),
    ("pi/", "pi"),
];

/// Files that must be recognised: the beginning and the end of their paths in the corpus, and their format.
const FILES: &[(&str, &str, &str)] = &[
    ("atif/", "_atif.json", "atif"),
    ("made/harbor/", "trajectory.json", "atif"),
    ("cline/", "session.messages.json", "cline"),
    ("made/cline/", ".messages.json", "cline"),
    ("made/mini/", ".traj.json", "mini-swe-agent"),
    ("swe-agent/", ".traj", "swe-agent"),
    ("made/continue/", "9.json", "continue"),
    ("made/continue/", "c.json", "continue"),
    ("made/gptme/", "conversation.jsonl", "gptme"),
    ("made/grok/", "updates.jsonl", "grok"),
    ("made/grok/", "chat_history.jsonl", "grok-history"),
    ("made/openhands/", ".json", "openhands"),
    ("made/aider/", ".chat.history.md", "aider"),
    ("made/copilot/", "events.jsonl", "copilot"),
    ("made/droid/", ".jsonl", "droid"),
    ("gemini-cli/", ".json", "gemini-cli"),
    ("made/gemini/", ".jsonl", "gemini-cli"),
    ("qwen-code/", "chat-records.jsonl", "qwen-code"),
    ("qwen-code/", "serve-ab-session.jsonl", "qwen-code"),
    ("made/qwen/home/qwen/.qwen/projects/", ".jsonl", "qwen-code"),
    ("made/kimi/", "wire.jsonl", "kimi"),
    ("made/kimi/", "context.jsonl", "kimi-context"),
    ("made/kimicode/", "wire.jsonl", "kimi-code"),
];

/// Folders of agents that we do not read yet: their files must be unknown, not guessed.
const UNKNOWN: [&str; 4] = [
    "inspect/",
    "made/kimicode/home/kimicode/.kimi-code/session_index",
    "made/qwen/home/qwen/.qwen/usage_record",
    "otel-genai/",
];

/// Files in those folders that are not transcripts of the agent: they were made up for a test.
const STRANGERS: [&str; 1] = ["codex_session.jsonl"];

fn corpus() -> Vec<Trial> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let root = std::env::var_os("STENO_CORPUS").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        let required = std::env::var_os("CI").is_some();
        let missing = move || if required { Err("the corpus is missing".into()) } else { Ok(()) };
        return vec![trial("corpus/is at hand".into(), missing).with_ignored_flag(!required)];
    }
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    let name = |path: &Path| path.strip_prefix(&root).unwrap_or(path).to_string_lossy().into_owned();
    files
        .into_iter()
        .map(|path| {
            let name = name(&path);
            trial(format!("corpus/{name}"), move || corpus_file(&name, &path))
        })
        .collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { walk(&path, files) } else { files.push(path) }
    }
}

fn corpus_file(name: &str, path: &Path) -> Result<(), Failed> {
    let source = read_file(path)?;
    let stranger = source.is_empty() || STRANGERS.iter().any(|stranger| name.ends_with(stranger));
    let expected = FOLDERS.iter().find(|(folder, _)| name.starts_with(folder) && !stranger).map(|(_, format)| *format);
    let known = FILES.iter().find(|(begin, end, _)| name.starts_with(begin) && name.ends_with(end));
    let expected = known.map(|(_, _, format)| *format).or(expected);
    let format = match (Registry::built_in().detect(&source), expected) {
        (Detected::Tie(found), _) => return Err(format!("a tie: {found:?}").into()),
        (Detected::Format(found), Some(expected)) if found.info().name != expected => {
            return Err(format!("detected as {}, not {expected}", found.info().name).into());
        }
        (Detected::Format(found), _) if UNKNOWN.iter().any(|folder| name.starts_with(folder)) => {
            return Err(format!("guessed to be {}", found.info().name).into());
        }
        (Detected::Format(found), _) => found,
        (Detected::Unknown, Some(expected))
            if Registry::built_in().named(expected).is_some() && (known.is_some() || name.ends_with(".jsonl")) =>
        {
            return Err(format!("not recognised as {expected}").into());
        }
        (Detected::Unknown, _) => return Ok(()),
    };
    laws(format, &source, Effort { places: if source.len() > 64 << 10 { 6 } else { 16 } })?;
    if source.len() > 512 << 10 { Ok(()) } else { native(format, &source) }
}

/// A conversion to another format is accepted by that format's reader: it adds no notes.
fn native(format: &'static dyn Format, source: &[u8]) -> Result<(), Failed> {
    for to in Registry::built_in().targets().filter(|to| to.info().name != format.info().name) {
        let mut out = Vec::new();
        let outcome = convert(format, &mut { source }, to, &mut out, Carry::Omit)?;
        // Notes about a text apply wherever the text is written.
        let about_texts = [NoteKind::BadUtf8, NoteKind::LoneSurrogate, NoteKind::Ambiguous, NoteKind::OrphanResult];
        // Extra fields in a native stream return to their own format as they were, whether we know them or not.
        let returned = |note: &Note| format.info().name == "steno" && note.kind == NoteKind::UnknownType;
        let odd = |note: &&Note| !about_texts.contains(&note.kind) && !returned(note);
        if let Some(note) = outcome.output_notes.iter().find(odd) {
            let text = String::from_utf8_lossy(&out);
            let near: String = text.chars().skip(usize::try_from(note.at.offset).unwrap_or(0)).take(400).collect();
            return Err(format!("to {}: {}: {}\n  {near}", to.info().name, note.kind.name(), note.text).into());
        }
    }
    Ok(())
}
