//! Writes Leslie's transcripts. Leslie's own entries are written whole; entries from elsewhere are cut to the limits.

use std::borrow::Cow;

use super::limits::{FILE_SIZE_MAX, TOOL_LENGTH_MAX, cut_length, cut_size};
use super::read;
use super::{
    AGENT_MODE, CHAT_ID, CLOSES_QUERY, HEADER_END, KEYS, NAME, OPENS_QUERY, STOP_REASON, THREAD_ID, TIME_RANGE,
    TOOL_CALLS,
};
use crate::formats::blocks::{blank, original_spelling};
use crate::formats::placeholder;
use crate::json::Object;
use crate::model::{Body, Content, Event, ExtraFields, Held, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::Text;
use crate::write::{Writer, WriterOutput};

/// Writes one file. Leslie has no place for system prompts and thoughts.
#[derive(Debug)]
pub struct LeslieWriter {
    synthesizer: Synthesizer,
    remaining: RemainingSize,
    part: FilePart,
    /// The blank line after the last entry.
    blank: &'static str,
}

/// The remaining size of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RemainingSize {
    /// No limit: a transcript of Leslie's is written again as it was.
    Unlimited,
    /// This many bytes, without the last newline.
    Bytes(usize),
    /// An entry was cut: all later ones are left out, unless they are Leslie's own.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilePart {
    Beginning,
    Header,
    Entries,
}

/// An entry: its first lines, its text, and its closing line.
struct Entry<'a> {
    opens: String,
    text: Cow<'a, [u8]>,
    closes: &'static str,
}

impl LeslieWriter {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> LeslieWriter {
        let remaining =
            if outline.origin == NAME { RemainingSize::Unlimited } else { RemainingSize::Bytes(FILE_SIZE_MAX - 1) };
        LeslieWriter { synthesizer: Synthesizer::new(outline), remaining, part: FilePart::Beginning, blank: "" }
    }

    /// Writes the header before everything else: the source's own, or else one from what is known of the session.
    fn header(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        let is_header = matches!(&event.body, Body::Fact { fact: name, .. } if name == "session");
        let extra = event.extra.get(NAME).filter(|_| is_header);
        let fields = match (extra, self.remaining) {
            (Some(extra), _) => self.own_header(event, extra),
            // Leslie's own entries had no header, so none is synthesized.
            (None, _) if event.extra.get(NAME).is_some() => return,
            (None, RemainingSize::Unlimited) => return,
            (None, RemainingSize::Bytes(_) | RemainingSize::Full) => self.synthesized_header(),
        };
        let mut header = Vec::new();
        for (key, value) in fields {
            header.extend_from_slice(on_one_line(key.as_bytes()).as_slice());
            header.extend_from_slice(b": ");
            let value = on_one_line(&value);
            header.extend_from_slice(&match extra {
                Some(_) => Cow::Borrowed(value.as_slice()),
                None => cut_length(&value, TOOL_LENGTH_MAX),
            });
            header.push(b'\n');
        }
        header.extend_from_slice(HEADER_END.as_bytes());
        self.put(header, out);
        self.part = FilePart::Header;
    }

    /// The fields of a header that was read, in their original order; if that is unknown, in Leslie's order.
    fn own_header(&self, event: &Event<'_>, extra: &ExtraFields<'_>) -> Vec<(String, Vec<u8>)> {
        let mut keys: Vec<(&str, Option<&Held<'_>>)> =
            extra.0.iter().map(|(key, held)| (key.as_ref(), Some(held))).collect();
        let placed = extra.0.iter().any(|(_, held)| !matches!(held, Held::Raw(_)));
        if !placed {
            keys.extend([THREAD_ID, TIME_RANGE].iter().filter(|key| !extra.has(key)).map(|key| (*key, None)));
            keys.sort_by_key(|(key, _)| KEYS.iter().position(|known| known == key).unwrap_or(KEYS.len()));
        }
        // The first stop reason is the one that was read; an edit may have changed it.
        let mut stop = self.synthesizer.outline().stop.as_deref();
        let mut value = |key: &str, held: Option<&Held<'_>>| -> Option<Vec<u8>> {
            let raw = match held {
                Some(Held::Raw(raw)) => Some(raw.as_ref()),
                _ => None,
            };
            match key {
                STOP_REASON if stop.is_some() => stop.take().map(|stop| stop.as_bytes().to_vec()),
                TIME_RANGE if raw.is_none_or(|raw| raw.trim_start().starts_with('{')) => {
                    let start = event.time.as_ref()?.to_iso()?;
                    Some(format!("{start} ~ {}", end_of(held).unwrap_or_default()).into_bytes())
                }
                THREAD_ID if raw.is_none() => Some(event.session.as_deref()?.as_bytes().to_vec()),
                _ => Text::from_json(raw?).map(|text| text.bytes().into_owned()),
            }
        };
        keys.into_iter().filter_map(|(key, held)| Some((key.to_owned(), value(key, held)?))).collect()
    }

