//! Draws the finder. Every text from a transcript passes through [`Line`], which contains no control characters.

use anstyle::{AnsiColor, Color as TextColor, Effects, Style};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier, Style as CellStyle};
use stenograph_store::index::catalogue::IndexedSession;

use super::action::PickAction;
use super::layout::PreviewPlace;
use super::model::{Enter, Loading, Overlay, PickRow, Picker, target_candidates};
use crate::output::{Colour, grouped, harmless_line};
use crate::store::PIN;
use crate::table;
use crate::terminal::{Line, fitted};

/// How to draw.
#[derive(Clone, Copy)]
pub struct PickLook {
    pub colour: Colour,
    /// The current time, in milliseconds since 1970.
    pub now: i64,
}

/// The widest cells of the columns before the title.
const AGE_WIDTH: usize = 4;
const AGENT_WIDTH_MAX: usize = 12;
const PROJECT_WIDTH_MAX: usize = 14;
const COST_WIDTH_MIN: usize = 6;

/// A narrower list shows the age and the title only.
const ALL_COLUMNS_WIDTH: usize = 60;

/// The columns of the pointer and the mark.
const POINTER_WIDTH: usize = 2;

const HELP: &str = "\
enter           show the session
alt-r           print the command that resumes it
alt-y           copy its id to the clipboard, and print it
alt-c           convert it: choose a format; writes a file here
alt-e           export it: choose Markdown, JSON or CSV; writes a file here
alt-d           compare the two sessions marked with tab
alt-R           restore it from the archive, if its file is gone
ctrl-o LETTER   the same actions without alt
tab             mark the session
ctrl-t or /     search the full text of all sessions
up down         select (ctrl-p ctrl-n, page up, page down)
shift-up down   scroll the preview (ctrl-b ctrl-f by pages)
ctrl-u ctrl-w   delete the query, delete a word
esc ctrl-c      quit

words: fuzzy  'exact  ^beginning  end$  !excluded";

pub fn draw(frame: &mut Frame<'_>, picker: &Picker, look: PickLook) {
    let area = frame.area();
    let layout = picker.layout();
    // The screen may have changed since the layout was made; the next event corrects it.
    let lines = layout.lines.min(usize::from(area.height));
    let mut canvas = Canvas { buffer: frame.buffer_mut(), colour: look.colour };
    let cursor = draw_query(&mut canvas, picker);
    let body = lines.saturating_sub(2);
    match picker.overlay() {
        Overlay::Help => {
            for (at, line) in HELP.lines().take(body).enumerate() {
                canvas.line(0, 1 + at, &Line::of(line, Style::new()), layout.columns);
            }
        }
        Overlay::Target { action, typed } => {
            draw_targets(&mut canvas, &target_candidates(*action, typed.text()), layout.columns, body);
        }
        Overlay::None | Overlay::Actions => {
            draw_list(&mut canvas, picker, look.now);
            draw_preview(&mut canvas, picker);
        }
    }
    let target_cursor = (lines > 1).then(|| draw_footer(&mut canvas, picker, lines - 1)).flatten();
    let (column, line) = target_cursor.map_or((cursor, 0), |column| (column, lines.saturating_sub(1)));
    let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    frame.set_cursor_position((number(column).min(area.width.saturating_sub(1)), number(line)));
}

/// The query, and how many sessions match. Returns the column of the cursor.
fn draw_query(canvas: &mut Canvas<'_>, picker: &Picker) -> usize {
    let columns = picker.layout().columns;
    let (matching, all) = picker.counts();
    let more = if picker.loading() == Loading::Newest { "+" } else { "" };
    let state = if picker.is_searching() { "searching " } else { "" };
    let counts = format!("{state}{}/{}{more}", grouped(matching as u64), grouped(all as u64));
    let prompt = if picker.text_query().is_some() && !picker.input().text().starts_with('/') { "text> " } else { "> " };
    let counts_width = if columns >= 40 { table::display_width(&counts) + 2 } else { 0 };
    let room = columns.saturating_sub(counts_width);
    let (mut line, column) = input_line(prompt, picker.input().text(), picker.input().before(), room);
    if picker.input().text().is_empty() {
        let hint = if picker.text_query().is_some() { "words in sessions" } else { "type to search" };
        line.push(hint, Style::new().dimmed());
    }
    canvas.line(0, 0, &line, room);
    if counts_width > 0 {
        canvas.line(room + 2, 0, &Line::of(&counts, Style::new().dimmed()), counts_width);
    }
    column
}

/// An edited line after its prompt, scrolled so that the cursor is visible; and the column of the cursor.
fn input_line(prompt: &str, text: &str, before: &str, room: usize) -> (Line, usize) {
    let mut line = Line::of(prompt, Style::new().bold().fg_color(Some(AnsiColor::Blue.into())));
    let width = table::display_width(prompt);
    let cursor = table::display_width(&harmless_line(before));
    let space = room.saturating_sub(width + 1);
    let mut hidden = 0;
    let mut shown = text;
    while cursor.saturating_sub(hidden) > space {
        let Some(first) = shown.chars().next() else { break };
        hidden += table::display_width(&harmless_line(first.encode_utf8(&mut [0; 4])));
        shown = shown.get(first.len_utf8()..).unwrap_or_default();
    }
    line.push(shown, Style::new());
    (line, width + cursor.saturating_sub(hidden))
}

