//! One event as an HTML fragment. [`EventView`] decides what people read of it; this file decides how the page shows it.

use jiff::tz::TimeZone;

use super::blocks::{blocks, cut_remark, line_count};
use super::escape::{escape, escaped_line, first_words};
use crate::calls::CallOutcome;
use crate::evidence::CallKind;
use crate::json;
use crate::model::{Event, Tokens, Usage};
use crate::render::view::UNKNOWN_TOOL;
use crate::render::{Block, EventView, Shown, ViewKind, grouped};
use crate::text::beginning;
use crate::time::Time;
use crate::wire;

/// How many characters of a folded text its line shows.
const PEEK_CHARS_MAX: usize = 120;

/// How many characters of a heading are shown. The content repeats what is cut.
const HEADING_CHARS_MAX: usize = 400;

/// A failed call is open if its output has at most this many lines.
const OPEN_LINES_MAX: u64 = 60;

/// How events are written.
#[derive(Clone, Debug)]
pub struct HtmlOptions {
    /// The time zone of all times.
    pub zone: TimeZone,
    /// Whether each event contains its record, in the native format.
    pub raw: Shown,
    /// How many bytes of a text are written; the rest is left out with a remark.
    pub text_size_max: Option<usize>,
    /// What the ids of events begin with: empty for the main conversation, so that event 12 is `#e12`.
    pub id_prefix: String,
}

/// Where and when an event happened, and what it took: what its view does not say.
#[derive(Clone, Debug, Default)]
pub struct HtmlFacts {
    /// Its number, as `steno show` states it; its id is `e` and this number.
    pub number: Option<u64>,
    /// The tokens of the model call that ends with it.
    pub usage: Option<Usage>,
    /// Whether the speaker of a message is the one of the message before it.
    pub speaks_on: bool,
    /// The lane of a sub-agent whose events are among those of the main conversation.
    pub lane: Option<usize>,
    /// The numbers of the first and the last event that a compaction summarizes.
    pub summarizes: Option<(u64, u64)>,
}

/// Appends one event. A call has no result here; its result is an event of its own.
pub(crate) fn event_html(
    event: &Event<'_>,
    view: &EventView,
    facts: &HtmlFacts,
    options: &HtmlOptions,
    out: &mut String,
) {
    match view.kind {
        ViewKind::User | ViewKind::Agent | ViewKind::Failure => message(event, view, facts, options, out),
        ViewKind::Compaction => compaction(event, view, facts, options, out),
        ViewKind::Thinking
        | ViewKind::Call(_)
        | ViewKind::Result(_)
        | ViewKind::Notice
        | ViewKind::Injected
        | ViewKind::Bookkeeping => HtmlStep::of(event, view, facts, options).finish(out),
    }
}

/// An event that is one line until the reader opens it: a call with its result, thinking, a notice.
#[derive(Clone, Debug)]
pub struct HtmlStep {
    /// The number of the call.
    pub call: Option<u64>,
    /// Whether the result of the call is here.
    pub is_answered: bool,
    /// What it is: a word for the sum of a group.
    pub noun: &'static str,
    /// Whether it failed.
    pub is_failure: bool,
    /// Whether it is hidden unless the reader asks for everything.
    pub is_hidden: bool,
    classes: String,
    id: String,
    number: Option<u64>,
    heading: String,
    /// Short facts at the right of the line, and the tokens, which come last.
    about: Vec<String>,
    tokens: Option<String>,
    body: String,
    time_ms: Option<i64>,
    is_open: bool,
    /// Markup that follows it.
    pub(super) after: String,
}

