//! What the engine adds to the time that the provider takes for itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use async_trait::async_trait;
use landform_cty::Value;
use landform_engine::Diagnostic;
use landform_engine::native::{Located, Providers, Requirement};
use landform_protocol::*;
use landform_runner::known::KnownProviders;
use landform_testkit::figures::Times;
use landform_testkit::parts;

use crate::Figure;
use crate::stage::{Desk, providers};

const RUNS: usize = 100;

const FIVE: &str = r#"
terraform {
  required_providers {
    time = {
      source = "hashicorp/time"
    }
  }
}

variable "event" {
  type = string
}

resource "time_static" "first" {
  triggers = {
    event = var.event
  }
}

resource "time_static" "others" {
  count = 4
  triggers = {
    event = time_static.first.rfc3339
    index = count.index
  }
}

output "all" {
  value = time_static.others[*].rfc3339
}
"#;

pub async fn measure() -> Result<Vec<Figure>> {
    eprintln!("measuring what the engine adds …");
    let watch = Arc::new(Watch::default());
    let inner = providers(&parts::mirror(), KnownProviders::listed());
    let desk = Desk::new(Arc::new(Watched { inner, watch: watch.clone() }), FIVE)?;
    desk.run("0").await?;
    let (mut added, mut whole) = (Vec::new(), Vec::new());
    for number in 1..=RUNS {
        watch.reset();
        let begin = Instant::now();
        desk.run(&number.to_string()).await?;
        let time = begin.elapsed();
        whole.push(time);
        added.push(time.saturating_sub(watch.busy()));
    }
    let (added, whole) = (Times::new(added).percentile(0.5), Times::new(whole).percentile(0.5));
    Ok(vec![Figure {
        what: "what the engine adds to the provider's own time, 5 objects".to_owned(),
        measured: format!("p50 {added:.1} ms of {whole:.1} ms, journal and state flushed"),
        goal: "< 5 ms".to_owned(),
        held: added < 5.0,
    }])
}

/// The time during which at least one call is under way.
#[derive(Default)]
struct Watch(Mutex<State>);

#[derive(Default)]
struct State {
    calls: usize,
    since: Option<Instant>,
    busy: Duration,
}

impl Watch {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().expect("no panic while held")
    }

    fn reset(&self) {
        *self.state() = State::default();
    }

    fn busy(&self) -> Duration {
        self.state().busy
    }

    async fn during<T>(&self, call: impl Future<Output = T>) -> T {
        {
            let mut state = self.state();
            state.calls += 1;
            state.since.get_or_insert_with(Instant::now);
        }
        let answer = call.await;
        let mut state = self.state();
        state.calls -= 1;
        if state.calls == 0
            && let Some(since) = state.since.take()
        {
            state.busy += since.elapsed();
        }
        answer
    }
}

struct Watched<P: ?Sized> {
    watch: Arc<Watch>,
    inner: Arc<P>,
}

#[async_trait]
impl Providers for Watched<dyn Providers> {
    async fn locate(&self, folder: &Path, requirement: &Requirement) -> Result<Located, Diagnostic> {
        self.inner.locate(folder, requirement).await
    }

    async fn start(
        &self,
        located: &Located,
        environment: &BTreeMap<String, String>,
    ) -> Result<Arc<dyn Provider>, Diagnostic> {
        let inner = self.inner.start(located, environment).await?;
        Ok(Arc::new(Watched { inner, watch: self.watch.clone() }))
    }
}

macro_rules! watched {
    ($($name:ident($($argument:ident: $type:ty)?) -> $answer:ty;)*) => {
        #[async_trait]
        impl Provider for Watched<dyn Provider> {$(
            async fn $name(&self $(, $argument: $type)?) -> Result<$answer, CallError> {
                self.watch.during(self.inner.$name($($argument)?)).await
            }
        )*}
    };
}

watched! {
    schema() -> Arc<ProviderSchema>;
    validate_provider_config(config: Value) -> (Value, Diagnostics);
    validate_resource_config(call: ValidateResourceConfig) -> Diagnostics;
    validate_data_config(call: ValidateResourceConfig) -> Diagnostics;
    configure(call: Configure) -> Diagnostics;
    upgrade_resource_state(call: UpgradeResourceState) -> (Value, Diagnostics);
    upgrade_resource_identity(call: UpgradeResourceIdentity) -> (Identity, Diagnostics);
    read_resource(call: ReadResource) -> ReadAnswer;
    plan_resource_change(call: PlanResourceChange) -> PlanAnswer;
    apply_resource_change(call: ApplyResourceChange) -> ApplyAnswer;
    import_resource_state(call: ImportResourceState) -> (Vec<ImportedResource>, Diagnostics);
    read_data_source(call: ReadDataSource) -> (Value, Diagnostics);
    stop() -> ();
}
