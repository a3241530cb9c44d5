//! Plays a recording as the service of a model: selects the next answer, compares a request with the recorded one, and reads and writes
//! the APIs of the vendors. Requests and answers are texts; nothing here knows HTTP.

mod anthropic;
mod chat_item;
mod drift;
mod injected;
mod openai;
mod player;
mod responses;
mod side_requests;
mod tape;
mod vendor;

pub use chat_item::ChatItem;
pub use drift::{Drift, Remark, What};
pub use player::{CassettePlayer, MatchMode, Played, PlayedAnswer};
pub use tape::{Answer, AnswerPart, Errors, Failed, Stop, Tape, TapeBuilder};
pub use vendor::{Delivery, Request, StreamFrame, Trouble, Vendor};

#[cfg(test)]
mod tests;