impl HtmlStep {
    /// A step of this event.
    pub fn of(event: &Event<'_>, view: &EventView, facts: &HtmlFacts, options: &HtmlOptions) -> HtmlStep {
        let id = id_attribute(facts.number, options);
        let mut body = String::new();
        blocks(&view.blocks, options.text_size_max, &mut body);
        let heading = match view.kind {
            ViewKind::Call(_) => {
                let short = first_words(&view.heading, HEADING_CHARS_MAX);
                if short.len() < view.heading.trim().len() {
                    let mut whole = String::from("<pre class=\"text\">");
                    escape(&view.heading, &mut whole);
                    body.insert_str(0, &(whole + "</pre>"));
                }
                format!("<b>{}</b>", escaped_line(&short))
            }
            ViewKind::Result(_) if view.heading == UNKNOWN_TOOL => format!("<b>{UNKNOWN_TOOL}</b>"),
            ViewKind::Result(_) => format!("<b>result of {}</b>", escaped_line(&view.heading)),
            _ => {
                let words = first_words(&first_text(view), PEEK_CHARS_MAX);
                let heading = escaped_line(&first_words(&view.heading, PEEK_CHARS_MAX));
                format!("<b>{heading}</b> <i>{}</i>", escaped_line(&words))
            }
        };
        let mut step = HtmlStep {
            call: view.call.filter(|_| matches!(view.kind, ViewKind::Call(_))),
            is_answered: false,
            noun: noun(view.kind),
            is_failure: false,
            is_hidden: view.kind.is_hidden(),
            classes: classes(view.kind, facts),
            id,
            number: facts.number,
            heading,
            about: view.remark.iter().map(|remark| escaped_line(remark)).collect(),
            tokens: facts.usage.as_ref().and_then(tokens),
            body,
            time_ms: event.time.as_ref().and_then(Time::to_millis),
            is_open: false,
            after: String::new(),
        };
        if let ViewKind::Result(outcome) = view.kind {
            step.set_outcome(view, outcome);
        }
        raw_record(event, options, &mut step.body);
        step
    }

    /// The step with this markup after it.
    pub(super) fn followed_by(self, after: String) -> HtmlStep {
        HtmlStep { after, ..self }
    }

    /// Adds the result of the call.
    pub fn answer(&mut self, event: &Event<'_>, view: &EventView, facts: &HtmlFacts, options: &HtmlOptions) {
        self.is_answered = true;
        if let ViewKind::Result(outcome) = view.kind {
            self.about.extend(view.remark.iter().map(|remark| escaped_line(remark)));
            self.set_outcome(view, outcome);
        }
        let took = event.time.as_ref().and_then(Time::to_millis).zip(self.time_ms);
        self.about.extend(took.and_then(|(end, start)| duration(end - start)));
        self.body.push_str(&format!("<div class=\"result\"{}>", id_attribute(facts.number, options)));
        blocks(&view.blocks, options.text_size_max, &mut self.body);
        raw_record(event, options, &mut self.body);
        self.body.push_str("</div>");
    }

    fn set_outcome(&mut self, view: &EventView, outcome: CallOutcome) {
        let lines = line_count(&view.blocks);
        if outcome.is_failure() {
            self.is_failure = true;
            self.classes.push_str(" failed");
            self.is_open = lines.is_none_or(|lines| lines <= OPEN_LINES_MAX);
        }
        self.about.extend(match lines {
            Some(0) => Some("no output".to_owned()),
            Some(1) => Some("1 line".to_owned()),
            Some(lines) => Some(format!("{} lines", grouped(lines))),
            None => None,
        });
    }

    /// The bytes that it will take, roughly.
    pub fn size(&self) -> usize {
        self.body.len() + self.heading.len()
    }

    /// Appends the step.
    pub fn finish(&self, out: &mut String) {
        let HtmlStep { classes, id, heading, body, number, .. } = self;
        let about: Vec<&str> = self.about.iter().chain(&self.tokens).map(String::as_str).collect();
        let about = about.join(" \u{b7} ");
        let about = if about.is_empty() { about } else { format!("<small>{about}</small>") };
        let number = number.map(|number| format!("<span class=\"n\">{number}</span>")).unwrap_or_default();
        // A step without content cannot be opened.
        if body.is_empty() {
            out.push_str(&format!("<div class=\"event step {classes}\"{id}>{heading}{about}{number}</div>\n"));
            out.push_str(&self.after);
            return;
        }
        let open = if self.is_open { " open" } else { "" };
        out.push_str(&format!(
            "<details class=\"event step {classes}\"{id}{open}><summary>{heading}{about}{number}</summary>"
        ));
        out.push_str(body);
        out.push_str("</details>\n");
        out.push_str(&self.after);
    }
}