    /// The header of another system's session. Only the stop reason may be missing.
    fn synthesized_header(&mut self) -> Vec<(String, Vec<u8>)> {
        let session = self.synthesizer.session();
        let start = self.synthesizer.time(&Event::default());
        let outline = self.synthesizer.outline();
        let iso = |time: &crate::time::Time<'_>| time.to_iso().unwrap_or_default().into_owned();
        let end = outline.ended.as_ref().map_or_else(|| iso(&start), iso);
        let mut fields = vec![
            (THREAD_ID, session.clone()),
            (CHAT_ID, session),
            (TIME_RANGE, format!("{} ~ {end}", iso(&start))),
            (AGENT_MODE, "agent".to_owned()),
        ];
        fields.extend(outline.stop.clone().map(|stop| (STOP_REASON, stop)));
        fields.push((TOOL_CALLS, outline.calls.to_string()));
        fields.into_iter().map(|(key, value)| (key.to_owned(), value.into_bytes())).collect()
    }

    fn entry(&mut self, event: &Event<'_>, out: &mut WriterOutput) {
        if let (Body::Other { bytes: Some(bytes), .. }, RemainingSize::Unlimited) = (&event.body, self.remaining) {
            return self.put(bytes.bytes().into_owned(), out);
        }
        let whole = self.remaining == RemainingSize::Unlimited || event.extra.get(NAME).is_some();
        if whole {
            let reread = |bytes: &[u8]| read::body(bytes).map(Event::new).into_iter().collect();
            if let Some(bytes) = original_spelling(NAME, std::slice::from_ref(event), reread) {
                return self.put(bytes, out);
            }
        }
        let mut tool = None;
        if let Body::ToolCall { call, name, .. } = &event.body {
            self.synthesizer.pairing.call(call.as_deref(), name);
        } else if let Body::ToolResult { call, .. } = &event.body {
            tool = self.synthesizer.pairing.result(call.as_deref()).map(|(_, tool)| tool);
        }
        let Some(mut entry) = Entry::of(event, tool.as_deref()) else { return };
        let is_tool = matches!(event.body, Body::ToolCall { .. } | Body::ToolResult { .. });
        if whole {
            return self.put(entry.into_bytes(), out);
        }
        if is_tool {
            entry.text = Cow::Owned(cut_length(&entry.text, TOOL_LENGTH_MAX).into_owned());
        }
        let closing = if entry.closes.is_empty() { 0 } else { 1 + entry.closes.len() };
        let around = SEPARATOR.len() + entry.opens.len() + 1 + closing;
        match self.remaining {
            RemainingSize::Full => {}
            RemainingSize::Bytes(remaining) if around + entry.text.len() > remaining => {
                // The last entry is cut; if not even its beginning fits, it is left out like all later ones.
                let cut = remaining
                    .checked_sub(around)
                    .and_then(|remaining| cut_size(&entry.text, remaining))
                    .map(Cow::into_owned);
                if let Some(text) = cut {
                    entry.text = Cow::Owned(text);
                    self.put(entry.into_bytes(), out);
                }
                self.remaining = RemainingSize::Full;
            }
            RemainingSize::Bytes(_) | RemainingSize::Unlimited => self.put(entry.into_bytes(), out),
        }
    }

    fn put(&mut self, record: Vec<u8>, out: &mut WriterOutput) {
        let mut size = record.len();
        if self.part != FilePart::Beginning {
            out.glue(format!("\n{}\n", std::mem::take(&mut self.blank)));
            size += SEPARATOR.len();
        }
        if let RemainingSize::Bytes(remaining) = self.remaining {
            self.remaining = RemainingSize::Bytes(remaining.saturating_sub(size));
        }
        out.record(record);
        self.part = FilePart::Entries;
    }
}

/// The bytes between two entries.
const SEPARATOR: &str = "\n\n";

