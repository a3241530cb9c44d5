//! The names of CycoD's files, from its templates. Nothing here touches a disk or a clock.

use crate::time::Time;

/// The file that a template is filled in from where there is none.
const NO_FILE: &str = "chat-history.jsonl";

/// Fills in a template such as `chat-history-{time}.jsonl`. `file` is the path that `{fileName}`, `{filePath}`, `{fileBase}` and
/// `{fileExt}` are parts of; `{timeStamp}` is the moment on the wall where it was written down, `{time}` its milliseconds since
/// 1970. Any case will do, as in CycoD. What is no placeholder stays. At the end, space and separators are cut off.
pub fn file_name(template: &str, file: Option<&str>, now: &Time<'_>) -> String {
    let mut name = String::with_capacity(template.len());
    let mut rest = template;
    // In one pass: what is filled in may have braces, and is not looked at again.
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
        // A folder that is not named is this one: an empty one would make the template's separator the root.
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
    fn what_is_no_placeholder_stays() {
        assert_eq!(named("{who}-{{time}-{ / ", None), "{who}-{1772442845061-{");
        assert_eq!(named("{fileBase}", Some("{time}.md")), "{time}");
        assert_eq!(named("talks/{fileExt}", Some("trees")), "talks");
    }
}
