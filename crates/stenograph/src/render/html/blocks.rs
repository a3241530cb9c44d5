//! The content of an event as HTML. [`Block`] says what the content is; this file says how the page draws it.

use super::ansi::AnsiWriter;
use super::escape::{escape, escaped_line};
use super::markdown::markdown;
use crate::evidence::{Todo, TodoProgress};
use crate::render::{Block, bytes, grouped};
use crate::text::beginning;

/// A long text is written in pieces of about this size, so that a browser lays out only the pieces on the screen.
const PIECE_SIZE: usize = 32 << 10;

/// Output of more lines scrolls in its own region, which the keyboard can reach.
const OUTPUT_LINES_MAX: usize = 24;

/// The longest name of a language.
const LANGUAGE_LENGTH_MAX: usize = 30;

/// The images that the page shows. A drawing in SVG is a document that can fetch and execute.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Appends the blocks of an event, of each text at most `size_max` bytes.
pub fn blocks(blocks: &[Block], size_max: Option<usize>, out: &mut String) {
    let shown = |text: &str| beginning(text, size_max.unwrap_or(usize::MAX)).len();
    for block in blocks {
        let left_out = match block {
            Block::Markdown(text) => {
                let (text, left_out) = text.split_at(shown(text));
                out.push_str("<div class=\"md\">");
                markdown(text, out);
                out.push_str("</div>");
                left_out
            }
            Block::Code { language, text } => {
                let (text, left_out) = text.split_at(shown(text));
                code_block(language, text, out);
                left_out
            }
            Block::Diff { path, hunks } => {
                let (hunks, left_out) = hunks.split_at(shown(hunks));
                diff(path, hunks, out);
                left_out
            }
            Block::Output(text) => {
                let (text, left_out) = text.split_at(shown(text));
                output(text, out);
                left_out
            }
            Block::Plan(todos) => {
                plan(todos, out);
                ""
            }
            Block::Blob { media, size, place, data } => {
                blob(media.as_deref(), *size, place.as_deref(), data.as_deref(), out);
                ""
            }
        };
        cut_remark(left_out.len(), out);
    }
}

/// Says how much of a text is left out, if any.
pub fn cut_remark(left_out: usize, out: &mut String) {
    if left_out > 0 {
        let size = bytes(left_out as u64);
        out.push_str(&format!(
            "<p class=\"cut\">{size} more are not shown here; <code>steno show</code> prints all.</p>"
        ));
    }
}

/// The number of lines of the texts of an event; `None` if it has content that is not text.
pub fn line_count(blocks: &[Block]) -> Option<u64> {
    let mut count = 0;
    for block in blocks {
        match block {
            Block::Output(text) | Block::Markdown(text) | Block::Code { text, .. } => {
                count += text.trim_end_matches('\n').lines().count() as u64;
            }
            Block::Diff { .. } | Block::Plan(_) | Block::Blob { .. } => return None,
        }
    }
    Some(count)
}

/// Appends code in a language; the language may be unknown.
pub fn code_block(language: &str, text: &str, out: &mut String) {
    let language = language.rsplit(['/', '.']).next().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'#' | b'_');
    let class = match !language.is_empty() && language.len() <= LANGUAGE_LENGTH_MAX && language.bytes().all(is_name) {
        true => format!(" class=\"lang-{}\"", language.to_ascii_lowercase()),
        false => String::new(),
    };
    for piece in pieces(text) {
        out.push_str(&format!("<pre class=\"code\"><code{class}>"));
        escape(piece, out);
        out.push_str("</code></pre>");
    }
}

/// Appends a text as it is.
pub fn plain_text(text: &str, out: &mut String) {
    for piece in pieces(text) {
        out.push_str("<pre class=\"text\">");
        escape(piece, out);
        out.push_str("</pre>");
    }
}

/// Appends the output of a tool.
fn output(text: &str, out: &mut String) {
    let mut ansi = AnsiWriter::default();
    for piece in pieces(text.trim_end_matches('\n')) {
        let is_long = piece.lines().nth(OUTPUT_LINES_MAX).is_some();
        out.push_str(if is_long { "<pre class=\"output long\" tabindex=\"0\">" } else { "<pre class=\"output\">" });
        ansi.write(piece, out);
        out.push_str("</pre>");
    }
}

/// A text in pieces that end with a line, or inside a very long line. An empty text has one empty piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        if text.len() <= PIECE_SIZE * 2 {
            return Some(text);
        }
        let window = beginning(text, PIECE_SIZE * 2);
        let end = match window.get(..).and_then(|window| window.rfind('\n')) {
            Some(line) if line > 0 => line,
            _ => window.len(),
        };
        let (piece, after) = text.split_at(end);
        rest = Some(after.strip_prefix('\n').unwrap_or(after));
        Some(piece)
    })
}

