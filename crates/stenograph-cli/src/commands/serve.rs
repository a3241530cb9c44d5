//! `steno serve`: shows all sessions in a browser. The server is in another crate; this file starts it, prints its link, and keeps
//! the index up to date while it runs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stenograph::json::Draft;
use stenograph_store::Problem;
use stenograph_store::discover::Places;
use stenograph_store::index::{
    Archiving, IndexPlan, IndexProgress, IndexReport, IndexScope, RunObserver, Store, run as update,
};
use stenograph_web::{NewsChannel, StopSignal, Token, ViewerEvent, ViewerNews, ViewerOptions};

use crate::error::{CommandError, ExitStatus};
use crate::index_loop::{FirstRun, IndexLoop, IndexRunner};
use crate::output::{Output, OutputForm, harmless_line};
use crate::progress::IndexProgressBar;
use crate::redaction::{RedactArgs, Redaction};
use crate::store::{StoreArgs, on_interrupt_wake};
use crate::{clock, prices};

/// Show all sessions in a browser
///
/// Starts a local server and prints a link for the browser. The link works once; then the terminal shows the next one. Other programs on this
/// machine, other users and web pages cannot read anything without it. Only the marks of sessions can be changed in the browser, and nothing is sent elsewhere.
/// While the server runs, it indexes what agents write.
///
/// Programs use the same server: --json prints the token for the header Authorization, and /api/openapi.json describes the interface.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  steno serve --open                 open the browser at once
  steno serve --port 8100
  steno serve --redact               mask secrets, to share the screen
  steno serve --root /mnt/backup/home
  steno serve --listen 192.168.1.7   for other machines, without encryption
  ssh -L 8100:127.0.0.1:8100 HOST steno serve --port 8100

Exit codes: 0 stopped, 2 error")]
pub struct Options {
    /// Port; 0 chooses a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Open the link in the browser
    #[arg(long)]
    open: bool,
    /// Listen at this address instead of this machine only
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    listen: IpAddr,
    /// Do not index what agents write while the server runs
    #[arg(long)]
    no_index: bool,
    #[command(flatten)]
    place: StoreArgs,
    #[command(flatten)]
    redact: RedactArgs,
    /// Print JSON objects: the address, the token and each link
    #[arg(long)]
    json: bool,
}

pub fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    crate::memory::bound_heaps();
    let store = options.place.store()?;
    let places = options.place.places(&store)?;
    let stop = Arc::new(AtomicBool::new(false));
    let server_stop = StopSignal::default();
    let wake = server_stop.clone();
    on_interrupt_wake(&stop, move || wake.stop());
    if matches!(store.catalogue(), Err(error) if error.problem == Problem::IndexMissing) {
        output.say("no index yet: indexing all sessions first");
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        index(&store, &places, IndexScope::All, Archiving::Yes, cores, &mut IndexProgressBar::new("indexing", &stop))?;
        if stop.load(Ordering::Relaxed) {
            return Ok(ExitStatus::Done);
        }
    }
    store.catalogue()?;
    let cannot = |error: std::io::Error| CommandError::new(format!("no random numbers: {error}"));
    let viewer = ViewerOptions {
        listen: SocketAddr::new(options.listen, options.port),
        store: store.clone(),
        prices: prices::load()?,
        zone: clock::zone(),
        root: options.place.root(),
        places: places.clone(),
        token: Token::random().map_err(cannot)?,
        redactor: options
            .redact
            .is_given()
            .then(|| Redaction::new(&options.place))
            .transpose()?
            .map(Redaction::into_redactor),
        news: NewsChannel::default(),
        stop: server_stop,
    };
    if !options.no_index {
        let (stop, news) = (Arc::clone(&stop), viewer.news.clone());
        std::thread::spawn(move || keep_current(&store, &places, &stop, &news));
    }
    if viewer.redactor.is_some() {
        output.say("searching all sessions for secrets first");
    }
    let mut printer = ServePrinter { options, token: viewer.token.clone(), output, failed: None };
    let served = stenograph_web::view(&viewer, &mut |event| printer.print(&event));
    // The indexing thread stops too.
    stop.store(true, Ordering::Relaxed);
    let failed = printer.failed.take();
    served.map_err(|error| {
        CommandError::new(format!("cannot listen at {}: {error}", viewer.listen))
            .hint("use --port 0 to choose a free port")
    })?;
    failed.map_or(Ok(ExitStatus::Done), Err)
}

/// The memory for indexing beside the server: enough for a record of the maximum size.
const MEMORY: usize = 128 << 20;

