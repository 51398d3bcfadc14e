/* SPDX-License-Identifier: Apache-2.0 */
/* Bookings: their sessions wait for the start and end with them; release, cancel, change, lost
 * agents; and the manager that starts again in between.
 */
#include "world.h"

#include "manager/core/bookings.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/booking_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "store/booking.h"

#define MINUTE (60 * USEC_PER_SEC)

/* Of so many cpus on one agent, from then on for an hour, for the user's project. */
static struct booking wish(const char *name, int64_t cpus, int64_t from_usec)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct user *u = core_find_user(world.core, &k->user_id);
    struct booking b = { .starts_usec = world_wall + from_usec,
                         .ends_usec = world_wall + from_usec + 60 * MINUTE,
                         .nodes = 1 };

    (void)snprintf(b.name, sizeof(b.name), "%s", name);
    b.resource_group = strdup("default");
    assert_int_equal(slots_set(&b.amounts, "cpu", cpus * AMOUNT_ONE), 0);
    b.projects.items = malloc(sizeof(*b.projects.items));
    b.projects.items[0] = u->project_ids[0];
    b.projects.count = b.projects.cap = 1;
    return b;
}

static struct answer try_book(struct booking *b)
{
    struct answer a = { 0 };

    core_create_booking(world.core, b, NULL, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static struct uuid book(struct booking b)
{
    AQ_CLEANUP(aq_freep) char *name = strdup(b.name);
    struct answer a = try_book(&b);

    if (a.r < 0)
        fail_msg("%s: %s", a.err.field, a.err.text);
    return core_find_booking(world.core, name)->id;
}

static struct answer try_join_limited(const char *name, const char *booking, const char *access_key,
                                      int64_t limit_usec, const char *signal)
{
    struct slots one = { 0 };
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .spec.reservation = booking,
                                   .spec.batch_timeout_usec = limit_usec,
                                   .spec.signal = signal,
                                   .access_key = access_key,
                                   .priority = -1 };
    struct answer a;

    assert_int_equal(slots_set(&one, "cpu", AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&one, "mem", 64 << 20), 0);
    req.resources = one;
    a = create(&req);
    slots_done(&one);
    return a;
}

static struct answer try_join(const char *name, const char *booking, const char *access_key)
{
    return try_join_limited(name, booking, access_key, 0, NULL);
}

static struct uuid join(const char *name, const char *booking)
{
    struct answer a = try_join(name, booking, USER_KEY);

    if (a.r < 0)
        fail_msg("%s: %s", a.err.field, a.err.text);
    return a.created.id;
}

/* What is in the store of one that has finished. */
static int read_finished(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct booking_rows rows = { 0 };
    enum booking_state *outcome = data;
    int r = store_read_finished_bookings(tx, "exam", &rows, err);

    if (r == 0 && rows.count == 1)
        *outcome = rows.items[0].outcome;
    booking_rows_done(&rows);
    return r;
}

static enum booking_state outcome_of_exam(void)
{
    enum booking_state outcome = BOOKING_PLANNED;

