//! The last events of a file as they are shown, without those that only repeat others.

use std::collections::VecDeque;

use stenograph::model::Event;
use stenograph::repeat::{IsRepeat, RepeatQueue, SpokenWords};
use stenograph_store::follow::{Follow, Last, LastLine};

use crate::error::CommandError;

/// How many events before the first one that is shown are looked at, to know what is only said again: agents write the records of one
/// message next to each other.
const BEHIND: usize = 16;

/// An event as it is shown if it is the only one that says what it says, and its words.
pub fn unless_repeated(
    event: &Event<'_>,
    shown: impl Fn(&Event<'_>) -> Option<String>,
) -> Option<(SpokenWords, String)> {
    let words = SpokenWords::of(event);
    match event.restates {
        true => Some((words, shown(&Event { restates: false, ..event.clone() })?)),
        false => Some((words, shown(event)?)),
    }
}

/// The last `most` events of which `shown` makes something, but for those that only repeat others. Where the file is followed, those that may
/// still turn out to be repeated are in the queue.
pub fn last_shown(
    follow: &mut Follow,
    most: usize,
    last_line: LastLine,
    shown: &mut dyn FnMut(&Event<'_>) -> Option<(SpokenWords, String)>,
) -> Result<(Last<String>, RepeatQueue<String>), CommandError> {
    let mut asked = most.saturating_add(BEHIND);
    loop {
        let Last { events, notes, torn, gave_up } = follow.last(asked, last_line, shown)?;
        let is_all = events.len() < asked || gave_up.is_some();
        let (mut queue, mut texts, mut first) = (RepeatQueue::default(), VecDeque::new(), 0);
        for (number, (words, text)) in events.into_iter().enumerate() {
            if number == BEHIND {
                first = texts.len();
            }
            queue.add(words, text);
            while let Some((text, is_repeat)) = queue.next_decided() {
                texts.extend((is_repeat == IsRepeat::No).then_some(text));
            }
        }
        while last_line == LastLine::Include
            && let Some((text, is_repeat)) = queue.take()
        {
            texts.extend((is_repeat == IsRepeat::No).then_some(text));
        }
        if is_all || texts.len() - first >= most {
            texts.drain(..texts.len().saturating_sub(most));
            let gave_up = gave_up.filter(|_| texts.len() < most);
            return Ok((Last { events: texts, notes, torn, gave_up }, queue));
        }
        asked = asked.saturating_mul(2);
    }
}
