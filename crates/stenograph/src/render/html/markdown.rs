//! Markdown as HTML. Nothing in a text can execute or fetch anything: HTML is shown as text, links lead only to web pages and
//! mail addresses, and images are named, not loaded. Line breaks of the source stay.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::blocks::{code_block, plain_text};
use super::escape::escape;

/// The longest text that is read as Markdown. Longer text is data, and is shown as it is.
const SIZE_MAX: usize = 256 << 10;

/// The deepest nesting of elements. Browsers flatten deeper documents, and are slow with them.
const DEPTH_MAX: usize = 24;

/// Headings of a text are below the headings of the prompts, and none skips a level: people who hear a page go from heading to
/// heading.
const HEADING_SHIFT: usize = 2;
const HEADING_LEVEL_MAX: usize = 6;

/// The longest target of a link.
const TARGET_LENGTH_MAX: usize = 2_000;

/// Appends a text.
pub fn markdown(text: &str, out: &mut String) {
    if text.len() > SIZE_MAX {
        return plain_text(text, out);
    }
    if let Some(paragraph) = only_paragraph(text) {
        out.push_str("<p>");
        escape(paragraph, out);
        out.push_str("</p>");
        return;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS | Options::ENABLE_STRIKETHROUGH;
    let mut writer = MarkdownWriter {
        out,
        open: Vec::new(),
        code: None,
        table: Vec::new(),
        cell: 0,
        is_head: false,
        heading: HEADING_SHIFT,
    };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.finish();
}

/// The text, if it is certainly one paragraph without any markup: most short messages are, and need no parser.
fn only_paragraph(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_plain = |byte: u8| byte == b' ' || byte == b',' || byte == b'.' || byte.is_ascii_alphabetic();
    (text.bytes().next()?.is_ascii_alphabetic() && text.bytes().all(is_plain)).then_some(text)
}

struct MarkdownWriter<'o> {
    out: &'o mut String,
    /// The end tags of the open elements; `None` for an element that is too deep to be written.
    open: Vec<Option<String>>,
    /// The language and the text of an open code block.
    code: Option<(String, String)>,
    /// The alignment of the columns of an open table.
    table: Vec<Alignment>,
    cell: usize,
    is_head: bool,
    /// The level of the last heading.
    heading: usize,
}

impl MarkdownWriter<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => escape(&text, self.out),
            },
            Event::Code(code) => {
                self.out.push_str("<code>");
                escape(&code, self.out);
                self.out.push_str("</code>");
            }
            Event::Html(text) | Event::InlineHtml(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                escape(&text, self.out);
            }
            Event::FootnoteReference(name) => escape(&format!("[^{name}]"), self.out),
            Event::SoftBreak => self.out.push('\n'),
            Event::HardBreak => self.out.push_str("<br>"),
            Event::Rule => self.out.push_str("<hr>"),
            Event::TaskListMarker(is_done) => self.out.push_str(if is_done { "\u{2611} " } else { "\u{2610} " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.element("p"),
            Tag::HtmlBlock => self.tag("<p class=\"html\">", "</p>"),
            Tag::Heading { level, .. } => {
                let level = (level as usize + HEADING_SHIFT).min(self.heading + 1).min(HEADING_LEVEL_MAX);
                self.heading = level;
                self.element(&format!("h{level}"));
            }
            Tag::BlockQuote(_) => self.element("blockquote"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
                self.open.push(None);
            }
            Tag::List(None) => self.element("ul"),
            Tag::List(Some(1)) => self.element("ol"),
            Tag::List(Some(first)) => self.tag(&format!("<ol start=\"{first}\">"), "</ol>"),
            Tag::Item => self.element("li"),
            Tag::Emphasis => self.element("em"),
            Tag::Strong => self.element("strong"),
            Tag::Strikethrough => self.element("s"),
            Tag::Link { dest_url, .. } => self.link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.out.push_str("[image: ");
                self.link(&dest_url);
            }
            Tag::Table(alignments) => {
                self.table = alignments;
                // A wide table scrolls, and the keyboard must reach it.
                self.tag("<div class=\"table\" tabindex=\"0\"><table>", "</table></div>");
            }
            Tag::TableHead => {
                (self.cell, self.is_head) = (0, true);
                self.tag("<thead><tr>", "</tr></thead>");
            }
            Tag::TableRow => {
                self.cell = 0;
                self.element("tr");
            }
            Tag::TableCell => {
                let name = if self.is_head { "th" } else { "td" };
                let class = match self.table.get(self.cell) {
                    Some(Alignment::Right) => " class=\"right\"",
                    Some(Alignment::Center) => " class=\"center\"",
                    Some(Alignment::Left | Alignment::None) | None => "",
                };
                self.cell += 1;
                self.tag(&format!("<{name}{class}>"), &format!("</{name}>"));
            }
            // Extensions that are not enabled.
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => self.open.push(None),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        if let Some(Some(end)) = self.open.pop() {
            self.out.push_str(&end);
        }
        match tag {
            TagEnd::CodeBlock => {
                if let Some((language, text)) = self.code.take() {
                    code_block(&language, text.trim_end_matches('\n'), self.out);
                }
            }
            TagEnd::TableHead => self.is_head = false,
            TagEnd::Image => self.out.push(']'),
            _ => {}
        }
    }

    /// Begins an element without attributes.
    fn element(&mut self, name: &str) {
        self.tag(&format!("<{name}>"), &format!("</{name}>"));
    }

    fn tag(&mut self, start: &str, end: &str) {
        if self.open.len() >= DEPTH_MAX {
            return self.open.push(None);
        }
        self.out.push_str(start);
        self.open.push(Some(end.to_owned()));
    }

    /// Begins a link. A target that is not a web page or a mail address is text after it.
    fn link(&mut self, target: &str) {
        let mut escaped = String::new();
        escape(target, &mut escaped);
        if is_safe(target) {
            return self.tag(&format!("<a href=\"{escaped}\" rel=\"noopener noreferrer nofollow\">"), "</a>");
        }
        let end =
            if target.is_empty() || target.len() > TARGET_LENGTH_MAX { String::new() } else { format!(" ({escaped})") };
        self.tag("", &end);
    }

    /// Ends what an odd text left open.
    fn finish(&mut self) {
        while let Some(end) = self.open.pop() {
            self.out.push_str(end.as_deref().unwrap_or_default());
        }
    }
}

