//! The states of other agents, as a result reports them in the exact words of its format.

use serde::{Deserialize, Serialize};

use super::notice::between;
use super::words;
use crate::json::{Object, value_at, word};
use crate::model::{AgentState, CallWords, Event};
use crate::text::Str;

/// Evidence in a result about the agents that its call started or polled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AgentEvidence {
    /// The state of the agent, if the result is about a single one.
    pub state: Option<AgentState>,
    /// The kind of the agent.
    pub kind: Option<String>,
    /// The agents that the result lists by name.
    pub listed: Vec<ListedAgent>,
}

/// An agent in a result that lists agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ListedAgent {
    pub name: String,
    pub state: AgentState,
    /// The final message of the agent, or its error.
    pub message: Option<String>,
}

/// The most agents of one result that are read. A call polls fewer.
const LISTED_MAX: usize = 256;

impl AgentEvidence {
    /// The evidence in this result, which has this text.
    pub fn of(event: &Event<'_>, text: &str) -> AgentEvidence {
        let mut found = AgentEvidence::default();
        for (words, extra) in words(event) {
            let kind = |path: &&str| extra.word_at(path).map(Str::into_owned);
            found.kind = found.kind.take().or_else(|| words.agent_kind_fields.iter().find_map(kind));
            let field = |path: &&str| words.agent_state(&extra.word_at(path)?);
            let tagged =
                || words.agent_state(&between(text, words.agent_state_tags.filter(|_| text.starts_with('<'))?)?);
            found.state = found.state.or_else(|| words.agent_state_fields.iter().find_map(field)).or_else(tagged);
            if let Some(raw) = words.agent_list_key.and_then(|key| value_at(text, key)) {
                found.read_list(words, raw);
            }
        }
        found
    }

    /// Reads a state, or an object with the states of several agents by their names.
    fn read_list(&mut self, words: &CallWords, raw: &str) {
        if let Some((state, _)) = stated(words, raw) {
            self.state = self.state.or(Some(state));
            return;
        }
        let Some(list) = Object::parse(raw) else { return };
        self.listed.extend(list.pairs().take(LISTED_MAX).filter_map(|(name, raw)| {
            let (state, message) = stated(words, raw)?;
            Some(ListedAgent { name: name.to_owned(), state, message })
        }));
    }
}

/// A state and its message. A state is a word, or an object with the word as its only key and the message as the value.
fn stated(words: &CallWords, raw: &str) -> Option<(AgentState, Option<String>)> {
    if let Some(state) = word(raw) {
        return Some((words.agent_state(&state)?, None));
    }
    let object = Object::parse(raw)?;
    let mut pairs = object.pairs();
    let (Some((state, message)), None) = (pairs.next(), pairs.next()) else { return None };
    Some((words.agent_state(state)?, word(message).map(Str::into_owned)))
}
