//! Replaces the fields of a source that name its working folder or its session, so that the session can follow its folder or
//! get another name. [`Placement`] lists these fields. Every other byte stays: no record is written again.

use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

use crate::carry::{self, Carried};
use crate::convert::Reopen;
use crate::format::Format;
use crate::frame::{Frame, Framer, RECORD_SIZE_MAX};
use crate::json::{self, Object};
use crate::model::{Placement, Span};
use crate::text::{Text, quote};
use crate::write::{Edit, splice};

/// A working folder that moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderChange {
    /// Where it was; `None` if that is unknown, so that no path is known to be in it.
    pub from: Option<String>,
    /// Where it is now.
    pub to: String,
}

impl FolderChange {
    /// The new path of the folder or of a path in it; `None` for any other path.
    pub fn apply(&self, path: &str) -> Option<String> {
        let from = self.from.as_deref()?;
        let rest = path.strip_prefix(from.trim_end_matches(['/', '\\']))?;
        let is_inside = rest.is_empty() || rest.starts_with(['/', '\\']);
        is_inside.then(|| format!("{}{rest}", self.to))
    }
}

/// A session that becomes another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFork {
    /// The id that the records state.
    pub from: String,
    /// The id of the new session.
    pub to: String,
}

/// What changes in the fields of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldChanges {
    /// The working folder.
    pub folder: Option<FolderChange>,
    /// The session. The records also state the session that they were copied from.
    pub session: Option<SessionFork>,
}

/// Copies a source and replaces fields. Returns how many it replaced.
pub fn replace_fields(
    format: &dyn Format,
    source: &mut dyn Reopen,
    changes: &FieldChanges,
    out: &mut dyn Write,
) -> io::Result<usize> {
    const CHUNK_SIZE: usize = 256 << 10;
    let Some(placement) = &format.info().placement else { return io::copy(&mut source.open()?, out).map(|_| 0) };
    let mut edits: Vec<Edit> = Vec::new();
    let mut framer = Framer::new(format.info().framing, RECORD_SIZE_MAX);
    let mut each = |frame: Frame<'_>| {
        let Frame::Record(record) = frame else { return };
        let Ok(text) = std::str::from_utf8(record.bytes) else { return };
        for (at, with) in record_edits(text, placement, changes) {
            let at = Span { offset: record.at.offset + at.start as u64, length: at.len() as u64, line: record.at.line };
            edits.push(Edit { at, with: with.into_bytes() });
        }
    };
    let (mut input, mut buffer) = (source.open()?, vec![0; CHUNK_SIZE]);
    loop {
        match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => framer.feed(buffer.get(..length).unwrap_or_default(), &mut each),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    drop(input);
    framer.end(&mut each);
    splice(&mut *source.open()?, &edits, out)?;
    Ok(edits.len())
}

/// The replaced ranges of one record, in order, with their replacements.
fn record_edits(text: &str, placement: &Placement, changes: &FieldChanges) -> Vec<(Range<usize>, String)> {
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    let mut replace = |fields: &[&str], new: &dyn Fn(&str) -> Option<String>| {
        let mut replaced = 0;
        for raw in fields.iter().filter_map(|field| path_in(text, field)).flat_map(|path| values_at(text, path)) {
            let old = Text::from_json(raw).and_then(|text| text.exact().map(Cow::into_owned));
            if let (Some(at), Some(new)) = (range_of(raw, text), old.and_then(|old| new(&old))) {
                edits.push((at, quote(&new)));
                replaced += 1;
            }
        }
        replaced
    };
    if let Some(folder) = &changes.folder {
        replace(placement.folders, &|old| folder.apply(old));
    }
    if let Some(session) = &changes.session
        && replace(placement.sessions, &|old| (old == session.from).then(|| session.to.clone())) > 0
    {
        let paths = placement.forks.iter().filter_map(|field| path_in(text, field));
        edits.extend(paths.filter_map(|path| insertion(text, path, &quote(&session.from))));
    }
    edits.sort_by_key(|(at, _)| at.start);
    // Two paths may mean one field.
    edits.dedup_by(|later, first| later.0.start < first.0.end);
    if !edits.is_empty() {
        edits.extend(new_seal(text, &edits));
        edits.sort_by_key(|(at, _)| at.start);
    }
    edits
}

/// The path of a field, if this record has the type that the field belongs to.
fn path_in<'f>(record: &str, field: &'f str) -> Option<&'f str> {
    match field.split_once(": ") {
        None => Some(field),
        Some((kind, path)) => (Object::parse(record)?.peek_str("type")? == kind).then_some(path),
    }
}

/// The raw strings at a path; those in it if it is a list.
fn values_at<'r>(record: &'r str, path: &str) -> Vec<&'r str> {
    match json::value_at(record, path) {
        Some(raw) if raw.starts_with('[') => json::items(raw).unwrap_or_default(),
        raw => raw.into_iter().collect(),
    }
}

/// Where a part of a text is in it.
fn range_of(part: &str, whole: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    let range = start..start + part.len();
    (whole.get(range.clone()) == Some(part)).then_some(range)
}

/// A new field, inserted at the end of the innermost object on its path; `None` if the record has the field.
fn insertion(record: &str, path: &str, value: &str) -> Option<(Range<usize>, String)> {
    let mut object = record;
    let mut keys = path.split('.').peekable();
    while let Some(key) = keys.peek() {
        match Object::parse(object)?.peek(key) {
            None => break,
            Some(raw) => object = raw,
        }
        keys.next();
    }
    let keys: Vec<&str> = keys.collect();
    let (last, before) = keys.split_last()?;
    let open: String = before.iter().map(|key| format!("{}:{{", quote(key))).collect();
    let comma = if Object::parse(object)?.is_empty() { "" } else { "," };
    let new = format!("{comma}{open}{}:{value}{}", quote(last), "}".repeat(before.len()));
    let at = range_of(object, record)?.start + object.rfind('}')?;
    Some((at..at, new))
}

