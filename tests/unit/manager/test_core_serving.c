/* SPDX-License-Identifier: Apache-2.0 */
/* Model services: replicas are created, become ready, are drained and replaced; failures, tokens,
 * the end; and the manager that starts again in between.
 */
#include "service_world.h"

#include "manager/core/state/model_service_entry.h"
#include "store/model_service.h"

#define MINUTE (60 * USEC_PER_SEC)

static char changed[4096]; /* a '*' for each call of the listener */

static void on_change(void *data, const struct uuid *service_id)
{
    size_t len = strlen(changed);

    (void)data;
    (void)service_id;
    if (len + 1 < sizeof(changed)) {
        changed[len] = '*';
        changed[len + 1] = '\0';
    }
}

static void created_and_ready(void **state)
{
    const struct model_service *s;
    const struct session *session;
    struct sent order;

    (void)state;
    core_on_service_change(world.core, on_change, NULL);
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    assert_ptr_equal(core_find_service(world.core, "DIGITS"), s);
    assert_ptr_equal(core_next_service(world.core, NULL), s);
    assert_null(core_next_service(world.core, s));
    assert_int_equal(count_replicas(s), 2);
    session = replica_of(s, 0);
    assert_string_equal(session->name, "digits.r1.1");
    assert_string_equal(replica_of(s, 1)->name, "digits.r1.2");
    assert_int_equal(session->type, SESSION_INFERENCE);
    order = order_of(session);
    assert_int_equal(order.probe_port, 8000);
    assert_string_equal(order.probe_path, "/health");
    assert_string_equal(order.environ,
                        "ALIQUOT_SERVICE=digits ALIQUOT_SERVICE_REVISION=1 ALIQUOT_REPLICA=1 "
                        "BACKEND_MODEL_PATH=/models MODE=fast ");
    assert_int_equal(find(session).health, CORE_REPLICA_STARTING);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    says_health(session, "starting", "connection refused");
    assert_int_equal(find(session).health, CORE_REPLICA_STARTING);
    assert_string_equal(find(session).health_text, "connection refused");
    changed[0] = '\0';
    becomes_ready(session);
    assert_true(strlen(changed) >= 1);
    assert_int_equal(find(session).ready_usec, world_wall);
    says_health(session, "unhealthy", "status 500");
    assert_int_equal(find(session).health, CORE_REPLICA_UNHEALTHY);
    says_health(session, "ready", NULL);
    assert_int_equal(find(session).health, CORE_REPLICA_READY);
    assert_audited("create-service", 1, NULL);
    assert_clean();
}

/* ---- more or fewer replicas ---- */

/* The manager starts again, and the agent reports two kernels as running. */
static void restart_with(const struct sent *first, const struct sent *second)
{
    struct msg_kernel_status reports[] = { kernel_report(first, MSG_KERNEL_RUNNING),
                                           kernel_report(second, MSG_KERNEL_RUNNING) };

    restart_core();
    assert_int_equal(agent_greets("a", FOUR_CPUS, uuid_random()), 0);
    agent_beats("a", reports, AQ_COUNT(reports));
}

static void scaled(void **state)
{
    const struct model_service *s;
    struct uuid second, third;
    struct sent orders[2];

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    assert_int_equal(change(s, set_replicas, 3).r, 0);
    assert_int_equal(s->replicas, 3);
    assert_int_equal(count_replicas(s), 3);
    becomes_ready(replica_of(s, 1));
    second = replica_of(s, 1)->id;
    third = replica_of(s, 2)->id;
    /* The one that is not ready ends at once, the newest of the others is drained. */
    assert_int_equal(change(s, set_replicas, 1).r, 0);
    assert_int_equal(status_of(&third), SESSION_TERMINATING);
    assert_string_equal(core_find_session(world.core, &third)->reason, "service-scaled");
    assert_int_equal(status_of(&second), SESSION_RUNNING);
    assert_true(find(core_find_session(world.core, &second)).is_draining);
    assert_clean();
    ends(third);
    /* A manager that starts again goes on draining it. */
    orders[0] = order_of(replica_of(s, 0));
    orders[1] = order_of(replica_of(s, 1));
    restart_with(&orders[0], &orders[1]);
    s = core_find_service(world.core, "digits");
    assert_int_equal(count_replicas(s), 2);
    assert_int_equal(find(replica_of(s, 0)).health, CORE_REPLICA_READY);
    assert_true(find(core_find_session(world.core, &second)).is_draining);
    core_note_replica_idle(world.core, &replica_of(s, 0)->id); /* it does not drain */
    core_note_replica_idle(world.core, &second);
    settle();
    assert_int_equal(status_of(&second), SESSION_TERMINATING);
    assert_int_equal(status_of(&replica_of(s, 0)->id), SESSION_RUNNING);
    assert_clean();
}

