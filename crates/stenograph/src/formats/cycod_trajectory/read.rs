//! Reads CycoD's trajectories: today's, with quoted users and fenced calls, and the older ones, in which nobody can tell who
//! says a plain text.

use std::borrow::Cow;

use super::write::{self, Shape};
use super::{
    AFTER, BEFORE, CLOSES_CALLS, CLOSES_RESULTS, INFO, LOCKED, OPENS_CALLS, OPENS_RESULTS, RULE, STATUS, STATUS_OPENS,
    TITLE_LOCKED, TITLE_OPENS, UNLOCKED, calls, fence,
};
use crate::formats::blocks::{Block, Blockwise, Ending, Step, is_blank, leftover, without_return, without_returns};
use crate::model::{Body, Content, Event, Extra, ExtraFields, Fact, Held, Note, NoteKind, Part, Role};
use crate::read::Sink;
use crate::text::Text;

/// Reads one file.
#[derive(Debug, Default)]
pub struct Trajectory {
    begun: Begun,
    form: Form,
    before: Option<(Shape, u64)>,
    /// The lines at the end of the last block that are no text, each with its newline.
    trailing: Vec<u8>,
}

#[derive(Debug, Default, PartialEq)]
enum Begun {
    #[default]
    No,
    Yes,
}

/// How the file is written, as far as that has shown.
#[derive(Debug, Default, PartialEq)]
enum Form {
    /// Nothing was quoted or fenced yet: a plain text is anybody's.
    #[default]
    Plain,
    /// Users are quoted: a plain text is the assistant's.
    Quoted,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The title, up to the rule.
    Header,
    /// Quoted lines.
    User,
    /// Plain lines. The last one may have opened a fence of XML, of so many backticks.
    Text {
        /// The line and the backticks.
        fence: Option<(usize, usize)>,
    },
    /// Calls and results in a fence of so many backticks.
    Fence(usize),
    /// Calls, or a result, without a fence.
    Bare,
}

impl Blockwise for Trajectory {
    type Kind = Kind;

    fn step(&mut self, open: Option<&mut Block<Kind>>, line: &[u8]) -> Step<Kind> {
        let Some(open) = open else {
            return if is_blank(line) { Step::Passes } else { Step::Begins(self.begin(line)) };
        };
        let last = open.line(open.len() - 1);
        let separated = last.is_empty();
        let is_bare = is_bare(line);
        match open.kind {
            Kind::Header if line == RULE.as_bytes() => Step::Ends,
            Kind::Header if is_blank(line) || line.starts_with(STATUS_OPENS.as_bytes()) => Step::GoesOn,
            Kind::Header => Step::Begins(self.begin(line)),
            Kind::User if line.starts_with(b">") => Step::GoesOn,
            Kind::User if line.is_empty() => Step::Follows,
            Kind::User => {
                // CycoD leaves a line after what a user says: this quotation is part of a text.
                open.kind = Kind::Text { fence: None };
                Step::GoesOn
            }
            Kind::Fence(ticks) if line.len() == ticks && line.iter().all(|byte| *byte == b'`') => Step::Ends,
            Kind::Bare if line == CLOSES_CALLS.as_bytes() || line == CLOSES_RESULTS.as_bytes() => Step::Ends,
            Kind::Fence(_) | Kind::Bare => Step::GoesOn,
            Kind::Text { fence: Some((index, ticks)) } if is_bare && index + 1 == open.len() => {
                Step::BeganAt(index, Kind::Fence(ticks))
            }
            Kind::Text { .. } if separated && (is_bare || line.starts_with(b">")) => Step::Begins(self.begin(line)),
            Kind::Text { .. } => {
                open.kind = Kind::Text { fence: fence(line).filter(|_| separated).map(|ticks| (open.len(), ticks)) };
                Step::GoesOn
            }
        }
    }

    fn block(&mut self, block: &Block<Kind>, ending: Ending, out: &mut dyn Sink) {
        match block.kind {
            Kind::Header => self.header(block, out),
            Kind::User => {
                self.form = Form::Quoted;
                let source = block.text(0, block.len());
                let event = Event::new(user(source));
                let left = leftover(source, write::usual(std::slice::from_ref(&event)).as_deref());
                self.emit(block, (0, block.len()), Shape::Talk, vec![event], left, out);
            }
            Kind::Fence(ticks) => self.fenced(block, ticks, ending, out),
            Kind::Bare => match calls::parse(&without_returns(block.text(0, block.len()))) {
                Some(bodies) => self.calls(block, Shape::Talk, bodies, out),
                None => self.unread_calls(block, out),
            },
            Kind::Text { .. } => self.text(block, out),
        }
    }
}

impl Trajectory {
    fn begin(&mut self, line: &[u8]) -> Kind {
        let first = std::mem::replace(&mut self.begun, Begun::Yes) == Begun::No;
        match line {
            _ if first && line.starts_with(TITLE_OPENS.as_bytes()) => Kind::Header,
            _ if line.starts_with(b">") => Kind::User,
            _ if is_bare(line) => Kind::Bare,
            _ => Kind::Text { fence: fence(line).map(|ticks| (0, ticks)) },
        }
    }

