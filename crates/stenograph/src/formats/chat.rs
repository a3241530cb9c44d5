//! One message of OpenAI's Chat Completions API, as a JSON object, to events and back. Several formats hold such messages: a
//! file of messages, a log of requests. This module knows the message, not the file or the record around it.
//!
//! A message gives its parts in the order *thinking, content, tool calls*. The extra fields of the message belong to its first
//! event and always include the key `role`, so that a writer sees where a message begins. The extra fields of a call are below
//! the key `tool_calls` (or `function_call`) of the call's own event.

mod compose;
mod list;
mod pieces;
mod read;
pub mod usage;
mod write;

pub use compose::{Composer, NOT_ANSWERED};
pub use list::{element, list, note_unknown, put_tools, tools};
pub use pieces::address;
pub use read::{is_message, may_be_message, message};
pub use write::drafted;

use std::borrow::Cow;

use crate::model::{ExtraFields, Held, Role};

/// The speaker of a message, or the fact that it is a tool result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// A speaker with a role.
    Role(Role),
    /// A tool: `tool`, or `function` in old files.
    Tool,
}

impl Speaker {
    /// The speaker with that name, in any letter case: some servers write `Assistant`.
    fn named(name: &str) -> Option<Speaker> {
        Some(match name.to_ascii_lowercase().as_str() {
            "system" => Speaker::Role(Role::System),
            "developer" => Speaker::Role(Role::Developer),
            "user" => Speaker::Role(Role::User),
            "assistant" => Speaker::Role(Role::Assistant),
            "tool" | "function" => Speaker::Tool,
            _ => return None,
        })
    }
}

/// The extra fields of an object below a key, whether a reader opened it or a native stream returned it whole.
fn below<'r>(extra: &'r ExtraFields<'_>, key: &str) -> Option<Cow<'r, ExtraFields<'r>>> {
    match extra.held(key)? {
        Held::Hole => None,
        Held::Raw(raw) => crate::json::Object::parse(raw).map(|object| Cow::Owned(object.into_extra())),
        Held::Object(inner) => Some(Cow::Borrowed(inner)),
    }
}
