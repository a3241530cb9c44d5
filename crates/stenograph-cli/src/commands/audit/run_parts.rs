//! Formats the parts of an audit about the run, for people: sub-agents, to-dos, errors, approvals, phases without progress, compactions, context
//! size.

use std::fmt::Write as _;

use stenograph::audit::{
    Agent, Audit, AuditStep, CallOutcome, Compaction, ContextParts, ContextSize, End, FaultKind, StuckKind, Verdict,
};
use stenograph::evidence::TodoProgress;
use stenograph::status::Why;

use super::view::{Room, brief, heading, more, number, span};
use crate::output::{Colour, TextStyle, counted, grouped};
use crate::store::bytes;

const LINE_LENGTH_MAX: usize = 120;

/// The maximum length of an error message.
const ERROR_LENGTH_MAX: usize = 400;

/// The width of a sparkline.
const SPARK_WIDTH: usize = 60;

/// How many lines of a list are shown.
const LINES_MAX: usize = 8;

/// The reason for the state of a run, in a few words.
pub fn why(end: &End) -> String {
    let words = match end.why {
        Why::Waiting => "waiting for you",
        Why::Ended => "the run has ended",
        Why::Interrupted => "interrupted by the user",
        Why::Refused => "the model refused",
        Why::CutOff => "the answer reached a limit",
        Why::LastError => "the last record is an error",
        Why::InCall => "a call has no result",
        Why::Asked => "the model has not answered",
        Why::Answering => "the answer is incomplete",
        Why::Failing => "the last steps failed",
        Why::Repeating => "the same call repeats",
        Why::Nothing => "no messages",
    };
    match &end.word {
        Some(word) => format!("{words}: {}", brief(word, LINE_LENGTH_MAX)),
        None => words.to_owned(),
    }
}

/// The parts that cannot be requested separately.
pub fn text(audit: &Audit, colour: Colour, out: &mut String) {
    errors(audit, colour, out);
    approvals(audit, colour, out);
    phases(audit, colour, out);
    compactions(audit, colour, out);
    context(&audit.context, colour, out);
}

/// The agents as a tree.
pub fn agents(audit: &Audit, room: Room, colour: Colour, out: &mut String) {
    heading("agents", &counted(audit.agents.count(), "agent"), colour, out);
    // Not recursive: a stack of the agents still to be shown, with their depths.
    let below = |parent: Option<usize>| {
        let found = audit.agents.items.iter().enumerate().filter(move |(_, agent)| agent.parent == parent);
        found.map(|(at, _)| at).rev().collect::<Vec<_>>()
    };
    let mut stack: Vec<(usize, usize)> = below(None).into_iter().map(|at| (at, 0)).collect();
    let mut shown = 0;
    while let Some((at, depth)) = stack.pop() {
        let Some(agent) = audit.agents.items.get(at) else { continue };
        if shown >= room.lines() {
            break;
        }
        shown += 1;
        let _ = writeln!(out, "  {}{}", "  ".repeat(depth.min(20)), agent_line(agent, colour));
        stack.extend(below(Some(at)).into_iter().map(|below| (below, depth + 1)));
    }
    more(
        audit.agents.count().saturating_sub(shown as u64),
        if room == Room::Beside { "agents" } else { "" },
        colour,
        out,
    );
}

fn agent_line(agent: &Agent, colour: Colour) -> String {
    let kind = agent.kind.as_deref().unwrap_or("agent");
    let task = agent.title.as_deref().or(agent.task.as_deref()).unwrap_or("(unknown task)");
    let mut remarks = vec![agent.state.name().to_owned()];
    if agent.calls > 0 {
        remarks.push(counted(agent.calls, "call"));
    }
    if agent.failed > 0 {
        remarks.push(format!("{} failed", grouped(agent.failed)));
    }
    if let Some(place) = agent.place {
        remarks.push(format!("event {}", number(place)));
    }
    if !agent.later.items.is_empty() {
        let events: Vec<String> = agent.later.items.iter().take(4).map(|place| number(*place)).collect();
        remarks.push(format!("polled in {}", events.join(", ")));
    }
    let id = agent.id.as_deref().map(|id| format!(" {}", brief(id, 24))).unwrap_or_default();
    let remarks = colour.paint(TextStyle::Faint, &format!("({}){id}", remarks.join(", ")));
    format!("{}: {}  {remarks}", brief(kind, 40), brief(task, LINE_LENGTH_MAX))
}