impl Writer for LeslieWriter {
    fn record(&mut self, events: &[Event<'_>], out: &mut WriterOutput) {
        for event in events {
            if self.part == FilePart::Beginning {
                self.header(event, out);
            }
            self.entry(event, out);
            if self.remaining == RemainingSize::Unlimited {
                self.blank = blank(NAME, event);
            }
        }
    }

    fn finish(&mut self, out: &mut WriterOutput) {
        if self.part != FilePart::Beginning {
            out.glue("\n");
        }
    }
}

impl<'a> Entry<'a> {
    /// The entry of an event; `tool` is the known tool of a result that does not name it.
    fn of(event: &'a Event<'_>, tool: Option<&str>) -> Option<Entry<'a>> {
        let text_of =
            |content: &Content<'_>| -> Cow<'a, [u8]> { Cow::Owned(placeholder::joined(content).bytes().into_owned()) };
        let name = |name: Option<&str>| {
            let name = name.filter(|name| !name.trim().is_empty()).unwrap_or("unknown");
            String::from_utf8_lossy(&on_one_line(name.as_bytes())).into_owned()
        };
        let entry = |opens: String, text| Some(Entry { opens, text, closes: "" });
        match &event.body {
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                Some(Entry { opens: format!("user:\n{OPENS_QUERY}"), text: text_of(content), closes: CLOSES_QUERY })
            }
            // Agents give the model the summary of a compaction as a user message.
            Body::Compaction { summary: Some(summary) } => {
                Some(Entry { opens: format!("user:\n{OPENS_QUERY}"), text: text_of(summary), closes: CLOSES_QUERY })
            }
            Body::Message { role: Role::Assistant, content } => entry("assistant:".to_owned(), text_of(content)),
            Body::ToolCall { name: tool, input, .. } => {
                entry(format!("[Tool call] {}", name(Some(tool))), Cow::Owned(input.to_text().bytes().into_owned()))
            }
            Body::ToolResult { name: stated, content, .. } => {
                entry(format!("[Tool result] {}", name(stated.as_deref().or(tool))), text_of(content))
            }
            Body::Failure { name, content } => {
                let text = content.as_ref().map(text_of);
                let text = text.or_else(|| name.as_deref().map(|name| Cow::Owned(name.as_bytes().to_vec())));
                entry("[Error]".to_owned(), text.unwrap_or_default())
            }
            Body::Message { role: Role::System | Role::Developer, .. } => None,
            Body::Fact { .. }
            | Body::Thinking { .. }
            | Body::Compaction { summary: None }
            | Body::Stop { .. }
            | Body::Other { .. } => None,
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.opens.into_bytes();
        if !self.text.is_empty() || !self.closes.is_empty() {
            bytes.push(b'\n');
            bytes.extend_from_slice(&self.text);
        }
        if !self.closes.is_empty() {
            bytes.push(b'\n');
            bytes.extend_from_slice(self.closes.as_bytes());
        }
        bytes
    }
}

/// The bytes of an event's entry, without cuts.
pub fn entry_bytes(event: &Event<'_>) -> Option<Vec<u8>> {
    Entry::of(event, None).map(Entry::into_bytes)
}

/// The end of the time range, from the extra fields or from the wire.
fn end_of(held: Option<&Held<'_>>) -> Option<String> {
    match held? {
        Held::Object(range) => range.text("end").map(Cow::into_owned),
        Held::Raw(raw) => Object::parse(raw)?.peek_str("end").map(Cow::into_owned),
        Held::Hole => None,
    }
}

