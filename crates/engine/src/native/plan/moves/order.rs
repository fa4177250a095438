//! Which `moved` blocks are carried out before which others.

use super::statement::Statement;

/// For each statement the places of those that come before it.
fn before(statements: &[Statement]) -> Vec<Vec<usize>> {
    let earlier = |at: usize, one: &Statement| {
        let others = statements.iter().enumerate().filter(move |(place, _)| *place != at);
        others.filter(|(_, other)| one.comes_after(other)).map(|(place, _)| place).collect()
    };
    statements.iter().enumerate().map(|(at, one)| earlier(at, one)).collect()
}

/// All statements, each after those that it has to wait for; `None` where some wait for each other.
pub(super) fn in_order(statements: &[Statement]) -> Option<Vec<&Statement>> {
    let before = before(statements);
    let (mut ordered, mut done) = (Vec::new(), vec![false; statements.len()]);
    while ordered.len() < statements.len() {
        let ready = |at: &usize| !done[*at] && before[*at].iter().all(|earlier| done[*earlier]);
        let next = (0..statements.len()).find(ready)?;
        done[next] = true;
        ordered.push(&statements[next]);
    }
    Some(ordered)
}

/// The statements of which each has to wait for the others.
pub(super) fn circles(statements: &[Statement]) -> Vec<Vec<&Statement>> {
    let before = before(statements);
    let reached: Vec<Vec<bool>> = (0..statements.len()).map(|at| all_before(&before, at)).collect();
    let mut circles = Vec::new();
    for (at, own) in reached.iter().enumerate() {
        let together = |other: &usize| own[*other] && reached[*other][at];
        let members: Vec<usize> = (0..statements.len()).filter(together).collect();
        if members.first() == Some(&at) {
            circles.push(members.into_iter().map(|member| &statements[member]).collect());
        }
    }
    circles
}

fn all_before(before: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut reached = vec![false; before.len()];
    let mut open = before[start].clone();
    while let Some(place) = open.pop() {
        if !std::mem::replace(&mut reached[place], true) {
            open.extend(&before[place]);
        }
    }
    reached
}
