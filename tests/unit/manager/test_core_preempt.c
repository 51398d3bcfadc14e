/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption: who is preempted for whom, what becomes of them, and that it holds
 * through restarts of the manager and agents that vanish.
 */
#include "world.h"
#include "manager/core/commit/proposal.h"

#define USER_SCOPE "{\"preemption\":{\"enabled\":true}}"

struct wanted {
    const char *name;
    int cpus, job_priority;
    bool is_preemptible;
    enum session_type type;
    const char *access_key;
    int priority; /* 0 = as if not said */
    bool is_movable;
    const char *checkpoint_signal;
    int64_t grace_usec;
};

static struct uuid start(struct wanted w)
{
    struct slots slots = { .items = NULL };
    struct session_request req = { .name = w.name,
                                   .type = w.type,
                                   .spec.image = "sh",
                                   .spec.command = w.type == SESSION_BATCH ? "true" : NULL,
                                   .access_key = w.access_key ? w.access_key : USER_KEY,
                                   .priority = w.priority ? w.priority : -1,
                                   .spec.job_priority = w.job_priority,
                                   .spec.is_preemptible = w.is_preemptible,
                                   .spec.is_movable = w.is_movable,
                                   .spec.checkpoint_signal = w.checkpoint_signal,
                                   .spec.grace_usec = w.grace_usec };
    struct answer a;

    assert_int_equal(slots_set(&slots, slot_name_intern("cpu", 3), w.cpus * AMOUNT_ONE), 0);
    req.resources = slots;
    a = create(&req);
    slots_done(&slots);
    if (a.r < 0)
        fail_msg("%s: %s", w.name, a.err.text);
    return a.created.id;
}

static struct sent order_of(const struct uuid *session)
{
    const struct kernel *k = &core_find_session(world.core, session)->kernels[0];
    struct sent order = {
        .type = MSG_KERNEL_CREATE, .kernel_id = k->id, .session_id = *session, .attempt = k->attempt
    };

    (void)snprintf(order.agent_id, sizeof(order.agent_id), "%s", k->agent_id ? k->agent_id : "");
    return order;
}

static struct uuid run(struct wanted w)
{
    struct uuid id = start(w);
    struct sent order = order_of(&id);

    agent_reports(&order, MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    return id;
}

static void end_killed(const struct uuid *id)
{
    struct sent order = order_of(id);

    agent_reports_exit(&order, 143);
}

static const char *reason_of(const struct uuid *id)
{
    const struct session *s = core_find_session(world.core, id);

    return s && s->reason ? s->reason : "";
}

/* Time passes while the agent goes on to have these. */
static void pass_with(const char *agent, int64_t sec, const struct uuid *ids, size_t count)
{
    for (; sec > 0; sec -= 20) {
        struct msg_kernel_status reports[2];

        pass(AQ_MIN(sec, 20) * USEC_PER_SEC);
        for (size_t i = 0; i < count; i++) {
            struct sent order = order_of(&ids[i]);

            reports[i] = kernel_report(&order, MSG_KERNEL_RUNNING);
        }
        agent_beats(agent, reports, count);
    }
}

static void batch_sessions_make_way_and_come_back(void **state)
{
    struct uuid small, large, stays, urgent;
    struct sent order;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    small = run((struct wanted){ "small", 1, 0, true, SESSION_BATCH, NULL });
    pass(USEC_PER_SEC);
    large = run((struct wanted){ "large", 2, 1, true, SESSION_BATCH, NULL });
    stays = run((struct wanted){ "stays", 1, 0, false, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 2, 5, false, SESSION_BATCH, NULL });
    /* 'small' comes first and is not enough; with 'large' it is not needed */
    assert_int_equal(status_of(&large), SESSION_PREEMPTED);
    assert_int_equal(status_of(&small), SESSION_RUNNING);
    assert_int_equal(status_of(&stays), SESSION_RUNNING);
    assert_int_equal(status_of(&urgent), SESSION_PENDING);
    assert_string_equal(reason_of(&large), REASON_PREEMPTED);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->grace_usec, 10 * USEC_PER_SEC);
    assert_clean();
    end_killed(&large);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_int_equal(status_of(&large), SESSION_PENDING);
    assert_int_equal(core_find_session(world.core, &large)->kernels[0].attempt, 2);
    order = order_of(&urgent);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    agent_reports_exit(&order, 0);
    assert_int_equal(status_of(&urgent), GONE);
    assert_int_equal(status_of(&large), SESSION_SCHEDULED); /* its second try */
    assert_clean();
}

