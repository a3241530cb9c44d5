//! Where the parts of the finder are on a screen of a given size.

/// The sizes of the list and of the preview. The query is in the first line and the help in the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PickLayout {
    pub columns: usize,
    pub lines: usize,
    pub preview: PreviewPlace,
}

/// Where the preview is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PreviewPlace {
    /// The screen is too small for it.
    #[default]
    None,
    /// Below the list, which has this many lines.
    Below(usize),
    /// At the right of the list, which has this many columns.
    Right(usize),
}

/// From this width on, the preview is at the right.
const WIDE: usize = 120;

/// The smallest screen with a preview.
const PREVIEW_LINES_MIN: usize = 15;
const PREVIEW_COLUMNS_MIN: usize = 40;

/// The lines for the query and the help.
const MARGIN: usize = 2;

impl PickLayout {
    pub fn of(columns: usize, lines: usize) -> PickLayout {
        let preview = if columns < PREVIEW_COLUMNS_MIN || lines < PREVIEW_LINES_MIN {
            PreviewPlace::None
        } else if columns >= WIDE {
            PreviewPlace::Right(columns * 3 / 5)
        } else {
            PreviewPlace::Below((lines - MARGIN) * 9 / 20)
        };
        PickLayout { columns, lines, preview }
    }

    /// The lines between the query and the help.
    pub fn body_lines(self) -> usize {
        self.lines.saturating_sub(MARGIN)
    }

    pub fn list_lines(self) -> usize {
        match self.preview {
            PreviewPlace::Below(lines) => lines,
            PreviewPlace::None | PreviewPlace::Right(_) => self.body_lines(),
        }
    }

    pub fn list_columns(self) -> usize {
        match self.preview {
            PreviewPlace::Right(columns) => columns,
            PreviewPlace::None | PreviewPlace::Below(_) => self.columns,
        }
    }

    pub fn preview_lines(self) -> usize {
        match self.preview {
            PreviewPlace::None => 0,
            // A rule is between them.
            PreviewPlace::Below(lines) => self.body_lines().saturating_sub(lines + 1),
            PreviewPlace::Right(_) => self.body_lines(),
        }
    }

    /// The columns of the preview; `None` without a preview.
    pub fn preview_width(self) -> Option<usize> {
        match self.preview {
            PreviewPlace::None => None,
            PreviewPlace::Below(_) => Some(self.columns),
            PreviewPlace::Right(columns) => Some(self.columns.saturating_sub(columns + 2)),
        }
    }
}
