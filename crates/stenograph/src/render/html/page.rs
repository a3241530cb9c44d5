//! The page around the events: its head with the security policy, the header of the session, the outline, the summary, and the
//! places of the chunks of a large session. It contains no text of a transcript that was not escaped.

use super::digest::policy_hash;
use super::escape::escaped_line;
use super::page_summary::PageSummary;
use super::{EVENT_CSS, INDEX_SCRIPT, PAGE_CSS, PAGE_SCRIPT, TIMELINE_LEGEND};
use crate::text::quote;

/// The header of a page, and the facts beside its events.
#[derive(Clone, Debug, Default)]
pub struct PageHeader {
    /// The title of the session.
    pub title: String,
    /// Where and when it happened and what it took, line by line. Empty texts are left out.
    pub lines: Vec<Vec<String>>,
    /// Names and values: tokens, cost, models.
    pub facts: Vec<(String, String)>,
    /// Remarks, such as what the page leaves out.
    pub remarks: Vec<String>,
    /// The page that lists all sessions, if there is one.
    pub index: Option<String>,
}

/// A part of the events of a session. A browser loads the chunks of a large page when it needs them.
#[derive(Clone, Debug, Default)]
pub struct PageChunk {
    /// The prefix of the ids of its events.
    pub id_prefix: String,
    /// The number of its first event.
    pub first: u64,
    /// The number of its last event.
    pub last: u64,
    /// How many events it has.
    pub events: u64,
    /// Where its script is, seen from the page.
    pub source: String,
}

/// The events of a page.
#[derive(Clone, Copy, Debug)]
pub enum PageBody<'a> {
    /// In the page itself, in parts.
    Inline(&'a [String]),
    /// In files beside the page.
    Chunks(&'a [PageChunk]),
}

/// The content of the file of a chunk: a script, because a page that is opened from a disk may load scripts and nothing else.
pub fn chunk_script(number: usize, html: &str) -> String {
    format!("stenoChunk({number},{})\n", quote(html))
}

/// Writes the whole page.
pub fn page(
    header: &PageHeader,
    summary: &PageSummary,
    body: PageBody<'_>,
    out: &mut dyn std::io::Write,
) -> std::io::Result<()> {
    let mut text = head(
        &header.title,
        PAGE_SCRIPT,
        match body {
            PageBody::Inline(_) => PageFiles::None,
            PageBody::Chunks(_) => PageFiles::Beside,
        },
    );
    text.push_str("<body>\n<a class=\"skip\" href=\"#conversation\">Skip to the conversation</a>\n");
    text.push_str(TOOLBAR);
    text.push_str("<div class=\"page\">\n");
    session_header(header, summary, &mut text);
    let is_empty = summary.prompts() == 0;
    text.push_str(&format!(
        "<nav class=\"outline\" aria-label=\"Outline\"><details open><summary>Outline</summary>\n{}{}</details></nav>\n",
        if is_empty { "<p>No prompts.</p>\n" } else { "" },
        summary.outline_html()
    ));
    summary_aside(header, summary, &mut text);
    text.push_str("<main id=\"conversation\" tabindex=\"-1\">\n");
    out.write_all(text.as_bytes())?;
    match body {
        PageBody::Inline(parts) => parts.iter().try_for_each(|part| out.write_all(part.as_bytes()))?,
        PageBody::Chunks(chunks) => {
            out.write_all(b"<noscript><p>This session is large: its events are loaded by a script.</p></noscript>\n")?;
            for (number, chunk) in chunks.iter().enumerate() {
                let PageChunk { id_prefix, first, last, events, source } = chunk;
                writeln!(
                    out,
                    "<section class=\"chunk\" data-number=\"{number}\" data-prefix=\"{id_prefix}\" data-first=\"{first}\" \
                     data-last=\"{last}\" data-events=\"{events}\" data-source=\"{}\"></section>",
                    escaped_line(source)
                )?;
            }
        }
    }
    writeln!(out, "</main>\n</div>\n{HELP}<script>{PAGE_SCRIPT}</script>\n</body>\n</html>")
}

/// One session in the list of an index page.
#[derive(Clone, Debug, Default)]
pub struct IndexEntry {
    /// The file of its page.
    pub file: String,
    /// Its title.
    pub title: String,
    /// The agent, the project, and other words about it.
    pub about: Vec<String>,
    /// When it began, for people.
    pub started: String,
    /// What it took: prompts, events, tokens, cost.
    pub counts: Vec<String>,
    /// The file with its words, for the search.
    pub words: String,
}

/// The page that lists several sessions and searches them.
pub fn index_page(title: &str, entries: &[IndexEntry]) -> String {
    let mut out = head(title, INDEX_SCRIPT, PageFiles::Beside);
    out.push_str(&format!(
        "<body>\n<div class=\"bar\" role=\"search\"><label class=\"js\"><span class=\"sr\">Search all sessions</span>\
         <input id=\"search\" type=\"search\" placeholder=\"Search all sessions (/)\" autocomplete=\"off\" spellcheck=\"false\"></label>\
         <output id=\"found\" class=\"js\"></output>{THEME}</div>\n<div class=\"page index\">\n<header class=\"session\"><h1>{}</h1></header>\n\
         <main id=\"conversation\">\n<ul class=\"sessions\">\n",
        escaped_line(title)
    ));
    for entry in entries {
        let shown = |words: &[String]| {
            let words: Vec<String> =
                words.iter().filter(|word| !word.is_empty()).map(|word| escaped_line(word)).collect();
            words.join(" \u{b7} ")
        };
        out.push_str(&format!(
            "<li data-words=\"{}\"><a href=\"{}\">{}</a><p>{}</p><small>{}</small></li>\n",
            escaped_line(&entry.words),
            escaped_line(&entry.file),
            escaped_line(&entry.title),
            shown(&[vec![entry.started.clone()], entry.about.clone()].concat()),
            shown(&entry.counts)
        ));
    }
    out.push_str(&format!("</ul>\n<ol id=\"results\" class=\"js\"></ol>\n</main>\n</div>\n<script>{INDEX_SCRIPT}</script>\n</body>\n</html>\n"));
    out
}

/// The content of the file with the words of a session: a script that hands over its events, each with its id.
pub fn words_script(file: &str, words: &[(String, String)]) -> String {
    let items: Vec<String> = words.iter().map(|(id, text)| format!("[{},{}]", quote(id), quote(text))).collect();
    format!("stenoWords({},[{}])\n", quote(file), items.join(",\n"))
}

/// Whether a page has files beside it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PageFiles {
    None,
    Beside,
}

