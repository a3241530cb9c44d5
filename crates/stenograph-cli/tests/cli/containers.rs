//! gzip and zstd are decompressed while reading; truncated, damaged and absurd ones are reported.

use std::io::Write;

use crate::runner::{Folder, NATIVE};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

#[test]
fn every_command_opens_them_by_content() {
    let (half, rest) = NATIVE.as_bytes().split_at(100);
    let folder = Folder::with("gzip", gzip(NATIVE.as_bytes()));
    folder.write("zstd", zstd(NATIVE.as_bytes()));
    folder.write("members", [gzip(half), gzip(rest)].concat());
    folder.write("frames", [zstd(half), zstd(rest)].concat());
    for name in ["gzip", "zstd", "members", "frames"] {
        folder.run(&format!("check {name} --laws")).ends(0).says("4 records");
        folder.run(&format!("show {name} --last 1")).ends(0).says("result of Bash");
        assert_eq!(folder.run(&format!("convert {name} --to steno")).ends(0).out, NATIVE.as_bytes());
        let done = folder.run_with("convert - --to steno", &folder.read(name));
        assert_eq!(done.ends(0).out, NATIVE.as_bytes());
        folder.run_with("check -", &folder.read(name)).ends(0).says("4 records");
    }
}

#[test]
fn a_truncated_container_shows_its_readable_part_and_is_an_error() {
    let many = (0..3000).map(|number| NATIVE.replace("s1", &format!("s{}", number * 7919))).collect::<String>();
    for (name, whole) in [("gzip", gzip(many.as_bytes())), ("zstd", zstd(many.as_bytes()))] {
        let folder = Folder::with("cut", &whole[..whole.len() / 2]);
        folder.run("check cut").fails(&format!("the {name} data is truncated")).says("cut: steno");
        folder.run("show cut --first 1").ends(0).says("Fix the test.");
        folder.run("convert cut --to chibi -o out").fails("is truncated");
        assert_eq!(folder.names(), ["cut"]);
        folder.run_with("check -", &whole[..whole.len() / 2]).fails("standard input");
        let done = folder.run("check cut --json");
        assert!(done.ends(2).json()[0]["error"].as_str().unwrap().contains("is truncated"));
    }
}

#[test]
fn a_damaged_container_is_an_error() {
    let folder = Folder::with("a", b"\x1f\x8b\x08\x00 this is no gzip at all, whatever it says");
    folder.run("check a").fails("the gzip data is damaged");
    folder.write("b", b"\x28\xb5\x2f\xfd this is no zstd at all, whatever it says");
    folder.run("check b").fails("the zstd data is damaged");
    folder.write("c", b"\x1f\x8b");
    folder.run("show c").fails("the gzip data is truncated");
}

#[test]
fn a_decompression_bomb_is_refused() {
    let member = gzip(&vec![b' '; 64 << 20]);
    let mut bomb = gzip(NATIVE.as_bytes());
    (0..17).for_each(|_| bomb.extend_from_slice(&member));
    assert!(bomb.len() < 2 << 20);
    let folder = Folder::with("bomb", &bomb);
    folder.run("check bomb").fails("possibly a decompression bomb").says("bomb: steno");
}
