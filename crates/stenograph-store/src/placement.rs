//! Puts a session where its agent looks for it. [`Placement`] says where that is; this file turns it into a path, writes the
//! file, and keeps what is needed to undo that. It does not know what the session says. The path is made of an id and a folder
//! that come from transcripts, so the file is written on a disk that is confined to the agent's own folder.

use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use stenograph::convert::Reopen as _;
use stenograph::edit::Rewritable;
use stenograph::format::{Format, Wanted};
use stenograph::model::{Event, Placement, ProjectName, SessionIdKind};
use stenograph::read::{Reading, Sink};
use stenograph::time::Time;
use uuid::Uuid;

use crate::confined::Confined;
use crate::databases;
use crate::discover::{Machine, Places, discover, path_hints};
use crate::edit::{FileEdit, FileState};
use crate::error::{Error, Problem};
use crate::files::{Disk, Files, create_folder_durably, folder_of};
use crate::output::{NewFile, Spool};
use crate::project::is_absolute_elsewhere;
use crate::source_file::is_same;
use crate::undo::{MovedFile, save_undo_of_move};
use crate::working_folder::text_of;
use crate::{Passes, Source};

/// The longest name that an agent derives from the path of a folder. It shortens longer ones in a way of its own, or cannot use
/// them.
const PROJECT_LENGTH_MAX: usize = 200;

/// How many folders with names of the agent's own are looked at.
const MARKED_FOLDERS_MAX: usize = 100_000;

/// A session that is about to be put in its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedSession<'s> {
    /// Its id.
    pub id: &'s str,
    /// Its working folder.
    pub folder: &'s str,
    /// The current time, with the local offset.
    pub now: &'s Time<'s>,
}

/// Where a session goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPlace {
    /// The path of its file.
    pub path: PathBuf,
    /// The agent's folder, outside of which nothing is written.
    root: PathBuf,
}

/// Why a session has no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unplaceable {
    /// The home folder of the agent is unknown.
    #[error("the home folder is unknown")]
    NoHome,
    /// The working folder is not an absolute path, so that the agent would not look there.
    #[error("the working folder is not an absolute path: {0}")]
    RelativeFolder(String),
    /// The agent shortens the path of the working folder in a way that only it knows.
    #[error("the path of the working folder has more than {PROJECT_LENGTH_MAX} characters")]
    LongFolder,
    /// The agent gives folders names of its own, and has given none to this one.
    #[error("the agent has no folder yet for sessions in {0}, and only the agent can name it")]
    UnnamedFolder(String),
    /// The id of the session cannot be part of a file name.
    #[error("the session id cannot be part of a file name")]
    BadId,
}

/// A new id of the kind that the agent gives its sessions.
pub fn new_session_id(kind: SessionIdKind, now: &Time<'_>) -> String {
    let random = Uuid::new_v4();
    match kind {
        SessionIdKind::RandomUuid => random.to_string(),
        SessionIdKind::TimedUuid => {
            let millis = now.to_millis().and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
            let mut bytes = [0; 10];
            bytes.iter_mut().zip(random.as_bytes()).for_each(|(to, from)| *to = *from);
            uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid().to_string()
        }
        SessionIdKind::Descending(prefix) => {
            let millis = now.to_millis().and_then(|millis| u64::try_from(millis).ok()).unwrap_or_default();
            let counted = !(millis << 12) & 0xffff_ffff_ffff;
            let digits = random.simple().to_string();
            format!("{prefix}{counted:012x}{}", digits.get(..14).unwrap_or_default())
        }
    }
}

impl SessionPlace {
    /// The place of a session on a machine.
    pub fn of(
        placement: &Placement,
        machine: &Machine,
        session: &PlacedSession<'_>,
    ) -> Result<SessionPlace, Unplaceable> {
        if !is_absolute_elsewhere(Path::new(session.folder)) {
            return Err(Unplaceable::RelativeFolder(session.folder.to_owned()));
        }
        let start = placement.path.find('<').unwrap_or(placement.path.len());
        let slash = placement.path.get(..start).and_then(|before| before.rfind('/')).unwrap_or_default();
        let (base, rest) = placement.path.split_at(slash);
        let root = machine.resolve(base).ok_or(Unplaceable::NoHome)?;
        let root = std::path::absolute(&root).unwrap_or(root);
        let mut path = root.clone();
        for step in rest.split('/').filter(|step| !step.is_empty()) {
            let project = if step.contains("<project>") {
                project(placement.project, &path, session.folder)?
            } else {
                String::new()
            };
            let name = filled(step, session).replace("<project>", &project);
            let mut parts = Path::new(&name).components();
            match (parts.next(), parts.next()) {
                (Some(Component::Normal(part)), None) if part == name.as_str() => path.push(part),
                _ => return Err(Unplaceable::BadId),
            }
        }
        Ok(SessionPlace { path, root })
    }

