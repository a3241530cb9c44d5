//! `steno check --secrets`: lists what redaction would mask as a secret, without revealing it.

use stenograph::json::Draft;
use stenograph::redact::{Finding, FindingClass};

use crate::error::{CommandError, ExitStatus};
use crate::input::TranscriptInput;
use crate::output::{Output, counted, harmless_json, harmless_line};
use crate::redaction::Redaction;
use crate::store::StoreArgs;

/// How many secrets are listed. Output for people ends somewhere; the counts are complete.
const SECRETS_SHOWN: usize = 200;

pub fn check(
    place: &StoreArgs,
    mut input: TranscriptInput,
    json: bool,
    output: &mut Output<'_>,
) -> Result<ExitStatus, CommandError> {
    let (name, format) = (input.name(), input.format.info().name);
    let mut redaction = Redaction::only_search(place)?;
    let (mut lines, mut listed) = (Vec::new(), 0);
    redaction.search(&mut input, &mut |line, finding| {
        if finding.class == FindingClass::Secret {
            listed += 1;
            if json || listed <= SECRETS_SHOWN {
                lines.push(if json { secret_json(line, finding) } else { secret_line(line, finding) });
            }
        }
    })?;
    let found = redaction.found();
    let secrets = found.count_of(FindingClass::Secret);
    let status = if secrets > 0 { ExitStatus::No } else { ExitStatus::Done };
    if json {
        let draft = Draft::new().with("file", &name).with("format", format).with_list("secrets", lines);
        output.line(&harmless_json(&draft.with_json("report", found.to_json()).render(None)))?;
        return Ok(status);
    }
    let personal = counted(found.count_of(FindingClass::Personal), "personal detail");
    let secrets = counted(secrets, "likely secret");
    output.line(&harmless_line(&format!("{name}: {format}, {secrets}, {personal}")))?;
    for line in &lines {
        output.line(&harmless_line(line))?;
    }
    if listed > SECRETS_SHOWN {
        output.line(&format!("  and {} more; --json shows all", listed - SECRETS_SHOWN))?;
    }
    if found.unchecked > 0 {
        output.say(&format!("not checked: {} (images, documents)", counted(found.unchecked, "attachment")));
    }
    Ok(status)
}

fn secret_line(line: u64, finding: &Finding) -> String {
    let place = if finding.place.is_empty() { String::new() } else { format!(" in {}", finding.place) };
    format!("  line {line}: {}{place}: {}", finding.rule, finding.preview())
}

fn secret_json(line: u64, finding: &Finding) -> String {
    let mut draft = Draft::new();
    draft.set_str("rule", &finding.rule);
    draft.set_number("line", Some(line));
    draft.set_str("place", &finding.place);
    draft.set_str("preview", &finding.preview());
    draft.render(None)
}
