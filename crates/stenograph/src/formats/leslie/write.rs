//! Writes Leslie's transcripts. What returns to Leslie is written whole; what comes from elsewhere is cut to the limits.

use std::borrow::Cow;

use super::limits::{FILE_SIZE_MAX, TOOL_LENGTH_MAX, cut_length, cut_size};
use super::read;
use super::{
    AGENT_MODE, CHAT_ID, CLOSES_QUERY, KEYS, NAME, OPENS_QUERY, RULE, STOP_REASON, THREAD_ID, TIME_RANGE, TOOL_CALLS,
};
use crate::formats::blocks::{blank, spelled};
use crate::formats::placeholder;
use crate::json::Object;
use crate::model::{Body, Content, Event, ExtraFields, Held, Outline, Role};
use crate::synthesizer::Synthesizer;
use crate::text::Text;
use crate::write::{Output, Writer};

/// Writes one file. Leslie has no place for system prompts and thoughts.
#[derive(Debug)]
pub struct Transcript {
    stand_ins: Synthesizer,
    room: Room,
    place: Place,
    /// The line after the last entry.
    blank: &'static str,
}

/// How much may still be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// A transcript of Leslie's is written again as it was.
    Unlimited,
    /// So many bytes, the last newline not counted.
    Bytes(usize),
    /// Something was cut: all that follows is left out, unless it is Leslie's own.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Beginning,
    Header,
    Entries,
}

/// An entry: its first lines, its text, and what closes it.
struct Entry<'a> {
    opens: String,
    text: Cow<'a, [u8]>,
    closes: &'static str,
}

impl Transcript {
    /// A writer for a session.
    pub fn new(outline: &Outline) -> Transcript {
        let room = if outline.origin == NAME { Room::Unlimited } else { Room::Bytes(FILE_SIZE_MAX - 1) };
        Transcript { stand_ins: Synthesizer::new(outline), room, place: Place::Beginning, blank: "" }
    }

    /// The header stands before everything else: the source's own, else one made of what is known of the session.
    fn header(&mut self, event: &Event<'_>, out: &mut Output) {
        let is_header = matches!(&event.body, Body::Fact { name, .. } if name == "session");
        let own = event.extra.get(NAME).filter(|_| is_header);
        let fields = match (own, self.room) {
            (Some(own), _) => self.stated(event, own),
            // Leslie's own entries had no header: none is made up.
            (None, _) if event.extra.get(NAME).is_some() => return,
            (None, Room::Unlimited) => return,
            (None, Room::Bytes(_) | Room::Full) => self.made(),
        };
        let mut header = Vec::new();
        for (key, value) in fields {
            header.extend_from_slice(on_one_line(key.as_bytes()).as_slice());
            header.extend_from_slice(b": ");
            let value = on_one_line(&value);
            header.extend_from_slice(&match own {
                Some(_) => Cow::Borrowed(value.as_slice()),
                None => cut_length(&value, TOOL_LENGTH_MAX),
            });
            header.push(b'\n');
        }
        header.extend_from_slice(RULE.as_bytes());
        self.put(header, out);
        self.place = Place::Header;
    }

