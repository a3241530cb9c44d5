//! Chooses the real files to repeat, and the paths of their copies in the home folder. Systems without real files get sessions
//! that are converted from other systems. It reads the corpus and must not write anything.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use stenograph::Registry;
use stenograph::convert::{Carry, convert};

use super::copy::{Copy, hash};
use super::slots::{Kind, Slot, Vocabulary};
use crate::Failure;

/// A file to be repeated.
pub struct Source {
    pub bytes: Vec<u8>,
    pub slots: Vec<Slot>,
    /// Not zero if the file would otherwise have the path or the ids of another file.
    pub salt: u64,
    place: Place,
}

/// Where the copies of a file go.
enum Place {
    /// The name of the project's folder, and the path below it.
    Claude {
        project: String,
        below: String,
    },
    Codex {
        stamp: String,
        session: String,
    },
    Cycod,
    Chibi {
        name: String,
    },
    Devflow {
        run: String,
    },
    Leslie {
        thread: String,
    },
}

/// Of the files up to `WRITTEN_SIZE_MAX`, one in `WRITTEN_EVERY` is also converted for each system without real files.
const WRITTEN_SIZE_MAX: usize = 1 << 20;
const WRITTEN_EVERY: usize = 12;

/// The earliest time in the names of the system's files, in milliseconds since 1970; each file has a different one.
const CYCOD_MS: u64 = 1_754_437_373_970;

impl Source {
    /// The path of the file in a copy, relative to the root of the tree.
    pub fn path(&self, copy: &Copy, vocabulary: &Vocabulary) -> PathBuf {
        let spelled = |text: &str| {
            let mut out = Vec::new();
            copy.write(self.salt, text.as_bytes(), &vocabulary.slots(text.as_bytes()), &mut out);
            String::from_utf8(out).unwrap_or_default()
        };
        let number = copy.number;
        let path = match &self.place {
            Place::Claude { project, below } => format!(".claude/projects/{}/{}", spelled(project), spelled(below)),
            Place::Codex { stamp, session } => {
                let stamp = spelled(stamp);
                let day = stamp.get(..10).unwrap_or_default().replace('-', "/");
                format!(".codex/sessions/{day}/rollout-{}-{}.jsonl", stamp.replace(':', "-"), spelled(session))
            }
            Place::Cycod => {
                let time = CYCOD_MS + hash(&self.bytes) % 1_000_000 * 1_000 + number;
                format!(".cycod/history/chat-history-{time}.jsonl")
            }
            Place::Chibi { name } => format!(".chibi/contexts/{name}-{number}/transcript/active.jsonl"),
            Place::Devflow { run } => format!("work/engine/.devflow/runs/{}/transcript.json", spelled(run)),
            Place::Leslie { thread } => {
                format!(".leslie/threads/{thread}-{number}/.meta/transcripts/chat-{number}.txt")
            }
        };
        PathBuf::from(path)
    }

    /// Whether copies of the file will differ. Copies of a small file without ids and times would be identical.
    fn has_something_to_change(&self) -> bool {
        self.bytes.len() > SAME_SIZE_MAX || self.slots.iter().any(|slot| !matches!(slot.kind, Kind::Word(_)))
    }

    /// Whether the file name contains an id, which differs in every copy.
    fn is_named_by_id(&self, vocabulary: &Vocabulary) -> bool {
        match &self.place {
            Place::Claude { below, .. } => {
                let name = below.rsplit('/').next().unwrap_or_default();
                vocabulary.slots(name.as_bytes()).iter().any(|slot| !matches!(slot.kind, Kind::Word(_)))
            }
            Place::Codex { .. } | Place::Cycod | Place::Chibi { .. } | Place::Devflow { .. } | Place::Leslie { .. } => {
                true
            }
        }
    }
}

