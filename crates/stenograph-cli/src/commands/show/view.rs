//! Formats one event for people: a line with time, role and kind, and the text below it. All text passes through [`harmless`].

use std::fmt::Write as _;

use stenograph::model::{Body, Content, Data, Event, Input, PieceKind, Usage};

use crate::clock;
use crate::output::{Colour, TextStyle, harmless, harmless_line, shortened};

/// How much of a call or a result is shown.
const LINES_MAX: usize = 8;
const LINE_CHARS_MAX: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Whole,
    Short,
}

pub fn event(event: &Event<'_>, colour: Colour) -> String {
    let mut out = String::new();
    let time = event.time.as_ref().and_then(clock::format_second);
    let time = format!("{:<23}", time.unwrap_or_else(|| "-".to_owned()));
    out.push_str(&colour.paint(TextStyle::Faint, &time));
    out.push_str("  ");
    out.push_str(&colour.paint(TextStyle::Strong, &harmless_line(&kind_and_name(event))));
    let aside = aside(event);
    if !aside.is_empty() {
        out.push_str("  ");
        out.push_str(&colour.paint(TextStyle::Faint, &harmless_line(&aside)));
    }
    out.push('\n');
    match &event.body {
        Body::ToolCall { input, .. } => indent(&input_text(input), Length::Short, &mut out),
        Body::Other { bytes: Some(bytes), .. } => indent(&bytes.decode(), Length::Short, &mut out),
        Body::ToolResult { content, .. } => indent(&content_text(content), Length::Short, &mut out),
        _ => {
            if let Some(content) = event.content() {
                indent(&content_text(content), Length::Whole, &mut out);
            }
        }
    }
    out
}

/// The contents of an event only; `None` if it has none.
pub fn contents(event: &Event<'_>) -> Option<String> {
    let text = match &event.body {
        Body::ToolCall { input, .. } => input_text(input),
        Body::Other { bytes, .. } => bytes.as_ref()?.decode().into_owned(),
        _ => content_text(event.content()?),
    };
    let text = harmless(&text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    (!text.is_empty()).then(|| format!("{text}{end}"))
}

/// The role or the kind, with a name.
fn kind_and_name(event: &Event<'_>) -> String {
    match &event.body {
        Body::Message { role, .. } => match &event.from {
            Some(from) if from != role.name() => format!("{} ({from})", role.name()),
            _ => role.name().to_owned(),
        },
        Body::Thinking { .. } => "thinking".to_owned(),
        Body::ToolCall { name, .. } => format!("call {name}"),
        Body::ToolResult { name, error, .. } => {
            let name = name.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
            let failed = if *error == Some(true) { ", failed" } else { "" };
            format!("result{name}{failed}")
        }
        Body::Compaction { .. } => "compaction".to_owned(),
        Body::Failure { name, .. } => named("failure", name.as_deref()),
        Body::Stop { reason, success, .. } => {
            let outcome = match success {
                Some(true) => ", success",
                Some(false) => ", no success",
                None => "",
            };
            format!("{}{outcome}", named("stop", reason.as_deref()))
        }
        Body::Fact { name, .. } => named("fact", Some(name)),
        Body::Other { name, .. } => named("other", name.as_deref()),
    }
}

fn named(kind: &str, name: Option<&str>) -> String {
    match name {
        Some(name) if !name.is_empty() => format!("{kind} {name}"),
        _ => kind.to_owned(),
    }
}

/// Beside it: the side conversation, the model, the usage.
fn aside(event: &Event<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(event.thread.as_ref().map(|thread| format!("thread {thread}")));
    if let Body::Message { .. } = event.body {
        parts.extend(event.model.as_ref().map(ToString::to_string));
    }
    parts.extend(event.usage.as_ref().map(usage));
    if event.restates {
        parts.push("said again".to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts.join(", ")
}

fn usage(usage: &Usage) -> String {
    let number = |number: Option<u64>, word: &str| number.map(|number| format!("{number} {word}"));
    let parts = [
        number(usage.input, "in"),
        number(usage.cache_read, "cached"),
        number(usage.cache_write, "into cache"),
        number(usage.output, "out"),
        usage.cost.map(|cost| format!("${cost}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" + ")
}

/// A tool's input, on one line if it is JSON.
pub fn input_text(input: &Input<'_>) -> String {
    match input {
        Input::Json(raw) => stenograph::json::compact(raw).into_owned(),
        Input::Text(text) => text.decode().into_owned(),
    }
}

/// The texts of a content, with a description of pieces that are not text.
pub fn content_text(content: &Content<'_>) -> String {
    let pieces = match content {
        Content::Text(text) => return text.decode().into_owned(),
        Content::Pieces(pieces) => pieces,
    };
    let texts = pieces.iter().map(|piece| match &piece.kind {
        PieceKind::Text(text) => text.decode().into_owned(),
        PieceKind::Blob { media, data } => {
            let media = media.as_deref().unwrap_or("data");
            match data {
                Data::Inline(text) => format!("[{media}, {} bytes of base64]", text.decode().len()),
                Data::Url(text) | Data::File(text) => format!("[{media} at {}]", shortened(&text.decode(), 200)),
            }
        }
        PieceKind::Other(raw) => stenograph::json::compact(raw).into_owned(),
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

fn indent(text: &str, length: Length, out: &mut String) {
    let text = harmless(text);
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    let (lines_max, chars_max) = match length {
        Length::Whole => (usize::MAX, usize::MAX),
        Length::Short => (LINES_MAX, LINE_CHARS_MAX),
    };
    for line in text.lines().take(lines_max) {
        match line {
            "" => out.push('\n'),
            line => {
                let _ = writeln!(out, "    {}", shortened(line, chars_max));
            }
        }
    }
    let more = text.lines().skip(lines_max).count();
    if more > 0 {
        let _ = writeln!(out, "    \u{2026} {more} more lines");
    }
}