    /// The fields of a header that was read, where they stood; without places, in Leslie's order.
    fn stated(&self, event: &Event<'_>, own: &ExtraFields<'_>) -> Vec<(String, Vec<u8>)> {
        let mut keys: Vec<(&str, Option<&Held<'_>>)> =
            own.0.iter().map(|(key, held)| (key.as_ref(), Some(held))).collect();
        let placed = own.0.iter().any(|(_, held)| !matches!(held, Held::Raw(_)));
        if !placed {
            keys.extend([THREAD_ID, TIME_RANGE].iter().filter(|key| !own.has(key)).map(|key| (*key, None)));
            keys.sort_by_key(|(key, _)| KEYS.iter().position(|known| known == key).unwrap_or(KEYS.len()));
        }
        // The first stop reason is the one that was read; it may have been edited since.
        let mut stop = self.stand_ins.outline().stop.as_deref();
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

    /// The header of a session that Leslie never saw. Only the stop reason may be missing.
    fn made(&mut self) -> Vec<(String, Vec<u8>)> {
        let session = self.stand_ins.session();
        let start = self.stand_ins.time(&Event::default());
        let outline = self.stand_ins.outline();
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

    fn entry(&mut self, event: &Event<'_>, out: &mut Output) {
        if let (Body::Other { bytes: Some(bytes), .. }, Room::Unlimited) = (&event.body, self.room) {
            return self.put(bytes.bytes().into_owned(), out);
        }
        let whole = self.room == Room::Unlimited || event.extra.get(NAME).is_some();
        if whole {
            let again = |bytes: &[u8]| read::body(bytes).map(Event::new).into_iter().collect();
            if let Some(spelled) = spelled(NAME, std::slice::from_ref(event), again) {
                return self.put(spelled, out);
            }
        }
        let mut tool = None;
        if let Body::ToolCall { call, name, .. } = &event.body {
            self.stand_ins.pairing.call(call.as_deref(), name);
        } else if let Body::ToolResult { call, .. } = &event.body {
            tool = self.stand_ins.pairing.result(call.as_deref()).map(|(_, tool)| tool);
        }
        let Some(mut entry) = Entry::of(event, tool.as_deref()) else { return };
        let is_tools = matches!(event.body, Body::ToolCall { .. } | Body::ToolResult { .. });
        if whole {
            return self.put(entry.spell(), out);
        }
        if is_tools {
            entry.text = Cow::Owned(cut_length(&entry.text, TOOL_LENGTH_MAX).into_owned());
        }
        let closing = if entry.closes.is_empty() { 0 } else { 1 + entry.closes.len() };
        let around = SEPARATOR.len() + entry.opens.len() + 1 + closing;
        match self.room {
            Room::Full => {}
            Room::Bytes(room) if around + entry.text.len() > room => {
                // The last entry is cut; where not even its beginning has room, it is left out like all that follow.
                let cut = room.checked_sub(around).and_then(|room| cut_size(&entry.text, room)).map(Cow::into_owned);
                if let Some(text) = cut {
                    entry.text = Cow::Owned(text);
                    self.put(entry.spell(), out);
                }
                self.room = Room::Full;
            }
            Room::Bytes(_) | Room::Unlimited => self.put(entry.spell(), out),
        }
    }

    fn put(&mut self, record: Vec<u8>, out: &mut Output) {
        let mut size = record.len();
        if self.place != Place::Beginning {
            out.glue(format!("\n{}\n", std::mem::take(&mut self.blank)));
            size += SEPARATOR.len();
        }
        if let Room::Bytes(room) = self.room {
            self.room = Room::Bytes(room.saturating_sub(size));
        }
        out.record(record);
        self.place = Place::Entries;
    }
}

/// What stands between two entries.
const SEPARATOR: &str = "\n\n";

impl Writer for Transcript {
    fn record(&mut self, events: &[Event<'_>], out: &mut Output) {
        for event in events {
            if self.place == Place::Beginning {
                self.header(event, out);
            }
            self.entry(event, out);
            if self.room == Room::Unlimited {
                self.blank = blank(NAME, event);
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        if self.place != Place::Beginning {
            out.glue("\n");
        }
    }
}

impl<'a> Entry<'a> {
    /// The entry an event makes; `tool` is what is known of the tool that a result does not name.
    fn of(event: &'a Event<'_>, tool: Option<&str>) -> Option<Entry<'a>> {
        let said =
            |content: &Content<'_>| -> Cow<'a, [u8]> { Cow::Owned(placeholder::joined(content).bytes().into_owned()) };
        let name = |name: Option<&str>| {
            let name = name.filter(|name| !name.trim().is_empty()).unwrap_or("unknown");
            String::from_utf8_lossy(&on_one_line(name.as_bytes())).into_owned()
        };
        let entry = |opens: String, text| Some(Entry { opens, text, closes: "" });
        match &event.body {
            Body::Message { role: Role::User | Role::Tool | Role::Unknown, content } => {
                Some(Entry { opens: format!("user:\n{OPENS_QUERY}"), text: said(content), closes: CLOSES_QUERY })
            }
            // What stands in the place of the past is told as a user would.
            Body::Compaction { summary: Some(summary) } => {
                Some(Entry { opens: format!("user:\n{OPENS_QUERY}"), text: said(summary), closes: CLOSES_QUERY })
            }
            Body::Message { role: Role::Assistant, content } => entry("assistant:".to_owned(), said(content)),
            Body::ToolCall { name: tool, input, .. } => {
                entry(format!("[Tool call] {}", name(Some(tool))), Cow::Owned(input.to_text().bytes().into_owned()))
            }
            Body::ToolResult { name: own, content, .. } => {
                entry(format!("[Tool result] {}", name(own.as_deref().or(tool))), said(content))
            }
            Body::Failure { name, content } => {
                let text = content.as_ref().map(said);
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

    fn spell(self) -> Vec<u8> {
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

/// How an event is spelled where nothing is cut.
pub fn usual(event: &Event<'_>) -> Option<Vec<u8>> {
    Entry::of(event, None).map(Entry::spell)
}

/// The end of the time range, from a residue or from the wire.
fn end_of(held: Option<&Held<'_>>) -> Option<String> {
    match held? {
        Held::Object(range) => range.text("end").map(Cow::into_owned),
        Held::Raw(raw) => Object::parse(raw)?.peek_str("end").map(Cow::into_owned),
        Held::Hole => None,
    }
}

/// A name or a value for a line of its own.
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
        let outcome = convert(&Steno, &mut source.as_bytes(), &Leslie, &mut out, Carry::Not).unwrap();
        (String::from_utf8(out).unwrap(), outcome.losses)
    }

    fn said(role: Role, text: String) -> Body<'static> {
        Body::Message { role, content: Content::text(text) }
    }

    fn how(losses: &LossReport, kind: Kind) -> Vec<(&str, &'static str)> {
        let of_kind = losses.losses.keys().filter(|(of, _, _)| *of == kind);
        of_kind.map(|(_, field, how)| (field.as_str(), how.name())).collect()
    }

    #[test]
    fn tools_are_cut_to_two_hundred_characters_and_errors_are_not() {
        let long = "é".repeat(300);
        let (text, losses) = converted(vec![
            said(Role::User, "go".into()),
            Body::ToolCall { call: None, name: "t".into(), input: Input::Text(long.clone().into()) },
            Body::ToolResult { call: None, name: None, content: Content::text(long.clone()), error: None },
            Body::Failure { name: None, content: Some(Content::text(long.clone())) },
        ]);
        let cut = format!("{}...", "é".repeat(197));
        assert!(text.contains(&format!("[Tool call] t\n{cut}\n\n[Tool result] t\n{cut}\n\n[Error]\n{long}\n")));
        assert_eq!(how(&losses, Kind::ToolCall), [("content", "cut")]);
        assert_eq!(how(&losses, Kind::ToolResult), [("content", "cut"), ("name", "invented")]);
        assert_eq!(how(&losses, Kind::Failure), []);
    }

    #[test]
    fn a_file_has_at_most_twenty_kilobytes_and_ends_honestly() {
        for size in 20_200..20_280 {
            let (text, losses) = converted(vec![
                said(Role::User, "x".repeat(size)),
                said(Role::Assistant, "é".repeat(300)),
                said(Role::Assistant, "left out".into()),
            ]);
            assert!(text.len() <= FILE_SIZE_MAX, "{size}: {}", text.len());
            assert!(text.ends_with("...\n") || text.ends_with("</user_query>\n"), "{size}");
            assert!(!text.contains("left out"));
            assert!(how(&losses, Kind::Message).contains(&("", "dropped")));
        }
        let (text, losses) = converted(vec![said(Role::User, "é".repeat(30_000))]);
        assert!(
            text.len() <= FILE_SIZE_MAX && text.len() > FILE_SIZE_MAX - 4 && text.ends_with("...\n</user_query>\n")
        );
        assert_eq!(how(&losses, Kind::Message), [("content", "cut")]);
    }

    #[test]
    fn what_is_leslies_own_returns_whole_through_the_native_format() {
        let long = "é".repeat(12_000);
        let source = format!(
            "Thread ID: t\nChat ID: c\nAgent Mode: agent\nTool Calls: 9\n---\n\nuser:\n<user_query>\ngo\n</user_query>\n\n\
             A:\nFirst.\n\n[Tool call] look\n{long}\n\n[Tool result] look\n{long}\n\nassistant:\nDone.\n"
        );
        let (mut native, mut back) = (Vec::new(), Vec::new());
        convert(&Leslie, &mut source.as_bytes(), &Steno, &mut native, Carry::Not).unwrap();
        convert(&Steno, &mut native.as_slice(), &Leslie, &mut back, Carry::Not).unwrap();
        assert!(String::from_utf8(back).unwrap() == source);
    }

    #[test]
    fn a_summary_is_told_and_a_compaction_without_one_is_nothing() {
        let summary = |text: Option<&'static str>| Body::Compaction { summary: text.map(Content::text) };
        let (text, _) = converted(vec![summary(None), summary(Some("So far: A.")), said(Role::Assistant, "B".into())]);
        assert!(text.ends_with("---\n\nuser:\n<user_query>\nSo far: A.\n</user_query>\n\nassistant:\nB\n"), "{text}");
    }

    #[test]
    fn a_stop_goes_into_the_header_and_comes_back_at_the_end() {
        let stop = Body::Stop { reason: Some("end_turn".into()), success: None, content: None };
        let (text, losses) = converted(vec![said(Role::User, "hi".into()), said(Role::Assistant, "ho".into()), stop]);
        assert!(
            text.contains("Agent Mode: agent\nStop Reason: end_turn\nTool Calls: 0\n---\n\nuser:\n<user_query>\nhi\n")
        );
        assert!(how(&losses, Kind::Stop).iter().all(|(_, how)| *how == "invented"));
        let (text, _) = converted(vec![said(Role::User, "hi".into())]);
        assert!(!text.contains("Stop Reason"));
    }

    #[test]
    fn a_blank_line_returns_as_it_is_spelled() {
        let source = b"[Tool result] look\n\r\nuser:\n\r\nA:\nhi\r\n\r\n[Error]\n \nuser:\n";
        let found = crate::read::all(&Leslie, source);
        assert_eq!(found.events.len(), 4);
        assert_eq!(crate::write::all(&Leslie, &Outline::of("leslie", &found.events), &found.events), source);
    }
}