/// The head: a policy that allows this style and this script, and nothing from anywhere else. A page with files beside it lets
/// its own script load them.
fn head(title: &str, script: &str, files: PageFiles) -> String {
    let style = format!("{EVENT_CSS}{PAGE_CSS}");
    let loads = if files == PageFiles::Beside { " 'strict-dynamic'" } else { "" };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src {}; script-src {}{loads}; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"generator\" content=\"Stenograph\">\n<title>{}</title>\n<style>{style}</style>\n</head>\n",
        policy_hash(&style),
        policy_hash(script),
        escaped_line(title)
    )
}

fn session_header(header: &PageHeader, summary: &PageSummary, out: &mut String) {
    out.push_str("<header class=\"session\">\n");
    if let Some(index) = &header.index {
        out.push_str(&format!("<p class=\"back\"><a href=\"{}\">All sessions</a></p>\n", escaped_line(index)));
    }
    out.push_str(&format!("<h1>{}</h1>\n", escaped_line(&header.title)));
    for line in &header.lines {
        let words: Vec<String> = line.iter().filter(|word| !word.is_empty()).map(|word| escaped_line(word)).collect();
        if !words.is_empty() {
            out.push_str(&format!("<p>{}</p>\n", words.join(" \u{b7} ")));
        }
    }
    let timeline = summary.timeline_html();
    if !timeline.is_empty() {
        out.push_str(&format!(
            "<figure class=\"timeline\">{timeline}<figcaption>{TIMELINE_LEGEND}</figcaption></figure>\n"
        ));
    }
    out.push_str("</header>\n");
}

fn summary_aside(header: &PageHeader, summary: &PageSummary, out: &mut String) {
    out.push_str("<aside class=\"summary\" aria-label=\"Summary\"><details open><summary>Summary</summary>\n<dl>\n");
    let own = summary.facts().into_iter().map(|(name, value)| (name.to_owned(), value));
    for (name, value) in own.chain(header.facts.iter().cloned()) {
        out.push_str(&format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped_line(&name), escaped_line(&value)));
    }
    out.push_str("</dl>\n");
    for remark in &header.remarks {
        out.push_str(&format!("<p class=\"remark\">{}</p>\n", escaped_line(remark)));
    }
    out.push_str(&summary.lists_html());
    out.push_str("</details></aside>\n");
}