/* Its own time as the group allows it, and it counts beside that of the status. */
static void a_victim_has_its_notice(void **state)
{
    static const struct {
        const char *options, *signal;
        int64_t grace, notice, kill_grace; /* seconds; the usual one is that of the world */
    } rows[] = {
        { USER_SCOPE, NULL, 0, 0, 0 },
        { USER_SCOPE, NULL, 70, 0, 70 },
        { USER_SCOPE, "USR1", 0, 30, 0 },
        { USER_SCOPE, "USR1", 200, 200, 0 },
        { USER_SCOPE, "USR1", 4000, 300, 0 },
        { "{\"preemption\":{\"enabled\":true,\"max_grace\":5}}", "USR1", 200, 5, 0 },
        { "{\"preemption\":{\"enabled\":true,\"max_grace\":0}}", "USR1", 200, 0, 0 },
    };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct uuid victim, urgent;
        const struct sent *end;
        struct sent order;

        use_options("fifo", rows[i].options);
        victim = run((struct wanted){ .name = "victim",
                                      .cpus = 4,
                                      .is_preemptible = true,
                                      .type = SESSION_BATCH,
                                      .checkpoint_signal = rows[i].signal,
                                      .grace_usec = rows[i].grace * USEC_PER_SEC });
        world.sent_count = 0;
        urgent = start((struct wanted){ "urgent", 4, 5, false, SESSION_BATCH, NULL });
        assert_int_equal(status_of(&victim), SESSION_PREEMPTED);
        end = find_sent(MSG_KERNEL_DESTROY, 0);
        assert_row(end->notice_usec == rows[i].notice * USEC_PER_SEC, "row %zu", i);
        assert_row(end->grace_usec
                       == (rows[i].kill_grace ? rows[i].kill_grace * USEC_PER_SEC
                                              : world.core->conf.kill_grace_usec),
                   "row %zu", i);
        pass_with("a", 59 + rows[i].notice, &victim, 1);
        assert_row(status_of(&victim) == SESSION_PREEMPTED, "row %zu", i);
        end_killed(&victim);
        assert_int_equal(status_of(&victim), SESSION_PENDING);
        (void)terminate(&victim, false);
        order = order_of(&urgent);
        agent_reports(&order, MSG_KERNEL_RUNNING);
        agent_reports_exit(&order, 0);
        assert_int_equal(status_of(&urgent), GONE);
        assert_clean();
    }
}

/* The agent takes the shorter one of two orders. */
static void a_user_does_not_wait_for_the_notice(void **state)
{
    struct uuid victim, urgent;
    const struct sent *end;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    victim = run((struct wanted){ .name = "victim",
                                  .cpus = 4,
                                  .is_preemptible = true,
                                  .type = SESSION_BATCH,
                                  .checkpoint_signal = "USR1",
                                  .grace_usec = 200 * USEC_PER_SEC });
    world.sent_count = 0;
    urgent = start((struct wanted){ "urgent", 4, 5, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&victim), SESSION_PREEMPTED);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->notice_usec, 200 * USEC_PER_SEC);
    assert_int_equal(terminate(&victim, false).r, 0);
    assert_int_equal(status_of(&victim), SESSION_TERMINATING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 2);
    end = find_sent(MSG_KERNEL_DESTROY, 1);
    assert_int_equal(end->notice_usec, 0);
    assert_int_equal(end->grace_usec, world.core->conf.kill_grace_usec);
    end_killed(&victim);
    assert_int_equal(status_of(&victim), GONE);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_clean();
}

