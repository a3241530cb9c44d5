//! A running viewer and its requests, as a browser sends them. It must not judge what they take.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Failure;
use crate::bench::process::figure;

/// A viewer that runs until it is dropped.
pub struct Viewer {
    child: Child,
    address: String,
    token: String,
    /// The server ends if nobody reads what it prints.
    _out: BufReader<ChildStdout>,
}

/// The memory of a process so far, in MB.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// The anonymous memory now.
    pub own: f64,
    /// The peak, with mapped files.
    pub peak: f64,
}

impl Viewer {
    /// Starts `steno serve` over the sessions and the store of a home folder, as a user does.
    pub fn start(steno: &Path, home: &Path) -> Result<Viewer, Failure> {
        let mut command = Command::new(steno);
        command.args(["serve", "--json"]).env("HOME", home).env("STENO_HOME", home.join("store")).env("TZ", "UTC");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().ok_or("the server has no output")?);
        let mut line = String::new();
        out.read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line)?;
        let text = |key: &str| said.get(key).and_then(Value::as_str).map(str::to_owned).unwrap_or_default();
        let address = text("listening").replace("http://", "");
        Ok(Viewer { child, address, token: text("token"), _out: out })
    }

    fn request(&self, path: &str) -> Result<TcpStream, Failure> {
        let mut stream = TcpStream::connect(&self.address)?;
        let Viewer { address, token, .. } = self;
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        Ok(stream)
    }

    /// Asks for a page, and returns it with the time until its last byte arrived.
    pub fn get(&self, path: &str) -> Result<(String, Duration), Failure> {
        let start = Instant::now();
        let mut answer = Vec::new();
        self.request(path)?.read_to_end(&mut answer)?;
        let took = start.elapsed();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        match answer.starts_with("HTTP/1.1 200 ") {
            true => Ok((answer, took)),
            false => Err(format!("{path}: {}", answer.lines().next().unwrap_or("no answer")).into()),
        }
    }

    /// Opens a stream of changes, as an open page does. It ends when it is dropped.
    pub fn follow(&self, path: &str) -> Result<TcpStream, Failure> {
        let mut stream = self.request(path)?;
        let mut begun = [0; 1];
        stream.read_exact(&mut begun)?;
        Ok(stream)
    }

    pub fn memory(&self) -> Result<Memory, Failure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let megabytes = |name: &str| figure(&status, name) as f64 / 1e3;
        Ok(Memory { own: megabytes("RssAnon:"), peak: megabytes("VmHWM:") })
    }

    /// The CPU time of all threads so far.
    pub fn cpu_time(&self) -> Result<Duration, Failure> {
        let mut nanoseconds = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
            nanoseconds += times.split(' ').next().and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
