//! Formats a hit for people and for programs.

use stenograph::json::Draft;
use stenograph_store::hits::{HitContent, ShownAnswer, ShownHit};

use crate::clock;
use crate::output::{Colour, TextStyle, harmless_line};
use crate::table;
use crate::terminal::{fitted, fitted_path};

/// A hit for people: session and time, text, and how to open it.
pub(super) fn hit(shown: &ShownHit, colour: Colour, width: usize) -> String {
    let mut head = Vec::new();
    if let Some(session) = &shown.session {
        head.push(colour.paint(TextStyle::Strong, &harmless_line(&session.agent)));
        head.push(harmless_line(&shown.short));
        let project = session.project.as_ref().map(|project| harmless_line(&project.name));
        head.extend(
            project.map(|project| if width == usize::MAX { project } else { fitted(&project, PROJECT_WIDTH_MAX) }),
        );
    }
    head.extend(shown.hit.time.map(clock::format_minute));
    if let Ok(seen) = &shown.read {
        head.push(colour.paint(TextStyle::Faint, &speaker(seen)));
    }
    if let Some(version) = shown.hit.version {
        head.push(colour.paint(TextStyle::Warning, &format!("(in archived version {version}; no longer in the file)")));
    }
    if shown.hit.copies > 0 {
        head.push(format!("(+{} elsewhere)", shown.hit.copies));
    }
    let text = match &shown.read {
        Ok(seen) => with_marks(&seen.snippet, colour),
        Err(reason) => colour.paint(TextStyle::Warning, &format!("({reason})")),
    };
    let mut lines = vec![head.join("  "), format!("  {text}")];
    lines.extend(location(shown, width).iter().map(|line| colour.paint(TextStyle::Faint, &format!("  {line}"))));
    lines.join("\n")
}

/// The widest name of a project on a terminal, in the first line of a hit.
const PROJECT_WIDTH_MAX: usize = 20;

/// The hits for people, by session: what the session is, then at most `most` of its hits with their event numbers.
pub(super) fn sessions(hits: &[ShownHit], most: usize, colour: Colour, width: usize) -> Vec<String> {
    let mut groups: Vec<Vec<&ShownHit>> = Vec::new();
    for hit in hits {
        let known = groups.iter_mut().find(|group| group.first().is_some_and(|other| is_same_session(other, hit)));
        match known {
            Some(group) => group.push(hit),
            None => groups.push(vec![hit]),
        }
    }
    groups.iter().map(|group| session(group, most, colour, width)).collect()
}

/// Whether two hits are of one session, with all its sub-agents. A file without a session is a group of its own, and so is an
/// earlier version of a file.
fn is_same_session(one: &ShownHit, other: &ShownHit) -> bool {
    let is_same_file = one.session.is_some()
        || match (&one.open, &other.open) {
            (Some(one), Some(other)) => one.name == other.name,
            _ => true,
        };
    one.hit.session == other.hit.session && is_same_file && one.hit.version == other.hit.version
}

