//! A session as a Markdown document: a table of metadata, then section by section what each speaker said and did. Events are
//! written as they arrive, so memory does not grow with the session. `markup.rs` keeps each text in its place.

use std::io::{self, Write};

use jiff::tz::TimeZone;

use super::markup::{code, code_words, prose, words};
use super::sections::{EventSection, Speaker, SpeakerSections};
use super::{failure, grouped, harmless_line, stated_dollars};
use crate::calls::{CallStep, Calls};
use crate::json;
use crate::model::{Body, Content, Data, Event, Input, Outline, Piece, PieceKind};
use crate::time::{Precision, Time};

/// How much of a title or an error the table shows.
const CELL_CHARS_MAX: usize = 300;

/// Whether something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Show it.
    Yes,
    /// Leave it out.
    No,
}

/// Writes a session.
pub struct Markdown<W> {
    out: W,
    thinking: Shown,
    tools: Shown,
    /// The time zone of all times.
    zone: TimeZone,
    sections: SpeakerSections,
    /// The heading of a section that has no output yet.
    heading: Option<String>,
    calls: Calls,
}

impl<W: Write> Markdown<W> {
    /// A document that is written to `out`, with times in this time zone.
    pub fn new(out: W, thinking: Shown, tools: Shown, zone: TimeZone) -> Markdown<W> {
        Markdown {
            out,
            thinking,
            tools,
            zone,
            sections: SpeakerSections::default(),
            heading: None,
            calls: Calls::default(),
        }
    }

    /// Writes the head: the metadata of the session. `name` replaces a missing session id.
    pub fn head(&mut self, outline: &Outline, format: &str, name: &str) -> io::Result<()> {
        let id = outline.session.as_deref().unwrap_or(name);
        let mut text = format!("# Transcript: {}\n\n| Field | Value |\n|---|---|\n", words(id));
        for (field, value) in fields(outline, format, &self.zone) {
            text.push_str(&format!("| {field} | {value} |\n"));
        }
        text.push_str("\n## Conversation\n");
        self.out.write_all(text.as_bytes())
    }

    /// Writes the head of a side conversation that has its own source.
    pub fn side(&mut self, thread: &str) -> io::Result<()> {
        (self.sections, self.heading, self.calls) = (SpeakerSections::default(), None, Calls::default());
        writeln!(self.out, "\n## Side conversation: {}", code_words(thread))
    }

    /// Adds an event that the document leaves out: it may state how a call ended.
    pub fn leave_out(&mut self, event: &Event<'_>) {
        self.calls.add(event);
    }

    /// Writes one event of the conversation.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let step = self.calls.add(event);
        if let EventSection::New(speaker) = self.sections.place(event) {
            self.heading = Some(heading(speaker, self.sections.turn(), event, &self.zone));
        }
        let Some(text) = self.text(event, &step).filter(|text| !text.trim().is_empty()) else { return Ok(()) };
        if let Some(heading) = self.heading.take() {
            self.out.write_all(heading.as_bytes())?;
        }
        // A blank line separates it from everything before it.
        self.out.write_all(b"\n")?;
        self.out.write_all(text.as_bytes())
    }

    /// Completes the document and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// The Markdown of an event; `None` if it is not shown.
    fn text(&self, event: &Event<'_>, step: &CallStep) -> Option<String> {
        let mut text = String::new();
        match &event.body {
            Body::Message { content, .. } => said(content, &mut text),
            Body::Compaction { summary } => said(summary.as_ref()?, &mut text),
            Body::Thinking { content } => {
                let mut thought = String::new();
                said(content, &mut thought);
                if self.thinking == Shown::No || thought.trim().is_empty() {
                    return None;
                }
                text = format!("<details>\n<summary>Thinking</summary>\n\n{thought}\n</details>\n");
            }
            Body::ToolCall { .. } | Body::ToolResult { .. } if self.tools == Shown::No => return None,
            Body::ToolCall { name, input, .. } => {
                text = format!("#### Tool Call: {}\n\n", code_words(name));
                given(input, &mut text);
            }
            Body::ToolResult { content, .. } => {
                let name = step.tool.as_deref().map(|name| format!(": {}", code_words(name))).unwrap_or_default();
                let failure = failure(step).map(|outcome| format!(" ({})", outcome.name())).unwrap_or_default();
                text = format!("#### Tool Result{name}{failure}\n\n");
                answered(content, &mut text);
            }
            Body::Failure { name, content } => {
                let name = name.as_deref().map(|name| format!(": {}", code_words(name))).unwrap_or_default();
                text = format!("#### Failure{name}\n\n");
                content.iter().for_each(|content| answered(content, &mut text));
            }
            Body::Stop { reason, success: Some(false), content } => {
                let reason = reason.as_deref().map(|reason| format!(": {}", code_words(reason))).unwrap_or_default();
                text = format!("#### Stopped without success{reason}\n\n");
                content.iter().for_each(|content| answered(content, &mut text));
            }
            // Success needs no words, and events without a speaker are not part of a conversation.
            Body::Stop { .. } | Body::Fact { .. } | Body::Other { .. } => return None,
        }
        Some(text)
    }
}

