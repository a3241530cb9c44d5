//! Changes as server-sent events: `index` when the index has changed, `grown` when the followed conversation has. A page then asks
//! for what it shows. A thread waits for the system's reports about the followed files; without changes it does nothing.

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;
use futures_core::Stream;
use stenograph_store::discover::Stat;
use stenograph_store::follow::ChangeSignal;
use stenograph_store::session_events::SessionEvents;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

use super::ViewerNews;
use super::address::Params;
use super::respond::{SERVER_SENT_EVENTS, problem_json, respond};
use super::state::Viewer;

/// How long a stream may be silent before a comment shows that it is still open.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How long to wait for the system's report before looking at the files: some file systems report nothing.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The pause after a change: an agent writes many records at a time.
const PAUSE: Duration = Duration::from_millis(80);

/// A body whose pieces another thread or task sends. It ends when the client is gone, and `kept` ends with it.
pub struct Chunks<T, G = ()> {
    pieces: mpsc::Receiver<T>,
    _kept: G,
}

impl<T> Chunks<T> {
    pub fn new(pieces: mpsc::Receiver<T>) -> Chunks<T> {
        Chunks { pieces, _kept: () }
    }
}

impl<T, G: Unpin> Stream for Chunks<T, G> {
    type Item = Result<T, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.pieces.poll_recv(context).map(|piece| piece.map(Ok))
    }
}

/// A stream of changes; of one conversation too, if the parameters name one.
pub fn stream<G: Send + Unpin + 'static>(viewer: &Arc<Viewer>, params: &Params, kept: G) -> Response {
    let (sender, changes) = mpsc::channel(16);
    if let Some(name) = params.value("session") {
        let files = viewer.session(name).ok().and_then(|named| {
            SessionEvents::of(&named.session, &named.sources, params.value("agent")).map(|events| events.files())
        });
        let Some(files) = files else {
            return problem_json(StatusCode::NOT_FOUND, "no session has that name", None);
        };
        let grown = sender.clone();
        std::thread::spawn(move || follow(&files, &grown));
    }
    tokio::spawn(report(viewer.news.subscribe(), sender));
    respond(StatusCode::OK, Body::from_stream(Chunks { pieces: changes, _kept: kept }), SERVER_SENT_EVENTS)
}

/// Passes on what the program reports.
async fn report(mut news: tokio::sync::broadcast::Receiver<ViewerNews>, sender: mpsc::Sender<String>) {
    // Tells the page at once that the stream works.
    let mut text = "retry: 2000\nevent: open\ndata: {}\n\n".to_owned();
    loop {
        if sender.send(text).await.is_err() {
            return;
        }
        text = tokio::select! {
            () = sender.closed() => return,
            news = news.recv() => match news {
                Ok(ViewerNews::Indexed) | Err(RecvError::Lagged(_)) => "event: index\ndata: {}\n\n".to_owned(),
                Err(RecvError::Closed) => return,
            },
            () = tokio::time::sleep(PING_EVERY) => ": still here\n\n".to_owned(),
        };
    }
}

/// Reports that the files have changed, until nobody listens.
fn follow(files: &[PathBuf], sender: &mpsc::Sender<String>) {
    let signal = ChangeSignal::over(files);
    let stamps = || -> Vec<Option<(u64, i64)>> {
        let stamp = |path: &PathBuf| Stat::of(path).ok().map(|stat| (stat.size, stat.modified_ns));
        files.iter().map(stamp).collect()
    };
    let mut known = stamps();
    while !sender.is_closed() {
        signal.wait(LOOK_EVERY);
        let now = stamps();
        if now != known {
            known = now;
            // If the page is slow, it has a report to read already.
            let _ = sender.try_send("event: grown\ndata: {}\n\n".to_owned());
            std::thread::sleep(PAUSE);
        }
    }
}
