//! `steno export --to html`: a page for each session, and an index page for several. The library draws the pages; this file
//! selects the sessions and the destination.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stenograph::ledger::{self, By, Ledger, Prices, UsageQuery};
use stenograph::render::html::{
    HtmlAddress, HtmlEvents, HtmlOptions, IndexEntry, PageHeader, PageSummary, escaped_line, first_words, index_page,
    page, words_script,
};
use stenograph::render::{Block, EventView, Shown, ViewKind, dollars};
use stenograph_store::files::{Disk, Files as _};
use stenograph_store::{Error, NewFile, NewFileOptions, Place, Problem, Source};

use super::chapter::{Chapter, EventRole, ExportedEvent};
use super::html_chunks::HtmlChunks;
use super::{Options, counted_calls, name_of};
use crate::commands::show::header::of_outline;
use crate::conversation::Conversation;
use crate::error::{CommandError, ExitStatus};
use crate::filter::query_of;
use crate::output::{Output, counted, grouped, harmless_line};
use crate::redaction::Redaction;
use crate::{clock, prices};
use stenograph_store::sessions::matches_session;

/// How many characters of a title a page shows.
const TITLE_CHARS_MAX: usize = 160;

/// The words of one session that the index page can search: what people and agents said, the headings of calls, and the beginnings of
/// their results.
const WORDS_SIZE_MAX: usize = 4 << 20;
const EVENT_WORDS_SIZE_MAX: usize = 8 << 10;
const RESULT_WORDS_SIZE_MAX: usize = 2 << 10;

/// The longest file name that is made of a session id.
const FILE_NAME_LENGTH_MAX: usize = 80;

pub(super) fn run(options: &Options, output: &mut Output<'_>) -> Result<ExitStatus, CommandError> {
    let prices = prices::load()?;
    if let [file] = options.files.as_slice() {
        options.output.must_not_fill_terminal(output)?;
        let exporter = PageExporter { options, prices: &prices, index: None };
        let mut redaction = options.redaction()?;
        let done = exporter.page(file, options.output.path(), &mut redaction, output)?;
        options.report_redaction(&redaction, output);
        return done.damage.map_or(Ok(ExitStatus::Done), Err);
    }
    let Some(folder) = options.output.path() else {
        return Err(CommandError::new("several sessions need a folder").hint("name it with -o FOLDER"));
    };
    folder_of_pages(options, &prices, folder, output)
}

/// Writes a page for each session, and an index of them.
fn folder_of_pages(
    options: &Options,
    prices: &Prices,
    folder: &Path,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let files = if options.files.is_empty() { project_sessions(options)? } else { options.files.clone() };
    if files.is_empty() {
        return Err(CommandError::not_found("no sessions in this project").hint("list projects with steno list"));
    }
    let unwritable = |error| Error::from_system(&Place::Path(folder.to_owned()), Problem::Unwritable, error);
    Disk.create_folder(folder).map_err(unwritable)?;
    let index = folder.join("index.html");
    // The index exists only if all pages do, so it is begun first and committed last.
    let mut index_file = options.output.options(None).create(&index, [])?;
    let exporter = PageExporter { options, prices, index: Some("index.html") };
    let (mut entries, mut status, mut names) = (Vec::new(), ExitStatus::Done, Vec::new());
    let mut redaction = options.redaction()?;
    for file in &files {
        let name = unique_name(file, &mut names);
        let page = folder.join(format!("{name}.html"));
        // A session that cannot be read does not stop the others.
        match exporter.page(file, Some(&page), &mut redaction, output) {
            Ok(done) => {
                let words = format!("{name}.words.js");
                let mut file = done.options.create(&folder.join(&words), [])?;
                file.write_all(words_script(&format!("{name}.html"), &done.words).as_bytes())?;
                file.commit()?;
                entries.push(IndexEntry { file: format!("{name}.html"), words, ..done.entry });
                if let Some(damage) = done.damage {
                    output.error(&damage);
                    status = status.max(damage.status());
                }
            }
            Err(error) => {
                output.error(&error);
                status = status.max(error.status());
            }
        }
    }
    let title = match options.place.project() {
        Some("." | "./") | None => counted(entries.len() as u64, "session"),
        Some(project) => format!("{project}: {}", counted(entries.len() as u64, "session")),
    };
    index_file.write_all(index_page(&title, &entries).as_bytes())?;
    index_file.commit()?;
    output.say(&harmless_line(&format!("{}: {}", index.display(), counted(entries.len() as u64, "session"))));
    options.report_redaction(&redaction, output);
    Ok(status)
}

