//! Makes sketches while events come along: all of them once, and those that restate others in other words once more.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{CountField, Sketch, Sketches, Tie};
use crate::model::{Body, Event, Kind, REWIND, Spine, SpineEvent, key};

/// Takes notice of every event of a source, in order.
#[derive(Debug, Default)]
pub(in crate::edit) struct SketchBuilder {
    sketches: Sketches,
}

impl SketchBuilder {
    pub(in crate::edit) fn add(&mut self, event: &Event<'_>) {
        let number = self.sketches.all.len();
        let sketch = Sketch::of(event, &mut self.sketches.prints);
        if let Body::Fact { name, content: Some(_) } = &event.body
            && name == REWIND
        {
            self.sketches.rewinds.extend(SpineEvent::rewinds(event).map(|turns| (number, turns)));
        }
        if sketch.kind == Kind::Fact {
            self.sketches.counts.extend(count_fields(number, event));
        }
        self.sketches.all.push(sketch);
    }

    /// Decides what restates what by its words.
    pub(in crate::edit) fn naming(mut self) -> Naming {
        let mut spine = Spine::default();
        let sketches = &mut self.sketches;
        for (number, sketch) in sketches.all.iter().enumerate() {
            spine.notice(&sketches.view(number, sketch));
        }
        spine.decide();
        let told = sketches.all.iter().enumerate().map(|(number, sketch)| {
            let view = sketches.view(number, sketch);
            spine.judge(&view).is_none()
        });
        let told = told.collect();
        drop(spine);
        sketches.told = told;
        let restating = || sketches.all.iter().enumerate().filter(|(_, sketch)| sketch.restates);
        let wanted: HashSet<u64> =
            restating().filter(|(_, sketch)| sketch.says).map(|(_, sketch)| sketch.print()).collect();
        let mut said: HashMap<u64, Vec<usize>> = HashMap::new();
        let own = sketches.all.iter().enumerate().filter(|(_, sketch)| !sketch.restates);
        for (number, print) in own.map(|(number, sketch)| (number, sketch.print())) {
            if wanted.contains(&print) {
                said.entry(print).or_default().push(number);
            }
        }
        let (mut ties, mut wants) = (HashMap::new(), HashSet::new());
        for (number, sketch) in restating() {
            match sketches.nearest(&said, number).filter(|_| sketch.says) {
                Some(same) => {
                    ties.insert(number, Tie { same: Some(same), named: Vec::new() });
                }
                None => {
                    wants.insert(number);
                }
            }
        }
        let mut calls: HashMap<u64, Vec<usize>> = HashMap::new();
        if !wants.is_empty() {
            for (number, sketch) in sketches.all.iter().enumerate().filter(|(_, sketch)| !sketch.restates) {
                if sketch.call != 0 {
                    calls.entry(sketch.call).or_default().push(number);
                }
            }
        }
        sketches.ties = ties;
        Naming { sketches: self.sketches, wants, calls }
    }
}

impl Sketches {
    /// The number nearest to this one at which the same was said. No record restates itself.
    fn nearest(&self, said: &HashMap<u64, Vec<usize>>, number: usize) -> Option<usize> {
        let event = self.get(number)?;
        let elsewhere =
            |base: &usize| !event.has_place || self.get(*base).is_some_and(|base| base.place() != event.place());
        said.get(&event.print())?.iter().copied().filter(elsewhere).min_by_key(|base| base.abs_diff(number))
    }
}

/// The fields of a header that count events.
fn count_fields(number: usize, event: &Event<'_>) -> Vec<CountField> {
    let mut found = Vec::new();
    for (info, residue) in event.extra.known() {
        for (field, kind) in info.counts {
            let stated = residue.text(field).and_then(|text| text.trim().parse::<u64>().ok());
            found.extend(stated.map(|stated| CountField {
                event: number,
                origin: info.name,
                field,
                kind: *kind,
                stated,
            }));
        }
    }
    found
}

/// What restates others in other words names calls: which ones is seen when these events come once more.
#[derive(Debug)]
pub(in crate::edit) struct Naming {
    sketches: Sketches,
    wants: HashSet<usize>,
    calls: HashMap<u64, Vec<usize>>,
}

impl Naming {
    /// Whether the events have to come once more.
    pub(in crate::edit) fn is_wanted(&self) -> bool {
        !self.wants.is_empty() && !self.calls.is_empty()
    }

    /// Whether one of these events has to come once more.
    pub(in crate::edit) fn wants(&self, numbers: &Range<usize>) -> bool {
        numbers.clone().any(|number| self.wants.contains(&number))
    }

    pub(in crate::edit) fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    pub(in crate::edit) fn add(&mut self, number: usize, event: &Event<'_>) {
        if !self.wants.contains(&number) {
            return;
        }
        let mut json = String::new();
        event.extra.iter().for_each(|(_, residue)| residue.write_json(&mut json));
        let words = json.split('"').filter_map(|word| self.calls.get(&key(word).max(1)));
        let named: Vec<usize> = words.flatten().copied().collect();
        if !named.is_empty() {
            self.sketches.ties.insert(number, Tie { same: None, named });
        }
    }

    pub(in crate::edit) fn finish(self) -> Sketches {
        self.sketches
    }
}
