use std::collections::BTreeMap;

use super::{Kind, Next, Phase, PlanSummary, Run, Status};
use crate::recovery::{Answer, Doubt};
use crate::{Code, DriftSummary, EventBody, Problem, RunId};

/// What somebody wants of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// A worker takes the run up.
    Claim,
    /// The worker's lease ran out, or it gave the run back.
    LeaseLost,
    /// Its worker cannot begin with it, and has done nothing: it is queued as it was.
    PutBack,
    /// `effective`: applying it would change something.
    PlanMade {
        plan: PlanSummary,
        effective: bool,
        expires_at: i64,
    },
    Finish(Outcome),
    /// A drift check has looked at everything.
    Checked {
        found: DriftSummary,
    },
    /// Recovery found nothing in doubt.
    Recovered,
    /// Recovery found objects that may exist.
    InDoubt {
        doubts: Vec<Doubt>,
    },
    /// Answers per address; several calls may answer one after the other.
    Recover {
        answers: BTreeMap<String, Answer>,
        by: String,
    },
    /// What became of an object in doubt is known after all: the journal was told late.
    Learnt,
    Approve {
        by: String,
    },
    Reject {
        by: String,
        reason: String,
    },
    Expire,
    Cancel {
        by: String,
    },
    /// A newer generation was accepted.
    Supersede {
        by: RunId,
    },
}

/// How a worker's part ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Succeeded,
    Failed(Problem),
    /// It stopped at a safe point because it was asked to; the state is complete.
    Stopped,
}

/// What the store has to do besides keeping the new status, in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Raise the deployment's epoch: whoever held it can write no more.
    Fence,
    /// Give the claiming worker a lease.
    Lease,
    EndLease,
    /// The deployment is this run's: no other is claimed.
    Hold,
    Free,
    KeepPlan,
    DropPlan,
    /// Close the intent behind a doubt; an adopted object is imported by the next plan.
    Answered {
        doubt: Doubt,
        answer: Answer,
    },
    /// The deployment's applied generation is this run's.
    MarkApplied,
    /// Everything is destroyed: the deployment goes, or begins anew if a newer generation waits.
    RemoveDeployment,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    pub run: Run,
    pub events: Vec<EventBody>,
    pub actions: Vec<Action>,
}

/// The one function that decides what may become of a run. Refused commands change nothing.
pub fn step(run: &Run, command: Command) -> Result<Moved, Problem> {
    if run.status.is_final() {
        return Err(Problem::new(Code::RunFinished, format!("run {} is {}", run.id, run.status)));
    }
    match command {
        Command::Claim => claim(run),
        Command::LeaseLost => lease_lost(run),
        Command::PutBack => put_back(run),
        Command::PlanMade { plan, effective, expires_at } => plan_made(run, plan, effective, expires_at),
        Command::Finish(outcome) => finish(run, outcome),
        Command::Checked { found } => checked(run, found),
        Command::Recovered => recovered(run),
        Command::InDoubt { doubts } => in_doubt(run, doubts),
        Command::Recover { answers, by } => recover(run, answers, by),
        Command::Learnt => learnt(run),
        Command::Approve { by } => approve(run, by),
        Command::Reject { by, reason } => {
            waiting(run)?;
            Ok(moved(run, Status::Rejected { by, reason }, vec![Action::DropPlan]))
        }
        Command::Expire => {
            waiting(run)?;
            Ok(moved(run, Status::Expired, vec![Action::DropPlan]))
        }
        Command::Cancel { by } => cancel(run, by),
        Command::Supersede { by } => supersede(run, by),
    }
}

fn moved(run: &Run, status: Status, actions: Vec<Action>) -> Moved {
    let events = vec![EventBody::Status(status.clone())];
    Moved { run: Run { status, ..run.clone() }, events, actions }
}

fn illegal(run: &Run, what: &str) -> Problem {
    Problem::new(Code::MoveIllegal, format!("run {} is {}: it cannot {what}", run.id, run.status))
}

fn claim(run: &Run) -> Result<Moved, Problem> {
    let status = match run.status {
        Status::Queued(Next::Plan | Next::PlanRecovered) => Status::Planning,
        Status::Queued(Next::Apply) => Status::Applying(Phase::Running),
        Status::Applying(Phase::Interrupted) => Status::Applying(Phase::Recovering),
        _ => return Err(illegal(run, "be claimed")),
    };
    Ok(moved(run, status, vec![Action::Fence, Action::Hold, Action::Lease]))
}

