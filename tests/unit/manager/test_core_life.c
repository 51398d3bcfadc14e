/* The life of sessions, from the request to the end, against a played agent. */
#include "world.h"

/* What the store says of a session that is dead. */
struct grave {
    struct uuid id;
    enum session_status status;
    enum session_result result;
    char reason[40];
    bool has_exit;
    int exit_code;
};

static int read_grave(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    struct grave *g = data;
    struct store_query q = { .ids = &g->id, .id_count = 1, .with_kernels = true };
    int r = store_list_sessions(tx, &q, &page, err);

    if (r < 0 || page->count != 1)
        return -ENOENT;
    g->status = page->sessions[0].session.status;
    g->result = page->sessions[0].session.result;
    (void)snprintf(g->reason, sizeof(g->reason), "%s",
                   page->sessions[0].session.reason ? page->sessions[0].session.reason : "");
    g->has_exit = page->sessions[0].kernels[0].kernel.has_exit;
    g->exit_code = page->sessions[0].kernels[0].kernel.exit_code;
    return 0;
}

static struct grave grave_of(const struct uuid *id)
{
    struct grave g = { .id = *id };

    assert_int_equal(store_call(world.core->store, read_grave, &g, NULL), 0);
    return g;
}

static void test_batch(void **state)
{
    static const struct {
        int exit_code;
        enum session_result result;
        const char *reason, *event;
    } rows[] = {
        { 0, RESULT_SUCCESS, "task-finished", "session_success" },
        { 1, RESULT_FAILURE, "task-failed", "session_failure" },
        { 137, RESULT_FAILURE, "task-failed", "session_failure" },
    };

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct uuid id;
        struct sent *order;
        struct grave g;
        char want[512];

        world.sent_count = 0;
        world.events[0] = '\0';
        id = submit("batch-job");
        assert_int_equal(status_of(&id), SESSION_SCHEDULED);
        order = find_sent(MSG_KERNEL_CREATE, 0);
        assert_non_null(order);
        assert_string_equal(order->command, "true");
        assert_string_equal(order->agent_id, "i-001");
        assert_string_equal(order->slots, "{\"cpu\":\"1\",\"mem\":\"1073741824\"}");
        assert_string_equal(order->hosts, "main1");
        assert_int_equal(order->attempt, 1);
        agent_reports(order, MSG_KERNEL_CREATING);
        assert_int_equal(status_of(&id), SESSION_SCHEDULED); /* what is short leaves no row */
        agent_reports(order, MSG_KERNEL_RUNNING);
        assert_int_equal(status_of(&id), SESSION_RUNNING);
        assert_clean();
        agent_reports_exit(order, rows[i].exit_code);
        assert_int_equal(status_of(&id), GONE);
        g = grave_of(&id);
        assert_int_equal(g.status, SESSION_TERMINATED);
        assert_int_equal(g.result, rows[i].result);
        assert_string_equal(g.reason, rows[i].reason);
        assert_true(g.has_exit);
        assert_int_equal(g.exit_code, rows[i].exit_code);
        assert_int_equal(count_sent(MSG_KERNEL_CREATE), 1);
        assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
        (void)snprintf(want, sizeof(want), "session_enqueued session_scheduled kernel_started "
                       "session_started kernel_terminated %s session_terminated ", rows[i].event);
        assert_string_equal(world.events, want);
        assert_clean();
    }
}

