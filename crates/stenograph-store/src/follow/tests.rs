//! Files that grow, shrink, are renamed and rewritten while they are followed.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};

use stenograph::Registry;
use stenograph::model::Span;
use tempfile::TempDir;

use super::*;

/// What the listener received, one word each.
#[derive(Default)]
struct Heard(Vec<String>);

impl Sink for Heard {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(word(event));
    }

    fn note(&mut self, note: Note) {
        if note.kind == NoteKind::Torn {
            self.0.push("torn".to_owned());
        }
    }
}

impl Listener for Heard {
    fn file_change(&mut self, change: FollowChange) {
        self.0.push(format!("{change:?}"));
    }
}

impl Heard {
    /// The words since the last call.
    fn news(&mut self) -> Vec<String> {
        std::mem::take(&mut self.0)
    }
}

fn word(event: &Event<'_>) -> String {
    event.content().map_or("?".to_owned(), |content| content.joined().decode().into_owned())
}

fn line(text: &str) -> String {
    format!("{{\"v\":1,\"kind\":\"message\",\"role\":\"user\",\"content\":\"{text}\"}}\n")
}

fn lines(words: &[&str]) -> String {
    words.iter().map(|word| line(word)).collect()
}

fn native() -> &'static dyn Format {
    Registry::built_in().named("steno").unwrap()
}

struct Place {
    _folder: TempDir,
    path: PathBuf,
}

impl Place {
    fn with(text: impl AsRef<[u8]>) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        fs::write(&path, text).unwrap();
        Place { _folder: folder, path }
    }

    fn append(&self, text: &str) {
        OpenOptions::new().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn beside(&self) -> PathBuf {
        self.path.with_extension("jsonl.1")
    }

    /// Follows it from its last event.
    fn follow(&self) -> Follow {
        let mut follow = Follow::open(&self.path, Some(native())).unwrap();
        follow.last(1, LastLine::HoldBack, &mut |_| Some(())).unwrap();
        follow
    }
}

fn last(follow: &mut Follow, most: usize, last_line: LastLine) -> Vec<String> {
    follow.last(most, last_line, &mut |event| Some(word(event))).unwrap().events.into()
}

fn look(follow: &mut Follow, heard: &mut Heard) -> Vec<String> {
    follow.look(heard).unwrap();
    heard.news()
}

#[test]
fn the_end_of_a_huge_file_costs_what_that_of_a_small_one_costs() {
    let many: Vec<String> = (0..40_000).map(|number| line(&format!("{number}"))).collect();
    let costs = [0_u64, 100 << 30].map(|hole| {
        let place = Place::with(line("first"));
        let mut file = OpenOptions::new().write(true).open(&place.path).unwrap();
        // A hole takes no disk space, and reading through it would take minutes.
        file.seek(SeekFrom::Start(hole.max(line("first").len() as u64))).unwrap();
        file.write_all(b"\n").unwrap();
        file.write_all(many.concat().as_bytes()).unwrap();
        let mut follow = Follow::open(&place.path, Some(native())).unwrap();
        assert_eq!(last(&mut follow, 3, LastLine::HoldBack), ["39997", "39998", "39999"]);
        follow.consumed()
    });
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0] <= 80 << 10, "{costs:?}");
}

#[test]
fn more_events_cost_more_and_a_line_that_never_ends_is_given_up() {
    let many: String = (0..40_000).map(|number| line(&format!("{number}"))).collect();
    let place = Place::with(&many);
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    let found = last(&mut follow, 5000, LastLine::HoldBack);
    assert_eq!((found.len(), found[0].as_str()), (5000, "35000"));
    assert!(follow.consumed() < many.len() as u64 && follow.consumed() > 72 << 10);

    let place = Place::with(line("first"));
    let file = OpenOptions::new().write(true).open(&place.path).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    let found = follow.last(1, LastLine::HoldBack, &mut |event| Some(word(event))).unwrap();
    assert!(found.events.is_empty() && found.gave_up.is_some_and(|length| length < 1 << 27));
    assert!(follow.consumed() < 3 << 26);
}