/* Without a word of the proxies a replica ends when its time is over. */
static void drain_has_a_deadline(void **state)
{
    const struct model_service *s;
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    order = order_of(replica_of(s, 0));
    id = replica_of(s, 0)->id;
    assert_int_equal(change(s, set_replicas, 0).r, 0);
    for (int i = 0; i < 59; i++) {
        struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

        agent_beats("a", &report, 1);
        pass(10 * USEC_PER_SEC);
    }
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    pass(11 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_TERMINATING);
    assert_null(core_service_problem(world.core, s));
}

/* ---- revisions ---- */

static void rolled_out(void **state)
{
    const struct model_service *s;
    struct uuid old;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    becomes_ready(replica_of(s, 0));
    becomes_ready(replica_of(s, 1));
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_int_equal(s->goal, 2);
    assert_int_equal(s->last_number, 2);
    assert_int_equal(count_replicas(s), 3);
    assert_non_null(named("digits.r2.3"));
    assert_string_equal(order_of(named("digits.r2.3")).command, "serve better");
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_false(find(named("digits.r1.2")).is_draining);
    becomes_ready(named("digits.r2.3"));
    assert_true(find(named("digits.r1.2")).is_draining);
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_null(named("digits.r2.4")); /* one that drains may hold its resources for long */
    old = named("digits.r1.2")->id;
    core_note_replica_idle(world.core, &old);
    settle();
    assert_string_equal(core_find_session(world.core, &old)->reason, "service-replaced");
    ends(old);
    assert_null(named("digits.r2.5"));
    becomes_ready(named("digits.r2.4"));
    assert_true(find(named("digits.r1.1")).is_draining);
    old = named("digits.r1.1")->id;
    core_note_replica_idle(world.core, &old);
    settle();
    ends(old);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* A revision that never becomes ready takes nothing away, and goes when the goal is another one. */
static void rolled_back(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    becomes_ready(replica_of(s, 0));
    becomes_ready(replica_of(s, 1));
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_non_null(named("digits.r2.3"));
    exits(named("digits.r2.3"), 3);
    assert_null(named("digits.r2.3"));
    assert_null(named("digits.r2.4")); /* not before a second has passed */
    assert_non_null(core_service_problem(world.core, s));
    assert_non_null(strstr(core_service_problem(world.core, s), "'digits.r2.3' ended with exit "
                                                                "status 3"));
    assert_int_equal(core_service_retry_usec(world.core, s), world_wall + USEC_PER_SEC);
    pass(USEC_PER_SEC);
    assert_non_null(named("digits.r2.4"));
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_int_equal(change(s, set_goal, 1).r, 0);
    assert_int_equal(named("digits.r2.4")->status, SESSION_TERMINATING);
    assert_int_equal(count_replicas(s), 3);
    ends(named("digits.r2.4")->id);
    assert_int_equal(count_replicas(s), 2);
    assert_null(core_service_problem(world.core, s));
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_int_equal(change(s, set_goal, 7).r, -ENOENT);
    assert_clean();
}

/* ---- failures ---- */

static void crash_loop(void **state)
{
    const struct model_service *s;
    int64_t pauses[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300 };
    char name[32];

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 3);
    for (int i = 1; i <= 3; i++) { /* all at once count as one */
        (void)snprintf(name, sizeof(name), "digits.r1.%d", i);
        exits(named(name), 1);
    }
    assert_int_equal(count_replicas(s), 0);
    for (size_t i = 0; i < AQ_COUNT(pauses); i++) {
        assert_int_equal(core_service_retry_usec(world.core, s),
                         world_wall + pauses[i] * USEC_PER_SEC);
        for (int64_t left = pauses[i]; left > 0; left--) {
            assert_int_equal(count_replicas(s), 0);
            agent_beats("a", NULL, 0);
            pass(USEC_PER_SEC);
        }
        assert_int_equal(count_replicas(s), 1); /* one shows whether it works now */
        assert_int_equal(core_service_retry_usec(world.core, s), 0);
        assert_true(core_service_is_failing(world.core, s)); /* also while it starts */
        exits(replica_of(s, 0), 1);
        assert_int_equal(count_replicas(s), 0);
    }
    /* A change is a reason to try again at once; others follow when one is ready. */
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_false(core_service_is_failing(world.core, s));
    assert_int_equal(count_replicas(s), 3);
    assert_clean();
}

