//! Gives back a carried source that was touched on the way: what was changed, taken out or put in is done to the source too, and
//! everything else of it stays as it was. What cannot be done is measured as a loss like any other.
//!
//! The runs give the source as it was. Converting that anew gives the file as it was; compared with the file as it is, that
//! says which events were touched, and by the same comparison which events of the source those are. How a source is edited is
//! `edit/`'s to know.

use std::io::{self, Read, Write};

use super::restore::{Run, each_run};
use super::{Carry, Outcome, Source, Survey, Way, convert};
use crate::edit::{Original, Plan, SIZE_MAX, apply};
use crate::format::Format;
use crate::loss::{Comparison, twins};
use crate::model::{Body, Content, Event, Piece, PieceKind};

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
    let original = Original::read(to, &run)?;
    let mended = apply(&original, &plan(&original.events, &before, &now))?;
    out.write_all(&mended.bytes)?;
    out.flush()?;
    let kept = to.info().name;
    let mut comparison = Comparison::new(move |origin| origin == kept);
    now.iter().for_each(|event| comparison.source(event));
    said_once(mended.events).iter().for_each(|event| comparison.target(event));
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses: comparison.finish(), notes, notes_count, output_notes: Vec::new(), way })
}

/// The events without those that restate others: what was edited is what is said, not its echo.
fn said_once(events: Vec<Event<'static>>) -> Vec<Event<'static>> {
    events.into_iter().filter(|event| !event.restates).map(|event| Event { carried: None, ..event }).collect()
}

/// What is done to each event of the source: what was done to its twin in the file, compared with the file as it was.
fn plan(then: &[Event<'static>], before: &[Event<'static>], now: &[Event<'static>]) -> Plan {
    let mut plan = Plan::of(then);
    let mut origin: Vec<Option<usize>> = vec![None; before.len()];
    for (index, twin) in twins(then, before).into_iter().enumerate() {
        if let Some(origin) = twin.and_then(|twin| origin.get_mut(twin)) {
            *origin = Some(index);
        }
    }
    let mut after: Vec<Option<usize>> = vec![None; now.len()];
    let mut new = vec![true; now.len()];
    for (index, twin) in twins(before, now).into_iter().enumerate() {
        let source = origin.get(index).copied().flatten();
        let placed = twin.and_then(|twin| Some((new.get_mut(twin)?, after.get_mut(twin)?)));
        if let Some((new, after)) = placed {
            (*new, *after) = (false, source);
        }
        let Some((number, event)) = source.and_then(|number| Some((number, then.get(number)?))) else { continue };
        match (before.get(index), twin.and_then(|twin| now.get(twin))) {
            (Some(was), Some(is)) if was.body != is.body => {
                plan.say(number, event, merged(&event.body, &was.body, &is.body));
            }
            (Some(_), None) => plan.remove(number),
            _ => {}
        }
    }
    let mut last = None;
    for (index, event) in now.iter().enumerate() {
        last = after.get(index).copied().flatten().or(last);
        if new.get(index) == Some(&true) {
            // What was put in before everything else stands at the beginning here too.
            match last {
                Some(last) => plan.put_after(last, event.clone()),
                None => plan.put_before(0, event.clone()),
            }
        }
    }
    plan
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
            (Some(content), Some(was), Some(is)) => then.clone().with_content(shaped(content, was, is)),
            _ => then.clone(),
        },
    }
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