/// The new seal of a record that carries a source: the changes here are no edits of the conversation.
fn new_seal(text: &str, edits: &[(Range<usize>, String)]) -> Option<(Range<usize>, String)> {
    let raw = json::value_at(text, carry::KEY).and_then(|raw| json::value_at(raw, "seal"))?;
    let (carried, plain) = Carried::open(text)?;
    if carried.seal != carry::seal(plain.as_bytes()) {
        return None;
    }
    let (mut changed, mut from) = (String::with_capacity(text.len()), 0);
    for (at, with) in edits {
        changed.push_str(text.get(from..at.start)?);
        changed.push_str(with);
        from = at.end;
    }
    changed.push_str(text.get(from..)?);
    let (_, plain) = Carried::open(&changed)?;
    Some((range_of(raw, text)?, quote(&carry::seal(plain.as_bytes()))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Registry;
    use crate::convert::{Carry, ConversionMethod, convert};

    fn replaced(format: &str, source: &str, changes: &FieldChanges) -> (String, usize) {
        let mut out = Vec::new();
        let format = Registry::built_in().named(format).unwrap();
        let count = replace_fields(format, &mut source.as_bytes(), changes, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), count)
    }

    fn folder(from: &str, to: &str) -> FolderChange {
        FolderChange { from: Some(from.to_owned()), to: to.to_owned() }
    }

    #[test]
    fn only_the_folder_and_what_is_in_it_moves() {
        let change = folder("/work/app", "/srv/app");
        let moved = |path| change.apply(path);
        assert_eq!(moved("/work/app"), Some("/srv/app".to_owned()));
        assert_eq!(moved("/work/app/src"), Some("/srv/app/src".to_owned()));
        assert_eq!((moved("/work/application"), moved("/work"), moved("")), (None, None, None));
        assert_eq!(FolderChange { from: None, to: "/a".to_owned() }.apply("/b"), None);
    }

    #[test]
    fn the_fields_of_the_folder_change_and_no_other_byte() {
        let source = concat!(
            r#"{"type":"user", "cwd" : "\/work/app","n":1e2,"message":{"content":"cd /work/app"},"sessionId":"s"}"#,
            "\r\n\n",
            r#"{"cwd":"/work/app/src","type":"assistant"}"#,
            "\nnot JSON /work/app\n",
            r#"{"type":"user","cwd":"/other"}"#,
        );
        let changes = FieldChanges { folder: Some(folder("/work/app", "/srv/\"x")), session: None };
        let expected = source.replace(r#""\/work/app""#, r#""/srv/\"x""#).replace("/work/app/src", r#"/srv/\"x/src"#);
        assert_eq!(replaced("claude-code", source, &changes), (expected, 2));
    }

    #[test]
    fn lists_and_types_are_respected() {
        let source = concat!(
            r#"{"type":"session_meta","payload":{"id":"a","cwd":"/w","runtime_workspace_roots":["/w","/v"]}}"#,
            "\n",
            r#"{"type":"event_msg","payload":{"type":"exec_command_end","cwd":"/w","id":"a"}}"#,
            "\n",
        );
        let changes = FieldChanges { folder: Some(folder("/w", "/new")), session: None };
        let expected =
            source.replacen(r#""cwd":"/w""#, r#""cwd":"/new""#, 1).replace(r#"["/w","/v"]"#, r#"["/new","/v"]"#);
        assert_eq!(replaced("codex", source, &changes), (expected, 2));
    }

    #[test]
    fn a_fork_states_where_it_comes_from() {
        let session = Some(SessionFork { from: "a".to_owned(), to: "b".to_owned() });
        let changes = FieldChanges { folder: None, session };
        let source = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"a\"}}\n";
        let expected = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"b\",\"forked_from_id\":\"a\"}}\n";
        assert_eq!(replaced("codex", source, &changes).0, expected);
        let source = "{\"type\":\"user\",\"sessionId\":\"a\"}\n{\"type\":\"mode\",\"sessionId\":\"a\"}\n";
        let expected = "{\"type\":\"user\",\"sessionId\":\"b\",\"forkedFrom\":{\"sessionId\":\"a\"}}\n\
                        {\"type\":\"mode\",\"sessionId\":\"b\"}\n";
        assert_eq!(replaced("claude-code", source, &changes).0, expected);
    }

    #[test]
    fn a_carrying_file_that_follows_its_folder_is_not_edited() {
        let native = concat!(
            r#"{"v":1,"kind":"message","session":"s","cwd":"/w","role":"user","content":"Hello."}"#,
            "\n",
            r#"{"v":1,"kind":"message","session":"s","cwd":"/w","role":"assistant","content":"Hi."}"#,
            "\n",
        );
        let format = |name| Registry::built_in().named(name).unwrap();
        let mut there = Vec::new();
        convert(format("steno"), &mut native.as_bytes(), format("claude-code"), &mut there, Carry::Embed).unwrap();
        let there = String::from_utf8(there).unwrap();
        let changes = FieldChanges { folder: Some(folder("/w", "/srv")), session: None };
        let (moved, count) = replaced("claude-code", &there, &changes);
        assert!(count > 2 && moved.contains("\"cwd\":\"/srv\""), "{moved}");
        let mut back = Vec::new();
        let outcome =
            convert(format("claude-code"), &mut moved.as_bytes(), format("steno"), &mut back, Carry::Omit).unwrap();
        assert_eq!((outcome.method, back), (ConversionMethod::Restored, native.as_bytes().to_vec()));
    }
}