static void interactive_ones_are_skipped_or_ended(void **state)
{
    struct uuid shell, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    shell = run((struct wanted){ "shell", 4, 0, true, SESSION_INTERACTIVE, NULL });
    urgent = start((struct wanted){ "urgent", 4, 5, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&shell), SESSION_RUNNING);
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"interactive\":\"terminate\"}}");
    assert_int_equal(status_of(&shell), SESSION_TERMINATING);
    assert_string_equal(reason_of(&shell), REASON_PREEMPTED);
    end_killed(&shell);
    assert_int_equal(status_of(&shell), GONE);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_clean();
}

static void who_is_left_alone(void **state)
{
    struct uuid young, other, urgent;

    (void)state;
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"preemption_min_runtime\":60,"
                        "\"preemptible_priority\":5}}");
    agent_comes("a", FOUR_CPUS);
    young = run((struct wanted){ "young", 2, 0, true, SESSION_BATCH, NULL });
    other = run((struct wanted){ "other", 2, 6, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 4, 90, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&young), SESSION_RUNNING);
    pass_with("a", 70, (struct uuid[]){ young, other }, 2);
    assert_int_equal(status_of(&young), SESSION_RUNNING); /* it alone would not do */
    assert_int_equal(status_of(&other), SESSION_RUNNING);
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"preemption_min_runtime\":60}}");
    assert_int_equal(status_of(&young), SESSION_PREEMPTED);
    assert_int_equal(status_of(&other), SESSION_PREEMPTED);
    assert_int_equal(status_of(&urgent), SESSION_PENDING);
    assert_clean();
}

/* Without an event in between: time alone makes one old enough. */
static void who_gets_old_enough_makes_way(void **state)
{
    struct uuid young, urgent;

    (void)state;
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"preemption_min_runtime\":60}}");
    agent_comes("a", FOUR_CPUS);
    young = run((struct wanted){ "young", 4, 0, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 4, 90, false, SESSION_BATCH, NULL });
    pass_with("a", 40, &young, 1);
    assert_int_equal(status_of(&young), SESSION_RUNNING);
    pass_with("a", 40, &young, 1);
    assert_int_equal(status_of(&young), SESSION_PREEMPTED);
    assert_int_equal(status_of(&urgent), SESSION_PENDING);
    assert_clean();
}

static void the_scope_decides_whose(void **state)
{
    struct uuid theirs, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    theirs = run((struct wanted){ "theirs", 4, 0, true, SESSION_BATCH, ADMIN_KEY });
    urgent = start((struct wanted){ "urgent", 4, 90, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&theirs), SESSION_RUNNING);
    assert_int_equal(status_of(&urgent), SESSION_PENDING);
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"victim_scope\":\"group\"}}");
    assert_int_equal(status_of(&theirs), SESSION_PREEMPTED);
    assert_clean();
}

/* After a restart the room of who leaves is known as free: nobody else has to go. */
static void a_restart_preempts_nobody_else(void **state)
{
    struct msg_kernel_status reports[2];
    struct sent o1, o2;
    struct uuid first, second, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    first = run((struct wanted){ "first", 2, 0, true, SESSION_BATCH, NULL });
    pass(USEC_PER_SEC);
    second = run((struct wanted){ "second", 2, 0, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 2, 5, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&first), SESSION_PREEMPTED);
    restart_core();
    assert_int_equal(agent_greets("a", FOUR_CPUS, uuid_random()), 0);
    o1 = order_of(&first);
    o2 = order_of(&second);
    reports[0] = kernel_report(&o1, MSG_KERNEL_RUNNING);
    reports[1] = kernel_report(&o2, MSG_KERNEL_RUNNING);
    agent_beats("a", reports, 2);
    assert_int_equal(status_of(&first), SESSION_PREEMPTED);
    assert_int_equal(status_of(&second), SESSION_RUNNING);
    assert_int_equal(status_of(&urgent), SESSION_PENDING);
    end_killed(&first);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_int_equal(status_of(&second), SESSION_RUNNING);
    assert_clean();
}

static void one_that_does_not_leave_is_killed(void **state)
{
    struct uuid stubborn, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    stubborn = run((struct wanted){ "stubborn", 4, 0, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 1, 5, false, SESSION_BATCH, NULL });
    pass_with("a", 61, &stubborn, 1);
    assert_int_equal(status_of(&stubborn), SESSION_RESCHEDULING);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 1)->grace_usec, 0);
    end_killed(&stubborn);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_clean();
}

