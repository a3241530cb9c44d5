//! How a request differs from the recorded one: what is missing, what was added, what changed. It finds and counts
//! differences; the caller decides what to do about them.

use std::collections::HashMap;

use imara_diff::{Algorithm, Diff, Token};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::chat_item::ChatItem;
use super::tape::{Answer, Tape};
use super::vendor::Request;
use crate::model::Role;
use crate::text::quote;

/// The kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// A recorded item is missing.
    Missing,
    /// An item was added.
    Added,
    /// An item was replaced.
    Changed,
    /// A tool gave another result.
    ResultChanged,
    /// The request names another model.
    Model,
    /// The recording has ended.
    AfterEnd,
}

impl What {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            What::Missing => "missing",
            What::Added => "added",
            What::Changed => "changed",
            What::ResultChanged => "result_changed",
            What::Model => "other_model",
            What::AfterEnd => "after_the_end",
        }
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The kind of difference.
    pub what: What,
    /// The kind of item: a role, a call, a result or a model.
    pub kind: &'static str,
    /// The position of the recorded item, or of an added item in the request, from 1.
    pub place: usize,
    /// The beginning of the recorded item.
    pub recorded: Option<String>,
    /// The beginning of the requested item.
    pub asked: Option<String>,
    /// A fingerprint, to recognise the same difference in the next request.
    pub(super) fingerprint: u64,
}

/// A difference outside the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Remark {
    /// The system prompt differs.
    Prompts,
    /// Text that the agent adds differs.
    Asides,
    /// The request is not part of the recorded conversation; this is its beginning.
    SideRequest(String),
    /// The recorded answer is an error with this status.
    Failed(u16),
    /// The answer calls this tool, which the request does not offer.
    Tool(String),
}

/// How many differences of one request are kept; all are counted.
pub(super) const KEPT_MAX: usize = 1000;

/// How many characters of a text a report shows.
const EXCERPT_CHARS: usize = 120;

impl Drift {
    fn new(what: What, kind: &'static str, place: usize, recorded: Option<&str>, asked: Option<&str>) -> Drift {
        let seed = |text: Option<&str>| text.map_or(1, |text| xxh3_64(text.as_bytes()));
        let fingerprint = [what as u64, place as u64, seed(recorded), seed(asked)];
        let fingerprint = fingerprint
            .into_iter()
            .fold(0, |fingerprint: u64, part| xxh3_64_with_seed(&part.to_le_bytes(), fingerprint));
        // Two long texts may differ late: the excerpt begins shortly before the difference.
        let from = match (recorded, asked) {
            (Some(recorded), Some(asked)) => shared(recorded, asked).saturating_sub(EXCERPT_CHARS / 3),
            _ => 0,
        };
        let excerpt = |text: Option<&str>| text.map(|text| excerpt(text, from));
        Drift { what, kind, place, recorded: excerpt(recorded), asked: excerpt(asked), fingerprint }
    }

    /// The difference that no answer is left.
    pub(super) fn after_end() -> Drift {
        Drift::new(What::AfterEnd, "request", 0, None, None)
    }

    /// The difference in one line for people.
    pub fn line(&self) -> String {
        let text = |text: &Option<String>| quote(text.as_deref().unwrap_or_default());
        let (kind, place) = (self.kind, self.place);
        match self.what {
            What::Missing => format!("{kind} {place} is missing: {}", text(&self.recorded)),
            What::Added => format!("{kind} {place} was added: {}", text(&self.asked)),
            What::Changed => {
                format!("{kind} {place} changed: recorded {}, requested {}", text(&self.recorded), text(&self.asked))
            }
            What::ResultChanged => {
                format!("result {place} changed: recorded {}, requested {}", text(&self.recorded), text(&self.asked))
            }
            What::Model => format!("the request asks for model {}, not {}", text(&self.asked), text(&self.recorded)),
            What::AfterEnd => "the recording has ended".to_owned(),
        }
    }

    /// The difference as a JSON object.
    pub fn json(&self) -> String {
        let mut draft = crate::json::Draft::new();
        draft.set_str("what", self.what.name());
        draft.set_str("kind", self.kind);
        draft.set_number("place", (self.place > 0).then_some(self.place as u64));
        draft.set_opt("recorded", self.recorded.as_deref());
        draft.set_opt("asked", self.asked.as_deref());
        draft.render(None)
    }
}

impl Remark {
    /// The remark in one line for people.
    pub fn line(&self) -> String {
        match self {
            Remark::Prompts => "the system prompt differs from the recorded one".to_owned(),
            Remark::Asides => {
                "text that the agent adds, such as its folder and the date, differs from the recorded text".to_owned()
            }
            Remark::SideRequest(begin) => {
                format!("is a side request, outside the recorded conversation: {}", quote(begin))
            }
            Remark::Failed(status) => format!("gets the recorded error {status}"),
            Remark::Tool(name) => format!("the answer calls {}, which the request does not offer", quote(name)),
        }
    }
}