/* Reports may come in any order and any number of times. */
static void test_reports_out_of_order(void **state)
{
    struct uuid id;
    struct sent *order;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    id = submit("quick-job");
    order = find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports_exit(order, 0); /* RUNNING never seen: it ran all the same */
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(grave_of(&id).result, RESULT_SUCCESS);
    assert_non_null(strstr(world.events, "session_started"));
    /* A late report of a dead kernel only makes the agent forget it. */
    world.sent_count = 1;
    agent_reports(order, MSG_KERNEL_RUNNING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports_exit(order, 0);
    assert_int_equal(count_sent(MSG_KERNEL_FORGET), 1);
    assert_int_equal(grave_of(&id).status, SESSION_TERMINATED);
    assert_clean();
}

static void test_terminate(void **state)
{
    struct uuid running, pending, forced;
    struct sent *first, *second;

    (void)state;
    /* Without an agent: from the queue at once. */
    pending = submit("still-waits");
    assert_int_equal(status_of(&pending), SESSION_PENDING);
    assert_int_equal(terminate(&pending, false).r, 0);
    assert_int_equal(grave_of(&pending).status, SESSION_CANCELLED);
    assert_string_equal(grave_of(&pending).reason, "user-requested");
    assert_int_equal(terminate(&pending, false).r, -ENOENT);

    agent_comes("i-001", FOUR_CPUS);
    running = submit("graceful");
    first = find_sent(MSG_KERNEL_CREATE, 0);
    agent_reports(first, MSG_KERNEL_RUNNING);
    assert_int_equal(terminate(&running, false).r, 0);
    assert_int_equal(status_of(&running), SESSION_TERMINATING);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->grace_usec, 10 * USEC_PER_SEC);
    assert_int_equal(terminate(&running, false).r, 0); /* asking again is fine */
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports(first, MSG_KERNEL_RUNNING); /* late, changes nothing */
    assert_int_equal(status_of(&running), SESSION_TERMINATING);
    assert_int_equal(terminate(&running, true).r, 0);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 1)->grace_usec, 0);
    assert_clean();
    agent_reports_exit(first, 143);
    assert_int_equal(grave_of(&running).status, SESSION_TERMINATED);
    assert_string_equal(grave_of(&running).reason, "user-requested"); /* the first wins */
    assert_int_equal(grave_of(&running).result, RESULT_FAILURE);

    /* Ended before it ran: nothing runs afterwards. */
    forced = submit("forced");
    second = find_sent(MSG_KERNEL_CREATE, 1);
    assert_int_equal(terminate(&forced, true).r, 0);
    assert_int_equal(status_of(&forced), SESSION_TERMINATING);
    agent_reports(second, MSG_KERNEL_TERMINATED);
    assert_string_equal(grave_of(&forced).reason, "force-terminated");
    assert_clean();
}

static void test_queue_order(void **state)
{
    struct uuid ids[6];
    struct answer a = { 0 };

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    for (size_t i = 0; i < 6; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job-%zu", i);
        ids[i] = submit(name);
    }
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(status_of(&ids[i]), i < 4 ? SESSION_SCHEDULED : SESSION_PENDING);
    core_set_priority(world.core, &ids[5], 50, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1), 0);
    assert_int_equal(status_of(&ids[1]), GONE);
    assert_int_equal(status_of(&ids[5]), SESSION_SCHEDULED);
    assert_int_equal(status_of(&ids[4]), SESSION_PENDING);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&ids[4]), SESSION_SCHEDULED);
    assert_clean();
}

static void test_explain(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct uuid ids[2];

    (void)state;
    ids[0] = submit("no-agent");
    assert_int_equal(core_explain(world.core, &ids[0], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "architecture"));
    pass(3 * USEC_PER_SEC); /* the row knows it too after a while */
    assert_non_null(core_find_session(world.core, &ids[0])->reason);
    assert_clean();
    agent_comes("i-001", "{\"cpu\":[\"count\",\"0.5\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    ids[1] = submit("behind");
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[0], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "cpu: missing=0.5 on i-001"));
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[1], NULL, &text, NULL), 0);
    assert_non_null(strstr(text.data, "no-room"));
    assert_int_equal(core_explain(world.core, &(struct uuid){ { 1 } }, &text, NULL, NULL),
                     -ENOENT);
}

static struct uuid submit_first(const char *name)
{
    struct session_request req = { .name = name, .type = SESSION_BATCH, .image = "sh",
        .command = "true", .access_key = USER_KEY, .priority = 50 };
    struct answer a = create(&req);