/* The agent goes for good while its place was being made: the session waits as others do. */
static void a_place_on_a_lost_agent_is_given_up(void **state)
{
    struct uuid victim, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    victim = run((struct wanted){ "victim", 4, 0, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 4, 5, false, SESSION_BATCH, NULL });
    assert_int_equal(status_of(&victim), SESSION_PREEMPTED);
    agent_goes("a");
    pass(120 * USEC_PER_SEC);
    agent_comes("b", FOUR_CPUS);
    assert_int_equal(status_of(&urgent), SESSION_SCHEDULED);
    assert_string_equal(core_find_session(world.core, &urgent)->kernels[0].agent_id, "b");
    assert_clean();
}

static void who_preempts_may_be_cancelled(void **state)
{
    struct uuid victim, urgent;

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    victim = run((struct wanted){ "victim", 4, 0, true, SESSION_BATCH, NULL });
    urgent = start((struct wanted){ "urgent", 4, 5, false, SESSION_BATCH, NULL });
    assert_int_equal(terminate(&urgent, false).r, 0);
    assert_int_equal(status_of(&urgent), GONE);
    end_killed(&victim);
    assert_int_equal(status_of(&victim), SESSION_SCHEDULED);
    assert_clean();
}

/* ---- moving ---- */

/* Others pass who found no room. */
#define MOVING "{\"preemption\":{\"moving\":true},\"config\":{\"num_retries_to_skip\":1}}"

/* a: moves 1, stays 2, 1 free; b: other 3, 1 free. 'wants' 2, so 'moves' goes to b. */
struct moved {
    struct uuid moves, stays, other, wants;
};

static struct moved make_move(void)
{
    struct moved m;

    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
    m.moves = run((struct wanted){ "moves", 1, .type = SESSION_BATCH, .is_movable = true });
    m.stays = run((struct wanted){ "stays", 2, .type = SESSION_BATCH });
    m.other = run((struct wanted){ "other", 3, .type = SESSION_BATCH });
    assert_string_equal(order_of(&m.stays).agent_id, "a");
    assert_string_equal(order_of(&m.other).agent_id, "b");
    m.wants = start((struct wanted){ "wants", 2, .type = SESSION_BATCH });
    return m;
}

static void check_moved(const struct moved *m)
{
    struct uuid late = start((struct wanted){ "late-one", 1, .type = SESSION_BATCH });

    assert_int_equal(status_of(&m->moves), SESSION_PREEMPTED);
    assert_string_equal(reason_of(&m->moves), REASON_MOVED);
    assert_int_equal(status_of(&m->wants), SESSION_PENDING);
    pass_with("b", 2, &m->other, 1);
    assert_int_equal(status_of(&late), SESSION_PENDING); /* what is free on b is held */
    end_killed(&m->moves);
    assert_int_equal(status_of(&m->wants), SESSION_SCHEDULED);
    assert_string_equal(order_of(&m->wants).agent_id, "a");
    assert_int_equal(status_of(&m->moves), SESSION_SCHEDULED);
    assert_string_equal(order_of(&m->moves).agent_id, "b");
    assert_int_equal(order_of(&m->moves).attempt, 2);
    assert_int_equal(status_of(&late), SESSION_PENDING);
    assert_int_equal(status_of(&m->stays), SESSION_RUNNING);
    assert_int_equal(status_of(&m->other), SESSION_RUNNING);
    assert_clean();
}

static void who_is_moved_starts_again_at_once(void **state)
{
    struct moved m;

    (void)state;
    use_options("fifo", MOVING);
    m = make_move();
    check_moved(&m);
}

