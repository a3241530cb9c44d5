//! stub
use crate::Failure;
use std::io;
use std::path::Path;
use std::time::Duration;
#[derive(Clone, Copy)]
pub enum Order {
    Best,
    Newest,
}
pub struct Inside;
impl Inside {
    pub fn open(_home: &Path) -> Result<Inside, Failure> {
        Ok(Inside)
    }
    pub fn ask(&mut self, _text: &str, _order: Order) -> Result<Vec<Duration>, Failure> {
        Ok(vec![Duration::from_millis(1)])
    }
}
pub fn appended(
    _home: &Path,
    _tree: &Path,
    _session: &Path,
    _rounds: usize,
    _write: &mut dyn FnMut(u64) -> io::Result<String>,
) -> Result<Vec<Duration>, Failure> {
    Ok(Vec::new())
}
pub fn is_found(_home: &Path, _word: &str) -> Result<bool, Failure> {
    Ok(true)
}