/// The files to repeat, in mixed order. Adds their words to the vocabulary.
pub fn sources(from: &Path, vocabulary: &mut Vocabulary) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for (folder, place) in [
        ("claude-code", claude as fn(&Path, &[u8]) -> Option<Place>),
        ("codex", codex),
        ("cycod", |_, _| Some(Place::Cycod)),
    ] {
        let folder = from.join(folder);
        let mut files = Vec::new();
        lines_below(&folder, &mut files)?;
        files.sort();
        for file in files {
            let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            let place = place(file.strip_prefix(&folder)?, &bytes);
            sources.extend(place.map(|place| Source { bytes, slots: Vec::new(), salt: 0, place }));
        }
    }
    let written = written(&sources)?;
    sources.extend(written);
    sources.sort_by_key(|source| hash(&source.bytes));
    sources.iter().for_each(|source| vocabulary.learn(&source.bytes));
    let (real, mut taken) = (Copy::new(0, 0, vocabulary), HashSet::new());
    for source in &mut sources {
        source.slots = vocabulary.slots(&source.bytes);
        while !taken.insert(source.path(&real, vocabulary)) && source.salt < SALT_MAX {
            source.salt += 1;
        }
    }
    sources.retain(|source| {
        source.salt < SALT_MAX && source.is_named_by_id(vocabulary) && source.has_something_to_change()
    });
    Ok(sources)
}

/// Files larger than this contain enough rare words to differ in every copy.
const SAME_SIZE_MAX: usize = 16 << 10;

/// The number of salts to try. If the path does not contain an id, no salt makes it unique, and the file is left out.
const SALT_MAX: u64 = 64;

fn lines_below(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            lines_below(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

/// The path of a session is its id in the folder of its project. A sub-agent is in the same folder or in a folder named by that
/// id.
fn claude(path: &Path, bytes: &[u8]) -> Option<Place> {
    let session = value(bytes, "\"sessionId\":\"").filter(|session| is_uuid(session))?;
    let path = path.to_string_lossy();
    let parts: Vec<&str> = path.split('/').collect();
    let (name, folders) = parts.split_last()?;
    let inner = folders.iter().position(|folder| *folder == "subagents").map(|inner| inner - 1);
    let (above, below) = folders.split_at(inner.unwrap_or(folders.len()));
    let project = match above.last()? {
        project if project.starts_with('-') => (*project).to_owned(),
        _ => format!("-home-ada-{}", above.join("-").replace(['+', '_', '.'], "-")),
    };
    let name = if name.starts_with("agent-") { (*name).to_owned() } else { format!("{session}.jsonl") };
    Some(Place::Claude { project, below: [below, &[name.as_str()]].concat().join("/") })
}

fn codex(_: &Path, bytes: &[u8]) -> Option<Place> {
    let session = value(bytes, "\"id\":\"").filter(|session| is_uuid(session))?;
    let stamp = value(bytes, "\"timestamp\":\"")?.get(..19)?.to_owned();
    Some(Place::Codex { stamp, session })
}

/// Sessions for the systems without real files.
fn written(sources: &[Source]) -> Result<Vec<Source>, Failure> {
    let mut written = Vec::new();
    let small = sources.iter().filter(|source| source.bytes.len() <= WRITTEN_SIZE_MAX && source.bytes.len() > 4096);
    for (number, source) in small.enumerate().filter(|(number, _)| number % WRITTEN_EVERY == 0) {
        let from = match &source.place {
            Place::Claude { .. } => "claude-code",
            Place::Codex { .. } => "codex",
            _ => continue,
        };
        let run = format!("5e55100a-0000-4000-8000-{number:012x}");
        for (to, place) in [
            ("chibi", Place::Chibi { name: format!("context{number}") }),
            ("devflow", Place::Devflow { run }),
            ("leslie", Place::Leslie { thread: format!("thread{number}") }),
        ] {
            let (Some(from), Some(to)) = (Registry::built_in().named(from), Registry::built_in().named(to)) else {
                return Err(format!("there is no format {from} or {to}").into());
            };
            let mut bytes = Vec::new();
            convert(from, &mut source.bytes.as_slice(), to, &mut bytes, Carry::Omit)?;
            // Without ids of its own, it would be a copy of the session it is converted from, which counts once.
            written.push(Source { bytes, slots: Vec::new(), salt: 1, place });
        }
    }
    Ok(written)
}

/// The text after the first occurrence of a key.
fn value(bytes: &[u8], key: &str) -> Option<String> {
    let start = bytes.windows(key.len()).position(|window| window == key.as_bytes())? + key.len();
    let rest = bytes.get(start..)?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    String::from_utf8(rest.get(..end)?.to_vec()).ok()
}

fn is_uuid(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match byte {
            b'-' => hyphens.contains(&at),
            byte => !hyphens.contains(&at) && matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        })
}