fn index(
    store: &Store,
    places: &Places,
    scope: IndexScope,
    archiving: Archiving,
    threads: usize,
    observer: &mut dyn RunObserver,
) -> Result<IndexReport, stenograph_store::Error> {
    let plan = IndexPlan { places, scope, archiving, memory: MEMORY, threads, now: clock::nanoseconds() };
    update(store, &plan, observer)
}

/// Ends an index run when the server stops.
struct UntilStopped<'s>(&'s AtomicBool);

impl RunObserver for UntilStopped<'_> {
    fn progress(&mut self, _progress: &IndexProgress) {}

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Indexes what agents write and reports it to open pages, until the server stops.
fn keep_current(store: &Store, places: &Places, stop: &AtomicBool, news: &NewsChannel) {
    const SWEEP: Duration = Duration::from_secs(5 * 60);
    const ARCHIVE: Duration = Duration::from_secs(30);
    // The process ends with the server, so this thread need not look whether it is stopped.
    let keeping = IndexLoop {
        places,
        archiving: Archiving::Yes,
        archive_every: ARCHIVE,
        sweep_every: SWEEP,
        stop_check_every: SWEEP,
        stop,
    };
    // Nothing of it fails: the runner reports no error.
    let _ = keeping.run(FirstRun::Wanted, &mut Quietly { store, places, stop, news });
}

/// Indexes beside the server. The terminal belongs to the server, and a run that fails is tried again.
struct Quietly<'q> {
    store: &'q Store,
    places: &'q Places,
    stop: &'q AtomicBool,
    news: &'q NewsChannel,
}

impl IndexRunner for Quietly<'_> {
    fn run(&mut self, scope: IndexScope, archiving: Archiving) -> Result<IndexReport, stenograph_store::Error> {
        index(self.store, self.places, scope, archiving, 1, &mut UntilStopped(self.stop))
    }

    fn changed(&mut self, _report: &IndexReport) -> Result<(), CommandError> {
        self.news.report(ViewerNews::Indexed);
        Ok(())
    }

    fn failed(&mut self, _error: &CommandError) {}

    fn recovered(&mut self) {}

    fn unreliable(&mut self, _reason: &str, _every: Duration) {}
}

/// Prints what the server reports.
struct ServePrinter<'a, 'o> {
    options: &'a Options,
    token: Token,
    output: &'a mut Output<'o>,
    failed: Option<CommandError>,
}

impl ServePrinter<'_, '_> {
    fn print(&mut self, event: &ViewerEvent) {
        let printed = match event {
            ViewerEvent::Listening { address, link } => self.listening(*address, link),
            ViewerEvent::LinkUsed { link } => self.next_link(link),
            ViewerEvent::Refused { status, message } => {
                self.output.say(&format!("refused a request with {status}: {}", harmless_line(message)));
                Ok(())
            }
        };
        // Nobody may read the output any more; the browser still gets its pages.
        self.failed = self.failed.take().or(printed.err());
    }

    fn listening(&mut self, address: SocketAddr, link: &str) -> Result<(), CommandError> {
        match OutputForm::of(self.options.json) {
            OutputForm::Json => {
                let mut draft = Draft::new();
                draft.set_str("listening", &format!("http://{address}"));
                draft.set_str("token", self.token.reveal());
                draft.set_str("link", link);
                self.output.line(&draft.render(None))?;
            }
            OutputForm::People => {
                self.output.line(link)?;
                self.output.say("open the link in a browser; stop with Ctrl-C");
                if !address.ip().is_loopback() {
                    self.output.say("note: other machines can reach this server, and the connection is not encrypted");
                    self.output.say(&format!("note: the token for the sign-in page is {}", self.token.reveal()));
                }
            }
        }
        self.output.flush()?;
        if self.options.open && !open_browser(link) {
            self.output.say("cannot open a browser: open the link yourself");
        }
        Ok(())
    }

    fn next_link(&mut self, link: &str) -> Result<(), CommandError> {
        match OutputForm::of(self.options.json) {
            OutputForm::Json => {
                let mut draft = Draft::new();
                draft.set_str("link", link);
                self.output.line(&draft.render(None))?;
                self.output.flush()
            }
            OutputForm::People => {
                self.output.say(&format!("a browser signed in; for another one: {link}"));
                Ok(())
            }
        }
    }
}

/// Opens a link in the user's browser; returns whether a program for it was found.
fn open_browser(link: &str) -> bool {
    let programs: &[(&str, &[&str])] = if cfg!(windows) {
        &[("rundll32", &["url.dll,FileProtocolHandler"])]
    } else if cfg!(target_os = "macos") {
        &[("open", &[])]
    } else {
        &[("xdg-open", &[]), ("gio", &["open"])]
    };
    programs.iter().any(|(program, arguments)| {
        let mut command = Command::new(program);
        command.args(*arguments).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().is_ok()
    })
}