/* The manager is killed while it stops; agents come back, the new place's first or last. */
static void a_move_half_done_outlives_the_manager(void **state)
{
    (void)state;
    for (int b_first = 0; b_first < 2; b_first++) {
        struct msg_kernel_status on_a[2], on_b;
        struct sent orders[3];
        struct moved m;

        if (b_first) {
            world_end(state);
            world_begin(state);
        }
        use_options("fifo", MOVING);
        m = make_move();
        assert_int_equal(status_of(&m.moves), SESSION_PREEMPTED);
        restart_core();
        for (int i = 0; i < 3; i++)
            orders[i] = order_of((const struct uuid *const[]){ &m.moves, &m.stays, &m.other }[i]);
        on_a[0] = kernel_report(&orders[0], MSG_KERNEL_RUNNING);
        on_a[1] = kernel_report(&orders[1], MSG_KERNEL_RUNNING);
        on_b = kernel_report(&orders[2], MSG_KERNEL_RUNNING);
        for (int i = 0; i < 2; i++) {
            const char *agent = (i == 0) == b_first ? "b" : "a";

            assert_int_equal(agent_greets(agent, FOUR_CPUS, uuid_random()), 0);
            agent_beats(agent, *agent == 'a' ? on_a : &on_b, *agent == 'a' ? 2 : 1);
        }
        check_moved(&m);
    }
}

/* The manager restarts, "a" is there, and "moves" has ended before "b" came back; "c" is new
 * and empty.
 */
static struct moved end_before_b(void)
{
    struct msg_kernel_status on_a[2];
    struct sent moves, stays;
    struct moved m;

    use_options("fifo", MOVING);
    m = make_move();
    restart_core();
    moves = order_of(&m.moves);
    stays = order_of(&m.stays);
    on_a[0] = kernel_report(&moves, MSG_KERNEL_RUNNING);
    on_a[1] = kernel_report(&stays, MSG_KERNEL_RUNNING);
    assert_int_equal(agent_greets("a", FOUR_CPUS, uuid_random()), 0);
    agent_beats("a", on_a, 2);
    end_killed(&m.moves);
    assert_int_equal(status_of(&m.wants), SESSION_SCHEDULED);
    assert_string_equal(order_of(&m.wants).agent_id, "a");
    agent_comes("c", FOUR_CPUS);
    assert_int_equal(status_of(&m.moves), SESSION_PENDING);
    return m;
}

static void who_is_moved_waits_for_its_agent(void **state)
{
    struct msg_kernel_status on_b;
    struct uuid late;
    struct sent other;
    struct moved m;

    (void)state;
    m = end_before_b();
    late = start((struct wanted){ "late-one", 1, .type = SESSION_BATCH });
    assert_int_equal(status_of(&late), SESSION_SCHEDULED); /* it holds up nobody */
    other = order_of(&m.other);
    on_b = kernel_report(&other, MSG_KERNEL_RUNNING);
    assert_int_equal(agent_greets("b", FOUR_CPUS, uuid_random()), 0);
    assert_int_equal(status_of(&m.moves), SESSION_PENDING); /* what b has is not known yet */
    agent_beats("b", &on_b, 1);
    assert_int_equal(status_of(&m.moves), SESSION_SCHEDULED);
    assert_string_equal(order_of(&m.moves).agent_id, "b");
    assert_clean();
}

static void who_is_moved_waits_no_longer_than_for_a_lost_agent(void **state)
{
    struct uuid on_a[2];
    struct moved m;

    (void)state;
    m = end_before_b();
    on_a[0] = m.stays;
    on_a[1] = m.wants;
    pass_with("a", 20, on_a, 2);
    agent_beats("c", NULL, 0);
    pass_with("a", 19, on_a, 2);
    assert_int_equal(status_of(&m.moves), SESSION_PENDING);
    pass_with("a", 2, on_a, 2);
    assert_int_equal(status_of(&m.moves), SESSION_SCHEDULED);
    assert_string_equal(order_of(&m.moves).agent_id, "c");
    assert_clean();
}

/* Its user ends it while it is stopped: its new place is for others. */
static void who_is_moved_may_be_ended(void **state)
{
    struct uuid late;
    struct moved m;

    (void)state;
    use_options("fifo", MOVING);
    m = make_move();
    assert_int_equal(terminate(&m.moves, true).r, 0);
    late = start((struct wanted){ "late-one", 1, .type = SESSION_BATCH });
    assert_int_equal(status_of(&late), SESSION_PENDING);
    end_killed(&m.moves);
    assert_int_equal(status_of(&m.moves), GONE);
    assert_int_equal(status_of(&m.wants), SESSION_SCHEDULED);
    assert_int_equal(status_of(&late), SESSION_SCHEDULED);
    assert_clean();
}

