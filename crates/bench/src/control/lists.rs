//! Pages of lists over a fleet, through REST.

use std::time::Instant;

use anyhow::Result;
use landform_testkit::figures::Times;
use landform_testkit::landform::Landform;
use rand::RngExt;

use crate::claim::{COPIES, DEPLOYMENTS_EACH, TENANTS};
use crate::stage::{Kind, Place, furnish, tenant_name};
use crate::{Figure, Options};

const PAGES: usize = 1000;

/// Ten objects of five types for each deployment, as their states would have written them.
const OBJECTS: &str = "INSERT INTO resources (tenant, deployment, address, mode, type, name, provider, object_id, digest,
        updated_at)
    SELECT d.tenant, d.name, 'net_' || c.kind || '.thing[' || c.step || ']', 'managed', 'net_' || c.kind, 'thing',
        'registry.opentofu.org/acme/net', d.tenant || '-' || d.name || '-' || c.step, 'x', d.created_at
    FROM deployments d CROSS JOIN (SELECT 'site' AS kind, 1 AS step UNION ALL SELECT 'site', 2 UNION ALL SELECT 'site', 3
        UNION ALL SELECT 'port', 4 UNION ALL SELECT 'port', 5 UNION ALL SELECT 'rule', 6 UNION ALL SELECT 'rule', 7
        UNION ALL SELECT 'vlan', 8 UNION ALL SELECT 'vlan', 9 UNION ALL SELECT 'rare', 10) c
    WHERE true ON CONFLICT DO NOTHING";

pub async fn measure(options: &Options, kind: Kind) -> Result<Vec<Figure>> {
    let place = Place::make(kind).await?;
    eprintln!("lists, {}: filling …", kind.name());
    let store = place.open().await?;
    let tenants = options.scaled(TENANTS, 100);
    furnish(&store, tenants, DEPLOYMENTS_EACH).await?;
    store.close().await;
    drop(store);
    place.run_sql(COPIES).await?;
    place.run_sql(OBJECTS).await?;
    if kind == Kind::Postgres {
        place.run_sql("VACUUM ANALYZE").await?;
    }
    // It looks for no runs: they would be carried out.
    place.run_sql("UPDATE switches SET paused = 1; UPDATE deployments SET paused = 4").await?;
    let landform = Landform::start(&place.setup(1, &[])?).await?;
    let rows = tenants * DEPLOYMENTS_EACH * 10;
    let tenant = || tenant_name(rand::rng().random_range(0..tenants));
    let runs = pages(&landform, |page| match page % 4 {
        0 => "/v1/runs".to_owned(),
        1 => format!("/v1/runs?tenant={}", tenant()),
        2 => format!("/v1/runs?tenant={}&deployment=d3&status=queued", tenant()),
        _ => "/v1/runs?status=queued".to_owned(),
    });
    let runs = runs.await?;
    let objects = pages(&landform, |page| match page % 6 {
        0 => "/v1/resources".to_owned(),
        1 => format!("/v1/resources?tenant={}", tenant()),
        2 => format!("/v1/resources?type=net_port&after={}/d3/x", tenant()),
        3 => format!("/v1/resources?id={}-d7-10", tenant()),
        4 => format!("/v1/resources?tenant={}&q=rule", tenant()),
        _ => format!("/v1/resources?q=rare&after={}/d3/x", tenant()),
    });
    let objects = objects.await?;
    Ok(vec![
        figure(kind, format!("a page of 100 of {rows} runs (all, of a tenant, of a deployment, by status)"), &runs),
        figure(kind, format!("a page of 100 of {rows} resources (all, by tenant, type, id, text)"), &objects),
    ])
}

fn figure(kind: Kind, what: String, times: &Times) -> Figure {
    let p99 = times.percentile(0.99);
    Figure {
        what,
        store: kind.name(),
        measured: format!("p99 {p99:.1} ms (p50 {:.1} ms)", times.percentile(0.5)),
        goal: "p99 < 50 ms",
        held: p99 < 50.0,
    }
}

async fn pages(landform: &Landform, mut path: impl FnMut(usize) -> String) -> Result<Times> {
    let mut times = Vec::with_capacity(PAGES);
    for page in 0..PAGES {
        let path = path(page);
        let begin = Instant::now();
        landform.call("GET", &path, None).await?;
        times.push(begin.elapsed());
    }
    Ok(Times::new(times))
}
