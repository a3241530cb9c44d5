//! Runs the server: binds, answers until it is told to stop or the tape is played, and gives the account. How a request is
//! answered is in `answer.rs`.

use std::future::IntoFuture;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use stenograph::cassette::{Manner, Played, Player, Tape};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};

use crate::answer;
use crate::listen::{ConnectionLoad, InFlight, Limited, Patience};

/// How a tape is served.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The port to listen on; 0 for one that is free.
    pub port: u16,
    /// What is done with requests that are not the recorded ones.
    pub manner: Manner,
    /// When answers come.
    pub pace: Pace,
    /// How long it goes on.
    pub until: Until,
    /// Set by whoever wants it to end.
    pub stop: Arc<AtomicBool>,
}

/// When answers come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// At once.
    #[default]
    AtOnce,
    /// As long after the question as they were recorded.
    AsRecorded,
}

/// How long a tape is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Until {
    /// Until somebody stops it.
    #[default]
    Stopped,
    /// Until the last answer is given.
    Played,
}

/// What the server reports.
#[derive(Clone, Debug)]
pub enum ServerEvent {
    /// It listens at this address.
    Listening(SocketAddr),
    /// A request was understood.
    Played(Played),
    /// A request was not: the status, and why.
    Rejected {
        /// The status it got.
        status: u16,
        /// What was wrong.
        message: String,
    },
    /// The client went away in the middle of the answer to this request.
    Cut {
        /// Which request.
        request: u64,
    },
}

/// What came of it all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// How many answers the tape has.
    pub answers: usize,
    /// How many of them were given.
    pub given: usize,
    /// How many requests came.
    pub requests: u64,
    /// How many of them were not the recorded ones.
    pub drifted: u64,
    /// How many of them were no part of the recorded conversation.
    pub beside: u64,
    /// How many differences were found, each counted once.
    pub differences: u64,
    /// All of it as a JSON object.
    pub json: String,
}

/// What the requests share.
#[derive(Clone)]
pub(crate) struct Shared {
    player: Arc<Mutex<Player>>,
    pub pace: Pace,
    pub tell: mpsc::UnboundedSender<ServerEvent>,
    busy: Arc<AtomicUsize>,
}

/// That something is being answered, for as long as it is held.
pub(crate) struct Busy {
    count: Arc<AtomicUsize>,
    _taken: InFlight,
}

/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long connections that say nothing may stay when it ends.
const GRACE: Duration = Duration::from_millis(500);

/// Serves a tape on this machine, and tells what happens. Returns when it ends.
pub fn serve(tape: Tape, options: &Options, tell: &mut dyn FnMut(ServerEvent)) -> io::Result<Account> {
    // One thread is enough for one agent, and keeps the order of requests the order in which they came.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let player = Arc::new(Mutex::new(Player::new(tape, options.manner)));
    let served = runtime.block_on(run(Arc::clone(&player), options, tell));
    runtime.shutdown_background();
    served?;
    Ok(account(&hold(&player)))
}

async fn run(player: Arc<Mutex<Player>>, options: &Options, tell: &mut dyn FnMut(ServerEvent)) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).await?;
    tell(ServerEvent::Listening(listener.local_addr()?));
    let (sender, mut happenings) = mpsc::unbounded_channel();
    let (end, mut ends) = watch::channel(());
    let shared = Shared { player, pace: options.pace, tell: sender, busy: Arc::default() };
    let router = Router::new().fallback(answer::answer).with_state(shared.clone());
    let router = router.into_make_service_with_connect_info::<ConnectionLoad>();
    let served = axum::serve(Limited::new(listener, Patience::USUAL), router).with_graceful_shutdown(async move {
        let _ = ends.changed().await;
    });
    let mut served = std::pin::pin!(served.into_future());
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut ending: Option<Instant> = None;
    loop {
        tokio::select! {
            Some(happening) = happenings.recv() => tell(happening),
            ended = &mut served => { ended?; break }
            _ = looks.tick() => {
                let is_stopped = options.stop.load(Ordering::Relaxed);
                let is_played = options.until == Until::Played && hold(&shared.player).is_at_end();
                if ending.is_none() && (is_stopped || is_played) {
                    ending = Some(Instant::now());
                    let _ = end.send(());
                }
                // An answer that is still on its way is waited for, unless somebody wants to stop.
                let is_idle = is_stopped || shared.busy.load(Ordering::Relaxed) == 0;
                if is_idle && ending.is_some_and(|since| since.elapsed() > GRACE) {
                    break;
                }
            }
        }
    }
    while let Ok(happening) = happenings.try_recv() {
        tell(happening);
    }
    Ok(())
}

impl Shared {
    /// The player, for one request at a time.
    pub fn player(&self) -> MutexGuard<'_, Player> {
        hold(&self.player)
    }

    /// That something is being answered.
    pub fn busy(&self, line: &ConnectionLoad) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy { count: Arc::clone(&self.busy), _taken: line.take() }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The player. One that a panic left is still in order: it changes between two answers only.
fn hold(player: &Mutex<Player>) -> MutexGuard<'_, Player> {
    player.lock().unwrap_or_else(PoisonError::into_inner)
}

fn account(player: &Player) -> Account {
    Account {
        answers: player.tape().answers().len(),
        given: player.given(),
        requests: player.requests(),
        drifted: player.drifted(),
        beside: player.beside(),
        differences: player.differences(),
        json: player.report(),
    }
}
