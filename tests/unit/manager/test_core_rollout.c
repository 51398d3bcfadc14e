/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts of model services: strategies, aborts, promotion, no room; and the manager that starts
 * again in between.
 */
#include "service_world.h"

#include "manager/core/state/model_service_entry.h"
#include "store/model_service.h"

#define SLOTS(cpus) "{\"cpu\":[\"count\",\"" cpus "\"],\"mem\":[\"bytes\",\"8589934592\"]}"
#define FULL ROLLOUT_FULL_PPM

static struct rollout_state state_of(const struct model_service *s)
{
    struct rollout rollout;
    struct rollout_state state;

    (void)core_service_rollout(world.core, s, &rollout, &state);
    return state;
}

static const char *rollout_text;

static void set_rollout(struct model_service *s, int64_t value)
{
    (void)value;
    free(s->rollout);
    s->rollout = rollout_text ? strdup(rollout_text) : NULL;
}

static struct answer configure(const struct model_service *s, const char *rollout)
{
    rollout_text = rollout;
    return change(s, set_rollout, 0);
}

static const struct model_service *digits(void)
{
    return core_find_service(world.core, "digits");
}

/* A service whose replicas of revision 1 are ready, and revision 2 is the goal. */
static const struct model_service *deploy(const char *slots, int64_t replicas, const char *rollout)
{
    const struct model_service *s;

    agent_comes("a", slots);
    s = serve("digits", replicas);
    for (int64_t i = 0; i < replicas; i++)
        becomes_ready(replica_of(s, (size_t)i));
    assert_int_equal(configure(s, rollout).r, 0);
    assert_int_equal(change(s, add_revision, 1).r, 0);
    assert_int_equal(s->goal, 2);
    return s;
}

/* Time passes while the agent says that what runs runs. */
static void live(int64_t sec)
{
    for (int64_t left = sec; left > 0; left -= AQ_MIN(left, 5)) {
        struct msg_kernel_status reports[16];
        size_t count = 0;

        for (const struct session *r = NULL; (r = core_next_replica(world.core, digits(), r));)
            if (r->status == SESSION_RUNNING) {
                struct sent order = order_of(r);

                reports[count++] = kernel_report(&order, MSG_KERNEL_RUNNING);
            }
        agent_beats("a", reports, count);
        pass(AQ_MIN(left, 5) * USEC_PER_SEC);
    }
}

/* It drains, has nothing under way and ends. */
static void leaves(const char *name)
{
    struct uuid id = named(name)->id;

    assert_true(find(named(name)).is_draining);
    if (named(name)->status == SESSION_RUNNING) {
        core_note_replica_idle(world.core, &id);
        settle();
    }
    ends(id);
}

static int64_t ratio_of(const char *name)
{
    return find(named(name)).rollout_ratio_ppm;
}

static struct answer ask(void (*command)(struct core *core, const struct uuid *id,
                                         const struct audit_who *by, core_done_fn done, void *data))
{
    struct uuid id = digits()->id;
    struct answer a = { 0 };

    command(world.core, &id, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static void answers(const char *name, int64_t requests, int64_t errors)
{
    struct core_replica_figures figures = { requests, errors, 0.1 };

    core_note_replica_figures(world.core, &named(name)->id, &figures);
    settle();
}

/* ---- what is kept ---- */

static int read_changes(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct uuid id = digits()->id;

    return store_read_model_service_changes(tx, &id, 100, data, err);
}

#define BY " (asked for by asker@lablup.com)"

/* After the creation and the settings the history has these entries with reasons, the first one first;
 * '|' ends each.
 */
static void assert_history(const char *expected)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct model_service_changes changes = { 0 };

    assert_int_equal(store_call(world.core->store, read_changes, &changes, NULL), 0);
    for (size_t i = changes.count - 2; i-- > 0;)
        if (changes.items[i].reason)
            strbuf_addf(&text, "%s|", changes.items[i].reason);
    model_service_changes_done(&changes);
    assert_string_equal(text.data, expected);
}

/* ---- strategies ---- */

static void rolling(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, NULL);

    (void)state;
    assert_int_equal(state_of(s).phase, ROLLOUT_RUNNING);
    assert_int_equal(state_of(s).from, 1);
    becomes_ready(named("digits.r2.3"));
    leaves("digits.r1.2");
    s = restarts("digits", SLOTS("8"));
    assert_int_equal(count_replicas(s), 3);
    becomes_ready(named("digits.r2.4"));
    leaves("digits.r1.1");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(ratio_of("digits.r2.4"), FULL);
    assert_history("rolling rollout from revision 1 to 2 begins" BY
                   "|rollout to revision 2 is complete|");
    assert_clean();
}

