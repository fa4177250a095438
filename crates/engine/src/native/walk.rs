use std::future::Future;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use petgraph::graph::{DiGraph, NodeIndex};

/// What may run when: a graph of steps, each after those it depends on.
pub struct Steps<T> {
    graph: DiGraph<T, ()>,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Failed,
    /// Not begun: something before it failed, or the walk was halted.
    Skipped,
}

impl<T> Steps<T> {
    pub fn new() -> Steps<T> {
        Steps { graph: DiGraph::new() }
    }

    pub fn add(&mut self, step: T) -> NodeIndex {
        self.graph.add_node(step)
    }

    /// `later` begins when `earlier` has ended well. Saying so twice changes nothing.
    pub fn order(&mut self, earlier: NodeIndex, later: NodeIndex) {
        if earlier != later {
            self.graph.add_edge(earlier, later, ());
        }
    }

    /// Steps in a circle would wait for each other for ever.
    pub fn has_circle(&self) -> bool {
        petgraph::algo::toposort(&self.graph, None).is_err()
    }

    pub fn forget_order(&mut self) {
        self.graph.clear_edges();
    }

    /// Runs the steps, as many at once as the graph allows; `run` bounds what must be bounded. A failed step takes those
    /// after it with it, the others go on. While `halted` says so, nothing new begins; what runs is waited for.
    pub async fn walk<'a, F, R>(&'a self, halted: impl Fn() -> bool, run: R) -> Vec<End>
    where
        F: Future<Output = bool> + 'a,
        R: Fn(&'a T) -> F,
    {
        use petgraph::Direction::{Incoming, Outgoing};
        let mut ends = vec![None; self.graph.node_count()];
        let mut waiting: Vec<usize> =
            self.graph.node_indices().map(|node| self.graph.neighbors_directed(node, Incoming).count()).collect();
        let mut ready: Vec<NodeIndex> = self.graph.node_indices().filter(|node| waiting[node.index()] == 0).collect();
        let mut running = FuturesUnordered::new();
        loop {
            // A thread carries out several runs: one with very many steps lets the others have their turn.
            tokio::task::consume_budget().await;
            let mut ended = Vec::new();
            for node in std::mem::take(&mut ready) {
                let earlier = self.graph.neighbors_directed(node, Incoming);
                let blocked = earlier.into_iter().any(|earlier| ends[earlier.index()] != Some(End::Done));
                if blocked || halted() {
                    ended.push((node, End::Skipped));
                } else {
                    let step = run(&self.graph[node]);
                    running.push(async move { (node, if step.await { End::Done } else { End::Failed }) });
                }
            }
            if ended.is_empty() {
                match running.next().await {
                    Some(end) => ended.push(end),
                    None => break,
                }
            }
            for (node, end) in ended {
                ends[node.index()] = Some(end);
                for later in self.graph.neighbors_directed(node, Outgoing) {
                    waiting[later.index()] -= 1;
                    if waiting[later.index()] == 0 {
                        ready.push(later);
                    }
                }
            }
            ready.sort();
        }
        ends.into_iter().map(|end| end.unwrap_or(End::Skipped)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn steps() -> Steps<&'static str> {
        let mut steps = Steps::new();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| steps.add(name));
        steps.order(a, b);
        steps.order(b, c);
        steps.order(a, d);
        steps
    }

    #[tokio::test]
    async fn order_is_kept_and_failure_takes_dependents_along() {
        let (steps, order) = (steps(), RefCell::new(Vec::new()));
        let ends = steps
            .walk(
                || false,
                |name| {
                    order.borrow_mut().push(*name);
                    async move { *name != "b" }
                },
            )
            .await;
        assert_eq!(ends, [End::Done, End::Failed, End::Skipped, End::Done]);
        assert_eq!(*order.borrow(), ["a", "b", "d"]);
    }

    #[tokio::test]
    async fn a_halt_lets_nothing_new_begin() {
        let (steps, seen) = (steps(), RefCell::new(0));
        let ends = steps
            .walk(
                || *seen.borrow() > 0,
                |_| {
                    *seen.borrow_mut() += 1;
                    async { true }
                },
            )
            .await;
        assert_eq!(ends, [End::Done, End::Skipped, End::Skipped, End::Skipped]);
    }
}
