/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short anywhere in the manager's core: who asked hears so, or the process ends
 * and comes back with what the store says.
 */
#include "../manager/ended_session.h"

#include "oom.h"

#define HALF_GPU "{\"cpu\":\"1\",\"cuda.shares\":\"0.5\",\"mem\":\"1073741824\"}"
#define GPU_NODE                                                      \
    "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"17179869184\"]," \
    "\"cuda.shares\":[\"count\",\"2\"]}"

/* ---- the world of one run ---- */

static void oom_world_open(const char *dir)
{
    static const struct clock clock = { test_wall, test_mono, NULL };

    clock_set(&clock);
    (void)snprintf(world.dir, sizeof(world.dir), "%s", dir);
    assert_int_equal(uv_loop_init(&world.loop), 0);
    open_core();
}

static void oom_world_close(void)
{
    close_core();
    assert_int_equal(uv_loop_close(&world.loop), 0);
}

static void world_prepare(const char *dir)
{
    oom_world_open(dir);
    oom_world_close();
}

/* After the manager ended by itself: what it finds is right, and it goes on. */
static void world_recover(const char *dir)
{
    world_wall += 60 * USEC_PER_SEC;
    oom_world_open(dir);
    assert_clean();
    pass(3 * USEC_PER_SEC);
    assert_clean();
    oom_world_close();
}

/* All is well in what this process remembers and in what the next one will. */
static void world_check(void)
{
    oom_end();
    pass(12 * USEC_PER_SEC);
    assert_clean();
    restart_core();
    assert_clean();
    oom_world_close();
    oom_pass();
}

/* ---- what is done to it: each may fail, but only for want of memory ---- */

static void comes(const char *id, const char *slots)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = slots };
    struct msg_welcome welcome = { 0 };
    struct message beat = { .type = MSG_HEARTBEAT };
    struct aq_error err = { 0 };
    int64_t retry = 0;

    for (int i = 0; i < 2; i++) { /* an agent tries again */
        int r;

        hello.incarnation = uuid_random();
        r = inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err);
        oom_check("hello", r, &err);
        if (r == 0) {
            inventory_link_ops.on_connected(world.core, id, &hello.incarnation);
            settle();
            inventory_link_ops.on_message(world.core, id, &beat);
            settle();
            inventory_link_ops.on_message(world.core, id, &beat);
            settle();
            return;
        }
        pass(USEC_PER_SEC);
    }
}

static void says(const char *what, struct answer a)
{
    assert_row(a.came, "%s: no answer", what);
    oom_check(what, a.r, &a.err);
}

static struct answer make(const struct session_request *req)
{
    struct answer a = create(req);

    says("create", a);
    if (a.r == 0) {
        const struct session *s = core_find_session(world.core, &a.created.id);

        assert_row(s || ended_session_read(&a.created.id).status != SESSION_PENDING,
                   "create: made, and nowhere");
    }
    return a;
}

/* A report of every kernel that was ordered and is known. */
static void all_report(enum msg_kernel_state state, const char *alloc, const char *ports)
{
    for (size_t i = 0; i < world.sent_count; i++) {
        struct sent order = world.sent[i];
        struct msg_kernel_status report;

        if (order.type != MSG_KERNEL_CREATE || !agent_entry_find(world.core, order.agent_id))
            continue;
        report = kernel_report(&order, state);
        report.alloc = alloc;
        report.service_ports = ports;
        if (state == MSG_KERNEL_TERMINATED) {
            report.has_exit = true;
            report.reason = "self-terminated";
        }
        agent_says(order.agent_id, report);
    }
    pass(USEC_PER_SEC);
}

static void set_cpus(struct session_request *req, int64_t cpus)
{
    oom_pause(true);
    assert_int_equal(slots_set(&req->resources, slot_name_intern("cpu", 3), cpus * AMOUNT_ONE), 0);
    oom_pause(false);
}

static void rename_to(const struct uuid *id, const char *name)
{
    struct answer a = { 0 };
    const struct session *s;

    if (!core_find_session(world.core, id))
        return;
    core_rename_session(world.core, id, name, on_answer, &a);
    settle();
    says("rename", a);
    if ((s = core_find_session(world.core, id)))
        assert_int_equal(strcmp(s->name, name) == 0, a.r == 0);
}

