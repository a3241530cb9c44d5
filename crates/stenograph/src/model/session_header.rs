//! What a session is called, where it ran, with which model and when: the one answer for lists, headers, reports and the index.
//! A fold that can continue from a saved value. It does not decide which events repeat others: its callers leave those out, and
//! events of nested records too.

use serde::{Deserialize, Serialize};

use super::{Body, Event, Fact};
use crate::evidence::UserQuestion;
use crate::text::{keep_last, one_line};
use crate::time::Time;

/// What the header of a session says. Its size does not depend on the size of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// The last title or summary, on one line.
    pub title: Option<String>,
    /// The first question in the words of the person, on one line. A command without words counts only if nobody typed words, and
    /// the task of a sub-agent only if there is no main conversation.
    pub query: Option<String>,
    /// Whether the question is the task of a sub-agent.
    pub is_query_aside: bool,
    /// The first working folder.
    pub cwd: Option<String>,
    /// The last branch.
    pub branch: Option<String>,
    /// The last model.
    pub model: Option<String>,
    /// The last version of the agent.
    pub version: Option<String>,
    /// The earliest time, in milliseconds since 1970.
    pub started_ms: Option<i64>,
    /// The latest time.
    pub ended_ms: Option<i64>,
}

/// How many characters of a title or a question are kept: more than a line of any list has.
const TITLE_LENGTH_MAX: usize = 200;

impl SessionHeader {
    /// Adds the next event that does not repeat another.
    pub fn add(&mut self, event: &Event<'_>) {
        keep_last(&mut self.branch, event.branch_name());
        keep_last(&mut self.version, event.version.as_deref());
        keep_last(&mut self.model, event.model.as_deref());
        if self.cwd.is_none() {
            keep_last(&mut self.cwd, event.cwd.as_deref());
        }
        if let Some(time_ms) = event.time.as_ref().and_then(Time::to_millis) {
            self.started_ms = Some(self.started_ms.map_or(time_ms, |started_ms| started_ms.min(time_ms)));
            self.ended_ms = self.ended_ms.max(Some(time_ms));
        }
        if let Body::Fact { fact: Fact::Title | Fact::Summary, content: Some(content) } = &event.body {
            let title = title_line(&content.joined().decode());
            keep_last(&mut self.title, Some(&title).filter(|title| !title.starts_with(API_ERROR)).map(String::as_str));
        }
        let is_replaced = self.is_query_aside && event.thread.is_none();
        if is_replaced || self.query.as_deref().is_none_or(UserQuestion::is_bare_command) {
            self.add_question(event);
        }
    }

    /// Takes the first question; words replace a command, and the main conversation replaces a side conversation.
    fn add_question(&mut self, event: &Event<'_>) {
        let is_aside = event.thread.is_some();
        let Some(question) = UserQuestion::of(event) else { return };
        let line = title_line(question.text());
        let is_first = self.query.is_none() || self.is_query_aside && !is_aside;
        let is_better = self.is_query_aside == is_aside && !UserQuestion::is_bare_command(&line);
        if (is_first || is_better) && !line.is_empty() {
            self.query = Some(line);
            self.is_query_aside = is_aside;
        }
    }
}

/// The beginning of a title that an agent took from a failed request instead of the conversation.
const API_ERROR: &str = "API Error:";

/// The characters of a text that a title can come from; links take some of them.
const LINE_SOURCE_MAX: usize = 4 * TITLE_LENGTH_MAX;

/// A title or a question on one line; of a Markdown link only its text.
fn title_line(text: &str) -> String {
    let line = without_links(&one_line(text, LINE_SOURCE_MAX));
    one_line(without_images(&line), TITLE_LENGTH_MAX)
}

/// A line without the marks of attached images at its beginning: `[Image #1]`. A line of marks alone stays as it is.
fn without_images(line: &str) -> &str {
    let mut rest = line.trim_start();
    while let Some((number, behind)) = rest.strip_prefix("[Image #").and_then(|mark| mark.split_once(']')) {
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        rest = behind.trim_start();
    }
    if rest.is_empty() { line } else { rest }
}