/// Appends the hunks of a unified diff of one file. Lines of the same kind are one element.
pub fn diff(path: &str, hunks: &str, out: &mut String) {
    out.push_str("<figure class=\"diff\"><figcaption>");
    out.push_str(&escaped_line(path));
    out.push_str("</figcaption><pre>");
    let mut open = DiffLine::Same;
    for (at, line) in hunks.lines().enumerate() {
        // A hunk without line numbers needs its header only to separate it from the one before it.
        let (kind, line) = match line.as_bytes().first() {
            Some(b'@') if line.starts_with("@@ -?") && at == 0 => continue,
            Some(b'@') if line.starts_with("@@ -?") => (DiffLine::Header, "\u{22ee}"),
            Some(b'@') => (DiffLine::Header, line),
            Some(b'+') => (DiffLine::Added, line),
            Some(b'-') => (DiffLine::Removed, line),
            _ => (DiffLine::Same, line),
        };
        if kind != open {
            out.push_str(open.tags().1);
            out.push_str(kind.tags().0);
            open = kind;
        }
        escape(line, out);
        out.push('\n');
    }
    out.push_str(open.tags().1);
    out.push_str("</pre></figure>");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffLine {
    Same,
    Added,
    Removed,
    Header,
}

impl DiffLine {
    fn tags(self) -> (&'static str, &'static str) {
        match self {
            DiffLine::Same => ("", ""),
            DiffLine::Added => ("<ins>", "</ins>"),
            DiffLine::Removed => ("<del>", "</del>"),
            DiffLine::Header => ("<i>", "</i>"),
        }
    }
}

fn plan(todos: &[Todo], out: &mut String) {
    out.push_str("<ul class=\"plan\">");
    for todo in todos {
        let (class, sign) = match todo.progress() {
            TodoProgress::Done => ("done", "\u{2713}"),
            TodoProgress::Active => ("active", "\u{25b8}"),
            TodoProgress::Open => ("open", "\u{25cb}"),
        };
        out.push_str(&format!("<li class=\"{class}\"><span>{sign}</span> {}</li>", escaped_line(&todo.text)));
    }
    out.push_str("</ul>");
}

fn blob(media: Option<&str>, size: Option<u64>, place: Option<&str>, data: Option<&str>, out: &mut String) {
    let media = media.unwrap_or("data");
    let is_base64 =
        |data: &&str| data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    if let Some(data) = data.filter(is_base64)
        && IMAGE_TYPES.contains(&media)
    {
        out.push_str(&format!(
            "<img class=\"image\" alt=\"Image\" loading=\"lazy\" src=\"data:{media};base64,{data}\">"
        ));
        return;
    }
    let about = match (size, place) {
        (_, Some(place)) => format!("{media}: {place}"),
        (Some(size), None) => format!("{media}, {} bytes", grouped(size)),
        (None, None) => media.to_owned(),
    };
    out.push_str(&format!("<p class=\"blob\">{}</p>", escaped_line(&about)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(block: Block) -> String {
        let mut out = String::new();
        blocks(&[block], None, &mut out);
        out
    }

    #[test]
    fn lines_of_a_diff_have_their_kind() {
        let hunks = "@@ -1,2 +1,2 @@\n a\n-b <i>\n-c\n+d\n".to_owned();
        let html = written(Block::Diff { path: "<a>".to_owned(), hunks });
        assert_eq!(
            html,
            "<figure class=\"diff\"><figcaption>&lt;a&gt;</figcaption><pre><i>@@ -1,2 +1,2 @@\n</i> a\n\
             <del>-b &lt;i&gt;\n-c\n</del><ins>+d\n</ins></pre></figure>"
        );
    }

    #[test]
    fn only_harmless_images_are_shown() {
        let image = |media: &str, data: &str| {
            let data = Some(data.to_owned());
            written(Block::Blob { media: Some(media.to_owned()), size: Some(3), place: None, data })
        };
        assert!(image("image/png", "AAAA").contains("src=\"data:image/png;base64,AAAA\""));
        assert!(!image("image/svg+xml", "AAAA").contains("<img"));
        assert!(!image("image/png", "\" onerror=\"x").contains("<img"));
        assert!(!image("image/png\" x=\"", "AAAA").contains("<img"));
    }

    #[test]
    fn a_long_text_is_in_pieces_and_complete() {
        let text = "a line of text\n".repeat(20_000) + &"x".repeat(300_000);
        let all: Vec<&str> = pieces(&text).collect();
        assert!(all.len() > 8 && all.iter().all(|piece| piece.len() <= PIECE_SIZE * 2));
        assert_eq!(all.iter().map(|piece| piece.replace('\n', "").len()).sum::<usize>(), text.replace('\n', "").len());
        assert_eq!(pieces("").collect::<Vec<_>>(), [""]);
    }
}
