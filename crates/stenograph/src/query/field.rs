//! The fields of a query: their names, their values, and the messages about invalid ones. What a field finds is decided
//! elsewhere.

use super::expr::{Field, Has, Is, TagPattern};
use super::fuzzy;
use super::moment::{Period, SPELLINGS, Today, period};
use super::words::{End, Phrase, end_of_words, is_word_char};
use crate::model::{Kind, Role};

/// The name of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Agent,
    Project,
    Session,
    Tag,
    Tool,
    File,
    Model,
    Branch,
    Role,
    Is,
    Has,
    Since,
    Until,
}

/// The error and the hint.
type Complaint = (String, String);

const ALL: [Name; 13] = [
    Name::Agent,
    Name::Project,
    Name::Session,
    Name::Tag,
    Name::Tool,
    Name::File,
    Name::Model,
    Name::Branch,
    Name::Role,
    Name::Is,
    Name::Has,
    Name::Since,
    Name::Until,
];

/// Names of fields in other programs that have no other meaning.
const ELSEWHERE: [(&str, Name); 2] = [("after", Name::Since), ("before", Name::Until)];

/// The field at the start of a text.
pub(super) fn name(text: &str) -> Option<Name> {
    let (word, _) = text.split_once(':')?;
    ALL.into_iter().find(|name| word.eq_ignore_ascii_case(name.word()))
}

/// A misspelled field, with a hint. Most text before a colon is not a field, so only text that is very close to a longer
/// name counts as one.
pub(super) fn misspelled(token: &str) -> Option<(&str, String)> {
    let (word, value) = token.split_once(':')?;
    if value.is_empty() || value.starts_with([':', '/', '\\']) || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let elsewhere = ELSEWHERE.into_iter().find(|(other, _)| *other == lower).map(|(_, name)| name);
    let near = |name: &Name| {
        let plural = lower.strip_suffix('s') == Some(name.word());
        let long = name.word().len() >= 5 && lower.len() >= 5;
        plural && name.word().len() >= 4 || long && fuzzy::is_near(&lower, name.word(), 1)
    };
    let meant = elsewhere.or_else(|| ALL.into_iter().find(near))?;
    Some((word, format!("did you mean {}:{value}? To search for the text, quote it: \"{token}\"", meant.word())))
}

impl Name {
    pub(super) fn word(self) -> &'static str {
        match self {
            Name::Agent => "agent",
            Name::Project => "project",
            Name::Session => "session",
            Name::Tag => "tag",
            Name::Tool => "tool",
            Name::File => "file",
            Name::Model => "model",
            Name::Branch => "branch",
            Name::Role => "role",
            Name::Is => "is",
            Name::Has => "has",
            Name::Since => "since",
            Name::Until => "until",
        }
    }

    pub(super) fn example(self) -> &'static str {
        match self {
            Name::Agent => "agent:NAME",
            Name::Project => "project:NAME",
            Name::Session => "session:ID",
            Name::Tag => "tag:NAME",
            Name::Tool => "tool:bash",
            Name::File => "file:main.rs",
            Name::Model => "model:NAME",
            Name::Branch => "branch:main",
            Name::Role => "role:user",
            Name::Is => "is:error",
            Name::Has => "has:thinking",
            Name::Since => "since:7d",
            Name::Until => "until:yesterday",
        }
    }

    pub(super) fn of(field: &Field) -> Name {
        match field {
            Field::Agent(_) => Name::Agent,
            Field::Project(_) => Name::Project,
            Field::Session(_) => Name::Session,
            Field::Tag(_) => Name::Tag,
            Field::Tool(_) => Name::Tool,
            Field::File(_) => Name::File,
            Field::Model(_) => Name::Model,
            Field::Branch(_) => Name::Branch,
            Field::Role(_) => Name::Role,
            Field::Is(_) => Name::Is,
            Field::Has(_) => Name::Has,
            Field::Since(_) => Name::Since,
            Field::Until(_) => Name::Until,
        }
    }

    /// Whether an event has at most one value of it, so that two conditions are alternatives.
    pub(super) fn is_single(self) -> bool {
        match self {
            Name::Agent | Name::Project | Name::Session | Name::Tool | Name::Model | Name::Branch | Name::Role => true,
            Name::Tag | Name::File | Name::Is | Name::Has | Name::Since | Name::Until => false,
        }
    }

    /// The pieces of a value: alternatives between commas; for a path, all pieces between stars.
    pub(super) fn pieces(self, value: &str) -> Vec<&str> {
        match self {
            Name::Since | Name::Until => Some(value).into_iter().filter(|value| !value.is_empty()).collect(),
            Name::File => value.split_inclusive('*').filter(|piece| piece.contains(is_word_char)).collect(),
            _ => value.split(',').filter(|piece| !piece.is_empty()).collect(),
        }
    }

    /// Whether all pieces of a value must match, not only one.
    pub(super) fn needs_all(self) -> bool {
        self == Name::File
    }

    /// What a star after a value means. It completes a word, and therefore adds nothing after a separator; a tag is compared
    /// with its separators.
    pub(super) fn end_of(self, text: &str, end: End) -> End {
        if self == Name::Tag { end } else { end_of_words(text, end) }
    }

    /// Parses a value.
    pub(super) fn read(self, text: &str, end: End, today: &Today) -> Result<Field, Complaint> {
        Ok(match self {
            Name::Agent => Field::Agent(self.text(text)?),
            Name::Project => Field::Project(self.text(text)?),
            Name::Session => Field::Session(self.text(text)?),
            Name::Tag => Field::Tag(TagPattern { text: self.text(text)?, is_prefix: end == End::Open }),
            Name::Tool => Field::Tool(self.words(text, end)?),
            Name::File => Field::File(self.words(text, end)?),
            Name::Model => Field::Model(self.words(text, end)?),
            Name::Branch => Field::Branch(self.words(text, end)?),
            Name::Role => Field::Role(choice(self, text, Role::ALL.into_iter().map(|role| (role.name(), role)))?),
            Name::Is => Field::Is(choice(self, text, is_names())?),
            // To most people, an error and an event that has one are the same.
            Name::Has if text.eq_ignore_ascii_case(Is::Error.name()) => Field::Is(Is::Error),
            Name::Has => Field::Has(choice(self, text, has_names())?),
            Name::Since => Field::Since(period_named(text, today)?.start),
            Name::Until => Field::Until(period_named(text, today)?.end),
        })
    }

    fn text(self, text: &str) -> Result<String, Complaint> {
        match fold(text.trim()) {
            text if text.is_empty() => Err(self.nothing()),
            text => Ok(text),
        }
    }

    fn words(self, text: &str, end: End) -> Result<Phrase, Complaint> {
        let words = Phrase::ending(text, end).ok_or_else(|| self.nothing())?;
        if words.words.len() > super::parse::PHRASE_LENGTH_MAX {
            return Err((format!("the value of `{}:` is too long", self.word()), "shorten it".to_owned()));
        }
        Ok(words)
    }

    fn nothing(self) -> Complaint {
        (format!("`{}:` needs a word", self.word()), format!("write {}", self.example()))
    }
}

