//! Permissions in a record: the new permission mode, and decisions about calls.

use super::words;
use crate::model::{Body, Event, Verdict};
use crate::text::Str;

/// The permission mode that a record states: what the agent may do without asking.
pub(crate) fn permission_mode(event: &Event<'_>) -> Option<String> {
    let modes = words(event).filter_map(|(words, extra)| {
        let mut found: Vec<Str<'_>> = words.mode_fields.iter().filter_map(|path| extra.word_at(path)).collect();
        if let Body::Fact { fact: name, content: Some(content) } = &event.body
            && words.mode_facts.contains(&name.as_ref())
        {
            found.push(Str::Owned(content.joined().decode().trim().to_owned()));
        }
        Some(found.join(", ")).filter(|mode| !mode.is_empty())
    });
    modes.last()
}

/// A decision of a person or a rule about a call, in a separate record.
#[derive(Debug)]
pub(crate) struct Judgement {
    pub verdict: Verdict,
    pub reason: String,
}

impl Judgement {
    /// The decision that this event states.
    pub fn of(event: &Event<'_>) -> Option<Judgement> {
        let Body::Fact { fact: name, .. } = &event.body else { return None };
        words(event).find_map(|(words, extra)| {
            let paths = words.judgements.iter().find(|judgement| *name == judgement.fact)?;
            let stated = extra.word_at(paths.field)?;
            let (_, verdict) = paths.words.iter().find(|(word, _)| *word == stated)?;
            let reason = extra.word_at(paths.reason).unwrap_or_default().into_owned();
            Some(Judgement { verdict: *verdict, reason })
        })
    }
}