#[test]
fn lines_have_numbers_only_where_they_were_counted() {
    let numbers = |text: &str| -> Vec<(u64, u64)> {
        let place = Place::with(text);
        let mut follow = Follow::open(&place.path, Some(native())).unwrap();
        let keep = &mut |event: &Event<'_>| event.at.map(|at| (at.line, at.offset));
        follow.last(2, LastLine::HoldBack, keep).unwrap().events.into()
    };
    let few = lines(&["a", "b", "c"]);
    let length = line("a").len() as u64;
    assert_eq!(numbers(&few), [(2, length), (3, 2 * length)]);
    let many = few.repeat(1000);
    let start = length * 2998;
    assert_eq!(numbers(&many), [(Span::LINE_UNKNOWN, start), (Span::LINE_UNKNOWN, start + length)]);
}

#[test]
fn every_window_gives_the_same_events_as_the_whole_file() {
    // Lines of many lengths, so that windows begin anywhere in them.
    let texts: Vec<String> =
        (0..600_usize).map(|number| format!("{number}-{}", "x".repeat(number * 37 % 2000))).collect();
    let place = Place::with(texts.iter().map(|text| line(text)).collect::<String>());
    for most in [0, 1, 7, 100, 599, 600, 1000] {
        let mut follow = Follow::open(&place.path, Some(native())).unwrap();
        let expected = &texts[texts.len().saturating_sub(most)..];
        assert_eq!(last(&mut follow, most, LastLine::HoldBack), expected, "{most}");
    }
}

#[test]
fn new_lines_are_given_and_half_a_line_once_it_is_complete() {
    let place = Place::with(lines(&["a", "b"]));
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    assert_eq!(last(&mut follow, 1, LastLine::HoldBack), ["b"]);
    let mut heard = Heard::default();
    assert!(look(&mut follow, &mut heard).is_empty());
    place.append(&line("c"));
    assert_eq!(look(&mut follow, &mut heard), ["c"]);
    let (begin, end) = (line("d")[..20].to_owned(), line("d")[20..].to_owned());
    place.append(&begin);
    for _ in 0..3 {
        assert!(look(&mut follow, &mut heard).is_empty());
    }
    place.append(&format!("{end}{}", line("e")));
    assert_eq!(look(&mut follow, &mut heard), ["d", "e"]);
}

#[test]
fn half_a_line_at_the_end_is_held_or_given_with_a_note() {
    let place = Place::with(format!("{}{}", line("a"), &line("b")[..20]));
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    assert_eq!(last(&mut follow, 5, LastLine::HoldBack), ["a"]);
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    let found = follow.last(5, LastLine::Include, &mut |event| Some(word(event))).unwrap();
    assert_eq!(found.events.len(), 2);
    assert_eq!(found.torn.unwrap().at.offset, line("a").len() as u64);
}

#[test]
fn a_last_line_without_a_newline_is_given_once_nothing_follows() {
    let place = Place::with(lines(&["a", "b"]).trim_end());
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    assert_eq!(last(&mut follow, 5, LastLine::HoldBack), ["a"]);
    let mut heard = Heard::default();
    assert_eq!(look(&mut follow, &mut heard), ["b"]);
    assert!(look(&mut follow, &mut heard).is_empty());
    place.append(&format!("\n{}", line("c")));
    assert_eq!(look(&mut follow, &mut heard), ["c"]);
}

#[test]
fn a_file_rewritten_at_every_message_is_followed_without_repetition() {
    let place = Place::with(lines(&["a", "b"]).trim_end());
    let mut follow = place.follow();
    let mut heard = Heard::default();
    assert_eq!(look(&mut follow, &mut heard), ["b"]);
    // Caught in the middle, then complete again.
    File::create(&place.path).unwrap();
    assert!(look(&mut follow, &mut heard).is_empty());
    fs::write(&place.path, lines(&["a", "b", "c"])).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["c"]);
    // Replaced by a rename.
    fs::write(place.beside(), lines(&["a", "b", "c", "d"])).unwrap();
    fs::rename(place.beside(), &place.path).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["d"]);
}

