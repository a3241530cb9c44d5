//! Writes events and notes as lines of the wire.

use std::fmt::Write as _;

use super::{NAME, VERSION};
use crate::json::Draft;
use crate::model::{
    Body, Content, Data, Event, Extra, Input, Note, Part, Piece, PieceKind, ServiceSpeed, ServiceTier, Span, Usage,
};
use crate::text::{Text, escape_into, quote};
use crate::time::Time;

/// An event as one line, without the newline.
pub fn event(event: &Event<'_>) -> String {
    let mut line = String::with_capacity(256);
    write_event(event, &mut line);
    line
}

/// Appends an event as one line, without the newline: the fastest way to write many.
pub fn write_event(event: &Event<'_>, out: &mut String) {
    match event.extra.get(NAME) {
        // The unknown fields of a line go back to their old positions, which requires a draft.
        Some(own) => out.push_str(&draft(event).render(Some(own))),
        None => {
            let mut line = Line::open(out);
            put_event(event, &mut line);
            line.close();
        }
    }
}

/// An event as one line, with its position in the source.
pub fn event_at(event: &Event<'_>) -> String {
    let mut draft = draft(event);
    if let Some(at) = event.at {
        draft.set("at", span(&at));
    }
    draft.render(event.extra.get(NAME))
}

/// A note as one line.
pub fn note(note: &Note) -> String {
    let (kind, text) = (quote(note.kind.name()), quote(&note.text));
    format!("{{\"v\":{VERSION},\"note\":{kind},\"text\":{text},\"at\":{}}}", span(&note.at))
}

/// A position in a source.
pub(crate) fn span(at: &Span) -> String {
    let line = match at.line {
        Span::LINE_UNKNOWN => String::new(),
        line => format!("\"line\":{line},"),
    };
    format!("{{{line}\"offset\":{},\"length\":{}}}", at.offset, at.length)
}

fn draft<'a>(event: &Event<'_>) -> Draft<'a> {
    let mut draft = Draft::new();
    put_event(event, &mut draft);
    draft
}

fn put_event(event: &Event<'_>, fields: &mut impl Fields) {
    fields.put("v", |out| push_number(VERSION, out));
    fields.put_str("kind", event.kind().name());
    fields.put_opt("time", event.time.as_ref().and_then(Time::to_iso).as_deref());
    fields.put_opt("session", event.session.as_deref());
    fields.put_opt("thread", event.thread.as_deref());
    fields.put_opt("id", event.id.as_deref());
    fields.put_opt("parent", event.parent.as_deref());
    fields.put_opt("group", event.group.as_deref());
    if event.part != Part::default() {
        fields.put("part", |out| out.push_str(&format!("[{},{}]", event.part.index, event.part.of)));
    }
    if event.restates {
        fields.put_flag("restates", Some(true));
    }
    fields.put_opt("from", event.from.as_deref());
    fields.put_opt("to", event.to.as_deref());
    fields.put_opt("model", event.model.as_deref());
    fields.put_opt("cwd", event.cwd.as_deref());
    fields.put_opt("branch", event.branch.as_deref());
    fields.put_opt("version", event.version.as_deref());
    fields.put_opt("stop_reason", event.stop_reason.as_deref());
    fields.put_opt("request_id", event.request_id.as_deref());
    if let Some(fork) = &event.forked_from {
        let mut draft = Draft::new();
        draft.set_str("session", &fork.session);
        draft.set_opt("record", fork.record.as_deref());
        fields.put_draft("forked_from", draft);
    }
    put_body(&event.body, fields);
    if let Some(usage) = &event.usage {
        fields.put_draft("usage", usage_draft(usage));
    }
    put_extra(&event.extra, fields);
}

/// The destination of the fields of an event: a draft, or directly a line.
trait Fields {
    /// Adds a value that `write` appends.
    fn put(&mut self, key: &'static str, write: impl FnOnce(&mut String));

    /// Adds an object.
    fn put_draft(&mut self, key: &'static str, draft: Draft<'static>);

    fn put_str(&mut self, key: &'static str, text: &str) {
        self.put(key, |out| push_string(text, out));
    }

    fn put_opt(&mut self, key: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.put_str(key, text);
        }
    }

    fn put_text(&mut self, key: &'static str, text: &Text<'_>) {
        self.put(key, |out| text.write_json(out));
    }

    fn put_flag(&mut self, key: &'static str, flag: Option<bool>) {
        if let Some(flag) = flag {
            self.put(key, |out| out.push_str(if flag { "true" } else { "false" }));
        }
    }

    fn put_content(&mut self, content: Option<&Content<'_>>) {
        if let Some(content) = content {
            self.put("content", |out| write_content(content, out));
        }
    }
}

impl Fields for Draft<'_> {
    fn put(&mut self, key: &'static str, write: impl FnOnce(&mut String)) {
        let mut value = String::new();
        write(&mut value);
        self.set(key, value);
    }

    fn put_draft(&mut self, key: &'static str, draft: Draft<'static>) {
        self.nest(key, draft);
    }
}

/// An object that is written field by field.
struct Line<'o> {
    out: &'o mut String,
    start: usize,
}