const THEME: &str =
    "<button type=\"button\" id=\"theme\" class=\"js\" aria-label=\"Change between light and dark\">\u{25d0}</button>";

/// The toolbar. Its filters need no script; what does is hidden without one.
const TOOLBAR: &str = concat!(
    "<div class=\"bar\" role=\"search\">",
    "<label class=\"js search\"><span class=\"sr\">Search this page</span>",
    "<input id=\"search\" type=\"search\" placeholder=\"Search (/)\" autocomplete=\"off\" spellcheck=\"false\"></label>",
    "<output id=\"found\" class=\"js\"></output>",
    "<fieldset><legend class=\"sr\">Show</legend>",
    "<label><input type=\"checkbox\" id=\"show-tools\" checked>Tools</label>",
    "<label><input type=\"checkbox\" id=\"show-thinking\" checked>Thinking</label>",
    "<label><input type=\"checkbox\" id=\"show-all\">Bookkeeping</label>",
    "</fieldset>",
    "<button type=\"button\" id=\"expand\" class=\"js\">Expand all</button>",
    "<button type=\"button\" id=\"theme\" class=\"js\" aria-label=\"Change between light and dark\">\u{25d0}</button>",
    "<button type=\"button\" id=\"keys\" class=\"js\" aria-label=\"Keys\">?</button>",
    "</div>\n",
);

const HELP: &str = concat!(
    "<dialog id=\"help\" aria-labelledby=\"help-title\"><h2 id=\"help-title\">Keys</h2><dl>",
    "<div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous event</dd></div>",
    "<div><dt><kbd>J</kbd> <kbd>K</kbd></dt><dd>next and previous prompt</dd></div>",
    "<div><dt><kbd>o</kbd></dt><dd>open or close the event</dd></div>",
    "<div><dt><kbd>e</kbd></dt><dd>open or close everything</dd></div>",
    "<div><dt><kbd>/</kbd></dt><dd>search; <kbd>Enter</kbd> and <kbd>Shift+Enter</kbd> step through the matches</dd></div>",
    "<div><dt><kbd>y</kbd></dt><dd>copy a link to the event</dd></div>",
    "<div><dt><kbd>t</kbd></dt><dd>light or dark</dd></div>",
    "</dl><form method=\"dialog\"><button>Close</button></form></dialog>\n",
);

#[cfg(test)]
mod tests {
    use super::*;

    fn written(header: &PageHeader, body: PageBody<'_>) -> String {
        let mut out = Vec::new();
        page(header, &PageSummary::default(), body, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_policy_allows_only_the_page_itself() {
        let page = written(&PageHeader::default(), PageBody::Inline(&[]));
        let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let script = page.split_once("<script>").unwrap().1.split_once("</script>").unwrap().0;
        let policy = page.split_once("Content-Security-Policy\" content=\"").unwrap().1.split_once('"').unwrap().0;
        let expected = format!(
            "default-src 'none'; img-src data:; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
            policy_hash(style),
            policy_hash(script)
        );
        assert_eq!(policy, expected);
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains(" style=") && !page.contains(" onclick="));
    }

    #[test]
    fn titles_and_facts_are_text() {
        let hostile = "</title><script>x</script>\" onload=\"".to_owned();
        let header = PageHeader {
            title: hostile.clone(),
            lines: vec![vec![hostile.clone()]],
            facts: vec![(hostile.clone(), hostile.clone())],
            remarks: vec![hostile.clone()],
            index: Some(hostile.clone()),
        };
        let page = written(&header, PageBody::Inline(&[]));
        assert_eq!((page.matches("<script").count(), page.matches("</title>").count()), (1, 1));
        assert!(!page.contains("\" onload"));
        let chunk = PageChunk { source: hostile.clone(), ..PageChunk::default() };
        assert_eq!(written(&PageHeader::default(), PageBody::Chunks(&[chunk])).matches("<script").count(), 1);
        let entry = IndexEntry {
            file: hostile.clone(),
            title: hostile.clone(),
            about: vec![hostile.clone()],
            words: hostile.clone(),
            ..IndexEntry::default()
        };
        assert_eq!(index_page(&hostile, &[entry]).matches("<script").count(), 1);
    }
}
