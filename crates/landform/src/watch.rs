//! Watching a run. Watching changes nothing: whoever stops it leaves the run alone.

use std::io::IsTerminal;
use std::time::Duration;

use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use landform_api::{Accepted, Client, ClientError, Event, EventBody, Location, Run};
use landform_domain::{Code, RunId};

use crate::failure::{Exit, Failure};
use crate::show;

/// How often a broken connection is made anew before that is an error.
const RECONNECTS: u32 = 10;
/// How often somebody who waits is told what for.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// After so many looks a run that is due should be under way.
const LONG_FOR_NO_REASON: u32 = 5;

/// What is said about a write whose end nobody waits for.
pub fn accepted(accepted: &Accepted, json: bool) {
    if json {
        show::json(accepted);
    } else {
        let run = &accepted.run;
        println!("run {} ({})", run.id, show::status(run));
        match run.finished {
            true => eprintln!("{}", done_before(run)),
            false => eprintln!("watch it with: landform run watch {}", run.id),
        }
    }
}

/// Who asks for what there is gets the run that made it: its log is no news, and must not look like some.
fn done_before(run: &Run) -> String {
    let Run { id, tenant, deployment, .. } = run;
    format!("nothing is new: run {id} has done this; landform again {tenant}/{deployment} makes a further run")
}

/// Waits for the end of a run with progress on standard error, then shows the deployment's outputs.
pub async fn to_the_end(client: &Client, run: Run, json: bool) -> Result<(), Failure> {
    let run = if run.finished {
        if !json {
            eprintln!("{}", done_before(&run));
        }
        run
    } else {
        let screen = Screen::new(json);
        let run = follow(client, run.id, |event| screen.show(event), |why| screen.say(why)).await?;
        screen.clear();
        run
    };
    let location = Location { tenant: run.tenant.clone(), deployment: run.deployment.clone() };
    let outputs = match client.outputs(&location, false).await {
        Ok(outputs) => Some(outputs),
        // After a destroy there is no deployment, after a first failure there are no outputs.
        Err(ClientError::Refused(problem))
            if problem.is(Code::DeploymentUnknown) || problem.is(Code::OutputsUnknown) =>
        {
            None
        }
        Err(error) => return Err(error.into()),
    };
    // A trial has made nothing: the outputs are of what was there before.
    let outputs = outputs.filter(|_| run.succeeded() && !run.plan_only);
    if json {
        show::json(&Accepted { run: run.clone(), outputs });
    } else {
        println!("run {} {}", run.id, show::status(&run));
        show::outputs(&outputs.unwrap_or_default());
    }
    verdict(&run)
}

/// Waits for the end of a run with progress on standard error, and shows nothing of it.
pub async fn quietly(client: &Client, run: Run, json: bool) -> Result<(), Failure> {
    let screen = Screen::new(json);
    let run = follow(client, run.id, |event| screen.show(event), |why| screen.say(why)).await?;
    screen.clear();
    verdict(&run)
}

/// Shows the events of a run on standard output until it has ended.
pub async fn aloud(client: &Client, id: RunId, json: bool) -> Result<(), Failure> {
    let screen = Screen::lines(json);
    let show = |event: &Event| {
        if json {
            show::json_line(event);
        } else {
            println!("{}  {}", event.at, show::event(event));
        }
    };
    verdict(&follow(client, id, show, |why| screen.say(why)).await?)
}

/// For the person that a run waits for.
fn what_to_do(run: &Run) -> String {
    match run.status.as_str() {
        "awaiting_approval" => {
            format!("landform run plan {0} shows it; landform run approve {0}, or landform run reject {0}", run.id)
        }
        _ => format!("landform run show {0} lists the objects in doubt, landform run recover {0} answers", run.id),
    }
}

/// What the end of a run means for whoever waited for it.
fn verdict(run: &Run) -> Result<(), Failure> {
    if run.succeeded() {
        return Ok(());
    }
    let what = format!("run {} {}", run.id, show::status(run));
    if run.waits_for_a_person() {
        return Err(Failure::new(Exit::WaitsForAPerson, &run.status, what, what_to_do(run)));
    }
    match &run.problem {
        Some(problem) => {
            let detail = format!("{what}: {}", problem.detail);
            Err(Failure::new(Exit::RunFailed, &problem.code, detail, problem.hint.clone()))
        }
        None => Err(Failure::new(Exit::RunFailed, &run.status, what, "")),
    }
}

