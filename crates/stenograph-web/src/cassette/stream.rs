//! Streams an answer: sends its frames at once or at their recorded times, with pings in between that keep the connection
//! alive.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use stenograph::cassette::{StreamFrame, Vendor};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::cassette::{Busy, Pace, ServerEvent};

/// How long a stream may be silent before it sends a ping.
const PING_EVERY: Duration = Duration::from_secs(10);

/// The frames of one answer.
pub struct Frames {
    frames: VecDeque<StreamFrame>,
    vendor: Vendor,
    pace: Pace,
    started: Instant,
    sleep: Pin<Box<Sleep>>,
    /// The number of the request, and the channel that reports when its client disconnects.
    request: u64,
    report: UnboundedSender<ServerEvent>,
    _busy: Busy,
}

impl Frames {
    pub fn new(
        frames: Vec<StreamFrame>,
        vendor: Vendor,
        pace: Pace,
        request: u64,
        report: UnboundedSender<ServerEvent>,
        busy: Busy,
    ) -> Frames {
        let started = Instant::now();
        let sleep = Box::pin(sleep_until(started));
        Frames { frames: frames.into(), vendor, pace, started, sleep, request, report, _busy: busy }
    }
}

impl Stream for Frames {
    type Item = Result<String, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(frame) = self.frames.front() else { return Poll::Ready(None) };
        let due = match self.pace {
            Pace::AtOnce => self.started,
            Pace::AsRecorded => self.started + Duration::from_millis(frame.after_ms),
        };
        if due <= Instant::now() {
            return Poll::Ready(self.frames.pop_front().map(|frame| Ok(frame.text)));
        }
        // Sleeps until the frame is due, or until the next ping.
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
            let _ = self.report.send(ServerEvent::Cut { request: self.request });
        }
    }
}