/// The differences between a request and the recorded one.
pub(super) fn drifts(tape: &Tape, answer: &Answer, request: &Request) -> Vec<Drift> {
    let mut found = Vec::new();
    if let (Some(recorded), Some(asked)) = (&answer.model, &request.model)
        && recorded != asked
    {
        found.push(Drift::new(What::Model, "model", 0, Some(recorded), Some(asked)));
    }
    compare(tape.conversation(answer), &request.conversation, &mut found);
    found
}

/// The remark on a request that is not part of the conversation.
pub(super) fn side_request_remark(request: &Request) -> Remark {
    Remark::SideRequest(request.conversation.first().map(|item| excerpt(&item.text(), 0)).unwrap_or_default())
}

/// The differences outside the conversation.
pub(super) fn remarks(tape: &Tape, answer: &Answer, request: &Request) -> Vec<Remark> {
    let mut found = Vec::new();
    let prompts = tape.prompts(answer);
    // Most agents do not record their prompts: an unknown prompt does not differ.
    if !prompts.is_empty() && prompts != request.prompts {
        found.push(Remark::Prompts);
    }
    if tape.injected(answer) != request.injected {
        found.push(Remark::Asides);
    }
    found.extend(answer.failed.as_ref().map(|failed| Remark::Failed(failed.status)));
    for block in &answer.blocks {
        if let ChatItem::Call { name, .. } = &block.item
            && !request.tools.contains(name)
            && !found.contains(&Remark::Tool(name.clone()))
        {
            found.push(Remark::Tool(name.clone()));
        }
    }
    found
}

fn compare(recorded: &[ChatItem], asked: &[ChatItem], found: &mut Vec<Drift>) {
    let mut ids: HashMap<u64, u32> = HashMap::new();
    let mut tokens = |side: &[ChatItem]| -> Vec<Token> {
        let mut token = |item: &ChatItem| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            let fingerprint = xxh3_64_with_seed(item.text().as_bytes(), sort(item) as u64);
            Token(*ids.entry(fingerprint).or_insert(next))
        };
        side.iter().map(&mut token).collect()
    };
    let (before, after) = (tokens(recorded), tokens(asked));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &before, &after, u32::try_from(ids.len()).unwrap_or(u32::MAX));
    for hunk in diff.hunks() {
        let (from, to) = (hunk.before.start as usize, hunk.after.start as usize);
        let missing = recorded.get(from..hunk.before.end as usize).unwrap_or_default();
        let new = asked.get(to..hunk.after.end as usize).unwrap_or_default();
        pair(missing, from, new, to, found);
    }
}

/// Pairs each missing item with the next added item of its kind, in order. The others are missing or added.
fn pair(missing: &[ChatItem], from: usize, new: &[ChatItem], to: usize, found: &mut Vec<Drift>) {
    let mut next = Next::default();
    let mut at = 0;
    let added = |until: usize, at: &mut usize, found: &mut Vec<Drift>| {
        for (place, item) in new.iter().enumerate().take(until).skip(*at) {
            found.push(Drift::new(What::Added, item.name(), to + place + 1, None, Some(&item.text())));
        }
        *at = until;
    };
    for (place, recorded) in (from + 1..).zip(missing) {
        let (name, text) = (recorded.name(), recorded.text());
        let Some((index, asked)) = next.of(sort(recorded), new, at) else {
            found.push(Drift::new(What::Missing, name, place, Some(&text), None));
            continue;
        };
        added(index, &mut at, found);
        let what = if sort(recorded) == Sort::Result { What::ResultChanged } else { What::Changed };
        found.push(Drift::new(what, name, place, Some(&text), Some(&asked.text())));
        at += 1;
    }
    added(new.len(), &mut at, found);
}

/// The position of the next item of each kind. Each list is scanned once per kind, however long both sides are.
#[derive(Default)]
struct Next([usize; 5]);

impl Next {
    fn of<'s>(&mut self, wanted: Sort, items: &'s [ChatItem], from: usize) -> Option<(usize, &'s ChatItem)> {
        let at = self.0.get_mut(wanted as usize)?;
        *at = (*at).max(from);
        let found = items.get(*at..)?.iter().position(|item| sort(item) == wanted);
        *at = found.map_or(items.len(), |found| *at + found);
        items.get(*at).map(|item| (*at, item))
    }
}

/// Items of the same sort may be one item that changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    User,
    Assistant,
    Thinking,
    Call,
    Result,
}

