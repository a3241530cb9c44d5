//! Reads CycoD's trajectories: current ones, with quoted users and fenced calls, and older ones, in which the speaker of a
//! plain text is unknown.

use std::borrow::Cow;

use super::write::{self, BlockShape};
use super::{
    AFTER, BEFORE, CLOSES_CALLS, CLOSES_RESULTS, INFO, LOCKED, OPENS_CALLS, OPENS_RESULTS, RULE, STATUS, STATUS_OPENS,
    TITLE_LOCKED, TITLE_OPENS, UNLOCKED, UNTITLED, calls, fence,
};
use crate::formats::blocks::{
    BlockReader, Ending, LineBlock, LineRole, is_blank, spelling_extra, without_return, without_returns,
};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, Held, Note, NoteKind, Part, Role};
use crate::read::Sink;
use crate::text::Text;

/// Reads one file.
#[derive(Debug, Default)]
pub struct TrajectoryReader {
    begun: Begun,
    form: Form,
    before: Option<(BlockShape, u64)>,
    /// The blank lines at the end of the last block, each with its newline.
    trailing: Vec<u8>,
}

#[derive(Debug, Default, PartialEq)]
enum Begun {
    #[default]
    No,
    Yes,
}

/// The form of the file, as far as it has shown.
#[derive(Debug, Default, PartialEq)]
enum Form {
    /// Nothing is quoted or fenced yet: the speaker of a plain text is unknown.
    #[default]
    Plain,
    /// Users are quoted: a plain text is the assistant's.
    Quoted,
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrajectoryBlockKind {
    /// The title, up to the rule.
    Header,
    /// Quoted lines.
    User,
    /// Plain lines. One of them may have opened a fence of XML.
    Text {
        /// The index of that line, and its number of backticks.
        fence: Option<(usize, usize)>,
    },
    /// Calls and results in a fence of this many backticks.
    Fence(usize),
    /// Calls, or a result, without a fence.
    Bare,
}

impl BlockReader for TrajectoryReader {
    type Kind = TrajectoryBlockKind;

    fn line_role(
        &mut self,
        open: Option<&mut LineBlock<TrajectoryBlockKind>>,
        line: &[u8],
    ) -> LineRole<TrajectoryBlockKind> {
        let Some(open) = open else {
            return if is_blank(line) { LineRole::Between } else { LineRole::Begins(self.begin(line)) };
        };
        let last = open.line(open.len() - 1);
        let separated = last.is_empty();
        let is_bare = is_bare(line);
        match open.kind {
            TrajectoryBlockKind::Header if line == RULE.as_bytes() => LineRole::Ends,
            TrajectoryBlockKind::Header if is_blank(line) || line.starts_with(STATUS_OPENS.as_bytes()) => {
                LineRole::Continues
            }
            TrajectoryBlockKind::Header => LineRole::Begins(self.begin(line)),
            TrajectoryBlockKind::User if line.starts_with(b">") => LineRole::Continues,
            TrajectoryBlockKind::User if line.is_empty() => LineRole::AfterEnd,
            TrajectoryBlockKind::User => {
                // CycoD writes a blank line after a user message, so this quotation is part of a text.
                open.kind = TrajectoryBlockKind::Text { fence: None };
                LineRole::Continues
            }
            TrajectoryBlockKind::Fence(ticks) if line.len() == ticks && line.iter().all(|byte| *byte == b'`') => {
                LineRole::Ends
            }
            TrajectoryBlockKind::Bare if line == CLOSES_CALLS.as_bytes() || line == CLOSES_RESULTS.as_bytes() => {
                LineRole::Ends
            }
            TrajectoryBlockKind::Fence(_) | TrajectoryBlockKind::Bare => LineRole::Continues,
            TrajectoryBlockKind::Text { fence: Some((index, ticks)) } if is_bare && index + 1 == open.len() => {
                LineRole::BeganAt(index, TrajectoryBlockKind::Fence(ticks))
            }
            TrajectoryBlockKind::Text { .. } if separated && (is_bare || line.starts_with(b">")) => {
                LineRole::Begins(self.begin(line))
            }
            TrajectoryBlockKind::Text { .. } => {
                open.kind = TrajectoryBlockKind::Text {
                    fence: fence(line).filter(|_| separated).map(|ticks| (open.len(), ticks)),
                };
                LineRole::Continues
            }
        }
    }

