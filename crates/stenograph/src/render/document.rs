//! A session as one JSON document: its metadata, its sections with their events, and all other events with the reason why they
//! are in no section. Events are lines of the wire. They are written as they arrive, so memory does not grow with the session.

use std::io::{self, Write};

use super::sections::{EventSection, Speaker, SpeakerSections};
use crate::model::{Event, Outline, Usage};
use crate::text::quote;
use crate::time::Time;
use crate::wire;

/// Writes a session: the head, the sections, then all other events.
pub struct Document<W> {
    out: W,
    sections: SpeakerSections,
    within: Within,
    /// Whether the next element needs a comma before it.
    follows: bool,
}

/// The list of the document that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Within {
    Sections,
    Section,
    Rest,
}

impl<W: Write> Document<W> {
    /// A document that is written to `out`.
    pub fn new(out: W) -> Document<W> {
        Document { out, sections: SpeakerSections::default(), within: Within::Sections, follows: false }
    }

    /// Writes the head: the metadata of the session and its source.
    pub fn head(&mut self, outline: &Outline, format: &str, source: &str) -> io::Result<()> {
        let text = |value: &Option<String>| value.as_deref().map(quote);
        let time = |time: &Option<Time<'_>>| Some(quote(&time.as_ref()?.to_utc()?));
        let fields = [
            ("id", text(&outline.session)),
            ("title", text(&outline.header.title)),
            ("format", Some(quote(format))),
            ("source", Some(quote(source))),
            ("model", text(&outline.header.model)),
            ("version", text(&outline.header.version)),
            ("cwd", text(&outline.header.cwd)),
            ("branch", text(&outline.header.branch)),
            ("started", time(&outline.started)),
            ("ended", time(&outline.ended)),
            ("stop", text(&outline.stop)),
            ("success", outline.success.map(|success| success.to_string())),
            ("failure", text(&outline.failure)),
            ("events", Some(outline.events.to_string())),
            ("tool_calls", Some(outline.calls.to_string())),
            ("usage", usage(&outline.total)),
        ];
        let fields = fields.into_iter().filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?)));
        let fields = fields.collect::<Vec<_>>().join(",");
        let head = format!("{{\"v\":{},\"session\":{{{fields}}},\"sections\":[", wire::VERSION);
        self.out.write_all(super::harmless_json(&head).as_bytes())
    }

    /// Writes one event of the conversation. Give it the events in order. It skips events without a speaker: see
    /// [`SpeakerSections::is_outside`].
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        match self.sections.place(event) {
            EventSection::Outside => return Ok(()),
            EventSection::Same => {}
            EventSection::New(speaker) => self.open(speaker, event)?,
        }
        self.item(&wire::event_at(event))
    }

    /// Ends the conversation. All later events are outside it, each with a reason.
    pub fn rest(&mut self) -> io::Result<()> {
        self.close()?;
        (self.within, self.follows) = (Within::Rest, false);
        self.out.write_all(b"\n],\"others\":[")
    }

    /// Writes one event that is not part of the conversation.
    pub fn other(&mut self, event: &Event<'_>, why: &str) -> io::Result<()> {
        self.item(&format!("{{\"why\":{},\"event\":{}}}", quote(why), wire::event_at(event)))
    }

    /// Completes the document and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        if self.within != Within::Rest {
            self.rest()?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Starts a side conversation that has its own source. Its sections continue the numbering.
    pub fn side(&mut self) -> io::Result<()> {
        self.close()
    }

    fn open(&mut self, speaker: Speaker, event: &Event<'_>) -> io::Result<()> {
        self.close()?;
        let comma = if self.follows { "," } else { "" };
        let time = event.time.as_ref().and_then(|time| Some(format!(",\"time\":{}", quote(&time.to_utc()?))));
        let thread = event.thread.as_deref().map(|thread| format!(",\"thread\":{}", quote(thread)));
        let (number, role) = (self.sections.number(), quote(speaker.name()));
        let turn = self.sections.turn().map_or_else(String::new, |turn| format!(",\"turn\":{turn}"));
        let (time, thread) = (time.unwrap_or_default(), thread.unwrap_or_default());
        let head = format!("{comma}\n{{\"section\":{number}{turn},\"role\":{role}{time}{thread},\"events\":[");
        self.out.write_all(super::harmless_json(&head).as_bytes())?;
        (self.within, self.follows) = (Within::Section, false);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        if self.within == Within::Section {
            self.out.write_all(b"\n]}")?;
            (self.within, self.follows) = (Within::Sections, true);
        }
        Ok(())
    }

    fn item(&mut self, json: &str) -> io::Result<()> {
        let comma = if self.follows { "," } else { "" };
        self.follows = true;
        // JSON allows line breaks between tokens, and the raw data of an event may contain some.
        write!(self.out, "{comma}\n{}", super::harmless_json(json))
    }
}

fn usage(total: &Usage) -> Option<String> {
    let fields = [
        ("input", total.input),
        ("output", total.output),
        ("cache_read", total.cache_read),
        ("cache_write", total.cache_write),
        ("reasoning", total.reasoning),
    ];
    let fields = fields.into_iter().filter_map(|(key, value)| Some(format!("\"{key}\":{}", value?)));
    let cost = total.cost.map(|cost| format!("\"cost\":{cost}"));
    let fields = fields.chain(cost).collect::<Vec<_>>().join(",");
    (!fields.is_empty()).then(|| format!("{{{fields}}}"))
}