static void set_priority(const struct uuid *id, int priority)
{
    struct answer a = { 0 };
    const struct session *s = core_find_session(world.core, id);

    if (!s || s->status != SESSION_PENDING)
        return;
    core_set_priority(world.core, id, priority, on_answer, &a);
    settle();
    says("priority", a);
    if ((s = core_find_session(world.core, id)))
        assert_int_equal(s->priority == priority, a.r == 0);
}

static void end(const struct uuid *id, bool forced)
{
    struct answer a = { 0 };
    enum session_status status;

    if (status_of(id) == GONE)
        return;
    core_terminate_session(world.core, id, forced, NULL, on_answer, &a);
    settle();
    pass(2 * USEC_PER_SEC);
    if (!a.came && oom_has_failed()) { /* while the store cannot write it is dry_run_done again */
        oom_end();
        pass(6 * USEC_PER_SEC);
    }
    says("terminate", a);
    status = status_of(id);
    if (a.r == 0)
        assert_true(status == GONE || status == SESSION_TERMINATING);
}

static void explain_it(const struct uuid *id)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct aq_error err = { 0 };
    int r;

    if (status_of(id) != SESSION_PENDING)
        return;
    r = core_explain(world.core, id, &text, &json, &err);
    if (r < 0 && r != -EAGAIN)
        oom_check("pending_reason_write", r, &err);
}

/* ---- a session from its request to its end ---- */

static void run_life(const char *dir)
{
    struct session_request req = { .name = "first",
                                   .type = SESSION_INTERACTIVE,
                                   .image = "sh",
                                   .architecture = "x86_64",
                                   .command = "true",
                                   .bootstrap = "echo",
                                   .tag = "t",
                                   .access_key = USER_KEY,
                                   .environ = "{\"A\":\"b\"}",
                                   .preopen_ports = "[8080]",
                                   .priority = -1,
                                   .constraints = { .group = "apart", .is_preemptible = true } };
    struct session_request after = { .name = "after",
                                     .type = SESSION_BATCH,
                                     .image = "sh",
                                     .command = "true",
                                     .access_key = USER_KEY,
                                     .priority = -1,
                                     .dependencies = (const char *const[]){ "first" },
                                     .dependency_count = 1 };
    struct session_request big = { .name = "large",
                                   .type = SESSION_BATCH,
                                   .image = "sh",
                                   .command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .constraints = { .waits_for_capacity = true } };
    struct answer first, second, third, a = { 0 };

    oom_world_open(dir);
    set_cpus(&big, 100);
    oom_begin();
    comes("i-001", GPU_NODE);
    first = make(&req);
    if (first.r == 0)
        second = make(&after);
    else
        second = first;
    third = make(&big);
    pass(2 * USEC_PER_SEC);
    all_report(MSG_KERNEL_CREATING, NULL, NULL);
    all_report(MSG_KERNEL_RUNNING, "{\"cpu\":{\"0\":\"1\"},\"mem\":{\"root\":\"1073741824\"}}",
               "[{\"name\":\"web\",\"protocol\":\"http\",\"container_ports\":[8080],"
               "\"host_ports\":[30000]}]");
    if (first.r == 0) {
        rename_to(&first.created.id, "renamed");
        if (status_of(&first.created.id) == SESSION_RUNNING) {
            core_restart_session(world.core, &first.created.id, on_answer, &a);
            settle();
            pass(3 * USEC_PER_SEC);
            if (!a.came && oom_has_failed()) {
                oom_end();
                pass(6 * USEC_PER_SEC);
            }
            says("restart", a);
            all_report(MSG_KERNEL_RUNNING, NULL, NULL);
        }
    }
    if (third.r == 0) {
        set_priority(&third.created.id, 30);
        explain_it(&third.created.id);
        end(&third.created.id, false);
    }
    if (first.r == 0)
        end(&first.created.id, false);
    all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(20 * USEC_PER_SEC);
    if (second.r == 0)
        end(&second.created.id, true);
    all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_end();
    slots_done(&big.resources);
    world_check();
}

