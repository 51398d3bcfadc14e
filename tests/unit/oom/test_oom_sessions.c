/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while sessions are resized, moved, tried again and refused: all of a change
 * is made, or nothing.
 */
#include "oom_world.h"

#define HALF "{\"cpu\":\"1\",\"cuda.shares\":\"0.5\",\"mem\":\"1073741824\"}"
#define WHOLE "{\"cpu\":\"1\",\"cuda.shares\":\"1\",\"mem\":\"1073741824\"}"

static enum session_status status_if(const struct answer *a)
{
    return a->r == 0 ? status_of(&a->created.id) : GONE;
}

/* What still lives ends, with all the memory there is, on agents that are there. */
static void end_all(const struct answer *answers, size_t count)
{
    oom_end();
    oom_comes("i-001", GPU_NODE);
    oom_comes("i-002", GPU_NODE);
    for (size_t i = 0; i < count; i++)
        if (answers[i].r == 0)
            oom_terminate(&answers[i].created.id, true);
    pass(10 * USEC_PER_SEC);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(status_if(&answers[i]), GONE);
    oom_world_pass();
}

/* ---- resize ---- */

/* All agents answer what they were told of each kernel, which holds so much; false if nobody was told
 * anything.
 */
static bool agents_resize(const char *held, const char *refused_by)
{
    size_t count = world.sent_count;
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        struct sent order = world.sent[i];
        struct msg_kernel_status report;

        if (order.type != MSG_KERNEL_RESIZE || !oom_is_connected(order.agent_id))
            continue;
        world.sent[i].type = MSG_UNKNOWN;
        any = true;
        report = kernel_report(&order, MSG_KERNEL_RUNNING);
        report.alloc = "{\"cuda.shares\":{\"GPU-1\":\"0.50\"}}";
        report.limit_violation = "GPU-1: 2 GiB of 1";
        report.slots = order.trial ? held : order.slots;
        if (order.trial && refused_by && strcmp(order.agent_id, refused_by) == 0) {
            report.error_kind = "insufficient-resource";
            report.error_field = "cuda.shares";
            report.error_text = "no";
        } else if (order.trial) {
            report.prepared = order.slots;
            report.prepared_alloc = "{\"cuda.shares\":{\"GPU-1\":\"1.00\"}}";
        }
        report.trial = order.trial;
        agent_says(order.agent_id, report);
    }
    return any;
}

static bool is_resized(const struct uuid *id, int64_t shares)
{
    const struct session *s = core_find_session(world.core, id);

    for (size_t i = 1; i < s->kernel_count; i++)
        assert_true(slots_eq(&s->kernels[0].requested, &s->kernels[i].requested));
    return slots_get(&s->kernels[0].requested, "cuda.shares") == shares;
}

static void resize(const struct uuid *id, int64_t shares, const char *held, const char *refused_by)
{
    AQ_CLEANUP(slots_donep) struct slots changes = { .items = NULL };
    struct answer a = { 0 };

    if (status_of(id) != SESSION_RUNNING)
        return;
    oom_set_slot(&changes, "cuda.shares", shares);
    core_resize_session(world.core, id, &changes, NULL, on_answer, &a);
    settle();
    for (int i = 0; i < 8 && agents_resize(held, refused_by); i++)
        pass(2 * USEC_PER_SEC);
    if (!a.came) { /* somebody was not told, or could not say so */
        assert_true(oom_has_failed());
        pass(90 * USEC_PER_SEC);
        oom_end();
        for (int i = 0; i < 60 && !a.came; i++) {
            (void)agents_resize(held, refused_by);
            pass(2 * USEC_PER_SEC);
        }
    }
    assert_true(a.came);
    if (refused_by && a.r == -EINVAL)
        assert_string_equal(a.err.field, "cuda.shares");
    else if (a.r != -EBUSY)
        oom_says("resize", &a);
    if (status_of(id) == SESSION_RUNNING && a.r != -EBUSY)
        assert_int_equal(is_resized(id, shares), a.r == 0);
}

static void run_resize(const char *dir)
{
    struct session_request req = oom_job("resized");
    AQ_CLEANUP(strbuf_donep) struct strbuf violations = STRBUF_INIT;
    struct core_held held = { .holders = NULL };
    const char *held_text;
    struct answer a;

    oom_world_open(dir);
    req.cluster_size = 2;
    req.multi_node = true;
    oom_comes("i-001", GPU_NODE);
    oom_comes("i-002", GPU_NODE);
    oom_set_slot(&req.resources, "cuda.shares", AMOUNT_ONE / 2);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, "{\"cuda.shares\":{\"GPU-1\":\"0.50\"}}", NULL);
    slots_done(&req.resources);
    oom_begin();
    resize(&a.created.id, AMOUNT_ONE, HALF, NULL);
    held_text = is_resized(&a.created.id, AMOUNT_ONE) ? WHOLE : HALF;
    resize(&a.created.id, AMOUNT_ONE / 4, held_text, "i-001");
    core_agent_limit_violations(world.core, "i-001", NULL, &violations);
    (void)core_find_held(world.core, "i-001", &held);
    core_held_done(&held);
    strbuf_done(&violations);
    end_all(&a, 1);
}

