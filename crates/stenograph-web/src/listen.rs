//! Runs a server and accepts a limited number of connections; later ones wait for a free place. A connection that sends no
//! request, or stops in the middle of a request head, loses its place.

use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, Interval, Sleep, sleep};

/// The limit of open connections. An agent has a few; a thousand are a mistake or an attack.
const CONNECTIONS_MAX: usize = 256;

/// How long idle connections may stay open at the end.
const GRACE: Duration = Duration::from_millis(500);

/// Whether a server continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepServing {
    Yes,
    /// It accepts no request, and ends when the answers in progress are sent.
    UntilAnswered,
    /// It ends now, even in the middle of an answer.
    No,
}

/// When a server checks whether it continues.
#[derive(Debug)]
pub enum Checks {
    /// At every interval.
    Every(Duration),
    /// When this value changes. Until then the server uses no time.
    OnChange(watch::Receiver<bool>),
}

/// The interval of checks while the server ends.
const END_CHECK_INTERVAL: Duration = Duration::from_millis(100);

impl Checks {
    async fn next(&mut self, interval: &mut Option<Interval>, is_ending: bool) {
        match (interval, self) {
            (Some(interval), _) => drop(interval.tick().await),
            (None, Checks::OnChange(changes)) if !is_ending => {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            (None, _) => sleep(END_CHECK_INTERVAL).await,
        }
    }
}

/// Answers requests until `check` ends the server. Passes on what the answers report.
pub async fn run<E>(
    listener: TcpListener,
    router: Router,
    timeouts: Timeouts,
    mut checks: Checks,
    mut events: mpsc::UnboundedReceiver<E>,
    report: &mut dyn FnMut(E),
    check: &mut dyn FnMut() -> KeepServing,
) -> io::Result<()> {
    let (end, mut ends) = watch::channel(());
    let router = router.into_make_service_with_connect_info::<ConnectionLoad>();
    let served = axum::serve(Limited::new(listener, timeouts), router).with_graceful_shutdown(async move {
        let _ = ends.changed().await;
    });
    let mut served = std::pin::pin!(served.into_future());
    let mut interval = match &checks {
        Checks::Every(interval) => Some(tokio::time::interval(*interval)),
        Checks::OnChange(_) => None,
    };
    let mut ending: Option<Instant> = None;
    loop {
        tokio::select! {
            Some(event) = events.recv() => report(event),
            ended = &mut served => { ended?; break }
            () = checks.next(&mut interval, ending.is_some()) => {
                let keep_serving = check();
                if ending.is_none() && keep_serving != KeepServing::Yes {
                    ending = Some(Instant::now());
                    let _ = end.send(());
                }
                if keep_serving == KeepServing::No && ending.is_some_and(|since| since.elapsed() > GRACE) {
                    break;
                }
            }
        }
    }
    while let Ok(event) = events.try_recv() {
        report(event);
    }
    Ok(())
}

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Until the first request head is complete, and until a head that has begun is complete.
    pub head: Duration,
    /// Between two requests: tools may run long before the agent sends their results.
    pub idle: Duration,
}

impl Timeouts {
    /// For agents. A client on this machine sends a head at once; clients that do not must not keep others waiting for long.
    pub const AGENT: Timeouts = Timeouts { head: Duration::from_secs(5), idle: Duration::from_secs(15 * 60) };

    /// For browsers, which connect again when they need to. Strangers must not hold all connections.
    pub const BROWSER: Timeouts = Timeouts { head: Duration::from_secs(5), idle: Duration::from_secs(10) };
}

/// A listener that limits the number of open connections.
pub struct Limited {
    listener: TcpListener,
    permits: Arc<Semaphore>,
    patience: Timeouts,
}