fn draw_list(canvas: &mut Canvas<'_>, picker: &Picker, now: i64) {
    let layout = picker.layout();
    let columns = layout.list_columns();
    let rows: Vec<(&PickRow, bool, &IndexedSession)> =
        picker.visible().filter_map(|(row, is_selected)| Some((row, is_selected, picker.session(row)?))).collect();
    let widest = |cell: &dyn Fn(&IndexedSession) -> String, most: usize| {
        rows.iter().map(|(_, _, session)| table::display_width(&cell(session))).max().unwrap_or(0).min(most)
    };
    let agent_width = widest(&|session| harmless_line(&session.agent), AGENT_WIDTH_MAX);
    let project_width = widest(&project, PROJECT_WIDTH_MAX);
    let cost_width = widest(&|session| picker.cost(session).unwrap_or_default().to_owned(), 12).max(COST_WIDTH_MIN);
    for (at, (row, is_selected, session)) in rows.iter().enumerate() {
        let is_gone = session.gone > 0 && session.gone == session.sources;
        let faint = Style::new().dimmed();
        let mut line = Line::of(if *is_selected { ">" } else { " " }, accent());
        line.push(if picker.is_marked(session) { "*" } else { " " }, accent());
        let ago = session.ended.map(|ended| table::ago(now - ended)).unwrap_or_default();
        line.push(&right(ago.trim_end_matches(" ago"), AGE_WIDTH), faint);
        if columns >= ALL_COLUMNS_WIDTH {
            line.push(&format!("  {}", left(&harmless_line(&session.agent), agent_width)), faint);
            line.push(&format!("  {}", left(&project(session), project_width)), Style::new());
            line.push(&format!("  {}", right(picker.cost(session).unwrap_or_default(), cost_width)), faint);
        }
        line.push("  ", Style::new());
        if session.marks.pinned {
            line.push(PIN, accent());
        }
        if is_gone {
            line.push("[gone] ", faint);
        }
        match picker.hit(row) {
            Some((hit, more)) => {
                line.append(super::preview::snippet(hit));
                if more > 0 {
                    line.push(&format!(" (+{more})"), faint);
                }
            }
            None => {
                let title = &session.about();
                line.push(&harmless_line(title), if is_gone { faint } else { Style::new() });
            }
        }
        canvas.line(0, 1 + at, &line.fitted(columns), columns);
        if *is_selected {
            canvas.highlight(0, 1 + at, columns);
        }
    }
    if rows.is_empty() {
        let text = if picker.is_searching() { "searching" } else { "no session matches" };
        canvas.line(POINTER_WIDTH, 1, &Line::of(text, Style::new().dimmed()), columns.saturating_sub(POINTER_WIDTH));
    }
}

fn project(session: &IndexedSession) -> String {
    session.project.as_ref().map_or("-".to_owned(), |project| harmless_line(&project.name))
}

fn draw_preview(canvas: &mut Canvas<'_>, picker: &Picker) {
    let layout = picker.layout();
    let Some(width) = layout.preview_width() else { return };
    let faint = Style::new().dimmed();
    let (column, line) = match layout.preview {
        PreviewPlace::None => return,
        PreviewPlace::Below(lines) => {
            canvas.line(0, 1 + lines, &Line::of(&"\u{2500}".repeat(width), faint), width);
            (0, 2 + lines)
        }
        PreviewPlace::Right(columns) => {
            for at in 0..layout.preview_lines() {
                canvas.line(columns, 1 + at, &Line::of("\u{2502}", faint), 1);
            }
            (columns + 2, 1)
        }
    };
    for (at, text) in picker.preview().unwrap_or_default().iter().take(layout.preview_lines()).enumerate() {
        canvas.line(column, line + at, text, width);
    }
}

/// The targets that match what was typed, in columns; enter chooses the first.
fn draw_targets(canvas: &mut Canvas<'_>, candidates: &[String], columns: usize, lines: usize) {
    let width = candidates.iter().map(|name| table::display_width(name)).max().unwrap_or(0) + 2;
    let used = candidates.len().div_ceil((columns / width.max(1)).max(1)).min(lines).max(1);
    for (at, name) in candidates.iter().enumerate() {
        let style = if at == 0 { Style::new().bold() } else { Style::new() };
        let column = at / used * width;
        canvas.line(column, 1 + at % used, &Line::of(name, style), columns.saturating_sub(column));
    }
}

