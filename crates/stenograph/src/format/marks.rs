//! What a format says in words of its own about what came of a call, where the model has no place for it: exit codes, refusals, what is
//! still at work. Only a table of words and paths; what they mean for a session is decided by the fold that asks.

use crate::model::{Body, Event, Held, Residue};
use crate::text::{Str, Text};

/// Words and fields of a format about calls and what came of them.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// How a script that calls tools spells what it gives them.
    pub script: Option<Script>,
    /// Tools that run where the model does and whose results nobody records, each with the field, left over in the call, that says how far
    /// it came.
    pub hosted: &'static [(&'static str, &'static str)],
    /// Where a result states the exit code of a command.
    pub exits: &'static [Exit],
    /// How a result begins that tells of a failure which no field of the record states.
    pub failures: &'static [&'static str],
    /// How a result begins when somebody interrupted the call.
    pub interruptions: &'static [&'static str],
    /// Fields, left over in results, that are true when somebody interrupted the call.
    pub interrupted_fields: &'static [&'static str],
    /// How a result begins that somebody, or some rule, gave instead of the tool.
    pub verdicts: &'static [(&'static str, Verdict)],
    /// Fields, left over in results, that only stand there when the call was not allowed, and the word in them when the user said so.
    pub denials: &'static [(&'static str, &'static str)],
    /// Words in a result after which the name stands by which later calls ask for what goes on.
    pub handles: &'static [&'static str],
    /// Fields, left over in results, with such a name.
    pub handle_fields: &'static [&'static str],
    /// Fields, left over in results, that say how far the work of another agent has come.
    pub state_fields: &'static [&'static str],
    /// Fields, left over in results, that say of what kind the other agent is.
    pub kind_fields: &'static [&'static str],
    /// Fields, left over in results, that say whether a file was there before, and the word for it when it was not.
    pub made: &'static [(&'static str, &'static str)],
    /// Fields, left over in any record, that say what may be done without asking.
    pub modes: &'static [&'static str],
    /// Facts whose content says so.
    pub mode_facts: &'static [&'static str],
    /// Facts that tell of a call and its result once more, or of one that is told nowhere else.
    pub twins: &'static [Twin],
    /// Facts by which somebody, or some rule, judged a call.
    pub judgements: &'static [Judgement],
    /// Facts that hold a whole record of a side conversation.
    pub nested: Option<Nested>,
    /// Messages by which an agent is told of work that went on behind its back.
    pub notice: Option<Notice>,
    /// Fields, left over in a compaction, with the tokens before it and after it.
    pub compacted: Option<(&'static str, &'static str)>,
    /// Fields, left over in a compaction, with a list of the ids of records that stay before the model.
    pub preserved: &'static [&'static str],
    /// Fields, left over in a compaction, with a list of the records that stand before the model from then on.
    pub handed_over: &'static [&'static str],
}

impl Marks {
    /// No words at all.
    pub const NONE: Marks = Marks {
        script: None,
        hosted: &[],
        exits: &[],
        failures: &[],
        interruptions: &[],
        interrupted_fields: &[],
        verdicts: &[],
        denials: &[],
        handles: &[],
        handle_fields: &[],
        state_fields: &[],
        kind_fields: &[],
        made: &[],
        modes: &[],
        mode_facts: &[],
        twins: &[],
        judgements: &[],
        nested: None,
        notice: None,
        compacted: None,
        preserved: &[],
        handed_over: &[],
    };
}

/// The names before the texts that a script gives to tools.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Before a command.
    pub command: &'static str,
    /// Before something that is to do.
    pub step: &'static str,
    /// Before how far that is.
    pub status: &'static str,
    /// Before the name of a command that goes on, when the script asks after it; so it is called too in what a script prints.
    pub handle: &'static str,
    /// How a result begins that tells what a script printed.
    pub head: &'static str,
    /// The field by which the result of a command is known in what a script printed.
    pub sign: &'static str,
    /// The field of it with the exit code.
    pub exit: &'static str,
}

impl Script {
    /// The texts that stand behind this name in a script, with their places.
    pub(crate) fn texts(script: &str, name: &str) -> Vec<(usize, String)> {
        const TEXTS_MAX: usize = 256;
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(at) = script.get(from..).and_then(|rest| rest.find(name)).map(|at| at + from) {
            from = at + name.len();
            let is_inside = script
                .get(..at)
                .is_some_and(|before| before.ends_with(|char: char| char.is_alphanumeric() || char == '_'));
            let rest = script.get(from..).unwrap_or_default();
            let rest = rest.trim_start_matches(['"', '\'']).trim_start();
            let Some(rest) = rest.strip_prefix(':').map(str::trim_start).filter(|_| !is_inside) else { continue };
            if let Some(text) = literal(rest).or_else(|| number(rest)) {
                found.push((at, text));
            }
            if found.len() >= TEXTS_MAX {
                break;
            }
        }
        found
    }
}

/// The number that begins here.
fn number(script: &str) -> Option<String> {
    const LENGTH_MAX: usize = 20;
    let digits: String = script.chars().take(LENGTH_MAX).take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// The text that begins here between quotes of any kind.
fn literal(script: &str) -> Option<String> {
    let quote = script.chars().next().filter(|char| matches!(char, '"' | '\'' | '`'))?;
    let mut text = String::new();
    let mut chars = script.chars().skip(1);
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                other => text.push(other),
            },
            char if char == quote => return Some(text),
            char => text.push(char),
        }
    }
    None
}