/// The sessions of the project, newest first.
fn project_sessions(options: &Options) -> Result<Vec<PathBuf>, CommandError> {
    let catalogue = options.place.store()?.catalogue()?;
    let mut sessions = catalogue.sessions()?;
    if let Some(query) = query_of(&[("project", options.place.project())], "")? {
        sessions.retain(|session| matches_session(&query, session));
    }
    sessions.sort_by_key(|session| std::cmp::Reverse((session.ended, session.id)));
    Ok(sessions.into_iter().map(|session| PathBuf::from(session.name)).collect())
}

/// A file name for the page of a session, which no other page has.
fn unique_name(session: &Path, names: &mut Vec<String>) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let plain: String = name_of(session).chars().map(|char| if is_plain(char) { char } else { '-' }).collect();
    let base = first_words(plain.trim_matches(['.', '-']), FILE_NAME_LENGTH_MAX).replace('\u{2026}', "");
    let base = if base.is_empty() || base == "index" { "session".to_owned() } else { base };
    let mut name = base.clone();
    for number in 2.. {
        if !names.contains(&name) {
            break;
        }
        name = format!("{base}-{number}");
    }
    names.push(name.clone());
    name
}

struct PageExporter<'a> {
    options: &'a Options,
    prices: &'a Prices,
    /// The index page, seen from the pages.
    index: Option<&'a str>,
}

/// A page that was written.
struct PageDone {
    entry: IndexEntry,
    words: Vec<(String, String)>,
    damage: Option<CommandError>,
    /// The options of files with the same content.
    options: NewFileOptions,
}

/// What is collected while the events of a page are written.
struct PageContent {
    chunks: HtmlChunks,
    summary: PageSummary,
    words: Vec<(String, String)>,
    words_size: usize,
    has_words: bool,
}