static void fails_soon_after_it_was_ready(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    exits(replica_of(s, 0), 1);
    assert_int_equal(count_replicas(s), 0);
    assert_int_not_equal(core_service_retry_usec(world.core, s), 0);
    pass(USEC_PER_SEC);
    assert_int_equal(count_replicas(s), 1);
    becomes_ready(replica_of(s, 0));
    {
        struct sent order = order_of(replica_of(s, 0));

        for (int i = 0; i < 61; i++) {
            struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

            agent_beats("a", &report, 1);
            pass(10 * USEC_PER_SEC);
        }
    }
    exits(replica_of(s, 0), 1); /* after ten minutes nothing is held back */
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_int_equal(count_replicas(s), 1);
}

static void ends_when_it_is_not_ready_in_time(void **state)
{
    struct model_service wanted;
    const struct model_service *s;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    wanted = wish("digits", 1);
    wanted.revisions[0].spec->ready_usec = 20 * USEC_PER_SEC;
    a = try_create(&wanted);
    assert_int_equal(a.r, 0);
    s = core_find_service(world.core, "digits");
    {
        struct sent order = order_of(replica_of(s, 0));

        agent_reports(&order, MSG_KERNEL_RUNNING);
        says_health(replica_of(s, 0), "starting", "status 503");
        for (int i = 0; i < 4; i++) {
            struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

            assert_int_equal(replica_of(s, 0)->status, SESSION_RUNNING);
            agent_beats("a", &report, 1);
            pass(5 * USEC_PER_SEC);
        }
        assert_int_equal(replica_of(s, 0)->status, SESSION_TERMINATING);
        assert_string_equal(replica_of(s, 0)->reason, "service-unready");
        agent_reports_end(&order, 143, NULL);
    }
    assert_non_null(strstr(core_service_problem(world.core, s), "did not become ready in time"));
    assert_non_null(strstr(core_service_problem(world.core, s), "status 503"));
    assert_int_not_equal(core_service_retry_usec(world.core, s), 0);
    assert_clean();
}

/* ---- the end ---- */

static int read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct model_service_rows rows = { 0 };
    size_t *revisions = data;
    int r = store_read_ended_model_services(tx, "Digits", &rows, err);

    *revisions = rows.count == 1 && rows.items[0].ended_usec ? rows.items[0].revision_count : 0;
    model_service_rows_done(&rows);
    return r;
}

