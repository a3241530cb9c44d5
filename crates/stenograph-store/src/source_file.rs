//! Detects the format of a file, how certain that is, and how its records are reached. The index, `follow`, the archive and the
//! commands all use this file. It reads no events.

use stenograph::format::{Format, Head, Sniff, is_proven};
use stenograph::frame::is_lines;

use crate::decode::Container;
use crate::discover::PathHints;

/// How certain the format of a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// More bytes cannot change the answer.
    Certain,
    /// The source is short, and the next record may show another format: a reader that continues must ask again.
    Provisional,
    /// Several formats claim it equally; the first of them is named.
    Tied,
}

/// The detected format of a source.
#[derive(Clone, Copy, Debug)]
pub struct Recognized {
    /// The format.
    pub format: &'static dyn Format,
    /// How certain it is.
    pub confidence: Confidence,
}

impl Recognized {
    /// A format that the user named.
    pub fn certain(format: &'static dyn Format) -> Recognized {
        Recognized { format, confidence: Confidence::Certain }
    }
}

/// Detects the format of a source that begins with `head`. The content has precedence; if it leaves a choice, the path decides.
pub fn recognize(head: &[u8], place: &PathHints) -> Option<Recognized> {
    recognize_after(None, head, place)
}

/// Like [`recognize`], if the previous source had the format `last`: if this one provably has it too, no other format is tried.
pub(crate) fn recognize_after(last: Option<&'static dyn Format>, head: &[u8], place: &PathHints) -> Option<Recognized> {
    let likely = [place.format, place.like, last].into_iter().flatten();
    if let Some(format) = likely.take(1).find(|format| is_proven(*format, head)) {
        return Some(Recognized::certain(format));
    }
    let (sniff, claimants) = place.registry.claims(head);
    let is_claimant = |format: &&'static dyn Format| claimants.iter().any(|other| is_same(*other, *format));
    if sniff == Sniff::Certain
        && let [format] = claimants.as_slice()
    {
        return Some(Recognized { format: *format, confidence: Confidence::Certain });
    }
    let by_claim = [place.format, place.like].into_iter().flatten().find(is_claimant);
    // A place that belongs to a format outweighs a resemblance, unless the content contradicts it.
    let by_place =
        place.format.filter(|format| sniff < Sniff::Certain && format.sniff(&Head::new(head)) >= Sniff::Maybe);
    let decided = by_claim.or(by_place);
    let format = decided.or(claimants.first().copied())?;
    let confidence = match Head::is_whole(head) {
        _ if decided.is_none() && claimants.len() > 1 => Confidence::Tied,
        true => Confidence::Certain,
        false => Confidence::Provisional,
    };
    Some(Recognized { format, confidence })
}

/// Whether two formats are the same.
pub(crate) fn is_same(one: &dyn Format, other: &dyn Format) -> bool {
    one.info().name == other.info().name
}

/// How the records of a source are reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Each record by its position, without those before it, so that appended records are read alone.
    ByRecord,
    /// Only by reading the source from its beginning.
    #[default]
    Whole,
}

impl Access {
    /// How records of this format are reached in a source with this beginning. The format's framing decides.
    pub fn of(format: &dyn Format, container: Container, head: &[u8]) -> Access {
        let info = format.info();
        match container == Container::Plain && info.traits.pieces && is_lines(info.framing, head) {
            true => Access::ByRecord,
            false => Access::Whole,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use stenograph::Registry;

    use super::*;

    const ROLE: &str = "{\"role\":\"user\",\"content\":\"x\"}\n";

    #[test]
    fn a_format_that_only_the_first_line_suggests_is_provisional() {
        let first = recognize(ROLE.as_bytes(), &PathHints::default()).unwrap();
        assert_eq!((first.format.info().name, first.confidence), ("openai-chat", Confidence::Provisional));
        let more = format!("{ROLE}{{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":{{}}}}\n");
        let more = recognize(more.as_bytes(), &PathHints::default()).unwrap();
        assert_eq!((more.format.info().name, more.confidence), ("claude-events", Confidence::Certain));
        let long = recognize(ROLE.repeat(4000).as_bytes(), &PathHints::default()).unwrap();
        assert_eq!((long.format.info().name, long.confidence), ("openai-chat", Confidence::Certain));
    }

    #[test]
    fn the_place_outweighs_a_resemblance_and_not_what_is_certain() {
        let place = crate::discover::path_hints(std::path::Path::new("/work/app/.goodvibes/transcripts/s1/a1.jsonl"));
        assert_eq!(recognize(ROLE.as_bytes(), &place).unwrap().format.info().name, "claude-events");
        let native = br#"{"v":1,"kind":"message","role":"user","content":"x"}"#;
        assert_eq!(recognize(native, &place).unwrap().format.info().name, "steno");
        assert!(recognize(b"nonsense\n", &place).is_none());
    }

    #[test]
    fn the_format_of_another_source_never_changes_the_answer() {
        let mut tried = 0;
        for format in stenograph::formats::FORMATS {
            let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stenograph/src/formats");
            let examples = examples.join(format.info().name.replace('-', "_")).join("fixtures");
            for example in fs::read_dir(&examples).into_iter().flatten().flatten() {
                let Ok(bytes) = fs::read(example.path()) else { continue };
                let name = |recognized: Option<Recognized>| recognized.map(|recognized| recognized.format.info().name);
                let alone = name(recognize(&bytes, &PathHints::default()));
                for last in stenograph::formats::FORMATS {
                    let after = name(recognize_after(Some(*last), &bytes, &PathHints::default()));
                    assert_eq!(after, alone, "{} after {}", example.path().display(), last.info().name);
                    tried += 1;
                }
            }
        }
        assert!(tried > 500, "{tried}");
    }

    #[test]
    fn lines_are_reached_by_record_whatever_else_the_format_may_be() {
        let codex = Registry::built_in().named("codex").unwrap();
        assert_eq!(Access::of(codex, Container::Plain, b"{\"timestamp\":\"x\"}\n"), Access::ByRecord);
        assert_eq!(Access::of(codex, Container::Plain, b"{\n \"session\": {},\n \"items\": ["), Access::Whole);
        assert_eq!(Access::of(codex, Container::Gzip, b"{\"timestamp\":\"x\"}\n"), Access::Whole);
        assert_eq!(Access::of(Registry::built_in().named("devflow").unwrap(), Container::Plain, b"{"), Access::Whole);
    }
}