fn session(hits: &[&ShownHit], most: usize, colour: Colour, width: usize) -> String {
    let Some(first) = hits.first() else { return String::new() };
    let mut lines = Vec::new();
    let mut head = Vec::new();
    if let Some(session) = &first.session {
        let title = &session.about();
        lines.push(colour.paint(TextStyle::Strong, &fitted(&harmless_line(title), width)));
        head.push(harmless_line(&session.agent));
        head.extend(session.project.as_ref().map(|project| harmless_line(&project.name)));
        head.extend(session.ended.map(|ended| table::ago(clock::millis() - ended)));
        head.push(harmless_line(&first.short));
    }
    if let Some(version) = first.hit.version {
        head.push(format!("version {version}, which is no longer in the file"));
    }
    if !head.is_empty() {
        lines.push(colour.paint(TextStyle::Faint, &fitted(&head.join("  "), width)));
    }
    for shown in hits.iter().take(most) {
        let number = shown.number().map(|number| number.to_string()).unwrap_or_default();
        let copies = if shown.hit.copies > 0 { format!(" (+{} elsewhere)", shown.hit.copies) } else { String::new() };
        let (speaker, text) = match &shown.read {
            Ok(seen) => (speaker(seen), with_marks(&seen.snippet, colour)),
            Err(reason) => (String::new(), colour.paint(TextStyle::Warning, &format!("({reason})"))),
        };
        let number = format!("{number:>6}");
        let subagent = shown.source.as_ref().and_then(|source| source.thread.as_deref());
        let subagent = subagent.map(|name| format!(" (sub-agent {})", harmless_line(name))).unwrap_or_default();
        let about = format!("{speaker}{subagent}{copies}");
        lines.push(format!("{}  {}", colour.paint(TextStyle::Faint, &number), colour.paint(TextStyle::Faint, &about)));
        lines.push(format!("        {text}"));
    }
    let faint = |line: String| colour.paint(TextStyle::Faint, &harmless_line(&line));
    let more = hits.len().saturating_sub(most);
    let more = if more > 0 { format!("  ({more} more here)") } else { String::new() };
    let version = first.hit.version.map(|version| format!(" --version {version}")).unwrap_or_default();
    let commands = hits.iter().take(most).filter_map(|shown| shown.open.as_ref());
    let mut commands = commands.fold(Vec::<(String, Vec<String>)>::new(), |mut commands, open| {
        match commands.iter_mut().find(|(name, _)| *name == open.word()) {
            Some((_, numbers)) => numbers.push(open.event.to_string()),
            None => commands.push((open.word(), vec![open.event.to_string()])),
        }
        commands
    });
    // Without an event, the number of further hits has a line of its own.
    let last = commands.pop().map(|(name, numbers)| show_command(&name, &version, &numbers));
    lines.extend(commands.iter().map(|(name, numbers)| show_command(name, &version, numbers)).map(faint));
    lines.extend(
        last.map(|last| last + &more).or_else(|| (!more.is_empty()).then(|| format!("      {more}"))).map(faint),
    );
    lines.join("\n")
}

/// The command that shows several hits of one conversation.
fn show_command(name: &str, version: &str, numbers: &[String]) -> String {
    format!("        steno show {name}{version} --event {}", numbers.join(","))
}

/// The role or the tool, and whether it failed.
fn speaker(seen: &HitContent) -> String {
    let mut words = vec![match seen.kind {
        "message" => seen.role.unwrap_or("message").to_owned(),
        kind => kind.replace('_', " "),
    }];
    words.extend(seen.tool.as_deref().map(harmless_line));
    if seen.is_error {
        words.push("failed".to_owned());
    }
    words.join(" ")
}

/// The snippet with marked matches, visible without colour too.
fn with_marks(snippet: &stenograph::query::Snippet, colour: Colour) -> String {
    let mut text = String::new();
    let mut at = 0;
    for mark in &snippet.marks {
        text.push_str(&harmless_line(snippet.text.get(at..mark.start).unwrap_or_default()));
        let found = harmless_line(snippet.text.get(mark.clone()).unwrap_or_default());
        match colour {
            Colour::Shown => text.push_str(&format!("\x1b[1;33m{found}\x1b[0m")),
            Colour::Plain => text.push_str(&format!("«{found}»")),
        }
        at = mark.end;
    }
    text.push_str(&harmless_line(snippet.text.get(at..).unwrap_or_default()));
    let (before, after) = (if snippet.is_cut_before { "…" } else { "" }, if snippet.is_cut_after { "…" } else { "" });
    format!("{before}{text}{after}")
}

/// The commands that lead to the hit, and its position in a file.
fn location(shown: &ShownHit, width: usize) -> Vec<String> {
    let is_main = match (&shown.session, &shown.source) {
        (Some(session), Some(source)) => shown.is_named && session.path == source.path,
        _ => false,
    };
    let open = shown.show_line().map(|line| harmless_line(&line));
    let resume =
        shown.resume_line().filter(|_| is_main).map(|_| format!("steno resume {}", harmless_line(&shown.short)));
    let commands = [open, resume].into_iter().flatten().collect::<Vec<_>>().join("   ");
    let position = shown.source.as_ref().map(|source| {
        let line = if shown.hit.at.line > 0 { format!(":{}", shown.hit.at.line) } else { String::new() };
        let room = if width == usize::MAX { width } else { width.saturating_sub(2 + line.len()) };
        format!("{}{line}", fitted_path(&source.path, room))
    });
    Some(commands).filter(|commands| !commands.is_empty()).into_iter().chain(position).collect()
}

/// The last line of an answer for programs.
pub(super) fn end_json(answer: &ShownAnswer) -> String {
    let draft = Draft::new().with("total", answer.total).with("exact", answer.is_exact);
    draft.with("shown", answer.hits.len()).with("next", &answer.next).render(None)
}