/* ---- the manager starts with all that there is ---- */

static void prepare_start(const char *dir)
{
    struct session_request req = { .name = "runs",
                                   .type = SESSION_INTERACTIVE,
                                   .image = "sh",
                                   .access_key = USER_KEY,
                                   .environ = "{\"A\":\"b\"}",
                                   .priority = -1,
                                   .constraints = { .group = "apart" } };

    oom_world_open(dir);
    comes("i-001", GPU_NODE);
    (void)make(&req);
    all_report(MSG_KERNEL_RUNNING, "{\"cpu\":{\"0\":\"1\"},\"mem\":{\"root\":\"1073741824\"}}",
               NULL);
    req.name = "waits";
    req.dependencies = (const char *const[]){ "runs" };
    req.dependency_count = 1;
    (void)make(&req);
    assert_clean();
    oom_world_close();
}

static void run_start(const char *dir)
{
    static const struct clock clock = { test_wall, test_mono, NULL };
    struct aq_error err = { 0 };
    struct core_conf conf = { .loop = &world.loop, .state_dir = dir, .dev = true };
    int r;

    clock_set(&clock);
    (void)snprintf(world.dir, sizeof(world.dir), "%s", dir);
    assert_int_equal(uv_loop_init(&world.loop), 0);
    oom_begin();
    if ((r = core_new(&conf, &world.core, &err)) == 0) {
        r = core_start(world.core, &err);
        if (r == 0) {
            world.core->send = keep_sent;
            settle();
            comes("i-001", GPU_NODE);
            pass(2 * USEC_PER_SEC);
        }
    } else {
        world.core = NULL;
    }
    oom_end();
    oom_check("start", r, &err);
    if (world.core) {
        if (r == 0)
            assert_clean();
        close_core();
    } else {
        (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    }
    open_core();
    world_check();
}

/* ---- sessions that are preempted, agents that are lost, drained and removed ---- */

static void run_turns(const char *dir)
{
    struct session_request low = { .name = "lower",
                                   .type = SESSION_BATCH,
                                   .image = "sh",
                                   .command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .constraints = { .is_preemptible = true } };
    struct session_request high = { .name = "high",
                                    .type = SESSION_BATCH,
                                    .image = "sh",
                                    .command = "true",
                                    .access_key = USER_KEY,
                                    .priority = -1,
                                    .constraints = { .job_priority = 9 } };
    struct answer a, b, said = { 0 };
    bool is_known;

    oom_world_open(dir);
    use_options("fifo", "{\"preemption\":{\"enabled\":true}}");
    set_cpus(&low, 4);
    set_cpus(&high, 3);
    oom_begin();
    comes("i-001", FOUR_CPUS);
    a = make(&low);
    all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    b = make(&high);
    pass(2 * USEC_PER_SEC);
    if (b.r == 0)
        explain_it(&b.created.id);
    all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(2 * USEC_PER_SEC);
    comes("i-002", FOUR_CPUS);
    pass(2 * USEC_PER_SEC);
    all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    is_known = agent_entry_find(world.core, "i-002")
               && agent_entry_find(world.core, "i-002")->is_known;
    core_drain_agent(world.core, "i-002", true, "looked after", on_answer, &said);
    settle();
    assert_true(said.came);
    if (is_known)
        oom_check("drain", said.r, &said.err);
    if (agent_entry_find(world.core, "i-001")
        && agent_entry_find(world.core, "i-001")->is_connected)
        agent_goes("i-001");
    pass(60 * USEC_PER_SEC);
    comes("i-001", FOUR_CPUS); /* with nothing of what it had */
    pass(40 * USEC_PER_SEC);
    if (a.r == 0)
        end(&a.created.id, true);
    if (b.r == 0)
        end(&b.created.id, true);
    all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_end();
    slots_done(&low.resources);
    slots_done(&high.resources);
    world_check();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "the life of a session", world_prepare, run_life, world_recover },
        { "the start of the manager", prepare_start, run_start, world_recover },
        { "preemption, lost and drained agents", world_prepare, run_turns, world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