    /// The place of a session that follows its folder: the folder beside its present one, if a path names the folder; `None` if
    /// the file can stay where it is.
    pub fn following(
        format: &dyn Format,
        machine: &Machine,
        file: &Path,
        session: &PlacedSession<'_>,
    ) -> Result<Option<SessionPlace>, Unplaceable> {
        let Some(placement) = &format.info().placement else { return Ok(None) };
        // The folder of the project is this far above the file.
        let Some(depth) = placement.path.rsplit('/').position(|step| step.contains("<project>")) else {
            return Ok(None);
        };
        let place = SessionPlace::of(placement, machine, session)?;
        let hints = path_hints(file);
        let is_home = hints.format.is_some_and(|own| is_same(own, format)) && hints.project.is_some();
        let root = file.ancestors().nth(depth + 1);
        let within = root.and_then(|root| file.strip_prefix(root).ok()).map(|path| path.components().skip(1).collect());
        let (Some(root), Some(within)) = (root, within) else { return Ok(Some(place)) };
        let within: PathBuf = within;
        Ok(Some(match place.path.ancestors().nth(depth).and_then(Path::file_name) {
            Some(folder) if is_home => SessionPlace { path: root.join(folder).join(within), root: root.to_owned() },
            _ => place,
        }))
    }

    /// The disk on which the place is, and nothing outside of the agent's folder.
    fn files(&self) -> Arc<dyn Files> {
        let disk: Arc<dyn Files> = Arc::new(Disk);
        Confined::to(&disk, std::slice::from_ref(&self.root))
    }

    /// Writes a new file here, private and complete or not at all, and reads it back. Returns the path of its undo file.
    pub fn create(&self, content: &mut Spool) -> Result<PathBuf, Error> {
        self.write(content, &MovedFile::Created, &mut io::empty())
    }

    /// Moves an edited file here. Returns the path of its undo file.
    pub fn follow(&self, edit: &FileEdit, content: &mut Spool) -> Result<PathBuf, Error> {
        let (old, new) = (edit.path(), self.path.as_path());
        let Some(folder) = folder_beside(old, new) else { return self.create(content) };
        let moved = MovedFile::Followed { folder: &folder, before: edit.before() };
        let unreadable = |error| Error::at(old, Problem::Unreadable, error);
        let undo = self.write(content, &moved, &mut Disk.reader(old, 0).map_err(unreadable)?)?;
        if let Err(error) = edit.remove_file() {
            // The old file stays, so the new one must not.
            let files = self.files();
            let _ = files.remove(new);
            let _ = files.remove(&undo);
            return Err(error);
        }
        Ok(undo)
    }

    fn write(&self, content: &mut Spool, moved: &MovedFile<'_>, before: &mut dyn Read) -> Result<PathBuf, Error> {
        let files = self.files();
        let unwritable = |error| Error::at(&self.path, Problem::Unwritable, error);
        let made = create_folder_durably(files.as_ref(), folder_of(&self.path));
        made.map_err(|error| Error::at(folder_of(&self.path), Problem::Unwritable, error))?;
        let mut out = NewFile::options().on(&files).create(&self.path, [])?;
        let after = content.reread().and_then(|mut content| FileState::of(&mut *content)).map_err(unwritable)?;
        io::copy(&mut *content.reread().map_err(unwritable)?, &mut out).map_err(unwritable)?;
        out.flush().map_err(unwritable)?;
        let undo = save_undo_of_move(&files, &self.path, moved, &after, before)?;
        let committed = out.commit();
        let written = committed.and_then(|()| {
            let mut file = files.reader(&self.path, 0).map_err(unwritable)?;
            let now = FileState::of(&mut *file).map_err(unwritable)?;
            if now == after { Ok(()) } else { Err(Error::about(&self.path, Problem::Changed)) }
        });
        if let Err(error) = written {
            let _ = files.remove(&undo);
            return Err(error);
        }
        Ok(undo)
    }
}

