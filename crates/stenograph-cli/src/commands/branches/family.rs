//! Which conversations are looked at: the files that are named, those in a folder, or what the index knows to be related.

use std::collections::HashMap;
use std::path::Path;

use stenograph_store::discover::{Places, discover};
use stenograph_store::index::catalogue::{Catalogue, SessionId, SourceRow};

use super::Options;
use crate::conversation::Conversation;
use crate::error::CommandError;
use crate::input::open_known;
use crate::output::{Output, counted};
use crate::store::Asked;

/// The conversations to look at, each opened or with the reason why it cannot be.
pub fn of(options: &Options, output: &mut Output<'_>) -> Result<Vec<Result<Conversation, CommandError>>, CommandError> {
    let mut found = Vec::new();
    let mut sessions = Vec::new();
    for name in &options.names {
        match options.place.asked(name) {
            Ok(Asked::Session(chosen)) => sessions.push(chosen.session.id),
            Ok(Asked::File(path)) if path.is_dir() => in_folder(&path, &mut found, output),
            Ok(Asked::File(path)) => found.push(Conversation::open(&options.place, &path, None, output)),
            Err(error) => found.push(Err(error)),
        }
    }
    if !sessions.is_empty() || options.names.is_empty() {
        let store = options.place.store()?;
        for row in related(&store.catalogue()?, &sessions)? {
            found.push(open_known(&store, &row, None, output).map(Conversation::of));
        }
    }
    Ok(found)
}

/// The transcripts in a folder. What is none, and side conversations, are passed over.
fn in_folder(folder: &Path, found: &mut Vec<Result<Conversation, CommandError>>, output: &mut Output<'_>) {
    let root = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut files = Vec::new();
    discover(&Places::below(root.clone()), &mut |file| {
        if file.hints.thread.is_none() {
            files.push(file.path);
        }
    });
    files.sort();
    let mut strange = 0;
    for path in files {
        let Ok(input) = crate::input::open(&path, None, stenograph_store::Passes::Many) else {
            strange += 1;
            continue;
        };
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        let mut conversation = Conversation::of(input);
        conversation.name = name;
        found.push(Ok(conversation));
    }
    if strange > 0 {
        let files = counted(strange, "file");
        output.say(&format!("{}: {files} passed over that no format claims", folder.display()));
    }
}

/// The main sources of the sessions that are related to these; without any, of every family. Sessions are related when one says so of
/// another, and when their users began with the same words: whether that means anything is seen when they are read.
fn related(catalogue: &Catalogue, sessions: &[SessionId]) -> Result<Vec<SourceRow>, CommandError> {
    let mut sources = catalogue.sources()?;
    sources.retain(|source| source.thread.is_none() && source.copy_of.is_none());
    let mut families = Families::default();
    let mut by_key: HashMap<u64, SessionId> = HashMap::new();
    for source in &sources {
        families.join(source.session, source.session);
        if let Some(key) = source.first_key {
            let first = *by_key.entry(key).or_insert(source.session);
            families.join(first, source.session);
        }
    }
    for session in catalogue.sessions()? {
        if let Some((parent, _)) = session.parent {
            families.join(session.id, parent);
        }
    }
    let mut sizes: HashMap<SessionId, usize> = HashMap::new();
    for source in &sources {
        *sizes.entry(families.head(source.session)).or_default() += 1;
    }
    let wanted: Vec<SessionId> = sessions.iter().map(|session| families.head(*session)).collect();
    sources.retain(|source| {
        let head = families.head(source.session);
        if sessions.is_empty() { sizes.get(&head).is_some_and(|size| *size > 1) } else { wanted.contains(&head) }
    });
    Ok(sources)
}

/// Who belongs together.
#[derive(Default)]
struct Families(HashMap<SessionId, SessionId>);

impl Families {
    fn head(&self, mut session: SessionId) -> SessionId {
        while let Some(above) = self.0.get(&session).copied().filter(|above| *above != session) {
            session = above;
        }
        session
    }

    fn join(&mut self, one: SessionId, other: SessionId) {
        let (one, other) = (self.head(one), self.head(other));
        self.0.entry(one).or_insert(one);
        self.0.insert(other, one);
    }
}