#[test]
fn a_file_that_became_shorter_is_given_from_its_beginning() {
    let place = Place::with(lines(&["a", "b", "c"]));
    let mut follow = place.follow();
    let mut heard = Heard::default();
    fs::write(&place.path, line("d")).unwrap();
    assert!(look(&mut follow, &mut heard).is_empty());
    assert_eq!(look(&mut follow, &mut heard), ["Truncated", "d"]);
    place.append(&line("e"));
    assert_eq!(look(&mut follow, &mut heard), ["e"]);
    // As long as before, with other content.
    fs::write(&place.path, lines(&["x", "y", "z"])).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["Rewritten", "x", "y", "z"]);
    // Empty for a while.
    File::create(&place.path).unwrap();
    assert!(look(&mut follow, &mut heard).is_empty());
    assert_eq!(look(&mut follow, &mut heard), ["Truncated"]);
    place.append(&line("f"));
    assert_eq!(look(&mut follow, &mut heard), ["f"]);
}

#[test]
fn after_a_rotation_comes_the_rest_of_the_old_file_and_then_the_new_one() {
    let place = Place::with(lines(&["a"]));
    let mut follow = place.follow();
    let mut heard = Heard::default();
    place.append(&format!("{}{}", line("b"), &line("half")[..20]));
    fs::rename(&place.path, place.beside()).unwrap();
    fs::write(&place.path, lines(&["c", "d"])).unwrap();
    let found = look(&mut follow, &mut heard);
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(
        (&found[0], &found[1], &found[3..]),
        (&"b".to_owned(), &"torn".to_owned(), &["Rotated", "c", "d"].map(String::from)[..])
    );
    place.append(&line("e"));
    assert_eq!(look(&mut follow, &mut heard), ["e"]);
}

#[test]
fn a_missing_file_is_waited_for_and_its_old_handle_is_still_read() {
    let place = Place::with(lines(&["a"]));
    let mut follow = place.follow();
    let mut heard = Heard::default();
    let mut writer = OpenOptions::new().append(true).open(&place.path).unwrap();
    fs::rename(&place.path, place.beside()).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["Gone"]);
    writer.write_all(line("b").as_bytes()).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["b"]);
    assert!(look(&mut follow, &mut heard).is_empty());
    // It comes back, with the same content and more.
    writer.write_all(line("c").as_bytes()).unwrap();
    fs::rename(place.beside(), &place.path).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["c"]);
    writer.write_all(line("d").as_bytes()).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["d"]);
    // Another file appears.
    fs::remove_file(&place.path).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["Gone"]);
    fs::write(&place.path, lines(&["e"])).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["Rotated", "e"]);
}

#[test]
fn an_empty_file_is_waited_for() {
    let place = Place::with("");
    let mut follow = Follow::open(&place.path, None).unwrap();
    let mut heard = Heard::default();
    assert!(last(&mut follow, 3, LastLine::HoldBack).is_empty());
    assert!(look(&mut follow, &mut heard).is_empty());
    place.append(&line("a")[..4]);
    assert!(look(&mut follow, &mut heard).is_empty());
    place.append(&line("a")[4..]);
    assert_eq!(look(&mut follow, &mut heard), ["a"]);
    assert_eq!(follow.format().unwrap().info().name, native().info().name);
}

#[test]
fn an_unknown_format_is_an_error_once_it_shows() {
    let place = Place::with("");
    let mut follow = Follow::open(&place.path, None).unwrap();
    place.append("what is this\n");
    assert_eq!(follow.look(&mut Heard::default()).unwrap_err().problem, Problem::NoFormat);
}