    fn block(&mut self, block: &LineBlock<TrajectoryBlockKind>, ending: Ending, out: &mut dyn Sink) {
        match block.kind {
            TrajectoryBlockKind::Header => self.header(block, out),
            TrajectoryBlockKind::User => {
                self.form = Form::Quoted;
                let source = block.text(0, block.len());
                let event = Event::new(user(source));
                let extra = spelling_extra(source, write::block_bytes(std::slice::from_ref(&event)).as_deref());
                self.emit(block, (0, block.len()), BlockShape::Text, vec![event], extra, out);
            }
            TrajectoryBlockKind::Fence(ticks) => self.fenced(block, ticks, ending, out),
            TrajectoryBlockKind::Bare => match calls::parse(&without_returns(block.text(0, block.len()))) {
                Some(bodies) => self.calls(block, BlockShape::Text, bodies, out),
                None => self.unread_calls(block, out),
            },
            TrajectoryBlockKind::Text { .. } => self.text(block, out),
        }
    }
}

impl TrajectoryReader {
    fn begin(&mut self, line: &[u8]) -> TrajectoryBlockKind {
        let first = std::mem::replace(&mut self.begun, Begun::Yes) == Begun::No;
        match line {
            _ if first && line.starts_with(TITLE_OPENS.as_bytes()) => TrajectoryBlockKind::Header,
            _ if line.starts_with(b">") => TrajectoryBlockKind::User,
            _ if is_bare(line) => TrajectoryBlockKind::Bare,
            _ => TrajectoryBlockKind::Text { fence: fence(line).map(|ticks| (0, ticks)) },
        }
    }

    /// Emits the events of one block, with the blank lines before it if they are not the usual ones.
    fn emit(
        &mut self,
        block: &LineBlock<TrajectoryBlockKind>,
        (first, end): (usize, usize),
        shape: BlockShape,
        mut events: Vec<Event<'_>>,
        mut extra: ExtraFields<'static>,
        out: &mut dyn Sink,
    ) {
        let at = block.span(first, end);
        let (previous, next_line) = self.before.map_or((None, 1), |(shape, line)| (Some(shape), line));
        let gap = at.line.saturating_sub(next_line);
        let mut between = std::mem::take(&mut self.trailing);
        between.extend_from_slice(block.before());
        let only_newlines = between.iter().all(|byte| *byte == b'\n');
        let is_complete = between.iter().filter(|byte| **byte == b'\n').count() as u64 == gap;
        if !only_newlines && is_complete {
            let spelled = Text::from_bytes(&between).to_json();
            extra.0.push((Cow::Borrowed(BEFORE), Held::Raw(Cow::Owned(spelled))));
        } else if gap != BlockShape::blank_lines_after(previous) {
            extra.0.push((Cow::Borrowed(BEFORE), Held::Raw(Cow::Owned(gap.to_string()))));
        }
        if end < block.len() {
            self.trailing = [block.text(end, block.len()), b"\n"].concat();
        }
        self.before = Some((shape, at.line + (end - first) as u64));
        let of = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (index, event) in events.iter_mut().enumerate() {
            event.at = Some(at);
            event.part = Part { index: u32::try_from(index).unwrap_or(u32::MAX), of };
            if index == 0 && !extra.0.is_empty() {
                event.extra = Extra::of(&INFO, std::mem::take(&mut extra));
            }
            out.event(event);
        }
    }

    fn header(&mut self, block: &LineBlock<TrajectoryBlockKind>, out: &mut dyn Sink) {
        self.form = Form::Quoted;
        let (first, end) = block.trimmed();
        let source = block.text(first, end);
        let events: Vec<Event<'_>> = title(source).into_iter().map(Event::new).collect();
        let known = [LOCKED.as_bytes(), UNLOCKED.as_bytes()];
        let status = status(source).filter(|status| !known.contains(status));
        let status = status.map(|status| Text::from_bytes(status).to_json());
        let mut extra = spelling_extra(source, Some(&write::header(&events, status.as_deref())));
        extra.0.extend(status.map(|status| (Cow::Borrowed(STATUS), Held::Raw(Cow::Owned(status)))));
        self.emit(block, (first, end), BlockShape::Header, events, extra, out);
    }

    fn fenced(&mut self, block: &LineBlock<TrajectoryBlockKind>, ticks: usize, ending: Ending, out: &mut dyn Sink) {
        let source = block.text(0, block.len());
        let closed = block.line(block.len() - 1).iter().all(|byte| *byte == b'`') && block.len() > 1;
        if !closed && ending == Ending::Source {
            out.note(Note::new(NoteKind::Torn, block.span(0, 1), "the block is not closed"));
        }
        match fenced_calls(source, ticks) {
            Some(bodies) => {
                self.form = Form::Quoted;
                self.calls(block, BlockShape::Fence, bodies, out);
            }
            None => self.unread_calls(block, out),
        }
    }

