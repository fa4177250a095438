//! The machine against a model that is written down another way: a table of words, and the promises as counters.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::recovery::Answer;
use crate::{Code, DriftSummary, EventBody, Problem};

fn id(n: u8) -> RunId {
    RunId::from_parts(u64::from(n), &[n; 10])
}

fn run(requires_approval: bool, kind: Kind) -> Run {
    Run {
        id: id(1),
        kind,
        generation: 1,
        requires_approval,
        plan_only: false,
        cancel_requested: false,
        status: Status::Queued(Next::Plan),
    }
}

fn doubts(n: usize) -> Vec<Doubt> {
    (0..n).map(|i| Doubt { intent: i as i64, address: format!("thing.a{i}"), type_name: "thing".into() }).collect()
}

fn plan_made(effective: bool) -> Command {
    Command::PlanMade { plan: PlanSummary::default(), effective, expires_at: 9 }
}

fn recover(count: usize, answer: Answer) -> Command {
    let answers = (0..count).map(|i| (format!("thing.a{i}"), answer.clone())).collect();
    Command::Recover { answers, by: "eve".into() }
}

fn commands() -> impl Strategy<Value = Command> {
    let by = || "eve".to_string();
    prop_oneof![
        4 => Just(Command::Claim),
        2 => Just(Command::LeaseLost),
        1 => Just(Command::PutBack),
        4 => any::<bool>().prop_map(plan_made),
        2 => Just(Command::Finish(Outcome::Succeeded)),
        1 => Just(Command::Finish(Outcome::Failed(Problem::new(Code::ApplyFailed, "no")))),
        1 => Just(Command::Finish(Outcome::Stopped)),
        2 => Just(Command::Recovered),
        2 => (1usize..3).prop_map(|n| Command::InDoubt { doubts: doubts(n) }),
        2 => (0usize..3).prop_map(|n| recover(n, Answer::Absent)),
        3 => Just(Command::Approve { by: by() }),
        1 => Just(Command::Reject { by: by(), reason: "no".into() }),
        1 => Just(Command::Expire),
        1 => Just(Command::Cancel { by: by() }),
        1 => Just(Command::Supersede { by: id(2) }),
    ]
}

/// A status as the model sees it.
fn word(status: &Status) -> &'static str {
    match status {
        Status::Queued(Next::Plan) => "queued",
        Status::Queued(Next::Apply) => "approved",
        Status::Queued(Next::PlanRecovered) => "requeued",
        Status::Applying(Phase::Running) => "applying",
        Status::Applying(Phase::Interrupted) => "interrupted",
        Status::Applying(Phase::Recovering) => "recovering",
        other => other.word(),
    }
}

/// Where a command may lead, one line per pair; pairs that are missing are refused.
fn model(run: &Run, command: &Command) -> Option<&'static str> {
    let cancelling = run.cancel_requested;
    Some(match (word(&run.status), command) {
        ("queued" | "requeued", Command::Claim) => "planning",
        ("approved", Command::Claim) => "applying",
        ("interrupted", Command::Claim) => "recovering",
        ("planning", Command::LeaseLost | Command::PutBack) => "queued",
        ("applying", Command::PutBack) if run.requires_approval && cancelling => "cancelled",
        ("applying", Command::PutBack) if run.requires_approval => "approved",
        ("applying" | "recovering", Command::LeaseLost) | ("recovering", Command::PutBack) => "interrupted",
        ("planning", Command::PlanMade { effective: false, .. }) => "unchanged",
        ("planning", Command::PlanMade { .. }) if run.requires_approval => "awaiting_approval",
        ("planning", Command::PlanMade { .. }) => "applying",
        ("planning" | "applying", Command::Finish(Outcome::Failed(_))) => "failed",
        ("applying", Command::Finish(Outcome::Succeeded)) => "succeeded",
        ("applying", Command::Finish(Outcome::Stopped)) => {
            if cancelling {
                "cancelled"
            } else {
                "queued"
            }
        }
        ("recovering", Command::Recovered) => {
            if cancelling {
                "cancelled"
            } else {
                "planning"
            }
        }
        ("recovering", Command::InDoubt { .. }) => "needs_recovery",
        ("needs_recovery", Command::Recover { answers, .. }) => {
            let Status::NeedsRecovery { doubts } = &run.status else { unreachable!() };
            if answers.keys().any(|address| doubts.iter().all(|doubt| doubt.address != *address)) {
                return None;
            }
            match answers.len() == doubts.len() {
                false => "needs_recovery",
                true if cancelling => "cancelled",
                true => "requeued",
            }
        }
        ("awaiting_approval", Command::Approve { .. }) => "approved",
        ("awaiting_approval", Command::Reject { .. }) => "rejected",
        ("awaiting_approval", Command::Expire) => "expired",
        ("queued" | "approved" | "requeued" | "planning" | "awaiting_approval", Command::Cancel { .. }) => "cancelled",
        (same @ ("applying" | "interrupted" | "recovering"), Command::Cancel { .. }) => same,
        ("queued" | "approved" | "planning" | "awaiting_approval", Command::Supersede { .. }) => "superseded",
        _ => return None,
    })
}

