//! `steno demo`.

use std::path::Path;

use stenograph::Registry;

use crate::runner::{Folder, names};

#[test]
fn the_conversation_is_written_in_every_format_and_the_walk_holds() {
    let folder = Folder::new();
    let done = folder.run("demo");
    done.ends(0).says("  identical\n").says("$ steno show ").says("byte for byte from the source");
    assert_eq!(done.talk, "");
    assert!(done.text().lines().all(|line| line.chars().count() <= 104), "{}", done.text());
    let made = folder.names();
    let files = names(&folder.path(&made[0]));
    for format in Registry::built_in().targets() {
        let info = format.info();
        let file = files.iter().find(|file| file.starts_with(&format!("demo.{}", info.name)));
        let file = file.unwrap_or_else(|| panic!("no file of {}", info.name));
        assert!(file.ends_with(info.extension));
        let path = Path::new(&made[0]).join(file);
        let done = folder.run(&format!("check --laws --from {} {}", info.name, path.display()));
        assert!(done.code < 2 && done.text().contains("laws hold"), "{}", done.text());
    }
}