    assert_int_equal(a.r, 0);
    return a.created.id;
}

/* What passes made of a session is kept with it, across a restart too. */
static void test_attempts(void **state)
{
    struct session_request req = { .type = SESSION_BATCH, .image = "sh", .command = "true",
        .access_key = USER_KEY, .priority = -1, .name = "job-four" };
    struct uuid id, other;
    struct answer a;

    (void)state;
    assert_int_equal(slots_set(&req.resources, slot_name_intern("cpu", 3), 4 * AMOUNT_ONE), 0);
    agent_comes("i-001", FOUR_CPUS);
    other = submit("job-one");
    check_attempts(&other, "placed:1! ");
    a = create(&req);
    assert_int_equal(a.r, 0);
    id = a.created.id;
    pass(3 * USEC_PER_SEC);
    check_attempts(&id, "no-room:1 ");
    for (int i = 0; i < 3; i++) { /* something becomes free, but not enough */
        struct uuid small = submit_first("job-small");

        assert_int_equal(status_of(&small), SESSION_SCHEDULED);
        agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1 + (size_t)i), 0);
    }
    pass(70 * USEC_PER_SEC);
    check_attempts(&id, "no-room:7 "); /* before and after each */
    restart_core();
    pass(3 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    agent_comes("i-002", FOUR_CPUS);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    slots_done(&req.resources);
    assert_clean();
}

static struct core_outlook outlook_of(const struct uuid *id)
{
    struct core_outlook outlook;

    assert_int_equal(core_get_outlook(world.core, id, &outlook), 0);
    return outlook;
}

/* One of four cores each, the first until its time limit. */
static void test_outlook(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct session_request req = { .type = SESSION_BATCH, .image = "sh", .command = "true",
        .access_key = USER_KEY, .priority = -1 };
    struct core_outlook outlook;
    struct uuid ids[4];
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    assert_int_equal(slots_set(&req.resources, slot_name_intern("cpu", 3), 4 * AMOUNT_ONE), 0);
    for (int i = 0; i < 3; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job-%d", i);
        req.name = name;
        req.batch_timeout_usec = i == 1 ? 0 : 3600 * USEC_PER_SEC;
        a = create(&req);
        assert_int_equal(a.r, 0);
        ids[i] = a.created.id;
    }
    req.name = "job-3";
    req.starts_usec = world_wall + 7200 * USEC_PER_SEC;
    a = create(&req);
    ids[3] = a.created.id;
    assert_int_equal(status_of(&ids[0]), SESSION_SCHEDULED);
    outlook = outlook_of(&ids[1]);
    assert_int_equal(outlook.position, 1);
    assert_int_equal(outlook.length, 2);
    assert_int_equal(outlook.start, SCHED_START_AT);
    assert_true(outlook.starts_usec > world_wall + 3590 * USEC_PER_SEC &&
                outlook.starts_usec <= world_wall + 3600 * USEC_PER_SEC);
    assert_int_equal(outlook.tries, 1);
    assert_int_equal(outlook_of(&ids[2]).position, 2);
    assert_int_equal(outlook_of(&ids[2]).start, SCHED_START_OPEN); /* job-1 has no limit */
    assert_int_equal(outlook_of(&ids[3]).position, 0);
    assert_int_equal(outlook_of(&ids[3]).start, SCHED_START_RULED);
    assert_int_equal(core_get_outlook(world.core, &ids[0], &outlook), -ENOENT);
    assert_int_equal(core_explain(world.core, &ids[2], &text, NULL, NULL), 0);
    assert_non_null(strstr(text.data, "It is number 2 of 2 that wait for room in resource group "
                                      "'default'."));
    strbuf_clear(&text);
    assert_int_equal(core_explain(world.core, &ids[1], NULL, &text, NULL), 0);
    assert_non_null(strstr(text.data, "\"position\":1,\"queue_length\":2,\"start\":\"known\""));
    slots_done(&req.resources);
    assert_clean();
}

