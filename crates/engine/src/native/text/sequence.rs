//! Which elements of a sequence stay, which go and which come.

/// The places before and after of each element. What is common to both sides stays; `alike`: two others are told as one
/// that changes.
pub fn pairs<T: PartialEq>(
    before: &[T],
    after: &[T],
    alike: &dyn Fn(&T, &T) -> bool,
) -> Vec<(Option<usize>, Option<usize>)> {
    let common = in_common(before, after);
    let mut pairs = Vec::new();
    let (mut was, mut is) = (0, 0);
    for next in common.iter().map(|at| Some(&before[*at])).chain([None]) {
        let reached = |element: &T| next.is_some_and(|next| next == element);
        while was < before.len() && !reached(&before[was]) {
            if is < after.len() && alike(&before[was], &after[is]) && !reached(&after[is]) {
                pairs.push((Some(was), Some(is)));
                is += 1;
            } else {
                pairs.push((Some(was), None));
            }
            was += 1;
        }
        while is < after.len() && !reached(&after[is]) {
            if was < before.len() && alike(&before[was], &after[is]) {
                pairs.push((Some(was), Some(is)));
                was += 1;
            } else {
                pairs.push((None, Some(is)));
            }
            is += 1;
        }
        if next.is_some() {
            pairs.push((Some(was), Some(is)));
            was += 1;
            is += 1;
        }
    }
    pairs
}

/// The longest sequence that is in both, by its places before. Of several the one whose elements come last.
fn in_common<T: PartialEq>(before: &[T], after: &[T]) -> Vec<usize> {
    let width = before.len() + 1;
    let mut lengths = vec![0_usize; width * (after.len() + 1)];
    let mut same = vec![false; width * (after.len() + 1)];
    for (y, new) in after.iter().enumerate() {
        for (x, old) in before.iter().enumerate() {
            let at = width * (y + 1) + x + 1;
            same[at] = old == new;
            lengths[at] = if same[at] { lengths[at - width - 1] + 1 } else { lengths[at - 1].max(lengths[at - width]) };
        }
    }
    let (mut x, mut y) = (before.len(), after.len());
    let mut found = Vec::new();
    while x > 0 && y > 0 {
        let at = width * y + x;
        if same[at] {
            found.push(x - 1);
            (x, y) = (x - 1, y - 1);
        } else if lengths[at - 1] > lengths[at - width] {
            x -= 1;
        } else {
            y -= 1;
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::pairs;

    #[test]
    fn what_is_common_stays() {
        let told = |before: &str, after: &str, alike: bool| {
            let (before, after): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
            let name = |(was, is): (Option<usize>, Option<usize>)| match (was, is) {
                (Some(was), Some(is)) if before[was] == after[is] => format!(" {}", before[was]),
                (Some(was), Some(is)) => format!("~{}{}", before[was], after[is]),
                (Some(was), None) => format!("-{}", before[was]),
                (None, Some(is)) => format!("+{}", after[is]),
                (None, None) => String::new(),
            };
            pairs(&before, &after, &|_, _| alike).into_iter().map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("abc", "axc", false), " a -b +x  c");
        assert_eq!(told("abc", "axc", true), " a ~bx  c");
        assert_eq!(told("ab", "b", true), "-a  b");
        assert_eq!(told("a", "ba", false), "+b  a");
        assert_eq!(told("", "ab", false), "+a +b");
    }
}
