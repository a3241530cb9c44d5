//! Texts that an agent injects into a conversation: its folder, the date, reminders. They differ by machine and by day, so they are removed
//! from recordings and requests before the comparison. [`FormatInfo`](crate::model::FormatInfo) has the words.

use crate::formats::FORMATS;

/// The most header lines of a result. The output of the tool follows them.
const HEAD_LINES: usize = 6;

/// Removes from a text what any agent injects, and collects it. An injected text begins at the start of a line; one without an end
/// stays.
pub(super) fn split_injected(text: String, injected: &mut Vec<String>) -> String {
    let marks = FORMATS.iter().flat_map(|format| format.info().injected);
    marks.fold(text, |text, (begin, end)| cut(&text, begin, end, injected).unwrap_or(text))
}

/// The text without the parts between these marks; `None` if there are none. One pass, however many there are.
fn cut(text: &str, begin: &str, end: &str, injected: &mut Vec<String>) -> Option<String> {
    let mut rest: Option<String> = None;
    let (mut copied, mut from) = (0, 0);
    while let Some(at) = text.get(from..).and_then(|rest| rest.find(begin)).map(|at| at + from) {
        from = at + begin.len();
        if !(at == 0 || text.get(..at).is_some_and(|before| before.ends_with('\n'))) {
            continue;
        }
        let Some(until) = text.get(from..).and_then(|rest| rest.find(end)).map(|until| from + until + end.len()) else {
            break;
        };
        injected.push(text.get(at..until).unwrap_or_default().to_owned());
        join(rest.get_or_insert_default(), text.get(copied..at).unwrap_or_default().trim_end_matches('\n'));
        let after = text.get(until..).unwrap_or_default();
        copied = text.len() - after.trim_start_matches('\n').len();
        from = copied;
    }
    let mut rest = rest?;
    join(&mut rest, text.get(copied..).unwrap_or_default());
    Some(rest)
}

/// Appends the text after a removed part on a new line.
fn join(rest: &mut String, more: &str) {
    if !rest.is_empty() && !more.is_empty() {
        rest.push('\n');
    }
    rest.push_str(more);
}

/// Removes the lines at the head of a result that change on every run.
pub(super) fn without_changing_lines(text: String) -> String {
    let changes = |line: &str| {
        let mut prefixes = FORMATS.iter().flat_map(|format| format.info().changing_lines);
        prefixes.any(|prefix| line.starts_with(prefix))
    };
    if !text.lines().take(HEAD_LINES).any(changes) {
        return text;
    }
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter(|(at, line)| *at >= HEAD_LINES || !changes(line)).map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(text: &str) -> (String, Vec<String>) {
        let mut injected = Vec::new();
        (split_injected(text.to_owned(), &mut injected), injected)
    }

    #[test]
    fn injected_text_is_removed_wherever_a_line_begins_with_it() {
        let note = "<system-reminder>\nToday is Monday.\n</system-reminder>";
        assert_eq!(parted(note), (String::new(), vec![note.to_owned()]));
        assert_eq!(parted(&format!("{note}\n{note}\n\ngo")), ("go".to_owned(), vec![note.to_owned(); 2]));
        assert_eq!(parted(&format!("one\n\n{note}\ntwo\n")), ("one\ntwo\n".to_owned(), vec![note.to_owned()]));
    }

    #[test]
    fn text_that_only_looks_injected_stays() {
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
    fn changing_lines_are_removed_from_the_head_alone() {
        let text = "Chunk ID: 1a\nWall time: 0.1 seconds\nOutput:\na\nb\nc\nWall time: 9\n".to_owned();
        assert_eq!(without_changing_lines(text), "Output:\na\nb\nc\nWall time: 9\n");
        assert_eq!(without_changing_lines("a\n\nb".to_owned()), "a\n\nb");
    }
}