static void test_requests(void **state)
{
    static const struct session_request good = { .name = "good-name", .type = SESSION_BATCH,
        .image = "sh", .command = "true", .access_key = USER_KEY, .priority = -1 };
    struct slots negative = { 0 }, unknown = { 0 }, fraction = { 0 };
    struct session_request req;
    struct answer a;

#define REFUSED(what, error, name)                                                                 \
    do {                                                                                           \
        req = good;                                                                                \
        what;                                                                                      \
        a = create(&req);                                                                          \
        assert_row(a.r == -(error), "%s: %d %s", #what, a.r, a.err.text);                          \
        assert_row(strcmp(a.err.field, name) == 0, "%s: %s", #what, a.err.field);                  \
    } while (0)

    (void)state;
    assert_int_equal(slots_set(&negative, "cpu", -1), 0);
    assert_int_equal(slots_set(&unknown, "xpu", AMOUNT_ONE), 0);
    assert_int_equal(slots_set(&fraction, "cpu", AMOUNT_ONE / 2), 0);
    REFUSED(req.name = "a", EINVAL, "name");
    REFUSED(req.name = NULL, EINVAL, "name");
    REFUSED(req.image = "", EINVAL, "image");
    REFUSED(req.image = "a b", EINVAL, "image");
    REFUSED(req.command = NULL, EINVAL, "startupCommand");
    REFUSED(req.command = "\xff", EINVAL, "startupCommand");
    REFUSED(req.type = SESSION_INTERACTIVE; req.starts_usec = 1, EINVAL, "starts_at");
    REFUSED(req.type = SESSION_INTERACTIVE; req.batch_timeout_usec = 1, EINVAL, "batch_timeout");
    REFUSED(req.batch_timeout_usec = -1, EINVAL, "batch_timeout");
    REFUSED(req.access_key = "AKIANOBODY", EACCES, "owner_access_key");
    REFUSED(req.domain = "elsewhere", EINVAL, "domain");
    REFUSED(req.group = "elsewhere", EINVAL, "group");
    REFUSED(req.resource_group = "elsewhere", ENOENT, "scalingGroup");
    REFUSED(req.cluster_size = 65, EINVAL, "clusterSize");
    REFUSED(req.priority = 101, EINVAL, "priority");
    REFUSED(req.resources = negative, EINVAL, "cpu");
    REFUSED(req.resources = unknown, EINVAL, "xpu");
    REFUSED(req.resources = fraction, EINVAL, "cpu");
    REFUSED(req.environ = "[]", EINVAL, "environ");
    REFUSED(req.environ = "{\"A\":1}", EINVAL, "environ");
    REFUSED(req.environ = "{\"A=B\":\"1\"}", EINVAL, "environ");
    REFUSED(req.resource_opts = "1", EINVAL, "resource_opts");
    REFUSED(req.dependencies = (const char *[]){ "nobody" }; req.dependency_count = 1, ENOENT,
            "dependencies");
    assert_int_equal(world.core->sessions_by_id.count, 0);

    /* The same name: the same image will do, if the caller says so. */
    a = create(&good);
    assert_int_equal(a.r, 0);
    assert_true(a.created.is_new);
    REFUSED(req.reuse = false, EEXIST, "name");
    assert_string_equal(a.err.kind, "session-already-exists");
    req = good;
    req.reuse = true;
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_false(a.created.is_new);
    assert_true(uuid_equals(&a.created.id, &core_next_session(world.core, NULL)->id));
    req.image = "other";
    assert_int_equal(create(&req).r, -EEXIST);
    req = good; /* other people may use it */
    req.access_key = ADMIN_KEY;
    assert_int_equal(create(&req).r, 0);
    slots_done(&negative);
    slots_done(&unknown);
    slots_done(&fraction);
    assert_clean();
}

#define SEVERAL 3

static void on_several(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    struct answer *answers = data;

    for (size_t i = 0; i < SEVERAL; i++)
        on_created(&answers[i], r, err, r == 0 ? &created[i] : NULL);
}

/* Several at once: all or none, in one commit. */
static void test_several(void **state)
{
    static const struct session_request good = { .name = "first", .type = SESSION_BATCH,
        .image = "sh", .command = "true", .access_key = USER_KEY, .priority = -1 };
    static const char *const unknown[] = { "nobody" };
    struct session_request two = good, three = good;
    struct uuid taken, user;
    const struct session_request *list[SEVERAL] = { &good, &two, &three };
    struct { const char *name, *group; const char *const *deps; int r; const char *field; } rows[] = {
        { "third", "nobody", NULL, -EINVAL, "[2].group" },
        { "third", NULL, unknown, -ENOENT, "dependencies" },
        { "taken", NULL, NULL, -EEXIST, "[2].name" },
        { "second", NULL, NULL, -EEXIST, "" },
        { "third", NULL, NULL, 0, "" },
    };

    (void)state;
    taken = submit("taken");
    user = core_find_session(world.core, &taken)->user_id;
    two.name = "second";
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct answer answers[SEVERAL] = { { 0 } };
        uint64_t commits = world.core->counts.commits;

        three.name = rows[i].name;
        three.group = rows[i].group;
        three.dependencies = rows[i].deps;
        three.dependency_count = rows[i].deps ? 1 : 0;
        core_create_sessions(world.core, list, SEVERAL, on_several, answers);
        settle();
        assert_true(answers[0].came);
        if (rows[i].r == 0) {
            assert_int_equal(answers[0].r, 0);
            assert_int_equal(world.core->counts.commits, commits + 1);
        } else {
            assert_row(answers[0].r == rows[i].r, "%s: %s", rows[i].name, answers[0].err.text);
            assert_non_null(strstr(answers[0].err.field, rows[i].field));
            assert_null(core_find_session_named(world.core, &user, "first"));
        }
        for (size_t n = 0; rows[i].r == 0 && n < SEVERAL; n++)
            assert_string_equal(core_find_session(world.core, &answers[n].created.id)->name,
                                list[n]->name);
    }
    assert_clean();
}

/* Two requests of one name that are under way at once: one wins. */
static void test_same_name_at_once(void **state)
{
    static const struct session_request req = { .name = "the-only-one", .type = SESSION_BATCH,
        .image = "sh", .command = "true", .access_key = USER_KEY, .priority = -1 };
    struct answer first = { 0 }, second = { 0 };

    (void)state;
    (void)submit("warm-up"); /* so that nothing has to be read */
    core_create_session(world.core, &req, on_created, &first);
    core_create_session(world.core, &req, on_created, &second);
    settle();
    assert_int_equal(first.r, 0);
    assert_int_equal(second.r, -EEXIST);
    assert_true(uuid_equals(&first.created.id, &second.created.id));
    assert_clean();
}

static void test_rename_restart(void **state)
{
    struct answer a = { 0 };
    struct uuid id, other;
    struct sent *order;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    other = submit("taken-name");
    id = submit("first-name");
    order = find_sent(MSG_KERNEL_CREATE, 1);
    core_rename_session(world.core, &id, "taken-name", on_answer, &a);
    settle();
    assert_int_equal(a.r, -EEXIST);
    a = (struct answer){ 0 };
    core_rename_session(world.core, &id, "-bad", on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL);
    a = (struct answer){ 0 };
    core_rename_session(world.core, &id, "second-name", on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_string_equal(core_find_session(world.core, &id)->name, "second-name");
    assert_null(core_find_session_named(world.core, &core_find_session(world.core, &id)->user_id,
                                        "first-name"));

    a = (struct answer){ 0 };
    core_restart_session(world.core, &other, on_answer, &a);
    settle();
    assert_int_equal(a.r, -EINVAL); /* it does not run yet */
    agent_reports(order, MSG_KERNEL_RUNNING);
    a = (struct answer){ 0 };
    core_restart_session(world.core, &id, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&id), SESSION_RESTARTING);
    assert_int_equal(find_sent(MSG_KERNEL_RESTART, 0)->attempt, 2);
    agent_reports_exit(order, 143); /* the end of the old attempt is not the end */
    assert_int_equal(status_of(&id), SESSION_RESTARTING);
    agent_reports(find_sent(MSG_KERNEL_RESTART, 0), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    assert_clean();
    agent_reports_exit(find_sent(MSG_KERNEL_RESTART, 0), 0);
    assert_int_equal(grave_of(&id).result, RESULT_SUCCESS);
    assert_clean();
}

static void test_dependencies(void **state)
{
    static const char *const on_first[] = { "first" };
    struct session_request req = { .name = "second", .type = SESSION_BATCH, .image = "sh",
        .command = "true", .access_key = USER_KEY, .priority = -1, .dependencies = on_first,
        .dependency_count = 1 };
    struct answer a, b;
    struct uuid first;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    first = submit("first");
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    req.name = "third";
    req.dependencies = (const char *[]){ "second" };
    b = create(&req);
    assert_int_equal(b.r, 0);
    restart_core();
    assert_int_equal(agent_greets("i-001", FOUR_CPUS, uuid_random()), 0);
    agent_beats("i-001", NULL, 0);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&first), GONE);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_int_equal(status_of(&b.created.id), SESSION_PENDING);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 1), 1);
    assert_int_equal(grave_of(&b.created.id).status, SESSION_CANCELLED);
    assert_string_equal(grave_of(&b.created.id).reason, "dependency-failed");
    /* One that has ended well is fine, one that has not is refused. */
    req.name = "fourth";
    req.dependencies = on_first;
    assert_int_equal(create(&req).r, 0);
    req.name = "fifth";
    req.dependencies = (const char *[]){ "second" };
    assert_int_equal(create(&req).r, -EINVAL);
    assert_clean();
}

