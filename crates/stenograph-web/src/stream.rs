//! An answer on its way: frames that go out at once or at their moments, and what keeps the connection alive in between.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use stenograph::cassette::{Frame, Vendor};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::serve::{Busy, Pace, ServerEvent};

/// How long a stream is silent before it says that it is still there.
const PING_EVERY: Duration = Duration::from_secs(10);

/// The frames of one answer.
pub struct Frames {
    frames: VecDeque<Frame>,
    vendor: Vendor,
    pace: Pace,
    asked: Instant,
    sleep: Pin<Box<Sleep>>,
    /// Which request it answers, and who is told when its client goes away.
    request: u64,
    tell: UnboundedSender<ServerEvent>,
    _busy: Busy,
}

impl Frames {
    /// Starts to send them.
    pub fn new(
        frames: Vec<Frame>,
        vendor: Vendor,
        pace: Pace,
        request: u64,
        tell: UnboundedSender<ServerEvent>,
        busy: Busy,
    ) -> Frames {
        let asked = Instant::now();
        let sleep = Box::pin(sleep_until(asked));
        Frames { frames: frames.into(), vendor, pace, asked, sleep, request, tell, _busy: busy }
    }
}

impl Stream for Frames {
    type Item = Result<String, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(frame) = self.frames.front() else { return Poll::Ready(None) };
        let due = match self.pace {
            Pace::AtOnce => self.asked,
            Pace::AsRecorded => self.asked + Duration::from_millis(frame.after_ms),
        };
        if due <= Instant::now() {
            return Poll::Ready(self.frames.pop_front().map(|frame| Ok(frame.text)));
        }
        // Sleeps until the frame, or until it is time for a sign of life.
        if self.sleep.is_elapsed() || self.sleep.deadline() > due {
            let until = due.min(Instant::now() + PING_EVERY);
            self.sleep.as_mut().reset(until);
        }
        match self.sleep.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) if due <= Instant::now() => {
                Poll::Ready(self.frames.pop_front().map(|frame| Ok(frame.text)))
            }
            Poll::Ready(()) => Poll::Ready(Some(Ok(self.vendor.ping().to_owned()))),
        }
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        if !self.frames.is_empty() {
            let _ = self.tell.send(ServerEvent::Cut { request: self.request });
        }
    }
}
