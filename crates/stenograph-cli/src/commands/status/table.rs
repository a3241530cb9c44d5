//! Formats runs as a table for people. Text from transcripts is made harmless and short first; colour only repeats the words.

use stenograph::status::{State, Why};

use crate::output::{Colour, TextStyle, harmless_line};
use crate::store::SessionLabels;
use crate::table::{self, Align, ago};
use stenograph_store::project::ProjectNames;
use stenograph_store::runs::{Need, RunLook};

const HEADINGS: [(&str, Align); 8] = [
    ("SESSION", Align::Left),
    ("AGENT", Align::Left),
    ("PROJECT", Align::Left),
    ("ACTIVE", Align::Right),
    ("LAST TOOL", Align::Left),
    ("CONTEXT", Align::Right),
    ("STATE", Align::Left),
    ("TITLE", Align::Left),
];

/// The maximum width of each column but the last: on a narrow terminal, on a wide one, and elsewhere.
const WIDTHS_NARROW: [usize; 7] = [14, 11, 12, 8, 0, 0, 26];
const WIDTHS_WIDE: [usize; 7] = [20, 12, 16, 8, 12, 7, 30];
const WIDTHS_ELSEWHERE: [usize; 7] = [64, 20, 40, 12, 24, 8, 60];

/// On a narrower terminal, the columns LAST TOOL and CONTEXT are left out, and PROJECT if sessions have titles.
const WIDE: usize = 118;

/// How much of a session's id is shown on a terminal: enough to tell apart ids that begin with the same second.
const SHORT_LENGTH: usize = 13;

/// How much of it precedes the name of one of its agents.
const SHORTER_LENGTH: usize = 8;

/// The lines of the table; none if it is empty.
pub fn lines(runs: &[&RunLook], labels: &SessionLabels, now_ms: i64, width: usize, colour: Colour) -> Vec<String> {
    if runs.is_empty() {
        return Vec::new();
    }
    let rows: Vec<[String; 8]> = runs.iter().map(|run| row(run, labels, now_ms, width)).collect();
    let mut headings = HEADINGS;
    if rows.iter().all(|[.., title]| title.is_empty()) {
        headings[7].0 = "";
    }
    let lines = if width >= WIDE {
        table::lines(headings, &rows, width)
    } else {
        let [session, agent, project, active, _, _, state, title] = headings;
        // The title says more than the project.
        let has_titles = !title.0.is_empty();
        let narrow = |[session, agent, project, active, _, _, state, title]: [String; 8]| match has_titles {
            true => [session, agent, active, state, title],
            false => [session, agent, project, active, state],
        };
        let rows: Vec<[String; 5]> = rows.into_iter().map(narrow).collect();
        let headings = match has_titles {
            true => [session, agent, active, state, title],
            false => [session, agent, project, active, state],
        };
        table::lines(headings, &rows, width)
    };
    let mut lines = lines.into_iter();
    let heading = lines.next().unwrap_or_default();
    // The state is the last column but one.
    let column = heading.rfind("STATE").unwrap_or(0);
    let next = heading.rfind(headings[7].0).filter(|_| !headings[7].0.is_empty()).unwrap_or(usize::MAX);
    let mut painted = vec![colour.paint(TextStyle::Faint, &heading)];
    painted.extend(runs.iter().zip(lines).map(|(run, line)| {
        let (before, state) = split_at_column(&line, column);
        let (state, title) = split_at_column(state, next.saturating_sub(column));
        format!("{before}{}{title}", colour.paint(style(Need::of(run)), state))
    }));
    painted
}

fn style(need: Need) -> TextStyle {
    match need {
        Need::Answer | Need::Permission => TextStyle::Strong,
        Need::Failed | Need::Stalled => TextStyle::Warning,
        Need::Running => TextStyle::Good,
        Need::Instruction | Need::Over | Need::Unknown => TextStyle::Faint,
    }
}

/// The parts of a line before and after a column of the terminal.
fn split_at_column(line: &str, column: usize) -> (&str, &str) {
    let mut ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
    let at = ends.find(|at| line.get(..*at).is_some_and(|before| table::display_width(before) >= column));
    line.split_at_checked(at.unwrap_or(line.len())).unwrap_or((line, ""))
}

