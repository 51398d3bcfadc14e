/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of replicas: they grow and shrink where they run, stay where there is no room, and come back
 * to what they should be after a restart of the manager.
 */
#include "world.h"

#include "manager/core/serving/service_health.h"
#include "manager/core/serving/service_share.h"
#include "manager/core/services.h"
#include "manager/core/state/model_service_entry.h"

#define CARD(n)                                                                                     \
    "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"],\"cuda.shares\":[\"count\",\"" n \
    "\"]}"
#define BOUNDS "{\"share\":{\"min\":0.25,\"max\":1,\"quantum\":0.25}}"
#define QUARTER (AMOUNT_ONE / 4)
#define HALF (AMOUNT_ONE / 2)

static int changes; /* calls of the listener */

static void on_change(void *data, const struct uuid *service_id)
{
    (void)data;
    (void)service_id;
    changes++;
}

static struct model_service wish(const char *shares, const char *scaling)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct user *u = core_find_user(world.core, &k->user_id);
    struct text_pair slots[] = { { "cpu", "1" }, { "mem", "64m" }, { "cuda.shares", shares } };
    const struct model_service_spec spec = {
        .session = { .image = "sh", .command = "serve" },
        .resources = { slots, shares ? 3 : 2 },
        .runtime = "custom",
        .port = 8000,
    };
    struct model_service s = { .name = "digits",
                               .replicas = 1,
                               .replicas_min = 1,
                               .replicas_max = 4,
                               .project_id = u->project_ids[0] };

    (void)snprintf(s.access_key, sizeof(s.access_key), "%s", USER_KEY);
    s.domain = strdup("default");
    s.scaling = scaling ? strdup(scaling) : NULL;
    s.revisions = calloc(1, sizeof(*s.revisions));
    s.revisions[0].spec = model_service_spec_copy(&spec);
    s.revision_count = 1;
    return s;
}

static struct answer try_create(const char *shares, const char *scaling)
{
    struct model_service s = wish(shares, scaling);
    struct answer a = { 0 };

    core_create_service(world.core, &s, NULL, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static const struct model_service *serve(const char *shares, const char *scaling)
{
    struct answer a = try_create(shares, scaling);

    assert_row(a.r == 0, "%s: %s", a.err.field, a.err.text);
    return core_find_service(world.core, "digits");
}

static const struct model_service *find_service(void)
{
    return core_find_service(world.core, "digits");
}

static const struct session *replica_of(size_t n)
{
    const struct session *session = core_next_replica(world.core, find_service(), NULL);

    while (session && n--)
        session = core_next_replica(world.core, find_service(), session);
    assert_non_null(session);
    return session;
}

static struct core_replica find(size_t n)
{
    struct core_replica replica;

    assert_true(core_find_replica(world.core, replica_of(n), &replica));
    return replica;
}

static struct sent order_of(const struct session *session)
{
    for (size_t i = world.sent_count; i-- > 0;)
        if (world.sent[i].type == MSG_KERNEL_CREATE
            && uuid_equals(&world.sent[i].session_id, &session->id))
            return world.sent[i];
    fail_msg("session %s was not started", session->name);
    return (struct sent){ .attempt = 0 };
}

/* The n-th replica runs and is ready; its order. */
static struct sent becomes_ready(size_t n)
{
    const struct session *session = replica_of(n);
    struct sent order = order_of(session);
    const struct msg_kernel_health health = { .kernel_id = session->kernels[0].id,
                                              .attempt = session->kernels[0].attempt,
                                              .state = "ready" };

    agent_reports(&order, MSG_KERNEL_RUNNING);
    service_note_health(world.core, session->kernels[0].agent_id, &health);
    settle();
    assert_int_equal(find(n).health, CORE_REPLICA_READY);
    world.sent_count = 0;
    return order;
}

static void scale(int64_t replicas, int64_t share_micro)
{
    struct answer a = { 0 };

    core_scale_service(world.core, &find_service()->id, replicas, share_micro, -1, "load",
                       on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

static const char *slots_text(int64_t share_micro, char buf[128])
{
    char amount[AMOUNT_TEXT_MAX];

    (void)snprintf(buf, 128, "{\"cpu\":\"1\",\"cuda.shares\":\"%s\",\"mem\":\"67108864\"}",
                   slot_amount_format(share_micro, SLOT_COUNT, amount));
    return buf;
}

/* One order to try this share has been sent; its number. */
static int64_t is_tried(int64_t share_micro)
{
    char text[128];
    int64_t trial;

    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), 1);
    assert_string_equal(find_sent(MSG_KERNEL_RESIZE, 0)->slots, slots_text(share_micro, text));
    trial = find_sent(MSG_KERNEL_RESIZE, 0)->trial;
    assert_int_not_equal(trial, 0);
    world.sent_count = 0;
    return trial;
}

/* The agent tries it, and does it. */
static void is_given(const struct sent *order, int64_t had, int64_t share_micro)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_RUNNING);
    char now[128], then[128];

