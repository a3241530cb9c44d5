//! Figures beside their goals. A goal that is missed is said as plainly as one that is met; it must not round in its own favour.

use std::time::Duration;

/// How many goals there were, and which were missed.
#[derive(Debug, Default)]
pub struct Goals {
    asked: usize,
    missed: Vec<String>,
}

impl Goals {
    /// Prints a figure that should be at most something.
    pub fn at_most(&mut self, name: &str, figure: f64, most: f64, unit: &str) {
        self.asked += 1;
        let missed = figure.is_nan() || figure > most;
        if missed {
            self.missed.push(name.to_owned());
        }
        let verdict = if missed { "MISSED" } else { "met" };
        println!("{name:<44} {figure:>10.3} {unit:<5} goal {most:.3}: {verdict}");
    }

    /// Prints a figure without a goal.
    pub fn told(name: &str, figure: f64, unit: &str) {
        println!("{name:<44} {figure:>10.3} {unit}");
    }

    /// The last line, and whether all is well.
    pub fn end(self) -> Result<(), crate::Failure> {
        println!("\n{} of {} goals met", self.asked - self.missed.len(), self.asked);
        if self.missed.is_empty() { Ok(()) } else { Err(format!("missed: {}", self.missed.join("; ")).into()) }
    }
}

/// The time that so many percent of runs took at most, in milliseconds.
pub fn percentile(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
}

/// The figure in the middle.
pub fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
