//! Which kinds of steps a format can express. This is measured, not declared: a small conversation with every kind is written in the
//! format and read back.

use super::diff_step::{Class, DiffStep};
use crate::calls::Calls;
use crate::format::{Format, Wanted};
use crate::formats::steno::Steno;
use crate::model::{Event, Outline};
use crate::read::{Collected, Reading};
use crate::write;

/// The kinds of steps that a format can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    classes: Vec<Class>,
    /// Whether it records that a call failed.
    pub(super) has_failures: bool,
}

/// A conversation with one step of each kind.
const SAMPLE: &str = r#"{"v":1,"kind":"message","time":"2026-01-01T00:00:00Z","session":"s1","id":"e1","role":"system","content":"be kind"}
{"v":1,"kind":"message","time":"2026-01-01T00:00:01Z","session":"s1","id":"e2","parent":"e1","role":"user","content":"look"}
{"v":1,"kind":"thinking","time":"2026-01-01T00:00:02Z","session":"s1","id":"e3","parent":"e2","content":"where"}
{"v":1,"kind":"tool_call","time":"2026-01-01T00:00:03Z","session":"s1","id":"e4","parent":"e3","name":"Bash","call":"call_1","input":{"command":"make"}}
{"v":1,"kind":"tool_result","time":"2026-01-01T00:00:04Z","session":"s1","id":"e5","parent":"e4","name":"Bash","call":"call_1","content":"no rule","error":true}
{"v":1,"kind":"failure","time":"2026-01-01T00:00:05Z","session":"s1","id":"e6","parent":"e5","name":"overloaded","content":"too much"}
{"v":1,"kind":"message","time":"2026-01-01T00:00:06Z","session":"s1","id":"e7","parent":"e6","role":"assistant","content":"there"}
{"v":1,"kind":"compaction","time":"2026-01-01T00:00:07Z","session":"s1","id":"e8","parent":"e7","content":"all of it"}
{"v":1,"kind":"message","time":"2026-01-01T00:00:08Z","session":"s1","id":"e9","parent":"e8","role":"user","content":"thanks"}
"#;

impl Vocabulary {
    /// The vocabulary of a format. `None` means several formats or an unknown one, which express no kind for certain.
    pub fn of(format: Option<&dyn Format>) -> Vocabulary {
        let Some(format) = format else { return Vocabulary { classes: Vec::new(), has_failures: false } };
        // A format that is only read cannot be measured. A step that it does not have is a difference.
        if format.info().own_only {
            return Vocabulary::all();
        }
        let sample = read(&Steno, SAMPLE.as_bytes());
        let mut outline = Outline::new(Steno.info().name);
        sample.iter().for_each(|event| outline.add(event));
        let (mut classes, mut has_failures) = (Vec::new(), false);
        let mut calls = Calls::default();
        for event in read(format, &write::all(format, &outline, &sample)) {
            let call_step = calls.add(&event);
            let Some(step) = DiffStep::of(1, &event).map(|step| step.with_decision(&call_step)) else { continue };
            has_failures |= step.has_failed;
            classes.push(step.class);
        }
        Vocabulary { classes, has_failures }
    }

    /// All kinds. Two conversations in one format can express the same kinds.
    pub fn all() -> Vocabulary {
        Vocabulary::of(Some(&Steno))
    }

    /// Whether the format can express steps of this kind.
    pub fn has(&self, class: Class) -> bool {
        self.classes.contains(&class)
    }
}

fn read(format: &dyn Format, bytes: &[u8]) -> Vec<Event<'static>> {
    let mut collected = Collected::default();
    let mut reading = Reading::new(format, Wanted::All);
    reading.feed(bytes, &mut collected);
    reading.end(&mut collected);
    collected.events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;

    fn has(format: &str) -> Vec<&'static str> {
        let vocabulary = Vocabulary::of(Registry::built_in().named(format));
        let all = [Class::Instructions, Class::Thinking, Class::Call, Class::Result, Class::Compaction, Class::Failure];
        all.into_iter().filter(|class| vocabulary.has(*class)).map(Class::name).collect()
    }

    #[test]
    fn the_kinds_of_a_format_are_measured() {
        assert_eq!(has("steno"), ["instructions", "thinking", "call", "result", "compaction", "failure"]);
        assert!(Vocabulary::of(Registry::built_in().named("steno")).has_failures);
        assert!(["call", "result"].iter().all(|class| has("codex").contains(class)), "{:?}", has("codex"));
        assert!(["call", "result"].iter().all(|class| has("claude-code").contains(class)));
        assert!(!has("claude-code").contains(&"instructions"));
        assert!(!has("openai-chat").contains(&"compaction"));
    }

    #[test]
    fn every_format_for_conversations_has_user_messages() {
        for format in crate::formats::FORMATS.iter().filter(|format| !format.info().traits.log) {
            let vocabulary = Vocabulary::of(Some(*format));
            let name = format.info().name;
            assert!(vocabulary.has(Class::User) || vocabulary.has(Class::Unknown), "{name}: {vocabulary:?}");
        }
    }
}