fn lease_lost(run: &Run) -> Result<Moved, Problem> {
    match run.status {
        // Planning changes nothing, so it is simply done again.
        Status::Planning => {
            Ok(moved(run, Status::Queued(Next::Plan), vec![Action::Fence, Action::EndLease, Action::Free]))
        }
        Status::Applying(Phase::Running | Phase::Recovering) => {
            Ok(moved(run, Status::Applying(Phase::Interrupted), vec![Action::Fence, Action::EndLease]))
        }
        _ => Err(illegal(run, "lose a lease")),
    }
}

fn put_back(run: &Run) -> Result<Moved, Problem> {
    match run.status {
        // Nothing of the plan was applied, so it stays approved.
        Status::Applying(Phase::Running) if run.requires_approval && !run.cancel_requested => {
            Ok(moved(run, Status::Queued(Next::Apply), vec![Action::Fence, Action::EndLease, Action::Free]))
        }
        Status::Applying(Phase::Running) if run.requires_approval => {
            let actions = vec![Action::Fence, Action::DropPlan, Action::EndLease, Action::Free];
            Ok(moved(run, Status::Cancelled, actions))
        }
        Status::Planning | Status::Applying(Phase::Recovering) => lease_lost(run),
        _ => Err(illegal(run, "be put back")),
    }
}

fn plan_made(run: &Run, plan: PlanSummary, effective: bool, expires_at: i64) -> Result<Moved, Problem> {
    if run.status != Status::Planning || run.kind == Kind::Check {
        return Err(illegal(run, "take a plan"));
    }
    if run.plan_only {
        let status = if effective { Status::Planned { plan } } else { Status::Unchanged };
        return Ok(moved(run, status, vec![Action::DropPlan, Action::EndLease, Action::Free]));
    }
    if !effective {
        return Ok(moved(run, Status::Unchanged, arrived(run)));
    }
    if run.requires_approval {
        let status = Status::AwaitingApproval { plan, expires_at };
        return Ok(moved(run, status, vec![Action::KeepPlan, Action::EndLease, Action::Free]));
    }
    Ok(moved(run, Status::Applying(Phase::Running), vec![]))
}

/// The deployment is where the run was to bring it.
fn arrived(run: &Run) -> Vec<Action> {
    let mark = match run.kind {
        Kind::Apply => Some(Action::MarkApplied),
        Kind::Destroy => Some(Action::RemoveDeployment),
        Kind::Check => None,
    };
    [Action::DropPlan, Action::EndLease, Action::Free].into_iter().chain(mark).collect()
}

/// It has done what it was to do, whatever it found.
fn checked(run: &Run, found: DriftSummary) -> Result<Moved, Problem> {
    if run.status != Status::Planning || run.kind != Kind::Check {
        return Err(illegal(run, "be checked"));
    }
    let mut moved = moved(run, Status::Succeeded, vec![Action::EndLease, Action::Free]);
    moved.events.insert(0, EventBody::Drift(found));
    Ok(moved)
}

fn finish(run: &Run, outcome: Outcome) -> Result<Moved, Problem> {
    let over = vec![Action::DropPlan, Action::EndLease, Action::Free];
    match (&run.status, outcome) {
        (Status::Planning | Status::Applying(Phase::Running), Outcome::Failed(problem)) => {
            Ok(moved(run, Status::Failed(problem), over))
        }
        (Status::Applying(Phase::Running), Outcome::Succeeded) => Ok(moved(run, Status::Succeeded, arrived(run))),
        // A worker that is shutting down stops an apply too; then the rest is planned anew, and approved anew.
        (Status::Applying(Phase::Running), Outcome::Stopped) => {
            let status = if run.cancel_requested { Status::Cancelled } else { Status::Queued(Next::Plan) };
            Ok(moved(run, status, over))
        }
        (_, Outcome::Succeeded) => Err(illegal(run, "succeed")),
        (_, Outcome::Failed(_)) => Err(illegal(run, "fail")),
        (_, Outcome::Stopped) => Err(illegal(run, "stop")),
    }
}

fn recovered(run: &Run) -> Result<Moved, Problem> {
    if run.status != Status::Applying(Phase::Recovering) {
        return Err(illegal(run, "be recovered"));
    }
    if run.cancel_requested {
        return Ok(moved(run, Status::Cancelled, vec![Action::DropPlan, Action::EndLease, Action::Free]));
    }
    // The plan of the dead attempt was applied, at least in part: it is never applied again.
    Ok(moved(run, Status::Planning, vec![Action::DropPlan]))
}

fn in_doubt(run: &Run, doubts: Vec<Doubt>) -> Result<Moved, Problem> {
    if run.status != Status::Applying(Phase::Recovering) || doubts.is_empty() {
        return Err(illegal(run, "be in doubt"));
    }
    Ok(moved(run, Status::NeedsRecovery { doubts }, vec![Action::DropPlan, Action::EndLease]))
}