pub fn todos(audit: &Audit, room: Room, colour: Colour, out: &mut String) {
    let Some(todos) = &audit.todos else { return };
    let done = todos.items.iter().filter(|todo| todo.progress() == TodoProgress::Done).count() as u64;
    let total = todos.items.len() as u64 + todos.more;
    heading(
        "todos",
        &format!("{} of {} done, event {}", grouped(done), grouped(total), number(todos.place)),
        colour,
        out,
    );
    for todo in todos.items.iter().take(room.lines()) {
        let mark = match todo.progress() {
            TodoProgress::Done => "[x]",
            TodoProgress::Active => "[>]",
            TodoProgress::Open => "[ ]",
        };
        let _ = writeln!(out, "  {mark} {}", brief(&todo.text, LINE_LENGTH_MAX));
    }
    let left = total.saturating_sub(room.lines().min(todos.items.len()) as u64);
    more(left, if room == Room::Beside { "todos" } else { "" }, colour, out);
}

/// Why it failed.
pub fn failure(audit: &Audit, colour: Colour, out: &mut String) {
    let Some(failure) = &audit.failure else { return };
    let fault = &failure.fault;
    let name = fault.name.as_deref().unwrap_or_default();
    let what = match fault.kind {
        FaultKind::Tool => format!("{name} failed"),
        FaultKind::Denied => format!("{name} was denied"),
        FaultKind::Failure => format!("error: {name}"),
        FaultKind::Interrupted => "interrupted by the user".to_owned(),
        FaultKind::Stop => format!("the run ended badly: {name}"),
        FaultKind::Unfinished => match &failure.call {
            Some(call) => format!("the transcript ends; {} has no result", call.tool.as_deref().unwrap_or("a call")),
            None => "the transcript ends".to_owned(),
        },
    };
    let times = if failure.times > 1 { format!(", {} times", grouped(failure.times)) } else { String::new() };
    let what = brief(what.trim_end_matches([':', ' ']), LINE_LENGTH_MAX);
    heading("failure", &format!("event {}: {what}{times}", number(fault.place)), colour, out);
    for (key, value) in &failure.input {
        let _ = writeln!(out, "  {}: {}", brief(key, 40), brief(value, ERROR_LENGTH_MAX));
    }
    if !fault.text.is_empty() {
        let _ = writeln!(out, "  {}", colour.paint(TextStyle::Warning, &brief(&fault.text, ERROR_LENGTH_MAX)));
    }
    steps("before", &failure.before, colour, out);
    steps("after", &failure.after.items, colour, out);
    more(failure.after.more, "", colour, out);
    let _ = writeln!(out, "  final state: {} ({})", audit.end.state.name(), why(&audit.end));
    if failure.others > 0 {
        let _ = writeln!(out, "  {} more unresolved", grouped(failure.others));
    }
}

fn steps(name: &str, steps: &[AuditStep], colour: Colour, out: &mut String) {
    if steps.is_empty() {
        return;
    }
    let _ = writeln!(out, "  {}", colour.paint(TextStyle::Faint, name));
    for step in steps {
        let tool = step.tool.as_deref().map(|tool| format!("{tool} ")).unwrap_or_default();
        let outcome = match (step.outcome, step.exit) {
            (_, Some(exit)) => format!("  (exit {exit})"),
            (Some(CallOutcome::Ok) | None, None) => String::new(),
            (Some(CallOutcome::Unknown), None) => "  (no result)".to_owned(),
            (Some(outcome), None) => format!("  ({})", outcome.name()),
        };
        let text = brief(&format!("{tool}{}", step.text), LINE_LENGTH_MAX);
        let _ = writeln!(out, "    {:>6}  {text}{outcome}", number(step.place));
    }
}

