//! Gives a carried source back. When every run is there, in order and sealed, the answer is the source itself. A record that was
//! edited since is read again, and only what changed in it is written anew.

use std::io::{self, Read, Write};

use super::{CHUNK_SIZE, Outcome, Source, Survey, Way};
use crate::carry::{Carried, KEY, detach, seal};
use crate::format::Format;
use crate::frame::{Frame, Framer, Framing, RECORD_SIZE_MAX};
use crate::json::{Object, values};
use crate::model::{Event, Outline};

/// Puts the source together again.
pub fn restore(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    survey: Survey,
) -> io::Result<Outcome> {
    // Lines can be mended one by one. The runs of a document are no documents: one that was touched is written anew.
    if to.info().framing != Framing::Lines
        && gather(from, source, to, &mut io::sink(), &survey.outline)? != Way::Restored
    {
        return super::rewrite(from, source, to, out, super::Carry::Not, survey);
    }
    let way = gather(from, source, to, out, &survey.outline)?;
    let mut losses = survey.read;
    losses.kept = losses.read.clone();
    let Survey { outline, notes, notes_count, .. } = survey;
    Ok(Outcome { outline, losses, notes, notes_count, output_notes: Vec::new(), way })
}

fn gather(
    from: &dyn Format,
    source: &mut dyn Source,
    to: &dyn Format,
    out: &mut dyn Write,
    outline: &Outline,
) -> io::Result<Way> {
    let mut restoring = Restoring {
        from,
        to,
        outline,
        next: 0,
        ended: false,
        edited: 0,
        missing: 0,
        line: Line::Start,
        out,
        failed: None,
    };
    let mut framer = Framer::new(from.info().framing, RECORD_SIZE_MAX);
    let mut input = source.open()?;
    let mut buffer = vec![0; CHUNK_SIZE];
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        framer.feed(buffer.get(..length).unwrap_or_default(), &mut |frame| restoring.frame(frame));
    }
    framer.end(&mut |frame| restoring.frame(frame));
    if let Some(error) = restoring.failed {
        return Err(error);
    }
    restoring.out.flush()?;
    if !restoring.ended {
        restoring.missing += 1;
    }
    Ok(match (restoring.edited, restoring.missing) {
        (0, 0) => Way::Restored,
        (edited, missing) => Way::Mended { edited, missing },
    })
}

/// Where the output stands. A run begins with the newline of the line before it, a record written anew ends with its own.
#[derive(Clone, Copy, PartialEq)]
enum Line {
    Start,
    Middle,
    /// At the start of a line whose newline the next run brings along.
    Owed,
}

struct Restoring<'a> {
    from: &'a dyn Format,
    to: &'a dyn Format,
    outline: &'a Outline,
    next: u64,
    /// Whether the last run was seen.
    ended: bool,
    edited: u64,
    missing: u64,
    line: Line,
    out: &'a mut dyn Write,
    failed: Option<io::Error>,
}

impl Restoring<'_> {
    fn frame(&mut self, frame: Frame<'_>) {
        let Frame::Record(record) = frame else { return };
        let text = String::from_utf8_lossy(record.bytes);
        for (_, value) in values(&text).0 {
            self.value(value);
        }
    }

    fn value(&mut self, record: &str) {
        let carried = Object::parse(record).and_then(|object| object.peek(KEY));
        let Some((raw, run)) = carried.and_then(|raw| Some((raw, Carried::parse(raw)?))) else {
            // A record that was put in between has no run: it is converted like any other.
            self.edited += 1;
            let events = crate::read::all(self.from, record.as_bytes()).events;
            let bytes = crate::write::all(self.to, self.outline, &events);
            return self.put_anew(&bytes);
        };
        if run.number != self.next {
            self.missing += run.number.saturating_sub(self.next).max(1);
        }
        self.next = run.number + 1;
        self.ended = run.last;
        let plain = detach(record, raw).unwrap_or_default();
        if seal(&plain) == run.seal {
            return self.put(&run.source);
        }
        self.edited += 1;
        match self.mend(&plain, &run.source) {
            Mended::Run(bytes) => self.put(&bytes),
            Mended::Anew(bytes) => self.put_anew(&bytes),
        }
    }

    /// The run of a record that was edited: its events take what changed, and everything else of the run stays as it is.
    fn mend(&self, edited: &[u8], run: &[u8]) -> Mended {
        let now = crate::read::all(self.from, edited).events;
        let then = crate::read::all(self.to, run).events;
        let outline = Outline::of(self.to.info().name, &then);
        let unedited = crate::read::all(self.from, &crate::write::all(self.from, &outline, &then)).events;
        let mut mended = then.clone();
        // Records of another run's events may be read back besides: the edited ones are the last.
        let changed = now.iter().rev().zip(unedited.iter().rev()).filter(|(now, was)| now.body != was.body);
        let mut any = false;
        for (now, was) in changed {
            let twin = mended.iter_mut().rev().find(|event| event.body == was.body);
            if let Some(twin) = twin {
                twin.body = now.body.clone();
                any = true;
            }
        }
        if !any {
            return Mended::Anew(crate::write::all(self.to, self.outline, &now));
        }
        Mended::Run(splice_changed(self.to, &outline, run, &then, &mended))
    }

    /// Writes lines of their own between the runs.
    fn put_anew(&mut self, lines: &[u8]) {
        if lines.is_empty() {
            return;
        }
        if self.line == Line::Middle {
            self.put(b"\n");
        }
        self.put(lines);
        self.line = Line::Owed;
    }

    fn put(&mut self, bytes: &[u8]) {
        let bytes = match self.line {
            Line::Owed => bytes.strip_prefix(b"\n").unwrap_or(bytes),
            Line::Start | Line::Middle => bytes,
        };
        if let Some(last) = bytes.last() {
            self.line = if *last == b'\n' { Line::Start } else { Line::Middle };
        }
        if self.failed.is_none() {
            self.failed = self.out.write_all(bytes).err();
        }
    }
}

/// The run of an edited record.
enum Mended {
    /// The run itself, with what changed replaced.
    Run(Vec<u8>),
    /// Lines written from the edited record alone.
    Anew(Vec<u8>),
}

/// The run with the records of changed events written anew.
fn splice_changed(
    format: &dyn Format,
    outline: &Outline,
    run: &[u8],
    then: &[Event<'static>],
    mended: &[Event<'static>],
) -> Vec<u8> {
    let mut edits = Vec::new();
    let mut at = 0;
    while let Some(first) = then.get(at) {
        let length = then.get(at..).unwrap_or_default().iter().take_while(|event| event.at == first.at).count().max(1);
        let (old, new) = (then.get(at..at + length), mended.get(at..at + length));
        if let (Some(old), Some(new), Some(span)) = (old, new, first.at)
            && old != new
            && let Some(with) = crate::write::fragment(format, outline, new)
        {
            edits.push(crate::write::Edit { at: span, with });
        }
        at += length;
    }
    let mut out = Vec::new();
    match crate::write::splice(&mut { run }, &edits, &mut out) {
        Ok(()) => out,
        Err(_) => run.to_vec(),
    }
}
