//! Where a conversation can be divided, and why a requested place is not possible. The caller chooses the places and what the
//! parts contain.

use crate::edit::links::{LinkKind, Links};
use crate::edit::sketch::{Sketch, Sketched, Sketches};

/// A requested place, and where the conversation is divided instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The number of the requested event.
    pub asked: usize,
    /// The event before which the conversation is divided; `None` if it is not.
    pub at: Option<usize>,
    /// Why the place differs from the requested one.
    pub hindrance: Option<Hindrance>,
}

/// Why a conversation is not divided at the requested place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Nothing precedes it, or nothing follows.
    Edge,
    /// A call would be separated from its result.
    Call,
    /// A model response would be split.
    Response,
    /// A record of the source would be split.
    Record,
}

impl Hindrance {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Hindrance::Edge => "there is nothing to divide",
            Hindrance::Call => "a call would be separated from its result",
            Hindrance::Response => "a model response would be split",
            Hindrance::Record => "a record would be split",
        }
    }
}

/// Where a conversation is divided for each requested place, which is before the event of that number: there if possible,
/// otherwise at the next possible place.
pub fn divisions<S: Sketched + ?Sized>(events: &S, places: &[usize]) -> Vec<Division> {
    let events = &*events.sketches();
    let hindrances = hindrances(events);
    let division = |asked: &usize| {
        let free = |place: &usize| hindrances.get(*place).is_some_and(Option::is_none);
        let hindrance = hindrances.get(*asked).copied().unwrap_or(Some(Hindrance::Edge));
        let at = if hindrance == Some(Hindrance::Edge) { None } else { (*asked..events.len()).find(free) };
        Division { asked: *asked, at, hindrance }
    };
    places.iter().map(division).collect()
}

/// For each event, why the conversation cannot be divided before it.
fn hindrances(events: &Sketches) -> Vec<Option<Hindrance>> {
    let is_inside = |event: &Sketch| (event.part > 0).then_some(Hindrance::Record);
    let mut found: Vec<Option<Hindrance>> = events.iter().map(is_inside).collect();
    let links = Links::of(events);
    for (kind, hindrance) in [(LinkKind::Call, Hindrance::Call), (LinkKind::Response, Hindrance::Response)] {
        let mut crossings = links.crossings(Some(kind));
        for (place, slot) in found.iter_mut().enumerate() {
            if crossings.is_crossed(place) {
                slot.get_or_insert(hindrance);
            }
        }
    }
    if let Some(first) = found.first_mut() {
        *first = Some(Hindrance::Edge);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Body, Content, Event, Input, Part, Role};

    fn message(role: Role) -> Event<'static> {
        Event::new(Body::Message { role, content: Content::text("x") })
    }

    fn call(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolCall { call: Some(id.into()), name: "read".into(), input: Input::Json("{}".into()) })
    }

    fn result(id: &'static str) -> Event<'static> {
        Event::new(Body::ToolResult { call: Some(id.into()), name: None, content: Content::text("r"), error: None })
    }

    fn of(events: &[Event<'_>], place: usize) -> (Option<usize>, Option<Hindrance>) {
        let found = divisions(events, &[place]);
        (found[0].at, found[0].hindrance)
    }

    #[test]
    fn a_moved_division_has_a_reason() {
        let (user, model) = (message(Role::User), message(Role::Assistant));
        let mut events = [user.clone(), user.clone(), call("a"), result("a"), model.clone(), user.clone(), model, user];
        assert_eq!(of(&events, 4), (Some(4), None));
        assert_eq!(of(&events, 3), (Some(4), Some(Hindrance::Call)));
        assert_eq!([0, 8, 99].map(|place| of(&events, place)), [(None, Some(Hindrance::Edge)); 3]);
        for number in [4, 6] {
            events[number].group = Some("one response".into());
        }
        assert_eq!(of(&events, 5), (Some(7), Some(Hindrance::Response)));
        events[7].part = Part { index: 1, of: 2 };
        assert_eq!(of(&events, 7), (None, Some(Hindrance::Record)));
    }

    #[test]
    fn parallel_calls_are_not_divided_before_the_last_result() {
        let parallel = [message(Role::User), call("a"), call("b"), result("a"), result("b"), message(Role::Assistant)];
        assert_eq!([2, 3, 4].map(|place| of(&parallel, place)), [(Some(5), Some(Hindrance::Call)); 3]);
        assert_eq!(of(&parallel[..5], 3), (None, Some(Hindrance::Call)));
    }
}
