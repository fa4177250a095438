//! How soon `landform serve` answers, and what it takes while nothing happens.

use std::time::{Duration, Instant};

use anyhow::Result;
use landform_testkit::figures::{Times, resident_mb};
use landform_testkit::landform::Landform;

use crate::Figure;
use crate::stage::{Kind, Place};

const STARTS: usize = 10;
/// By then everything that begins by itself has begun.
const UNTIL_IDLE: Duration = Duration::from_secs(5);

pub async fn measure(kind: Kind) -> Result<Vec<Figure>> {
    let place = Place::make(kind).await?;
    let setup = place.setup(2, &[])?;
    // The first start makes the tables.
    Landform::start(&setup).await?.stop().await?;
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let landform = Landform::start(&setup).await?;
        times.push(begin.elapsed());
        landform.stop().await?;
    }
    let ready = Times::new(times).percentile(0.5);
    let landform = Landform::start(&setup).await?;
    tokio::time::sleep(UNTIL_IDLE).await;
    let memory = resident_mb(landform.pid())?;
    Ok(vec![
        Figure {
            what: "from the start of `landform serve` to its first answer".into(),
            store: kind.name(),
            measured: format!("{ready:.0} ms (median of {STARTS}, looked at every 10 ms)"),
            goal: "100 ms",
            held: ready <= 100.0,
        },
        Figure {
            what: "memory of an idle `landform serve`".into(),
            store: kind.name(),
            measured: format!("{memory:.0} MB"),
            goal: "30 MB",
            held: memory <= 30.0,
        },
    ])
}
