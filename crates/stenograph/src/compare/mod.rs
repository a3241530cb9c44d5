//! Two conversations side by side, whatever formats they come from: where they part, and what differs then; and which of many
//! conversations grew out of which. Of each step a fingerprint and a sketch are kept, never its text.

mod align;
mod conversation;
mod diff_step;
mod lineage;
mod text;
mod vocabulary;

pub use align::{Aside, Change, Comparison, Counts, Side, compare};
pub use conversation::{Branch, ConversationBuilder, ConversationSteps, IsInSpine, Step};
pub use diff_step::{Class, DiffStep, said, shown};
pub use lineage::{Relation, RelationEvidence, relate};
pub use text::{Differing, differing};
pub use vocabulary::Vocabulary;
