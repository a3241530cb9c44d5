//! Archives every file below a folder in a new archive and prints the cost: for choosing how pieces are cut and compressed.
//!
//! `cargo run --release -p stenograph-store --example keep -- FOLDER`

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use stenograph_store::archive::{Archive, ArchiveWriter, Label, WhichVersion};
use stenograph_store::files::Disk;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder")?;
    let mut paths = Vec::new();
    list(Path::new(&folder), &mut paths)?;
    let store = tempfile::tempdir()?;
    let began = Instant::now();
    let mut keeper = ArchiveWriter::open(Arc::new(Disk), store.path())?;
    for path in &paths {
        keeper.add(path, &Label::default())?;
    }
    keeper.commit(0)?;
    let took = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for path in &paths {
        keeper.add(path, &Label::default())?;
    }
    keeper.commit(0)?;
    let again = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let archive = Archive::open(Arc::new(Disk), store.path())?;
    let opened = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let verified = archive.verify(&mut |_| true)?;
    let verify = began.elapsed().as_secs_f64();
    let began = Instant::now();
    for copy in archive.copies() {
        io::copy(&mut archive.read(copy.id, WhichVersion::Last, 0)?, &mut io::sink())?;
    }
    let read = began.elapsed().as_secs_f64();
    let size = archive.size();
    let megabytes = size.sources as f64 / 1e6;
    println!("{} sources, {megabytes:.1} MB, {} pieces", paths.len(), verified.pieces);
    println!(
        "stored {:.1} MB, {:.4} of the sources",
        size.stored as f64 / 1e6,
        size.stored as f64 / size.sources as f64
    );
    println!("kept in {took:.2} s, {:.0} MB/s; unchanged in {:.1} ms", megabytes / took, again * 1e3);
    println!("opened in {:.2} ms", opened * 1e3);
    println!("verified in {verify:.2} s, {} damaged; read in {read:.2} s", verified.damaged.len());
    Ok(())
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        match entry.file_type()? {
            kind if kind.is_dir() => list(&entry.path(), paths)?,
            kind if kind.is_file() => paths.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}