    assert_int_equal(store_call(world.core->store, read_finished, &outcome, NULL), 0);
    return outcome;
}

static const struct sent *order_of(const struct uuid *session)
{
    for (size_t i = 0; i < world.sent_count; i++)
        if (world.sent[i].type == MSG_KERNEL_CREATE
            && uuid_equals(&world.sent[i].session_id, session))
            return &world.sent[i];
    return NULL;
}

/* Time passes while the agent 'a' reports the kernel of 'order' as running; NULL = none. */
static void pass_beating(int64_t usec, const struct sent *order)
{
    for (; usec > 0; usec -= 10 * USEC_PER_SEC) {
        struct msg_kernel_status report;

        if (order)
            report = kernel_report(order, MSG_KERNEL_RUNNING);
        agent_beats("a", order ? &report : NULL, order ? 1 : 0);
        pass(AQ_MIN(usec, 10 * USEC_PER_SEC));
    }
}

static void run(const struct uuid *session)
{
    const struct sent *order = order_of(session);
    struct sent copy;

    assert_non_null(order);
    copy = *order;
    agent_reports(&copy, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(session), SESSION_RUNNING);
}

static void waits_runs_and_ends(void **state)
{
    struct uuid inside, outside, late;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)book(wish("exam", 4, 10 * MINUTE));
    inside = join("inside", "exam");
    outside = join("outside", NULL);
    assert_int_equal(status_of(&inside), SESSION_PENDING);
    assert_int_equal(status_of(&outside), SESSION_PENDING);
    assert_clean();
    restart_core();
    agent_comes("a", FOUR_CPUS);
    pass_beating(9 * MINUTE, NULL);
    assert_int_equal(status_of(&inside), SESSION_PENDING);
    pass_beating(90 * USEC_PER_SEC, NULL);
    assert_int_equal(status_of(&outside), SESSION_PENDING);
    run(&inside);
    order = *order_of(&inside);
    for (int i = 0; i < 3; i++)
        (void)join((const char *[]){ "second", "third", "fourth" }[i], "exam");
    late = join("late", "exam");
    assert_int_equal(status_of(&late), SESSION_PENDING);
    pass_beating(61 * MINUTE, &order);
    assert_int_equal(status_of(&inside), SESSION_TERMINATING);
    assert_string_equal(core_find_session(world.core, &inside)->reason, "reservation-ended");
    assert_int_equal(status_of(&late), GONE);
    assert_null(core_find_booking(world.core, "exam"));
    assert_int_equal(outcome_of_exam(), BOOKING_ENDED);
    assert_clean();
}

