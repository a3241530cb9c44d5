//! How other programs count Codex rollouts, each in a file of its own.

mod ccusage;
mod first_row;

use memchr::memmem;

use crate::formats::peers::{PeerCounter, PeerRule};
use crate::json::Object;
use crate::ledger::Name;
use crate::text::Str;

/// The counter of a rule.
pub fn counter(rule: PeerRule) -> Box<dyn PeerCounter> {
    match rule {
        PeerRule::Ccusage20 => Box::<ccusage::Ccusage>::default(),
        PeerRule::FirstRow => Box::<first_row::FirstRow>::default(),
    }
}

/// Input, cached input, input written to the cache, output, reasoning. Input includes both cache counters.
type Counters = [u64; 5];

/// A line that matters for counting.
enum RolloutLine<'a> {
    /// The header of the rollout.
    Meta(Object<'a>),
    /// The model of the calls that follow.
    Model(Str<'a>),
    /// The total so far, and the tokens of the last call.
    Count { time: Option<Str<'a>>, total: Option<Counters>, last: Option<Counters> },
}

/// Every line that matters holds one of these words; other lines are not parsed.
const MARKS: [&[u8]; 3] = [b"token_count", b"turn_context", b"session_meta"];

fn rollout_line(line: &[u8]) -> Option<RolloutLine<'_>> {
    MARKS.iter().find(|mark| memmem::find(line, mark).is_some())?;
    let record = Object::parse(std::str::from_utf8(line).ok()?)?;
    let payload = record.peek_object("payload")?;
    match record.peek_str("type")?.as_ref() {
        "session_meta" => Some(RolloutLine::Meta(payload)),
        "turn_context" => payload.peek_str("model").map(RolloutLine::Model),
        "event_msg" if payload.peek_str("type")? == "token_count" => {
            let info = payload.peek_object("info")?;
            let counters = |key: &str| info.peek_object(key).map(|numbers| counters(&numbers));
            let (total, last) = (counters("total_token_usage"), counters("last_token_usage"));
            Some(RolloutLine::Count { time: record.peek_str("timestamp"), total, last })
        }
        _ => None,
    }
}

fn counters(numbers: &Object<'_>) -> Counters {
    const KEYS: [&str; 5] =
        ["input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens", "reasoning_output_tokens"];
    KEYS.map(|name| numbers.peek(name).and_then(crate::json::number).unwrap_or(0))
}

/// The difference of two totals; no counter falls below 0.
fn since(total: Counters, before: Counters) -> Counters {
    let mut taken = total;
    for (taken, before) in taken.iter_mut().zip(before) {
        *taken = taken.saturating_sub(before);
    }
    taken
}

/// The fields that all calls of a rollout share, as far as it has been read.
#[derive(Clone, Debug, Default)]
struct Place {
    source: u32,
    session: Option<Name>,
    cwd: Option<Name>,
    model: Option<Name>,
}

#[cfg(test)]
mod tests;