impl PageExporter<'_> {
    /// Writes the page of one session.
    fn page(
        &self,
        file: &Path,
        path: Option<&Path>,
        redaction: &mut Redaction,
        output: &mut Output<'_>,
    ) -> Result<PageDone, CommandError> {
        let options = self.options;
        let (main, threads) = Conversation::open_with_threads(&options.place, file, options.from.as_deref(), output)?;
        let all = || std::iter::once(&main).chain(threads.iter().map(|(_, conversation)| conversation));
        if let Some(path) = path.filter(|path| all().any(|conversation| conversation.has(path))) {
            return Err(Error::about(path, Problem::OwnInput).into());
        }
        let inputs: Vec<&Source> = all().flat_map(Conversation::sources).collect();
        let new_file = options.output.options(inputs.first().copied());
        let mut out = path.map(|path| new_file.clone().create(path, inputs)).transpose()?;
        let mut content = PageContent {
            chunks: HtmlChunks::new(path, new_file.clone()),
            summary: PageSummary::default(),
            words: Vec::new(),
            words_size: 0,
            has_words: self.index.is_some(),
        };
        let searches = (!options.redact.is_given()).then(|| all().map(Conversation::secret_search).collect());
        let mut chapters = match searches.flatten() {
            Some::<Vec<_>>(searches) => {
                redaction.search_during(&searches, || self.chapters(main, threads, &mut content))?
            }
            None => {
                let (main, threads) = options.redacted(main, threads, redaction)?;
                self.chapters(main, threads, &mut content)?
            }
        };
        let (header, entry) = self.header(file, &mut chapters, &content.summary)?;
        let writer: &mut dyn Write = match &mut out {
            Some(out) => out,
            None => output.data(),
        };
        page(&header, &content.summary, content.chunks.body(), writer)?;
        out.map_or_else(|| output.flush(), |out: NewFile| Ok(out.commit()?))?;
        if let (files @ 1.., Some(path)) = (content.chunks.files(), path) {
            let (size, files) = (grouped(content.chunks.size() as u64 / 1_000_000), counted(files as u64, "file"));
            let folder = format!("{}.files", name_of(path));
            output.say(&harmless_line(&format!("{}: {size} MB of events are in {files} in {folder}", path.display())));
        }
        let damage = chapters.into_iter().find_map(|chapter| chapter.overview.damage);
        Ok(PageDone { entry, words: content.words, damage, options: new_file })
    }

    /// Writes the events of all sources.
    fn chapters(
        &self,
        main: Conversation,
        threads: Vec<(String, Conversation)>,
        content: &mut PageContent,
    ) -> Result<Vec<Chapter>, CommandError> {
        let mut chapters = Chapter::all(main, threads);
        for number in 0..chapters.len() {
            self.chapter(&mut chapters, number, content)?;
        }
        content.chunks.finish_chunk()?;
        Ok(chapters)
    }

    /// Writes the events of one source.
    fn chapter(&self, chapters: &mut [Chapter], number: usize, content: &mut PageContent) -> Result<(), CommandError> {
        let Some(chapter) = chapters.get_mut(number) else { return Ok(()) };
        let id_prefix = if number == 0 { String::new() } else { format!("s{number}-") };
        let raw = if self.options.raw { Shown::Yes } else { Shown::No };
        let mut events = HtmlEvents::new(HtmlOptions {
            zone: clock::zone(),
            raw,
            text_size_max: None,
            id_prefix: id_prefix.clone(),
        });
        let agent = match &chapter.thread {
            None => content.summary.agent("Main conversation", "conversation"),
            Some(thread) => {
                content.chunks.finish_chunk()?;
                let about = chapter.overview.outline.header.query.clone().unwrap_or_default();
                let name = format!("Sub-agent {}", first_words(&format!("{thread} {about}"), TITLE_CHARS_MAX));
                let (id, lane) = (format!("{id_prefix}start"), number % 6);
                content.chunks.html.push_str(&format!(
                    "<h2 class=\"lane\" id=\"{id}\"><span class=\"lane-mark lane-{lane}\"></span>{}</h2>\n",
                    escaped_line(&name)
                ));
                content.summary.agent(&name, &id)
            }
        };
        let mut problem = None;
        let read = chapter.each(self.options, &mut |exported| {
            content.event(agent, &id_prefix, &mut events, &exported).map_err(|error| {
                problem = Some(error);
                io::Error::other("the page cannot be written")
            })
        });
        events.end_group(&mut content.chunks.html);
        problem.map_or(read, Err)
    }

    /// What the page says about the session.
    fn header(
        &self,
        file: &Path,
        chapters: &mut [Chapter],
        summary: &PageSummary,
    ) -> Result<(PageHeader, IndexEntry), CommandError> {
        let counted_all = if chapters.len() > 1 { Some(counted_calls(self.options, chapters)?.0) } else { None };
        let sum = |count: fn(&Chapter) -> u64| chapters.iter().map(count).sum::<u64>();
        let (events, abandoned_events) =
            (sum(|chapter| chapter.overview.events), sum(|chapter| chapter.abandoned_events));
        let Some(main) = chapters.first() else { return Ok(Default::default()) };
        let ledger = counted_all.as_ref().unwrap_or(&main.overview.ledger);
        let agent = main.conversation.format().map_or("", |format| format.info().agent);
        let is_redacted = self.options.redact.is_given();
        let name = name_of(if is_redacted { Path::new(&main.conversation.name) } else { file });
        let head = of_outline(&main.overview.outline, ledger, agent, &name)?;
        let title = first_words(&head.title, TITLE_CHARS_MAX);
        let mut facts = vec![("Events".to_owned(), grouped(events))];
        facts.extend(self.usage_facts(ledger));
        let mut remarks = Vec::new();
        if abandoned_events > 0 {
            remarks.push(format!("{} on abandoned branches are not shown.", counted(abandoned_events, "event")));
        }
        let started = main.overview.outline.started.as_ref().and_then(clock::format_second).unwrap_or_default();
        let mut counts = vec![counted(summary.prompts(), "prompt"), counted(events, "event")];
        counts.extend(head.facts.iter().skip(1).cloned());
        let entry =
            IndexEntry { title: title.clone(), about: head.place.clone(), started, counts, ..IndexEntry::default() };
        let index = self.index.map(str::to_owned);
        Ok((PageHeader { title, lines: vec![head.place, head.facts], facts, remarks, index }, entry))
    }

    /// Tokens and cost, by model if there are several.
    fn usage_facts(&self, ledger: &Ledger) -> Vec<(String, String)> {
        let mut question = UsageQuery {
            by: By::Model,
            then_by: None,
            zone: clock::zone(),
            prices: self.prices,
            project: &mut |_, _| String::new(),
            keep: &mut |_| true,
        };
        let report = ledger::report(ledger, &mut question);
        let [input, output, cache_read, cache_write, ..] = report.total.tokens.counters();
        let counts = [("Input", input), ("Output", output), ("Cache read", cache_read), ("Cache write", cache_write)];
        let mut facts: Vec<(String, String)> = counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), format!("{} tokens", grouped(count))))
            .collect();
        let cost = |group: &ledger::Group| group.cost.money.filter(|money| !money.is_zero()).or(group.stated);
        facts.extend(cost(&report.total).map(|money| ("Cost".to_owned(), dollars(money))));
        if report.groups.len() > 1 {
            for group in &report.groups {
                let model = group.key.clone().unwrap_or_else(|| "unknown model".to_owned());
                facts.extend(cost(group).map(|money| (model, dollars(money))));
            }
        }
        facts
    }
}

