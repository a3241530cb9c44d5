//! A recording as a model's service: which answer comes next, how far a request has drifted from the recorded one, and how the
//! vendors' APIs spell both. Pure: what is asked comes as text and what is answered goes as text; nothing here knows HTTP.

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
pub use player::{Manner, Played, Player, Verdict};
pub use tape::{Answer, AnswerPart, Errors, Failed, Stop, Tape, TapeBuilder};
pub use vendor::{Delivery, Frame, Request, Trouble, Vendor};

#[cfg(test)]
mod tests;
