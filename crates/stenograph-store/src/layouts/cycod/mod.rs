//! CycoD's layout: a chat history, and a trajectory for people. CycoD saves both in its history folder by default, and also
//! where the user asks for them. See `README.md` beside this file. `document.rs` writes one document, `plan.rs` decides which
//! documents there are; `systems/cycod/` continues a conversation.

mod body;
mod complete;
mod document;
mod plan;
#[cfg(test)]
mod tests;
mod title;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stenograph::convert::{self, Carry};
use stenograph::format::Format;
use stenograph::formats::{cycod_trajectory::CycodTrajectory, openai_chat::OpenaiChat};
use stenograph::model::{Body, Content, Event};
use stenograph::{Detected, Registry};

use super::{
    ContinuedConversation, Documents, Environment, FinishedDocuments, Layout, LayoutInfo, LockedJournal,
    OpenedRecording, StatedFields, Target, appended,
};
use crate::document::measure;
use crate::error::{Error, Problem};
use crate::files::{Files, folder_of, replace};
use crate::identity::is_same;
use crate::journal::{Recording, RecordingHeader};
use crate::recover;
use crate::source::{Passes, Source};
use crate::tail::Warning;
use document::CycodDocument;
use plan::{DocumentPlan, DocumentRole, PlannedDocument};

/// The layout.
pub struct CycodLayout;

/// The name of the layout.
const NAME: &str = "cycod";

/// The format of a chat history.
pub fn chat_format() -> &'static dyn Format {
    DocumentKind::Chat.format()
}

/// Whether a format is that of a chat history.
pub fn is_chat(format: &dyn Format) -> bool {
    format.info().name == DocumentKind::Chat.format_name()
}

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    /// Messages, one per line.
    Chat,
    /// Markdown for people.
    Trajectory,
}

impl DocumentKind {
    pub(crate) fn format(self) -> &'static dyn Format {
        match self {
            DocumentKind::Chat => &OpenaiChat,
            DocumentKind::Trajectory => &CycodTrajectory,
        }
    }

    fn format_name(self) -> &'static str {
        self.format().info().name
    }

    /// The kind of a file by its name: Markdown is a trajectory, everything else a chat history.
    fn of(path: &Path) -> DocumentKind {
        match path.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("md") => DocumentKind::Trajectory,
            _ => DocumentKind::Chat,
        }
    }
}

