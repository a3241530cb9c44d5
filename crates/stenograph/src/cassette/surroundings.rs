//! What an agent adds to a conversation by itself: its folder, the date, notices. It is taken out of recordings and requests alike before
//! they are compared, for it differs from machine to machine and from day to day. Which words it stands between is known by the formats.

use crate::format::Surroundings;
use crate::formats::FORMATS;

/// How many lines at the head of a result are looked at: behind them is what the tool answered.
const HEAD_LINES: usize = 6;

/// What every agent adds.
fn all() -> impl Iterator<Item = Surroundings> {
    FORMATS.iter().map(|format| format.surroundings())
}

/// Takes out of a text what an agent added to it. An addition begins with a line, and ends somewhere; one without an end is none.
pub(super) fn part(text: String, asides: &mut Vec<String>) -> String {
    let marks = all().flat_map(|surroundings| surroundings.asides);
    marks.fold(text, |text, (begin, end)| cut(&text, begin, end, asides).unwrap_or(text))
}

/// The text without what stands between these marks, if anything does. It is gone through once, however often they stand in it.
fn cut(text: &str, begin: &str, end: &str, asides: &mut Vec<String>) -> Option<String> {
    let mut kept: Option<String> = None;
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(begin)).map(|at| at + from) {
        from = at + begin.len();
        if !(at == 0 || text.get(..at).is_some_and(|before| before.ends_with('\n'))) {
            continue;
        }
        let Some(until) = text.get(from..).and_then(|rest| rest.find(end)).map(|until| from + until + end.len()) else {
            break;
        };
        asides.push(text.get(at..until).unwrap_or_default().to_owned());
        join(kept.get_or_insert_default(), text.get(copied..at).unwrap_or_default().trim_end_matches('\n'));
        let after = text.get(until..).unwrap_or_default();
        copied = text.len() - after.trim_start_matches('\n').len();
        from = copied;
    }
    let mut kept = kept?;
    join(&mut kept, text.get(copied..).unwrap_or_default());
    Some(kept)
}

/// Puts what stood behind an addition below what stood before it.
fn join(kept: &mut String, more: &str) {
    if !kept.is_empty() && !more.is_empty() {
        kept.push('\n');
    }
    kept.push_str(more);
}

/// Leaves out of a result the lines at its head that are others each time.
pub(super) fn lasting(text: String) -> String {
    let is_fleeting = |line: &str| all().any(|all| all.fleeting.iter().any(|begin| line.starts_with(begin)));
    if !text.lines().take(HEAD_LINES).any(is_fleeting) {
        return text;
    }
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter(|(at, line)| *at >= HEAD_LINES || !is_fleeting(line)).map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(text: &str) -> (String, Vec<String>) {
        let mut asides = Vec::new();
        (part(text.to_owned(), &mut asides), asides)
    }

    #[test]
    fn what_an_agent_adds_is_taken_out_wherever_a_line_begins_with_it() {
        let note = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        assert_eq!(parted(note), (String::new(), vec![note.to_owned()]));
        assert_eq!(parted(&format!("{note}\n{note}\n\ngo")), ("go".to_owned(), vec![note.to_owned(); 2]));
        assert_eq!(parted(&format!("one\n\n{note}\ntwo\n")), ("one\ntwo\n".to_owned(), vec![note.to_owned()]));
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        for text in [
            "",
            "go\n",
            "what is a <system-reminder>x</system-reminder>?",
            "<system-reminder>\nopen",
            "<task>go</task>",
        ] {
            assert_eq!(parted(text), (text.to_owned(), vec![]), "{text}");
        }
    }

    #[test]
    fn lines_that_are_others_each_time_are_left_out_of_the_head_alone() {
        let text = "Chunk ID: 1a\nWall time: 0.1 seconds\nOutput:\na\nb\nc\nWall time: 9\n".to_owned();
        assert_eq!(lasting(text), "Output:\na\nb\nc\nWall time: 9\n");
        assert_eq!(lasting("a\n\nb".to_owned()), "a\n\nb");
    }
}