/* Where it may not be, nobody moves: not asked for, too young, not to be put back. */
static void who_is_not_moved(void **state)
{
    static const char *const opts[] = {
        "{\"preemption\":{\"enabled\":true}}",
        "{\"preemption\":{\"moving\":true,\"preemption_min_runtime\":60}}",
        "{\"preemption\":{\"moving\":true,\"mode\":\"terminate\"}}"
    };
    struct moved m;

    for (size_t i = 0; i < AQ_COUNT(opts); i++) {
        if (i > 0) {
            world_end(state);
            world_begin(state);
        }
        use_options("fifo", opts[i]);
        m = make_move();
        assert_row(status_of(&m.moves) == SESSION_RUNNING, "%s", opts[i]);
        assert_int_equal(status_of(&m.wants), SESSION_PENDING);
        assert_clean();
    }
}

static void who_is_moved_beside_backfill_starts_again_at_once(void **state)
{
    struct moved m;

    (void)state;
    use_options("fifo", "{\"preemption\":{\"moving\":true},\"backfill\":true}");
    m = make_move();
    check_moved(&m);
}

/* ---- what room is made for ---- */

static void beat(const char *agent, const struct uuid *const *ids, size_t count)
{
    struct msg_kernel_status reports[2];

    for (size_t i = 0; i < count; i++) {
        struct sent order = order_of(ids[i]);

        reports[i] = kernel_report(&order, MSG_KERNEL_RUNNING);
    }
    agent_beats(agent, reports, count);
}

static void comes_back_with(const char *agent, const struct uuid *const *ids, size_t count)
{
    assert_int_equal(agent_greets(agent, FOUR_CPUS, uuid_random()), 0);
    beat(agent, ids, count);
}

/* The manager is killed while room is made. A session of higher priority, which the next manager
 * looks at first, gets nothing of it: whichever agent comes back first, and also if who was moved
 * has stopped meanwhile.
 */
static void a_promised_place_outlives_the_manager(void **state)
{
    for (int way = 0; way < 3; way++) {
        struct uuid first;
        struct moved m;

        if (way > 0) {
            world_end(state);
            world_begin(state);
        }
        use_options("fifo", MOVING);
        m = make_move();
        assert_non_null(
            strstr(core_find_session(world.core, &m.wants)->status_data, "\"places\":[\"a\"]"));
        restart_core();
        first = start((struct wanted){ "first", 1, .type = SESSION_BATCH, .priority = 20 });
        if (way == 1)
            comes_back_with("b", (const struct uuid *const[]){ &m.other }, 1);
        comes_back_with("a",
                        (const struct uuid *const[]){ way == 2 ? &m.stays : &m.moves, &m.stays },
                        way == 2 ? 1 : 2);
        if (way != 1)
            comes_back_with("b", (const struct uuid *const[]){ &m.other }, 1);
        assert_int_equal(status_of(&first), SESSION_PENDING);
        for (int i = 0; way == 2 && i < 10; i++) { /* what an agent has not is gone after a while */
            pass(5 * USEC_PER_SEC);
            beat("a", (const struct uuid *const[]){ &m.stays }, 1);
            beat("b", (const struct uuid *const[]){ &m.other }, 1);
        }
        if (way < 2)
            end_killed(&m.moves);
        assert_int_equal(status_of(&m.wants), SESSION_SCHEDULED);
        assert_string_equal(order_of(&m.wants).agent_id, "a");
        assert_string_equal(order_of(&m.moves).agent_id, "b");
        assert_int_equal(status_of(&first), SESSION_PENDING);
        assert_null(strstr(core_find_session(world.core, &m.wants)->status_data, "places"));
        assert_clean();
    }
}

/* Nobody was preempted: the manager was killed before they were told, or they were not stopped. What
 * was promised is nothing, and is decided again.
 */