fn recover(run: &Run, answers: BTreeMap<String, Answer>, by: String) -> Result<Moved, Problem> {
    let Status::NeedsRecovery { doubts } = &run.status else {
        return Err(Problem::new(Code::RunNotInDoubt, format!("run {} is {}", run.id, run.status)));
    };
    if let Some(address) = answers.keys().find(|address| doubts.iter().all(|doubt| doubt.address != **address)) {
        return Err(Problem::new(Code::DoubtUnknown, format!("`{address}` is not in doubt in run {}", run.id)));
    }
    let event = |(address, answer): (&String, &Answer)| EventBody::Answered {
        address: address.clone(),
        answer: answer.clone(),
        by: by.clone(),
    };
    let mut events: Vec<EventBody> = answers.iter().map(event).collect();
    let (mut actions, mut rest) = (Vec::new(), Vec::new());
    for doubt in doubts {
        // Two entries of one address are one object: the journal was asked twice when its first answer was lost.
        match answers.get(&doubt.address) {
            Some(answer) => actions.push(Action::Answered { doubt: doubt.clone(), answer: answer.clone() }),
            None => rest.push(doubt.clone()),
        }
    }
    let status = match (rest.is_empty(), run.cancel_requested) {
        (false, _) => Status::NeedsRecovery { doubts: rest },
        (true, false) => Status::Queued(Next::PlanRecovered),
        (true, true) => {
            actions.push(Action::Free);
            Status::Cancelled
        }
    };
    events.push(EventBody::Status(status.clone()));
    Ok(Moved { run: Run { status, ..run.clone() }, events, actions })
}

/// Recovery is done once more, with the journal as it is now; what is still in doubt is asked again.
fn learnt(run: &Run) -> Result<Moved, Problem> {
    match run.status {
        Status::NeedsRecovery { .. } => Ok(moved(run, Status::Applying(Phase::Interrupted), vec![])),
        _ => Err(illegal(run, "learn what became of its objects")),
    }
}

fn waiting(run: &Run) -> Result<(), Problem> {
    match run.status {
        Status::AwaitingApproval { .. } => Ok(()),
        _ => Err(Problem::new(Code::RunNotWaiting, format!("run {} is {}", run.id, run.status))),
    }
}

fn approve(run: &Run, by: String) -> Result<Moved, Problem> {
    waiting(run)?;
    let mut moved = moved(run, Status::Queued(Next::Apply), vec![]);
    moved.events.insert(0, EventBody::Note { text: format!("approved by {by}") });
    Ok(moved)
}

/// Taken from whoever has it. Only a run with a worker fences: one that merely waits must not disturb another run of the
/// same deployment that is being applied.
fn withdrawn(run: &Run) -> Vec<Action> {
    match run.status {
        Status::Planning => vec![Action::Fence, Action::DropPlan, Action::EndLease, Action::Free],
        _ => vec![Action::DropPlan, Action::Free],
    }
}

fn cancel(run: &Run, by: String) -> Result<Moved, Problem> {
    let requested = EventBody::CancelRequested { by };
    match run.status {
        Status::Queued(_) | Status::Planning | Status::AwaitingApproval { .. } => {
            let mut moved = moved(run, Status::Cancelled, withdrawn(run));
            moved.events.insert(0, requested);
            Ok(moved)
        }
        Status::Applying(_) if run.cancel_requested => Ok(Moved { run: run.clone(), events: vec![], actions: vec![] }),
        Status::Applying(_) => {
            Ok(Moved { run: Run { cancel_requested: true, ..run.clone() }, events: vec![requested], actions: vec![] })
        }
        Status::NeedsRecovery { .. } => {
            Err(Problem::new(Code::RunInDoubt, format!("run {} may have made objects that no state has", run.id)))
        }
        _ => Err(illegal(run, "be cancelled")),
    }
}

fn supersede(run: &Run, by: RunId) -> Result<Moved, Problem> {
    match run.status {
        Status::Queued(Next::Plan | Next::Apply) | Status::Planning | Status::AwaitingApproval { .. } => {
            Ok(moved(run, Status::Superseded { by }, withdrawn(run)))
        }
        Status::Queued(Next::PlanRecovered) | Status::NeedsRecovery { .. } => {
            Err(Problem::new(Code::RunInDoubt, format!("run {} is being recovered", run.id)))
        }
        Status::Applying(_) => Err(Problem::new(Code::RunApplying, format!("run {} is applying", run.id))),
        _ => Err(illegal(run, "be superseded")),
    }
}
