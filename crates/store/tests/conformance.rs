//! One suite for both stores: what holds on SQLite holds on PostgreSQL.

mod cases;
mod place;

use place::Place;

/// Runs every case on a store of its own, one after the other.
macro_rules! suite {
    ($($module:ident: $($case:ident),*;)*) => {
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn sqlite() {
            $($({
                println!("{}::{}", stringify!($module), stringify!($case));
                let folder = tempfile::tempdir().expect("a folder");
                cases::$module::$case(Place::sqlite(folder.path())).await;
            })*)*
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn postgres() {
            let server = landform_testkit::postgres::Server::start().expect("PostgreSQL starts");
            // Making the tables takes longer than most cases, so it is done once.
            Place::postgres(server.database("original").await.expect("a database")).prepare().await;
            $($({
                println!("{}::{}", stringify!($module), stringify!($case));
                let name = concat!("t_", stringify!($case));
                let url = server.copy_of("original", &name[..name.len().min(60)]).await.expect("a database");
                cases::$module::$case(Place::postgres(url)).await;
            })*)*
        }
    };
}

suite! {
    access:
        tokens_are_made_listed_and_withdrawn,
        every_deed_is_in_the_log_and_stays_there,
        author_and_approver_can_be_required_to_differ;
    accounts:
        an_account_has_one_owner,
        a_bound_run_is_its_owners,
        what_is_bound_is_free_when_its_owner_is_gone,
        an_accounts_past_goes_to_its_next_owner,
        a_run_can_wait_for_a_time,
        an_approved_plan_survives_being_put_back;
    catalog:
        the_admin_token_is_given_once,
        tenants_are_made_once,
        a_tenant_with_nothing_is_deleted,
        a_tenant_is_deleted_or_used,
        template_versions_grow_with_changes;
    desired:
        the_same_put_is_the_same_run,
        a_failed_run_is_made_again,
        a_newer_generation_supersedes_what_waits,
        a_newer_generation_lets_an_apply_end,
        generations_can_be_conditions,
        an_idempotency_key_gives_the_same_answer,
        sensitive_inputs_are_kept_and_sealed,
        destroy_uses_what_made_the_state,
        put_during_destroy_begins_anew,
        two_first_writers_make_one_deployment;
    work:
        a_run_goes_from_queue_to_outputs,
        one_run_at_a_time_per_deployment,
        claims_never_overlap,
        tenants_take_turns,
        several_runs_are_claimed_at_once,
        a_tenants_past_does_not_count,
        writers_at_once_keep_what_is_theirs,
        an_old_epoch_writes_nothing,
        a_lapsed_lease_is_taken_over,
        a_worker_voids_its_own_past,
        cancelling_a_plan_fences_its_worker,
        cancelling_an_apply_is_a_wish,
        events_are_numbered_and_bounded,
        the_doorbell_rings_for_others;
    waiting:
        what_is_paused_is_out_of_the_way,
        a_newcomer_is_somebody_with_nothing_under_way,
        a_claim_from_far_behind_starves_nobody,
        the_end_of_a_pause_starves_nobody,
        what_is_held_comes_back_when_it_is_free,
        a_tenant_has_at_most_its_slots,
        quotas_refuse_what_is_beyond_them;
    keys:
        a_key_that_was_used_enough_gets_a_successor,
        a_successor_seals_nothing_before_its_time;
    memory:
        a_run_is_admitted_by_what_its_template_took_before,
        nobody_overtakes_a_run_that_does_not_fit;
    drift:
        a_check_finds_drift_and_an_apply_clears_it,
        a_check_disturbs_nobody,
        a_check_gives_way_to_whoever_wants_to_change_something,
        changes_are_claimed_before_checks,
        a_check_uses_what_was_applied_last,
        a_check_that_fails_leaves_the_fact,
        schedules_ask_for_checks,
        the_fleet_is_grouped_by_what_differs;
    inventory:
        the_inventory_follows_the_states,
        the_inventory_is_read_by_pages;
    approval:
        an_approved_plan_is_applied_once,
        rejected_and_expired_plans_are_gone;
    recovery:
        a_dead_apply_is_recovered_from_its_journal,
        an_update_in_doubt_is_told_to_every_plan_until_one_is_carried_out,
        doubts_block_until_they_are_answered,
        a_result_that_was_kept_answers_a_doubt,
        adoptions_wait_until_they_are_done,
        adoptions_end_with_a_recovery_that_finds_them_done;
    retention:
        old_runs_go_and_the_newest_stays,
        old_keys_go,
        lists_find_what_they_are_asked_for;
}

#[tokio::test]
async fn a_second_process_on_sqlite_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::sqlite(folder.path());
    let _first = place.open().await;
    let error = place.try_open().await.expect_err("refused").to_string();
    assert!(error.contains("another process works on"), "{error}");
}

#[tokio::test]
async fn the_database_file_holds_no_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::sqlite(folder.path());
    cases::desired::sensitive_inputs_are_kept_and_sealed(place).await;
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder.path().join("data")).expect("the data folder") {
        bytes.extend(std::fs::read(entry.expect("an entry").path()).expect("a file"));
    }
    assert!(bytes.windows(9).any(|w| w == b"generatio"), "the database was read");
    assert!(!bytes.windows(9).any(|w| w == b"correct-h"), "the secret is in it");
}

/// Between its coming back and whatever a person says next, a kill may happen.
async fn a_copy_waits_from_its_first_moment(first: Place, second: Place) {
    let store = first.furnished().await;
    place::put(&store, "acme", "site", &[]).await;
    let folder = tempfile::tempdir().expect("a folder");
    landform_store::back_up(&first.location, folder.path()).await.expect("a copy");
    let another_key = landform_base::seal::MasterKey::generate().expect("randomness");
    let refused = landform_store::bring_back(folder.path(), &second.location, &another_key).await;
    assert!(matches!(refused, Err(landform_store::StoreError::Seal(_))), "{refused:?}");
    landform_store::bring_back(folder.path(), &second.location, &first.master_key).await.expect("brought back");
    let second = Place { master_key: first.master_key.clone(), ..second };
    let copy = second.open().await;
    place::nothing_due(&copy).await;
    copy.pause(&landform_store::Scope::Everything, false, &place::eve()).await.expect("goes on");
    assert_eq!(place::claim(&copy).await.deployment.as_str(), "site");
}

#[tokio::test]
async fn a_copy_of_sqlite_waits_from_its_first_moment() {
    let (first, second) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    std::fs::create_dir(second.path().join("data")).expect("a folder");
    a_copy_waits_from_its_first_moment(Place::sqlite(first.path()), Place::sqlite(second.path())).await;
}

#[tokio::test]
async fn a_copy_of_postgresql_waits_from_its_first_moment() {
    let server = landform_testkit::postgres::Server::start().expect("PostgreSQL starts");
    let [first, second] = ["first", "second"].map(|name| server.database(name));
    let (first, second) = (Place::postgres(first.await.expect("one")), Place::postgres(second.await.expect("two")));
    second.prepare().await;
    a_copy_waits_from_its_first_moment(first, second).await;
}
