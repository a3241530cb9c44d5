//! What most programs need: `use stenograph::prelude::*;`.

pub use crate::calls::{CallOutcome, OutcomeRule};
pub use crate::format::Format;
pub use crate::model::{Body, Content, Event, Kind, Note, Role};
pub use crate::session::{EventStream, Session, SessionCall};
pub use crate::{Error, Registry};
