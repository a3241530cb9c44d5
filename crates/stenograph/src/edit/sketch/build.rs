//! Makes sketches while events come along: all of them once, and those that restate others in other words once more.

use std::ops::Range;

use super::postings::{Postings, small};
use super::{CountField, Sketch, Sketches};
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
        if let Body::Fact { fact: name, content: Some(_) } = &event.body
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
            spine.add_any(&sketches.view(number, sketch));
        }
        spine.decide();
        let told = sketches.all.iter().enumerate().map(|(number, sketch)| {
            let view = sketches.view(number, sketch);
            spine.left_out_any(&view).is_none()
        });
        let told = told.collect();
        drop(spine);
        sketches.told = told;
        let restating = || sketches.all.iter().enumerate().filter(|(_, sketch)| sketch.restates);
        let own = || sketches.all.iter().enumerate().filter(|(_, sketch)| !sketch.restates);
        let wanted =
            Postings::new(restating().filter(|(_, sketch)| sketch.says).map(|(at, sketch)| (sketch.print(), at)));
        let said = own().map(|(number, sketch)| (sketch.print(), number));
        let said = Postings::new(said.filter(|(print, _)| wanted.of(*print).next().is_some()));
        drop(wanted);
        let (mut same, mut wants) = (Vec::new(), Vec::new());
        for (number, sketch) in restating() {
            match sketches.nearest(&said, number).filter(|_| sketch.says) {
                Some(base) => same.push((small(number), small(base))),
                None => wants.push(small(number)),
            }
        }
        let mut calls = Postings::default();
        if !wants.is_empty() {
            calls = Postings::new(own().filter(|(_, sketch)| sketch.call != 0).map(|(at, sketch)| (sketch.call, at)));
        }
        sketches.same = same;
        Naming { sketches: self.sketches, wants, calls }
    }
}

impl Sketches {
    /// The number nearest to this one at which the same was said. No record restates itself.
    fn nearest(&self, said: &Postings, number: usize) -> Option<usize> {
        let event = self.get(number)?;
        let elsewhere =
            |base: &usize| !event.has_place || self.get(*base).is_some_and(|base| base.place() != event.place());
        said.of(event.print()).filter(elsewhere).min_by_key(|base| base.abs_diff(number))
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
    /// Numbers of events, in order.
    wants: Vec<u32>,
    calls: Postings,
}

impl Naming {
    /// Whether the events have to come once more.
    pub(in crate::edit) fn is_wanted(&self) -> bool {
        !self.wants.is_empty() && !self.calls.is_empty()
    }

    /// Whether one of these events has to come once more.
    pub(in crate::edit) fn wants(&self, numbers: &Range<usize>) -> bool {
        numbers.clone().any(|number| self.is_one_wanted(number))
    }

    fn is_one_wanted(&self, number: usize) -> bool {
        self.wants.binary_search(&small(number)).is_ok()
    }

    pub(in crate::edit) fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    pub(in crate::edit) fn add(&mut self, number: usize, event: &Event<'_>) {
        if !self.is_one_wanted(number) {
            return;
        }
        let mut json = String::new();
        event.extra.iter().for_each(|(_, residue)| residue.write_json(&mut json));
        let named: Vec<usize> = json.split('"').flat_map(|word| self.calls.of(key(word).max(1))).collect();
        if !named.is_empty() {
            self.sketches.named.insert(number, named);
        }
    }

    pub(in crate::edit) fn finish(self) -> Sketches {
        self.sketches
    }
}
