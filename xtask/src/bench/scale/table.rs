//! The table of costs at each size, with the growth of each row and the cells that exceed a limit.

use std::fmt::Write as _;

use super::commands::Patience;

/// A command and its cost at each size.
pub struct Row {
    /// The command.
    pub name: &'static str,
    pub patience: Patience,
    /// Smallest input first.
    pub cells: Vec<Cell>,
}

/// The cost of a command at one size.
pub enum Cell {
    /// It ran.
    Took {
        /// The time from start to end.
        wall_s: f64,
        /// The CPU time.
        processor_s: f64,
        /// The peak memory including mapped files.
        peak_mb: f64,
        /// The peak of the anonymous memory in the samples.
        own_mb: f64,
    },
    /// It ended with an error.
    Failed(String),
}

/// Growth above this is faster than the input. The cost of a sort or a larger index, and noise, stay below.
const GROWTH_MAX: f64 = 1.15;
/// Growth of shorter times cannot be distinguished from noise.
const GROWTH_FROM_S: f64 = 0.1;
const OWN_MB_MAX: f64 = 256.0;
const AT_ONCE_S: f64 = 1.0;

/// The table, followed by the flagged cells and rows. Each input has its extent and its size in bytes.
pub fn table(inputs: &[(u64, u64)], rows: &[Row], name: impl Fn(&(u64, u64)) -> String) -> String {
    let mut text = String::from("| seconds (CPU seconds), MB of memory |");
    for input in inputs {
        let _ = write!(text, " {} |", name(input));
    }
    text.push_str(" growth |\n|---|");
    text.push_str(&"---:|".repeat(inputs.len() + 1));
    text.push('\n');
    let mut flags = Vec::new();
    for row in rows {
        let growth = growth(inputs, &row.cells);
        let _ = write!(text, "| {} |", row.name);
        for (cell, input) in row.cells.iter().zip(inputs) {
            let problems = flagged(cell, row.patience);
            let mark = if problems.is_empty() { "" } else { "**" };
            let shown = match cell {
                Cell::Took { wall_s, processor_s, peak_mb, .. } => {
                    format!("{} ({}), {peak_mb:.0}", seconds(*wall_s), seconds(*processor_s))
                }
                Cell::Failed(_) => "failed".to_owned(),
            };
            let _ = write!(text, " {mark}{shown}{mark} |");
            flags.extend(problems.into_iter().map(|problem| format!("{}, {}: {problem}", row.name, name(input))));
        }
        let shown = growth.map_or_else(|| "-".to_owned(), |growth| format!("{growth:.2}"));
        match growth {
            Some(growth) if growth > GROWTH_MAX => {
                let _ = writeln!(text, " **{shown}** |");
                flags.push(format!("{}: grows faster than its input ({shown})", row.name));
            }
            _ => {
                let _ = writeln!(text, " {shown} |");
            }
        }
    }
    text.push('\n');
    match flags.is_empty() {
        true => text.push_str("Nothing is flagged.\n"),
        false => flags.iter().for_each(|flag| {
            let _ = writeln!(text, "- {flag}");
        }),
    }
    text
}

fn seconds(seconds: f64) -> String {
    if seconds < 0.1 { format!("{seconds:.3}") } else { format!("{seconds:.2}") }
}

/// Messages about the limits that a cell exceeds.
fn flagged(cell: &Cell, patience: Patience) -> Vec<String> {
    match cell {
        Cell::Failed(message) => vec![message.clone()],
        Cell::Took { wall_s, own_mb, .. } => {
            let mut problems = Vec::new();
            if *own_mb > OWN_MB_MAX {
                problems.push(format!("{own_mb:.0} MB of its own memory"));
            }
            if patience == Patience::AtOnce && *wall_s > AT_ONCE_S {
                problems.push(format!("{wall_s:.1} s"));
            }
            problems
        }
    }
}

/// The growth of the CPU time as a power of the input size: the largest one between two neighbouring sizes.
fn growth(inputs: &[(u64, u64)], cells: &[Cell]) -> Option<f64> {
    let mut points = inputs.iter().zip(cells).filter_map(|((_, bytes), cell)| match cell {
        Cell::Took { processor_s, .. } => Some((*bytes as f64, *processor_s)),
        Cell::Failed(_) => None,
    });
    let mut before = points.next()?;
    let mut most: Option<f64> = None;
    for point in points {
        if point.1 >= GROWTH_FROM_S && before.1 > 0.0 {
            let slope = (point.1 / before.1).ln() / (point.0 / before.0).ln();
            most = Some(most.map_or(slope, |most| most.max(slope)));
        }
        before = point;
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(processor_s: f64) -> Cell {
        Cell::Took { wall_s: processor_s, processor_s, peak_mb: 10.0, own_mb: 10.0 }
    }

    #[test]
    fn growth_is_the_power_of_the_input() {
        let inputs = [(1, 10_000_000), (2, 100_000_000), (3, 1_000_000_000)];
        let near = |cells: [Cell; 3], power: f64| (growth(&inputs, &cells).unwrap() - power).abs() < 1e-9;
        assert!(near([took(0.1), took(1.0), took(10.0)], 1.0));
        assert!(near([took(0.1), took(1.0), took(100.0)], 2.0));
        assert!(growth(&inputs, &[took(0.01), took(0.02), took(0.05)]).is_none());
    }

    #[test]
    fn what_is_over_a_limit_is_flagged_and_named() {
        let rows = [
            Row { name: "quick", patience: Patience::AtOnce, cells: vec![took(0.5), took(20.0)] },
            Row {
                name: "slow",
                patience: Patience::InProportion,
                cells: vec![took(0.5), Cell::Failed("no room".to_owned())],
            },
        ];
        let text = table(&[(1, 10), (2, 100)], &rows, |(extent, _)| extent.to_string());
        assert!(text.contains("| quick | 0.50 (0.50), 10 | **20.00 (20.00), 10** | **1.60** |"), "{text}");
        assert!(text.contains("- quick, 2: 20.0 s\n") && text.contains("- quick: grows faster"), "{text}");
        assert!(text.contains("- slow, 2: no room\n"), "{text}");
    }
}