#define BLUE_GREEN "{\"strategy\": \"blue-green\", \"keep\": 60}"

static void blue_green(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, BLUE_GREEN);
    struct answer a;

    (void)state;
    assert_int_equal(count_replicas(s), 4);
    becomes_ready(named("digits.r2.3"));
    assert_int_equal(ratio_of("digits.r2.3"), 0);
    a = ask(core_promote_service);
    assert_int_equal(a.r, -EBUSY);
    assert_string_equal(a.err.kind, "conflict");
    assert_non_null(strstr(a.err.text, "1 of 2 replicas of revision 2 are ready"));
    becomes_ready(named("digits.r2.4"));
    assert_int_equal(state_of(s).phase, ROLLOUT_READY);
    assert_null(core_service_problem(world.core, s));
    s = restarts("digits", SLOTS("8"));
    assert_int_equal(ratio_of("digits.r1.1"), FULL);
    assert_int_equal(ratio_of("digits.r2.3"), 0);
    /* One of the group that answers ends, and is there again. */
    exits(named("digits.r1.1"), 1);
    live(2);
    assert_non_null(named("digits.r1.5"));
    becomes_ready(named("digits.r1.5"));
    assert_int_equal(ratio_of("digits.r1.5"), FULL);
    assert_int_equal(ask(core_promote_service).r, 0);
    assert_int_equal(ratio_of("digits.r1.2"), 0);
    assert_int_equal(ratio_of("digits.r2.3"), FULL);
    assert_false(find(named("digits.r1.2")).is_draining);
    a = ask(core_promote_service);
    assert_int_equal(a.r, -EBUSY);
    assert_non_null(strstr(a.err.text, "promoted already"));
    s = restarts("digits", SLOTS("8"));
    assert_int_equal(ratio_of("digits.r1.2"), 0);
    live(61);
    leaves("digits.r1.2");
    leaves("digits.r1.5");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(ask(core_promote_service).r, -EBUSY);
    assert_history("blue-green rollout from revision 1 to 2 begins" BY "|"
                   "rollout to revision 2: all new replicas are ready|"
                   "rollout to revision 2: the new replicas get all requests" BY "|"
                   "rollout to revision 2 is complete|");
    assert_audited("promote-service", 1, NULL);
    assert_clean();
}

/* After it was promoted, the old group is there to go back to at once. */
static void blue_green_is_taken_back(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 1, BLUE_GREEN);

    (void)state;
    becomes_ready(named("digits.r2.2"));
    assert_int_equal(ask(core_promote_service).r, 0);
    assert_int_equal(ratio_of("digits.r2.2"), FULL);
    assert_int_equal(ask(core_abort_rollout).r, 0);
    assert_int_equal(s->goal, 1);
    assert_int_equal(ratio_of("digits.r1.1"), FULL);
    leaves("digits.r2.2");
    assert_int_equal(count_replicas(s), 1);
    assert_int_equal(state_of(s).phase, ROLLOUT_ABORTED);
    assert_string_equal(state_of(s).reason, "aborted by request");
    assert_audited("abort-service-rollout", 1, NULL);
    assert_clean();
}