    report.trial = is_tried(share_micro);
    report.slots = slots_text(had, now);
    report.prepared = slots_text(share_micro, then);
    agent_says(order->agent_id, report);
    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), 1);
    assert_int_equal(find_sent(MSG_KERNEL_RESIZE, 0)->trial, 0);
    world.sent_count = 0;
    report.trial = 0;
    report.slots = then;
    report.prepared = NULL;
    agent_says(order->agent_id, report);
}

static void is_refused(const struct sent *order, int64_t has, int64_t share_micro)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_RUNNING);
    char now[128];

    report.trial = is_tried(share_micro);
    report.slots = slots_text(has, now);
    report.error_kind = "insufficient-resource";
    report.error_field = "cuda.shares";
    report.error_text = "cuda.shares: the card is full";
    world.sent_count = 0;
    agent_says(order->agent_id, report);
    while (world.sent_count && world.sent[0].type == MSG_KERNEL_RESIZE && !world.sent[0].trial)
        memmove(&world.sent[0], &world.sent[1], --world.sent_count * sizeof(world.sent[0]));
}

static void grows_and_shrinks(void **state)
{
    struct sent order;
    int before;

    (void)state;
    agent_comes("a", CARD("2"));
    core_on_service_change(world.core, on_change, NULL);
    (void)serve("0.25", BOUNDS);
    assert_int_equal(core_service_share(find_service()), QUARTER);
    order = becomes_ready(0);
    assert_int_equal(find(0).share_micro, QUARTER);

    scale(1, HALF);
    assert_int_equal(find_service()->share_micro, HALF);
    before = changes;
    is_given(&order, QUARTER, HALF);
    assert_true(changes > before); /* routes have another share */
    assert_int_equal(find(0).share_micro, HALF);
    assert_null(find(0).share_problem);
    scale(1, 5 * AMOUNT_ONE);
    assert_int_equal(find_service()->share_micro, AMOUNT_ONE); /* the largest */
    is_given(&order, HALF, AMOUNT_ONE);
    scale(1, 1);
    is_given(&order, AMOUNT_ONE, QUARTER);
    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), 0);
    assert_clean();
}

/* Where the whole has no room the most that has is found; then the replica stays, and it is tried
 * again.
 */
static void stays_where_there_is_no_room(void **state)
{
    struct sent order;

    (void)state;
    agent_comes("a", CARD("2"));
    (void)serve("0.25", BOUNDS);
    order = becomes_ready(0);
    scale(1, AMOUNT_ONE);
    is_refused(&order, QUARTER, AMOUNT_ONE);
    assert_null(find(0).share_problem); /* half of the way may do */
    is_given(&order, QUARTER, HALF);
    is_refused(&order, HALF, AMOUNT_ONE - QUARTER);
    assert_int_equal(find(0).share_micro, HALF);
    assert_int_equal(find(0).share_wanted_micro, AMOUNT_ONE);
    assert_string_equal(find(0).share_problem, "cuda.shares: the card is full");
    pass(4 * USEC_PER_SEC);
    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), 0);
    pass(2 * USEC_PER_SEC);
    is_refused(&order, HALF, AMOUNT_ONE);
    is_refused(&order, HALF, AMOUNT_ONE - QUARTER);
    assert_non_null(find(0).share_problem);
    scale(1, HALF); /* what it has is what it should have */
    assert_null(find(0).share_problem);
    assert_int_equal(count_sent(MSG_KERNEL_RESIZE), 0);
    scale(1, AMOUNT_ONE);
    is_given(&order, HALF, AMOUNT_ONE);
    assert_null(find(0).share_problem);
    assert_clean();
}

static void new_replicas_have_it(void **state)
{
    const struct model_service *s;

    (void)state;
    agent_comes("a", CARD("2"));
    s = serve("0.25", BOUNDS);
    (void)becomes_ready(0);
    scale(2, 3 * QUARTER);
    assert_int_equal(slots_get(&replica_of(1)->kernels[0].requested, "cuda.shares"), 3 * QUARTER);
    assert_int_equal(s->replicas, 2);
    assert_clean();
}

/* One that waits for more than there is room for is replaced by one that has the least. */
static void waits_with_the_least(void **state)
{
    const struct session *second;
    struct uuid waiting;

    (void)state;
    agent_comes("a", CARD("1"));
    (void)serve("0.5", BOUNDS);
    (void)becomes_ready(0);
    scale(2, 3 * QUARTER);
    waiting = replica_of(1)->id;
    assert_int_equal(status_of(&waiting), SESSION_PENDING);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&waiting), GONE);
    second = replica_of(1);
    assert_int_equal(slots_get(&second->kernels[0].requested, "cuda.shares"), QUARTER);
    assert_int_not_equal(second->status, SESSION_PENDING);
    assert_int_equal(core_service_failures(world.core, find_service()), 0);
    assert_clean();
}

