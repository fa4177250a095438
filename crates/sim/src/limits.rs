//! Rate limits as vendors publish them: at most so many calls in any window of so many seconds, for each account and
//! operation. Counting is exact (a log of admitted calls, not a bucket), because a test must be able to say that not
//! one call was over.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub calls: usize,
    pub length: Duration,
}

impl Window {
    pub const fn per_minutes(calls: usize, minutes: u64) -> Self {
        Self { calls, length: Duration::from_secs(60 * minutes) }
    }

    pub const fn per_seconds(calls: usize, seconds: u64) -> Self {
        Self { calls, length: Duration::from_secs(seconds) }
    }
}

/// The windows of each operation, and those of every operation that has none of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    operations: BTreeMap<String, Vec<Window>>,
    others: Vec<Window>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "these are no limits: {0}; they look like {{\"entityLookup\": [[30, 60], [1500, 18000]], \"*\": [[120, 60]]}}, calls and seconds"
)]
pub struct LimitsError(String);

impl Limits {
    pub fn none() -> Self {
        Self::default()
    }

    pub fn others(windows: &[Window]) -> Self {
        Self { operations: BTreeMap::new(), others: windows.to_vec() }
    }

    pub fn operation(mut self, operation: &str, windows: &[Window]) -> Self {
        self.operations.insert(operation.to_owned(), windows.to_vec());
        self
    }

    /// Reads `{"OPERATION": [[CALLS, SECONDS], …], "*": …}`.
    pub fn from_json(text: &str) -> Result<Self, LimitsError> {
        let wrong = |what: &str| LimitsError(what.to_owned());
        let value: Value = serde_json::from_str(text).map_err(|error| LimitsError(error.to_string()))?;
        let mut limits = Self::none();
        for (operation, windows) in value.as_object().ok_or_else(|| wrong("not an object"))? {
            let windows = windows.as_array().ok_or_else(|| wrong("windows are not a list"))?;
            let windows = windows.iter().map(window).collect::<Option<Vec<_>>>();
            let windows = windows.ok_or_else(|| wrong("a window is not a pair of whole numbers above zero"))?;
            match operation.as_str() {
                "*" => limits.others = windows,
                _ => drop(limits.operations.insert(operation.clone(), windows)),
            }
        }
        Ok(limits)
    }

    fn windows(&self, operation: &str) -> &[Window] {
        self.operations.get(operation).unwrap_or(&self.others)
    }
}

fn window(value: &Value) -> Option<Window> {
    let [calls, seconds] = value.as_array()?.as_slice() else { return None };
    let calls = usize::try_from(calls.as_u64()?).ok()?;
    let seconds = seconds.as_u64()?;
    (calls > 0 && seconds > 0).then_some(Window::per_seconds(calls, seconds))
}

/// What has been admitted so far.
#[derive(Debug)]
pub struct Meter {
    limits: Limits,
    admitted: HashMap<(String, String), VecDeque<Instant>>,
}

impl Meter {
    pub fn new(limits: Limits) -> Self {
        Self { limits, admitted: HashMap::new() }
    }

    pub fn reset(&mut self) {
        self.admitted.clear();
    }

    /// Counts one call of each of these operations, or none of them: then the answer is the first operation that is over
    /// its limit, and the time after which it would be admitted.
    pub fn admit(&mut self, account: &str, operations: &[String], now: Instant) -> Result<(), (String, Duration)> {
        for operation in operations {
            let windows = self.limits.windows(operation);
            let Some(longest) = windows.iter().map(|window| window.length).max() else { continue };
            let key = (account.to_owned(), operation.clone());
            let calls = self.admitted.entry(key).or_default();
            while calls.front().is_some_and(|call| now.duration_since(*call) >= longest) {
                calls.pop_front();
            }
            let wait = windows.iter().filter_map(|window| wait_for(window, calls, now)).max();
            if let Some(wait) = wait {
                return Err((operation.clone(), wait));
            }
        }
        for operation in operations {
            if !self.limits.windows(operation).is_empty() {
                let key = (account.to_owned(), operation.clone());
                self.admitted.entry(key).or_default().push_back(now);
            }
        }
        Ok(())
    }
}

/// How long until this window has room for one more call; nothing if it has.
fn wait_for(window: &Window, calls: &VecDeque<Instant>, now: Instant) -> Option<Duration> {
    let oldest_that_counts = calls.len().checked_sub(window.calls)?;
    let age = now.duration_since(calls[oldest_that_counts]);
    (age < window.length).then(|| window.length - age)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn no_window_ever_holds_more_than_its_number() {
        let windows = [Window::per_seconds(3, 10), Window::per_seconds(5, 60)];
        let mut meter = Meter::new(Limits::none().operation("look", &windows));
        let start = Instant::now();
        let mut admitted = Vec::new();
        for second in 0..120 {
            let now = start + Duration::from_secs(second);
            if meter.admit("a", &operations(&["look"]), now).is_ok() {
                admitted.push(second);
            }
        }
        for window in &windows {
            for (first, at) in admitted.iter().enumerate() {
                let inside = admitted[first..].iter().filter(|&&other| other - at < window.length.as_secs());
                assert!(inside.count() <= window.calls);
            }
        }
        assert_eq!(admitted, [0, 1, 2, 10, 11, 60, 61, 62, 70, 71]);
    }

    #[test]
    fn accounts_and_operations_do_not_share() {
        let mut meter = Meter::new(Limits::others(&[Window::per_minutes(1, 1)]));
        let now = Instant::now();
        assert!(meter.admit("a", &operations(&["x"]), now).is_ok());
        assert!(meter.admit("b", &operations(&["x"]), now).is_ok());
        assert!(meter.admit("a", &operations(&["y"]), now).is_ok());
        let (operation, wait) = meter.admit("a", &operations(&["z", "x"]), now).expect_err("x is used up");
        assert_eq!((operation.as_str(), wait), ("x", Duration::from_secs(60)));
        assert!(meter.admit("a", &operations(&["z"]), now).is_ok(), "a refused call counts for none of its operations");
    }

    #[test]
    fn limits_are_read_from_json() {
        let limits = Limits::from_json(r#"{"look": [[30, 60], [1500, 18000]], "*": [[120, 60]]}"#).expect("limits");
        assert_eq!(limits.windows("look"), [Window::per_minutes(30, 1), Window::per_minutes(1500, 300)]);
        assert_eq!(limits.windows("else"), [Window::per_minutes(120, 1)]);
        for wrong in ["[]", r#"{"look": [30, 60]}"#, r#"{"look": [[0, 60]]}"#, r#"{"look": [[1.5, 60]]}"#, "{"] {
            assert!(Limits::from_json(wrong).is_err(), "{wrong}");
        }
    }
}
