//! What is to go wrong, on demand.

use serde::{Deserialize, Serialize};

/// One order: the next `times` calls that match go wrong in this way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The operation, or every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The account, or every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    pub kind: FaultKind,
    #[serde(default = "once")]
    pub times: u32,
}

fn once() -> u32 {
    1
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// 503 at once; nothing was done.
    Unavailable,
    /// It is done, and then the answer is 503.
    UnavailableAfter,
    /// No answer ever; nothing was done.
    Hang,
    /// It is done, and there is never an answer: what a client sees as a time-out after creating.
    HangAfter,
    /// It is done, and half of the answer arrives.
    BrokenBody,
    /// The vendor's rate-limit answer, in the form of an error in the body where it has one.
    RateLimit,
    /// The vendor's rate-limit answer as a plain 429 with Retry-After.
    TooManyRequests,
    /// It is taken up and fails later, where the vendor works with tasks; elsewhere it is refused with an error.
    FailLater,
}

#[derive(Debug, Default)]
pub struct Faults {
    orders: Vec<Fault>,
}

impl Faults {
    pub fn order(&mut self, fault: Fault) {
        if fault.times > 0 {
            self.orders.push(fault);
        }
    }

    pub fn open(&self) -> &[Fault] {
        &self.orders
    }

    pub fn clear(&mut self) {
        self.orders.clear();
    }

    /// Takes the first order that this call matches.
    pub fn take(&mut self, account: &str, operations: &[String]) -> Option<FaultKind> {
        let position = self.orders.iter().position(|fault| {
            fault.account.as_deref().is_none_or(|wanted| wanted == account)
                && fault.operation.as_ref().is_none_or(|wanted| operations.contains(wanted))
        })?;
        let fault = &mut self.orders[position];
        fault.times -= 1;
        let kind = fault.kind;
        if fault.times == 0 {
            self.orders.remove(position);
        }
        Some(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_carried_out_as_often_as_it_says() {
        let mut faults = Faults::default();
        let only = Fault { operation: Some("add".into()), account: None, kind: FaultKind::Hang, times: 2 };
        faults.order(only);
        faults.order(Fault { operation: None, account: Some("b".into()), kind: FaultKind::Unavailable, times: 1 });
        let add = ["add".to_owned()];
        let look = ["look".to_owned()];
        assert_eq!(faults.take("a", &look), None);
        assert_eq!(faults.take("a", &add), Some(FaultKind::Hang));
        assert_eq!(faults.take("b", &look), Some(FaultKind::Unavailable));
        assert_eq!(faults.take("b", &add), Some(FaultKind::Hang));
        assert_eq!(faults.take("b", &add), None);
        assert!(faults.open().is_empty());
    }
}
