//! A file that is only partly known: the lines that were read, and the texts that were replaced. Parts with a known line
//! are in order and joined where they meet; the position of the others is unknown.

use std::ops::Range;

use super::contents::{Fit, Hunk, Times, replaced};
use super::lines;

/// A part of a file, initially and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The line of the initial file at which it begins, from 1. Such a part consists of whole lines. `None`: its position
    /// is unknown, and it may begin and end in the middle of a line.
    pub at: Option<usize>,
    /// The name of a part that has a name instead of a position.
    pub label: Option<String>,
    /// Its initial text; `None` if only the current text is known.
    pub base: Option<String>,
    /// Its current text.
    pub now: String,
}

impl Part {
    pub fn is_changed(&self) -> bool {
        self.base.as_ref() != Some(&self.now)
    }

    /// Its initial text, as far as it is known.
    pub fn was(&self) -> &str {
        self.base.as_deref().unwrap_or_default()
    }

    /// The number of lines by which it grew.
    fn growth(&self) -> isize {
        lines::count(&self.now).cast_signed() - lines::count(self.was()).cast_signed()
    }
}

/// The parts of a file: those with a position first, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    pub fn all(&self) -> &[Part] {
        &self.0
    }

    pub fn size(&self) -> usize {
        self.0.iter().map(|part| part.was().len() + part.now.len()).sum()
    }

    /// The whole initial file, if this is the current one; `None` if the parts do not determine it.
    pub fn base_of(&self, text: &str) -> Option<String> {
        let mut places: Vec<(Range<usize>, &Part)> = Vec::new();
        for (part, line) in self.0.iter().zip(self.lines_now()) {
            places.push((position_in(text, part, line)?, part));
        }
        rebuilt(text, places)
    }

    /// Records that some lines were seen, starting at a line.
    pub fn see(&mut self, at: usize, text: &str) -> Fit {
        let (mut seen, taken) = self.absorbed(text);
        let mut next = Parts(self.without(&taken));
        let end = at + lines::count(text);
        let meets = |part: &Part, line: usize| line + lines::count(&part.now) >= at && line <= end;
        let is_met = next.0.iter().zip(next.lines_now()).any(|(part, line)| line.is_some_and(|line| meets(part, line)));
        if !taken.is_empty() && is_met {
            // Both changed the same lines, and their order is unknown: the parts stay where they are.
            return Fit::Fits;
        }
        seen.at = next.line_before(at);
        match seen.at {
            Some(_) => {
                if next.join(seen, at) == Fit::Contradicts {
                    return Fit::Contradicts;
                }
            }
            // A change at an unknown position moved the lines, so the position of these lines is unknown too.
            None if taken.is_empty() => return Fit::Fits,
            None => next.0.push(seen),
        }
        *self = next;
        Fit::Fits
    }

    /// Replaces a text in the part that contains it; otherwise it becomes a part of its own.
    pub fn replace(&mut self, old: &str, new: &str, times: Times) {
        let mut found = false;
        for part in self.0.iter_mut().rev().filter(|part| part.label.is_none()) {
            if let Some(now) = replaced(&part.now, old, new, times) {
                part.now = now;
                found = true;
                if times == Times::Once {
                    return;
                }
            }
        }
        if !found {
            let base = Some(old.to_owned());
            self.0.push(Part { base, now: new.to_owned(), ..Part::default() });
        }
    }

    /// Inserts lines after a line.
    pub fn insert(&mut self, after: usize, text: &str) {
        let now = self.lines_now();
        let held = self.0.iter_mut().zip(now).find_map(|(part, line)| {
            let inside = (after + 1).checked_sub(line?)?;
            (inside <= lines::count(&part.now)).then_some((part, inside))
        });
        if let Some((part, inside)) = held
            && let Some(at) = lines::start(&part.now, inside)
        {
            part.now = lines::spliced(&part.now, at..at, text);
            return;
        }
        let at = self.line_before(after + 1);
        self.0.push(Part { at, base: Some(String::new()), now: text.to_owned(), ..Part::default() });
        self.sort();
    }

    /// Changes lines as a hunk describes.
    pub fn patch(&mut self, hunk: &Hunk) -> Fit {
        if let Some(at) = hunk.at.filter(|_| !hunk.old.is_empty()) {
            if self.see(at, &hunk.old) == Fit::Contradicts {
                return Fit::Contradicts;
            }
            let now = self.lines_now();
            let length = lines::count(&hunk.old);
            for (part, line) in self.0.iter_mut().zip(now) {
                let inside = line.and_then(|line| lines::range(&part.now, at.checked_sub(line)?, length));
                if let Some(range) = inside {
                    part.now = lines::spliced(&part.now, range, &hunk.new);
                    return Fit::Fits;
                }
            }
        }
        if let Some(at) = hunk.at.filter(|_| hunk.old.is_empty()) {
            self.insert(at, &hunk.new);
            return Fit::Fits;
        }
        for part in self.0.iter_mut().rev().filter(|part| part.label.is_none()) {
            let find = if hunk.at.is_some() { lines::find_exactly } else { lines::find };
            if let Some(range) = find(&part.now, &hunk.old, 0) {
                part.now = lines::spliced(&part.now, range, &hunk.new);
                return Fit::Fits;
            }
        }
        self.0.push(Part { base: Some(hunk.old.clone()), now: hunk.new.clone(), ..Part::default() });
        Fit::Fits
    }

    /// Replaces the text of the part with that name.
    pub fn label(&mut self, label: &str, text: Option<&str>) {
        let now = text.unwrap_or_default().to_owned();
        match self.0.iter_mut().find(|part| part.label.as_deref() == Some(label)) {
            Some(part) => part.now = now,
            None => self.0.push(Part { label: Some(label.to_owned()), now, ..Part::default() }),
        }
    }

    /// The lines of the parts, ignoring parts at unknown positions.
    pub fn lines_alone(&self) -> Vec<Option<usize>> {
        let mut growth = 0_isize;
        let mut lines = Vec::with_capacity(self.0.len());
        for part in &self.0 {
            lines.push(part.at.and_then(|at| at.checked_add_signed(growth)));
            growth += part.growth();
        }
        lines
    }

    /// The current lines of the parts, where they are known.
    pub fn lines_now(&self) -> Vec<Option<usize>> {
        if self.is_moved() { vec![None; self.0.len()] } else { self.lines_alone() }
    }

    /// Whether a change at an unknown position moved the lines after it.
    fn is_moved(&self) -> bool {
        self.0.iter().any(|part| part.at.is_none() && part.growth() != 0)
    }

    /// The initial line number of a current line. Inside a part, it is computed as if nothing had changed there.
    fn line_before(&self, line: usize) -> Option<usize> {
        if self.is_moved() {
            return None;
        }
        let mut before = line;
        for (part, now) in self.0.iter().zip(self.lines_now()) {
            let Some(now) = now else { continue };
            if line < now + lines::count(&part.now) {
                break;
            }
            before = before.checked_add_signed(-part.growth())?;
        }
        Some(before)
    }

    /// The seen text with its initial text: it absorbs parts at unknown positions that occur in it once.
    fn absorbed(&self, text: &str) -> (Part, Vec<usize>) {
        let whole = || Part { base: Some(text.to_owned()), now: text.to_owned(), ..Part::default() };
        let mut places: Vec<(Range<usize>, &Part)> = Vec::new();
        let mut taken = Vec::new();
        for (number, part) in self.0.iter().enumerate().filter(|(_, part)| part.at.is_none()) {
            if let Some(range) = position_in(text, part, None) {
                places.push((range, part));
                taken.push(number);
            }
        }
        match rebuilt(text, places) {
            Some(base) => (Part { base: Some(base), ..whole() }, taken),
            None => (whole(), Vec::new()),
        }
    }

    fn without(&self, taken: &[usize]) -> Vec<Part> {
        self.0.iter().enumerate().filter(|(number, _)| !taken.contains(number)).map(|(_, part)| part.clone()).collect()
    }

    /// Adds lines at their current position and merges the parts that they overlap or meet. Lines outside those parts are
    /// unchanged.
    fn join(&mut self, seen: Part, at: usize) -> Fit {
        let end = at + lines::count(&seen.now);
        let places = self.lines_now();
        let (mut met, mut rest): (Vec<(Part, usize)>, Vec<Part>) = (Vec::new(), Vec::new());
        for (part, line) in self.0.iter().cloned().zip(places) {
            match line.filter(|line| line + lines::count(&part.now) >= at && *line <= end) {
                Some(line) => met.push((part, line)),
                None => rest.push(part),
            }
        }
        let joined = if met.is_empty() { Some(seen) } else { joined(&seen, at, &met) };
        let Some(joined) = joined else { return Fit::Contradicts };
        rest.push(joined);
        self.0 = rest;
        self.sort();
        Fit::Fits
    }

    fn sort(&mut self) {
        // Text inserted between two lines comes before the second one.
        self.0.sort_by_key(|part| (part.at.is_none(), part.at, !part.was().is_empty()));
    }
}