/// Hands on each event once, and what the run waits for, until it has ended or waits for a person.
async fn follow(
    client: &Client,
    id: RunId,
    mut on_event: impl FnMut(&Event),
    say: impl Fn(&str),
) -> Result<Run, Failure> {
    let watching = async {
        let mut seen = 0;
        let mut broken = 0;
        loop {
            match events(client, id, &mut seen, &mut on_event).await {
                Ok(()) => {}
                Err(ClientError::Unreachable { .. }) if broken < RECONNECTS => {
                    broken += 1;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let run = client.run(id).await?;
            if run.finished || run.waits_for_a_person() {
                return Ok(run);
            }
        }
    };
    tokio::select! {
        run = watching => run,
        failure = blocked(client, id, say) => Err(failure),
        _ = tokio::signal::ctrl_c() => Err(Failure::new(
            Exit::Interrupted,
            "interrupted",
            format!("stopped watching; run {id} goes on"),
            format!("landform run watch {id} shows it, landform run cancel {id} stops it"),
        )),
    }
}

/// Says why a run is not taken up, each time that it is something else. Ends where nothing goes on before a person has
/// answered for another run.
async fn blocked(client: &Client, id: RunId, say: impl Fn(&str)) -> Failure {
    let (mut said, mut looked) = (None, 0);
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        // Whoever reads the events is told what is wrong with the server.
        let Ok(run) = client.run(id).await else { continue };
        looked += 1;
        let Some(blocked) = run.blocked.clone() else {
            if run.status == "queued" && looked == LONG_FOR_NO_REASON {
                say("nobody takes the run up: all workers are busy, or none runs (`landform serve --role worker`)");
            }
            continue;
        };
        let other = match blocked.run {
            Some(other) => client.run(other).await.ok().filter(Run::waits_for_a_person),
            None => None,
        };
        if let Some(other) = other {
            let what = format!("run {id} {}", show::status(&run));
            return Failure::new(Exit::WaitsForAPerson, &other.status, what, what_to_do(&other));
        }
        if said.as_ref() != Some(&blocked.reason) {
            say(&show::status(&run));
            said = Some(blocked.reason);
        }
    }
}

async fn events(
    client: &Client,
    id: RunId,
    seen: &mut i64,
    on_event: &mut impl FnMut(&Event),
) -> Result<(), ClientError> {
    let mut events = client.watch(id, *seen).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        *seen = event.seq;
        on_event(&event);
    }
    Ok(())
}

/// Progress on standard error: a moving line on a terminal, plain lines elsewhere, nothing for a program.
enum Screen {
    Terminal(ProgressBar),
    Lines,
    Quiet,
}

impl Screen {
    fn new(json: bool) -> Screen {
        if json {
            return Screen::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Screen::lines(json);
        }
        let bar = ProgressBar::new_spinner();
        bar.set_style(ProgressStyle::with_template("{spinner} {elapsed} {msg}").expect("a valid template"));
        bar.enable_steady_tick(Duration::from_millis(100));
        Screen::Terminal(bar)
    }

    /// Plain lines beside what goes to standard output.
    fn lines(json: bool) -> Screen {
        if json { Screen::Quiet } else { Screen::Lines }
    }

    /// About the run itself, which no event tells.
    fn say(&self, what: &str) {
        match self {
            Screen::Terminal(bar) => bar.set_message(what.to_owned()),
            Screen::Lines => eprintln!("{what}"),
            Screen::Quiet => {}
        }
    }

    fn show(&self, event: &Event) {
        let text = match &event.body {
            // Why a run failed is said at the end.
            EventBody::Status { status, .. } => status.replace('_', " "),
            _ => show::event(event),
        };
        match self {
            Screen::Terminal(bar) => {
                bar.set_message(text.lines().next().unwrap_or_default().to_owned());
                bar.println(text);
            }
            Screen::Lines => eprintln!("{text}"),
            Screen::Quiet => {}
        }
    }

    fn clear(&self) {
        if let Screen::Terminal(bar) = self {
            bar.finish_and_clear();
        }
    }
}
