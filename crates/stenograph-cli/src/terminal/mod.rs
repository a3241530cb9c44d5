//! Draws conversations on a terminal: styled lines that fit its width. `show`, `tail` and `replay` share it. What is drawn comes from
//! [`stenograph::render::EventView`]; every text passes through [`harmless`](stenograph::render::harmless) before it becomes a [`StyledText`].

mod drawer;
mod header;
mod highlight;
mod markdown;
mod pager;
mod painter;
mod screen;
mod styled;
mod wrap;

pub use drawer::{DrawForm, Drawer, PlaceTracker, Visibility};
pub use header::Header;
pub use pager::Pager;
pub use painter::{DrawnEvent, Folding, Painter, PlaceKind};
pub use screen::{Screen, ScreenStream, SignalRequest};
pub use styled::{Line, fitted};
pub use wrap::wrapped_text;

use std::io::IsTerminal as _;
use std::path::Path;

use crate::output::{Colour, harmless_line};
use crate::table;

/// The width of prose that goes to no terminal.
const USUAL_WIDTH: usize = 80;

/// The widest line of prose: longer lines are hard to read.
const PROSE_WIDTH_MAX: usize = 110;

/// The width of the terminal, or the usual one.
pub fn width() -> usize {
    let width = table::screen_width();
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let width = if width == usize::MAX { stated.unwrap_or(USUAL_WIDTH) } else { width };
    width.max(20)
}

/// The width of the terminal that messages go to; `None` if they go elsewhere.
pub fn message_width() -> Option<usize> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    Some(crossterm::terminal::size().map_or(USUAL_WIDTH, |(columns, _)| usize::from(columns)))
        .filter(|width| *width > 0)
}

/// The number of lines of the terminal; `None` if the output goes elsewhere.
pub fn height() -> Option<usize> {
    std::io::stdout().is_terminal().then(|| crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows)))
}

/// A path that fits a number of columns: the home folder is `~`, and the beginning is cut, because the end tells files apart.
/// Without a limit the path stays as it is, for programs.
pub fn fitted_path(path: &Path, width: usize) -> String {
    if width == usize::MAX {
        return harmless_line(&path.display().to_string());
    }
    let below_home = crate::home::from_environment().and_then(|home| path.strip_prefix(home).map(Path::to_owned).ok());
    let text = match below_home {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => Path::new("~").join(rest).display().to_string(),
        None => path.display().to_string(),
    };
    styled::fitted_end(&harmless_line(&text), width)
}

/// A path at the beginning of a message, before a colon: it fits the terminal that messages go to.
pub fn fitted_in_message(path: &str) -> String {
    fitted_path(Path::new(path), message_width().map_or(usize::MAX, |width| width.saturating_sub(1)))
}

/// How conversations are drawn, for commands that draw them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DrawArgs {
    /// Also show settings, token counts and text that the agent injects
    #[arg(long)]
    all: bool,
    /// Show calls, results and thinking in full instead of folded
    #[arg(long)]
    full: bool,
}

impl DrawArgs {
    pub fn drawer(&self, colour: Colour) -> Drawer {
        Drawer::new(colour, width(), self.folding(), self.all)
    }

    pub fn folding(&self) -> Folding {
        if self.full { Folding::Whole } else { Folding::Folded }
    }

    /// Whether bookkeeping and injected text are drawn.
    pub fn all(&self) -> bool {
        self.all
    }
}
