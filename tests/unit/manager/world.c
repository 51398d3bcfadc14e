/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - a core, a store and agents that the test plays */
#include "world.h"

struct world world;
int64_t world_mono = 1000 * USEC_PER_SEC, world_wall = INT64_C(1763694000) * USEC_PER_SEC;

int64_t test_mono(void *data)
{
    (void)data;
    return world_mono;
}

int64_t test_wall(void *data)
{
    (void)data;
    return world_wall;
}

int keep_sent(struct core *core, const char *agent_id, const struct message *msg,
              struct aq_error *err)
{
    struct sent *s = &world.sent[world.sent_count++];

    (void)core;
    (void)err;
    assert_true(world.sent_count < AQ_COUNT(world.sent));
    *s = (struct sent){ .type = msg->type };
    (void)snprintf(s->agent_id, sizeof(s->agent_id), "%s", agent_id);
    if (msg->type == MSG_KERNEL_CREATE) {
        s->kernel_id = msg->kernel_create.kernel_id;
        s->session_id = msg->kernel_create.session_id;
        s->attempt = msg->kernel_create.attempt;
        s->attempts = msg->kernel_create.spec.attempts;
        s->has_ssh_seed = msg->kernel_create.spec.ssh_seed;
        s->lease_usec = msg->kernel_create.spec.lease_usec;
        s->lease_grace_usec = msg->kernel_create.spec.lease_grace_usec;
        (void)snprintf(
            s->command, sizeof(s->command), "%s",
            msg->kernel_create.spec.session.command ? msg->kernel_create.spec.session.command : "");
        (void)snprintf(s->slots, sizeof(s->slots), "%s", msg->kernel_create.spec.slots);
        (void)snprintf(s->devices, sizeof(s->devices), "%s",
                       msg->kernel_create.spec.devices ? msg->kernel_create.spec.devices : "");
        (void)snprintf(s->hosts, sizeof(s->hosts), "%s", msg->kernel_create.spec.hosts);
        s->probe_port = msg->kernel_create.spec.probe_port;
        (void)snprintf(s->probe_path, sizeof(s->probe_path), "%s",
                       msg->kernel_create.spec.probe_path ? msg->kernel_create.spec.probe_path
                                                          : "");
        for (size_t i = 0; i < msg->kernel_create.spec.session.environ.count; i++) {
            const struct text_pair *variable = &msg->kernel_create.spec.session.environ.items[i];
            size_t len = strlen(s->environ);

            (void)snprintf(s->environ + len, sizeof(s->environ) - len, "%s=%s ", variable->key,
                           variable->value);
        }
        (void)snprintf(s->network, sizeof(s->network), "%s",
                       msg->kernel_create.spec.network ? msg->kernel_create.spec.network : "");
    } else if (msg->type == MSG_KERNEL_DESTROY) {
        s->kernel_id = msg->kernel_destroy.kernel_id;
        s->attempt = msg->kernel_destroy.attempt;
        s->grace_usec = msg->kernel_destroy.grace_usec;
        s->notice_usec = msg->kernel_destroy.notice_usec;
        (void)snprintf(s->reason, sizeof(s->reason), "%s",
                       msg->kernel_destroy.reason ? msg->kernel_destroy.reason : "");
    } else if (msg->type == MSG_KERNEL_RESTART) {
        s->kernel_id = msg->kernel_restart.kernel_id;
        s->attempt = msg->kernel_restart.attempt;
    } else if (msg->type == MSG_KERNEL_RESIZE) {
        s->kernel_id = msg->kernel_resize.kernel_id;
        s->attempt = msg->kernel_resize.attempt;
        s->trial = msg->kernel_resize.trial;
        (void)snprintf(s->slots, sizeof(s->slots), "%s", msg->kernel_resize.slots);
    } else if (msg->type == MSG_KERNEL_FORGET) {
        s->kernel_id = msg->kernel_forget.kernel_id;
        s->attempt = msg->kernel_forget.attempt;
    } else if (msg->type == MSG_HEARTBEAT_REPLY) {
        s->uptime_usec = msg->heartbeat_reply.uptime_usec;
        s->lease_count = msg->heartbeat_reply.lease_count;
        for (size_t i = 0; i < s->lease_count; i++) {
            s->kernel_id = msg->heartbeat_reply.leases[i].kernel_id;
            s->attempt = msg->heartbeat_reply.leases[i].attempt;
            s->lease_usec = msg->heartbeat_reply.leases[i].lease_usec;
            s->lease_grace_usec = msg->heartbeat_reply.leases[i].lease_grace_usec;
        }
    } else if (msg->type == MSG_KERNEL_RELEASE) {
        s->kernel_id = msg->kernel_release.kernel_id;
        s->attempt = msg->kernel_release.attempt;
    }
    return 0;
}

