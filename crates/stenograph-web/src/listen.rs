//! Accepts connections, so many at once and no more: whoever comes later waits until somebody goes. Who holds a place and asks nothing,
//! or begins to ask and does not go on, loses it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// How many connections are open at once. An agent has a few; a thousand of them are a mistake, or mischief.
const CONNECTIONS_MAX: usize = 256;

/// How long a connection may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until the head of its first request is there, or of one that has begun.
    pub head: Duration,
    /// Between two requests: tools may run long before their results are sent.
    pub idle: Duration,
}

impl Patience {
    /// What clients get.
    pub const USUAL: Patience = Patience { head: Duration::from_secs(30), idle: Duration::from_secs(15 * 60) };
}

/// A listener that holds the number of its connections.
pub struct Limited {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Patience,
}

impl Limited {
    /// Holds the connections of this one.
    pub fn new(listener: TcpListener, patience: Patience) -> Limited {
        Limited { listener, places: Arc::new(Semaphore::new(CONNECTIONS_MAX)), patience }
    }
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Nobody closes the semaphore; without a place the connection would be open all the same.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Small pieces of a stream are to be seen when they are sent.
        let _ = stream.set_nodelay(true);
        let deadline = Box::pin(sleep(self.patience.head));
        let (patience, line) = (self.patience, ConnectionLoad::default());
        (Connection { stream, patience, line, wait: Wait::Head, deadline, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// How many requests of one connection are being answered.
#[derive(Clone, Default)]
pub struct ConnectionLoad(Arc<AtomicUsize>);

/// A request that is being answered.
pub struct InFlight(ConnectionLoad);

impl ConnectionLoad {
    /// A request has come whole, up to its body, which has limits of its own.
    pub fn take(&self) -> InFlight {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    fn is_taken(&self) -> bool {
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
        stream.io().line.clone()
    }
}

/// What a connection is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// The rest of a head, or the first one.
    Head,
    /// Another request.
    Next,
    /// Nothing: it waits for its answer.
    Nothing,
}

/// A connection, and its place among those that may be open.
pub struct Connection {
    stream: TcpStream,
    patience: Patience,
    line: ConnectionLoad,
    wait: Wait,
    deadline: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Waits for something else from now on.
    fn turn(&mut self, wait: Wait) {
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
        if self.line.is_taken() {
            self.turn(Wait::Nothing);
        } else if self.wait == Wait::Nothing {
            self.turn(Wait::Next);
        }
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.wait == Wait::Next && buffer.filled().len() > before {
            self.turn(Wait::Head);
        }
        // Whoever sends a byte now and then is not read on and on either.
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

    /// Long enough that a busy machine is not taken for a slow client.
    const SHORT: Duration = Duration::from_millis(500);
    const LONG: Duration = Duration::from_secs(600);

    /// A client, and its connection as the server has it.
    async fn pair(patience: Patience) -> (std::net::TcpStream, Connection) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (connection, _) = Limited::new(listener, patience).accept().await;
        (client, connection)
    }

    /// What comes next.
    async fn heard(connection: &mut Connection) -> Result<String, io::ErrorKind> {
        let mut bytes = [0; 64];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = poll_fn(|context| Pin::new(&mut *connection).poll_read(context, &mut buffer)).await;
        read.map_err(|error| error.kind())?;
        Ok(String::from_utf8(buffer.filled().to_vec()).unwrap())
    }

    fn wait(test: impl Future<Output = ()>) {
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap().block_on(test);
    }

    #[test]
    fn who_says_nothing_or_half_of_a_head_loses_the_place() {
        wait(async {
            let (_silent, mut connection) = pair(Patience { head: SHORT, idle: LONG }).await;
            assert_eq!(heard(&mut connection).await, Err(io::ErrorKind::TimedOut));
            let (mut slow, mut connection) = pair(Patience { head: SHORT, idle: LONG }).await;
            slow.write_all(b"POST /v1/mess").unwrap();
            assert_eq!(heard(&mut connection).await, Ok("POST /v1/mess".to_owned()));
            assert_eq!(heard(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn who_waits_for_an_answer_is_waited_for() {
        wait(async {
            let (mut client, mut connection) = pair(Patience { head: SHORT, idle: SHORT }).await;
            let taken = connection.line.take();
            let late = async {
                sleep(SHORT * 4).await;
                client.write_all(b"well?").unwrap();
            };
            assert_eq!(tokio::join!(heard(&mut connection), late).0, Ok("well?".to_owned()));
            // Once the answer is there, the next question is not waited for without an end.
            drop(taken);
            assert_eq!(heard(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }

    #[test]
    fn the_head_of_a_later_request_has_its_own_time() {
        wait(async {
            let (mut client, mut connection) = pair(Patience { head: SHORT, idle: LONG }).await;
            let taken = connection.line.take();
            client.write_all(b"one").unwrap();
            assert_eq!(heard(&mut connection).await, Ok("one".to_owned()));
            drop(taken);
            client.write_all(b"POST").unwrap();
            assert_eq!(heard(&mut connection).await, Ok("POST".to_owned()));
            assert_eq!(heard(&mut connection).await, Err(io::ErrorKind::TimedOut));
        });
    }
}
