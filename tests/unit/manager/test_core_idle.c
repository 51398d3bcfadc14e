/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that nobody uses are warned of and ended; those that are used, or compute, are kept, also
 * through restarts of the manager and jumps of the clock.
 */
#include "world.h"

#include "manager/core/state/idle_entry.h"
#include "manager/core/statistics/statistics_internal.h"

#define MINUTE (60 * USEC_PER_SEC)

static struct uuid session;
static struct sent order;
static double cpu_used; /* by its kernel, in milliseconds */

static void use_policy(int64_t idle_sec, int64_t lifetime_sec, int64_t extension_sec)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, world_wall);
    struct answer a = { 0 };

    e->policy = (struct keypair_policy){ .name = strdup("default"),
                                         .is_active = true,
                                         .unlimited_unspecified = true,
                                         .idle_timeout_sec = idle_sec,
                                         .max_session_lifetime_sec = lifetime_sec,
                                         .max_idle_extension_sec = extension_sec,
                                         .max_priority = 100 };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    idle_entry_tick(world.core);
    settle();
}

static void begin(enum session_type type)
{
    struct session_request req = { .name = "notebook",
                                   .type = type,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    agent_comes("a", FOUR_CPUS);
    a = create(&req);
    if (a.r < 0)
        fail_msg("%s", a.err.text);
    session = a.created.id;
    order = *find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    world.events[0] = '\0';
}

static void measure(double cpu_percent)
{
    struct msg_metric metric = { "cpu_util", METRIC_PERCENT, METRIC_RATE, 0 };
    struct msg_value value = { 0, cpu_used += cpu_percent * 10 * 15, 1000 };
    struct msg_kernel_values kernel = { .kernel_id = order.kernel_id,
                                        .session_id = session,
                                        .attempt = order.attempt,
                                        .values = &value,
                                        .value_count = 1 };
    struct msg_statistics m = { .at_usec = world_wall,
                                .interval_usec = 15 * USEC_PER_SEC,
                                .metrics = &metric,
                                .metric_count = 1,
                                .kernels = &kernel,
                                .kernel_count = 1 };

    statistics_take(world.core, agent_entry_find(world.core, "a"), &m);
}

/* The kernel runs on and uses so much of a core. */
static void run(int64_t usec, double cpu_percent)
{
    struct msg_kernel_status report;

    for (; usec > 0 && status_of(&session) == SESSION_RUNNING; usec -= 15 * USEC_PER_SEC) {
        pass(AQ_MIN(usec, 15 * USEC_PER_SEC));
        if (status_of(&session) != SESSION_RUNNING)
            return;
        report = kernel_report(&order, MSG_KERNEL_RUNNING);
        agent_beats("a", &report, 1);
        measure(cpu_percent);
        settle();
    }
}

static void assert_ended(const char *reason)
{
    const struct session *s = core_find_session(world.core, &session);

    assert_non_null(s);
    assert_int_equal(s->status, SESSION_TERMINATING);
    assert_string_equal(s->reason, reason);
    assert_clean();
}

static void assert_text(const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct core_idle idle;

    assert_true(core_read_idle(world.core, core_find_session(world.core, &session), &idle));
    core_idle_write_text(&idle, "notebook", &out);
    assert_string_equal(out.len ? out.data : "", text);
}

static void warned_and_ended(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    run(49 * MINUTE, 1);
    assert_string_equal(world.events, "");
    assert_text("");
    run(2 * MINUTE, 1);
    assert_string_equal(world.events, "session_idle_warning ");
    assert_text("Session 'notebook' is idle and ends in 9 min unless it is used. 'aliquot session "
                "extend notebook' keeps it running");
    run(8 * MINUTE, 1);
    assert_string_equal(world.events, "session_idle_warning session_idle_warning ");
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(2 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void work_keeps(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    run(55 * MINUTE, 1);
    core_note_traffic(world.core, &session, 100);
    run(MINUTE, 1);
    core_note_traffic(world.core, &session, 500);
    run(4 * MINUTE - 30 * USEC_PER_SEC, 1); /* neither minute had enough */
    core_note_work(world.core, &session);
    settle();
    run(59 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    core_note_command(world.core, &session, 1); /* somebody waits for a command */
    run(120 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    core_note_command(world.core, &session, -1);
    run(61 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void computing_keeps(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    run(180 * MINUTE, 95);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    assert_string_equal(world.events, "");
    run(61 * MINUTE, 2);
    assert_ended("idle-timeout");
}

/* Its agent says nothing of what it uses. */
static void unmeasured_keeps(void **state)
{
    struct msg_kernel_status report;

    (void)state;
    use_policy(600, 0, 0);
    begin(SESSION_INTERACTIVE);
    for (int i = 0; i < 60; i++) {
        pass(30 * USEC_PER_SEC);
        report = kernel_report(&order, MSG_KERNEL_RUNNING);
        agent_beats("a", &report, 1);
    }
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(5 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void lifetime_and_batch(void **state)
{
    (void)state;
    use_policy(60, 1800, 0); /* batch sessions are not looked at by the first */
    begin(SESSION_BATCH);
    run(29 * MINUTE, 0);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    assert_string_equal(world.events, "session_idle_warning session_idle_warning ");
    run(2 * MINUTE, 0);
    assert_ended("idle-session-lifetime");
}

static void come_back(void)
{
    struct msg_kernel_status report;

    restart_core();
    agent_greets("a", FOUR_CPUS, uuid_random());
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    agent_beats("a", &report, 1);
    world.events[0] = '\0';
    assert_int_equal(status_of(&session), SESSION_RUNNING);
}

static void restarts_keep_the_time(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    core_note_work(world.core, &session);
    settle();
    run(30 * MINUTE, 1);
    come_back();
    run(28 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(4 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void in_use_through_a_restart(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    run(120 * MINUTE, 90);
    come_back();
    run(58 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(4 * MINUTE, 1);
    assert_ended("idle-timeout");
}

/* What became due while no manager was there is warned of first. */
static void due_at_a_restart(void **state)
{
    (void)state;
    use_policy(3600, 0, 0);
    begin(SESSION_INTERACTIVE);
    run(10 * MINUTE, 1);
    close_core();
    world_mono += 120 * MINUTE;
    world_wall += 120 * MINUTE;
    open_core();
    come_back();
    run(30 * USEC_PER_SEC, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(3 * MINUTE, 1);
    assert_string_equal(world.events,
                        "session_idle_warning kernel_terminating session_terminating ");
}

static void clocks_jump(void **state)
{
    (void)state;
    use_policy(3600, 7200, 0);
    begin(SESSION_INTERACTIVE);
    run(10 * MINUTE, 1);
    world_wall += 24 * 60 * MINUTE;
    run(10 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    come_back();
    run(20 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    assert_string_equal(world.events, "");
}

struct extended {
    bool came;
    int r;
    struct aq_error err;
    int64_t until_usec;
};

static void on_extended(void *data, int r, const struct aq_error *err, int64_t until_usec)
{
    struct extended *to = data;

    *to = (struct extended){ true, r, r < 0 ? *err : (struct aq_error){ 0 }, until_usec };
}

static struct extended extend(int64_t usec)
{
    struct extended answer = { 0 };

    core_extend_session(world.core, &session, usec, &asker, on_extended, &answer);
    settle();
    assert_true(answer.came);
    return answer;
}

static void exempt(int64_t usec)
{
    struct answer a = { 0 };

    core_exempt_session(world.core, &session, usec, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

static void extended_by_people(void **state)
{
    struct extended answer;

    (void)state;
    use_policy(3600, 5 * 3600, 2 * 3600);
    begin(SESSION_INTERACTIVE);
    run(55 * MINUTE, 1);
    answer = extend(90 * MINUTE);
    assert_int_equal(answer.r, 0);
    assert_true(answer.until_usec == world_wall + 90 * MINUTE);
    assert_audited("extend-session", 1, "{\"before\":null,\"after\":{\"extended_sec\":5400}}");
    come_back();
    run(88 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    answer = extend(33 * MINUTE); /* of which two minutes are granted already */
    assert_int_equal(answer.r, -EINVAL);
    assert_string_equal(answer.err.field, "duration");
    assert_non_null(strstr(answer.err.text, "1800 s remain"));
    assert_int_equal(extend(32 * MINUTE).r, 0);
    run(35 * MINUTE, 1);
    assert_ended("idle-timeout");
}

/* A shorter one, as without a time, takes nothing away and uses up nothing. */
static void extended_again(void **state)
{
    struct extended answer;
    int64_t until;

    (void)state;
    use_policy(3600, 0, 4 * 3600);
    begin(SESSION_INTERACTIVE);
    until = world_wall + 180 * MINUTE;
    assert_int_equal(extend(180 * MINUTE).r, 0);
    run(30 * MINUTE, 1);
    answer = extend(0);
    assert_int_equal(answer.r, 0);
    assert_true(answer.until_usec == until);
    answer = extend(10 * MINUTE);
    assert_true(answer.r == 0 && answer.until_usec == until);
    assert_int_equal(extend(211 * MINUTE).r, -EINVAL);
    answer = extend(210 * MINUTE); /* an hour more */
    assert_true(answer.r == 0 && answer.until_usec == until + 60 * MINUTE);
    run(209 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(5 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void exempt_by_administrators(void **state)
{
    (void)state;
    use_policy(600, 1200, 0);
    begin(SESSION_INTERACTIVE);
    exempt(0);
    assert_audited("exempt-session", 1, "{\"before\":null,\"after\":{\"exempt\":true}}");
    run(60 * MINUTE, 1);
    come_back();
    run(60 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    exempt(30 * MINUTE);
    run(29 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(5 * MINUTE, 1);
    assert_ended("idle-timeout");
}

static void little_is_used(void **state)
{
    struct idle_settings s;

    (void)state;
    use_policy(-1, 0, 0);
    begin(SESSION_INTERACTIVE);
    idle_settings_defaults(&s);
    assert_int_equal(idle_settings_put(&s, "enabled", "utilization", NULL), 1);
    assert_int_equal(idle_settings_put(&s, "checkers/utilization/time-window", "1h", NULL), 1);
    assert_int_equal(idle_settings_put(&s,
                                       "checkers/utilization/resource-thresholds/cpu_util/average",
                                       "30", NULL),
                     1);
    core_set_idle(world.core, &s);
    idle_entry_tick(world.core);
    settle();
    run(120 * MINUTE, 90);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    run(30 * MINUTE, 5);
    assert_string_equal(world.events, "");
    run(15 * MINUTE, 5);
    assert_string_equal(world.events, "session_idle_warning ");
    run(15 * MINUTE, 5);
    assert_ended("idle-utilization");
}

static void spare_new_users(const char *span)
{
    struct idle_settings s;

    idle_settings_defaults(&s);
    assert_int_equal(
        idle_settings_put(&s, "checkers/user_grace_period/user_initial_grace_period", span, NULL),
        1);
    core_set_idle(world.core, &s);
    idle_entry_tick(world.core);
    settle();
}

/* The time counts from the creation of the user, whatever changes later, and across restarts. */
static void new_users_are_spared(void **state)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, world_wall + 60 * MINUTE);
    struct answer a = { 0 };

    (void)state;
    use_policy(1800, 2400, 0);
    spare_new_users("2h");
    begin(SESSION_INTERACTIVE);
    run(60 * MINUTE, 1);
    entity_copy(&user_entity, &e->user.user,
                core_find_user(world.core, &core_find_keypair(world.core, USER_KEY)->user_id));
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    come_back();
    spare_new_users("2h");
    run(75 * MINUTE, 1);
    assert_int_equal(status_of(&session), SESSION_RUNNING);
    assert_string_equal(world.events, "");
    run(18 * MINUTE, 1);
    assert_ended("idle-timeout");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(warned_and_ended),         TEST(work_keeps),           TEST(computing_keeps),
        TEST(unmeasured_keeps),         TEST(lifetime_and_batch),   TEST(restarts_keep_the_time),
        TEST(in_use_through_a_restart), TEST(due_at_a_restart),     TEST(clocks_jump),
        TEST(extended_by_people),       TEST(extended_again),       TEST(exempt_by_administrators),
        TEST(little_is_used),           TEST(new_users_are_spared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
