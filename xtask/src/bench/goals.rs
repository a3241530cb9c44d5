//! Prints figures with their goals, missed or met. It must not round a figure in favour of its goal.

use std::time::Duration;

/// The number of goals so far, and the missed ones.
#[derive(Debug, Default)]
pub struct Goals {
    checked: usize,
    missed: Vec<String>,
}

impl Goals {
    /// Prints a figure whose goal is a maximum.
    pub fn at_most(&mut self, name: &str, figure: f64, most: f64, unit: &str) {
        self.checked += 1;
        let missed = figure.is_nan() || figure > most;
        if missed {
            self.missed.push(name.to_owned());
        }
        let verdict = if missed { "MISSED" } else { "met" };
        println!("{name:<44} {figure:>10.3} {unit:<5} goal {most:.3}: {verdict}");
    }

    /// Prints a figure without a goal.
    pub fn print(name: &str, figure: f64, unit: &str) {
        println!("{name:<44} {figure:>10.3} {unit}");
    }

    /// Prints the summary, and fails if a goal was missed.
    pub fn end(self) -> Result<(), crate::Failure> {
        println!("\n{} of {} goals met", self.checked - self.missed.len(), self.checked);
        if self.missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", self.missed.join("; ")).into()) }
    }
}

/// The percentile of the times, in milliseconds.
pub fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The median.
pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
