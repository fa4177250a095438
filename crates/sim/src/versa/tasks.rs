//! Work that the vendor takes up and finishes later. What a task does is done when it ends, not when it is asked for.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Refusal;

#[derive(Debug)]
pub struct Tasks {
    length: Duration,
    last: u64,
    tasks: BTreeMap<u64, Task>,
}

#[derive(Debug)]
struct Task {
    name: String,
    ends: Instant,
    fails: bool,
    /// What is deployed when it ends well, until that was done.
    work: Option<Work>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    DeployDevice(String),
    ApplyTemplate(String),
}

impl Tasks {
    pub fn new(length: Duration) -> Self {
        Self { length, last: 0, tasks: BTreeMap::new() }
    }

    pub fn begin(&mut self, name: &str, work: Work, fails: bool) -> Value {
        self.last += 1;
        let task = Task { name: name.to_owned(), ends: Instant::now() + self.length, fails, work: Some(work) };
        self.tasks.insert(self.last, task);
        let id = self.last.to_string();
        json!({"TaskResponse": {"task-id": id, "link": {"rel": "task", "href": format!("/vnms/tasks/task/{id}")}}})
    }

    /// The work of all tasks that have ended well since this was last asked, in the order of their beginning.
    pub fn finished(&mut self, now: Instant) -> Vec<Work> {
        let over = self.tasks.values_mut().filter(|task| !task.fails && task.ends <= now);
        over.filter_map(|task| task.work.take()).collect()
    }

    pub fn read(&self, id: &str, now: Instant) -> Result<Value, Refusal> {
        let number = id.parse::<u64>().ok();
        let task = number.and_then(|number| self.tasks.get(&number)).ok_or_else(|| Refusal::missing("task", id))?;
        let (status, done, message) = match (task.ends <= now, task.fails) {
            (false, _) => ("IN_PROGRESS", 50, "working on it"),
            (true, false) => ("COMPLETED", 100, "done"),
            (true, true) => ("FAILED", 100, "the appliance did not answer"),
        };
        Ok(json!({"versa-tasks.task": {"versa-tasks.id": id, "versa-tasks.task-name": task.name,
            "versa-tasks.task-status": status, "versa-tasks.percentage-completion": done,
            "versa-tasks.progressmessages": {"versa-tasks.progressmessage": [{"versa-tasks.message": message}]}}}))
    }
}