    fn calls(
        &mut self,
        block: &LineBlock<TrajectoryBlockKind>,
        shape: BlockShape,
        bodies: Vec<Body<'static>>,
        out: &mut dyn Sink,
    ) {
        let events: Vec<Event<'static>> = bodies.into_iter().map(Event::new).collect();
        let extra = spelling_extra(block.text(0, block.len()), write::block_bytes(&events).as_deref());
        self.emit(block, (0, block.len()), shape, events, extra, out);
    }

    fn unread_calls(&mut self, block: &LineBlock<TrajectoryBlockKind>, out: &mut dyn Sink) {
        let text = "looks like calls and results, but cannot be parsed; read as text";
        out.note(Note::new(NoteKind::NotARecord, block.span(0, block.len()), text));
        self.text(block, out);
    }

    fn text(&mut self, block: &LineBlock<TrajectoryBlockKind>, out: &mut dyn Sink) {
        let (first, end) = block.trimmed();
        if is_blank(block.text(first, end)) {
            return;
        }
        let role = match self.form {
            Form::Quoted => Role::Assistant,
            Form::Plain => {
                let text = "the author of this text is unknown";
                out.note(Note::new(NoteKind::Ambiguous, block.span(first, end), text));
                Role::Unknown
            }
        };
        let source = block.text(first, end);
        let text = write::without_blank_lines(source);
        let mut extra = ExtraFields::default();
        if let Some(after) = source.strip_prefix(text).filter(|after| !after.is_empty()) {
            extra.0.push((Cow::Borrowed(AFTER), Held::Raw(Cow::Owned(Text::from_bytes(after).to_json()))));
        }
        let event = Event::new(Body::Message { role, content: Content::Text(Text::from_bytes(text).into_owned()) });
        self.emit(block, (first, end), BlockShape::Text, vec![event], extra, out);
    }
}

fn is_bare(line: &[u8]) -> bool {
    line == OPENS_CALLS.as_bytes() || line == OPENS_RESULTS.as_bytes()
}

/// Reads the events of a block again, from its bytes alone.
pub fn reread(source: &[u8]) -> Vec<Event<'static>> {
    let first = without_return(source.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let bodies = match fence(first) {
        _ if first.starts_with(TITLE_OPENS.as_bytes()) => title(source),
        _ if first.starts_with(b">") => vec![user(source)],
        Some(ticks) => fenced_calls(source, ticks).unwrap_or_default(),
        None => calls::parse(&without_returns(source)).unwrap_or_default(),
    };
    bodies.into_iter().map(Event::new).collect()
}

fn fenced_calls(source: &[u8], ticks: usize) -> Option<Vec<Body<'static>>> {
    let source = without_returns(source);
    let inside = source.get(ticks + 3..)?;
    let closing = inside.iter().rev().take_while(|byte| **byte == b'`').count();
    calls::parse(inside.get(..inside.len() - closing)?)
}

/// The value of the header's status line.
fn status(source: &[u8]) -> Option<&[u8]> {
    let mut lines = source.split(|byte| *byte == b'\n').map(without_return);
    lines.find_map(|line| line.strip_prefix(STATUS_OPENS.as_bytes()))
}

/// The title, and the fact that it is locked, if it is.
fn title(source: &[u8]) -> Vec<Body<'static>> {
    let line = without_return(source.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let title = line.strip_prefix(TITLE_OPENS.as_bytes()).unwrap_or_default();
    let title = title.strip_suffix(b"\"").unwrap_or(title);
    let content = (title != UNTITLED.as_bytes()).then(|| Content::Text(Text::from_bytes(title).into_owned()));
    let locked =
        (status(source) == Some(LOCKED.as_bytes())).then_some(Body::Fact { fact: TITLE_LOCKED.into(), content: None });
    std::iter::once(Body::Fact { fact: Fact::Title, content }).chain(locked).collect()
}

/// A user message: the quoted lines without their marks and without trailing spaces, which CycoD removes.
fn user(source: &[u8]) -> Body<'static> {
    let mut text = Vec::with_capacity(source.len());
    for (index, line) in source.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            text.push(b'\n');
        }
        let line = line.strip_prefix(b">").unwrap_or(line);
        text.extend_from_slice(write::trimmed_end(line.strip_prefix(b" ").unwrap_or(line)));
    }
    Body::Message { role: Role::User, content: Content::Text(Text::from_bytes(&text).into_owned()) }
}
