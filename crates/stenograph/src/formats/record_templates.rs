//! Templates of the records that a format makes for the events of other formats. A template is a record as the agent writes it,
//! with placeholders for what the events state. A format states its templates once; [`TemplateWriter`] does the rest. The
//! templates know no format and read nothing: what a reader of the format does not find in the result is lost.
//!
//! A placeholder is a string such as `"<id>"`, and takes the place of a whole JSON value. A member without a value is left out.
//! So is an object or a list whose placeholders all have no value. A placeholder may have a default, `"<cost|0>"`; it and one
//! that ends in `|` do not decide whether their object is needed. `"<error?failed:done>"` chooses a word.
//!
//! | placeholder | value |
//! |---|---|
//! | `id`, `session`, `group`, `cwd`, `version`, `branch`, `model`, `title` | the field of the event or its session |
//! | `parent` | the record before this one in the chain of records; a record without it is not in the chain |
//! | `last` | the same, for a record that is not in the chain |
//! | `cwd digest` | the SHA-256 digest of the working folder |
//! | `time`, `millis` | the time, in RFC 3339 with milliseconds or as a number |
//! | `stop` | why the model stopped, in the agent's words |
//! | `input`, `output`, `cache read`, `cache write`, `reasoning`, `cost` | the usage |
//! | `all input`, `visible output`, `total` | input with the cache, output without thinking, all tokens |
//! | `text`, `content` | the text, or a list of all elements |
//! | `thought`, `thoughts`, `calls`, `results` | the text of the thought, lists of the elements of one kind |
//! | `call`, `name`, `arguments`, `arguments text` | the fields of a call; the name is also that of an error |
//! | `error`, `success` | whether a result failed |
//! | `result`, `failure` | the text of a result that did not fail, and of one that did |
//! | `result text`, `result content` | the text of any result, and its list of elements |
//! | `data`, `media` | a picture |

mod answer;
mod elements;
mod fill;
mod writer;

pub use writer::TemplateWriter;

use crate::model::StopReason;

/// Which ids an agent accepts for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordIds {
    Any,
    /// UUIDs only.
    Uuids,
}

/// The templates of a format. An empty template means that the format has no such record or element.
#[derive(Clone, Copy, Debug)]
pub struct RecordTemplates {
    /// The first record.
    pub header: &'static str,
    pub user: &'static str,
    /// What the model said, thought and called in one response.
    pub answer: &'static str,
    /// The same answer once more with its calls and their results, if the answer itself has a place for neither.
    pub answer_with_calls: &'static str,
    /// The usage of an answer, in a record of its own.
    pub usage: &'static str,
    /// A result: a record of its own, or an element of the record with the results of an answer.
    pub result: &'static str,
    /// The results of an answer in one record.
    pub results: &'static str,
    pub compaction: &'static str,
    pub failure: &'static str,
    pub title: &'static str,
    /// The elements of a content.
    pub text: &'static str,
    pub picture: &'static str,
    pub thought: &'static str,
    pub call: &'static str,
    pub ids: RecordIds,
    /// The words for why a model stopped: one if it called tools, one if it did not, and others.
    pub stops: &'static [(StopReason, &'static str)],
}

impl RecordTemplates {
    /// No templates.
    pub const NONE: RecordTemplates = RecordTemplates {
        header: "",
        user: "",
        answer: "",
        answer_with_calls: "",
        usage: "",
        result: "",
        results: "",
        compaction: "",
        failure: "",
        title: "",
        text: "",
        picture: "",
        thought: "",
        call: "",
        ids: RecordIds::Any,
        stops: &[],
    };

    /// Whether an answer keeps the order of texts, thoughts and calls: they are elements of one list.
    fn is_ordered(&self) -> bool {
        self.answer.contains("\"<content>\"")
    }
}
