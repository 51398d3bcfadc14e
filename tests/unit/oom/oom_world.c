/* SPDX-License-Identifier: Apache-2.0 */
/* oom_world.c - see oom_world.h */
#include "oom_world.h"

/* ---- a run ---- */

/* An order needs memory on its way, too. */
static int oom_world_send(struct core *core, const char *agent_id, const struct message *msg,
                          struct aq_error *err)
{
    void *text = malloc(1);

    if (!text)
        return aq_fail_oom(err);
    free(text);
    return keep_sent(core, agent_id, msg, err);
}

void oom_world_open(const char *dir)
{
    static const struct clock clock = { test_wall, test_mono, NULL };

    clock_set(&clock);
    (void)snprintf(world.dir, sizeof(world.dir), "%s", dir);
    assert_int_equal(uv_loop_init(&world.loop), 0);
    open_core();
    world.core->send = oom_world_send;
}

void oom_world_close(void)
{
    close_core();
    assert_int_equal(uv_loop_close(&world.loop), 0);
}

void oom_world_prepare(const char *dir)
{
    oom_world_open(dir);
    oom_world_close();
}

void oom_world_recover(const char *dir)
{
    world_wall += 60 * USEC_PER_SEC;
    oom_world_open(dir);
    assert_clean();
    pass(3 * USEC_PER_SEC);
    assert_clean();
    oom_world_close();
}

void oom_world_pass(void)
{
    oom_end();
    pass(12 * USEC_PER_SEC);
    assert_clean();
    restart_core();
    assert_clean();
    oom_world_close();
    oom_pass();
}

void oom_world_start(const char *dir)
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
            world.core->send = oom_world_send;
            settle();
            oom_comes("i-001", GPU_NODE);
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
    oom_world_pass();
}

/* ---- steps ---- */

void oom_says(const char *what, const struct answer *a)
{
    assert_row(a->came, "%s: no answer", what);
    oom_check(what, a->r, &a->err);
}

void oom_says_late(const char *what, struct answer *a)
{
    settle();
    pass(3 * USEC_PER_SEC);
    if (!a->came && oom_has_failed()) { /* while the store cannot write it is tried again */
        oom_end();
        pass(6 * USEC_PER_SEC);
    }
    oom_says(what, a);
}

void oom_comes(const char *id, const char *slots)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = slots,
                               .devices = strcmp(slots, GPU_NODE) == 0 ? GPU_DEVICES : NULL };
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

bool oom_is_connected(const char *id)
{
    const struct agent_entry *a = agent_entry_find(world.core, id);

    return a && a->is_connected;
}

struct session_request oom_job(const char *name)
{
    return (struct session_request){ .name = name,
                                     .type = SESSION_BATCH,
                                     .spec.image = "sh",
                                     .spec.command = "true",
                                     .access_key = USER_KEY,
                                     .priority = -1 };
}

static int oom_write_answer(void *data, const struct core_created *created, struct strbuf *out)
{
    (void)data;
    strbuf_adds(out, created->name);
    return 201;
}

/* Its answer is kept, as that of every request is. */
struct answer oom_create(const struct session_request *req)
{
    const struct core_answered answered = { req->access_key, req->name, "", true,
                                            oom_write_answer };
    struct answer a = { 0 };

    core_create_sessions(world.core, &req, 1, &answered, NULL, on_created, &a);
    settle();
    assert_row(a.came, "create: no answer");
    oom_says("create", &a);
    if (a.r == 0) {
        const struct session *s = core_find_session(world.core, &a.created.id);

        assert_row(s || ended_session_read(&a.created.id).status != SESSION_PENDING,
                   "create: made, and nowhere");
    }
    return a;
}

void oom_all_report(enum msg_kernel_state state, const char *alloc, const char *ports)
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

void oom_set_slot(struct slots *slots, const char *name, int64_t amount)
{
    oom_pause(true);
    assert_int_equal(slots_set(slots, slot_name_intern(name, strlen(name)), amount), 0);
    oom_pause(false);
}

void oom_terminate(const struct uuid *id, bool forced)
{
    struct answer a = { 0 };
    enum session_status status;

    if (status_of(id) == GONE)
        return;
    core_terminate_session(world.core, id, forced, NULL, NULL, on_answer, &a);
    oom_says_late("terminate", &a);
    status = status_of(id);
    if (a.r == 0)
        assert_true(status == GONE || status == SESSION_TERMINATING);
}

void oom_explain(const struct uuid *id)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct aq_error err = { 0 };
    int r;

    if (status_of(id) != SESSION_PENDING)
        return;
    r = core_explain(world.core, id, &text, &json, &err);
    if (r < 0 && r != -EAGAIN)
        oom_check("explain", r, &err);
    if (r == 0)
        assert_true(strbuf_ok(&text) && strbuf_ok(&json));
}