impl Layout for CycodLayout {
    fn info(&self) -> &'static LayoutInfo {
        &LayoutInfo {
            name: NAME,
            agent: "cycod",
            title: "CycoD's chat history and trajectory, also saved in ~/.cycod/history",
            path: "the chat history, or the trajectory if it ends in .md; in a folder, chat-history-{time}.jsonl; may contain \
                   {fileName} {filePath} {fileBase} {fileExt} {timeStamp} {time}",
            keys: &[
                ("title", "the title of the conversation"),
                (plan::AUTO_SAVE_CHAT, "true or false: also save the chat history in ~/.cycod/history"),
                (plan::AUTO_SAVE_TRAJECTORY, "true or false: also save the trajectory there"),
            ],
        }
    }

    fn open(&self, target: &Target, environment: &Environment) -> Result<OpenedRecording, Error> {
        let DocumentPlan { asked, saved, mut warnings } = DocumentPlan::new(target, environment)?;
        let files = &environment.files;
        let mut documents = Vec::new();
        let mut journal_lock = None;
        let mut in_place = false;
        if let Some(path) = &asked {
            // Taken first: another recorder may be in the middle of a line, or have left half of one.
            journal_lock = Some(LockedJournal::of_journal(&recover::journal_path(path), environment)?);
            in_place = target.load.as_deref().is_some_and(|load| is_same(load, path));
            let kind = DocumentKind::of(path);
            let (base, warning) = CycodDocument::base(files, path, kind)?;
            warnings.extend(warning);
            if base > 0 && !in_place {
                warnings.push(appended(path));
            }
            documents.push(SavedDocument {
                role: DocumentRole::Asked,
                document: CycodDocument::new(files, path, kind, base),
            });
        }
        for PlannedDocument { path, kind, role } in saved {
            let load = target.load.as_deref().filter(|_| in_place);
            match save(files, &path, kind, load) {
                Ok(document) => documents.push(SavedDocument { role, document }),
                Err(error) if !documents.is_empty() => warnings.push(Warning::new(&path, not_saved(&error))),
                Err(error) => return Err(error),
            }
        }
        let journal_lock = match (journal_lock, documents.first()) {
            (Some(journal_lock), _) => journal_lock,
            (None, Some(first)) => {
                LockedJournal::of_journal(&recover::journal_path(first.document.path()), environment)?
            }
            (None, None) => return Err(Error::about(Path::new(NAME), Problem::NoLayout)),
        };
        let header = header(&journal_lock.journal, target, &documents)?;
        documents.iter_mut().for_each(|kept| kept.document.begin());
        let mut opened = OpenedRecording::new(
            journal_lock,
            header,
            Box::new(CycodDocuments { documents, files: Arc::clone(files) }),
        );
        opened.continued = if in_place { ContinuedConversation::InPlace } else { ContinuedConversation::ToBeRecorded };
        opened.first = target.settings.get("title").map(|text| title(text)).into_iter().collect();
        opened.warnings = warnings;
        Ok(opened)
    }

    fn resume(&self, recorded: &Recording, environment: &Environment) -> Result<Box<dyn Documents>, Error> {
        let mut documents = Vec::new();
        for role in DocumentRole::ALL {
            let Some(name) = recorded.header.settings.get(role.name()) else { continue };
            let path = recorded.document(name);
            // The journal completes the file that it is named after, and transcripts.
            let is_transcript = path.extension().is_some_and(|ending| ending == "jsonl" || ending == "md");
            if !recorded.is_named_after(name) && !is_transcript {
                return Err(Error::about(&path, Problem::Outside));
            }
            let kind = match role {
                DocumentRole::Asked => DocumentKind::of(&path),
                DocumentRole::SavedChat => DocumentKind::Chat,
                DocumentRole::SavedTrajectory => DocumentKind::Trajectory,
            };
            let base = recorded.header.documents.get(name).copied().unwrap_or(0);
            documents.push(SavedDocument { role, document: CycodDocument::new(&environment.files, &path, kind, base) });
        }
        if documents.is_empty() {
            return Err(Error::about(&recorded.journal, Problem::NoLayout));
        }
        Ok(Box::new(CycodDocuments { documents, files: Arc::clone(&environment.files) }))
    }

    fn folders(&self, journal: &Path, _named: Option<&Path>, environment: &Environment) -> Vec<PathBuf> {
        let history = environment.home.as_ref().map(|home| home.join(plan::HISTORY));
        std::iter::once(folder_of(journal).to_owned()).chain(history).collect()
    }

    fn files_to_read(&self, folder: &Path, files: &dyn Files) -> Option<Vec<PathBuf>> {
        let names = files.list(folder).ok()?;
        let is_ours = |path: &&PathBuf| is_history(path) || is_lone_trajectory(path, &names) || is_journal(path, files);
        let mut found: Vec<PathBuf> = names.iter().filter(is_ours).cloned().collect();
        // A file beside its journal is part of the recording, whatever its name.
        let journals =
            found.iter().filter(|path| path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION));
        let documents: Vec<PathBuf> = journals.map(|journal| journal.with_extension("")).collect();
        found.extend(documents.into_iter().filter(|path| names.contains(path)));
        found.sort();
        found.dedup();
        Some(found).filter(|found| !found.is_empty())
    }
}

/// Whether a file is a journal of this layout, by its first line.
fn is_journal(path: &Path, files: &dyn Files) -> bool {
    const HEADER_SIZE_MAX: u64 = 64 << 10;
    let mut line = Vec::new();
    path.extension().is_some_and(|ending| ending == recover::JOURNAL_EXTENSION)
        && files.reader(path, 0).is_ok_and(|file| file.take(HEADER_SIZE_MAX).read_to_end(&mut line).is_ok())
        && line.split(|byte| *byte == b'\n').next().is_some_and(|line| {
            let layout = format!("\"layout\":\"{NAME}\"");
            String::from_utf8_lossy(line).contains(&layout)
        })
}

/// Whether a trajectory has no chat history beside it: both have the same time in their names.
fn is_lone_trajectory(path: &Path, names: &[PathBuf]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(moment) = name.strip_prefix("trajectory-").and_then(|rest| rest.strip_suffix(".md")) else { return false };
    !names.contains(&path.with_file_name(format!("chat-history-{moment}.jsonl")))
}

fn title(text: &str) -> Event<'static> {
    Event::new(Body::Fact { fact: "title".into(), content: Some(Content::text(text.to_owned())) })
}

fn not_saved(error: &Error) -> String {
    // The path is already part of the message.
    let error = error.to_string();
    let why = error.rsplit_once(": ").map_or(error.as_str(), |(_, why)| why);
    format!("is not saved: {why}")
}

