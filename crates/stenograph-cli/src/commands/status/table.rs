//! Formats runs as a table for people. Text from transcripts is made harmless and short first; colour only repeats the words.

use stenograph::status::{State, Why};

use super::look::RunLook;
use crate::output::{Colour, TextStyle, harmless_line, shortened};
use crate::table::ago;

const HEADINGS: [&str; 7] = ["AGENT", "SESSION", "STATE", "ACTIVE", "LAST TOOL", "CONTEXT", "PROJECT"];

/// The maximum width of a column.
const WIDTHS_MAX: [usize; 7] = [20, 64, 40, 12, 24, 8, 40];

/// How much of a session's id precedes the name of one of its agents.
const SHORT_LENGTH: usize = 13;

/// The lines of the table; none if it is empty.
pub fn lines(runs: &[RunLook], now_ms: i64, colour: Colour) -> Vec<String> {
    if runs.is_empty() {
        return Vec::new();
    }
    let rows: Vec<[String; 7]> = runs.iter().map(|run| row(run, now_ms)).collect();
    let mut widths = HEADINGS.map(|heading| heading.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let heading = line(&HEADINGS.map(str::to_owned), &widths);
    let mut lines = vec![colour.paint(TextStyle::Faint, &heading)];
    for (run, row) in runs.iter().zip(&rows) {
        let paint = match run.status.state {
            State::Running => TextStyle::Good,
            State::Failed | State::Error | State::Stuck | State::Stale => TextStyle::Warning,
            State::Completed | State::Unknown => TextStyle::Faint,
        };
        let [agent, session, state, rest @ ..] = row;
        let [agent_width, session_width, state_width, rest_widths @ ..] = &widths;
        let state = colour.paint(paint, &padded(state, *state_width));
        let (agent, session) = (padded(agent, *agent_width), padded(session, *session_width));
        lines.push(format!("{agent}  {session}  {state}  {}", line(rest, rest_widths)).trim_end().to_owned());
    }
    lines
}

fn row(run: &RunLook, now_ms: i64) -> [String; 7] {
    let status = &run.status;
    let file = || run.path.file_stem().map(|name| name.to_string_lossy().into_owned());
    let session = match (&status.session, &status.thread) {
        // A prefix of an id is as good as all of it; an id with an ellipsis is not.
        (Some(session), Some(thread)) => {
            Some(format!("{}/{thread}", session.chars().take(SHORT_LENGTH).collect::<String>()))
        }
        (Some(session), None) => Some(session.clone()),
        (None, _) => file(),
    };
    let project = status.cwd.as_deref().map(|cwd| cwd.rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or(cwd));
    let cells = [
        run.agent().unwrap_or("-").to_owned(),
        session.unwrap_or_else(|| "-".to_owned()),
        state(run),
        ago(now_ms.saturating_sub(run.active_ms())),
        status.tool.clone().unwrap_or_else(|| "-".to_owned()),
        status.context.map_or("-".to_owned(), thousands),
        project.unwrap_or("-").to_owned(),
    ];
    let mut widths = WIDTHS_MAX.into_iter();
    cells.map(|cell| shortened(&harmless_line(&cell), widths.next().unwrap_or(40)).into_owned())
}

/// The word for a state in text for people; JSON has the name of the state.
pub(super) fn word(state: State, why: Why) -> &'static str {
    match (state, why) {
        (State::Stale, _) => "stalled",
        (State::Completed, Why::Waiting) => "idle",
        (state, _) => state.name(),
    }
}

/// The state, with an explanation.
fn state(run: &RunLook) -> String {
    let status = &run.status;
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
    let more = if more.is_empty() { more } else { format!(": {more}") };
    format!("{}{more}{recovered}", word(status.state, status.why))
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| padded(cell, *width)).collect();
    cells.join("  ").trim_end().to_owned()
}

fn padded(cell: &str, width: usize) -> String {
    let gap = width.saturating_sub(cell.chars().count());
    format!("{cell}{}", " ".repeat(gap))
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
    fn numbers_are_short() {
        assert_eq!([0, 999, 45_678, 1_250_000].map(thousands), ["0", "999", "45k", "1.2M"]);
    }
}
