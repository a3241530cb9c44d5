//! The picture of a terminal in the README: what three commands write to a real terminal, drawn as SVG. `STENO_UPDATE=1` draws it
//! again; look at it before you commit it.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::runner::Folder;
use crate::screens::{folder_with_demo, screen};

const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/terminal.svg");

const COLUMNS: usize = 80;

/// The commands, and how many lines of each are drawn.
const COMMANDS: [(&str, &str, usize); 3] = [
    ("find \"leap years\" --events --limit 1", "find leap years --events --limit 1", 6),
    ("show latest", "show latest", 33),
    ("usage latest --by tool", "usage latest --by tool", 8),
];

/// The size of a character, and the space around the text.
const COLUMN: f32 = 8.4;
const LINE: f32 = 18.0;
const MARGIN: f32 = 16.0;
const TOP: f32 = 40.0;

/// The colours of the terminal that is drawn: the background, the text, and those with the numbers 1 to 6.
const BACKGROUND: &str = "#1d2229";
const FOREGROUND: &str = "#d7dce2";
const COLOURS: [&str; 6] = ["#f0767b", "#93c977", "#e3b75c", "#6cb2ee", "#c792ea", "#5fc7c4"];

/// How text is drawn.
#[derive(Clone, Copy, Default, PartialEq)]
struct Look {
    colour: Option<usize>,
    is_bold: bool,
    is_faint: bool,
    is_italic: bool,
    is_underlined: bool,
}

impl Look {
    /// Applies the numbers of a control sequence. A number that the picture cannot show is a mistake.
    fn apply(&mut self, numbers: &str) {
        for number in numbers.split(';') {
            match number {
                "" | "0" => *self = Look::default(),
                "1" => self.is_bold = true,
                "2" => self.is_faint = true,
                "3" => self.is_italic = true,
                "4" => self.is_underlined = true,
                "39" => self.colour = None,
                other => match other.parse::<usize>().unwrap() {
                    colour @ (31..=36 | 91..=96) => self.colour = Some(colour % 10 - 1),
                    90 => self.is_faint = true,
                    unknown => panic!("the picture cannot show {unknown}"),
                },
            }
        }
    }

    fn attributes(self) -> String {
        let mut out = String::new();
        let fill = self.colour.map_or(FOREGROUND, |colour| COLOURS[colour]);
        let _ = write!(out, " fill=\"{fill}\"");
        for (is_set, attribute) in [
            (self.is_bold, " font-weight=\"bold\""),
            (self.is_faint, " opacity=\"0.6\""),
            (self.is_italic, " font-style=\"italic\""),
            (self.is_underlined, " text-decoration=\"underline\""),
        ] {
            out.push_str(if is_set { attribute } else { "" });
        }
        out
    }
}

/// One line of the screen, drawn at a height. Each word has its own place, so that columns fit in every font.
fn drawn(line: &str, look: &mut Look, height: f32, out: &mut String) {
    let (mut column, mut rest) = (0, line);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("\u{1b}[") {
            let (numbers, after) = after.split_once('m').unwrap();
            look.apply(numbers);
            rest = after;
            continue;
        }
        let end = rest.find('\u{1b}').unwrap_or(rest.len());
        for (at, word) in rest[..end].split_inclusive(' ').scan(column, |at, word| {
            let here = *at;
            *at += word.width();
            Some((here, word.trim_end()))
        }) {
            if word.is_empty() {
                continue;
            }
            let escaped = word.replace('&', "&amp;").replace('<', "&lt;");
            let (x, width) = (MARGIN + at as f32 * COLUMN, word.width() as f32 * COLUMN);
            let attributes = look.attributes();
            let stretch = if word.graphemes(true).count() > 1 {
                format!(" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\"")
            } else {
                String::new()
            };
            let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{height:.0}\"{stretch}{attributes}>{escaped}</text>");
        }
        column += rest[..end].width();
        rest = &rest[end..];
    }
}

/// What a terminal shows for the commands; `None` without Python.
fn terminal(folder: &Folder) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for (typed, run, most) in COMMANDS {
        let shown = screen(folder, run, (COLUMNS, 40), "always")?;
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!("\u{1b}[32m$\u{1b}[0m \u{1b}[1msteno {typed}\u{1b}[0m"));
        let shown: Vec<&str> = shown.lines().collect();
        lines.extend(shown.iter().take(most).map(|line| (*line).to_owned()));
        if shown.len() > most {
            lines.push("\u{1b}[2m       …\u{1b}[0m".to_owned());
        }
    }
    Some(lines)
}

fn picture(lines: &[String]) -> String {
    let (width, height) = (COLUMNS as f32 * COLUMN + 2.0 * MARGIN, lines.len() as f32 * LINE + TOP + MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <title>steno in a terminal</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (at, colour) in [COLOURS[0], COLOURS[2], COLOURS[1]].iter().enumerate() {
        let _ = writeln!(out, "<circle cx=\"{}\" cy=\"18\" r=\"5\" fill=\"{colour}\"/>", 20 + 18 * at);
    }
    let mut look = Look::default();
    for (at, line) in lines.iter().enumerate() {
        drawn(line, &mut look, TOP + (at as f32 + 0.5) * LINE, &mut out);
    }
    out + "</svg>\n"
}

#[test]
fn the_picture_of_the_readme_shows_what_a_terminal_shows() {
    let folder = folder_with_demo();
    folder.run("index --root home").ends(0);
    let Some(lines) = terminal(&folder) else {
        eprintln!("no python3: the picture is not compared");
        return;
    };
    let drawn = picture(&lines);
    if std::env::var_os("STENO_UPDATE").is_some() {
        fs::write(PICTURE, &drawn).unwrap();
    }
    assert!(Path::new(PICTURE).exists(), "draw it with STENO_UPDATE=1");
    let stored = fs::read_to_string(PICTURE).unwrap();
    let differing = drawn.lines().zip(stored.lines()).find(|(drawn, stored)| drawn != stored);
    assert_eq!(differing, None);
    assert_eq!(drawn.lines().count(), stored.lines().count());
}