fn row(run: &RunLook, labels: &SessionLabels, now_ms: i64, width: usize) -> [String; 8] {
    let status = &run.status;
    let is_elsewhere = width == usize::MAX;
    let file = || run.path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let label = status.session.as_ref().and_then(|session| labels.get(session));
    // The name that `steno list` prints. A session that the index does not know has the beginning of its id.
    let short = |session: &str, length: usize| match label {
        Some(label) => label.short.clone(),
        None => session.chars().take(length).collect(),
    };
    let session = match (&status.session, &status.thread) {
        (Some(session), Some(thread)) if is_elsewhere => Some(format!("{}/{thread}", short(session, SHORT_LENGTH))),
        (Some(session), Some(thread)) => Some(format!("{}/{thread}", short(session, SHORTER_LENGTH))),
        (Some(session), None) if is_elsewhere => Some(session.clone()),
        (Some(session), None) => Some(short(session, SHORT_LENGTH)),
        (None, _) => file(),
    };
    let of_folder = || Some(ProjectNames::default().name(status.cwd.as_deref()?, None));
    let project = label.and_then(|label| label.project.clone()).or_else(of_folder);
    let cells = [
        session.unwrap_or_else(|| "-".to_owned()),
        run.agent().unwrap_or("-").to_owned(),
        project.unwrap_or_else(|| "-".to_owned()),
        ago(now_ms.saturating_sub(run.active_ms())),
        status.tool.clone().unwrap_or_else(|| "-".to_owned()),
        status.context.map_or("-".to_owned(), thousands),
        state(run),
        label.map(|label| label.title.clone()).unwrap_or_default(),
    ];
    let widths = match () {
        () if is_elsewhere => WIDTHS_ELSEWHERE,
        () if width >= WIDE => WIDTHS_WIDE,
        () => WIDTHS_NARROW,
    };
    let mut widths = widths.into_iter();
    cells.map(|cell| table::truncated(&harmless_line(&cell), widths.next().unwrap_or(TITLE_WIDTH_MAX)))
}

/// The maximum width of a title that goes to no terminal.
const TITLE_WIDTH_MAX: usize = 200;

/// The state, with an explanation.
fn state(run: &RunLook) -> String {
    let status = &run.status;
    match Need::of(run) {
        Need::Answer => return "needs your answer".to_owned(),
        Need::Permission => return "needs your permission".to_owned(),
        Need::Instruction | Need::Failed | Need::Stalled | Need::Running | Need::Over | Need::Unknown => {}
    }
    let more = match status.why {
        Why::Waiting => "waiting for you".to_owned(),
        Why::Ended | Why::Nothing => String::new(),
        Why::Interrupted => "interrupted".to_owned(),
        Why::Refused => "refused".to_owned(),
        Why::CutOff => "cut off".to_owned(),
        Why::LastError => status.word.clone().unwrap_or_default(),
        Why::InCall => format!("in {}", status.open.join(", ")),
        Why::Asked => "waiting for the model".to_owned(),
        Why::Answering => "answering".to_owned(),
        Why::Failing => "repeated failures".to_owned(),
        Why::Repeating => "repeating the same call".to_owned(),
    };
    let recovered = if status.is_recovered && status.state != State::Failed { ", recovered" } else { "" };
    let process = if run.is_process_missing() { ", no process seen" } else { "" };
    let more = if more.is_empty() { more } else { format!(": {more}") };
    format!("{}{more}{recovered}{process}", status.state.name())
}

fn thousands(number: u64) -> String {
    match number {
        0..1000 => number.to_string(),
        1000..1_000_000 => format!("{}k", number / 1000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_split_at_a_column_of_the_terminal() {
        assert_eq!(split_at_column("漢字  ab", 6), ("漢字  ", "ab"));
        assert_eq!(split_at_column("ab", 6), ("ab", ""));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 45_678, 1_250_000].map(thousands), ["0", "999", "45k", "1.2M"]);
    }
}