#[test]
fn compressed_files_are_read_from_their_beginning_and_again() {
    let packed = |words: &[&str]| zstd::encode_all(lines(words).as_bytes(), 3).unwrap();
    let place = Place::with(packed(&["a", "b"]));
    let mut follow = Follow::open(&place.path, Some(native())).unwrap();
    assert_eq!(last(&mut follow, 1, LastLine::HoldBack), ["b"]);
    let mut heard = Heard::default();
    assert!(look(&mut follow, &mut heard).is_empty());
    // Only half of it exists, which cannot be decoded yet.
    let more = packed(&["a", "b", "c", "c"]);
    fs::write(&place.path, &more[..more.len() - 5]).unwrap();
    assert!(look(&mut follow, &mut heard).is_empty());
    assert!(look(&mut follow, &mut heard).is_empty());
    fs::write(&place.path, &more).unwrap();
    assert!(look(&mut follow, &mut heard).is_empty(), "it is read when it is quiet");
    assert_eq!(look(&mut follow, &mut heard), ["c", "c"]);
    fs::write(&place.path, packed(&["x"])).unwrap();
    look(&mut follow, &mut heard);
    heard.news();
    fs::write(&place.path, packed(&["y"])).unwrap();
    look(&mut follow, &mut heard);
    assert_eq!(look(&mut follow, &mut heard), ["Rewritten", "y"]);
}

#[test]
fn documents_give_what_is_new_in_them() {
    let format = stenograph::formats::FORMATS
        .iter()
        .find(|format| !stenograph::frame::is_lines(format.info().framing, b"{\"a\":1}"))
        .unwrap();
    // Members of one object, each of them an event.
    let document = |names: &[&str]| -> String {
        let members = names.iter().map(|name| format!("  \"{name}\": {{\"agent_id\": \"{name}\"}}"));
        format!("{{\n{}\n}}\n", members.collect::<Vec<_>>().join(",\n"))
    };
    let place = Place::with(document(&["a", "b"]));
    let mut follow = Follow::open(&place.path, Some(*format)).unwrap();
    let found = follow.last(1, LastLine::HoldBack, &mut |event| event.id.as_ref().map(ToString::to_string)).unwrap();
    assert_eq!(found.events, ["b"]);
    fs::write(&place.path, document(&["a", "b", "c"])).unwrap();
    let mut heard = Heard::default();
    look(&mut follow, &mut heard);
    assert_eq!(look(&mut follow, &mut heard), ["?"]);
}

#[test]
fn a_change_signal_wakes_for_its_file_and_not_for_others() {
    use std::time::Duration;
    let place = Place::with(line("a"));
    let signal = ChangeSignal::over(std::slice::from_ref(&place.path));
    fs::write(place.beside(), "x").unwrap();
    fs::read(&place.path).unwrap();
    assert_eq!(signal.wait(Duration::from_millis(50)), Wake::No);
    place.append(&line("b"));
    // Some systems have no watcher to spare; then regular looks must suffice.
    if signal.wait(Duration::from_secs(5)) == Wake::Yes {
        while signal.wait(Duration::from_millis(50)) == Wake::Yes {}
        fs::rename(place.beside(), &place.path).unwrap();
        assert_eq!(signal.wait(Duration::from_secs(5)), Wake::Yes);
    }
}

#[test]
fn a_file_that_turns_out_to_have_another_format_is_given_again() {
    let place = Place::with("{\"role\":\"user\",\"content\":\"look\"}\n");
    let (mut follow, mut heard) = (Follow::open(&place.path, None).unwrap(), Heard::default());
    assert_eq!(look(&mut follow, &mut heard), ["look"]);
    let first = follow.format().unwrap().info().name;
    place.append("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"Bash\",\"input\":{}}\n");
    assert_eq!(look(&mut follow, &mut heard), ["Recognized", "look", "?"]);
    assert_ne!(follow.format().unwrap().info().name, first);
    assert!(look(&mut follow, &mut heard).is_empty());
}

/// Rotates a file as fast as possible: the old one gets another name, and for a moment no file has this one.
fn rotate(path: &Path, stop: &std::sync::atomic::AtomicBool) {
    let (next, old) = (path.with_extension("next"), path.with_extension("old"));
    let mut number = 0_u64;
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        fs::write(&next, line(&number.to_string())).unwrap();
        fs::rename(path, &old).unwrap();
        fs::rename(&next, path).unwrap();
        number += 1;
    }
}