/// A person or the agent speaks, or something fails.
fn message(event: &Event<'_>, view: &EventView, facts: &HtmlFacts, options: &HtmlOptions, out: &mut String) {
    let classes = classes(view.kind, facts);
    let again = if facts.speaks_on { " again" } else { "" };
    out.push_str(&format!("<article class=\"event {classes}{again}\"{}><header>", id_attribute(facts.number, options)));
    let heading = escaped_line(&first_words(&view.heading, PEEK_CHARS_MAX));
    // Prompts are the headings of the page.
    let name = if view.kind == ViewKind::User { "h2" } else { "h3" };
    out.push_str(&format!("<{name}>{heading}</{name}>"));
    if let Some(tokens) = facts.usage.as_ref().and_then(tokens) {
        out.push_str(&format!("<small>{tokens}</small>"));
    }
    out.push_str(&time_html(event.time.as_ref(), &options.zone));
    if let Some(number) = facts.number {
        out.push_str(&format!("<a class=\"n\" href=\"#{}e{number}\">{number}</a>", options.id_prefix));
    }
    out.push_str("</header>");
    blocks(&view.blocks, options.text_size_max, out);
    raw_record(event, options, out);
    out.push_str("</article>\n");
}

/// The context was compacted: a rule across the conversation, with the summary behind it.
fn compaction(event: &Event<'_>, view: &EventView, facts: &HtmlFacts, options: &HtmlOptions, out: &mut String) {
    let remark = view.remark.as_deref().map(|remark| format!(": {}", escaped_line(remark))).unwrap_or_default();
    let id = id_attribute(facts.number, options);
    let mut body = String::new();
    blocks(&view.blocks, options.text_size_max, &mut body);
    raw_record(event, options, &mut body);
    let number = facts.number.map(|number| format!("<span class=\"n\">{number}</span>")).unwrap_or_default();
    // No link: the heading is a control itself.
    let before = facts.summarizes.map(|(first, last)| format!("<i>events {first} to {last}</i>"));
    let heading = format!("<b>Context compacted{remark}</b>{}{number}", before.unwrap_or_default());
    out.push_str(&match body.is_empty() {
        true => format!("<div class=\"event compaction\"{id}>{heading}</div>\n"),
        false => format!("<details class=\"event compaction\"{id}><summary>{heading}</summary>{body}</details>\n"),
    });
}

fn raw_record(event: &Event<'_>, options: &HtmlOptions, out: &mut String) {
    if options.raw == Shown::Yes {
        out.push_str("<details class=\"raw\"><summary>Record</summary><pre class=\"code\"><code class=\"lang-json\">");
        let record = json::indent(&wire::event_at(event), 0);
        let shown = beginning(&record, options.text_size_max.unwrap_or(usize::MAX));
        escape(shown, out);
        out.push_str("</code></pre>");
        cut_remark(record.len() - shown.len(), out);
        out.push_str("</details>");
    }
}

fn id_attribute(number: Option<u64>, options: &HtmlOptions) -> String {
    number.map(|number| format!(" id=\"{}e{number}\"", options.id_prefix)).unwrap_or_default()
}