/// Whether a link may lead there.
fn is_safe(target: &str) -> bool {
    let is_short = target.len() <= TARGET_LENGTH_MAX;
    let is_written = !target.contains(|char: char| char.is_control() || char.is_whitespace());
    let scheme = target.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
    is_short && is_written && matches!(scheme.as_deref(), Some("http" | "https" | "mailto"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        markdown(text, &mut out);
        out
    }

    #[test]
    fn markdown_becomes_elements() {
        for (text, expected) in [
            ("Done, it works.", "<p>Done, it works.</p>"),
            ("a **b** `c`", "<p>a <strong>b</strong> <code>c</code></p>"),
            ("# One\ntwo\nthree", "<h3>One</h3><p>two\nthree</p>"),
            ("### a\n# b\n### c\n### d", "<h3>a</h3><h3>b</h3><h4>c</h4><h5>d</h5>"),
            ("- [x] a\n- [ ] b", "<ul><li>\u{2611} a</li><li>\u{2610} b</li></ul>"),
            (
                "[a](https://b.example)",
                "<p><a href=\"https://b.example\" rel=\"noopener noreferrer nofollow\">a</a></p>",
            ),
            ("```rust\nfn a()\n```", "<pre class=\"code\"><code class=\"lang-rust\">fn a()</code></pre>"),
        ] {
            assert_eq!(written(text), expected);
        }
        let table = written("| a | b |\n|---|--:|\n| 1 | 2 |");
        assert!(
            table.contains("<thead><tr><th>a</th><th class=\"right\">b</th></tr></thead><tr><td>1</td>"),
            "{table}"
        );
    }

    #[test]
    fn nothing_executes_and_nothing_is_fetched() {
        for (text, expected) in [
            ("<script>x</script>", "<p class=\"html\">&lt;script&gt;x&lt;/script&gt;</p>"),
            ("a <img src=x onerror=y>", "<p>a &lt;img src=x onerror=y&gt;</p>"),
            ("[a](javascript:x)", "<p>a (javascript:x)</p>"),
            ("[a](JaVaScRiPt:x)", "<p>a (JaVaScRiPt:x)</p>"),
            ("[a](data:text/html,x)", "<p>a (data:text/html,x)</p>"),
            ("[a](//x.example)", "<p>a (//x.example)</p>"),
            ("![a](file:///x)", "<p>[image: a (file:///x)]</p>"),
        ] {
            assert_eq!(written(text), expected);
        }
        let image = written("![a](https://b.example/c.png)");
        assert!(!image.contains("<img"), "{image}");
    }

    #[test]
    fn deep_nesting_is_flattened() {
        let deep = written(&format!("{}x", "> ".repeat(5_000)));
        assert!(deep.matches("<blockquote>").count() <= DEPTH_MAX);
        assert_eq!(deep.matches("<blockquote>").count(), deep.matches("</blockquote>").count());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the text, each element that is opened is closed, in order.
        #[test]
        fn elements_are_balanced(text in "[-*_#>`~|:a1. \\[\\]()<!\\\\\n]{0,80}") {
            let html = written(&text);
            let mut open: Vec<&str> = Vec::new();
            for tag in html.split('<').skip(1) {
                let name = tag.split(['>', ' ']).next().unwrap();
                match name.strip_prefix('/') {
                    Some(name) => prop_assert_eq!(open.pop(), Some(name)),
                    None if matches!(name, "br" | "hr") => {}
                    None => open.push(name),
                }
            }
            prop_assert!(open.is_empty(), "{html}");
        }
    }
}
