//! A file of which only parts are known: what was read of it, and what was put in place of what. Parts whose line is known are kept
//! in order and joined where they meet; of the others it is only known that they stand somewhere.

use std::ops::Range;

use super::contents::{Fit, Hunk, Times, replaced};
use super::lines;

/// A part of a file, at the beginning and now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The line of the beginning that it begins at, from 1. Such a part is made of whole lines. `None`: it stands anywhere, and may
    /// begin and end in the middle of a line.
    pub at: Option<usize>,
    /// What a part is called that has a name instead of a place.
    pub label: Option<String>,
    /// What it was; `None` where only what it is now is known.
    pub base: Option<String>,
    /// What it is.
    pub now: String,
}

impl Part {
    pub fn is_changed(&self) -> bool {
        self.base.as_ref() != Some(&self.now)
    }

    /// What it was, as far as that is known.
    pub fn was(&self) -> &str {
        self.base.as_deref().unwrap_or_default()
    }

    /// By how many lines it grew.
    fn growth(&self) -> isize {
        lines::count(&self.now).cast_signed() - lines::count(self.was()).cast_signed()
    }
}

/// Parts of a file: those with a place first, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parts(Vec<Part>);

impl Parts {
    pub fn all(&self) -> &[Part] {
        &self.0
    }

    pub fn size(&self) -> usize {
        self.0.iter().map(|part| part.was().len() + part.now.len()).sum()
    }

    /// What the whole file was at the beginning if it is this now; `None` where the parts do not tell.
    pub fn base_of(&self, text: &str) -> Option<String> {
        let mut places: Vec<(Range<usize>, &Part)> = Vec::new();
        for (part, line) in self.0.iter().zip(self.lines_now()) {
            places.push((stands(text, part, line)?, part));
        }
        rebuilt(text, places)
    }

    /// Some lines are seen as they are, from a line on.
    pub fn see(&mut self, at: usize, text: &str) -> Fit {
        let (mut seen, taken) = self.absorbed(text);
        let mut next = Parts(self.without(&taken));
        let end = at + lines::count(text);
        let meets = |part: &Part, line: usize| line + lines::count(&part.now) >= at && line <= end;
        let is_met = next.0.iter().zip(next.lines_now()).any(|(part, line)| line.is_some_and(|line| meets(part, line)));
        if !taken.is_empty() && is_met {
            // Both tell of changes in the same lines, and which was first cannot be told: the parts stay where they are.
            return Fit::Fits;
        }
        seen.at = next.line_before(at);
        match seen.at {
            Some(_) => {
                if next.join(seen, at) == Fit::Contradicts {
                    return Fit::Contradicts;
                }
            }
            // Something of unknown place moved the lines: what is seen may stand anywhere.
            None if taken.is_empty() => return Fit::Fits,
            None => next.0.push(seen),
        }
        *self = next;
        Fit::Fits
    }

    /// A text is put in place of another, wherever it is known to stand; else it stands in a part of its own.
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

    /// Lines are put in after a line.
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

    /// Lines are changed as a hunk says.
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

    /// The part of that name is given another text.
    pub fn label(&mut self, label: &str, text: Option<&str>) {
        let now = text.unwrap_or_default().to_owned();
        match self.0.iter_mut().find(|part| part.label.as_deref() == Some(label)) {
            Some(part) => part.now = now,
            None => self.0.push(Part { label: Some(label.to_owned()), now, ..Part::default() }),
        }
    }

    /// The lines at which parts would stand if those of unknown place were not there.
    pub fn lines_alone(&self) -> Vec<Option<usize>> {
        let mut growth = 0_isize;
        let mut lines = Vec::with_capacity(self.0.len());
        for part in &self.0 {
            lines.push(part.at.and_then(|at| at.checked_add_signed(growth)));
            growth += part.growth();
        }
        lines
    }

    /// The lines at which parts stand now, where that is known.
    pub fn lines_now(&self) -> Vec<Option<usize>> {
        if self.is_moved() { vec![None; self.0.len()] } else { self.lines_alone() }
    }

    /// Whether something of unknown place moved the lines after it.
    fn is_moved(&self) -> bool {
        self.0.iter().any(|part| part.at.is_none() && part.growth() != 0)
    }

    /// The line of the beginning that stands at a line now. Inside of a part it is as if nothing had changed in it.
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

    /// What is seen, with what it was: parts of unknown place that stand in it once are taken in.
    fn absorbed(&self, text: &str) -> (Part, Vec<usize>) {
        let whole = || Part { base: Some(text.to_owned()), now: text.to_owned(), ..Part::default() };
        let mut places: Vec<(Range<usize>, &Part)> = Vec::new();
        let mut taken = Vec::new();
        for (number, part) in self.0.iter().enumerate().filter(|(_, part)| part.at.is_none()) {
            if let Some(range) = stands(text, part, None) {
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

    /// Takes in lines that stand at this line now, with those parts that they overlap or meet. What is not in those, nobody changed.
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
        // What was put in between two lines stands before the second one.
        self.0.sort_by_key(|part| (part.at.is_none(), part.at, !part.was().is_empty()));
    }
}

/// Where a part stands in a text that is all there is now: at its line if it has one, else where it stands once.
fn stands(text: &str, part: &Part, line: Option<usize>) -> Option<Range<usize>> {
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

/// The text with what each part was in its place; `None` where parts meet.
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
        // The end of the last line may not be known: the text says.
        let is_bare = text.get(range.clone()).is_some_and(|held| !held.ends_with('\n')) && part.now.ends_with('\n');
        out.push_str(if is_bare { was.strip_suffix('\n').unwrap_or(was) } else { was });
        done = range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}

/// Lines that are seen and the parts that they overlap or meet, as one part; `None` where they disagree.
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
        // What comes after a line without an end is no line of this file.
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