impl Limited {
    pub fn new(listener: TcpListener, patience: Timeouts) -> Limited {
        Limited { listener, permits: Arc::new(Semaphore::new(CONNECTIONS_MAX)), patience }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Nobody closes the semaphore; without a permit the connection would be accepted all the same.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Small pieces of a stream should arrive as soon as they are sent.
        let _ = stream.set_nodelay(true);
        let deadline = Box::pin(sleep(self.patience.head));
        let (patience, load) = (self.patience, ConnectionLoad::default());
        (Connection { stream, patience, load, wait: Wait::Head, deadline, _permit: permit }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// How many requests of one connection are in progress.
#[derive(Clone, Default)]
pub struct ConnectionLoad(Arc<AtomicUsize>);

/// A request in progress; dropping it ends the request.
pub struct InFlight(ConnectionLoad);

impl ConnectionLoad {
    /// Counts a request whose head is complete. Its body has limits of its own.
    pub fn begin_request(&self) -> InFlight {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    fn is_busy(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connected<IncomingStream<'_, Limited>> for ConnectionLoad {
    fn connect_info(stream: IncomingStream<'_, Limited>) -> ConnectionLoad {
        stream.io().load.clone()
    }
}

/// What the server waits for on a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The first request head, or the rest of one.
    Head,
    /// Another request.
    Next,
    /// Nothing: the client waits for its answer.
    Nothing,
}

/// A connection and its permit.
pub struct Connection {
    stream: TcpStream,
    patience: Timeouts,
    load: ConnectionLoad,
    wait: Wait,
    deadline: Pin<Box<Sleep>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Starts to wait for something else, with a new deadline.
    fn wait_for(&mut self, wait: Wait) {
        if self.wait == wait {
            return;
        }
        self.wait = wait;
        let patience = match wait {
            Wait::Head => self.patience.head,
            Wait::Next => self.patience.idle,
            Wait::Nothing => return,
        };
        self.deadline.as_mut().reset(Instant::now() + patience);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.load.is_busy() {
            self.wait_for(Wait::Nothing);
        } else if self.wait == Wait::Nothing {
            self.wait_for(Wait::Next);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.wait == Wait::Next && buffer.filled().len() > before {
            self.wait_for(Wait::Head);
        }
        // The deadline also ends a client that sends a byte now and then.
        if self.wait != Wait::Nothing && self.deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::Write;
    use std::net::Ipv4Addr;

    use super::*;

    /// Long enough that a busy machine does not make a client look slow.
    const SHORT: Duration = Duration::from_millis(500);
    const LONG: Duration = Duration::from_secs(600);

    /// A client and the server's side of its connection.
    async fn pair(patience: Timeouts) -> (std::net::TcpStream, Connection) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, _) = Limited::new(listener, patience).accept().await;
        (client, connection)
    }

    /// Reads once from the connection.
    async fn read_once(connection: &mut Connection) -> Result<String, io::ErrorKind> {
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = poll_fn(|context| Pin::new(&mut *connection).poll_read(context, &mut buffer)).await;
        read.map_err(|error| error.kind())?;
        Ok(String::from_utf8(buffer.filled().to_vec()).unwrap())
    }

    fn block_on(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn a_client_that_sends_nothing_or_half_a_head_loses_its_connection() {
        block_on(async {
            let (_silent, mut connection) = pair(Timeouts { head: SHORT, idle: LONG }).await;
            assert_eq!(read_once(&mut connection).await, Err(io::ErrorKind::TimedOut));
            let (mut slow, mut connection) = pair(Timeouts { head: SHORT, idle: LONG }).await;
            slow.write_all(b"POST /v1/mess").unwrap();
            assert_eq!(read_once(&mut connection).await, Ok("POST /v1/mess".to_owned()));
            assert_eq!(read_once(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn a_client_that_waits_for_its_answer_keeps_its_connection() {
        block_on(async {
            let (mut client, mut connection) = pair(Timeouts { head: SHORT, idle: SHORT }).await;
            let in_flight = connection.load.begin_request();
            let late = async {
                sleep(SHORT * 4).await;
                client.write_all(b"well?").unwrap();
            };
            assert_eq!(tokio::join!(read_once(&mut connection), late).0, Ok("well?".to_owned()));
            // Once the answer is sent, the wait for the next request is limited.
            drop(in_flight);
            assert_eq!(read_once(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn the_head_of_a_later_request_has_its_own_time() {
        block_on(async {
            let (mut client, mut connection) = pair(Timeouts { head: SHORT, idle: LONG }).await;
            let in_flight = connection.load.begin_request();
            client.write_all(b"one").unwrap();
            assert_eq!(read_once(&mut connection).await, Ok("one".to_owned()));
            drop(in_flight);
            client.write_all(b"POST").unwrap();
            assert_eq!(read_once(&mut connection).await, Ok("POST".to_owned()));
            assert_eq!(read_once(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }
}