/// A text whose Markdown links are replaced by their texts.
fn without_links(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        let link = after.split_once("](").and_then(|(label, target)| {
            let (address, behind) = target.split_once(')')?;
            let is_link = !label.contains(['[', ']']) && !address.contains(' ');
            is_link.then_some((label, behind))
        });
        match link {
            Some((label, behind)) => {
                out.push_str(label);
                rest = behind;
            }
            None => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Content, Role};
    use crate::time::TimeUnit;

    fn header(events: &[Event<'_>]) -> SessionHeader {
        let mut header = SessionHeader::default();
        events.iter().for_each(|event| header.add(event));
        header
    }

    fn said(text: &'static str) -> Event<'static> {
        Event::new(Body::Message { role: Role::User, content: Content::text(text) })
    }

    fn fact(fact: Fact<'static>, text: &'static str) -> Event<'static> {
        Event::new(Body::Fact { fact, content: Some(Content::text(text)) })
    }

    #[test]
    fn the_last_model_and_branch_and_the_first_folder_count() {
        let in_place = |model: &'static str, branch: &'static str, cwd: &'static str| Event {
            model: Some(model.into()),
            branch: Some(branch.into()),
            cwd: Some(cwd.into()),
            ..said("Hello.")
        };
        let found = header(&[in_place("small", "main", "/a"), in_place("large", "fix", "/b"), in_place("", "", "")]);
        let found = (found.model.as_deref(), found.branch.as_deref(), found.cwd.as_deref());
        assert_eq!(found, (Some("large"), Some("fix"), Some("/a")));
    }

    #[test]
    fn times_are_the_earliest_and_the_latest() {
        let at =
            |seconds: &'static str| Event { time: Time::number(seconds.into(), TimeUnit::Seconds), ..said("Hello.") };
        let found = header(&[at("20"), at("30"), at("10"), said("No time.")]);
        assert_eq!((found.started_ms, found.ended_ms), (Some(10_000), Some(30_000)));
    }

    #[test]
    fn the_last_title_or_summary_counts_unless_it_is_empty() {
        let (title, summary) = (fact(Fact::Title, "A title"), fact(Fact::Summary, "A\n\n  summary "));
        assert_eq!(header(&[title.clone(), summary.clone()]).title.as_deref(), Some("A summary"));
        assert_eq!(header(&[summary, title, fact(Fact::Title, " \n")]).title.as_deref(), Some("A title"));
    }

    #[test]
    fn a_question_is_one_short_line() {
        assert_eq!(header(&[said("Why\n\tis it red?\n"), said("And now?")]).query.as_deref(), Some("Why is it red?"));
        let long = Event::new(Body::Message { role: Role::User, content: Content::text("x".repeat(999)) });
        assert_eq!(header(&[long]).query.map(|query| query.len()), Some(TITLE_LENGTH_MAX));
    }

    #[test]
    fn marks_of_images_are_no_part_of_a_question() {
        let query = |text: &'static str| header(&[said(text)]).query;
        assert_eq!(query("[Image #1] [Image #2] Why is it red?").as_deref(), Some("Why is it red?"));
        assert_eq!(query("[Image #1]").as_deref(), Some("[Image #1]"));
        assert_eq!(query("[Image #x] and").as_deref(), Some("[Image #x] and"));
    }

    #[test]
    fn a_detached_head_is_no_branch() {
        let on = |branch: &'static str| Event { branch: Some(branch.into()), ..said("Hello.") };
        assert_eq!(header(&[on("HEAD")]).branch, None);
        assert_eq!(header(&[on("main"), on("HEAD")]).branch.as_deref(), Some("main"));
    }

    #[test]
    fn a_title_is_not_an_error_and_keeps_the_text_of_links() {
        let title = |text: &'static str| header(&[fact(Fact::Title, text)]).title;
        assert_eq!(title("API Error: 401 {}"), None);
        assert_eq!(
            title("why [acme/app#1](https://x.test/1) [ok] a[0](b c)").as_deref(),
            Some("why acme/app#1 [ok] a[0](b c)")
        );
    }

    #[test]
    fn the_question_of_the_main_conversation_replaces_the_task_of_a_sub_agent() {
        let aside = |text: &'static str| Event { thread: Some("a1".into()), ..said(text) };
        assert_eq!(header(&[aside("Warmup"), aside("Look.")]).query.as_deref(), Some("Warmup"));
        assert_eq!(header(&[aside("Warmup"), said("Fix it."), aside("Look.")]).query.as_deref(), Some("Fix it."));
        assert_eq!(header(&[said("/review"), aside("Look."), said("Why?")]).query.as_deref(), Some("Why?"));
        assert_eq!(header(&[said("/review the parser"), said("Why?")]).query.as_deref(), Some("/review the parser"));
    }

    #[test]
    fn a_header_continues_from_a_saved_value() {
        let events = [said("/init"), said("Why?"), fact(Fact::Title, "A title"), said("And now?")];
        let whole = header(&events);
        for cut in 0..events.len() {
            let mut continued = header(&events[..cut]).clone();
            events[cut..].iter().for_each(|event| continued.add(event));
            assert_eq!(continued, whole, "{cut}");
        }
    }
}
