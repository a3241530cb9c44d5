//! The names of CycoD's files, from its templates. This module uses neither disk nor clock.

use crate::time::Time;

/// The file name that fills a template if there is no file.
const NO_FILE: &str = "chat-history.jsonl";

/// Fills in a template such as `chat-history-{time}.jsonl`. `{fileName}`, `{filePath}`, `{fileBase}` and `{fileExt}` are parts
/// of the path `file`; `{timeStamp}` is the local time of `now`, `{time}` its milliseconds since 1970. Placeholders match in
/// any letter case, as in CycoD; unknown ones stay. Trailing spaces and separators are removed.
pub fn file_name(template: &str, file: Option<&str>, now: &Time<'_>) -> String {
    let mut name = String::with_capacity(template.len());
    let mut rest = template;
    // One pass: a filled-in value may contain braces, which must stay.
    while let Some((before, after)) = rest.split_once('{') {
        name.push_str(before);
        match after.split_once('}').and_then(|(word, after)| Some((value(word, file, now)?, after))) {
            Some((value, after)) => {
                name.push_str(&value);
                rest = after;
            }
            None => {
                name.push('{');
                rest = after;
            }
        }
    }
    name.push_str(rest);
    name.trim_end_matches([' ', '/', '\\']).to_owned()
}

fn value(word: &str, file: Option<&str>, now: &Time<'_>) -> Option<String> {
    let file = file.filter(|file| !file.is_empty()).unwrap_or(NO_FILE);
    let (path, name) = file.rfind(['/', '\\']).map_or(("", file), |at| file.split_at(at));
    let name = name.trim_start_matches(['/', '\\']);
    let (base, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    Some(match word.to_ascii_lowercase().as_str() {
        "filename" => name.to_owned(),
        // A path without a folder means the current one: an empty folder would turn the template's separator into the root.
        "filepath" if path.is_empty() && file.starts_with(name) => ".".to_owned(),
        "filepath" => path.to_owned(),
        "filebase" if base.is_empty() => "chat-history".to_owned(),
        "filebase" => base.to_owned(),
        "fileext" => ending.to_owned(),
        "timestamp" => now.wall("%Y%m%d%H%M%S").unwrap_or_else(|| "19700101000000".to_owned()),
        "time" => now.instant().map_or(0, jiff::Timestamp::as_millisecond).to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(template: &str, file: Option<&str>) -> String {
        file_name(template, file, &Time::iso("2026-03-02T10:14:05.061+01:00".into()).unwrap())
    }

    #[test]
    fn templates_are_filled_in() {
        assert_eq!(named("chat-history-{time}.jsonl", None), "chat-history-1772442845061.jsonl");
        assert_eq!(named("chats/{filebase}-{timestamp}.jsonl", None), "chats/chat-history-20260302101405.jsonl");
        assert_eq!(named("{filePath}/{fileBase}-2.{fileExt}", Some("talks/trees.v1.jsonl")), "talks/trees.v1-2.jsonl");
        assert_eq!(named("{filepath}/{fileName}", Some("trees.jsonl")), "./trees.jsonl");
        assert_eq!(named("{filePath}/{filename}", Some(r"C:\talks\trees.jsonl")), r"C:\talks/trees.jsonl");
        assert_eq!(named("{filePath}/x-{timeStamp}", Some("/trees")), "/x-20260302101405");
    }

    #[test]
    fn an_unknown_placeholder_stays() {
        assert_eq!(named("{who}-{{time}-{ / ", None), "{who}-{1772442845061-{");
        assert_eq!(named("{fileBase}", Some("{time}.md")), "{time}");
        assert_eq!(named("talks/{fileExt}", Some("trees")), "talks");
    }
}