/// The position of a part in a text that is the whole current file: its line, otherwise its only occurrence.
fn position_in(text: &str, part: &Part, line: Option<usize>) -> Option<Range<usize>> {
    part.base.as_ref()?;
    let at_line = line.and_then(|line| {
        let range = lines::range(text, line.checked_sub(1)?, lines::count(&part.now))?;
        (text.get(range.clone())?.trim_end_matches('\n') == part.now.trim_end_matches('\n')).then_some(range)
    });
    at_line.or_else(|| match lines::occurrences(text, &part.now) {
        (1, at) => Some(at..at + part.now.len()),
        _ => None,
    })
}

/// The text with each part replaced by its initial text; `None` if parts meet.
fn rebuilt(text: &str, mut places: Vec<(Range<usize>, &Part)>) -> Option<String> {
    places.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, part) in places {
        if !part.is_changed() {
            continue;
        }
        out.push_str(text.get(done..range.start)?);
        let was = part.was();
        // The newline of the last line may be unknown: the text decides.
        let is_bare = text.get(range.clone()).is_some_and(|held| !held.ends_with('\n')) && part.now.ends_with('\n');
        out.push_str(if is_bare { was.strip_suffix('\n').unwrap_or(was) } else { was });
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Seen lines and the parts that they overlap or meet, as one part; `None` if they disagree.
fn joined(seen: &Part, at: usize, met: &[(Part, usize)]) -> Option<Part> {
    let end = at + lines::count(&seen.now);
    let cut = |from: usize, to: usize| seen.now.get(lines::range(&seen.now, from - at, to - from)?);
    let (mut base, mut now) = (String::new(), String::new());
    let (mut start, mut next) = (seen.at, at);
    for (number, (part, line)) in met.iter().enumerate() {
        let part_end = line + lines::count(&part.now);
        if *line > next {
            let between = cut(next, *line)?;
            base.push_str(between);
            now.push_str(between);
        } else if number == 0 {
            start = part.at;
        }
        let (from, to) = (at.max(*line), end.min(part_end));
        if from < to {
            let held = part.now.get(lines::range(&part.now, from - line, to - from)?)?;
            if held.trim_end_matches('\n') != cut(from, to)?.trim_end_matches('\n') {
                return None;
            }
        }
        base.push_str(part.was());
        now.push_str(&part.now);
        next = next.max(part_end);
        // Text after a line without a newline is not a line of this file.
        if next < end && [&base, &now].iter().any(|text| !text.is_empty() && !text.ends_with('\n')) {
            return None;
        }
    }
    if next < end {
        let rest = cut(next, end)?;
        base.push_str(rest);
        now.push_str(rest);
    }
    Some(Part { at: start, label: None, base: Some(base), now })
}