fn period_named(text: &str, today: &Today) -> Result<Period, Complaint> {
    period(text, today).ok_or_else(|| (format!("`{text}` is not a time"), format!("write {SPELLINGS}")))
}

/// The names of all fields, each with the values that it takes if they are few.
pub fn fields() -> Vec<(&'static str, Vec<&'static str>)> {
    let values = |name: Name| match name {
        Name::Is => is_names().map(|(word, _)| word).collect(),
        Name::Has => has_names().map(|(word, _)| word).collect(),
        Name::Role => Role::ALL.map(Role::name).to_vec(),
        Name::Agent
        | Name::Project
        | Name::Session
        | Name::Tag
        | Name::Tool
        | Name::File
        | Name::Model
        | Name::Branch
        | Name::Since
        | Name::Until => Vec::new(),
    };
    ALL.into_iter().map(|name| (name.word(), values(name))).collect()
}

fn is_names() -> impl Iterator<Item = (&'static str, Is)> + Clone {
    let kinds = Kind::WORDS.into_iter().map(|(word, kind)| (word, Is::Kind(kind)));
    [Is::Error, Is::Pinned, Is::Marked].into_iter().map(|is| (is.name(), is)).chain(kinds)
}

fn has_names() -> impl Iterator<Item = (&'static str, Has)> + Clone {
    Has::ALL.into_iter().map(|has| (has.name(), has)).chain([("image", Has::Attachment)])
}

/// Parses one of a few words.
fn choice<T: PartialEq + Copy>(
    name: Name,
    text: &str,
    choices: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Result<T, Complaint> {
    let lower = text.trim().to_ascii_lowercase();
    let found = choices.clone().find(|(word, _)| *word == lower);
    found.map(|(_, choice)| choice).ok_or_else(|| {
        let near = choices.clone().find(|(word, _)| fuzzy::is_near(word, &lower, 2));
        let all: Vec<&str> = choices.map(|(word, _)| word).collect();
        let hint = match near {
            Some((word, _)) => format!("did you mean {}:{word}?", name.word()),
            None => format!("use one of {}", all.join(", ")),
        };
        (format!("unknown value of `{}:`: `{}`", name.word(), text.trim()), hint)
    })
}

/// Whether the name of an agent or a project matches: it contains the text, or with `=` before the text it is the text.
/// Case does not count.
pub(super) fn has_in_name(name: &str, asked: &str) -> bool {
    match asked.strip_prefix('=') {
        Some(asked) => fold(name) == fold(asked),
        None => fold(name).contains(&fold(asked)),
    }
}

/// Lower case, character by character.
pub(super) fn fold(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}