static void released_when_unused(void **state)
{
    struct booking b;
    struct uuid first, parked;
    struct session_request req = { .name = "parked",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .spec.reservation = "exam",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct sent order;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    b = wish("exam", 2, 0);
    b.release_unused_usec = 10 * MINUTE;
    (void)book(b);
    first = join("first", "exam");
    run(&first);
    order = *order_of(&first);
    req.starts_usec = world_wall + 50 * MINUTE;
    a = create(&req);
    assert_int_equal(a.r, 0);
    parked = a.created.id;
    pass_beating(20 * MINUTE, &order);
    assert_non_null(core_find_booking(world.core, "exam"));
    agent_reports_exit(&order, 0);
    pass_beating(9 * MINUTE, NULL);
    assert_non_null(core_find_booking(world.core, "exam"));
    restart_core();
    agent_comes("a", FOUR_CPUS);
    assert_clean();
    assert_non_null(core_find_booking(world.core, "exam"));
    pass_beating(2 * MINUTE, NULL);
    assert_null(core_find_booking(world.core, "exam"));
    assert_int_equal(outcome_of_exam(), BOOKING_RELEASED);
    assert_int_equal(status_of(&parked), GONE);
    assert_clean();
}

static void canceled(void **state)
{
    struct uuid booking, running, waiting;
    struct answer a = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    booking = book(wish("exam", 1, 0));
    running = join("running", "exam");
    run(&running);
    waiting = join("waiting", "exam");
    assert_int_equal(status_of(&waiting), SESSION_PENDING);
    core_cancel_booking(world.core, &booking, "moved", &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(outcome_of_exam(), BOOKING_CANCELED);
    assert_int_equal(status_of(&running), SESSION_RUNNING);
    assert_int_equal(status_of(&waiting), GONE);
    assert_audited("cancel-reservation", 1, NULL);
    assert_clean();
    restart_core();
    assert_int_equal(status_of(&running), SESSION_RUNNING);
    a = (struct answer){ 0 };
    core_cancel_booking(world.core, &booking, NULL, &asker, on_answer, &a);
    settle();
    assert_int_equal(a.r, -ENOENT);
    assert_clean();
}

static void refused(void **state)
{
    struct booking b;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)book(wish("exam", 3, 10 * MINUTE));
    b = wish("exam", 1, 10 * MINUTE);
    a = try_book(&b);
    assert_int_equal(a.r, -EEXIST);
    assert_string_equal(a.err.field, "name");
    b = wish("other", 2, 30 * MINUTE);
    a = try_book(&b);
    assert_int_equal(a.r, -EBUSY);
    assert_string_equal(a.err.kind, "reservation-does-not-fit");
    (void)book(wish("later", 2, 70 * MINUTE));
    b = wish("nowhere", 1, 0);
    free(b.resource_group);
    b.resource_group = strdup("moon");
    a = try_book(&b);
    assert_int_equal(a.r, -EINVAL);
    assert_string_equal(a.err.field, "resource_group");
    a = try_join("stranger", "exam", ADMIN_KEY);
    if (a.r < 0) { /* the administrator may be of the project */
        assert_int_equal(a.r, -EACCES);
        assert_string_equal(a.err.field, "reservation");
    }
    a = try_join("nothing", "mistake", USER_KEY);
    assert_int_equal(a.r, -ENOENT);
    assert_string_equal(a.err.field, "reservation");
    assert_clean();
}

static void sessions_without_limit_are_in_the_way(void **state)
{
    struct booking b;
    struct answer a;
    struct uuid endless;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    endless = join("endless", NULL);
    run(&endless);
    b = wish("exam", 4, 10 * MINUTE);
    a = try_book(&b);
    assert_int_equal(a.r, -EBUSY);
    assert_non_null(strstr(a.err.text, "endless"));
    b = wish("exam", 4, 10 * MINUTE);
    b.ignores_sessions = true;
    (void)book(b);
    assert_clean();
}

static struct booking change_of(const char *name)
{
    struct booking b;

    booking_copy(&b, core_find_booking(world.core, name));
    return b;
}

static struct answer change(struct booking *b)
{
    struct answer a = { 0 };

    core_change_booking(world.core, b, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static void changed(void **state)
{
    struct booking b, old;
    struct answer a;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)book(wish("exam", 4, 10 * MINUTE));
    (void)book(wish("next", 4, 80 * MINUTE));
    old = change_of("exam");
    b = change_of("exam");
    b.ends_usec += 20 * MINUTE; /* 'next' begins ten minutes after its end */
    a = change(&b);
    assert_int_equal(a.r, -EBUSY);
    b = change_of("exam");
    b.ends_usec += 5 * MINUTE;
    a = change(&b);
    assert_int_equal(a.r, 0);
    assert_int_equal(core_find_booking(world.core, "exam")->version, 2);
    a = change(&old);
    assert_int_equal(a.r, -EBUSY);
    assert_string_equal(a.err.kind, "conflict");
    pass_beating(11 * MINUTE, NULL);
    b = change_of("exam");
    assert_int_equal(slots_set(&b.amounts, "cpu", AMOUNT_ONE), 0);
    a = change(&b);
    assert_int_equal(a.r, -EBUSY);
    assert_string_equal(a.err.field, "resources");
    b = change_of("exam");
    b.ends_usec += 2 * MINUTE;
    a = change(&b);
    assert_int_equal(a.r, 0);
    assert_clean();
}

static void time_limits_beyond_the_end(void **state)
{
    struct booking longer;
    struct answer fits, cut, warned, never;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)book(wish("exam", 4, 0));
    fits = try_join_limited("fits", "exam", USER_KEY, 50 * MINUTE, NULL);
    assert_int_equal(fits.r, 0);
    assert_int_equal(status_of(&fits.created.id), SESSION_SCHEDULED);
    never = try_join_limited("never", "exam", USER_KEY, 90 * MINUTE, NULL);
    assert_int_equal(never.r, -EINVAL);
    assert_string_equal(never.err.field, "reservation");
    pass_beating(20 * MINUTE, NULL);
    cut = try_join_limited("cut", "exam", USER_KEY, 50 * MINUTE, NULL);
    assert_int_equal(cut.r, 0);
    assert_int_equal(status_of(&cut.created.id), SESSION_PENDING);
    warned = try_join_limited("warned", "exam", USER_KEY, 50 * MINUTE, "USR1@10");
    assert_int_equal(warned.r, 0);
    assert_int_equal(status_of(&warned.created.id), SESSION_SCHEDULED);
    longer = change_of("exam");
    longer.ends_usec += 60 * MINUTE;
    assert_int_equal(change(&longer).r, 0);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&cut.created.id), SESSION_SCHEDULED);
    assert_clean();
}