static void promoted_by_time(void **state)
{
    const struct model_service *s = deploy(
        SLOTS("8"), 1,
        "{\"strategy\": \"blue-green\", \"auto_promote\": true, \"promote_delay\": 30}");

    (void)state;
    becomes_ready(named("digits.r2.2"));
    live(20);
    assert_int_equal(state_of(s).phase, ROLLOUT_READY);
    world_wall -= 3600 * USEC_PER_SEC; /* the clock is set back */
    live(31 + 5);
    leaves("digits.r1.1");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_clean();
}

static void canary(void **state)
{
    const struct model_service *s = deploy(
        SLOTS("8"), 4, "{\"strategy\": \"canary\", \"steps\": [10, 50], \"step_interval\": 60}");

    (void)state;
    assert_int_equal(count_replicas(s), 5);
    becomes_ready(named("digits.r2.5"));
    assert_int_equal(ratio_of("digits.r2.5"), 444444); /* 10 % to one, 22.5 % to each other */
    assert_int_equal(ratio_of("digits.r1.1"), FULL);
    live(30);
    s = restarts("digits", SLOTS("8"));
    assert_int_equal(state_of(s).step, 0);
    assert_int_equal(ratio_of("digits.r2.5"), 444444);
    live(31);
    assert_int_equal(state_of(s).step, 1);
    assert_string_equal(state_of(s).reason, "new replicas get 50 % of requests");
    leaves("digits.r1.4");
    becomes_ready(named("digits.r2.6"));
    leaves("digits.r1.3");
    assert_int_equal(ratio_of("digits.r2.6"), ratio_of("digits.r1.1"));
    assert_int_equal(ask(core_promote_service).r, 0); /* not after 60 s, but now */
    assert_int_equal(ask(core_promote_service).r, -EBUSY);
    assert_int_equal(ratio_of("digits.r2.6"), FULL);
    becomes_ready(named("digits.r2.7"));
    leaves("digits.r1.2");
    becomes_ready(named("digits.r2.8"));
    leaves("digits.r1.1");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_clean();
}

/* ---- aborts ---- */

static void a_failing_revision_is_taken_back(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, NULL);

    (void)state;
    exits(named("digits.r2.3"), 3);
    assert_int_equal(state_of(s).failures, 1);
    s = restarts("digits", SLOTS("8")); /* pauses are forgotten, failures are not */
    exits(named("digits.r2.4"), 3);
    assert_int_equal(state_of(s).failures, 2);
    live(1);
    exits(named("digits.r2.5"), 3);
    assert_int_equal(s->goal, 1);
    assert_int_equal(state_of(s).phase, ROLLOUT_ABORTED);
    assert_string_equal(state_of(s).reason, "3 replicas of revision 2 failed");
    assert_int_equal(count_replicas(s), 2);
    assert_null(core_service_problem(world.core, s));
    assert_history(
        "rolling rollout from revision 1 to 2 begins" BY "|"
        "rollout to revision 2 is aborted: 3 replicas of revision 2 failed; going back to "
        "revision 1; last failure: replica 'digits.r2.5' ended: its program exited "
        "with status 3 before it was ready|"
        "revision 1 is back after the aborted rollout to revision 2|");
    live(10);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* One that stops answering has failed, too. */
static void unhealthy_replicas_are_failures(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, "{\"abort\": {\"failures\": 2}}");

    (void)state;
    becomes_ready(named("digits.r2.3"));
    for (int i = 0; i < 2; i++) {
        says_health(named("digits.r2.3"), "unhealthy", "status 500");
        says_health(named("digits.r2.3"), i ? "unhealthy" : "ready", NULL);
    }
    assert_int_equal(s->goal, 1);
    leaves("digits.r1.2");
    becomes_ready(named("digits.r1.4"));
    leaves("digits.r2.3");
    assert_int_equal(state_of(s).phase, ROLLOUT_ABORTED);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