/// Where a result states the exit code of a command: the digits follow the words.
#[derive(Clone, Copy, Debug)]
pub enum Exit {
    /// At the beginning of its text.
    First(&'static str),
    /// At the beginning of one of its first lines.
    Head(&'static str),
    /// At the beginning of its last line.
    Last(&'static str),
    /// At this path in a text that is JSON.
    Json(&'static str),
    /// At this path in what is left over of its record.
    Field(&'static str),
}

/// What somebody, or some rule, said to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Yes.
    Approved,
    /// The user said no.
    Denied,
    /// A rule or a mode did not allow it.
    Refused,
    /// A hook did not let it pass.
    Blocked,
}

impl Verdict {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::Denied => "denied",
            Verdict::Refused => "refused",
            Verdict::Blocked => "blocked",
        }
    }
}

/// A fact that tells of a call and its result. Paths are below what is left over of its record; an empty one is none.
#[derive(Clone, Copy, Debug)]
pub struct Twin {
    /// The fact.
    pub fact: &'static str,
    /// What ties it to the call.
    pub call: &'static str,
    /// The command, as text or as a list of words.
    pub command: &'static str,
    /// The exit code.
    pub exit: &'static str,
    /// Whether it went well.
    pub success: &'static str,
    /// An object whose keys are the files that were changed; each value has a `type`.
    pub changes: &'static str,
    /// The side conversation that was begun.
    pub thread: &'static str,
    /// Of what kind that one is.
    pub kind: &'static str,
    /// What it is to do.
    pub task: &'static str,
}

impl Twin {
    /// A twin that says nothing yet.
    pub const NONE: Twin =
        Twin { fact: "", call: "", command: "", exit: "", success: "", changes: "", thread: "", kind: "", task: "" };
}

/// A fact by which a call was judged.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// The fact.
    pub fact: &'static str,
    /// The field that says how.
    pub field: &'static str,
    /// The words in it, and what each means.
    pub words: &'static [(&'static str, Verdict)],
    /// A field with the reason.
    pub reason: &'static str,
}

/// A fact that holds a whole record of a side conversation.
#[derive(Clone, Copy, Debug)]
pub struct Nested {
    /// The fact.
    pub fact: &'static str,
    /// The record in it.
    pub record: &'static str,
    /// The side conversation.
    pub thread: &'static str,
    /// The call that began it.
    pub call: &'static str,
}

/// A message of the user that only tells of work that went on behind the agent's back.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// How it begins.
    pub begins: &'static str,
    /// What stands around the name by which the work is known.
    pub handle: (&'static str, &'static str),
    /// What stands around how it ended.
    pub state: (&'static str, &'static str),
    /// What stands before an exit code.
    pub exit: &'static str,
}

/// How far a call came that ran where the model runs and whose result nobody records; `None` for every other call.
pub(crate) fn hosted_status<'e>(event: &'e Event<'_>) -> Option<Option<Str<'e>>> {
    let Body::ToolCall { name: tool, .. } = &event.body else { return None };
    event.extra.known().find_map(|(info, residue)| {
        let hosted = super::named(info.name)?.marks().hosted;
        let mut mine = hosted.iter().filter(|(hosted, _)| hosted == tool).peekable();
        mine.peek()?;
        Some(mine.find_map(|(_, path)| residue.word_at(path)))
    })
}

impl Residue<'_> {
    /// The value of the field at this path, whose keys are joined by points, as it was spelled.
    pub(crate) fn at(&self, path: &str) -> Option<&str> {
        let (key, below) = match path.split_once('.') {
            Some((key, below)) => (key, Some(below)),
            None => (path, None),
        };
        match (self.held(key)?, below) {
            (Held::Raw(raw), None) => Some(raw),
            (Held::Raw(raw), Some(below)) => value_at(raw, below),
            (Held::Object(inner), Some(below)) => inner.at(below),
            (Held::Object(_), None) | (Held::Hole, _) => None,
        }
    }

    /// The text of the field at this path, or its digits.
    pub(crate) fn word_at(&self, path: &str) -> Option<Str<'_>> {
        if path.is_empty() { None } else { word(self.at(path)?) }
    }
}

/// The value at a path in a JSON object.
pub(crate) fn value_at<'a>(raw: &'a str, path: &str) -> Option<&'a str> {
    path.split('.').try_fold(raw, |raw, key| crate::json::Object::parse(raw)?.peek(key))
}

/// A text without its quotes, or a number or a truth as it is spelled.
pub(crate) fn word(raw: &str) -> Option<Str<'_>> {
    match raw.as_bytes().first()? {
        b'"' => Text::from_json(raw)?.exact(),
        b'{' | b'[' | b'n' => None,
        _ => Some(Str::Borrowed(raw)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_a_script_by_their_names() {
        let script = r#"const r = await tools.run({cmd:"echo \"a\"; ls","dir":"/x"}); tools.run({"cmd": 'b', xcmd:"no", cmd: r, id: 77})"#;
        let texts: Vec<String> = Script::texts(script, "cmd").into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["echo \"a\"; ls", "b"]);
        assert!(Script::texts("cmd:\"open", "cmd").is_empty());
        assert_eq!(Script::texts(script, "id").into_iter().map(|(_, text)| text).collect::<Vec<_>>(), ["77"]);
    }
}