/// Looks at a file that is rotated continuously until this number of rotations was reported. Returns everything received.
fn heard_while_rotated(rotations: usize) -> Vec<String> {
    let place = Place::with(line("begin"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    let mut heard = Heard::default();
    // A file without a name at the moment of opening cannot be followed.
    let mut follow = place.follow();
    std::thread::scope(|scope| {
        scope.spawn(|| rotate(&place.path, &stop));
        let (mut rotated, mut seen) = (0, 0);
        let died = (0..1_000_000).find_map(|_| {
            let died = follow.look(&mut heard).err();
            // Gives the rotating thread time to run.
            std::thread::sleep(std::time::Duration::from_micros(20));
            rotated += heard.0.iter().skip(seen).filter(|word| *word == "Rotated").count();
            seen = heard.0.len();
            (died.is_some() || rotated >= rotations).then_some(died)
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(died, Some(None)), "{died:?} after {} words", heard.0.len());
    });
    heard.0
}

#[test]
fn a_file_that_is_renamed_while_it_is_opened_is_still_read() {
    let heard = heard_while_rotated(200);
    // A file that was noticed is read even if it lost its name in that moment: every file has a line.
    for pair in heard.windows(2) {
        assert!(pair[0] != "Rotated" || pair[1].parse::<u64>().is_ok(), "{pair:?}");
    }
}

#[test]
fn a_half_line_that_loses_its_name_before_it_is_whole_is_read_when_it_is() {
    let place = Place::with("");
    let mut follow = Follow::open(&place.path, None).unwrap();
    let mut heard = Heard::default();
    assert!(look(&mut follow, &mut heard).is_empty());
    fs::write(&place.path, line("one")).unwrap();
    fs::rename(&place.path, place.beside()).unwrap();
    fs::write(&place.path, line("two")).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["one"]);
    assert_eq!(look(&mut follow, &mut heard), ["Rotated", "two"]);
}

#[test]
fn a_file_that_lost_its_name_before_it_was_opened_is_waited_for() {
    let place = Place::with(line("one"));
    fs::rename(&place.path, place.beside()).unwrap();
    assert!(Follow::open(&place.path, Some(native())).is_err());
    let mut follow = Follow::wait_for(&place.path, Some(Recognized::certain(native()))).unwrap();
    let mut heard = Heard::default();
    assert_eq!(look(&mut follow, &mut heard), ["Gone"]);
    fs::rename(place.beside(), &place.path).unwrap();
    assert_eq!(look(&mut follow, &mut heard), ["one"]);
}

#[test]
fn a_document_that_is_replaced_continuously_is_followed() {
    let place = Place::with(compressed("begin"));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let next = place.path.with_extension("next");
            for number in 0_u64.. {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                fs::rename(&place.path, place.beside()).unwrap();
                fs::write(&next, compressed(&number.to_string())).unwrap();
                fs::rename(&next, &place.path).unwrap();
            }
        });
        let (mut follow, mut heard) =
            (Follow::wait_for(&place.path, Some(Recognized::certain(native()))).unwrap(), Heard::default());
        let is_number = |word: &String| word.parse::<u64>().is_ok();
        let died = (0..1_000_000).find_map(|_| {
            let died = follow.look(&mut heard).err();
            // Gives the rotating thread time to run.
            std::thread::sleep(std::time::Duration::from_micros(20));
            (died.is_some() || heard.0.iter().filter(|word| is_number(word)).count() >= 20).then_some(died)
        });
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(matches!(died, Some(None)), "{died:?}, {:?}", heard.0);
        // A file that was noticed is read even if it lost its name in that moment.
        for pair in heard.0.windows(2) {
            assert!(pair[0] != "Rotated" || is_number(&pair[1]), "{pair:?}");
        }
    });
}

/// A compressed line, so that the whole file is read every time.
fn compressed(text: &str) -> Vec<u8> {
    zstd::encode_all(line(text).as_bytes(), 1).unwrap()
}