static void ended(void **state)
{
    const struct model_service *s;
    struct answer a = { 0 };
    struct uuid id, first, second;
    struct sent order;
    size_t revisions;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    id = s->id;
    becomes_ready(replica_of(s, 0));
    order = order_of(replica_of(s, 0));
    first = replica_of(s, 0)->id;
    second = replica_of(s, 1)->id;
    a.came = false;
    core_end_service(world.core, &id, false, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_true(core_find_service_by_id(world.core, &id)->is_ending);
    assert_int_equal(status_of(&first), SESSION_RUNNING);
    assert_true(find(core_find_session(world.core, &first)).is_draining);
    assert_int_equal(status_of(&second), SESSION_TERMINATING);
    ends(second);
    assert_int_equal(change(s, set_replicas, 3).r, -EBUSY);
    restart_with(&order, &order);
    assert_int_equal(count_replicas(core_find_service_by_id(world.core, &id)), 1);
    core_note_replica_idle(world.core, &first);
    settle();
    agent_reports_end(&order, 0, NULL);
    assert_null(core_find_service_by_id(world.core, &id));
    assert_int_equal(store_call(world.core->store, read_ended, &revisions, NULL), 0);
    assert_int_equal(revisions, 1);
    assert_clean();
    (void)serve("digits", 0); /* its name is free */
    assert_clean();
}

static void ended_by_force(void **state)
{
    const struct model_service *s;
    struct answer a = { 0 };
    struct uuid id, first;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    id = s->id;
    becomes_ready(replica_of(s, 0));
    first = replica_of(s, 0)->id;
    a.came = false;
    core_end_service(world.core, &id, false, &asker, on_answer, &a);
    settle();
    assert_int_equal(status_of(&first), SESSION_RUNNING);
    a.came = false;
    core_end_service(world.core, &id, true, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    assert_int_equal(status_of(&first), SESSION_TERMINATING);
    assert_true(core_find_session(world.core, &first)->forced);
    ends(first);
    assert_null(core_find_service_by_id(world.core, &id));
    assert_clean();
}

/* ---- tokens ---- */

static struct model_service_token token_of(const char *label)
{
    struct model_service_token token = { .label = strdup(label) };

    memset(token.hash, 'a', MODEL_SERVICE_TOKEN_HASH);
    return token;
}

static void tokens(void **state)
{
    const struct model_service *s;
    struct model_service_token token;
    struct answer a = { 0 };
    struct uuid ids[2];

    (void)state;
    s = serve("digits", 0);
    for (int i = 0; i < 2; i++) {
        token = token_of(i ? "late" : "early");
        token.expires_usec = i ? world_wall + MINUTE : 0;
        token.budget = 1000;
        a.came = false;
        core_add_service_token(world.core, &s->id, &token, &asker, on_answer, &a);
        ids[i] = token.id;
        settle();
        assert_int_equal(a.r, 0);
    }
    assert_int_equal(s->token_count, 2);
    core_note_token_use(world.core, &s->id, &ids[0], 2, 300);
    core_note_token_use(world.core, &s->id, &ids[0], 1, 30);
    core_note_token_use(world.core, &s->id, &ids[1], 1, 1);
    settle();
    assert_int_equal(model_service_find_token(s, &ids[0])->used, 0);
    pass(10 * USEC_PER_SEC);
    assert_int_equal(model_service_find_token(s, &ids[0])->used, 330);
    assert_int_equal(model_service_find_token(s, &ids[0])->requests, 3);
    assert_clean();
    core_note_token_use(world.core, &s->id, &ids[0], 1, 1); /* written at the end */
    restart_core();
    s = core_find_service(world.core, "digits");
    assert_int_equal(model_service_find_token(s, &ids[0])->used, 331);
    pass(70 * USEC_PER_SEC);
    assert_int_equal(s->token_count, 1);
    a.came = false;
    core_revoke_service_token(world.core, &s->id, &ids[0], &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(s->token_count, 0);
    a.came = false;
    core_revoke_service_token(world.core, &s->id, &ids[0], &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -ENOENT);
    token = token_of("past");
    token.expires_usec = world_wall;
    a.came = false;
    core_add_service_token(world.core, &s->id, &token, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "expires_at");
    assert_clean();
}

/* ---- refusals ---- */

static int64_t limit_of(void *data, const struct uuid *user_id)
{
    (void)data;
    (void)user_id;
    return 8;
}

static void refused(void **state)
{
    struct model_service s;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    core_set_replica_limit(world.core, limit_of, NULL);
    (void)serve("digits", 1);
    s = wish("Digits", 1);
    a = try_create(&s);
    assert_int_equal(a.r, -EEXIST);
    assert_string_equal(a.err.field, "name");
    s = wish("big", 1);
    s.replicas_max = 9;
    a = try_create(&s);
    assert_int_equal(a.r, -EINVAL); /* the name is too short */
    assert_string_equal(a.err.field, "name");
    s = wish("bigger", 1);
    s.replicas_max = 9;
    a = try_create(&s);
    assert_int_equal(a.r, -EDQUOT);
    assert_string_equal(a.err.field, "replicas");
    s = wish("bigger", 1);
    s.revisions[0].spec->resources.items[0].value = "100";
    a = try_create(&s);
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "resources.cpu");
    s = wish("bigger", 1);
    (void)snprintf(s.access_key, sizeof(s.access_key), "AKIAUNKNOWN");
    assert_int_equal(try_create(&s).r, -EACCES);
    assert_null(core_find_service(world.core, "bigger"));
    assert_clean();
}

static void ratio(void **state)
{
    const struct model_service *s;
    struct answer a = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    assert_int_equal(find(replica_of(s, 0)).ratio_ppm, 1000000);
    a.came = false;
    core_set_replica_ratio(world.core, &replica_of(s, 0)->id, 500000, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(find(replica_of(s, 0)).ratio_ppm, 500000);
    restart_core();
    s = core_find_service(world.core, "digits");
    assert_int_equal(find(replica_of(s, 0)).ratio_ppm, 500000);
    a.came = false;
    core_set_replica_ratio(world.core, &replica_of(s, 0)->id, -1, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL);
    assert_clean();
}

/* A replica that its user ends, or whose agent is lost, is replaced at once. */
static void replaced(void **state)
{
    const struct model_service *s;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    id = replica_of(s, 0)->id;
    assert_int_equal(terminate(&id, false).r, 0);
    assert_int_equal(count_replicas(s), 2); /* the new one does not wait for the end of the other */
    ends(id);
    assert_int_equal(count_replicas(s), 1);
    becomes_ready(replica_of(s, 0));
    set_loss_policy("requeue", 0);
    agent_goes("a");
    pass(11 * USEC_PER_SEC);
    assert_int_equal(core_service_retry_usec(world.core, s), 0);
    assert_null(strstr(world.events, "session_rescheduling"));
    assert_clean();
}

/* What is not allowed any more is a failure, and tried again when accounts change. */
static void owner_out_of_use(void **state)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct model_service *s;
    struct answer a = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    for (int is_active = 0; is_active < 2; is_active++) {
        struct event_batch *batch = event_batch_new();
        struct event *e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, world_wall);

        entity_copy(&keypair_entity, &e->keypair, k);
        e->keypair.is_active = is_active;
        a.came = false;
        core_save(world.core, batch, NULL, on_answer, &a);
        settle();
        assert_int_equal(a.r, 0);
        if (is_active)
            break;
        assert_int_equal(find(replica_of(s, 0)).health, CORE_REPLICA_READY); /* it stays */
        assert_int_equal(change(s, set_replicas, 2).r, 0);
        assert_int_equal(count_replicas(s), 1);
        assert_non_null(strstr(core_service_problem(world.core, s), "cannot create a replica"));
    }
    pass(USEC_PER_SEC);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* The end of its log says why a replica failed. */
static void last_lines(void **state)
{
    const struct model_service *s;
    struct msg_kernel_status report;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    order = order_of(replica_of(s, 0));
    agent_reports(&order, MSG_KERNEL_RUNNING);
    report = kernel_report(&order, MSG_KERNEL_TERMINATED);
    report.has_exit = true;
    report.exit_code = 1;
    report.last_lines = "Traceback\nKeyError: 'model'";
    agent_says("a", report);
    assert_string_equal(core_service_problem(world.core, s),
                        "replica 'digits.r1.1' ended with exit status 1 (self-terminated)\n"
                        "Traceback\nKeyError: 'model'");
}

static void agent_is_lost(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    agent_goes("a");
    pass(42 * USEC_PER_SEC);
    assert_int_equal(find(replica_of(s, 0)).health, CORE_REPLICA_UNHEALTHY);
    assert_string_equal(find(replica_of(s, 0)).health_text, "its agent is lost");
    assert_int_equal(count_replicas(s), 1); /* it is not given up yet */
}

static void scaled_by_itself(void **state)
{
    const struct model_service *s;
    struct answer a = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 0);
    assert_int_equal(count_replicas(s), 0);
    core_scale_service(world.core, &s->id, 100, 0, "many requests", on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(s->replicas, 8); /* its maximum */
    assert_int_equal(count_replicas(s), 8);
    assert_non_null(strstr(core_service_problem(world.core, s), "waits for resources"));
    assert_audited("scale-service", 0, NULL);
    assert_clean();
}

/* Old revisions go, but for goals and those with replicas. */
static void revisions_are_bounded(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    for (int i = 0; i < MODEL_SERVICE_REVISIONS_MAX + 2; i++)
        assert_int_equal(change(s, add_revision, i % 2).r, 0);
    assert_int_equal(s->revision_count, MODEL_SERVICE_REVISIONS_MAX);
    assert_int_equal(s->revisions[0].number, 1); /* its replica is the one that is ready */
    assert_int_equal(s->revisions[1].number, 2); /* its replica is ending */
    assert_int_equal(s->revisions[2].number, 6);
    assert_int_equal(s->goal, MODEL_SERVICE_REVISIONS_MAX + 3);
    assert_clean();
}

/* Somebody else was faster. */
static void changed_at_once(void **state)
{
    const struct model_service *s;
    struct model_service one, two;
    struct answer a = { 0 }, b = { 0 };

    (void)state;
    s = serve("digits", 0);
    model_service_copy(&one, s);
    model_service_copy(&two, s);
    one.is_public = two.is_public = true;
    core_change_service(world.core, &one, NULL, &asker, on_answer, &a);
    core_change_service(world.core, &two, NULL, &asker, on_answer, &b);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(b.r, -ESTALE);
    assert_string_equal(b.err.kind, "conflict");
    assert_true(s->is_public);
    assert_clean();
}

/* Replicas that were ready before a failure do not end the pauses. */
static void one_of_two_fails(void **state)
{
    const struct model_service *s;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    order = order_of(replica_of(s, 0));
    for (int i = 0; i < 61; i++) {
        struct msg_kernel_status report = kernel_report(&order, MSG_KERNEL_RUNNING);

        agent_beats("a", &report, 1);
        pass(10 * USEC_PER_SEC);
    }
    assert_int_equal(change(s, set_replicas, 2).r, 0);
    for (int64_t pause = 1; pause <= 4; pause *= 2) {
        exits(replica_of(s, 1), 1);
        assert_int_equal(count_replicas(s), 1);
        assert_int_equal(core_service_retry_usec(world.core, s), world_wall + pause * USEC_PER_SEC);
        pass(pause * USEC_PER_SEC);
        assert_int_equal(count_replicas(s), 2);
    }
    assert_non_null(core_service_problem(world.core, s));
    becomes_ready(replica_of(s, 1));
    assert_null(core_service_problem(world.core, s));
    assert_clean();
}

/* Made without a revision: nothing runs until there is one, after a restart, too. */
static void waits_for_its_first_revision(void **state)
{
    struct model_service s;
    const struct model_service *made;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = wish("empty", 2);
    free(s.revisions[0].spec);
    s.revision_count = 0;
    assert_int_equal(try_create(&s).r, 0);
    for (int i = 0; i < 2; i++) {
        made = core_find_service(world.core, "empty");
        assert_int_equal(made->goal, 0);
        assert_int_equal(count_replicas(made), 0);
        assert_non_null(strstr(core_service_problem(world.core, made), "no revision"));
        restart_core();
        assert_int_equal(agent_greets("a", FOUR_CPUS, uuid_random()), 0);
        agent_beats("a", NULL, 0);
    }
    made = core_find_service(world.core, "empty");
    a = change(made, set_goal, 1);
    assert_int_equal(a.r, -ENOENT);
    assert_int_equal(change(made, set_replicas, 1).r, 0);
    made = core_find_service(world.core, "empty");
    assert_int_equal(count_replicas(made), 0);
    assert_int_equal(change(made, add_revision, 0).r, 0);
    made = core_find_service(world.core, "empty");
    assert_int_equal(made->goal, 1);
    assert_int_equal(count_replicas(made), 1);
    becomes_ready(replica_of(made, 0));
    assert_null(core_service_problem(world.core, made));
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(created_and_ready),
        TEST(scaled),
        TEST(drain_has_a_deadline),
        TEST(rolled_out),
        TEST(rolled_back),
        TEST(crash_loop),
        TEST(fails_soon_after_it_was_ready),
        TEST(ends_when_it_is_not_ready_in_time),
        TEST(ended),
        TEST(ended_by_force),
        TEST(tokens),
        TEST(refused),
        TEST(ratio),
        TEST(replaced),
        TEST(owner_out_of_use),
        TEST(last_lines),
        TEST(agent_is_lost),
        TEST(scaled_by_itself),
        TEST(revisions_are_bounded),
        TEST(changed_at_once),
        TEST(one_of_two_fails),
        TEST(waits_for_its_first_revision),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