/// The folder of a file, if it differs from the folder of another file of that name only in one component: from there on.
fn folder_beside(old: &Path, new: &Path) -> Option<String> {
    let components = |path: &Path| -> Option<Vec<String>> {
        path.parent()?.components().map(|part| part.as_os_str().to_str().map(str::to_owned)).collect()
    };
    let (old_parts, new_parts) = (components(old)?, components(new)?);
    let at = old_parts.iter().zip(&new_parts).position(|(old, new)| old != new)?;
    let is_beside = old.file_name() == new.file_name() && old_parts.get(at + 1..) == new_parts.get(at + 1..);
    is_beside.then(|| old_parts.get(at..).map(|parts| parts.join("/")))?
}

/// A component of a path with its placeholders filled in, except that of the project.
fn filled(step: &str, session: &PlacedSession<'_>) -> String {
    let now = &session.now.text;
    let part = |range: std::ops::Range<usize>| now.get(range).unwrap_or_default().replace(':', "-");
    let utc = session.now.to_iso_millis().unwrap_or_default().replace([':', '.'], "-");
    let values = [
        ("<session>", session.id.to_owned()),
        ("<id8>", session.id.chars().take(8).collect()),
        ("<year>", part(0..4)),
        ("<month>", part(5..7)),
        ("<day>", part(8..10)),
        ("<time>", part(0..19)),
        ("<minute>", utc.chars().take(16).collect()),
        ("<utc>", utc),
    ];
    values.iter().fold(step.to_owned(), |name, (spelled, value)| name.replace(spelled, value))
}

/// The name of a working folder in this folder of the agent.
fn project(naming: ProjectName, within: &Path, folder: &str) -> Result<String, Unplaceable> {
    let name = match naming {
        ProjectName::Nowhere => String::new(),
        ProjectName::Hyphens => hyphens(folder),
        ProjectName::Separators(separators) => {
            folder.strip_prefix(['/', '\\']).unwrap_or(folder).replace(separators, "-")
        }
        ProjectName::Marked(mark) => return marked(within, mark, folder),
    };
    if name.len() > PROJECT_LENGTH_MAX { Err(Unplaceable::LongFolder) } else { Ok(name) }
}

/// The path of a folder as a name: JavaScript replaces each UTF-16 unit.
fn hyphens(folder: &str) -> String {
    let unit = |char: char| match char.is_ascii_alphanumeric() {
        true => char.to_string(),
        false => "-".repeat(char.len_utf16()),
    };
    folder.chars().map(unit).collect()
}

/// The name of the one folder whose mark states the working folder.
fn marked(within: &Path, mark: &str, folder: &str) -> Result<String, Unplaceable> {
    let entries = std::fs::read_dir(within).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .take(MARKED_FOLDERS_MAX)
        .filter(|entry| text_of(&entry.path().join(mark)).is_some_and(|text| text.trim() == folder))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => Err(Unplaceable::UnnamedFolder(folder.to_owned())),
    }
}

/// The file of a session in the places where its agent keeps them: by its path, or by its first records if the paths of this
/// format do not state the session. If several files state it, the first one has the conversation: an agent that begins another
/// file when it resumes a session continues the first.
pub fn find_session(places: &Places, format: &dyn Format, id: &str) -> Option<PathBuf> {
    let mut path = None;
    let mut unstated = Vec::new();
    discover(places, &mut |found| {
        let hints = &found.hints;
        let is_own = hints.format.or(hints.like).is_some_and(|own| is_same(own, format));
        if is_own && path.is_none() {
            path = databases::named(&found.path, id);
        }
        if !is_own || hints.thread.is_some() || path.is_some() {
            return;
        }
        match hints.session.as_deref() {
            Some(session) if session == id => path = Some(found.path),
            Some(_) => {}
            None => unstated.push(found.path),
        }
    });
    unstated.sort_by(|one, other| one.file_name().cmp(&other.file_name()));
    path.or_else(|| unstated.into_iter().find(|path| states_session(path, format, id)))
}

/// Whether the first records of a file state this session, and no other before it.
fn states_session(path: &Path, format: &dyn Format, id: &str) -> bool {
    struct Stated(Option<String>);
    impl Sink for Stated {
        fn event(&mut self, event: &Event<'_>) {
            if self.0.is_none() {
                self.0 = event.session.as_deref().map(str::to_owned);
            }
        }
    }
    const HEAD_SIZE_MAX: u64 = 64 << 10;
    let mut head = Vec::new();
    let Ok(mut source) = Source::open(path, Passes::Many) else { return false };
    if source.open().and_then(|input| input.take(HEAD_SIZE_MAX).read_to_end(&mut head)).is_err() {
        return false;
    }
    let mut stated = Stated(None);
    Reading::new(format, Wanted::All).feed(&head, &mut stated);
    stated.0.as_deref() == Some(id)
}

