/* SPDX-License-Identifier: Apache-2.0 */
/* Fair share: what was used is known, decays, weighs, survives restarts, and
 * decides who is next. The clock is the test's, so sums are exact.
 */
#include "world.h"

#include <math.h>

#define HOUR (3600 * USEC_PER_SEC)

static struct uuid start(const char *name, const char *key, int cpus)
{
    struct slots slots = { .items = NULL };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = key,
                                   .priority = -1 };
    struct answer a;

    assert_int_equal(slots_set(&slots, slot_name_intern("cpu", 3), cpus * AMOUNT_ONE), 0);
    req.resources = slots;
    a = create(&req);
    slots_done(&slots);
    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static struct sent order_of(const struct uuid *session)
{
    const struct kernel *k = &core_find_session(world.core, session)->kernels[0];
    struct sent order = { .kernel_id = k->id, .session_id = *session, .attempt = k->attempt };

    (void)snprintf(order.agent_id, sizeof(order.agent_id), "%s", k->agent_id ? k->agent_id : "");
    return order;
}

/* It runs for so long, and the agent goes on to say so. */
static void run_for(const struct uuid *id, int64_t usec)
{
    struct sent order = order_of(id);
    struct msg_kernel_status report;

    agent_reports(&order, MSG_KERNEL_RUNNING);
    for (; usec > 0; usec -= 30 * USEC_PER_SEC) {
        pass(AQ_MIN(usec, 30 * USEC_PER_SEC));
        report = kernel_report(&order, MSG_KERNEL_RUNNING);
        agent_beats(order.agent_id, &report, 1);
    }
}

static void end_it(const struct uuid *id)
{
    struct sent order = order_of(id);

    agent_reports_exit(&order, 0);
}

struct shown {
    struct core_fair_row rows[16];
    size_t count;
};

static void keep_row(void *data, const struct core_fair_row *row)
{
    struct shown *s = data;

    assert_true(s->count < AQ_COUNT(s->rows));
    s->rows[s->count++] = *row;
}

/* The row of the user with this key, or of a level that has one row. */
static struct core_fair_row row_of(enum core_fair_level level, const char *key)
{
    const struct keypair *k = key ? core_find_keypair(world.core, key) : NULL;
    struct shown s = { .count = 0 };
    struct aq_error err = { 0 };

    if (core_list_fair_share(world.core, "default", keep_row, &s, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < s.count; i++)
        if (s.rows[i].level == level && (!k || uuid_equals(&s.rows[i].user, &k->user_id)))
            return s.rows[i];
    return (struct core_fair_row){ .factor = -1 };
}

static void assert_near(double has, double wants)
{
    if (fabs(has - wants) > 1e-6 * fabs(wants) + 1e-12)
        fail_msg("%.9f, not %.9f", has, wants);
}

#define CPU_ONLY "{\"fair_share\":{\"slot:mem\":0.000000001}}"

/* 2 of 4 cores for an hour, of 4 cores for 28 days. */
static const double one_hour = 2.0 * 3600 / (4.0 * 28 * 86400);

static void what_is_used_is_known(void **state)
{
    struct uuid id;

    (void)state;
    use_options("fair-share", CPU_ONLY);
    agent_comes("a", FOUR_CPUS);
    id = start("used", USER_KEY, 2);
    run_for(&id, HOUR);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).factor, exp2(-one_hour));
    assert_near(row_of(CORE_FAIR_PROJECT, NULL).usage, one_hour);
    assert_near(row_of(CORE_FAIR_DOMAIN, NULL).usage, one_hour);
    assert_clean();
    end_it(&id);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour);
    assert_clean();
    restart_core();
    agent_comes("a", FOUR_CPUS);
    pass(USEC_PER_SEC);
    id = start("again", ADMIN_KEY, 1); /* a pass, before which the past is read */
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour);
    assert_clean();
}

static void what_was_used_before_counts(void **state)
{
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = start("before", USER_KEY, 2);
    run_for(&id, HOUR);
    use_options("fair-share", CPU_ONLY);
    settle();
    (void)start("waits", ADMIN_KEY, 4);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour);
    run_for(&id, HOUR);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, 2 * one_hour);
    assert_clean();
    end_it(&id);
    assert_clean();
}