/* ---- what agents say that they gave ---- */

#define ODD_ALLOC "{\"cuda.shares\":{\"GPU-1\":\"0.50\"},\"odd.slot\":{\"X\":\"1\"}}"
#define WHOLE_ALLOC "{\"cuda.shares\":{\"GPU-1\":\"1.00\"}}"

static void prepare_cluster(const char *dir)
{
    struct session_request req = oom_job("cluster");
    struct answer a;

    oom_world_open(dir);
    req.cluster_size = 2;
    oom_comes("i-001", GPU_NODE);
    oom_set_slot(&req.resources, "cuda.shares", AMOUNT_ONE / 2);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, ODD_ALLOC, NULL);
    slots_done(&req.resources);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
    assert_string_equal(core_find_session(world.core, &a.created.id)->kernels[1].alloc, ODD_ALLOC);
    oom_world_close();
}

/* It has more than was written down, and cannot give it back: that is written down then. */
static void agent_says_more(const char *error_kind)
{
    const struct sent *order = find_sent(MSG_KERNEL_CREATE, 0);
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_RUNNING);

    report.slots = WHOLE;
    report.alloc = WHOLE_ALLOC;
    report.error_kind = error_kind;
    report.error_text = error_kind ? "no" : NULL;
    agent_says(order->agent_id, report);
}

static void run_cannot(const char *dir)
{
    struct session_request req = oom_job("kept");
    struct answer a;

    oom_world_open(dir);
    oom_comes("i-001", GPU_NODE);
    oom_set_slot(&req.resources, "cuda.shares", AMOUNT_ONE / 2);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    slots_done(&req.resources);
    oom_begin();
    agent_says_more(NULL);
    for (int i = 0; i < 2; i++) {
        agent_says_more("insufficient-resource");
        pass(2 * USEC_PER_SEC);
    }
    oom_end();
    agent_says_more("insufficient-resource");
    pass(2 * USEC_PER_SEC);
    assert_true(is_resized(&a.created.id, AMOUNT_ONE));
    end_all(&a, 1);
}

/* ---- moved ---- */

/* One runs on i-002, two on i-001: the one of these that can moves for another that comes. */
static void begin_move(const char *dir, struct answer a[4])
{
    struct session_request moves = oom_job("moves"), stays = oom_job("stays"),
                           other = oom_job("other");

    oom_world_open(dir);
    use_options("fifo",
                "{\"preemption\":{\"moving\":true},\"config\":{\"num_retries_to_skip\":1}}");
    moves.spec.is_movable = true;
    oom_comes("i-001", FOUR_CPUS);
    oom_comes("i-002", FOUR_CPUS);
    oom_set_slot(&stays.resources, "cpu", 2 * AMOUNT_ONE);
    oom_set_slot(&other.resources, "cpu", 3 * AMOUNT_ONE);
    a[0] = oom_create(&moves);
    a[1] = oom_create(&stays);
    a[2] = oom_create(&other);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    slots_done(&stays.resources);
    slots_done(&other.resources);
}

static struct answer make_move(void)
{
    struct session_request wants = oom_job("wants");
    struct answer a;

    oom_set_slot(&wants.resources, "cpu", 2 * AMOUNT_ONE);
    a = oom_create(&wants);
    oom_pause(true);
    slots_done(&wants.resources);
    oom_pause(false);
    pass(2 * USEC_PER_SEC);
    return a;
}

static void run_move(const char *dir)
{
    struct answer a[4];

    begin_move(dir, a);
    oom_begin();
    a[3] = make_move();
    if (status_if(&a[3]) == SESSION_PENDING)
        oom_explain(&a[3].created.id);
    if (status_if(&a[0]) == SESSION_PREEMPTED)
        oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(2 * USEC_PER_SEC);
    end_all(a, AQ_COUNT(a));
}

static void prepare_moving(const char *dir)
{
    struct answer a[4];

    begin_move(dir, a);
    a[3] = make_move();
    assert_int_equal(status_if(&a[0]), SESSION_PREEMPTED);
    oom_world_close();
}

/* ---- parts of GPUs ---- */