/// What the store would hold besides the run.
#[derive(Default)]
struct World {
    held: bool,
    leased: bool,
    epoch: u32,
    plan_kept: bool,
}

impl World {
    fn perform(&mut self, actions: &[Action]) {
        for action in actions {
            match action {
                Action::Fence => self.epoch += 1,
                Action::Lease => self.leased = true,
                Action::EndLease => self.leased = false,
                Action::Hold => self.held = true,
                Action::Free => self.held = false,
                Action::KeepPlan => self.plan_kept = true,
                Action::DropPlan => self.plan_kept = false,
                Action::Answered { .. } | Action::MarkApplied | Action::RemoveDeployment => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn moves_as_the_model_says(
        approval: bool,
        destroy: bool,
        commands in prop::collection::vec(commands(), 1..40),
    ) {
        let mut run = run(approval, if destroy { Kind::Destroy } else { Kind::Apply });
        let mut world = World::default();
        let (mut plans_made, mut plans_applied) = (0, 0);
        for command in commands {
            let expected = model(&run, &command);
            let before = run.clone();
            let Ok(moved) = step(&run, command.clone()) else {
                prop_assert_eq!(expected, None, "{:?} refused {:?}", before.status, command);
                continue;
            };
            prop_assert!(!before.status.is_final(), "left {:?} by {:?}", before.status, command);
            prop_assert_eq!(Some(word(&moved.run.status)), expected, "{:?} on {:?}", before.status, command);
            let epoch = world.epoch;
            world.perform(&moved.actions);
            run = moved.run;

            // Who puts an approved plan back has not begun with it.
            plans_applied -= u32::from(command == Command::PutBack && word(&before.status) == "applying");
            // A plan is applied at most once, and with approval only one that was approved.
            plans_made += u32::from(matches!(command, Command::PlanMade { effective: true, .. }));
            if word(&run.status) == "applying" && word(&before.status) != "applying" {
                plans_applied += 1;
                prop_assert!(plans_applied <= plans_made);
                prop_assert!(!approval || word(&before.status) == "approved");
            }
            // Who works holds deployment and lease; who does not work holds no lease.
            let works = matches!(word(&run.status), "planning" | "applying" | "recovering");
            prop_assert_eq!(world.leased, works);
            let holds = works || matches!(word(&run.status), "interrupted" | "needs_recovery" | "requeued");
            prop_assert_eq!(world.held, holds);
            // A worker that loses its run against its will is fenced, and so is every earlier one by a claim.
            let worked = matches!(word(&before.status), "planning" | "applying" | "recovering");
            let takes = matches!(
                command,
                Command::LeaseLost | Command::PutBack | Command::Cancel { .. } | Command::Supersede { .. }
            );
            let taken = takes && worked && word(&before.status) != word(&run.status);
            // A run that only waited fences nobody: another run of the deployment may be applying.
            prop_assert_eq!(world.epoch > epoch, taken || command == Command::Claim, "{:?}", command);
            prop_assert!(worked || !moved.actions.contains(&Action::EndLease), "{:?}", command);
            // Plan bytes are kept exactly while somebody may still apply them.
            let waits = matches!(word(&run.status), "awaiting_approval" | "approved");
            prop_assert!(world.plan_kept || !waits);
            prop_assert!(!world.plan_kept || waits || matches!(word(&run.status), "applying" | "interrupted" | "recovering"));
        }
    }
}

fn after(commands: Vec<Command>, requires_approval: bool) -> Run {
    commands.into_iter().fold(run(requires_approval, Kind::Apply), |run, command| step(&run, command).unwrap().run)
}

#[test]
fn approval_ends_one_way_only() {
    let waiting = after(vec![Command::Claim, plan_made(true)], true);
    let by = || "eve".to_string();
    let decisions = [Command::Approve { by: by() }, Command::Reject { by: by(), reason: "no".into() }, Command::Expire];
    for first in &decisions {
        let decided = step(&waiting, first.clone()).unwrap().run;
        for second in &decisions {
            assert!(step(&decided, second.clone()).is_err(), "{first:?}, then {second:?}");
        }
    }
}

#[test]
fn a_newer_generation_never_touches_an_apply() {
    let applying = after(vec![Command::Claim, plan_made(true)], false);
    assert_eq!(step(&applying, Command::Supersede { by: id(2) }).unwrap_err().code, Code::RunApplying);
    let interrupted = step(&applying, Command::LeaseLost).unwrap().run;
    assert_eq!(step(&interrupted, Command::Supersede { by: id(2) }).unwrap_err().code, Code::RunApplying);
}

#[test]
fn doubts_are_answered_one_by_one_and_then_planned_first() {
    let doubted = after(
        vec![
            Command::Claim,
            plan_made(true),
            Command::LeaseLost,
            Command::Claim,
            Command::InDoubt { doubts: doubts(2) },
        ],
        false,
    );
    let answer = |address: &str, answer| Command::Recover {
        answers: BTreeMap::from([(address.to_string(), answer)]),
        by: "eve".into(),
    };
    assert_eq!(step(&doubted, answer("thing.x", Answer::Retry)).unwrap_err().code, Code::DoubtUnknown);
    assert_eq!(step(&doubted, Command::Cancel { by: "eve".into() }).unwrap_err().code, Code::RunInDoubt);
    let half = step(&doubted, answer("thing.a0", Answer::Adopt("i-1".into()))).unwrap();
    assert_eq!(half.run.status, Status::NeedsRecovery { doubts: doubts(2)[1..].to_vec() });
    assert!(matches!(&half.actions[..], [Action::Answered { answer: Answer::Adopt(id), .. }] if id == "i-1"));
    let whole = step(&half.run, answer("thing.a1", Answer::Absent)).unwrap().run;
    assert_eq!(whole.status, Status::Queued(Next::PlanRecovered));
    assert!(step(&whole, Command::Supersede { by: id(2) }).is_err());
}

#[test]
fn one_answer_is_for_all_entries_of_an_object() {
    let twice: Vec<Doubt> = (1..3).map(|intent| Doubt { intent, ..doubts(1)[0].clone() }).collect();
    let path = vec![Command::Claim, plan_made(true), Command::LeaseLost, Command::Claim];
    let doubted = step(&after(path, false), Command::InDoubt { doubts: twice }).unwrap().run;
    let moved = step(&doubted, recover(1, Answer::Absent)).unwrap();
    assert_eq!(moved.run.status, Status::Queued(Next::PlanRecovered));
    assert_eq!(moved.actions.len(), 2, "both intents are closed");
}

#[test]
fn a_status_survives_json() {
    let statuses = [
        Status::Queued(Next::Apply),
        Status::Planning,
        Status::AwaitingApproval { plan: PlanSummary::default(), expires_at: 1 << 60 },
        Status::NeedsRecovery { doubts: doubts(1) },
        Status::Failed(Problem::new(Code::PlanStale, "x")),
        Status::Superseded { by: id(3) },
    ];
    for status in statuses {
        let text = serde_json::to_string(&status).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), status, "{text}");
    }
}

#[test]
fn the_list_of_words_is_complete() {
    let all = [
        Status::Queued(Next::Plan),
        Status::Planning,
        Status::AwaitingApproval { plan: PlanSummary::default(), expires_at: 0 },
        Status::Applying(Phase::Running),
        Status::NeedsRecovery { doubts: Vec::new() },
        Status::Planned { plan: PlanSummary::default() },
        Status::Succeeded,
        Status::Unchanged,
        Status::Failed(Problem::new(Code::Internal, "")),
        Status::Cancelled,
        Status::Rejected { by: String::new(), reason: String::new() },
        Status::Expired,
        Status::Superseded { by: id(2) },
    ];
    assert_eq!(all.map(|status| status.word()), Status::WORDS);
}

#[test]
fn a_trial_ends_with_its_plan_and_arrives_nowhere() {
    let trial = Run { plan_only: true, ..run(true, Kind::Apply) };
    let claimed = step(&trial, Command::Claim).unwrap().run;
    for effective in [true, false] {
        let made = Command::PlanMade { plan: PlanSummary::default(), effective, expires_at: 1 };
        let moved = step(&claimed, made).unwrap();
        assert!(moved.run.status.is_final() && moved.run.status.is_success());
        assert_eq!(moved.run.status.word(), if effective { "planned" } else { "unchanged" });
        assert!(!moved.actions.contains(&Action::MarkApplied) && !moved.actions.contains(&Action::KeepPlan));
    }
}

#[test]
fn a_drift_check_changes_nothing_and_gives_way() {
    let check = Run { plan_only: true, ..run(false, Kind::Check) };
    let found = DriftSummary { changed: 1, gone: 2 };
    assert!(step(&check, Command::Checked { found }).is_err(), "nobody has looked yet");
    let claimed = step(&check, Command::Claim).unwrap().run;
    assert!(step(&claimed, plan_made(true)).is_err() && step(&claimed, plan_made(false)).is_err());
    let moved = step(&claimed, Command::Checked { found }).unwrap();
    assert_eq!(moved.run.status, Status::Succeeded);
    assert_eq!(moved.actions, [Action::EndLease, Action::Free]);
    assert_eq!(moved.events, [EventBody::Drift(found), EventBody::Status(Status::Succeeded)]);
    for waiting in [&check, &claimed] {
        let by = id(2);
        assert_eq!(step(waiting, Command::Supersede { by }).unwrap().run.status, Status::Superseded { by });
    }
    let applying = after(vec![Command::Claim], false);
    assert!(step(&applying, Command::Checked { found }).is_err(), "only a check is checked");
    assert!(Kind::Check.urgency() < Kind::Apply.urgency());
}