static void errors_are_a_reason(void **state)
{
    const struct model_service *s = deploy(
        SLOTS("8"), 2,
        "{\"strategy\": \"canary\", \"steps\": [50], \"step_interval\": 600,"
        " \"abort\": {\"error_ratio\": 0.1, \"requests\": 10}}");

    (void)state;
    becomes_ready(named("digits.r2.3"));
    answers("digits.r1.1", 100, 30);
    answers("digits.r2.3", 100, 35);
    assert_int_equal(s->goal, 2);
    answers("digits.r2.3", 100, 45);
    assert_int_equal(s->goal, 1);
    assert_string_equal(state_of(s).reason,
                        "45.0 % of requests to revision 2 failed, 30.0 % to revision 1");
    assert_clean();
}

static void aborted_by_hand(void **state)
{
    const struct model_service *s;
    struct answer a;

    (void)state;
    agent_comes("a", SLOTS("8"));
    s = serve("digits", 2);
    assert_int_equal(ask(core_abort_rollout).r, -EBUSY);
    assert_int_equal(change(s, add_revision, 1).r, 0);
    a = ask(core_abort_rollout);
    assert_int_equal(a.r, -EBUSY); /* nothing was ever ready */
    assert_non_null(strstr(a.err.text, "no other revision"));
    while (count_replicas(s) > 2)
        ends(replica_of(s, 0)->id);
    becomes_ready(replica_of(s, 0));
    becomes_ready(replica_of(s, 1));
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(change(s, add_revision, 0).r, 0);
    assert_int_equal(ask(core_abort_rollout).r, 0);
    assert_int_equal(s->goal, 2);
    assert_int_equal(state_of(s).phase, ROLLOUT_ABORTING);
    a = ask(core_abort_rollout);
    assert_int_equal(a.r, -EBUSY);
    assert_non_null(strstr(a.err.text, "being aborted already"));
    s = restarts("digits", SLOTS("8"));
    assert_int_equal(s->goal, 2);
    assert_int_equal(state_of(s).phase, ROLLOUT_ABORTED);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* The goal may change again at any time: the rollout begins anew, from what is ready. */
static void rolled_back_meanwhile(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, NULL);

    (void)state;
    becomes_ready(named("digits.r2.3"));
    leaves("digits.r1.2");
    assert_non_null(named("digits.r2.4"));
    assert_int_equal(change(s, set_goal, 1).r, 0);
    assert_int_equal(state_of(s).phase, ROLLOUT_RUNNING);
    assert_int_equal(state_of(s).from, 2);
    assert_int_equal(state_of(s).to, 1);
    ends(named("digits.r2.4")->id); /* it was never ready */
    becomes_ready(named("digits.r1.5"));
    leaves("digits.r2.3");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* What answers requests already is not tried out again. */
static void rolled_back_before_it_is_promoted(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, BLUE_GREEN);

    (void)state;
    becomes_ready(named("digits.r2.3"));
    becomes_ready(named("digits.r2.4"));
    assert_int_equal(state_of(s).phase, ROLLOUT_READY);
    assert_int_equal(change(s, set_goal, 1).r, 0);
    assert_false(find(named("digits.r1.1")).is_draining);
    assert_int_equal(ratio_of("digits.r1.1"), FULL);
    leaves("digits.r2.4");
    leaves("digits.r2.3");
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

/* ---- no room ---- */

static void waits_for_room(void **state)
{
    const struct model_service *s = deploy(SLOTS("2"), 2, NULL);

    (void)state;
    live(20);
    assert_int_equal(count_replicas(s), 3);
    assert_false(find(named("digits.r1.2")).is_draining);
    assert_non_null(strstr(core_service_problem(world.core, s),
                           "the rollout to revision 2 waits: replica 'digits.r2.3' waits for "
                           "resources"));
    assert_clean();
}

static void replaces_without_room(void **state)
{
    const struct model_service *s = deploy(SLOTS("2"), 2, "{\"when_full\": \"replace\"}");

    (void)state;
    live(3);
    assert_false(find(named("digits.r1.2")).is_draining);
    live(5);
    leaves("digits.r1.2");
    assert_false(find(named("digits.r1.1")).is_draining);
    becomes_ready(named("digits.r2.3"));
    live(6);
    leaves("digits.r1.1");
    becomes_ready(named("digits.r2.4"));
    assert_int_equal(state_of(s).phase, ROLLOUT_DONE);
    assert_int_equal(count_replicas(s), 2);
    assert_clean();
}

static bool has_half_share(const char *name)
{
    return named(name)->replica->has_half_share;
}

static void shares_without_room(void **state)
{
    const struct model_service *s = deploy(SLOTS("2"), 2, "{\"when_full\": \"share\"}");

    (void)state;
    live(3);
    assert_false(has_half_share("digits.r2.3"));
    live(5);
    assert_true(has_half_share("digits.r2.3") && has_half_share("digits.r1.2"));
    assert_false(has_half_share("digits.r1.1"));
    assert_int_equal(state_of(s).shared, 1);
    s = restarts("digits", SLOTS("2"));
    live(6);
    assert_true(has_half_share("digits.r2.3") && has_half_share("digits.r1.2"));
    assert_false(has_half_share("digits.r1.1"));
    assert_clean();
}

/* ---- changes ---- */

/* Steps of a rollout do not conflict with a change, unless they change the goal. */
static void changed_meanwhile(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 2, NULL);
    struct model_service copy;
    struct answer a = { 0 };
    uint32_t version = s->version;

    (void)state;
    model_service_copy(&copy, s);
    copy.replicas = 3;
    becomes_ready(named("digits.r2.3"));
    assert_true(s->version > version);
    core_change_service(world.core, &copy, NULL, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(s->replicas, 3);
    assert_int_equal(state_of(s).ready, 1);
    model_service_copy(&copy, s);
    copy.replicas = 4;
    assert_int_equal(ask(core_abort_rollout).r, 0);
    a.came = false;
    core_change_service(world.core, &copy, NULL, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -ESTALE);
    assert_int_equal(s->goal, 1);
    assert_clean();
}

static void settings_change_meanwhile(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 4, BLUE_GREEN);
    struct rollout_state before;
    struct answer a;

    (void)state;
    becomes_ready(named("digits.r2.5"));
    before = state_of(s);
    assert_int_equal(before.ready, 1);
    assert_int_equal(configure(s, "{\"max_surge\": \"50%\"}").r, 0);
    assert_int_equal(state_of(s).to, 2);
    assert_int_equal(state_of(s).target, 4);
    assert_true(find(named("digits.r1.4")).is_draining); /* it goes on as rolling */
    assert_int_equal(configure(s, NULL).r, 0);
    assert_int_equal(state_of(s).phase, ROLLOUT_RUNNING);
    a = configure(s, "{\"strategy\": \"canary\", \"steps\": [0]}");
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "rollout.steps[0]");
    assert_clean();
}

/* The revision that a rollout would go back to is kept. */
static void the_revision_before_is_kept(void **state)
{
    const struct model_service *s = deploy(SLOTS("8"), 1, BLUE_GREEN);

    (void)state;
    for (int i = 0; i < MODEL_SERVICE_REVISIONS_MAX + 2; i++)
        assert_int_equal(change(s, add_revision, i % 2).r, 0);
    assert_int_equal(state_of(s).from, 1);
    assert_non_null(model_service_find_revision(s, 1));
    assert_int_equal(ask(core_abort_rollout).r, 0);
    assert_int_equal(s->goal, 1);
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rolling),
        TEST(blue_green),
        TEST(blue_green_is_taken_back),
        TEST(promoted_by_time),
        TEST(canary),
        TEST(a_failing_revision_is_taken_back),
        TEST(unhealthy_replicas_are_failures),
        TEST(errors_are_a_reason),
        TEST(aborted_by_hand),
        TEST(rolled_back_meanwhile),
        TEST(rolled_back_before_it_is_promoted),
        TEST(waits_for_room),
        TEST(replaces_without_room),
        TEST(shares_without_room),
        TEST(changed_meanwhile),
        TEST(settings_change_meanwhile),
        TEST(the_revision_before_is_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