impl<'o> Line<'o> {
    fn open(out: &'o mut String) -> Line<'o> {
        out.push('{');
        Line { start: out.len(), out }
    }

    fn close(self) {
        self.out.push('}');
    }
}

impl Fields for Line<'_> {
    fn put(&mut self, key: &'static str, write: impl FnOnce(&mut String)) {
        if self.out.len() > self.start {
            self.out.push(',');
        }
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
        let from = self.out.len();
        write(self.out);
        // A line stays one line, whatever the value contains.
        let value = self.out.get(from..).unwrap_or_default();
        if memchr::memchr2(b'\n', b'\r', value.as_bytes()).is_some() {
            let value = crate::json::one_line(value.into()).into_owned();
            self.out.truncate(from);
            self.out.push_str(&value);
        }
    }

    fn put_draft(&mut self, key: &'static str, draft: Draft<'static>) {
        self.put(key, |out| out.push_str(&draft.render(None)));
    }
}

fn push_string(text: &str, out: &mut String) {
    out.push('"');
    escape_into(text, out);
    out.push('"');
}

fn push_number(number: u64, out: &mut String) {
    let _ = write!(out, "{number}");
}

fn put_body(body: &Body<'_>, fields: &mut impl Fields) {
    match body {
        Body::Fact { fact: name, content } => {
            fields.put_str("name", name);
            fields.put_content(content.as_ref());
        }
        Body::Message { role, content } => {
            fields.put_str("role", role.name());
            fields.put_content(Some(content));
        }
        Body::Thinking { content } => fields.put_content(Some(content)),
        Body::ToolCall { call, name, input } => {
            fields.put_str("name", name);
            fields.put_opt("call", call.as_deref());
            match input {
                Input::Json(raw) => fields.put("input", |out| out.push_str(raw)),
                Input::Text(text) => fields.put_text("input_text", text),
            }
        }
        Body::ToolResult { call, name, content, error } => {
            fields.put_opt("name", name.as_deref());
            fields.put_opt("call", call.as_deref());
            fields.put_content(Some(content));
            fields.put_flag("error", *error);
        }
        Body::Compaction { summary } => fields.put_content(summary.as_ref()),
        Body::Failure { name, content } => {
            fields.put_opt("name", name.as_deref());
            fields.put_content(content.as_ref());
        }
        Body::Stop { reason, success, content } => {
            fields.put_opt("reason", reason.as_deref());
            fields.put_flag("success", *success);
            fields.put_content(content.as_ref());
        }
        Body::Other { name, bytes } => {
            fields.put_opt("name", name.as_deref());
            if let Some(bytes) = bytes {
                fields.put_text("bytes", bytes);
            }
        }
    }
}

fn write_content(content: &Content<'_>, out: &mut String) {
    match content {
        Content::Text(text) => text.write_json(out),
        Content::Pieces(pieces) => {
            out.push('[');
            for (at, piece) in pieces.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&piece_json(piece));
            }
            out.push(']');
        }
    }
}

fn piece_json(piece: &Piece<'_>) -> String {
    let mut draft = Draft::new();
    match &piece.kind {
        PieceKind::Text(text) => draft.set_text("text", text),
        PieceKind::Blob { media, data } => {
            draft.set_opt("media", media.as_deref());
            match data {
                Data::Inline(text) => draft.set_text("data", text),
                Data::Url(text) => draft.set_text("url", text),
                Data::File(text) => draft.set_text("file", text),
            }
        }
        PieceKind::Other(raw) => draft.set("other", raw.to_string()),
    }
    if !piece.extra.is_empty() {
        let mut extra = String::new();
        piece.extra.write_json(&mut extra);
        draft.set("extra", extra);
    }
    draft.render(None)
}

/// The usage of a model call.
pub(crate) fn usage(usage: &Usage) -> String {
    usage_draft(usage).render(None)
}

fn usage_draft(usage: &Usage) -> Draft<'static> {
    let mut draft = Draft::new();
    draft.set_number("input", usage.input);
    draft.set_number("output", usage.output);
    draft.set_number("cache_read", usage.cache_read);
    draft.set_number("cache_write", usage.cache_write);
    draft.set_number("cache_write_1h", usage.cache_write_1h);
    draft.set_number("cache_write_5m", usage.cache_write_5m);
    draft.set_number("reasoning", usage.reasoning);
    draft.set_number("searches", usage.searches);
    draft.set_number("fetches", usage.fetches);
    draft.set_opt("service_tier", usage.service_tier.map(ServiceTier::name));
    draft.set_opt("speed", usage.speed.map(ServiceSpeed::name));
    if let Some(cost) = usage.cost {
        draft.set("cost", cost.to_string());
    }
    draft
}

fn put_extra(extra: &Extra<'_>, fields: &mut impl Fields) {
    let mut origins = Draft::new();
    for (origin, extra) in extra.iter().filter(|(origin, _)| origin.name() != NAME) {
        let mut json = String::new();
        extra.write_json(&mut json);
        origins.set(origin.name().to_owned(), json);
    }
    if !origins.is_empty() {
        fields.put_draft("extra", origins);
    }
}
