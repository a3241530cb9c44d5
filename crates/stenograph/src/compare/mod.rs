//! Compares two conversations in any formats: where they diverge and how they differ. It also finds which of many conversations are
//! forks of which. Memory holds a hash and a sketch of each step, never its text.

mod align;
mod conversation;
mod diff_step;
mod lineage;
mod report;
mod steps;
mod text;
mod vocabulary;

pub use align::{Comparison, Counts, DiffChange, Side, Uncompared, compare};
pub use conversation::{Branch, ConversationBuilder, ConversationSteps, IsInSpine, Step};
pub use diff_step::{Class, DiffStep};
pub use lineage::{Relation, RelationEvidence, relate};
pub use report::{ShownChange, StepText};
pub use steps::{DiffSteps, DiffStepsBuilder};
pub use text::{Differing, TextPart, differing, text_parts};
pub use vocabulary::Vocabulary;