static void keep_event(void *data, const struct core_event *event)
{
    size_t len = strlen(world.events);

    (void)data;
    (void)snprintf(world.events + len, sizeof(world.events) - len, "%s ", event->name);
}

void settle(void)
{
    for (int quiet = 0; quiet < 3;) {
        uint64_t commits = world.core->counts.commits;

        store_flush(world.core->store);
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
        quiet = commits == world.core->counts.commits ? quiet + 1 : 0;
    }
}

void open_core(void)
{
    struct aq_error err = { 0 };

    world.conf.loop = &world.loop;
    world.conf.state_dir = world.dir;
    world.conf.dev = true;
    world.conf.heartbeat_usec = 20 * USEC_PER_SEC; /* time passes in large steps here */
    world.conf.agent_timeout_usec = 40 * USEC_PER_SEC;
    if (core_new(&world.conf, &world.core, &err) < 0 || core_start(world.core, &err) < 0)
        fail_msg("%s", err.text);
    world.core->send = keep_sent;
    assert_non_null(core_subscribe(world.core, NULL, keep_event, NULL));
    settle();
}

void close_core(void)
{
    core_free(AQ_TAKE(world.core));
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
}

void restart_core(void)
{
    close_core();
    world.sent_count = 0;
    world.events[0] = '\0';
    open_core();
}

int world_begin(void **state)
{
    static const struct clock clock = { test_wall, test_mono, NULL };

    (void)state;
    clock_set(&clock);
    world = (struct world){ .dir = "/tmp/aliquot-core-XXXXXX" };
    assert_non_null(mkdtemp(world.dir));
    assert_int_equal(uv_loop_init(&world.loop), 0);
    open_core();
    return 0;
}

int world_end(void **state)
{
    (void)state;
    close_core();
    assert_int_equal(uv_loop_close(&world.loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, world.dir, NULL), 0);
    clock_set(NULL);
    return 0;
}

void pass(int64_t usec)
{
    while (usec > 0) {
        int64_t part = AQ_MIN(usec, USEC_PER_SEC);

        world_mono += part;
        world_wall += part;
        usec -= part;
        liveness_tick(world.core, world_mono);
    }
    core_schedule_turn(world.core);
    settle();
}

int agent_greets(const char *id, const char *slots, struct uuid incarnation)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = id,
                               .incarnation = incarnation,
                               .version = "1",
                               .architecture = "x86_64",
                               .slots = slots };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry = 0;
    int r = inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err);

    if (r == 0)
        inventory_link_ops.on_connected(world.core, id, &incarnation);
    settle();
    return r;
}

void agent_beats(const char *id, struct msg_kernel_status *kernels, size_t count)
{
    struct message msg = { .type = MSG_HEARTBEAT,
                           .heartbeat = { .kernels = kernels, .kernel_count = count } };

    inventory_link_ops.on_message(world.core, id, &msg);
    settle();
}

void agent_comes(const char *id, const char *slots)
{
    assert_int_equal(agent_greets(id, slots, uuid_random()), 0);
    agent_beats(id, NULL, 0);
}

void agent_goes(const char *id)
{
    struct agent_entry *a = agent_entry_find(world.core, id);

    inventory_link_ops.on_disconnected(world.core, id, &a->incarnation, false, "test");
    settle();
}

struct msg_kernel_status kernel_report(const struct sent *order, enum msg_kernel_state state)
{
    const struct kernel *k = core_find_kernel(world.core, &order->kernel_id);

    return (struct msg_kernel_status){ .kernel_id = order->kernel_id,
                                       .session_id = k ? k->session->id : order->session_id,
                                       .attempt = order->attempt,
                                       .state = state };
}

void agent_says(const char *id, struct msg_kernel_status report)
{
    struct message msg = { .type = MSG_KERNEL_STATUS, .kernel_status = report };

    inventory_link_ops.on_message(world.core, id, &msg);
    settle();
}

void agent_reports(const struct sent *order, enum msg_kernel_state state)
{
    agent_says(order->agent_id, kernel_report(order, state));
}

void agent_reports_exit(const struct sent *order, int code)
{
    agent_reports_end(order, code, "self-terminated");
}

void agent_reports_end(const struct sent *order, int code, const char *reason)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_TERMINATED);

    report.has_exit = true;
    report.exit_code = code;
    report.reason = reason;
    agent_says(order->agent_id, report);
}

struct sent *find_sent(enum message_type type, size_t n)
{
    for (size_t i = 0; i < world.sent_count; i++)
        if (world.sent[i].type == type && n-- == 0)
            return &world.sent[i];
    return NULL;
}