static void assert_refused(const struct session_request *const *list, size_t count, int r,
                           const char *field)
{
    struct answer answers[SEVERAL] = { { 0 } };

    if (count == 1)
        answers[0] = create(list[0]);
    else
        core_create_sessions(world.core, list, count, on_several, answers);
    settle();
    assert_true(answers[0].came);
    assert_row(answers[0].r == r, "%d: %s", answers[0].r, answers[0].err.text);
    assert_string_equal(answers[0].err.field, field);
}

/* A dependency is there before what depends on it, and stays what it is: so
 * nobody can wait for himself, in a ring or alone.
 */
static void test_no_cycles(void **state)
{
    static const char *const on_one[] = { "first" }, *const on_two[] = { "second" },
                      *const on_three[] = { "third" },
                      *const names[] = { "first", "second", "third" };
    struct session_request reqs[SEVERAL];
    const struct session_request *list[SEVERAL] = { &reqs[0], &reqs[1], &reqs[2] };
    char id[UUID_TEXT_MAX];
    const char *const on_id[] = { id };
    struct answer a, again;

    (void)state;
    for (int i = 0; i < SEVERAL; i++)
        reqs[i] = (struct session_request){ .name = names[i], .type = SESSION_BATCH,
            .image = "sh", .command = "true", .access_key = USER_KEY, .priority = -1 };
    reqs[0].dependency_count = 1;
    reqs[0].dependencies = on_one; /* itself */
    assert_refused(list, 1, -ENOENT, "dependencies");
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    reqs[0].dependencies = on_three; /* a later one of the same request */
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    reqs[2].dependency_count = 1; /* a ring of three */
    reqs[0].dependencies = on_two;
    reqs[1].dependencies = on_three;
    reqs[1].dependency_count = 1;
    reqs[2].dependencies = on_one;
    assert_refused(list, SEVERAL, -ENOENT, "[0].dependencies");
    assert_int_equal(world.core->sessions_by_id.count, 0);

    /* To ask once more for one that is there, after itself or its dependent, changes nothing. */
    reqs[0].dependency_count = 0;
    reqs[1].dependencies = on_one;
    a = create(&reqs[0]);
    assert_int_equal(a.r, 0);
    assert_int_equal(create(&reqs[1]).r, 0);
    reqs[0].dependency_count = 1;
    reqs[0].reuse = true;
    for (int i = 0; i < 3; i++) {
        reqs[0].dependencies = i == 0 ? on_one : i == 1 ? on_two : on_id;
        (void)uuid_format(&a.created.id, id);
        again = create(&reqs[0]);
        assert_int_equal(again.r, 0);
        assert_false(again.created.is_new);
        assert_int_equal(core_find_session(world.core, &a.created.id)->dependency_count, 0);
    }
    reqs[0].reuse = false;
    assert_refused(list, 1, -EEXIST, "name");
    /* A name that ended well is that of before, not of the one that takes it now. */
    agent_comes("i-001", FOUR_CPUS);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    reqs[0].dependencies = on_one;
    again = create(&reqs[0]);
    assert_int_equal(again.r, 0);
    assert_false(uuid_equals(&again.created.id, &a.created.id));
    assert_true(uuid_equals(&core_find_session(world.core, &again.created.id)->dependencies[0].id,
                            &a.created.id));
    assert_int_equal(status_of(&again.created.id), SESSION_SCHEDULED);
    assert_clean();
}