static void an_empty_promise_is_given_up(void **state)
{
    struct uuid large, small;
    struct event *e;

    (void)state;
    use_options("fifo", MOVING);
    agent_comes("a", FOUR_CPUS);
    large = run((struct wanted){ "large", 3, .type = SESSION_BATCH });
    small = start((struct wanted){ "wants", 2, .type = SESSION_BATCH });
    pass_with("a", 4, &large, 1);
    e = proposal_add(world.core, &session_entry_find(world.core, &small)->durable,
                     EVENT_SESSION_EXPLAINED);
    e->session_change.id = small;
    e->session_change.status_data = strdup("{\"places\":[\"a\"]}");
    proposal_commit(world.core);
    settle();
    restart_core();
    comes_back_with("a", (const struct uuid *const[]){ &large }, 1);
    assert_int_equal(status_of(&small), SESSION_PENDING);
    small = start((struct wanted){ "small", 1, .type = SESSION_BATCH });
    pass_with("a", 4, &large, 1);
    assert_int_equal(status_of(&small), SESSION_SCHEDULED); /* it is held up by nobody's place */
    assert_clean();
}

/* ---- a cluster's day, worked out by hand ---- */

#define LOW(name, job_priority)                             \
    {                                                       \
        name, 1, job_priority, true, SESSION_BATCH, NULL, 0 \
    }

/* One core each, a second apart: four on agent a, four on b, four on c. */
static const struct wanted day_before[] = {
    LOW("run-01", 3),
    LOW("run-02", 3),
    { "run-03", 1, 0, false, SESSION_BATCH, NULL, 0 },
    LOW("run-04", 2),
    LOW("run-05", 1),
    LOW("run-06", 1),
    LOW("run-07", 4),
    LOW("run-08", 9),
    LOW("run-09", 2),
    { "run-10", 1, 0, true, SESSION_INTERACTIVE, NULL, 0 },
    LOW("run-11", 2),
    LOW("run-12", 2),
};

static const struct {
    struct wanted w;
    const char *victims; /* that leave because of it */
    enum session_status status;
} day[] = {
    /* a would lose run-04 and run-01 (highest 3), c two of 2, b two of 1 */
    { { "urgent-13", 2, 5, false, SESSION_BATCH, NULL, 0 }, "run-05 run-06 ", SESSION_PENDING },
    /* a: run-04, c: run-09, both 2; the older goes */
    { { "urgent-14", 1, 5, false, SESSION_BATCH, NULL, 0 }, "run-04 ", SESSION_PENDING },
    /* nobody is lower than 2 any more; first in first out: it holds up the next */
    { { "urgent-15", 1, 2, false, SESSION_BATCH, NULL, 0 }, "", SESSION_PENDING },
    { { "urgent-16", 3, 9, false, SESSION_BATCH, NULL, 0 }, "", SESSION_PENDING },
    /* a higher band is looked at first, but 1 core of nobody is none */
    { { "urgent-17", 1, 0, false, SESSION_BATCH, NULL, 60 }, "", SESSION_PENDING },
    /* a: run-01 and run-02 with 3, c three of 2 */
    { { "urgent-18", 1, 10, false, SESSION_BATCH, NULL, 70 }, "run-09 ", SESSION_PENDING },
    /* only b has two that may go: a has run-01 and run-02, which are lower */
    { { "urgent-19", 2, 20, false, SESSION_INTERACTIVE, NULL, 70 },
      "run-11 run-12 ",
      SESSION_PENDING },
    { { "urgent-20", 2, 20, false, SESSION_BATCH, NULL, 70 }, "run-01 run-02 ", SESSION_PENDING },
    /* b has run-07 (4) and run-08 (9) left: two only for sessions above 9 */
    { { "urgent-21", 2, 9, false, SESSION_BATCH, NULL, 80 }, "", SESSION_PENDING },
    { { "urgent-22", 2, 10, false, SESSION_BATCH, NULL, 90 }, "run-07 run-08 ", SESSION_PENDING },
};