/// The journal's first line: the documents, by path relative to the journal's folder, and how much of each is not ours.
fn header(journal: &Path, target: &Target, documents: &[SavedDocument]) -> Result<RecordingHeader, Error> {
    let mut settings = target.settings.clone();
    let mut lengths = BTreeMap::new();
    for SavedDocument { role, document } in documents {
        let path = document.path();
        let name = if folder_of(path) == folder_of(journal) { path.file_name().map(Path::new) } else { None };
        let absolute = std::path::absolute(path).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
        let name = name.unwrap_or(&absolute).to_str().ok_or_else(|| Error::about(path, Problem::BadName))?;
        settings.insert(role.name().to_owned(), name.to_owned());
        lengths.insert(name.to_owned(), document.others());
    }
    Ok(RecordingHeader { layout: NAME.to_owned(), settings, documents: lengths })
}

/// Creates a document that is saved by default. It includes the conversation that is continued.
fn save(files: &Arc<dyn Files>, path: &Path, kind: DocumentKind, load: Option<&Path>) -> Result<CycodDocument, Error> {
    let path = plan::claim(files, path, kind)?;
    let base = load.map_or(Ok(0), |load| seed(files, &path, kind, load))?;
    Ok(CycodDocument::new(files, &path, kind, base))
}

/// Fills a document with the conversation that is continued. Returns its size.
fn seed(files: &Arc<dyn Files>, path: &Path, kind: DocumentKind, load: &Path) -> Result<u64, Error> {
    let bytes = Source::open(load, Passes::Once)?.read_whole(SEED_SIZE_MAX)?;
    let mut made = Vec::new();
    match Registry::built_in().detect(&bytes) {
        Detected::Format(from) => {
            let converted = convert::convert(from, &mut bytes.as_slice(), kind.format(), &mut made, Carry::Omit);
            converted.map_err(|error| Error::at(load, Problem::Unreadable, error.into()))?;
        }
        Detected::Tie(_) | Detected::Unknown => {}
    }
    replace(files.as_ref(), path, &made).map_err(|error| Error::at(path, Problem::Unwritable, error))?;
    Ok(CycodDocument::base(files, path, kind)?.0)
}

/// A larger conversation is not copied into the history folder: its own file has it.
const SEED_SIZE_MAX: u64 = 256 << 20;

/// The documents of a recording.
struct CycodDocuments {
    documents: Vec<SavedDocument>,
    files: Arc<dyn Files>,
}

struct SavedDocument {
    role: DocumentRole,
    document: CycodDocument,
}

impl Drop for CycodDocuments {
    fn drop(&mut self) {
        // A recording without events leaves no empty files that the user did not ask for.
        for SavedDocument { role, document } in &self.documents {
            if *role != DocumentRole::Asked && document.is_claimed_only() {
                let _ = self.files.remove(document.path());
            }
        }
    }
}

impl Documents for CycodDocuments {
    fn add(&mut self, event: &Event<'_>) {
        self.documents.iter_mut().for_each(|kept| kept.document.add(event));
    }

    fn finish(&mut self, recorded: &Recording, given: StatedFields) -> Result<FinishedDocuments, Error> {
        let mut finished =
            FinishedDocuments { journal: super::JournalNeed::Needed, written: Vec::new(), warnings: Vec::new() };
        for (at, SavedDocument { document, .. }) in self.documents.iter_mut().enumerate() {
            let path = document.path().to_owned();
            match document.finish(recorded) {
                Ok(warnings) => finished.warnings.extend(warnings),
                // A failure in a default document must not prevent the requested one.
                Err(error) if at > 0 => {
                    finished.warnings.push(Warning::new(&path, not_saved(&error)));
                    continue;
                }
                Err(error) => return Err(error),
            }
            finished.written.push(path);
        }
        if let Some(SavedDocument { document, .. }) = self.documents.first() {
            // A document whose format cannot be detected is useless without the journal.
            if document.is_recognised() {
                finished.journal = measure(recorded, document.measured()?, given)?;
            }
        }
        finished.written.retain(|path| {
            let kept = self.documents.iter().find(|kept| kept.document.path() == path);
            kept.is_some_and(|SavedDocument { role, document }| match role {
                DocumentRole::Asked => document.exists(),
                DocumentRole::SavedChat | DocumentRole::SavedTrajectory => !document.is_claimed_only(),
            })
        });
        Ok(finished)
    }
}

/// Whether a file is named as CycoD names its chat histories, those it saves in its last moment included.
pub(crate) fn is_history(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let begins = ["chat-history", "exception-chat-history"].iter().any(|start| name.starts_with(start));
    begins && name.ends_with(".jsonl")
}
