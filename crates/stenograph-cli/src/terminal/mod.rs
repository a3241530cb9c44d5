//! Draws conversations on a terminal: styled lines that fit its width. `show`, `tail` and `replay` share it. What is drawn comes from
//! [`stenograph::render::EventView`]; every text passes through [`harmless`](stenograph::render::harmless) before it becomes a [`Span`].

mod drawer;
mod header;
mod highlight;
mod markdown;
mod pager;
mod styled;

pub use drawer::{Drawer, Folding};
pub use header::Header;
pub use pager::Pager;
pub use styled::{Line, fitted, text_width};

use crate::output::Colour;

/// The width for output that goes to no terminal.
pub const USUAL_WIDTH: usize = 80;

/// The widest line of prose: longer lines are hard to read.
const PROSE_WIDTH_MAX: usize = 110;

/// The width of the terminal, or the usual one.
pub fn width() -> usize {
    let stated = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let seen = crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    stated.or(seen).filter(|width| *width >= 20).unwrap_or(USUAL_WIDTH)
}

/// How conversations are drawn, for commands that draw them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DrawArgs {
    /// Show settings, counts and text that the agent adds as well
    #[arg(long)]
    all: bool,
    /// Show calls, results and thinking whole instead of folded
    #[arg(long)]
    full: bool,
}

impl DrawArgs {
    pub fn drawer(&self, colour: Colour) -> Drawer {
        let folding = if self.full { Folding::Whole } else { Folding::Folded };
        Drawer::new(colour, width(), folding, self.all)
    }
}