fn errors(audit: &Audit, colour: Colour, out: &mut String) {
    if audit.errors.items.is_empty() {
        return;
    }
    let recovered = audit.errors.items.iter().filter(|error| error.recovered_by.is_some()).count() as u64;
    heading(
        "errors",
        &format!("{}, {} recovered", counted(audit.errors.count(), "error"), grouped(recovered)),
        colour,
        out,
    );
    for error in audit.errors.items.iter().take(LINES_MAX) {
        let name = error.name.as_deref().unwrap_or(error.kind.name());
        let text = if error.text.trim().is_empty() { name.to_owned() } else { format!("{name}: {}", error.text) };
        let text = brief(&text, LINE_LENGTH_MAX);
        let good = if error.recovered_by.is_some() { "" } else { "  (unresolved)" };
        let _ = writeln!(out, "  {:>6}  {text}{good}", number(error.place));
    }
    more(audit.errors.count().saturating_sub(LINES_MAX as u64), "", colour, out);
}

fn approvals(audit: &Audit, colour: Colour, out: &mut String) {
    if audit.approvals.items.is_empty() {
        return;
    }
    let count = |wanted: Option<Verdict>| {
        audit.approvals.items.iter().filter(|approval| approval.verdict == wanted).count() as u64
    };
    let mut counts = Vec::new();
    for verdict in [Verdict::Approved, Verdict::Denied, Verdict::Refused, Verdict::Blocked] {
        let number = count(Some(verdict));
        if number > 0 {
            counts.push(format!("{} {}", grouped(number), verdict.name()));
        }
    }
    if count(None) > 0 {
        counts.push(counted(count(None), "mode"));
    }
    heading("approvals", &counts.join(", "), colour, out);
    for approval in audit.approvals.items.iter().take(LINES_MAX) {
        let line = match approval.verdict {
            None => format!("mode {}", approval.about),
            Some(verdict) => {
                let tool = approval.tool.as_deref().unwrap_or_default();
                let about = brief(&approval.about, 60);
                format!("{} {tool} {about}: {}", verdict.name(), approval.reason)
            }
        };
        let _ = writeln!(out, "  {:>6}  {}", number(approval.place), brief(&line, LINE_LENGTH_MAX));
    }
    more(audit.approvals.count().saturating_sub(LINES_MAX as u64), "", colour, out);
}

fn phases(audit: &Audit, colour: Colour, out: &mut String) {
    if audit.phases.items.is_empty() {
        return;
    }
    heading("stuck", &counted(audit.phases.count(), "phase"), colour, out);
    for phase in audit.phases.items.iter().take(LINES_MAX) {
        let what = match phase.kind {
            StuckKind::Failing => format!("{} in a row failed, last", counted(phase.count, "step")),
            StuckKind::Repeating => format!("the same call with the same result, {} times:", grouped(phase.count)),
        };
        let line = brief(&format!("{what} {} {}", phase.tool, phase.about), LINE_LENGTH_MAX);
        let _ = writeln!(out, "  events {} to {}: {line}", number(phase.from), number(phase.to));
    }
    more(audit.phases.count().saturating_sub(LINES_MAX as u64), "", colour, out);
}

fn compactions(audit: &Audit, colour: Colour, out: &mut String) {
    if audit.compactions.items.is_empty() {
        return;
    }
    heading("compactions", &grouped(audit.compactions.count()), colour, out);
    for compaction in audit.compactions.items.iter().take(LINES_MAX) {
        let _ = writeln!(out, "  {:>6}  {}", number(compaction.place), removed(compaction));
    }
    more(audit.compactions.count().saturating_sub(LINES_MAX as u64), "", colour, out);
}

