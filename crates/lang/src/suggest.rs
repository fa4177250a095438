/// ` Did you mean "NAME"?`, if one of the names is close to what was written; else nothing.
pub fn did_you_mean<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let close = names.into_iter().find(|name| distance(written, name) < 3);
    close.map(|name| format!(" Did you mean {name:?}?")).unwrap_or_default()
}

/// How many letters have to be changed, added or left out to make one of the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn two_letters_may_be_wrong() {
        assert_eq!(did_you_mean("nmae", ["size", "name"]), " Did you mean \"name\"?");
        assert_eq!(did_you_mean("inptu", ["input"]), " Did you mean \"input\"?");
        assert_eq!(did_you_mean("colour", ["name"]), "");
    }
}
