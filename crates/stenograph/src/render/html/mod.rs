//! A session as a page for a browser. The page that `steno export --to html` writes and the viewer in the browser draw events
//! with this code, so they look the same. It draws [`EventView`](super::EventView), as the terminal does, and decides nothing
//! about events itself.
//!
//! Transcripts are hostile text: every text passes through [`escape`](fn@escape), no text becomes markup, a link or a style, and the page
//! has a content security policy that allows only its own style and script.
//!
//! # Elements and classes
//!
//! These are stable; styles, scripts and tests use them.
//!
//! | element | meaning |
//! |---|---|
//! | `article.event.user`, `.agent`, `.failure` | a message, or a failure; `.again` if the speaker of the message before goes on |
//! | `details.event.step` | an event of one line until it is opened; `div` instead of `details` if it has no content |
//! | `.step.call` with `.command`, `.read`, `.edit`, `.search`, `.fetch`, `.plan`, `.question`, `.sub-agent`, `.other` | a call; `.failed` if it failed |
//! | `.step.thinking`, `.notice`, `.injected`, `.bookkeeping`, `.result-alone` | the other kinds of steps |
//! | `.step .result` | the result inside its call |
//! | `.event.compaction` | a compaction |
//! | `div.steps`, `p.sum` | the steps between two messages, and their sum; `.quiet` if all of them are bookkeeping |
//! | `p.day` | the date, where a day begins |
//! | `.n`, `summary > b`, `summary > i`, `summary > small` | in an event: its number, its heading, the beginning of its text, short facts |
//! | `.md`, `pre.code`, `pre.output` (`.long` if it scrolls), `pre.text`, `figure.diff` with `ins`, `del` and `i`, `ul.plan`, `img.image`, `p.blob` | blocks of content |
//! | `.f0` to `.f15`, `.b0` to `.b15`, `.ab`, `.ad`, `.ai`, `.au`, `.as`, `.ar` | colours and styles of a terminal |
//! | `.side` with `.lane-0` to `.lane-5` | an event of a sub-agent among those of the main conversation |
//! | `details.raw` | the record of an event |
//!
//! The id of event 12 is `e12`, with the prefix of [`HtmlOptions::id_prefix`].

mod ansi;
mod blocks;
mod digest;
mod escape;
mod event;
mod events;
mod markdown;
mod page;
mod page_summary;
mod timeline;

pub use blocks::diff as diff_html;
pub use escape::{escape, escaped_line, first_words};
pub use event::{HtmlFacts, HtmlOptions, HtmlStep};
pub use events::HtmlEvents;
pub use page::{IndexEntry, PageBody, PageChunk, PageHeader, chunk_script, index_page, page, words_script};
pub use page_summary::{HtmlAddress, PageSummary};
pub use timeline::{SessionTimeline, TIMELINE_LEGEND};

/// The style of events, in both themes. It defines the colours as custom properties of `:root`.
pub const EVENT_CSS: &str = include_str!("assets/event.css");

/// The style of the page around the events.
const PAGE_CSS: &str = include_str!("assets/page.css");

/// The script of a page.
const PAGE_SCRIPT: &str = include_str!("assets/page.js");

/// The script of an index page.
const INDEX_SCRIPT: &str = include_str!("assets/index.js");

/// How many colours the lanes of agents have: the classes `.lane-0` to `.lane-5`.
const LANE_COLOURS: usize = 6;
