//! What PostgreSQL knows of its tables' sizes, kept up while they grow.
//!
//! It keeps the plan of a prepared statement, and a plan for some hundred rows reads whole tables: with ten thousand, a claim
//! took 60 ms where an index takes one. PostgreSQL makes plans anew when it has counted again, which it does by itself
//! about once a minute. A young store can grow a hundredfold in that time.

use std::time::Duration;

use sqlx::{AssertSqlSafe, PgPool};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Those that have doubled since they were counted. That happens ever more seldom: a million rows are fourteen times.
const DOUBLED: &str = "SELECT format('%I.%I', s.schemaname, s.relname)
     FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
     WHERE s.schemaname = current_schema() AND s.n_live_tup > 100 AND s.n_live_tup > 2 * GREATEST(c.reltuples, 0)";

/// Ends when aborted.
pub(crate) async fn keep_up(pool: PgPool) {
    while !pool.is_closed() {
        tokio::time::sleep(LOOK_EVERY).await;
        if let Err(error) = count_what_has_doubled(&pool).await {
            tracing::debug!(%error, "the tables were not counted");
        }
    }
}

async fn count_what_has_doubled(pool: &PgPool) -> sqlx::Result<Vec<String>> {
    let doubled: Vec<String> = sqlx::query_scalar(DOUBLED).fetch_all(pool).await?;
    for table in &doubled {
        // Another process may be about the same.
        sqlx::raw_sql(AssertSqlSafe(format!("ANALYZE (SKIP_LOCKED) {table}"))).execute(pool).await?;
    }
    Ok(doubled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_table_is_counted_when_it_has_doubled() {
        let server = landform_testkit::postgres::Server::start().unwrap();
        let pool = PgPool::connect(&server.database("statistics").await.unwrap()).await.unwrap();
        let run = async |sql: &'static str| sqlx::raw_sql(sql).execute(&pool).await.map(drop).unwrap();
        // PostgreSQL tells itself within a second or so what has become of a table.
        let counted = async || {
            for _ in 0..100 {
                let found = count_what_has_doubled(&pool).await.unwrap();
                if !found.is_empty() {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            panic!("it was not counted");
        };
        run("CREATE TABLE small (n int); INSERT INTO small VALUES (1)").await;
        run("CREATE TABLE \"Large\" AS SELECT generate_series(1, 1000) AS n").await;
        assert_eq!(counted().await, ["public.\"Large\""]);
        assert!(count_what_has_doubled(&pool).await.unwrap().is_empty(), "it knows that now");
        run("INSERT INTO \"Large\" SELECT generate_series(1, 1500)").await;
        assert_eq!(counted().await, ["public.\"Large\""]);
    }
}
