//! Marks: what people note about sessions. A session can be pinned, named, tagged and annotated. The log keeps the marks by the
//! identity of the session, because transcripts move, grow and are rewritten. This file opens nothing; `index/marks.rs` finds
//! the sessions.

use serde::{Deserialize, Serialize};

use super::encoding::sum_hex;
use super::line::LogLine;
use super::writer::ArchiveWriter;
use super::{Archive, state::ArchiveState};
use crate::error::{Error, Problem};

/// The most characters of a title: a line of a wide terminal, and more than agents give.
pub const TITLE_LENGTH_MAX: usize = 200;

/// The most characters of a tag: more than anybody types.
pub(crate) const TAG_LENGTH_MAX: usize = 64;

/// The most tags of a session, so that a list of sessions stays small.
pub(crate) const TAGS_MAX: usize = 32;

/// The most bytes of a note: a page of text. Each change of a session writes all of its marks to the log.
pub const NOTE_SIZE_MAX: usize = 4 << 10;

/// The most notes of a session, for the same reason.
pub const NOTES_MAX: usize = 100;

/// The fingerprint of an event that search uses: copies of a record share it, in every file and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventKey(#[serde(with = "sum_hex")] pub u64);

/// What identifies a session, whatever happens to its files and to the index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SessionKey {
    /// The name of its agent.
    pub agent: String,
    /// The agent's id for it, or the name of its file.
    pub name: String,
    /// The folder in which that name is unique; empty if the name is unique anywhere.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// The first question, which identifies a session without a globally unique name after its file has moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<EventKey>,
}

/// The marks of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marks {
    /// Whether it is pinned.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
    /// The title that a person gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its tags, in alphabetical order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Its notes, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<SessionNote>,
    /// The number of the last note, which is not given again after the note is removed.
    #[serde(default, skip_serializing_if = "is_zero")]
    last_note: u32,
}

/// A note about a session or about one of its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
    /// Its number within the session, from 1.
    pub number: u32,
    /// When it was written, in milliseconds since 1970.
    pub time_ms: i64,
    /// The event that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventKey>,
    /// What it says.
    pub text: String,
}

/// A change to the marks of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkChange {
    /// Pin it.
    Pin,
    /// Unpin it.
    Unpin,
    /// Give it this title.
    Title(String),
    /// Remove the given title.
    NoTitle,
    /// Add a tag. A tag that it has already, in any case of letters, stays as it is.
    Tag(String),
    /// Remove a tag, in any case of letters.
    Untag(String),
    /// Add a note, to the session or to one of its events.
    Note {
        /// What it says.
        text: String,
        /// The event.
        event: Option<EventKey>,
    },
    /// Remove the note with this number.
    RemoveNote(u32),
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// Whether a text can be a tag. A query must be able to name it: no spaces, and no characters of the query's grammar.
pub(crate) fn is_tag(text: &str) -> bool {
    let is_allowed =
        |char: char| !char.is_whitespace() && !char.is_control() && !matches!(char, ',' | '"' | '*' | '(' | ')' | '\\');
    !text.is_empty() && !text.starts_with('-') && text.chars().count() <= TAG_LENGTH_MAX && text.chars().all(is_allowed)
}

impl Marks {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        let Marks { pinned, title, tags, notes, last_note: _ } = self;
        !pinned && title.is_none() && tags.is_empty() && notes.is_empty()
    }

    /// Applies a change. An invalid one changes nothing.
    pub fn apply(&mut self, change: &MarkChange, now_ms: i64) -> Result<(), Problem> {
        match change {
            MarkChange::Pin => self.pinned = true,
            MarkChange::Unpin => self.pinned = false,
            MarkChange::Title(title) => {
                let title = title.trim();
                if title.is_empty() {
                    return Err(Problem::EmptyMark);
                }
                if title.chars().count() > TITLE_LENGTH_MAX {
                    return Err(Problem::LongTitle { most: TITLE_LENGTH_MAX });
                }
                self.title = Some(title.to_owned());
            }
            MarkChange::NoTitle => self.title = None,
            MarkChange::Tag(tag) => self.add_tag(tag)?,
            MarkChange::Untag(tag) => self.tags.retain(|known| lower(known) != lower(tag)),
            MarkChange::Note { text, event } => {
                let text = text.trim();
                if text.is_empty() {
                    return Err(Problem::EmptyMark);
                }
                if text.len() > NOTE_SIZE_MAX {
                    return Err(Problem::LongNote { most: NOTE_SIZE_MAX });
                }
                if self.notes.len() >= NOTES_MAX {
                    return Err(Problem::TooManyNotes { most: NOTES_MAX });
                }
                self.add_note(SessionNote { number: 0, time_ms: now_ms, event: *event, text: text.to_owned() });
            }
            MarkChange::RemoveNote(number) => {
                let at = self.notes.iter().position(|note| note.number == *number);
                self.notes.remove(at.ok_or(Problem::NoNote { number: *number })?);
            }
        }
        Ok(())
    }

    fn add_tag(&mut self, tag: &str) -> Result<(), Problem> {
        if !is_tag(tag) {
            return Err(Problem::BadTag);
        }
        if self.tags.iter().any(|known| lower(known) == lower(tag)) {
            return Ok(());
        }
        if self.tags.len() >= TAGS_MAX {
            return Err(Problem::TooManyTags { most: TAGS_MAX });
        }
        self.tags.push(tag.to_owned());
        self.tags.sort_by_key(|tag| lower(tag));
        Ok(())
    }

    /// Adds a note under the next number.
    fn add_note(&mut self, note: SessionNote) {
        self.last_note = self.last_note.saturating_add(1);
        self.notes.push(SessionNote { number: self.last_note, ..note });
    }

    /// Adds the marks of a session that turned out to be the same one. It may exceed the limits; then only removals are allowed.
    pub(crate) fn join(&mut self, other: &Marks) {
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        self.pinned |= other.pinned;
        self.title = self.title.take().or_else(|| other.title.clone());
        for tag in &other.tags {
            if !self.tags.iter().any(|known| lower(known) == lower(tag)) {
                self.tags.push(tag.clone());
            }
        }
        self.tags.sort_by_key(|tag| lower(tag));
        other.notes.iter().for_each(|note| self.add_note(note.clone()));
    }
}