static void it_counts_half_after_a_week(void **state)
{
    struct uuid id;

    (void)state;
    use_options("fair-share", CPU_ONLY);
    agent_comes("a", FOUR_CPUS);
    id = start("used", USER_KEY, 2);
    run_for(&id, HOUR);
    end_it(&id);
    world_wall += 7 * 24 * HOUR;
    world_mono += 7 * 24 * HOUR;
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour / 2);
    use_options("fair-share", "{\"fair_share\":{\"slot:mem\":0.000000001,\"half_life_days\":14}}");
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, one_hour * exp2(-0.5));
    world_wall += 22 * 24 * HOUR; /* beyond the days looked back on */
    world_mono += 22 * 24 * HOUR;
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).usage, 0);
}

/* Two users want all of it again and again; the one who used less is next. */
static void who_used_less_is_next(void **state)
{
    struct uuid ids[6];
    struct uuid heavy;

    (void)state;
    use_options("fair-share", CPU_ONLY);
    agent_comes("a", FOUR_CPUS);
    heavy = start("heavy", USER_KEY, 4);
    run_for(&heavy, HOUR);
    ids[0] = start("user-1", USER_KEY, 4);
    ids[1] = start("admin-1", ADMIN_KEY, 4);
    end_it(&heavy);
    assert_int_equal(status_of(&ids[0]), SESSION_PENDING);
    assert_int_equal(status_of(&ids[1]), SESSION_SCHEDULED);
    run_for(&ids[1], 2 * HOUR);
    ids[2] = start("admin-2", ADMIN_KEY, 4);
    end_it(&ids[1]);
    assert_int_equal(status_of(&ids[0]), SESSION_SCHEDULED); /* 1 h of 3 */
    assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
    assert_clean();
}

/* That of the user in the project comes before that of the user. */
static void weights_decide_too(void **state)
{
    const struct keypair *k;
    char opts[240], id[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    struct uuid heavy, user, admin;

    (void)state;
    k = core_find_keypair(world.core, USER_KEY);
    uuid_format(&core_find_user(world.core, &k->user_id)->project_ids[0], project);
    (void)snprintf(opts, sizeof(opts),
                   "{\"fair_share\":{\"slot:mem\":0.000000001,\"user:%s\":0.1,\"user:%s/%s\":10}}",
                   uuid_format(&k->user_id, id), id, project);
    use_options("fair-share", opts);
    agent_comes("a", FOUR_CPUS);
    heavy = start("admins", ADMIN_KEY, 4);
    run_for(&heavy, HOUR);
    user = start("user-1", USER_KEY, 4);
    end_it(&heavy);
    run_for(&user, 2 * HOUR); /* twice as much, at ten times the weight */
    admin = start("admin-1", ADMIN_KEY, 4);
    heavy = start("user-2", USER_KEY, 4);
    end_it(&user);
    assert_int_equal(status_of(&admin), SESSION_PENDING);
    assert_int_equal(status_of(&heavy), SESSION_SCHEDULED);
    assert_near(row_of(CORE_FAIR_USER, USER_KEY).weight, 10);
}

static void refused(const char *opts, const char *names)
{
    struct resource_group g = { .scheduler = (char *)(uintptr_t) "fair-share",
                                .scheduler_opts = (char *)(uintptr_t)opts };
    struct aq_error err;

    assert_int_equal(core_check_scheduling(&g, &err), -EINVAL);
    assert_string_equal(err.field, "fair_share");
    if (!strstr(err.text, names))
        fail_msg("%s: %s", opts, err.text);
}

static void settings_that_cannot_be(void **state)
{
    struct aq_error err;

    (void)state;
    refused("{\"fair_share\":7}", "object");
    refused("{\"fair_share\":{\"half_life_days\":0}}", "half_life_days");
    refused("{\"fair_share\":{\"lookback_days\":400}}", "366");
    refused("{\"fair_share\":{\"user:x\":\"much\"}}", "user:x");
    refused("{\"fair_share\":{\"colour\":1}}", "'colour'");
    assert_int_equal(core_list_fair_share(world.core, "default", keep_row, NULL, &err), -EINVAL);
    assert_int_equal(core_list_fair_share(world.core, "nowhere", keep_row, NULL, &err), -ENOENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_used_is_known),       TEST(what_was_used_before_counts),
        TEST(it_counts_half_after_a_week), TEST(who_used_less_is_next),
        TEST(weights_decide_too),          TEST(settings_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
