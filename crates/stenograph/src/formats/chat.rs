//! One message of OpenAI's Chat Completions, as a JSON object, to events and back. Several formats hold such messages: a file
//! of them, a log of requests. This module knows the message; it must not know what a file or a record around it looks like.
//!
//! A message gives its parts in the order *thinking, what is said, tool calls*. What is left of the message rides on its
//! first event, always with the key `role`, so that a writer sees where a message begins; what is left of a call rides below the
//! key `tool_calls` (or `function_call`) of the call's own event.

mod compose;
mod list;
mod pieces;
mod read;
pub mod usage;
mod write;

pub use compose::{Composer, NOT_ANSWERED};
pub use list::{element, list, put_tools, remark, tools};
pub use pieces::address;
pub use read::{is_message, may_be_message, message};
pub use write::drafted;

use std::borrow::Cow;

use crate::model::{ExtraFields, Held, Role};

/// Who speaks in a message, or that it is a tool's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    /// Somebody with a role.
    Role(Role),
    /// A tool: `tool`, or `function` in old files.
    Tool,
}

impl Speaker {
    /// The speaker of that name, in any case: some readers take `Assistant` too.
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

/// What is left of an object below a key, whether it was opened by a reader or came back whole from a native stream.
fn below<'r>(residue: &'r ExtraFields<'_>, key: &str) -> Option<Cow<'r, ExtraFields<'r>>> {
    match residue.held(key)? {
        Held::Hole => None,
        Held::Raw(raw) => crate::json::Object::parse(raw).map(|object| Cow::Owned(object.into_extra())),
        Held::Object(inner) => Some(Cow::Borrowed(inner)),
    }
}
