//! The last visible events of a file, without events that repeat others.

use std::collections::VecDeque;

use stenograph::model::Event;
use stenograph::repeat::{IsRepeat, RepeatQueue, SpokenWords};
use stenograph_store::follow::{Follow, Last, LastLine};

use crate::error::CommandError;

/// How many events before the first visible one are checked for repeats: agents write the records of one message next to each
/// other.
const CHECKED_BEFORE: usize = 16;

/// The words of an event and what to show for it, as it appears if no other event repeats it.
pub fn unless_repeated<T>(event: &Event<'_>, shown: impl Fn(&Event<'_>) -> Option<T>) -> Option<(SpokenWords, T)> {
    Some((SpokenWords::of(event), shown(&event.as_original())?))
}

/// The last `most` visible events, without repeats. If the file is followed, the queue holds the events that may still turn out
/// to be repeats.
pub fn last_shown<T>(
    follow: &mut Follow,
    most: usize,
    last_line: LastLine,
    shown: &mut dyn FnMut(&Event<'_>) -> Option<(SpokenWords, T)>,
) -> Result<(Last<T>, RepeatQueue<T>), CommandError> {
    let mut wanted = most.saturating_add(CHECKED_BEFORE);
    loop {
        let Last { events, notes, torn, gave_up } = follow.last(wanted, last_line, shown)?;
        let is_all = events.len() < wanted || gave_up.is_some();
        let (mut queue, mut texts, mut first) = (RepeatQueue::default(), VecDeque::new(), 0);
        for (number, (words, text)) in events.into_iter().enumerate() {
            if number == CHECKED_BEFORE {
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
        wanted = wanted.saturating_mul(2);
    }
}