impl PageContent {
    fn event(
        &mut self,
        agent: usize,
        id_prefix: &str,
        events: &mut HtmlEvents,
        exported: &ExportedEvent<'_, '_>,
    ) -> Result<(), CommandError> {
        let ExportedEvent { event, role, number, usage } = exported;
        if matches!(role, EventRole::LeftOut(_)) {
            events.skip(event);
            return Ok(());
        }
        // A nested event has the number of its record, whose element has the id.
        let own_number = Some(*number).filter(|_| *role != EventRole::Nested);
        if self.chunks.is_full() {
            // An event is in the chunk that counts it.
            events.end_group(&mut self.chunks.html);
            self.chunks.finish_chunk()?;
        }
        self.chunks.add_event_number(id_prefix, *number);
        let Some(view) = events.event(own_number, event, *usage, &mut self.chunks.html) else { return Ok(()) };
        let address = HtmlAddress { id_prefix, number: *number };
        self.summary.add(agent, &address, event, &view);
        if self.has_words {
            self.add_words(&address, &view);
        }
        Ok(())
    }

    /// Keeps the words of an event for the search of the index page.
    fn add_words(&mut self, address: &HtmlAddress<'_>, view: &EventView) {
        let text = match view.kind {
            ViewKind::User | ViewKind::Agent => {
                let texts = view.blocks.iter().filter_map(|block| match block {
                    Block::Markdown(text) => Some(text.as_str()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join("\n")
            }
            ViewKind::Call(_) => view.heading.clone(),
            ViewKind::Result(_) => match view.blocks.first() {
                Some(Block::Output(text)) => stenograph::text::beginning(text, RESULT_WORDS_SIZE_MAX).to_owned(),
                _ => return,
            },
            _ => return,
        };
        let text = stenograph::render::harmless(stenograph::text::beginning(&text, EVENT_WORDS_SIZE_MAX)).into_owned();
        if !text.is_empty() && self.words_size + text.len() <= WORDS_SIZE_MAX {
            self.words_size += text.len();
            self.words.push((format!("{}e{}", address.id_prefix, address.number), text));
        }
    }
}