impl Archive {
    /// The marked sessions with their marks.
    pub fn marks(&self) -> impl Iterator<Item = (&SessionKey, &Marks)> {
        self.state.marks.iter()
    }
}

impl ArchiveWriter {
    /// The marked sessions with their marks, including uncommitted changes.
    pub fn marks(&self) -> impl Iterator<Item = (&SessionKey, &Marks)> {
        self.state.marks.iter()
    }

    /// Replaces the marks of a session; empty marks remove them.
    pub fn set_marks(&mut self, session: &SessionKey, marks: &Marks) -> Result<(), Error> {
        self.ready()?;
        let is_same = match self.state.marks.get(session) {
            Some(known) => known == marks,
            None => marks.is_empty(),
        };
        if is_same {
            return Ok(());
        }
        self.write(LogLine::Mark { session: session.clone(), marks: marks.clone() })
    }
}

impl ArchiveState {
    /// Replaces the marks of a session.
    pub(super) fn set_marks(&mut self, session: SessionKey, marks: Marks) {
        if marks.is_empty() {
            self.marks.remove(&session);
        } else {
            self.marks.insert(session, marks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(marks: &mut Marks, change: &MarkChange) -> Result<(), Problem> {
        marks.apply(change, 7)
    }

    #[test]
    fn changes_add_and_remove_marks() {
        let mut marks = Marks::default();
        let note = |text: &str| MarkChange::Note { text: text.to_owned(), event: None };
        for change in [
            MarkChange::Pin,
            MarkChange::Title("  A title ".into()),
            MarkChange::Tag("beta".into()),
            MarkChange::Tag("Alpha".into()),
            MarkChange::Tag("BETA".into()),
            note("one"),
            note("two"),
        ] {
            apply(&mut marks, &change).unwrap();
        }
        assert_eq!((marks.pinned, marks.title.as_deref()), (true, Some("A title")));
        assert_eq!(marks.tags, ["Alpha", "beta"]);
        apply(&mut marks, &MarkChange::RemoveNote(2)).unwrap();
        apply(&mut marks, &note("three")).unwrap();
        assert_eq!(marks.notes.iter().map(|note| note.number).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(apply(&mut marks, &MarkChange::RemoveNote(2)), Err(Problem::NoNote { number: 2 }));
        for change in [
            MarkChange::Unpin,
            MarkChange::NoTitle,
            MarkChange::Untag("ALPHA".into()),
            MarkChange::Untag("beta".into()),
            MarkChange::RemoveNote(1),
            MarkChange::RemoveNote(3),
        ] {
            assert!(!marks.is_empty());
            apply(&mut marks, &change).unwrap();
        }
        assert!(marks.is_empty());
    }

    #[test]
    fn marks_are_limited() {
        let mut marks = Marks::default();
        for tag in ["", "two words", "a,b", "-x", "x*", "\u{1b}[31m", &"x".repeat(TAG_LENGTH_MAX + 1)] {
            assert_eq!(apply(&mut marks, &MarkChange::Tag(tag.into())), Err(Problem::BadTag), "{tag:?}");
        }
        let title = MarkChange::Title("x".repeat(TITLE_LENGTH_MAX + 1));
        assert_eq!(apply(&mut marks, &title), Err(Problem::LongTitle { most: TITLE_LENGTH_MAX }));
        assert_eq!(apply(&mut marks, &MarkChange::Title(" ".into())), Err(Problem::EmptyMark));
        let long = MarkChange::Note { text: "x".repeat(NOTE_SIZE_MAX + 1), event: None };
        assert_eq!(apply(&mut marks, &long), Err(Problem::LongNote { most: NOTE_SIZE_MAX }));
        assert!(marks.is_empty());
        for number in 0..TAGS_MAX {
            apply(&mut marks, &MarkChange::Tag(format!("tag-{number}"))).unwrap();
        }
        assert_eq!(apply(&mut marks, &MarkChange::Tag("more".into())), Err(Problem::TooManyTags { most: TAGS_MAX }));
        let note = MarkChange::Note { text: "x".into(), event: None };
        for _ in 0..NOTES_MAX {
            apply(&mut marks, &note.clone()).unwrap();
        }
        assert_eq!(apply(&mut marks, &note), Err(Problem::TooManyNotes { most: NOTES_MAX }));
    }

    #[test]
    fn joined_marks_keep_everything_and_number_their_notes_again() {
        let note = |text: &str| MarkChange::Note { text: text.to_owned(), event: Some(EventKey(3)) };
        let (mut one, mut other) = (Marks::default(), Marks::default());
        apply(&mut one, &MarkChange::Tag("a".into())).unwrap();
        apply(&mut one, &note("one")).unwrap();
        for change in [MarkChange::Pin, MarkChange::Title("t".into()), MarkChange::Tag("A".into()), note("two")] {
            apply(&mut other, &change).unwrap();
        }
        one.join(&other);
        assert_eq!((one.pinned, one.title.as_deref(), one.tags.len()), (true, Some("t"), 1));
        let notes: Vec<(u32, &str)> = one.notes.iter().map(|note| (note.number, note.text.as_str())).collect();
        assert_eq!(notes, [(1, "one"), (2, "two")]);
    }
}
