//! Writes the generated tables of `docs/measurements.md`. Each table is between two markers; the text outside does not change.

use std::fs;

use crate::{Failure, tree};

const PAGE: &str = "docs/measurements.md";

/// Replaces the table of this name.
pub fn write(name: &str, table: &str) -> Result<(), Failure> {
    let path = tree::root().join(PAGE);
    let page = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
    let page =
        replaced(&page, name, table).ok_or_else(|| format!("{PAGE}: no place is marked for the table `{name}`"))?;
    fs::write(path, page)?;
    println!("wrote {PAGE}");
    Ok(())
}

fn replaced(page: &str, name: &str, table: &str) -> Option<String> {
    let [begin, end] = [format!("<!-- begin {name} -->\n"), format!("<!-- end {name} -->")];
    let from = page.find(&begin)? + begin.len();
    let to = from + page.get(from..)?.find(&end)?;
    Some(format!("{}{table}{}", page.get(..from)?, page.get(to..)?))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        assert_eq!(replaced(page, "x", "new\n").unwrap(), "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n");
        assert_eq!(replaced(page, "y", "new\n"), None);
    }
}