/// A name or a value on one line.
fn on_one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{Carry, convert};
    use crate::formats::{leslie::Leslie, steno::Steno};
    use crate::loss::LossReport;
    use crate::model::{Input, Kind};

    fn converted(bodies: Vec<Body<'_>>) -> (String, LossReport) {
        let lines: Vec<String> = bodies.into_iter().map(|body| crate::wire::event(&Event::new(body))).collect();
        let (source, mut out) = (lines.join("\n"), Vec::new());
        let outcome = convert(&Steno, &mut source.as_bytes(), &Leslie, &mut out, Carry::Omit).unwrap();
        (String::from_utf8(out).unwrap(), outcome.losses)
    }

    fn message(role: Role, text: String) -> Body<'static> {
        Body::Message { role, content: Content::text(text) }
    }

    fn loss_kinds(losses: &LossReport, kind: Kind) -> Vec<(&str, &'static str)> {
        let of_kind = losses.losses.keys().filter(|(of, _, _)| *of == kind);
        of_kind.map(|(_, field, loss)| (field.as_str(), loss.name())).collect()
    }

    #[test]
    fn tools_are_cut_to_two_hundred_characters_and_errors_are_not() {
        let long = "é".repeat(300);
        let (text, losses) = converted(vec![
            message(Role::User, "go".into()),
            Body::ToolCall { call: None, name: "t".into(), input: Input::Text(long.clone().into()) },
            Body::ToolResult { call: None, name: None, content: Content::text(long.clone()), error: None },
            Body::Failure { name: None, content: Some(Content::text(long.clone())) },
        ]);
        let cut = format!("{}...", "é".repeat(197));
        assert!(text.contains(&format!("[Tool call] t\n{cut}\n\n[Tool result] t\n{cut}\n\n[Error]\n{long}\n")));
        assert_eq!(loss_kinds(&losses, Kind::ToolCall), [("content", "cut")]);
        assert_eq!(loss_kinds(&losses, Kind::ToolResult), [("content", "cut"), ("name", "invented")]);
        assert_eq!(loss_kinds(&losses, Kind::Failure), []);
    }

    #[test]
    fn a_file_has_at_most_twenty_kilobytes_and_shows_the_cut() {
        for size in 20_200..20_280 {
            let (text, losses) = converted(vec![
                message(Role::User, "x".repeat(size)),
                message(Role::Assistant, "é".repeat(300)),
                message(Role::Assistant, "left out".into()),
            ]);
            assert!(text.len() <= FILE_SIZE_MAX, "{size}: {}", text.len());
            assert!(text.ends_with("...\n") || text.ends_with("</user_query>\n"), "{size}");
            assert!(!text.contains("left out"));
            assert!(loss_kinds(&losses, Kind::Message).contains(&("", "dropped")));
        }
        let (text, losses) = converted(vec![message(Role::User, "é".repeat(30_000))]);
        assert!(
            text.len() <= FILE_SIZE_MAX && text.len() > FILE_SIZE_MAX - 4 && text.ends_with("...\n</user_query>\n")
        );
        assert_eq!(loss_kinds(&losses, Kind::Message), [("content", "cut")]);
    }

    #[test]
    fn entries_of_leslie_return_whole_through_the_native_format() {
        let long = "é".repeat(12_000);
        let source = format!(
            "Thread ID: t\nChat ID: c\nAgent Mode: agent\nTool Calls: 9\n---\n\nuser:\n<user_query>\ngo\n</user_query>\n\n\
             A:\nFirst.\n\n[Tool call] look\n{long}\n\n[Tool result] look\n{long}\n\nassistant:\nDone.\n"
        );
        let (mut native, mut back) = (Vec::new(), Vec::new());
        convert(&Leslie, &mut source.as_bytes(), &Steno, &mut native, Carry::Omit).unwrap();
        convert(&Steno, &mut native.as_slice(), &Leslie, &mut back, Carry::Omit).unwrap();
        assert!(String::from_utf8(back).unwrap() == source);
    }

    #[test]
    fn a_summary_becomes_a_question_and_a_compaction_without_one_nothing() {
        let summary = |text: Option<&'static str>| Body::Compaction { summary: text.map(Content::text) };
        let (text, _) =
            converted(vec![summary(None), summary(Some("So far: A.")), message(Role::Assistant, "B".into())]);
        assert!(text.ends_with("---\n\nuser:\n<user_query>\nSo far: A.\n</user_query>\n\nassistant:\nB\n"), "{text}");
    }

    #[test]
    fn a_stop_goes_into_the_header_and_comes_back_at_the_end() {
        let stop = Body::Stop { reason: Some("end_turn".into()), success: None, content: None };
        let (text, losses) =
            converted(vec![message(Role::User, "hi".into()), message(Role::Assistant, "ho".into()), stop]);
        assert!(
            text.contains("Agent Mode: agent\nStop Reason: end_turn\nTool Calls: 0\n---\n\nuser:\n<user_query>\nhi\n")
        );
        assert!(loss_kinds(&losses, Kind::Stop).iter().all(|(_, loss)| *loss == "invented"));
        let (text, _) = converted(vec![message(Role::User, "hi".into())]);
        assert!(!text.contains("Stop Reason"));
    }

    #[test]
    fn a_blank_line_returns_with_its_original_bytes() {
        let source = b"[Tool result] look\n\r\nuser:\n\r\nA:\nhi\r\n\r\n[Error]\n \nuser:\n";
        let found = crate::read::all(&Leslie, source);
        assert_eq!(found.events.len(), 4);
        assert_eq!(crate::write::all(&Leslie, &Outline::of("leslie", &found.events), &found.events), source);
    }
}