/// The last line: a notice, the actions, or the choice of a target with its cursor.
fn draw_footer(canvas: &mut Canvas<'_>, picker: &Picker, at: usize) -> Option<usize> {
    let columns = picker.layout().columns;
    let (mut cursor, faint) = (None, Style::new().dimmed());
    let line = match (picker.notice(), picker.overlay()) {
        (_, Overlay::Target { action, typed }) => {
            let prompt = format!("{} to: ", action.name());
            let (mut line, column) = input_line(&prompt, typed.text(), typed.before(), columns);
            cursor = Some(column);
            let candidates = target_candidates(*action, typed.text());
            line.push("  enter: ", faint);
            line.push(candidates.first().map_or("no such target", String::as_str), Style::new().bold());
            line.push("  type to narrow, tab to complete, esc back", faint);
            line
        }
        (Some(notice), _) => Line::of(&harmless_line(notice), Style::new().fg_color(Some(AnsiColor::Yellow.into()))),
        (None, Overlay::Actions) => keys("", picker.enter(), &["esc back"]),
        (None, Overlay::Help) => Line::of("any key: back", faint),
        (None, Overlay::None) if columns >= 100 => {
            keys("alt +", picker.enter(), &["tab mark", "ctrl-t text", "? keys"])
        }
        (None, Overlay::None) => keys("alt +", picker.enter(), &["? keys"]),
    };
    canvas.line(0, at, &line.fitted(columns), columns);
    cursor
}

/// All actions with their keys, and some more keys.
fn keys(prefix: &str, enter: Enter, more: &[&str]) -> Line {
    let show = if enter == Enter::Prints { "print" } else { PickAction::Show.name() };
    let mut line = Line::of(&format!("enter {show} | {prefix}"), Style::new().dimmed());
    for action in PickAction::MENU {
        line.push(&format!(" {}", action.letter().unwrap_or_default()), accent());
        line.push(&format!(":{}", action.name()), Style::new().dimmed());
    }
    line.push(&format!(" | {}", more.join("  ")), Style::new().dimmed());
    line
}

fn accent() -> Style {
    Style::new().bold().fg_color(Some(AnsiColor::Blue.into()))
}

fn left(text: &str, width: usize) -> String {
    let text = fitted(text, width);
    format!("{text}{}", " ".repeat(width.saturating_sub(table::display_width(&text))))
}

fn right(text: &str, width: usize) -> String {
    let text = fitted(text, width);
    format!("{}{text}", " ".repeat(width.saturating_sub(table::display_width(&text))))
}

/// The cells of the screen.
struct Canvas<'b> {
    buffer: &'b mut Buffer,
    colour: Colour,
}

impl Canvas<'_> {
    /// Draws a line within `width` columns.
    fn line(&mut self, column: usize, line: usize, text: &Line, width: usize) {
        let area = self.buffer.area;
        let (Ok(mut x), Ok(y)) = (u16::try_from(column), u16::try_from(line)) else { return };
        let end = u16::try_from(column + width).unwrap_or(u16::MAX).min(area.right());
        for (text, style) in text.spans() {
            if x >= end || y >= area.bottom() {
                return;
            }
            (x, _) = self.buffer.set_stringn(x, y, text, usize::from(end - x), cell_style(style, self.colour));
        }
    }

    /// Emphasizes a row.
    fn highlight(&mut self, column: usize, line: usize, width: usize) {
        if self.colour == Colour::Plain {
            return;
        }
        let number = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        let row = ratatui::layout::Rect::new(number(column), number(line), number(width), 1);
        self.buffer.set_style(row, CellStyle::new().add_modifier(Modifier::REVERSED).remove_modifier(Modifier::DIM));
    }
}

fn cell_style(style: Style, colour: Colour) -> CellStyle {
    if colour == Colour::Plain {
        return CellStyle::new();
    }
    let effects = [
        (Effects::BOLD, Modifier::BOLD),
        (Effects::DIMMED, Modifier::DIM),
        (Effects::ITALIC, Modifier::ITALIC),
        (Effects::UNDERLINE, Modifier::UNDERLINED),
        (Effects::INVERT, Modifier::REVERSED),
        (Effects::STRIKETHROUGH, Modifier::CROSSED_OUT),
    ];
    let modifier = effects.into_iter().filter(|(effect, _)| style.get_effects().contains(*effect));
    let mut cell = CellStyle::new().add_modifier(modifier.fold(Modifier::empty(), |all, (_, one)| all | one));
    cell.fg = style.get_fg_color().map(cell_color);
    cell.bg = style.get_bg_color().map(cell_color);
    cell
}

fn cell_color(color: TextColor) -> Color {
    match color {
        // The first sixteen colours of the palette are the colours of the terminal.
        TextColor::Ansi(color) => Color::Indexed(anstyle::Ansi256Color::from(color).index()),
        TextColor::Ansi256(color) => Color::Indexed(color.index()),
        TextColor::Rgb(color) => Color::Rgb(color.r(), color.g(), color.b()),
    }
}

#[cfg(test)]
mod tests;