static void a_day_worked_out_by_hand(void **state)
{
    struct uuid before[AQ_COUNT(day_before)], ids[AQ_COUNT(day)];
    bool has_left[AQ_COUNT(day_before)] = { false };

    (void)state;
    use_options("fifo", USER_SCOPE);
    agent_comes("a", FOUR_CPUS);
    agent_comes("b", FOUR_CPUS);
    agent_comes("c", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(day_before); i++) {
        before[i] = run(day_before[i]);
        assert_string_equal(order_of(&before[i]).agent_id, i < 4 ? "a" : i < 8 ? "b" : "c");
        pass(USEC_PER_SEC);
    }
    for (size_t n = 0; n < AQ_COUNT(day); n++) {
        char left[64] = "";

        ids[n] = start(day[n].w);
        for (size_t i = 0; i < AQ_COUNT(day_before); i++)
            if (status_of(&before[i]) == SESSION_PREEMPTED && !has_left[i]) {
                has_left[i] = true;
                (void)snprintf(left + strlen(left), sizeof(left) - strlen(left), "%s ",
                               day_before[i].name);
            }
        if (strcmp(left, day[n].victims) != 0 || status_of(&ids[n]) != day[n].status)
            fail_msg("%s: '%s' leave, %s", day[n].w.name, left,
                     session_status_name(status_of(&ids[n])));
    }
    assert_clean();
    for (size_t i = 0; i < AQ_COUNT(day_before); i++)
        if (has_left[i])
            end_killed(&before[i]);
    for (size_t n = 0; n < AQ_COUNT(day); n++)
        assert_int_equal(status_of(&ids[n]),
                         day[n].victims[0] ? SESSION_SCHEDULED : SESSION_PENDING);
    for (size_t i = 0; i < AQ_COUNT(day_before); i++)
        assert_int_equal(status_of(&before[i]), has_left[i] ? SESSION_PENDING : SESSION_RUNNING);
    assert_clean();
}

static void refused(const char *opts, const char *names)
{
    struct resource_group g = { .scheduler_opts = (char *)(uintptr_t)opts };
    struct aq_error err;

    assert_int_equal(core_check_scheduling(&g, &err), -EINVAL);
    assert_string_equal(err.field, "preemption");
    if (!strstr(err.text, names))
        fail_msg("%s: %s", opts, err.text);
}

static void settings_that_cannot_be(void **state)
{
    (void)state;
    refused("{\"preemption\":true}", "object");
    refused("{\"preemption\":{\"enabled\":1}}", "preemption.enabled");
    refused("{\"preemption\":{\"order\":\"random\"}}", "fewest-sessions");
    refused("{\"preemption\":{\"mode\":\"skip\"}}", "preemption.mode");
    refused("{\"preemption\":{\"victim_scope\":\"planet\"}}", "domain or group");
    refused("{\"preemption\":{\"preemption_min_runtime\":-1}}", "preemption_min_runtime");
    refused("{\"preemption\":{\"preemptible_priority\":101}}", "from 0 to 100");
    refused("{\"preemption\":{\"when\":\"now\"}}", "'when'");
    refused("{\"preemption\":{\"moving\":\"yes\"}}", "preemption.moving");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batch_sessions_make_way_and_come_back),
        TEST(a_victim_has_its_notice),
        TEST(a_user_does_not_wait_for_the_notice),
        TEST(interactive_ones_are_skipped_or_ended),
        TEST(who_is_left_alone),
        TEST(who_gets_old_enough_makes_way),
        TEST(the_scope_decides_whose),
        TEST(a_restart_preempts_nobody_else),
        TEST(one_that_does_not_leave_is_killed),
        TEST(a_place_on_a_lost_agent_is_given_up),
        TEST(who_preempts_may_be_cancelled),
        TEST(who_is_moved_starts_again_at_once),
        TEST(a_move_half_done_outlives_the_manager),
        TEST(who_is_moved_waits_for_its_agent),
        TEST(who_is_moved_waits_no_longer_than_for_a_lost_agent),
        TEST(who_is_moved_may_be_ended),
        TEST(who_is_moved_beside_backfill_starts_again_at_once),
        TEST(a_promised_place_outlives_the_manager),
        TEST(an_empty_promise_is_given_up),
        TEST(who_is_not_moved),
        TEST(a_day_worked_out_by_hand),
        cmocka_unit_test(settings_that_cannot_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