/// How two versions of a session compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// They are the same.
    Same,
    /// The second one continues the first.
    Continued,
    /// The first one continues the second.
    Behind,
    /// Each has something that the other lacks.
    Diverged,
}

impl Versions {
    /// Compares two versions byte for byte.
    pub fn compare(first: &mut dyn Read, second: &mut dyn Read) -> io::Result<Versions> {
        const CHUNK_SIZE: usize = 64 << 10;
        let read = |input: &mut dyn Read| {
            let mut bytes = Vec::new();
            input.take(CHUNK_SIZE as u64).read_to_end(&mut bytes).map(|_| bytes)
        };
        loop {
            let (one, other) = (read(first)?, read(second)?);
            if one != other {
                return Ok(match (other.starts_with(&one), one.starts_with(&other)) {
                    (true, _) => Versions::Continued,
                    (_, true) => Versions::Behind,
                    _ => Versions::Diverged,
                });
            }
            if one.is_empty() {
                return Ok(Versions::Same);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stenograph::Registry;
    use stenograph::formats::FORMATS;
    use stenograph::time::TimeUnit;

    fn now() -> Time<'static> {
        Time { text: "2026-03-02T09:14:05.123+02:00".into(), unit: TimeUnit::Iso }
    }

    #[test]
    fn every_agent_finds_a_session_in_its_place() {
        let home = tempfile::tempdir().unwrap();
        let machine = Machine::rooted(home.path().to_owned());
        let mut placed = 0;
        for info in FORMATS.iter().map(|format| format.info()) {
            let Some(placement) = &info.placement else { continue };
            let (now, folder) = (now(), "/home/mira/my work/app.rs");
            if let ProjectName::Marked(mark) = placement.project {
                let (before, _) = placement.path.split_once("<project>").unwrap();
                let mark = machine.resolve(before.trim_end_matches('/')).unwrap().join("app").join(mark);
                std::fs::create_dir_all(mark.parent().unwrap()).unwrap();
                std::fs::write(mark, folder).unwrap();
            }
            let id = new_session_id(placement.id, &now);
            let session = PlacedSession { id: &id, folder, now: &now };
            let place = SessionPlace::of(placement, &machine, &session).unwrap();
            let hints = path_hints(&place.path);
            let found = hints.format.map(|format| format.info().name);
            assert_eq!(found, Some(info.name), "{place:?}");
            // A path that has only the beginning of the id states no session.
            let stated = placement.path.contains("<session>").then_some(id.as_str());
            assert_eq!(hints.session.as_deref().filter(|_| stated.is_some()), stated, "{place:?}");
            assert!(info.resume.is_some() && !info.own_only, "{}", info.name);
            placed += 1;
        }
        assert!(placed >= 2);
    }

    #[test]
    fn ids_have_the_version_that_the_agent_uses() {
        let ids = ["ses_", "ses_"].map(|prefix| new_session_id(SessionIdKind::Descending(prefix), &now()));
        assert!(ids.iter().all(|id| id.len() == 30 && id.starts_with("ses_")) && ids[0] != ids[1], "{ids:?}");
        let version = |kind| Uuid::parse_str(&new_session_id(kind, &now())).unwrap().get_version_num();
        assert_eq!((version(SessionIdKind::RandomUuid), version(SessionIdKind::TimedUuid)), (4, 7));
        let millis = new_session_id(SessionIdKind::TimedUuid, &now()).replace('-', "");
        assert_eq!(i64::from_str_radix(&millis[..12], 16).ok(), now().to_millis());
    }

    #[test]
    fn hostile_ids_and_folders_have_no_place() {
        let long = format!("/{}", "w".repeat(200));
        let machine = Machine::rooted("/home/mira".into());
        let format = Registry::built_in().named("claude-code").unwrap().info().placement.unwrap();
        let place = |id, folder| SessionPlace::of(&format, &machine, &PlacedSession { id, folder, now: &now() });
        assert_eq!(place("../../x", "/w"), Err(Unplaceable::BadId));
        assert_eq!(place("a/b", "/w"), Err(Unplaceable::BadId));
        assert_eq!(place("a", "w/../.."), Err(Unplaceable::RelativeFolder("w/../..".to_owned())));
        assert_eq!(place("a", &long), Err(Unplaceable::LongFolder));
        assert!(place("a", "/../../etc").unwrap().path.starts_with("/home/mira"));
    }

    #[test]
    fn a_folder_becomes_a_name_unit_by_unit() {
        assert_eq!(hyphens("/home/a.b/\u{e9}-\u{1f600}"), "-home-a-b-----");
        let naming = ProjectName::Separators(&['/', '\\', ':']);
        let separators = |folder| project(naming, Path::new("/"), folder).unwrap();
        assert_eq!(separators("/home/a.b/c d"), "home-a.b-c d");
        assert_eq!(separators("C:\\work\\x"), "C--work-x");
    }

    #[test]
    fn a_folder_that_the_agent_names_is_found_by_its_mark() {
        let home = tempfile::tempdir().unwrap();
        let name = |folder| project(ProjectName::Marked(".root"), home.path(), folder);
        assert_eq!(name("/w"), Err(Unplaceable::UnnamedFolder("/w".to_owned())));
        for (folder, mark) in [("w", "/w\n"), ("other", "/w/x")] {
            std::fs::create_dir(home.path().join(folder)).unwrap();
            std::fs::write(home.path().join(folder).join(".root"), mark).unwrap();
        }
        assert_eq!(name("/w").as_deref(), Ok("w"));
        // Two folders with one mark: which one the agent takes is unknown.
        std::fs::write(home.path().join("other/.root"), "/w").unwrap();
        assert!(name("/w").is_err());
    }

    #[test]
    fn a_session_follows_its_folder_at_any_depth() {
        let beside = |old: &str, new: &str| folder_beside(Path::new(old), Path::new(new));
        assert_eq!(beside("/a/p/s.jsonl", "/a/q/s.jsonl").as_deref(), Some("p"));
        assert_eq!(beside("/a/p/chats/s.jsonl", "/a/q/chats/s.jsonl").as_deref(), Some("p/chats"));
        assert_eq!(beside("/a/p/chats/s.jsonl", "/a/q/other/s.jsonl"), None);
        assert_eq!(beside("/a/p/s.jsonl", "/a/q/t.jsonl"), None);
    }

    #[test]
    fn versions_are_compared_to_the_end() {
        let compare = |one: &str, other: &str| Versions::compare(&mut one.as_bytes(), &mut other.as_bytes()).unwrap();
        let long = "x".repeat(100_000);
        assert_eq!(compare(&long, &long), Versions::Same);
        assert_eq!(compare("a\n", "a\nb\n"), Versions::Continued);
        assert_eq!(compare(&format!("{long}y"), &long), Versions::Behind);
        assert_eq!(compare(&format!("{long}y"), &format!("{long}z")), Versions::Diverged);
        assert_eq!((compare("", ""), compare("", "a")), (Versions::Same, Versions::Continued));
    }

    #[cfg(unix)]
    #[test]
    fn a_placed_file_is_private_new_and_can_be_taken_back() {
        use crate::undo::{UndoOutcome, undo};
        use std::fs;
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let machine = Machine::rooted(home.path().to_owned());
        let format = Registry::built_in().named("claude-code").unwrap().info().placement.unwrap();
        let session = PlacedSession { id: "11111111-2222-4333-8444-555555555555", folder: "/w", now: &now() };
        let place = SessionPlace::of(&format, &machine, &session).unwrap();
        let spool = || {
            let mut spool = Spool::new().unwrap();
            spool.write_all(b"one\n").unwrap();
            spool
        };
        place.create(&mut spool()).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&place.path), mode(folder_of(&place.path))), (0o600, 0o700));
        assert_eq!(place.create(&mut spool()).unwrap_err().problem, Problem::OutputExists);
        fs::write(&place.path, "one\ntwo\n").unwrap();
        assert_eq!(undo(&place.path).unwrap(), UndoOutcome::Continued);
        fs::write(&place.path, "one\n").unwrap();
        assert_eq!(undo(&place.path).unwrap(), UndoOutcome::Removed);
        assert_eq!(fs::read_dir(folder_of(&place.path)).unwrap().count(), 0);
        // A link out of the agent's folder is not followed.
        let outside = tempfile::tempdir().unwrap();
        fs::remove_dir(folder_of(&place.path)).unwrap();
        std::os::unix::fs::symlink(outside.path(), folder_of(&place.path)).unwrap();
        assert!(place.create(&mut spool()).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
