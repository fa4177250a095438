use proptest::prelude::*;

use super::*;

fn window(calls: usize, millis: u64) -> Window {
    Window { calls, length: Duration::from_millis(millis) }
}

fn ask(tenant: &str, operation: &str, windows: &[Window]) -> Ask {
    Ask {
        tenant: tenant.to_owned(),
        urgency: Urgency::Person,
        operations: vec![(operation.to_owned(), windows.to_vec())],
        concurrency: None,
    }
}

/// One call as the vendor sees it: it comes at `at`, takes `out` to get there and `back` for the answer.
#[derive(Clone, Debug)]
struct Arrival {
    at: u64,
    out: u64,
    back: u64,
    tenant: u8,
    background: bool,
    both: bool,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    (0..4_000u64, 0..400u64, 0..400u64, 0..4u8, any::<bool>(), any::<bool>())
        .prop_map(|(at, out, back, tenant, background, both)| Arrival { at, out, back, tenant, background, both })
}

/// When each call of an operation arrived at a vendor that is as far away as the arrivals say.
fn play(arrivals: &[Arrival], windows: &[Window], concurrency: Option<usize>) -> (Vec<u64>, Vec<u64>, usize) {
    let start = Instant::now();
    let moment = |millis: u64| start + Duration::from_millis(millis);
    let mut account = Account::default();
    let mut tickets: HashMap<Ticket, Arrival> = HashMap::new();
    let mut ends: Vec<(u64, Ticket)> = Vec::new();
    let (mut one, mut two, mut most) = (Vec::new(), Vec::new(), 0);
    let mut coming: Vec<&Arrival> = arrivals.iter().collect();
    coming.sort_by_key(|arrival| std::cmp::Reverse(arrival.at));
    let mut now = 0;
    loop {
        ends.sort_unstable_by(|a, b| b.cmp(a));
        while ends.last().is_some_and(|(at, _)| *at <= now) {
            let (_, ticket) = ends.pop().unwrap();
            account.done(ticket, moment(now));
        }
        while coming.last().is_some_and(|arrival| arrival.at <= now) {
            let arrival = coming.pop().unwrap();
            let mut ask = ask(&arrival.tenant.to_string(), "one", windows);
            ask.concurrency = concurrency;
            ask.urgency = if arrival.background { Urgency::Background } else { Urgency::Person };
            if arrival.both {
                ask.operations.push(("two".to_owned(), vec![window(2, 300)]));
            }
            tickets.insert(account.ask(ask).unwrap(), arrival.clone());
        }
        for ticket in account.admit(moment(now)) {
            let arrival = &tickets[&ticket];
            one.push(now + arrival.out);
            if arrival.both {
                two.push(now + arrival.out);
            }
            ends.push((now + arrival.out + arrival.back, ticket));
            most = most.max(ends.len());
        }
        if coming.is_empty() && ends.is_empty() && account.waiting.is_empty() {
            assert_eq!(one.len(), arrivals.len(), "everybody was served");
            return (one, two, most);
        }
        // Nothing else can happen before the next of these, or somebody is forgotten.
        let opens = account.next_change(moment(now)).map(|opens| opens.duration_since(start).as_millis() as u64);
        let ends = ends.iter().map(|(at, _)| *at).min();
        let comes = coming.last().map(|arrival| arrival.at);
        now = [opens, ends, comes].into_iter().flatten().min().expect("somebody waits for ever").max(now + 1);
    }
}

