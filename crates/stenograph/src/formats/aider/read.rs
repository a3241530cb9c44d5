//! Reads Aider's chat history. The format escapes nothing: a line of an answer that begins like a line of the user or of Aider
//! is read as one, as Aider itself does. The reader remembers the model and the version that Aider names at its start.

use super::{BREAK, INFO, OUTPUT, OUTPUT_FACT, STARTED, USER, write};
use crate::formats::blocks::{
    BlockReader, Ending, LineBlock, LineRole, is_blank, keep_blank, spelling_extra, without_return,
};
use crate::model::{Body, Content, Dollars, Event, Extra, Role, Usage};
use crate::read::Sink;
use crate::text::Text;
use crate::time::Time;

/// Reads one file.
#[derive(Debug, Default)]
pub struct AiderReader {
    model: Option<String>,
    version: Option<String>,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryBlock {
    /// The line with which a chat starts.
    Start,
    /// Lines of the user.
    User,
    /// Lines of Aider.
    Output,
    /// An answer of the model.
    Answer,
}

impl HistoryBlock {
    fn of(line: &[u8]) -> HistoryBlock {
        match () {
            () if started(line).is_some() => HistoryBlock::Start,
            () if line.starts_with(USER.as_bytes()) => HistoryBlock::User,
            () if line.starts_with(OUTPUT.as_bytes()) => HistoryBlock::Output,
            () => HistoryBlock::Answer,
        }
    }
}

impl BlockReader for AiderReader {
    type Kind = HistoryBlock;

    fn line_role(&mut self, open: Option<&mut LineBlock<HistoryBlock>>, line: &[u8]) -> LineRole<HistoryBlock> {
        let kind = HistoryBlock::of(line);
        match open.map(|open| open.kind) {
            None if is_blank(line) => LineRole::Between,
            Some(HistoryBlock::User | HistoryBlock::Output | HistoryBlock::Start) if line.is_empty() => {
                LineRole::AfterEnd
            }
            Some(open) if open == kind && kind != HistoryBlock::Start => LineRole::Continues,
            None | Some(_) => LineRole::Begins(kind),
        }
    }

    fn block(&mut self, block: &LineBlock<HistoryBlock>, _ending: Ending, out: &mut dyn Sink) {
        let (first, end) = block.trimmed();
        if first == end {
            return;
        }
        let source = block.text(first, end);
        let (body, time) = body(source);
        let mut event = Event { at: Some(block.span(first, end)), time, ..Event::new(body) };
        if block.kind == HistoryBlock::Output {
            self.read_output(&mut event);
        }
        if matches!(block.kind, HistoryBlock::Output | HistoryBlock::Answer) {
            event.model = self.model.clone().map(Into::into);
            event.version = self.version.clone().map(Into::into);
        }
        let mut extra = spelling_extra(source, write::block(&event).as_deref());
        keep_blank(block, end, &mut extra);
        event.extra = Extra::of(&INFO, extra);
        out.event(&event);
    }
}

impl AiderReader {
    /// Reads what Aider states in its output: its version, the model, the tokens of an answer.
    fn read_output(&mut self, event: &mut Event<'_>) {
        let text = event.text();
        for line in text.lines() {
            if let Some(version) = line.strip_prefix("Aider v") {
                self.version = Some(version.to_owned());
            }
            let model = line.strip_prefix("Model: ").or_else(|| line.strip_prefix("Main model: "));
            if let Some(model) = model.and_then(|model| model.split(" with ").next()) {
                self.model = Some(model.to_owned());
            }
            if let Some(counts) = line.strip_prefix("Tokens: ") {
                event.usage = usage(counts);
            }
        }
    }
}

/// The body of a block, and the time that it states.
pub fn body(source: &[u8]) -> (Body<'static>, Option<Time<'static>>) {
    let first = source.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let lines = |prefix: &str| {
        let mut text: Vec<u8> = Vec::with_capacity(source.len());
        for (at, line) in source.split(|byte| *byte == b'\n').map(without_return).enumerate() {
            if at > 0 {
                text.push(b'\n');
            }
            let line = line.strip_prefix(prefix.as_bytes()).unwrap_or(line);
            text.extend_from_slice(line.strip_suffix(BREAK.as_bytes()).unwrap_or(line));
        }
        Content::Text(Text::from_bytes(&text).into_owned())
    };
    match HistoryBlock::of(without_return(first)) {
        HistoryBlock::Start => (Body::Fact { fact: "session".into(), content: None }, started(without_return(first))),
        HistoryBlock::User => (Body::Message { role: Role::User, content: lines(USER) }, None),
        HistoryBlock::Output => (Body::Fact { fact: OUTPUT_FACT.into(), content: Some(lines(OUTPUT)) }, None),
        HistoryBlock::Answer => {
            let content = Content::Text(Text::from_bytes(source).into_owned());
            (Body::Message { role: Role::Assistant, content }, None)
        }
    }
}

/// The time at which a chat started. Aider writes local time without a UTC offset; it is read as UTC.
fn started(line: &[u8]) -> Option<Time<'static>> {
    let time = std::str::from_utf8(line.strip_prefix(STARTED.as_bytes())?).ok()?;
    let (day, clock) = time.split_once(' ')?;
    Time::iso(format!("{day}T{clock}z").into())
}

/// The usage in `2.3k sent, 1k cache hit, 120 received. Cost: $0.01 message, $0.05 session.`. Aider rounds the counts. What it
/// sends includes the tokens of the cache.
fn usage(text: &str) -> Option<Usage> {
    let (counts, costs) = text.split_once(". ").unwrap_or((text.trim_end_matches('.'), ""));
    let count = |word: &str| counts.split(", ").find_map(|count| tokens(count.strip_suffix(word)?.trim()));
    let (cache_write, cache_read) = (count("cache write"), count("cache hit"));
    let cached = cache_write.unwrap_or(0).saturating_add(cache_read.unwrap_or(0));
    let input = count("sent").map(|sent| sent.saturating_sub(cached));
    let cost = costs.strip_prefix("Cost: $").and_then(|cost| Dollars::spelled(cost.split(' ').next()?));
    Usage { input, output: count("received"), cache_write, cache_read, cost, ..Usage::default() }.stated()
}

fn tokens(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('k') {
        Some(digits) => (digits, 1000.0),
        None => (text.strip_suffix('M').unwrap_or(text), if text.ends_with('M') { 1_000_000.0 } else { 1.0 }),
    };
    let digits = digits.replace(',', "");
    let number: f64 = digits.parse().ok().filter(|number| (0.0..1e12).contains(number))?;
    Some((number * unit).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rounded_and_may_have_a_cost() {
        let found = usage("2.3k sent, 1k cache hit, 120 received. Cost: $0.01 message, $0.05 session.").unwrap();
        assert_eq!((found.input, found.cache_read, found.output), (Some(1300), Some(1000), Some(120)));
        assert_eq!(found.cost.map(|cost| cost.to_string()).as_deref(), Some("0.01"));
        assert_eq!(
            usage("769 sent, 47 received.").map(|usage| (usage.input, usage.output)),
            Some((Some(769), Some(47)))
        );
        assert_eq!(usage("none"), None);
    }
}
