//! The frame of every page, and small pieces of HTML. Texts of transcripts pass through [`text`]; everything else is written here.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use stenograph::render::ago;
pub use stenograph::render::counted;
use stenograph::render::html::{escaped_line, first_words};
use stenograph::time::{Precision, shown};

use super::state::Viewer;

/// A text on one line, as content or inside a quoted attribute.
pub fn text(text: &str) -> String {
    escaped_line(text)
}

/// The beginning of a text, on one line.
pub fn short(text: &str, chars_max: usize) -> String {
    escaped_line(&first_words(text, chars_max))
}

/// The main pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nav {
    Overview,
    Sessions,
    Usage,
    None,
}

const LINKS: [(Nav, &str, &str); 3] =
    [(Nav::Overview, "/", "Overview"), (Nav::Sessions, "/sessions", "Sessions"), (Nav::Usage, "/usage", "Usage")];

impl Viewer {
    /// A whole page. `kind` tells the script what the page has.
    pub fn page(&self, title: &str, nav: Nav, kind: &str, main: &str) -> String {
        const REDACTED: &str = "<span class=\"badge redacted\" title=\"Secrets, home folders, user names and e-mail addresses are masked\">redacted</span>";
        page(title, nav, kind, main, if self.is_redacted() { REDACTED } else { "" })
    }
}

fn page(title: &str, nav: Nav, kind: &str, main: &str, remark: &str) -> String {
    let mut links = String::new();
    for (which, address, name) in LINKS {
        let current = if which == nav { " aria-current=\"page\"" } else { "" };
        let _ = write!(links, "<a href=\"{address}\"{current}>{name}</a>");
    }
    let header = format!(
        "<header class=\"bar\"><a class=\"brand\" href=\"/\">Stenograph</a>{remark}<nav aria-label=\"Main\">{links}</nav>\
         <form class=\"find\" role=\"search\" action=\"/sessions\"><input type=\"search\" name=\"q\" aria-label=\"Search all sessions\" \
         placeholder=\"Search all sessions\" autocomplete=\"off\" spellcheck=\"false\"><kbd>Ctrl K</kbd></form>\
         <button type=\"button\" class=\"icon\" data-action=\"theme\" aria-label=\"Change the theme\" title=\"Change the theme\" hidden>◐</button>\
         <button type=\"button\" class=\"icon\" data-action=\"help\" aria-label=\"Show the keys\" title=\"Keys (?)\" hidden>?</button></header>"
    );
    document(title, kind, &format!("{header}<main id=\"main\" tabindex=\"-1\">{main}</main>"))
}

/// A document without the bar: for somebody who is not admitted yet.
pub fn document(title: &str, kind: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\" data-page=\"{kind}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <title>{} · Stenograph</title><link rel=\"icon\" href=\"/assets/icon.svg\">\
         <link rel=\"stylesheet\" href=\"/assets/event.css\"><link rel=\"stylesheet\" href=\"/assets/viewer.css\">\
         <script src=\"/assets/theme.js\"></script><script type=\"module\" src=\"/assets/app.js\"></script></head>\
         <body><a class=\"skip\" href=\"#main\">Skip to the content</a>{body}</body></html>",
        text(title)
    )
}

/// A moment: how long ago, with the exact time behind it.
pub fn moment(ms: Option<i64>, zone: &TimeZone) -> String {
    let Some(time) = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()) else {
        return "<span class=\"muted\">no time</span>".to_owned();
    };
    let past = Timestamp::now().as_millisecond().saturating_sub(time.as_millisecond());
    let exact = shown(time, zone, Precision::Minutes);
    format!("<time datetime=\"{time}\" title=\"{exact}\">{}</time>", ago(past))
}

/// A part of a page that the browser loads after the rest. Without a script, it is a link.
pub fn lazy(id: &str, address: &str, label: &str) -> String {
    let address = text(address);
    format!(
        "<div id=\"{id}\" data-load=\"{address}\" aria-busy=\"true\"><p class=\"loading\">Reading {label}…</p>\
         <noscript><a href=\"{address}\">Show {label}</a></noscript></div>"
    )
}
