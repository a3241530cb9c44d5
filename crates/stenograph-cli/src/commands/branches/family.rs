//! Selects the conversations to relate: named files, the files in a folder, or related sessions of the index.

use std::collections::HashMap;
use std::path::Path;

use stenograph_store::discover::{Places, discover};
use stenograph_store::index::catalogue::{Catalogue, SessionId, SourceRow};

use super::Options;
use crate::conversation::Conversation;
use crate::error::CommandError;
use crate::input::open_known;
use crate::output::{Output, counted};
use crate::store::ResolvedName;

/// The selected conversations, each opened or with its error.
pub fn conversations(
    options: &Options,
    output: &mut Output<'_>,
) -> Result<Vec<Result<Conversation, CommandError>>, CommandError> {
    let mut found = Vec::new();
    let mut sessions = Vec::new();
    for name in &options.names {
        match options.place.resolve(name) {
            Ok(ResolvedName::Session(resolved)) => sessions.push(resolved.session.id),
            Ok(ResolvedName::File(path)) if path.is_dir() => in_folder(&path, &mut found, output),
            Ok(ResolvedName::File(path)) => found.push(Conversation::open(&options.place, &path, None, output)),
            Err(error) => found.push(Err(error)),
        }
    }
    if !sessions.is_empty() || options.names.is_empty() {
        let store = options.place.store()?;
        for row in related(&store.catalogue()?, &sessions)? {
            found.push(open_known(&store, &row, None, output).map(Conversation::from_input));
        }
    }
    Ok(found)
}

/// The transcripts in a folder. Skips other files and side conversations.
fn in_folder(folder: &Path, found: &mut Vec<Result<Conversation, CommandError>>, output: &mut Output<'_>) {
    let root = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut files = Vec::new();
    discover(&Places::below(root.clone()), &mut |file| {
        if file.hints.thread.is_none() {
            files.push(file.path);
        }
    });
    files.sort();
    let mut unrecognized = 0;
    for path in files {
        let Ok(input) = crate::input::open(&path, None, stenograph_store::Passes::Many) else {
            unrecognized += 1;
            continue;
        };
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let mut conversation = Conversation::from_input(input);
        conversation.name = name;
        found.push(Ok(conversation));
    }
    if unrecognized > 0 {
        let files = counted(unrecognized, "file");
        output.say(&format!("{}: skipped {files} of unknown format", folder.display()));
    }
}

/// The main sources of the sessions related to these; without sessions, of every family. Sessions are related if one names the
/// other as its parent, or if their users began with the same words; comparing their events then confirms or rejects that.
fn related(catalogue: &Catalogue, sessions: &[SessionId]) -> Result<Vec<SourceRow>, CommandError> {
    let mut sources = catalogue.sources()?;
    sources.retain(|source| source.thread.is_none() && source.copy_of.is_none());
    let mut families = Families::default();
    let mut by_key: HashMap<u64, SessionId> = HashMap::new();
    for source in &sources {
        families.merge(source.session, source.session);
        if let Some(key) = source.first_key {
            let first = *by_key.entry(key).or_insert(source.session);
            families.merge(first, source.session);
        }
    }
    for session in catalogue.sessions()? {
        if let Some((parent, _)) = session.parent {
            families.merge(session.id, parent);
        }
    }
    let mut sizes: HashMap<SessionId, usize> = HashMap::new();
    for source in &sources {
        *sizes.entry(families.representative(source.session)).or_default() += 1;
    }
    let wanted: Vec<SessionId> = sessions.iter().map(|session| families.representative(*session)).collect();
    sources.retain(|source| {
        let representative = families.representative(source.session);
        if sessions.is_empty() {
            sizes.get(&representative).is_some_and(|size| *size > 1)
        } else {
            wanted.contains(&representative)
        }
    });
    Ok(sources)
}

/// Groups of related sessions.
#[derive(Default)]
struct Families(HashMap<SessionId, SessionId>);

impl Families {
    fn representative(&self, mut session: SessionId) -> SessionId {
        while let Some(parent) = self.0.get(&session).copied().filter(|parent| *parent != session) {
            session = parent;
        }
        session
    }

    fn merge(&mut self, one: SessionId, other: SessionId) {
        let (one, other) = (self.representative(one), self.representative(other));
        self.0.entry(one).or_insert(one);
        self.0.insert(other, one);
    }
}
