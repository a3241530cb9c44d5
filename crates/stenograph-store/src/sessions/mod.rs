//! Sessions of the index as people list them: which match, in which order, under which name, at what cost. It only reads the
//! catalogue and the index.

mod conditions;
mod cost;
mod json;
mod resume;
mod short_names;
mod tree;

pub use conditions::{Searched, SessionDetails, matches_session, narrow, sessions_with_events, speaks_of_events};
pub use cost::SessionCost;
pub use json::{iso, path_json, project_json, session_draft, session_fields, strings_json, thread_fields};
pub(crate) use resume::resume_line_here;
pub use resume::{resume_command, resume_line, resume_template};
pub use short_names::ShortNames;
pub use tree::{DEPTH_MAX, ListShape, SessionOrder, SessionRow, rows};