size_t count_sent(enum message_type type)
{
    size_t n = 0;

    for (size_t i = 0; i < world.sent_count; i++)
        n += world.sent[i].type == type;
    return n;
}

void on_created(void *data, int r, const struct aq_error *err, const struct core_created *created)
{
    struct answer *a = data;

    assert_false(a->came);
    a->came = true;
    a->r = r;
    if (err)
        a->err = *err;
    if (created)
        a->created = *created;
}

void on_answer(void *data, int r, const struct aq_error *err)
{
    on_created(data, r, err, NULL);
}

void drain_agent(const char *id, bool on, const char *reason, struct answer *a)
{
    struct core_agent_change change = { .drain = on ? CORE_AGENT_DRAIN_ON : CORE_AGENT_DRAIN_OFF,
                                        .drain_reason = reason };

    core_change_agent(world.core, id, &change, NULL, on_answer, a);
}

struct answer create(const struct session_request *req)
{
    struct answer a = { 0 };

    core_create_sessions(world.core, &req, 1, NULL, NULL, on_created, &a);
    assert_false(a.came); /* never inside the call */
    settle();
    assert_true(a.came);
    return a;
}

struct uuid submit(const char *name)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a = create(&req);

    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

struct answer terminate(const struct uuid *id, bool forced)
{
    struct answer a = { 0 };

    core_terminate_session(world.core, id, forced, NULL, NULL, on_answer, &a);
    settle();
    return a;
}

enum session_status status_of(const struct uuid *id)
{
    const struct session *s = core_find_session(world.core, id);

    return s ? s->status : SESSION_STATUS_COUNT; /* not alive any more */
}

void use_options(const char *scheduler, const char *opts)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };
    struct aq_error err = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .is_active = true,
                                                 .scheduler = strdup(scheduler),
                                                 .scheduler_opts = strdup(opts),
                                                 .driver_opts = strdup("{}"),
                                                 .selection = strdup("concentrated"),
                                                 .agent_loss_policy = strdup("wait") };
    if (core_check_scheduling(&e->resource_group, &err) < 0)
        fail_msg("%s: %s", err.field, err.text);
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

void set_loss_policy(const char *policy, int64_t grace_usec)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .selection = strdup("concentrated"),
                                                 .agent_loss_policy = strdup(policy),
                                                 .agent_loss_grace_usec = grace_usec };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

const struct audit_who asker = { .user_name = "asker@lablup.com", .domain = "default" };

struct audited {
    const char *action;
    size_t count;
    char detail[1024]; /* of the newest */
};

static int read_audited(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audited *a = data;
    const struct store_query query = { .action = a->action, .name = asker.user_name };
    struct store_page *page = NULL;
    int r = store_list_audit_log(tx, &query, &page, err);

    a->count = r == 0 ? page->count : 0;
    if (a->count && page->audit_log[0].entry.detail)
        (void)snprintf(a->detail, sizeof(a->detail), "%s", page->audit_log[0].entry.detail);
    store_page_free(page);
    return r;
}

void assert_audited(const char *action, size_t count, const char *detail)
{
    struct audited a = { .action = action };
    struct aq_error err = { 0 };

    if (store_call(world.core->store, read_audited, &a, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(a.count, count);
    if (detail)
        assert_string_equal(a.detail, detail);
}

struct attempts {
    struct uuid id;
    char text[1024];
};

/* "no-room:3 placed:1 " */
static int read_attempts(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct attempts *a = data;
    struct store_page *page = NULL;
    int r = store_list_attempts(tx, &a->id, &page, err), at = 0;

    for (size_t i = 0; r == 0 && i < page->count; i++)
        at += snprintf(
            a->text + at, sizeof(a->text) - (size_t)at, "%s:%d%s ", page->attempts[i].kind,
            (int)page->attempts[i].count,
            page->attempts[i].detail && strstr(page->attempts[i].detail, "\"chosen\"") ? "!" : "");
    store_page_free(page);
    return r;
}

void check_attempts(const struct uuid *id, const char *want)
{
    struct attempts a = { .id = *id };

    assert_int_equal(store_call(core_store(world.core), read_attempts, &a, NULL), 0);
    assert_string_equal(a.text, want);
}

void on_audited(void *data, int r, const struct aq_error *err, const char *findings)
{
    int *count = data;

    (void)err;
    *count = r;
    if (r != 0)
        print_error("audit: %d\n%s", r, findings);
}

void assert_clean(void)
{
    int count = -1;

    settle();
    core_audit(world.core, on_audited, &count);
    settle();
    assert_int_equal(count, 0);
}
