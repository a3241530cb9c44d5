//! How other programs count rollouts, each in a file of its own. What is right is in `usage.rs`, and nothing here may be used for our
//! own ledger.

mod ccusage;
mod first_row;

use memchr::memmem;

use super::notices;
use crate::json::Object;
use crate::ledger::{Name, Rule, Tally};
use crate::text::Str;

/// Counts by that rule.
pub fn tally(rule: Rule) -> Box<dyn Tally> {
    match rule {
        Rule::Ccusage20 => Box::<ccusage::Ccusage>::default(),
        Rule::FirstRow => Box::<first_row::FirstRow>::default(),
    }
}

/// Input, of it cached, of it written into the cache, output, of it thinking.
type Counters = [u64; 5];

/// What a line tells that counts.
enum Told<'a> {
    /// Who the thread is.
    Meta(Object<'a>),
    /// The model from here on.
    Model(Str<'a>),
    /// What was taken in all, and by the last call.
    Count { time: Option<Str<'a>>, total: Option<Counters>, last: Option<Counters> },
}

/// The words of the lines that count. Any other need not be parsed.
const MARKS: [&[u8]; 3] = [b"token_count", b"turn_context", b"session_meta"];

fn told(line: &[u8]) -> Option<Told<'_>> {
    MARKS.iter().find(|mark| memmem::find(line, mark).is_some())?;
    let record = Object::parse(std::str::from_utf8(line).ok()?)?;
    let payload = record.peek_object("payload")?;
    match record.peek_str("type")?.as_ref() {
        "session_meta" => Some(Told::Meta(payload)),
        "turn_context" => payload.peek_str("model").map(Told::Model),
        "event_msg" if payload.peek_str("type")? == "token_count" => {
            let info = payload.peek_object("info")?;
            let counters = |key: &str| info.peek_object(key).map(|numbers| counters(&numbers));
            let (total, last) = (counters("total_token_usage"), counters("last_token_usage"));
            Some(Told::Count { time: record.peek_str("timestamp"), total, last })
        }
        _ => None,
    }
}

fn counters(numbers: &Object<'_>) -> Counters {
    let names = [notices::INPUT, notices::CACHED, notices::CACHE_WRITE, notices::OUTPUT, notices::REASONING];
    names.map(|name| numbers.peek(name).and_then(crate::json::number).unwrap_or(0))
}

/// What was taken since, no counter below nothing.
fn since(total: Counters, before: Counters) -> Counters {
    let mut taken = total;
    for (taken, before) in taken.iter_mut().zip(before) {
        *taken = taken.saturating_sub(before);
    }
    taken
}

/// What is the same for all calls of a rollout, as far as it has been read.
#[derive(Clone, Debug, Default)]
struct Place {
    source: u32,
    session: Option<Name>,
    cwd: Option<Name>,
    model: Option<Name>,
}

#[cfg(test)]
mod tests;