/* A manager that was killed while an agent tries begins anew. */
static void is_resized_after_a_restart(void **state)
{
    struct msg_kernel_status report;
    struct sent order;
    char text[128];

    (void)state;
    agent_comes("a", CARD("2"));
    (void)serve("0.25", BOUNDS);
    order = becomes_ready(0);
    scale(1, HALF);
    (void)is_tried(HALF);
    restart_core();
    assert_int_equal(find_service()->share_micro, HALF);
    assert_int_equal(find(0).share_micro, QUARTER);
    report = kernel_report(&order, MSG_KERNEL_RUNNING);
    report.slots = slots_text(QUARTER, text);
    world.sent_count = 0;
    assert_int_equal(agent_greets("a", CARD("2"), uuid_random()), 0);
    agent_beats("a", &report, 1);
    pass(6 * USEC_PER_SEC); /* the first try may have come before the agent */
    is_given(&order, QUARTER, HALF);
    assert_int_equal(find(0).share_micro, HALF);
    assert_clean();
}

/* Rollouts without room have pairs of replicas with half a share each. */
static void is_halved(void **state)
{
    const char *slot;
    const struct model_service_entry *entry;
    struct core_replica replica = { .share_micro = 0 };
    bool is_half;

    (void)state;
    agent_comes("a", CARD("2"));
    (void)serve("1", NULL);
    (void)becomes_ready(0);
    entry = model_service_entry_find(world.core, &find_service()->id);
    replica_of(0)->replica->has_half_share = true;
    service_share_describe(world.core, session_entry_find(world.core, &replica_of(0)->id)->replica,
                           &replica);
    assert_int_equal(replica.share_wanted_micro, HALF);
    assert_int_equal(replica.share_micro, AMOUNT_ONE);
    assert_int_equal(
        service_share_of_next(world.core, entry, &entry->s.revisions[0], &slot, &is_half),
        AMOUNT_ONE);
    assert_string_equal(slot, "cuda.shares");
    assert_false(is_half);
}

static struct answer change_scaling(const char *scaling)
{
    struct model_service s;
    struct answer a = { 0 };

    model_service_copy(&s, find_service());
    free(s.scaling);
    s.scaling = scaling ? strdup(scaling) : NULL;
    core_change_service(world.core, &s, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static void bounds_change(void **state)
{
    struct sent order;

    (void)state;
    agent_comes("a", CARD("2"));
    (void)serve("0.25", BOUNDS);
    order = becomes_ready(0);
    scale(1, AMOUNT_ONE);
    is_given(&order, QUARTER, AMOUNT_ONE);
    assert_int_equal(change_scaling("{\"share\":{\"min\":0.25,\"max\":0.5}}").r, 0);
    assert_int_equal(find_service()->share_micro, HALF);
    is_given(&order, AMOUNT_ONE, HALF);
    assert_int_equal(change_scaling(NULL).r, 0); /* without bounds it is the revision's amount */
    assert_int_equal(find_service()->share_micro, 0);
    is_given(&order, HALF, QUARTER);
    scale(1, AMOUNT_ONE); /* not without bounds */
    assert_int_equal(find_service()->share_micro, 0);
}

static void refused(void **state)
{
    static const struct {
        const char *shares, *scaling, *field, *text;
    } rows[] = {
        { NULL, BOUNDS, "scaling.share", "name one such as cuda.shares=0.25" },
        { "2", BOUNDS, "scaling.share", "is not within the bounds" },
        { "0.2", BOUNDS, "scaling.share", "0.25 to 1" },
        { "1", "{\"share\":{\"min\":0.25,\"max\":3}}", "scaling.share.max",
          "more than the 2 of cuda.shares" },
    };

    (void)state;
    agent_comes("a", CARD("2"));
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct answer a = try_create(rows[i].shares, rows[i].scaling);

        assert_row(a.r == -EINVAL && strcmp(a.err.field, rows[i].field) == 0
                       && strstr(a.err.text, rows[i].text),
                   "row %zu: %d %s: %s", i, a.r, a.err.field, a.err.text);
    }
    (void)serve("0.25", NULL);
    assert_string_equal(change_scaling("{\"share\":{\"min\":0.5,\"max\":1}}").err.field,
                        "scaling.share");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(grows_and_shrinks),
        TEST(stays_where_there_is_no_room),
        TEST(new_replicas_have_it),
        TEST(waits_with_the_least),
        TEST(is_resized_after_a_restart),
        TEST(is_halved),
        TEST(bounds_change),
        TEST(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