/* What it waits for ends while something else about it is being written. */
static void test_busy_dependent(void **state)
{
    struct session_request req = { .name = "second", .type = SESSION_BATCH, .image = "sh",
        .command = "true", .access_key = USER_KEY, .priority = -1,
        .dependencies = (const char *[]){ "first" }, .dependency_count = 1 };
    struct answer a;
    struct live *l;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    (void)submit("first");
    a = create(&req);
    l = live_find(world.core, &a.created.id);
    l->is_busy = true;
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 0), 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    assert_true(l->was_skipped);
    l->is_busy = false;
    propose(world.core, l, EVENT_SESSION_EXPLAINED)->session_change.id = l->s.id;
    propose_flush(world.core);
    settle();
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_clean();
}

static void test_starts_at(void **state)
{
    struct session_request req = { .name = "later", .type = SESSION_BATCH, .image = "sh",
        .command = "true", .access_key = USER_KEY, .priority = -1 };
    struct answer a;

    (void)state;
    agent_comes("i-001", FOUR_CPUS);
    req.starts_usec = world_wall + 10 * USEC_PER_SEC;
    a = create(&req);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    pass(9 * USEC_PER_SEC);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_clean();
}

static void set_pending_timeout(int64_t usec)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    const struct resource_group *g = core_find_resource_group(world.core, "default");
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup(g->name), .is_active = true,
        .scheduler = strdup("fifo"), .selection = strdup("dispersed"),
        .agent_loss_policy = strdup("wait"), .pending_timeout_usec = usec };
    core_save(world.core, batch, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

/* A wall clock that jumps expires nothing; time that passes does. */
static void test_pending_timeout(void **state)
{
    struct uuid id;

    (void)state;
    set_pending_timeout(60 * USEC_PER_SEC);
    id = submit("waits-long");
    world_wall += 3600 * USEC_PER_SEC;
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall -= 7200 * USEC_PER_SEC;
    pass(30 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(30 * USEC_PER_SEC);
    assert_int_equal(grave_of(&id).status, SESSION_CANCELLED);
    assert_string_equal(grave_of(&id).reason, "pending-timeout");
    assert_clean();
}

/* Two days, for one of a second, one of a day and a second, one of two days and a second. */
static void test_pending_timeout_of_three(void **state)
{
    static const char *const names[] = { "oldest", "older", "young" };
    struct uuid ids[3];

    (void)state;
    for (int timeout = 0; timeout < 2; timeout++) {
        set_pending_timeout(timeout ? 2 * 86400 * USEC_PER_SEC : 0);
        for (int i = 0; i < 3; i++) {
            ids[i] = submit(names[i]);
            pass((i < 2 ? 86400 : 1) * USEC_PER_SEC);
        }
        assert_int_equal(status_of(&ids[0]), timeout ? GONE : SESSION_PENDING);
        assert_int_equal(status_of(&ids[1]), SESSION_PENDING);
        assert_int_equal(status_of(&ids[2]), SESSION_PENDING);
        for (int i = timeout; i < 3; i++)
            assert_int_equal(terminate(&ids[i], true).r, 0);
        settle();
    }
    assert_clean();
}

/* The time that a manager was not there counts, a jump of the clock does not. */
static void test_timeout_across_restarts(void **state)
{
    struct uuid id;

    (void)state;
    set_pending_timeout(1000 * USEC_PER_SEC);
    id = submit("waits-long");
    pass(300 * USEC_PER_SEC);
    restart_core();
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall += 400 * 86400 * USEC_PER_SEC;
    restart_core();
    pass(300 * USEC_PER_SEC);
    world_wall -= 800 * 86400 * USEC_PER_SEC;
    restart_core();
    pass(100 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    world_wall += 400 * 86400 * USEC_PER_SEC; /* right again */
    restart_core();
    pass(200 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);

    id = submit("waits-again");
    pass(300 * USEC_PER_SEC);
    world_wall += 690 * USEC_PER_SEC; /* nobody is there */
    world_mono += 690 * USEC_PER_SEC;
    restart_core();
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(20 * USEC_PER_SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING); /* agents are to be heard first */
    pass(45 * USEC_PER_SEC);
    assert_int_equal(grave_of(&id).status, SESSION_CANCELLED);
    assert_clean();
}

static void test_cluster(void **state)
{
    struct session_request req = { .name = "cluster", .type = SESSION_BATCH, .image = "sh",
        .command = "true", .access_key = USER_KEY, .priority = -1, .cluster_size = 3,
        .multi_node = true };
    struct sent *main, *sub;
    struct answer a;

    (void)state;
    agent_comes("i-001", "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    a = create(&req);
    assert_int_equal(a.r, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING); /* all or nothing */
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 0);
    agent_comes("i-002", "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    assert_int_equal(status_of(&a.created.id), SESSION_SCHEDULED);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 3);
    main = find_sent(MSG_KERNEL_CREATE, 0);
    sub = find_sent(MSG_KERNEL_CREATE, 1);
    assert_string_equal(main->hosts, "main1,sub1,sub2");
    agent_reports(main, MSG_KERNEL_RUNNING);
    assert_int_not_equal(status_of(&a.created.id), SESSION_RUNNING);
    agent_reports(sub, MSG_KERNEL_RUNNING);
    agent_reports(find_sent(MSG_KERNEL_CREATE, 2), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING);
    agent_reports_exit(sub, 1);
    assert_int_equal(status_of(&a.created.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(main, 0);
    assert_int_equal(status_of(&a.created.id), SESSION_TERMINATING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 2), 143);
    assert_int_equal(grave_of(&a.created.id).result, RESULT_SUCCESS);
    assert_string_equal(grave_of(&a.created.id).reason, "task-finished");
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(test_batch), TEST(test_reports_out_of_order), TEST(test_terminate),
        TEST(test_queue_order), TEST(test_explain), TEST(test_requests),
        TEST(test_several), TEST(test_same_name_at_once), TEST(test_rename_restart),
        TEST(test_dependencies), TEST(test_no_cycles), TEST(test_busy_dependent),
        TEST(test_attempts), TEST(test_outlook), TEST(test_starts_at), TEST(test_pending_timeout),
        TEST(test_pending_timeout_of_three),
        TEST(test_timeout_across_restarts), TEST(test_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
