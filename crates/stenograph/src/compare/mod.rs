//! Two conversations side by side, whatever formats they come from: where they part, and what differs then; and which of many
//! conversations grew out of which. Of each turn a fingerprint and a sketch are kept, never its text.

mod align;
mod conversation;
mod lineage;
mod text;
mod turn;
mod vocabulary;

pub use align::{Aside, Change, Comparison, Counts, Side, compare};
pub use conversation::{Branch, ConversationBuilder, ConversationSteps, IsInSpine, Step};
pub use lineage::{How, Relation, relate};
pub use text::{Differing, differing};
pub use turn::{Class, Turn, said, shown};
pub use vocabulary::Vocabulary;