/// The heading of a section.
fn heading(speaker: Speaker, turn: Option<u64>, event: &Event<'_>, zone: &TimeZone) -> String {
    let name = speaker.name();
    let (first, rest) = name.split_at_checked(1).unwrap_or((name, ""));
    let mut about: Vec<String> = Vec::new();
    about.extend(event.time.as_ref().and_then(|time| time.shown(zone, Precision::Seconds)));
    about.extend(event.from.as_deref().filter(|from| *from != name).map(words));
    about.extend(event.model.as_deref().map(words));
    about.extend(event.thread.as_deref().map(|thread| format!("side conversation {}", words(thread))));
    let about = if about.is_empty() { String::new() } else { format!("\n*{}*\n", about.join(" · ")) };
    let turn = turn.map_or_else(String::new, |turn| format!(" (Turn {})", grouped(turn)));
    format!("\n### {}{rest}{turn}\n{about}", first.to_ascii_uppercase())
}

/// The metadata of a session: names and values for the table.
fn fields(outline: &Outline, format: &str, zone: &TimeZone) -> Vec<(&'static str, String)> {
    let text = |value: &Option<String>| {
        let value = value.as_deref()?.trim();
        let short: String = value.chars().take(CELL_CHARS_MAX).collect();
        let end = if short.len() < value.len() { "…" } else { "" };
        Some(format!("{}{end}", words(&short)))
    };
    let time = |time: &Option<Time<'_>>| time.as_ref()?.shown(zone, Precision::Seconds);
    let number = |number: Option<u64>| number.map(grouped);
    let total = &outline.total;
    let status = match (outline.success, &outline.stop) {
        (None, None) => None,
        (success, stop) => {
            let success = success.map(|success| if success { "success" } else { "no success" }.to_owned());
            Some([success, text(stop)].into_iter().flatten().collect::<Vec<_>>().join(", "))
        }
    };
    let found = [
        ("Title", text(&outline.header.title)),
        ("Format", Some(words(format))),
        ("Model", text(&outline.header.model)),
        ("Version", text(&outline.header.version)),
        ("Folder", text(&outline.header.cwd)),
        ("Branch", text(&outline.header.branch)),
        ("Status", status),
        ("Error", text(&outline.failure)),
        ("Started", time(&outline.started)),
        ("Ended", time(&outline.ended)),
        ("Duration", duration(outline)),
        ("Tool calls", Some(grouped(outline.calls))),
        ("Tokens in", number(total.input)),
        ("Tokens out", number(total.output)),
        ("Cache read", number(total.cache_read)),
        ("Cache write", number(total.cache_write)),
        ("Cost", total.cost.and_then(|cost| stated_dollars(cost.value()))),
    ];
    found.into_iter().filter_map(|(field, value)| Some((field, value.filter(|value| !value.is_empty())?))).collect()
}

/// The duration by the session's own timestamps.
fn duration(outline: &Outline) -> Option<String> {
    let (started, ended) = (outline.started.as_ref()?.instant()?, outline.ended.as_ref()?.instant()?);
    let seconds = u64::try_from(ended.as_second() - started.as_second()).ok()?;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {seconds} s"),
        (_, _) => format!("{} h {minutes} min", grouped(hours)),
    })
}

/// The content of a message.
fn said(content: &Content<'_>, out: &mut String) {
    match content {
        Content::Text(text) => prose(&text.decode(), out),
        Content::Pieces(pieces) => {
            for (at, piece) in pieces.iter().enumerate() {
                if at > 0 {
                    out.push('\n');
                }
                match &piece.kind {
                    PieceKind::Text(text) => prose(&text.decode(), out),
                    PieceKind::Blob { .. } | PieceKind::Other(_) => aside(piece, out),
                }
            }
        }
    }
}

/// The content of a result.
fn answered(content: &Content<'_>, out: &mut String) {
    let joined = content.joined();
    if !joined.is_empty() {
        code("text", &joined.decode(), out);
    }
    for piece in content.others() {
        out.push('\n');
        aside(piece, out);
    }
}

/// Content other than text.
fn aside(piece: &Piece<'_>, out: &mut String) {
    match &piece.kind {
        PieceKind::Text(text) => prose(&text.decode(), out),
        PieceKind::Other(raw) => code("json", &json::indent(raw, 0), out),
        PieceKind::Blob { media, data } => {
            let media = words(media.as_deref().unwrap_or("data"));
            let about = match data {
                Data::Inline(text) => format!("{media}, {} bytes of base64", grouped(text.decode().len() as u64)),
                Data::Url(text) | Data::File(text) => {
                    let place: String = harmless_line(&text.decode()).chars().take(CELL_CHARS_MAX).collect();
                    format!("{media} at {}", code_words(&place))
                }
            };
            out.push_str(&format!("*{about}*\n"));
        }
    }
}

/// The input of a call.
fn given(input: &Input<'_>, out: &mut String) {
    match input {
        Input::Json(raw) => code("json", &json::indent(raw, 0), out),
        Input::Text(text) => code("text", &text.decode(), out),
    }
}
