//! The cassette: answers an agent's model requests from a recording. This file runs the server: it binds, answers until the caller stops it or the tape is played, and returns a summary. `answer.rs` answers
//! a single request.

mod answer;
mod route;
mod stream;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use stenograph::cassette::{CassettePlayer, MatchMode, Played, Tape};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::listen::{self, Checks, ConnectionLoad, InFlight, KeepServing, Timeouts};

/// How to serve a tape.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port to listen on; 0 for any free port.
    pub port: u16,
    /// How the player treats requests that differ from the recorded ones.
    pub matching: MatchMode,
    /// When answers are sent.
    pub pace: Pace,
    /// When the server stops.
    pub until: Until,
    /// The caller sets this flag to stop the server.
    pub stop: Arc<AtomicBool>,
}

/// When answers are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Without any delay.
    #[default]
    AtOnce,
    /// After the recorded delay.
    AsRecorded,
}

/// When the server stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// When the caller sets the stop flag.
    #[default]
    Stopped,
    /// After the last recorded answer, or after a request that the player refused because it differs: every later one would too.
    Played,
}

/// An event that the server reports.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// The server listens at this address.
    Listening(SocketAddr),
    /// The player handled a request.
    Played(Played),
    /// The server refused a request.
    Rejected {
        /// The HTTP status of the refusal.
        status: u16,
        /// The reason.
        message: String,
    },
    /// The client disconnected in the middle of an answer.
    Cut {
        /// The number of the request.
        request: u64,
    },
}

/// The counts of one playback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaybackSummary {
    /// How many answers the tape has.
    pub answers: usize,
    /// How many of them were sent.
    pub given: usize,
    /// How many requests arrived.
    pub requests: u64,
    /// How many requests differed from the recorded ones.
    pub drifted: u64,
    /// How many requests were not part of the recorded conversation.
    pub side_requests: u64,
    /// How many distinct differences were found.
    pub differences: u64,
    /// The full report as a JSON object.
    pub json: String,
}

/// State that all requests share.
#[derive(Clone)]
pub(crate) struct Shared {
    player: Arc<Mutex<CassettePlayer>>,
    pub pace: Pace,
    pub report: mpsc::UnboundedSender<ServerEvent>,
    busy: Arc<AtomicUsize>,
}

/// Marks an answer in progress for as long as it lives.
pub(crate) struct Busy {
    count: Arc<AtomicUsize>,
    _in_flight: InFlight,
}

/// The interval between checks of the stop condition.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Serves a tape on this machine and reports every event. Returns when the server stops.
pub fn serve(tape: Tape, options: &Options, report: &mut dyn FnMut(ServerEvent)) -> io::Result<PlaybackSummary> {
    // One thread is enough for one agent, and keeps requests in the order of their arrival.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let player = Arc::new(Mutex::new(CassettePlayer::new(tape, options.matching)));
    let served = runtime.block_on(run(Arc::clone(&player), options, report));
    runtime.shutdown_background();
    served?;
    Ok(summary(&lock(&player)))
}

async fn run(
    player: Arc<Mutex<CassettePlayer>>,
    options: &Options,
    report: &mut dyn FnMut(ServerEvent),
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    report(ServerEvent::Listening(listener.local_addr()?));
    let (sender, events) = mpsc::unbounded_channel();
    let shared = Shared { player, pace: options.pace, report: sender, busy: Arc::default() };
    let router = Router::new().fallback(answer::answer).with_state(shared.clone());
    let mut check = || {
        let is_over = options.until == Until::Played && is_over(&lock(&shared.player));
        let is_busy = shared.busy.load(Ordering::Relaxed) > 0;
        match (options.stop.load(Ordering::Relaxed), is_over) {
            (true, _) => KeepServing::No,
            (false, true) if is_busy => KeepServing::UntilAnswered,
            (false, true) => KeepServing::No,
            (false, false) => KeepServing::Yes,
        }
    };
    listen::run(listener, router, Timeouts::AGENT, Checks::Every(CHECK_INTERVAL), events, report, &mut check).await
}

/// Whether the agent can get no further answer.
fn is_over(player: &CassettePlayer) -> bool {
    player.is_at_end() || player.refused() > 0
}

impl Shared {
    /// The player, locked for one request at a time.
    pub fn player(&self) -> MutexGuard<'_, CassettePlayer> {
        lock(&self.player)
    }

    pub fn busy(&self, load: &ConnectionLoad) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy { count: Arc::clone(&self.busy), _in_flight: load.begin_request() }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Locks the player. A panic leaves it valid: it changes only between two answers.
fn lock(player: &Mutex<CassettePlayer>) -> MutexGuard<'_, CassettePlayer> {
    player.lock().unwrap_or_else(PoisonError::into_inner)
}

fn summary(player: &CassettePlayer) -> PlaybackSummary {
    PlaybackSummary {
        answers: player.tape().answers().len(),
        given: player.given(),
        requests: player.requests(),
        drifted: player.drifted(),
        side_requests: player.side_requests(),
        differences: player.differences(),
        json: player.report(),
    }
}
