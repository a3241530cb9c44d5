//! Colours code. It knows languages by the name in a fence or by the extension of a file; code in other languages stays plain.

use std::collections::HashMap;

use anstyle::{AnsiColor, Style};
use synoptic::{Highlighter as Rules, TokOpt, from_extension};

use super::styled::Line;
use crate::output::harmless;

/// The width of a tab in code.
const TAB_WIDTH: usize = 4;

/// The longest code that is coloured. Longer code is data.
const SIZE_MAX: usize = 64 << 10;

/// Colours code, and keeps the rules of each language it met: making them takes milliseconds.
#[derive(Default)]
pub struct Highlighter {
    rules: HashMap<String, Option<Rules>>,
}

impl Highlighter {
    /// The lines of a piece of code.
    pub fn lines(&mut self, language: &str, text: &str) -> Vec<Line> {
        let text = harmless(text);
        let lines: Vec<String> = text.lines().map(|line| line.replace('\t', "    ")).collect();
        let extension = extension(language);
        let rules = self.rules.entry(extension.clone()).or_insert_with(|| from_extension(&extension, TAB_WIDTH));
        let Some(rules) = rules.as_mut().filter(|_| text.len() <= SIZE_MAX) else {
            return lines.iter().map(|line| Line::of(line, Style::new())).collect();
        };
        rules.run(&lines);
        let coloured = |(at, line): (usize, &String)| {
            let mut out = Line::default();
            for token in rules.line(at, line) {
                match token {
                    TokOpt::Some(text, kind) => out.push(&text, style(&kind)),
                    TokOpt::None(text) => out.push(&text, Style::new()),
                }
            }
            out
        };
        lines.iter().enumerate().map(coloured).collect()
    }
}

/// The extension of the files of a language. People name languages in fences by both.
fn extension(language: &str) -> String {
    let language = language.rsplit(['/', '.']).next().unwrap_or_default().to_ascii_lowercase();
    let known = match language.as_str() {
        "rust" => "rs",
        "python" | "python3" => "py",
        "javascript" | "jsx" | "mjs" => "js",
        "typescript" | "tsx" => "ts",
        "bash" | "shell" | "zsh" | "console" | "shell-session" => "sh",
        "golang" => "go",
        "c++" | "cc" | "hpp" => "cpp",
        "csharp" => "cs",
        "kotlin" => "kt",
        "ruby" => "rb",
        "yml" => "yaml",
        "jsonl" | "jsonc" => "json",
        "markdown" => "md",
        other => other,
    };
    known.to_owned()
}

/// Only the sixteen colours of the terminal: they are legible on its background, light or dark.
fn style(kind: &str) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match kind {
        "comment" => Style::new().dimmed(),
        "string" | "character" => colour(AnsiColor::Green),
        "keyword" | "table" => colour(AnsiColor::Magenta),
        "digit" | "boolean" => colour(AnsiColor::Cyan),
        "function" | "macro" => colour(AnsiColor::Blue),
        "struct" | "namespace" | "tag" | "attribute" | "heading" => colour(AnsiColor::Yellow),
        "insertion" => colour(AnsiColor::Green),
        "deletion" => colour(AnsiColor::Red),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    #[test]
    fn code_keeps_its_text() {
        let code = "fn main() {\n\tlet a = \"x\\n\"; // é漢\n}\n";
        for language in ["rust", "py", "src/a.ts", "unknown", ""] {
            let lines = Highlighter::default().lines(language, code);
            let text: Vec<String> = lines.iter().map(Line::text).collect();
            assert_eq!(text, ["fn main() {", "    let a = \"x\\n\"; // é漢", "}"], "{language}");
        }
        let coloured = Highlighter::default().lines("rust", code)[1].drawn(Colour::Shown);
        assert!(coloured.contains("\u{1b}["), "{coloured:?}");
    }
}
