//! Colours code. It detects the language from the word after a fence or from the extension of a file; code in other languages
//! stays plain.

use std::collections::HashMap;

use anstyle::{AnsiColor, Style};
use synoptic::{Highlighter as Syntax, TokOpt, from_extension};

use super::styled::{Line, TAB, plain_lines};
use crate::output::harmless;

/// The longest code that is coloured, to bound the time.
const SIZE_MAX: usize = 64 << 10;

/// Colours code, and keeps the syntax of each known language it met: making one takes milliseconds.
#[derive(Default)]
pub struct Highlighter {
    syntaxes: HashMap<String, Syntax>,
}

impl Highlighter {
    /// The lines of a piece of code.
    pub fn lines(&mut self, language: &str, text: &str) -> Vec<Line> {
        let Some(syntax) = self.syntax(language).filter(|_| text.len() <= SIZE_MAX) else { return plain_lines(text) };
        let lines: Vec<String> = harmless(text).lines().map(|line| line.replace('\t', TAB)).collect();
        syntax.run(&lines);
        let highlight_line = |(at, line): (usize, &String)| {
            let mut out = Line::default();
            for token in syntax.line(at, line) {
                match token {
                    TokOpt::Some(text, kind) => out.push(&text, style(&kind)),
                    TokOpt::None(text) => out.push(&text, Style::new()),
                }
            }
            out
        };
        lines.iter().enumerate().map(highlight_line).collect()
    }

    /// The syntax of a language. Names of unknown languages come from transcripts and are not kept.
    fn syntax(&mut self, language: &str) -> Option<&mut Syntax> {
        let extension = extension(language);
        if !self.syntaxes.contains_key(&extension) {
            self.syntaxes.insert(extension.clone(), from_extension(&extension, TAB.len())?);
        }
        self.syntaxes.get_mut(&extension)
    }
}

/// The extension of the files of a language. Fences use names of languages or extensions.
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