static void show_agent(const char *id)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct core_held held = { .holders = NULL };
    struct slots occupied = { .items = NULL };
    int r;

    if (!core_find_agent(world.core, id))
        return;
    r = core_write_gpu_map(world.core, id, &w);
    assert_true(r == 0 || r == -ENOMEM);
    r = core_find_held(world.core, id, &held);
    assert_true(r == 0 || r == -ENOMEM);
    core_held_done(&held);
    r = core_get_occupied(world.core, id, &occupied);
    assert_true(r == 0 || r == -ENOMEM);
    slots_done(&occupied);
}

static void run_parts(const char *dir)
{
    static const int64_t shares[] = { 5, 4, 18, 2 };
    static const char *const names[] = { "part1", "part2", "part3", "part4" };
    struct answer a[AQ_COUNT(names)];

    oom_world_open(dir);
    use_options("fifo", "{\"agent_selection_strategy\":\"FRAGMENTATION\",\"backfill\":true,"
                        "\"backfill_reservations\":2}");
    oom_begin();
    oom_comes("i-001", GPU_NODE);
    oom_comes("i-002", GPU_NODE);
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct session_request req = oom_job(names[i]);

        req.spec.session_group = "apart";
        req.spec.group_is_strict = i == 1;
        req.cluster_size = i == 1 ? 2 : 1;
        req.multi_node = true;
        req.spec.batch_timeout_usec = 600 * USEC_PER_SEC;
        oom_set_slot(&req.resources, "cuda.shares", shares[i] * AMOUNT_ONE / 10);
        a[i] = oom_create(&req);
        oom_pause(true);
        slots_done(&req.resources);
        oom_pause(false);
        if (i == 0)
            oom_all_report(MSG_KERNEL_RUNNING, "{\"cuda.shares\":{\"GPU-2\":\"0.50\"}}", NULL);
    }
    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (a[i].r == 0)
            oom_explain(&a[i].created.id);
    show_agent("i-001");
    show_agent("i-002");
    end_all(a, AQ_COUNT(a));
}

/* ---- tried again, refused ---- */

static void fails_to_start(const char *kind)
{
    for (size_t i = 0; i < world.sent_count; i++) {
        struct sent order = world.sent[i];
        struct msg_kernel_status report;

        if (order.type != MSG_KERNEL_CREATE || !oom_is_connected(order.agent_id))
            continue;
        world.sent[i].type = MSG_UNKNOWN;
        report = kernel_report(&order, MSG_KERNEL_ERROR);
        report.error_kind = kind;
        report.error_text = "no";
        agent_says(order.agent_id, report);
    }
}

static void run_retry(const char *dir)
{
    struct session_request first = oom_job("first"), last = oom_job("last"), huge = oom_job("huge");
    struct answer a[3];

    oom_world_open(dir);
    use_options("fifo", "{\"handler_options\":{\"schedule-sessions.max_retry_count\":2},"
                        "\"pending_timeout\":20}");
    first.spec.agents = (struct str_list){ (const char *[]){ "i-001", "i-002" }, 2 };
    first.spec.agents_preferred = true;
    huge.spec.shmem = "64m";
    last.dependencies = (const char *const[]){ "first" };
    last.dependency_count = 1;
    oom_comes("i-001", FOUR_CPUS);
    oom_comes("i-002", FOUR_CPUS);
    oom_set_slot(&huge.resources, "cpu", 100 * AMOUNT_ONE);
    oom_begin();
    a[0] = oom_create(&first);
    fails_to_start("insufficient-resource");
    pass(2 * USEC_PER_SEC);
    a[1] = a[0].r == 0 ? oom_create(&last) : a[0];
    for (int i = 0; i < 2; i++)
        if (a[i].r == 0)
            oom_explain(&a[i].created.id);
    a[2] = create(&huge); /* no agent has so much */
    if (a[2].r != -EINVAL)
        oom_says("huge", &a[2]);
    fails_to_start("command-not-found");
    pass(40 * USEC_PER_SEC);
    oom_end();
    slots_done(&huge.resources);
    end_all(a, AQ_COUNT(a));
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "resize", oom_world_prepare, run_resize, oom_world_recover },
        { "an agent that cannot change what it gave", oom_world_prepare, run_cannot,
          oom_world_recover },
        { "a start with a cluster on one agent", prepare_cluster, oom_world_start,
          oom_world_recover },
        { "migration", oom_world_prepare, run_move, oom_world_recover },
        { "a start amid a migration", prepare_moving, oom_world_start, oom_world_recover },
        { "parts of GPUs", oom_world_prepare, run_parts, oom_world_recover },
        { "starts that fail, requests that are refused", oom_world_prepare, run_retry,
          oom_world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