fn never_over(arrived: &[u64], window: &Window) {
    let mut arrived = arrived.to_vec();
    arrived.sort_unstable();
    for span in arrived.windows(window.calls + 1) {
        let apart = span[window.calls] - span[0];
        assert!(apart >= window.length.as_millis() as u64, "{} calls within {apart} ms", window.calls + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever the way takes, no window at the vendor ever holds more than its number, and nobody waits for ever.
    #[test]
    fn no_window_is_ever_exceeded(
        arrivals in prop::collection::vec(arrival(), 1..60),
        small in 1..5usize,
        large in 3..12usize,
        concurrency in prop::option::of(1..4usize),
    ) {
        let windows = [window(small, 250), window(large, 2_000)];
        let (one, two, most) = play(&arrivals, &windows, concurrency);
        windows.iter().for_each(|window| never_over(&one, window));
        never_over(&two, &window(2, 300));
        prop_assert!(concurrency.is_none_or(|allowed| most <= allowed));
    }
}

#[test]
fn a_full_window_opens_when_its_oldest_call_is_old_enough() {
    let (mut account, start) = (Account::default(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let windows = [window(2, 1_000)];
    let tickets: Vec<Ticket> = (0..4).map(|_| account.ask(ask("a", "look", &windows)).unwrap()).collect();
    assert_eq!(account.admit(at(0)), tickets[..2]);
    assert_eq!(account.next_change(at(0)), None, "nobody knows when the answers come");
    account.done(tickets[0], at(100));
    assert_eq!(account.next_change(at(100)), Some(at(1_100)));
    assert_eq!(account.admit(at(1_099)), []);
    assert_eq!(account.admit(at(1_100)), [tickets[2]]);
    account.done(tickets[1], at(1_200));
    assert_eq!(account.expected_wait(tickets[3], at(1_200)), Duration::from_millis(1_000));
}

/// A call without an answer counts for longer. That must not make others count for less.
#[test]
fn silence_makes_no_room_before_its_time() {
    let (mut account, start) = (Account::default(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let tickets: Vec<Ticket> = (0..3).map(|_| account.ask(ask("a", "look", &[window(2, 1_000)])).unwrap()).collect();
    assert_eq!(account.admit(at(0)), tickets[..2]);
    account.done(tickets[0], at(50));
    // Given up at 100, and it may be on its way until 2,100.
    account.done(tickets[1], at(2_100));
    assert_eq!(account.admit(at(100)), []);
    assert_eq!(account.next_change(at(100)), Some(at(1_050)));
    assert_eq!(account.admit(at(1_049)), []);
    assert_eq!(account.admit(at(1_050)), tickets[2..]);
}

/// What was inherited is handed on, also by an owner that has not used it.
#[test]
fn what_was_inherited_is_handed_on_as_long_as_a_window_sees_it() {
    let (mut account, now) = (Account::default(), Instant::now());
    account.remember("look", now, Duration::from_secs(60));
    let later = |seconds| now + Duration::from_secs(seconds);
    assert_eq!(account.past(later(10))["look"].longest, Duration::from_secs(60));
    assert!(!account.is_idle(later(59)));
    assert!(account.past(later(60)).is_empty() && account.is_idle(later(60)));
}

#[test]
fn a_tenant_with_many_calls_waits_for_one_with_few() {
    let (mut account, now) = (Account::default(), Instant::now());
    let windows = [window(1, 1_000)];
    let first = account.ask(ask("busy", "look", &windows)).unwrap();
    assert_eq!(account.admit(now), [first]);
    let busy: Vec<Ticket> = (0..3).map(|_| account.ask(ask("busy", "look", &windows)).unwrap()).collect();
    let rare = account.ask(ask("rare", "look", &windows)).unwrap();
    let (mut served, mut now, mut last) = (Vec::new(), now, first);
    for _ in 0..4 {
        account.done(last, now);
        now += Duration::from_secs(1);
        last = account.admit(now)[0];
        served.push(last);
    }
    assert_eq!(served, [rare, busy[0], busy[1], busy[2]]);
}

#[test]
fn a_person_comes_before_a_check_and_nobody_overtakes_for_the_same_operation() {
    let (mut account, now) = (Account::default(), Instant::now());
    let windows = [window(1, 1_000)];
    let mut check = ask("a", "look", &windows);
    check.urgency = Urgency::Background;
    let check = account.ask(check).unwrap();
    let person = account.ask(ask("b", "look", &windows)).unwrap();
    let elsewhere = account.ask(ask("c", "change", &windows)).unwrap();
    assert_eq!(account.admit(now), [person, elsewhere], "another operation has a budget of its own");
    account.leave(check);
    account.done(person, now);
    assert_eq!(account.admit(now + Duration::from_secs(1)), []);
}

#[test]
fn the_vendors_refusal_closes_the_operation_and_the_call_keeps_its_place() {
    let (mut account, start) = (Account::default(), Instant::now());
    let at = |millis| start + Duration::from_millis(millis);
    let windows = [window(10, 60_000)];
    let refused = account.ask(ask("a", "look", &windows)).unwrap();
    assert_eq!(account.admit(at(0)), [refused]);
    let behind = account.ask(ask("a", "look", &windows)).unwrap();
    account.limited(refused, at(10), at(10), Some(Duration::from_millis(500)));
    assert_eq!(account.admit(at(509)), []);
    assert_eq!(account.admit(at(510)), [refused, behind]);
    // Without a word about how long: longer each time, until one gets through.
    for (now, pause) in [(1_000, 2_000), (4_000, 4_000)] {
        account.limited(refused, at(now), at(now), None);
        assert_eq!(account.admit(at(now + pause - 1)), []);
        assert_eq!(account.admit(at(now + pause)), [refused]);
    }
    account.welcome(refused);
    account.limited(refused, at(20_000), at(20_000), None);
    assert_eq!(account.admit(at(21_000)), [refused]);
}

#[test]
fn queues_are_bounded_and_one_tenant_cannot_fill_them() {
    let mut account = Account::default();
    let windows = [window(1, 1_000)];
    for _ in 0..MOST_WAITING_OF_A_TENANT {
        account.ask(ask("greedy", "look", &windows)).unwrap();
    }
    assert_eq!(account.ask(ask("greedy", "look", &windows)), Err(Full));
    for tenant in 0..MOST_WAITING - MOST_WAITING_OF_A_TENANT {
        account.ask(ask(&tenant.to_string(), "look", &windows)).unwrap();
    }
    assert_eq!(account.ask(ask("late", "look", &windows)), Err(Full));
}

#[test]
fn an_account_that_nobody_uses_is_idle_when_its_windows_are_over() {
    let (mut account, now) = (Account::default(), Instant::now());
    let ticket = account.ask(ask("a", "look", &[window(1, 1_000)])).unwrap();
    account.admit(now);
    assert!(!account.is_idle(now));
    account.done(ticket, now);
    assert!(!account.is_idle(now + Duration::from_millis(999)));
    assert!(account.is_idle(now + Duration::from_millis(1_000)));
}