    /// Gives the events of one block, with the blank lines before it where they are not the usual ones.
    fn emit(
        &mut self,
        block: &Block<Kind>,
        (first, end): (usize, usize),
        shape: Shape,
        mut events: Vec<Event<'_>>,
        mut left: ExtraFields<'static>,
        out: &mut dyn Sink,
    ) {
        let at = block.span(first, end);
        let (previous, next_line) = self.before.map_or((None, 1), |(shape, line)| (Some(shape), line));
        let gap = at.line.saturating_sub(next_line);
        let mut between = std::mem::take(&mut self.trailing);
        between.extend_from_slice(block.before());
        let blank = between.iter().all(|byte| *byte == b'\n');
        let whole = between.iter().filter(|byte| **byte == b'\n').count() as u64 == gap;
        if !blank && whole {
            let spelled = Text::from_bytes(&between).to_json();
            left.0.push((Cow::Borrowed(BEFORE), Held::Raw(Cow::Owned(spelled))));
        } else if gap != Shape::gap(previous) {
            left.0.push((Cow::Borrowed(BEFORE), Held::Raw(Cow::Owned(gap.to_string()))));
        }
        if end < block.len() {
            self.trailing = [block.text(end, block.len()), b"\n"].concat();
        }
        self.before = Some((shape, at.line + (end - first) as u64));
        let of = u32::try_from(events.len()).unwrap_or(u32::MAX);
        for (index, event) in events.iter_mut().enumerate() {
            event.at = Some(at);
            event.part = Part { index: u32::try_from(index).unwrap_or(u32::MAX), of };
            if index == 0 && !left.0.is_empty() {
                event.extra = Extra::of(&INFO, std::mem::take(&mut left));
            }
            out.event(event);
        }
    }

    fn header(&mut self, block: &Block<Kind>, out: &mut dyn Sink) {
        self.form = Form::Quoted;
        let (first, end) = block.trimmed();
        let source = block.text(first, end);
        let events: Vec<Event<'_>> = title(source).into_iter().map(Event::new).collect();
        let known = [LOCKED.as_bytes(), UNLOCKED.as_bytes()];
        let status = status(source).filter(|status| !known.contains(status));
        let status = status.map(|status| Text::from_bytes(status).to_json());
        let mut left = leftover(source, Some(&write::header(&events, status.as_deref())));
        left.0.extend(status.map(|status| (Cow::Borrowed(STATUS), Held::Raw(Cow::Owned(status)))));
        self.emit(block, (first, end), Shape::Header, events, left, out);
    }

    fn fenced(&mut self, block: &Block<Kind>, ticks: usize, ending: Ending, out: &mut dyn Sink) {
        let source = block.text(0, block.len());
        let closed = block.line(block.len() - 1).iter().all(|byte| *byte == b'`') && block.len() > 1;
        if !closed && ending == Ending::Source {
            out.note(Note::new(NoteKind::Torn, block.span(0, 1), "the block is not closed"));
        }
        match fenced_calls(source, ticks) {
            Some(bodies) => {
                self.form = Form::Quoted;
                self.calls(block, Shape::Fence, bodies, out);
            }
            None => self.unread_calls(block, out),
        }
    }

    fn calls(&mut self, block: &Block<Kind>, shape: Shape, bodies: Vec<Body<'static>>, out: &mut dyn Sink) {
        let events: Vec<Event<'static>> = bodies.into_iter().map(Event::new).collect();
        let left = leftover(block.text(0, block.len()), write::usual(&events).as_deref());
        self.emit(block, (0, block.len()), shape, events, left, out);
    }

    fn unread_calls(&mut self, block: &Block<Kind>, out: &mut dyn Sink) {
        let said = "looks like calls and results, but cannot be read as such; read as text";
        out.note(Note::new(NoteKind::NotARecord, block.span(0, block.len()), said));
        self.text(block, out);
    }

    fn text(&mut self, block: &Block<Kind>, out: &mut dyn Sink) {
        let (first, end) = block.trimmed();
        if is_blank(block.text(first, end)) {
            return;
        }
        let role = match self.form {
            Form::Quoted => Role::Assistant,
            Form::Plain => {
                let said = "nothing tells who says this";
                out.note(Note::new(NoteKind::Ambiguous, block.span(first, end), said));
                Role::Unknown
            }
        };
        let source = block.text(first, end);
        let text = write::without_blank_lines(source);
        let mut left = ExtraFields::default();
        if let Some(after) = source.strip_prefix(text).filter(|after| !after.is_empty()) {
            left.0.push((Cow::Borrowed(AFTER), Held::Raw(Cow::Owned(Text::from_bytes(after).to_json()))));
        }
        let event = Event::new(Body::Message { role, content: Content::Text(Text::from_bytes(text).into_owned()) });
        self.emit(block, (first, end), Shape::Talk, vec![event], left, out);
    }
}

fn is_bare(line: &[u8]) -> bool {
    line == OPENS_CALLS.as_bytes() || line == OPENS_RESULTS.as_bytes()
}

/// The events of a block, by its bytes alone: what its spelling still says.
pub fn again(source: &[u8]) -> Vec<Event<'static>> {
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

/// What the header's second line says.
fn status(source: &[u8]) -> Option<&[u8]> {
    let mut lines = source.split(|byte| *byte == b'\n').map(without_return);
    lines.find_map(|line| line.strip_prefix(STATUS_OPENS.as_bytes()))
}

/// The title, and that it is locked where it is.
fn title(source: &[u8]) -> Vec<Body<'static>> {
    let line = without_return(source.split(|byte| *byte == b'\n').next().unwrap_or_default());
    let title = line.strip_prefix(TITLE_OPENS.as_bytes()).unwrap_or_default();
    let title = title.strip_suffix(b"\"").unwrap_or(title);
    let content = Some(Content::Text(Text::from_bytes(title).into_owned()));
    let locked =
        (status(source) == Some(LOCKED.as_bytes())).then_some(Body::Fact { name: TITLE_LOCKED.into(), content: None });
    std::iter::once(Body::Fact { name: Fact::Title, content }).chain(locked).collect()
}

/// What is quoted, without the marks and without space at the ends of lines, which CycoD takes off.
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
