//! Gives back a carried source that was touched on the way: what was changed, taken out or put in is done to the source too, and
//! everything else of it stays as it was. What cannot be done is measured as a loss like any other.
//!
//! The runs give the source as it was. Converting that anew gives the file as it was; compared with the file as it is, that
//! says which events were touched, and by the same comparison which events of the source those are.

use std::io::{self, Read, Write};

use super::restore::{Run, each_run};
use super::{Carry, Outcome, Source, Survey, Way, convert};
use crate::format::Format;
use crate::frame::Framing;
use crate::loss::{Comparison, twins};
use crate::model::{Body, Content, Event, Outline, Piece, PieceKind, Span};
use crate::write::{Edit, fragment, splice};

/// How large a source may be to be mended: unlike anything else, this holds all of it.
const SIZE_MAX: usize = 256 << 20;

/// Puts the source together again, with what was done to the file that carries it.
pub fn mend(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
    way: Way,
) -> io::Result<Outcome> {
    let mut run = Vec::new();
    each_run(from, source, &mut |found| {
        if let Run::Sealed(carried) | Run::Edited(carried) = found
            && run.len() <= SIZE_MAX
        {
            run.extend_from_slice(&carried.source);
        }
    })?;
    let mut file = Vec::new();
    source.open()?.take(SIZE_MAX as u64 + 1).read_to_end(&mut file)?;
    if run.len().max(file.len()) > SIZE_MAX {
        let said = "the file was edited since it was converted, and is too large to be put together again";
        return Err(io::Error::new(io::ErrorKind::Unsupported, said));
    }
    let mut before = Vec::new();
    convert(to, &mut run.as_slice(), from, &mut before, Carry::Not)?;
    let now = said_once(crate::read::all(from, &file).events);
    let before = said_once(crate::read::all(from, &before).events);
    let then = crate::read::all(to, &run).events;
    let mended = Mending::new((to, &run), &then, &before, &now).apply(&run)?;
    out.write_all(&mended)?;
    out.flush()?;
    let kept = to.info().name;
    let mut comparison = Comparison::new(move |origin| origin == kept);
    now.iter().for_each(|event| comparison.source(event));
    said_once(crate::read::all(to, &mended).events).iter().for_each(|event| comparison.target(event));
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses: comparison.finish(), notes, notes_count, output_notes: Vec::new(), way })
}

/// The events without those that restate others: what was edited is what is said, not its echo.
fn said_once(events: Vec<Event<'static>>) -> Vec<Event<'static>> {
    events.into_iter().filter(|event| !event.restates).map(|event| Event { carried: None, ..event }).collect()
}

/// What is done to each event of the source.
struct Mending<'a> {
    to: &'a dyn Format,
    then: &'a [Event<'static>],
    outline: Outline,
    /// For each event its new body, or that it is gone.
    fates: Vec<Fate<'a>>,
    /// Whether the source is lines.
    lines: bool,
    /// Events that were put in, each after an event of the source.
    put_in: Vec<(Option<usize>, &'a Event<'static>)>,
}

#[derive(Clone)]
enum Fate<'a> {
    Stays,
    Changes { before: &'a Body<'static>, now: &'a Body<'static> },
    Goes,
}