fn removed(compaction: &Compaction) -> String {
    let tokens = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), grouped);
    let mut line = format!(
        "removed {}, {} and {}; tokens {} to {}",
        counted(compaction.events, "event"),
        counted(compaction.messages, "message"),
        counted(compaction.calls, "call"),
        tokens(compaction.tokens_before),
        tokens(compaction.tokens_after),
    );
    let removed: Vec<String> = [(compaction.files.count(), "file"), (compaction.commands.count(), "command")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| counted(number, word))
        .collect();
    if !removed.is_empty() {
        let _ = write!(line, "; {} no longer in the context", removed.join(" and "));
    }
    if compaction.kept_messages + compaction.kept_calls > 0 {
        let (messages, calls) = (compaction.kept_messages, compaction.kept_calls);
        let _ = write!(line, "; kept {} and {}", counted(messages, "message"), counted(calls, "call"));
    }
    line
}

fn context(context: &ContextSize, colour: Colour, out: &mut String) {
    if context.calls < 2 {
        return;
    }
    let rest = format!(
        "tokens: first {}, peak {}, last {}; {}",
        grouped(context.first),
        grouped(context.max),
        grouped(context.last),
        counted(context.calls, "model call"),
    );
    heading("context", &rest, colour, out);
    let tokens: Vec<u64> = context.series.iter().map(|(_, _, tokens)| *tokens).collect();
    let _ = writeln!(out, "  {}", spark(&tokens));
    if let (Some((_, Some(from), _)), Some((_, Some(to), _))) = (context.series.first(), context.series.last()) {
        let took = u64::try_from(to.saturating_sub(*from)).unwrap_or(0);
        let _ = writeln!(out, "  {}", colour.paint(TextStyle::Faint, &format!("over {}", span(took))));
    }
    context_parts(&context.parts, out);
}

/// What the context consists of at the end, the largest part first.
fn context_parts(parts: &ContextParts, out: &mut String) {
    let total = parts.total();
    let mut named = parts.named();
    named.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let _ = writeln!(out, "  {} of text at the end", bytes(total));
    for (name, size) in named.iter().filter(|(_, size)| *size > 0) {
        let percent = u128::from(*size) * 100 / u128::from(total.max(1));
        let of = if *name == "tool_schemas" { format!("  {}", counted(parts.tools, "tool")) } else { String::new() };
        let share = if percent == 0 { "<1%".to_owned() } else { format!("{percent}%") };
        let _ = writeln!(out, "  {:>10}  {share:>4}  {}{of}", bytes(*size), name.replace('_', " "));
    }
    let missing = [("instructions", parts.instructions), ("tool schemas", parts.tool_schemas)];
    let missing: Vec<&str> = missing.iter().filter(|(_, size)| *size == 0).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let _ = writeln!(out, "  not recorded: {}", missing.join(", "));
    }
}

/// A series as a row of bars. If there are many numbers, several share a bar; the largest counts.
fn spark(numbers: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = numbers.iter().copied().max().unwrap_or(0).max(1);
    let width = numbers.len().min(SPARK_WIDTH);
    let bar = |at: usize| {
        let (from, to) = (at * numbers.len() / width, (at + 1) * numbers.len() / width);
        let number = numbers.get(from..to).and_then(|part| part.iter().copied().max()).unwrap_or(0);
        let height = u128::from(number) * 7 / u128::from(most);
        BARS.get(height as usize).copied().unwrap_or('█')
    };
    (0..width).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_becomes_a_row_of_bars() {
        assert_eq!(spark(&[0, 50, 100]), "▁▄█");
        assert_eq!(spark(&[]), "");
        assert_eq!(spark(&[7; 1000]).chars().count(), SPARK_WIDTH);
        assert_eq!(spark(&[u64::MAX, 0]), "█▁");
    }
}
