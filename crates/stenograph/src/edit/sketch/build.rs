//! Builds sketches in one pass over all events, and a second pass over the restatements whose words differ.

use std::ops::Range;

use super::postings::{Postings, small};
use super::{CountField, Sketch, Sketches};
use crate::calls::Calls;
use crate::model::{Event, Kind, Spine, SpineEvent, key};

/// Builds the sketches. Needs every event of a source, in order.
#[derive(Debug, Default)]
pub(in crate::edit) struct SketchBuilder {
    sketches: Sketches,
    calls: Calls,
}

impl SketchBuilder {
    pub(in crate::edit) fn add(&mut self, event: &Event<'_>) {
        let number = self.sketches.all.len();
        let call_number = self.calls.add(event).call;
        let sketch = Sketch::of(event, call_number, &mut self.sketches.fingerprints);
        if sketch.kind == Kind::Fact {
            self.sketches.rewinds.extend(SpineEvent::rewinds(event).map(|turns| (number, turns)));
            self.sketches.counts.extend(count_fields(number, event));
        }
        self.sketches.all.push(sketch);
    }

    /// Decides the spine, and finds the restatements with equal texts.
    pub(in crate::edit) fn search_names(mut self) -> NameSearch {
        let sketches = &mut self.sketches;
        let mut spine = Spine::default();
        for (number, sketch) in sketches.all.iter().enumerate() {
            spine.add_any(&sketches.view(number, sketch));
        }
        spine.decide();
        let in_spine = sketches.all.iter().enumerate().map(|(number, sketch)| {
            let view = sketches.view(number, sketch);
            spine.left_out_any(&view).is_none()
        });
        let in_spine = in_spine.collect();
        drop(spine);
        sketches.spine = in_spine;
        let restating = || sketches.all.iter().enumerate().filter(|(_, sketch)| sketch.restates);
        let original = || sketches.all.iter().enumerate().filter(|(_, sketch)| !sketch.restates);
        let with_text = restating().filter(|(_, sketch)| sketch.has_text);
        let repeated = Postings::new(with_text.map(|(number, sketch)| (sketch.content_print(), number)));
        let originals = original().map(|(number, sketch)| (sketch.content_print(), number));
        let originals = Postings::new(originals.filter(|(fingerprint, _)| repeated.of(*fingerprint).next().is_some()));
        drop(repeated);
        let (mut same_text, mut other_words) = (Vec::new(), Vec::new());
        for (number, sketch) in restating() {
            match sketches.nearest(&originals, number).filter(|_| sketch.has_text) {
                Some(base) => same_text.push((small(number), small(base))),
                None => other_words.push(small(number)),
            }
        }
        let mut calls = Postings::default();
        if !other_words.is_empty() {
            let with_id = original().filter(|(_, sketch)| sketch.call != 0);
            calls = Postings::new(with_id.map(|(number, sketch)| (sketch.call, number)));
        }
        sketches.same_text = same_text;
        NameSearch { sketches: self.sketches, other_words, calls }
    }
}

impl Sketches {
    /// The nearest event with the same content. A record never restates itself.
    fn nearest(&self, originals: &Postings, number: usize) -> Option<usize> {
        let event = self.get(number)?;
        let elsewhere =
            |base: &usize| !event.has_place || self.get(*base).is_some_and(|base| base.place() != event.place());
        originals.of(event.content_print()).filter(elsewhere).min_by_key(|base| base.abs_diff(number))
    }
}

/// The fields of a header that count events.
fn count_fields(number: usize, event: &Event<'_>) -> Vec<CountField> {
    let mut found = Vec::new();
    for (info, extra) in event.extra.known() {
        for (field, kind) in info.counts {
            let stated = extra.text(field).and_then(|text| text.trim().parse::<u64>().ok());
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

/// Searches the restatements in other words for the ids of calls. Needs those events once more.
#[derive(Debug)]
pub(in crate::edit) struct NameSearch {
    sketches: Sketches,
    /// The numbers of the restatements, in order.
    other_words: Vec<u32>,
    calls: Postings,
}

impl NameSearch {
    /// Whether a second pass over the events is needed.
    pub(in crate::edit) fn is_needed(&self) -> bool {
        !self.other_words.is_empty() && !self.calls.is_empty()
    }

    /// Whether the second pass needs one of these events.
    pub(in crate::edit) fn needs_any(&self, numbers: &Range<usize>) -> bool {
        numbers.clone().any(|number| self.needs(number))
    }

    fn needs(&self, number: usize) -> bool {
        self.other_words.binary_search(&small(number)).is_ok()
    }

    pub(in crate::edit) fn sketches(&self) -> &Sketches {
        &self.sketches
    }

    pub(in crate::edit) fn add(&mut self, number: usize, event: &Event<'_>) {
        if !self.needs(number) {
            return;
        }
        let mut json = String::new();
        event.extra.iter().for_each(|(_, extra)| extra.write_json(&mut json));
        let named: Vec<usize> = json.split('"').flat_map(|word| self.calls.of(key(word).max(1))).collect();
        if !named.is_empty() {
            self.sketches.named_calls.insert(number, named);
        }
    }

    pub(in crate::edit) fn finish(self) -> Sketches {
        self.sketches
    }
}