/// The classes of an event: what it is.
fn classes(kind: ViewKind, facts: &HtmlFacts) -> String {
    let lane = facts.lane.map(|lane| format!(" side lane-{}", lane % super::LANE_COLOURS)).unwrap_or_default();
    let class = match kind {
        ViewKind::User => "user",
        ViewKind::Agent => "agent",
        ViewKind::Thinking => "thinking",
        ViewKind::Call(kind) => return format!("call {}{lane}", kind.name()),
        ViewKind::Result(_) => "result-alone",
        ViewKind::Compaction => "compaction",
        ViewKind::Failure => "failure",
        ViewKind::Notice => "notice",
        ViewKind::Injected => "injected",
        ViewKind::Bookkeeping => "bookkeeping",
    };
    format!("{class}{lane}")
}

/// One of these, for the sum of a group.
fn noun(kind: ViewKind) -> &'static str {
    match kind {
        ViewKind::Call(CallKind::Command) => "command",
        ViewKind::Call(CallKind::Read) => "read",
        ViewKind::Call(CallKind::Edit) => "edit",
        ViewKind::Call(CallKind::Search) => "search",
        ViewKind::Call(CallKind::Fetch) => "fetch",
        ViewKind::Call(CallKind::Plan) => "plan",
        ViewKind::Call(CallKind::Question) => "question",
        ViewKind::Call(CallKind::SubAgent) => "sub-agent",
        ViewKind::Call(CallKind::Other) => "call",
        ViewKind::Thinking => "thought",
        ViewKind::User
        | ViewKind::Agent
        | ViewKind::Result(_)
        | ViewKind::Compaction
        | ViewKind::Failure
        | ViewKind::Notice
        | ViewKind::Injected
        | ViewKind::Bookkeeping => "",
    }
}

/// The first text of an event.
pub fn first_text(view: &EventView) -> String {
    let text = view.blocks.iter().find_map(|block| match block {
        Block::Markdown(text) | Block::Output(text) | Block::Code { text, .. } => Some(text.as_str()),
        Block::Diff { .. } | Block::Plan(_) | Block::Blob { .. } => None,
    });
    beginning(text.unwrap_or_default(), 4 * PEEK_CHARS_MAX * 2).to_owned()
}

/// The time of day, with the whole time for programs.
fn time_html(time: Option<&Time<'_>>, zone: &TimeZone) -> String {
    let Some(instant) = time.and_then(Time::instant) else { return String::new() };
    let zoned = instant.to_zoned(zone.clone());
    let seconds = jiff::Timestamp::from_second(instant.as_second()).unwrap_or(instant);
    format!("<time datetime=\"{seconds}\">{:02}:{:02}:{:02}</time>", zoned.hour(), zoned.minute(), zoned.second())
}

/// The tokens of a model call: what it read and what it wrote.
fn tokens(usage: &Usage) -> Option<String> {
    let Tokens { output: written, .. } = Tokens::of(usage);
    let read = Tokens::of(usage).all_input();
    (read > 0 || written > 0).then(|| format!("{} in, {} out", short_count(read), short_count(written)))
}

/// A count in at most four characters: `940`, `1.2k`, `35k`, `1.2M`.
pub fn short_count(count: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", count / unit, count % unit * 10 / unit);
    match count {
        0..=999 => count.to_string(),
        1_000..=9_999 => format!("{}k", tenths(1_000)),
        10_000..=999_999 => format!("{}k", count / 1_000),
        1_000_000..=9_999_999 => format!("{}M", tenths(1_000_000)),
        _ => format!("{}M", grouped(count / 1_000_000)),
    }
}

/// A duration that is worth a word.
pub fn duration(millis: i64) -> Option<String> {
    let millis = u64::try_from(millis).ok()?;
    let seconds = millis / 1_000;
    match seconds {
        0 if millis < 100 => None,
        0..=9 => Some(format!("{seconds}.{} s", millis % 1_000 / 100)),
        10..=59 => Some(format!("{seconds} s")),
        60..=3_599 => Some(format!("{} min {} s", seconds / 60, seconds % 60)),
        _ => Some(format!("{} h {} min", grouped(seconds / 3_600), seconds / 60 % 60)),
    }
}