/* A signal comes before the end that the booking has then. */
static void signals_follow_the_end(void **state)
{
    struct booking longer;
    struct answer a;
    struct sent order;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)book(wish("exam", 4, 0));
    a = try_join_limited("warned", "exam", USER_KEY, 600 * MINUTE, "USR1@120");
    assert_int_equal(a.r, 0);
    run(&a.created.id);
    order = *order_of(&a.created.id);
    longer = change_of("exam");
    longer.ends_usec += 30 * MINUTE;
    assert_int_equal(change(&longer).r, 0);
    pass_beating(70 * MINUTE, &order);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
    pass_beating(19 * MINUTE, &order);
    assert_int_equal(status_of(&a.created.id), SESSION_TERMINATING);
    assert_string_equal(core_find_session(world.core, &a.created.id)->reason, "reservation-ended");
    assert_non_null(core_find_booking(world.core, "exam"));
    assert_clean();
}

/* Between the decision and the commit, when only the scheduler has the booking. */
static void kept_by_a_scheduler_that_is_rebuilt(void **state)
{
    struct booking first, second, longer;
    struct answer a = { 0 }, b = { 0 }, c = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    first = wish("exam", 4, 10 * MINUTE);
    core_create_booking(world.core, &first, NULL, NULL, &asker, on_answer, &a);
    sched_sync_invalidate(resource_group_entry_get(world.core, "default"));
    second = wish("other", 1, 20 * MINUTE);
    core_create_booking(world.core, &second, NULL, NULL, &asker, on_answer, &b);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(b.r, -EBUSY);
    assert_string_equal(b.err.kind, "reservation-does-not-fit");
    longer = change_of("exam");
    longer.ends_usec += 60 * MINUTE;
    core_change_booking(world.core, &longer, &asker, on_answer, &c);
    sched_sync_invalidate(resource_group_entry_get(world.core, "default"));
    second = wish("other", 1, 80 * MINUTE);
    b = (struct answer){ 0 };
    core_create_booking(world.core, &second, NULL, NULL, &asker, on_answer, &b);
    settle();
    assert_int_equal(c.r, 0);
    assert_int_equal(b.r, -EBUSY);
    assert_clean();
}

static void places_of_drained_agents_move(void **state)
{
    const struct booking *b;
    struct answer a = { 0 }, second = { 0 };
    char first[AGENT_ID_MAX + 1];

    (void)state;
    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
    (void)book(wish("exam", 3, 10 * MINUTE));
    b = core_find_booking(world.core, "exam");
    (void)snprintf(first, sizeof(first), "%s", b->places[0].agent_id);
    drain_agent(first, true, "disks", &a);
    settle();
    b = core_find_booking(world.core, "exam");
    assert_string_not_equal(b->places[0].agent_id, first);
    assert_null(core_booking_place_lack(world.core, b, 0));
    drain_agent(b->places[0].agent_id, true, "disks", &second);
    settle();
    b = core_find_booking(world.core, "exam");
    assert_string_equal(core_booking_place_lack(world.core, b, 0), "drained");
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(waits_runs_and_ends),
        TEST(released_when_unused),
        TEST(canceled),
        TEST(refused),
        TEST(sessions_without_limit_are_in_the_way),
        TEST(changed),
        TEST(time_limits_beyond_the_end),
        TEST(signals_follow_the_end),
        TEST(kept_by_a_scheduler_that_is_rebuilt),
        TEST(places_of_drained_agents_move),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