fn sort(item: &ChatItem) -> Sort {
    match item {
        ChatItem::Message { role: Role::Assistant, .. } => Sort::Assistant,
        ChatItem::Message { .. } => Sort::User,
        ChatItem::Thinking { .. } => Sort::Thinking,
        ChatItem::Call { .. } => Sort::Call,
        ChatItem::Result { .. } => Sort::Result,
    }
}

/// The number of characters in the common prefix of two texts.
fn shared(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
}

fn excerpt(text: &str, from: usize) -> String {
    let mut chars = text.chars().skip(from);
    let mut excerpt: String = chars.by_ref().take(EXCERPT_CHARS).collect();
    if from > 0 {
        excerpt.insert(0, '\u{2026}');
    }
    if chars.next().is_some() {
        excerpt.push('\u{2026}');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Input;

    fn user(text: &str) -> ChatItem {
        ChatItem::Message { role: Role::User, text: text.into() }
    }

    fn spoke(text: &str) -> ChatItem {
        ChatItem::Message { role: Role::Assistant, text: text.into() }
    }

    fn called(input: &'static str) -> ChatItem {
        ChatItem::Call { id: "c".into(), name: "look".into(), input: Input::Json(input.into()) }
    }

    fn answered(text: &str) -> ChatItem {
        ChatItem::Result { id: "c".into(), text: text.into() }
    }

    fn found(recorded: &[ChatItem], asked: &[ChatItem]) -> Vec<(What, &'static str, usize)> {
        let mut found = Vec::new();
        compare(recorded, asked, &mut found);
        found.iter().map(|drift| (drift.what, drift.kind, drift.place)).collect()
    }

    #[test]
    fn equal_items_do_not_drift() {
        let recorded = [user("go"), called("{\"a\":1,\"b\":2}"), answered("done"), spoke("so")];
        let other = [user("go"), called("{ \"b\": 2, \"a\": 1 }"), answered("done"), spoke("so")];
        assert_eq!(found(&recorded, &other), []);
        assert_eq!(found(&[], &[]), []);
    }

    #[test]
    fn each_difference_has_its_kind() {
        let recorded = [user("go"), called("{}"), answered("done"), spoke("so"), user("and?")];
        let result = [user("go"), called("{}"), answered("failed"), spoke("so"), user("and?")];
        assert_eq!(found(&recorded, &result), [(What::ResultChanged, "tool_result", 3)]);
        let missing = [user("go"), called("{}"), answered("done"), user("and?")];
        assert_eq!(found(&recorded, &missing), [(What::Missing, "assistant", 4)]);
        let added = [user("go"), user("please"), called("{}"), answered("done"), spoke("so"), user("and?")];
        assert_eq!(found(&recorded, &added), [(What::Added, "user", 2)]);
        let changed = [user("stop"), called("{}"), answered("done"), spoke("so"), user("and?")];
        assert_eq!(found(&recorded, &changed), [(What::Changed, "user", 1)]);
        let call = [user("go"), called("{\"x\":1}"), answered("done"), spoke("so"), user("and?")];
        assert_eq!(found(&recorded, &call), [(What::Changed, "tool_call", 2)]);
        assert_eq!(found(&recorded, &[]).len(), 5);
        assert_eq!(found(&[], &recorded).len(), 5);
    }

    #[test]
    fn inserted_items_are_added_and_later_items_are_paired() {
        let recorded = [user("one"), answered("two")];
        let asked = [spoke("zero"), user("uno"), spoke("half"), answered("due"), spoke("three")];
        let expected = [
            (What::Added, "assistant", 1),
            (What::Changed, "user", 1),
            (What::Added, "assistant", 3),
            (What::ResultChanged, "tool_result", 2),
            (What::Added, "assistant", 5),
        ];
        assert_eq!(found(&recorded, &asked), expected);
    }

    #[test]
    fn an_excerpt_begins_shortly_before_the_texts_part() {
        let long = "x".repeat(500);
        let drift = Drift::new(What::Changed, "user", 1, Some(&format!("{long}old")), Some(&format!("{long}new")));
        assert!(drift.recorded.as_ref().unwrap().starts_with('\u{2026}'));
        assert!(drift.recorded.unwrap().ends_with("old") && drift.asked.unwrap().ends_with("new"));
    }

    #[test]
    fn two_long_conversations_without_a_common_word_are_compared_in_time() {
        let recorded: Vec<ChatItem> = (0..20_000).map(|number| user(&format!("recorded {number}"))).collect();
        let asked: Vec<ChatItem> = (0..20_000).map(|number| spoke(&format!("asked {number}"))).collect();
        assert_eq!(found(&recorded, &asked).len(), 40_000);
    }
}
