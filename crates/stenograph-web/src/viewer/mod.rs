//! The viewer: the sessions of a store in a browser, and for programs. It changes nothing but marks. `admit.rs` decides who is
//! answered, `routes.rs` lists what can be asked, `pages/` and `api/` answer it, `live.rs` reports changes.

mod address;
mod admit;
mod answer;
mod api;
mod assets;
mod comparison;
mod html;
mod live;
mod marks;
mod openapi;
mod pages;
mod redaction;
mod respond;
mod routes;
mod state;
mod token;
mod trouble;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use jiff::tz::TimeZone;
use stenograph::ledger::Prices;
use stenograph::redact::Redactor;
use stenograph_store::discover::Places;
use stenograph_store::index::Store;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};

pub use openapi::openapi;
pub use token::Token;

use crate::listen::{self, Checks, KeepServing, Timeouts};
use answer::Server;
use redaction::PageRedaction;
use state::Viewer;
use token::LoginCode;

/// How to serve the viewer.
#[derive(Clone, Debug)]
pub struct ViewerOptions {
    /// The address to listen at; port 0 is any free port.
    pub listen: SocketAddr,
    /// The store whose sessions are shown.
    pub store: Store,
    /// The prices of models.
    pub prices: Prices,
    /// The time zone of all times.
    pub zone: TimeZone,
    /// Show only sessions below this folder.
    pub root: Option<PathBuf>,
    /// Where agents write.
    pub places: Places,
    /// The secret that every request must carry.
    pub token: Token,
    /// Masks the secrets of everything that is shown.
    pub redactor: Option<Redactor>,
    /// What the caller reports to open pages.
    pub news: NewsChannel,
    /// The caller stops the server with it.
    pub stop: StopSignal,
}

/// Stops a server. Until then, the server does not look at it.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Sender<bool>);

impl Default for StopSignal {
    fn default() -> StopSignal {
        StopSignal(watch::channel(false).0)
    }
}

impl StopSignal {
    /// Stops the server.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Something that open pages should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewerNews {
    /// The index has new sessions or events.
    Indexed,
}

/// Reports news to open pages.
#[derive(Clone, Debug)]
pub struct NewsChannel(broadcast::Sender<ViewerNews>);

impl Default for NewsChannel {
    fn default() -> NewsChannel {
        // A page that missed some news looks at everything anyway.
        NewsChannel(broadcast::channel(4).0)
    }
}

impl NewsChannel {
    /// Reports news. If no page is open, nobody needs it.
    pub fn report(&self, news: ViewerNews) {
        let _ = self.0.send(news);
    }
}

/// An event that the viewer reports.
#[derive(Clone, Debug)]
pub enum ViewerEvent {
    /// The server listens at this address. The link opens it in one browser, once.
    Listening {
        /// The address.
        address: SocketAddr,
        /// The link.
        link: String,
    },
    /// A browser used the link; this is the next one.
    LinkUsed {
        /// The link.
        link: String,
    },
    /// The server refused a request.
    Refused {
        /// The HTTP status of the refusal.
        status: u16,
        /// The reason.
        message: String,
    },
}

/// How many requests read files at the same time. A browser sends a few; each may take some memory.
const READERS_MAX: usize = 8;

/// Serves the viewer and reports events. Returns when the caller stops it.
pub fn view(options: &ViewerOptions, report: &mut dyn FnMut(ViewerEvent)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(READERS_MAX)
        .thread_keep_alive(Duration::from_secs(1))
        .build()?;
    let served = runtime.block_on(run(options, report));
    runtime.shutdown_background();
    served
}

async fn run(options: &ViewerOptions, report: &mut dyn FnMut(ViewerEvent)) -> io::Result<()> {
    let listener = TcpListener::bind(options.listen).await?;
    let address = listener.local_addr()?;
    let (sender, events) = mpsc::unbounded_channel();
    let ViewerOptions { store, prices, zone, root, places, news, redactor, .. } = options.clone();
    let viewer = Viewer::new(store, prices, zone, root, places, news.0, redactor.map(PageRedaction::new));
    if viewer.is_redacted() {
        // Searches all sources, so that the first page does not wait for it. A problem is one of that page too.
        let _ = viewer.listing();
    }
    let server = Server::new(viewer, address, options.token.clone(), LoginCode::random()?, sender);
    report(ViewerEvent::Listening { address, link: server.link() });
    let router = Router::new().fallback(answer::answer).with_state(server);
    let mut stop = options.stop.0.subscribe();
    // The caller may have stopped the server before it began.
    stop.mark_changed();
    let mut check = || if *options.stop.0.borrow() { KeepServing::No } else { KeepServing::Yes };
    listen::run(listener, router, Timeouts::BROWSER, Checks::OnChange(stop), events, report, &mut check).await
}
