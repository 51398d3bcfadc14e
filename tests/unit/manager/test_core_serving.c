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

/* ---- the end ---- */

static int read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct model_service_rows rows = { 0 };
    size_t *revisions = data;
    int r = store_read_ended_model_services(tx, &(struct model_service_ended){ .text = "Digits" },
                                            &rows, err);

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

static void scaled_by_itself(void **state)
{
    const struct model_service *s;
    struct answer a = { 0 }, b = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 0);
    assert_int_equal(count_replicas(s), 0);
    core_scale_service(world.core, &s->id, 100, 0, -1, "many requests", on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(s->replicas, 8); /* its maximum */
    assert_int_equal(count_replicas(s), 8);
    assert_non_null(strstr(core_service_problem(world.core, s), "waits for resources"));
    assert_audited("scale-service", 0, NULL);
    assert_null(s->fired);
    core_scale_service(world.core, &s->id, 2, 0, 1, "a step", on_answer, &b);
    settle();
    assert_int_equal(strncmp(s->fired, "[0,1", 4), 0); /* the second rule, and when */
    assert_clean();                                    /* the row has the same */
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

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(created_and_ready),
        TEST(scaled),
        TEST(drain_has_a_deadline),
        TEST(ended),
        TEST(ended_by_force),
        TEST(tokens),
        TEST(refused),
        TEST(ratio),
        TEST(owner_out_of_use),
        TEST(scaled_by_itself),
        TEST(changed_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