impl<'a> Mending<'a> {
    fn new(
        (to, run): (&'a dyn Format, &[u8]),
        then: &'a [Event<'static>],
        before: &'a [Event<'static>],
        now: &'a [Event<'static>],
    ) -> Self {
        let lines = match to.info().framing {
            Framing::Lines => true,
            Framing::Items(_) => false,
            Framing::LinesOrItems(_) => !run.trim_ascii_start().starts_with(b"{\n"),
        };
        let mut origin: Vec<Option<usize>> = vec![None; before.len()];
        for (index, twin) in twins(then, before).into_iter().enumerate() {
            if let Some(origin) = twin.and_then(|twin| origin.get_mut(twin)) {
                *origin = Some(index);
            }
        }
        let mut fates = vec![Fate::Stays; then.len()];
        let mut after: Vec<Option<usize>> = vec![None; now.len()];
        let mut new = vec![true; now.len()];
        for (index, twin) in twins(before, now).into_iter().enumerate() {
            let source = origin.get(index).copied().flatten();
            let placed = twin.and_then(|twin| Some((new.get_mut(twin)?, after.get_mut(twin)?)));
            if let Some((new, after)) = placed {
                (*new, *after) = (false, source);
            }
            let Some(fate) = source.and_then(|source| fates.get_mut(source)) else { continue };
            match (before.get(index), twin.and_then(|twin| now.get(twin))) {
                (Some(was), Some(is)) if was.body != is.body => {
                    *fate = Fate::Changes { before: &was.body, now: &is.body }
                }
                (Some(_), None) => *fate = Fate::Goes,
                _ => {}
            }
        }
        let mut put_in = Vec::new();
        let mut last = None;
        for (index, event) in now.iter().enumerate() {
            last = after.get(index).copied().flatten().or(last);
            if new.get(index) == Some(&true) {
                put_in.push((last, event));
            }
        }
        Mending { to, then, outline: Outline::of(to.info().name, then), fates, lines, put_in }
    }

    fn apply(&self, run: &[u8]) -> io::Result<Vec<u8>> {
        let mut edits = Vec::new();
        let mut at = 0;
        while let Some(first) = self.then.get(at) {
            let rest = self.then.get(at + 1..).unwrap_or_default();
            let length = 1 + rest.iter().take_while(|event| event.part.index > 0 && event.at == first.at).count();
            if let Some(span) = first.at {
                edits.extend(self.record(at, length, span));
                edits.extend(self.after_record(at, length, span));
            }
            at += length;
        }
        let mut out = Vec::new();
        splice(&mut { run }, &edits, &mut out)?;
        Ok(out)
    }

    /// The record written anew, if one of its events was touched.
    fn record(&self, at: usize, length: usize, span: Span) -> Option<Edit> {
        let fates = self.fates.get(at..at + length)?;
        if fates.iter().all(|fate| matches!(fate, Fate::Stays)) {
            return None;
        }
        let mut events: Vec<Event<'static>> = Vec::new();
        for (event, fate) in self.then.get(at..at + length)?.iter().zip(fates) {
            match fate {
                Fate::Stays => events.push(event.clone()),
                Fate::Goes => {}
                Fate::Changes { before, now } => {
                    events.push(Event { body: merged(&event.body, before, now), ..event.clone() });
                }
            }
        }
        let of = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (index, event) in (0..).zip(&mut events) {
            event.part = crate::model::Part { index, of };
        }
        let with = if events.is_empty() { Vec::new() } else { fragment(self.to, &self.outline, &events)? };
        Some(Edit { at: span, with })
    }

    /// Lines for what was put in after this record. A document has no place for lines.
    fn after_record(&self, at: usize, length: usize, span: Span) -> Option<Edit> {
        if !self.lines {
            return None;
        }
        let here = |place: Option<usize>| place.is_some_and(|place| (at..at + length).contains(&place));
        let put_in: Vec<Event<'static>> =
            self.put_in.iter().filter(|(place, _)| here(*place)).map(|(_, event)| (*event).clone()).collect();
        let lines = crate::write::all(self.to, &self.outline, &put_in);
        let lines = lines.trim_ascii_end();
        if put_in.is_empty() || lines.is_empty() {
            return None;
        }
        Some(Edit { at: Span { offset: span.end(), length: 0, ..span }, with: [b"\n", lines].concat() })
    }
}

/// The body of the source with what was changed in the file. What the file's format has no place for stays as it was.
fn merged(then: &Body<'static>, before: &Body<'static>, now: &Body<'static>) -> Body<'static> {
    fn pick<T: Clone + PartialEq>(then: &T, before: &T, now: &T) -> T {
        if before == now { then.clone() } else { now.clone() }
    }
    match (then, before, now) {
        (
            Body::Message { role, content },
            Body::Message { role: role_before, content: content_before },
            Body::Message { role: role_now, content: content_now },
        ) => Body::Message {
            role: pick(role, role_before, role_now),
            content: shaped(content, content_before, content_now),
        },
        (
            Body::ToolCall { call, name, input },
            Body::ToolCall { call: call_before, name: name_before, input: input_before },
            Body::ToolCall { call: call_now, name: name_now, input: input_now },
        ) => Body::ToolCall {
            call: pick(call, call_before, call_now),
            name: pick(name, name_before, name_now),
            input: pick(input, input_before, input_now),
        },
        (
            Body::ToolResult { call, name, content, error },
            Body::ToolResult { call: call_before, name: name_before, content: content_before, error: error_before },
            Body::ToolResult { call: call_now, name: name_now, content: content_now, error: error_now },
        ) => Body::ToolResult {
            call: pick(call, call_before, call_now),
            name: pick(name, name_before, name_now),
            content: shaped(content, content_before, content_now),
            error: pick(error, error_before, error_now),
        },
        // What became another kind of event on the way, such as a summary that became a message, takes the text alone.
        _ => match (then.content(), before.content(), now.content()) {
            (Some(content), Some(was), Some(is)) => with_content(then, shaped(content, was, is)),
            _ => then.clone(),
        },
    }
}

fn with_content(body: &Body<'static>, new: Content<'static>) -> Body<'static> {
    let mut body = body.clone();
    match &mut body {
        Body::Message { content, .. } | Body::Thinking { content } | Body::ToolResult { content, .. } => *content = new,
        Body::Fact { content, .. } | Body::Failure { content, .. } | Body::Stop { content, .. } => *content = Some(new),
        Body::Compaction { summary } => *summary = Some(new),
        Body::ToolCall { .. } | Body::Other { .. } => {}
    }
    body
}

/// The content of the source with what was changed. A text that was the only element of a list stays one.
fn shaped(then: &Content<'static>, before: &Content<'static>, now: &Content<'static>) -> Content<'static> {
    match (then, now) {
        _ if before == now => then.clone(),
        (Content::Pieces(pieces), Content::Text(text)) if pieces.len() == 1 => {
            let only =
                |piece: &Piece<'static>| Piece { kind: PieceKind::Text(text.clone()), extra: piece.extra.clone() };
            Content::Pieces(pieces.iter().map(only).collect())
        }
        _ => now.clone(),
    }
}
