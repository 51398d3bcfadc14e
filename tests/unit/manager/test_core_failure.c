/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of several kernels of which one fails, or is lost with its agent: at the start, while they
 * run, at the end. Played agents.
 */
#include "world.h"

#include "ended_session.h"

#define TWO_CPUS "{\"cpu\":[\"count\",\"2\"],\"mem\":[\"bytes\",\"8589934592\"]}"

/* Three kernels: two on one agent, one on another. */
struct gang {
    struct uuid id;
    struct sent orders[3]; /* by rank */
};

static struct session_request gang_request(void)
{
    return (struct session_request){ .name = "gang",
                                     .type = SESSION_BATCH,
                                     .spec.image = IMAGE_OF_PROCESSES, /* needs no network */
                                     .spec.command = "true",
                                     .access_key = USER_KEY,
                                     .priority = -1,
                                     .cluster_size = 3,
                                     .multi_node = true };
}

static struct gang gang_begin(const struct session_request *req)
{
    struct gang g;
    struct answer a;

    world.sent_count = 0;
    a = create(req);
    assert_int_equal(a.r, 0);
    g.id = a.created.id;
    assert_int_equal(status_of(&g.id), SESSION_SCHEDULED);
    for (size_t i = 0; i < AQ_COUNT(g.orders); i++)
        g.orders[i] = *find_sent(MSG_KERNEL_CREATE, i);
    return g;
}

static struct gang gang_run(const struct session_request *req)
{
    struct gang g = gang_begin(req);

    for (size_t i = AQ_COUNT(g.orders); i-- > 0;)
        agent_reports(&g.orders[i], MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING);
    return g;
}

static void agents_come(void)
{
    agent_comes("i-001", TWO_CPUS);
    agent_comes("i-002", TWO_CPUS);
}

/* The others are ended; when they are gone the session is, and its data has all of 'want'. */
static struct ended_session gang_finish(const struct gang *g, size_t failed, const char *want)
{
    struct ended_session ended;

    assert_int_equal(status_of(&g->id), SESSION_TERMINATING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 2);
    for (size_t i = 0; i < AQ_COUNT(g->orders); i++)
        if (i != failed)
            agent_reports_end(&g->orders[i], 143, "out-of-memory"); /* it changes nothing */
    assert_int_equal(status_of(&g->id), GONE);
    ended = ended_session_read(&g->id);
    assert_row(strstr(ended.data, want) != NULL, "%s in %s", want, ended.data);
    assert_clean();
    return ended;
}

static void any_failure_ends_it(void **state)
{
    static const struct {
        int code;
        const char *says, *reason, *text;
    } rows[] = {
        { 3, "self-terminated", "task-failed", "its program ended with exit status 3." },
        { 3, "task-failed", "task-failed", "its program ended with exit status 3." },
        { 137, "out-of-memory", "out-of-memory", "its memory was used up." },
        { 139, "task-failed", "task-failed", "killed by signal 11 (Segmentation fault)." },
        { 0, "gpu-misuse", "gpu-misuse", "exit status 0." },
        { 1, "monitor-lost", "monitor-lost", "exit status 1." },
    };
    static const char *const names[] = { "main1", "sub1", "sub2" };
    struct session_request req = gang_request();

    (void)state;
    agents_come();
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (size_t rank = 0; rank < AQ_COUNT(names); rank++) {
            struct gang g = gang_run(&req);
            struct ended_session ended;
            char want[160];

            agent_reports_end(&g.orders[rank], rows[i].code, rows[i].says);
            (void)snprintf(want, sizeof(want),
                           "{\"kernel\":\"%s\",\"agent\":\"%s\",\"exit_code\":%d,\"text\":\"Kernel "
                           "%s on agent '%s' failed: ",
                           names[rank], g.orders[rank].agent_id, rows[i].code, names[rank],
                           g.orders[rank].agent_id);
            ended = gang_finish(&g, rank, want);
            assert_non_null(strstr(ended.data, rows[i].text));
            assert_string_equal(ended.reason, rows[i].reason);
            assert_int_equal(ended.result, RESULT_FAILURE);
            assert_int_equal(ended.status, SESSION_TERMINATED);
        }
}

/* As the session says; interactive sessions go on unless they say otherwise. */
static void the_session_says_what_a_failure_means(void **state)
{
    struct session_request req = gang_request();
    struct gang g;

    (void)state;
    agents_come();
    req.spec.on_failure = "continue";
    g = gang_run(&req);
    agent_reports_exit(&g.orders[1], 1);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(&g.orders[2], 1);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(&g.orders[0], 0);
    assert_int_equal(ended_session_read(&g.id).result, RESULT_SUCCESS);

    req.spec.on_failure = NULL;
    req.type = SESSION_INTERACTIVE;
    g = gang_run(&req);
    agent_reports_exit(&g.orders[1], 1);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(&g.orders[0], 0);
    agent_reports_exit(&g.orders[2], 143);
    assert_int_equal(ended_session_read(&g.id).result, RESULT_UNDEFINED);

    req.spec.on_failure = "end";
    g = gang_run(&req);
    agent_reports_exit(&g.orders[1], 1);
    assert_int_equal(gang_finish(&g, 1, "{\"kernel\":\"sub1\"").result, RESULT_FAILURE);

    req.spec.on_failure = "ignore";
    assert_int_equal(create(&req).r, -EINVAL);
    req.spec.on_failure = NULL;
    req.spec.on_node_loss = "wait";
    assert_int_equal(create(&req).r, -EINVAL);
}

/* An exit status of 0 is no failure, and what comes after main1's end changes nothing. */
static void a_sub_kernel_may_end_before(void **state)
{
    struct session_request req = gang_request();
    struct gang g;

    (void)state;
    agents_come();
    g = gang_run(&req);
    agent_reports_exit(&g.orders[2], 0);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING_DEGRADED);
    agent_reports_exit(&g.orders[0], 0);
    assert_int_equal(status_of(&g.id), SESSION_TERMINATING);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    agent_reports_exit(&g.orders[1], 143);
    assert_int_equal(ended_session_read(&g.id).result, RESULT_SUCCESS);
    assert_string_equal(ended_session_read(&g.id).reason, "task-finished");
    assert_string_equal(ended_session_read(&g.id).data, "");
    assert_clean();
}

static void a_container_disappears(void **state)
{
    struct session_request req = gang_request();
    struct gang g;

    (void)state;
    agents_come();
    g = gang_run(&req);
    for (int i = 0; i < 20; i++) {
        struct msg_kernel_status there[2];
        size_t count[2] = { 0, 0 };

        pass(USEC_PER_SEC);
        for (size_t agent = 0; agent < 2; agent++) {
            const char *id = agent ? "i-002" : "i-001";

            for (size_t k = 0; k < 2; k++) /* sub2 is not there */
                if (strcmp(g.orders[k].agent_id, id) == 0)
                    there[count[agent]++] = kernel_report(&g.orders[k], MSG_KERNEL_RUNNING);
            agent_beats(id, there, count[agent]);
        }
    }
    assert_string_equal(gang_finish(&g, 2, "its container has disappeared").reason,
                        "container-not-found");
}

/* ---- the start ---- */

/* Programs that connect to a kernel that has failed would wait in vain: main1 is not started. */
static void a_failure_before_all_run(void **state)
{
    struct session_request req = gang_request();
    struct ended_session ended;
    struct gang g;

    (void)state;
    agents_come();
    g = gang_begin(&req);
    agent_reports(&g.orders[2], MSG_KERNEL_RUNNING);
    agent_reports_exit(&g.orders[2], 3);
    ended = gang_finish(&g, 2, "{\"kernel\":\"sub2\"");
    assert_string_equal(ended.reason, "task-failed");
    assert_int_equal(ended.status, SESSION_TERMINATED);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 0);
}

/* Whatever on_failure says: its program never ran. */
static void a_bootstrap_script_fails(void **state)
{
    struct session_request req = gang_request();

    (void)state;
    agents_come();
    req.spec.on_failure = "continue";
    for (size_t rank = 0; rank < 3; rank++) {
        struct gang g = gang_begin(&req);
        struct msg_kernel_status end = kernel_report(&g.orders[rank], MSG_KERNEL_TERMINATED);
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        static const char *const names[] = { "main1", "sub1", "sub2" };
        char want[120];

        end.has_exit = true;
        end.exit_code = 3;
        end.reason = end.error_kind = "bootstrap-failed";
        end.error_text = "its bootstrap script ended with exit status 3";
        agent_says(g.orders[rank].agent_id, end);
        (void)snprintf(want, sizeof(want), "{\"kernel\":\"%s\"", names[rank]);
        core_status_text(gang_finish(&g, rank, want).data, &text);
        (void)snprintf(want, sizeof(want),
                       "In %s on agent '%s' its bootstrap script ended with exit status 3",
                       names[rank], g.orders[rank].agent_id);
        assert_string_equal(text.data, want);
    }
}

static void refuse(const struct sent *order, const char *kind)
{
    struct msg_kernel_status report = kernel_report(order, MSG_KERNEL_ERROR);

    report.error_kind = kind;
    report.error_text = "port 8080 is in use";
    agent_says(order->agent_id, report);
}

static void check_why(const char *status_data, const struct sent *order)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char want[120];

    core_status_text(status_data, &text);
    (void)snprintf(want, sizeof(want), "Agent '%s' could not start sub1: port 8080 is in use",
                   order->agent_id);
    assert_row(strstr(text.data, want) != NULL, "%s in %s", want, text.data);
}

/* The error names the kernel while the session is tried again, and at its end. */
static void a_kernel_cannot_be_started(void **state)
{
    struct session_request req = gang_request();
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;
    struct gang g;

    (void)state;
    agents_come();
    g = gang_begin(&req);
    refuse(&g.orders[1], "busy");
    agent_reports_exit(&g.orders[0], 137);
    agent_reports_exit(&g.orders[2], 137);
    assert_int_equal(status_of(&g.id), SESSION_SCHEDULED);
    check_why(core_find_session(world.core, &g.id)->status_data, &g.orders[1]);
    for (size_t i = 0; i < 3; i++)
        g.orders[i] = *find_sent(MSG_KERNEL_CREATE, 3 + i);
    refuse(&g.orders[1], "busy");
    agent_reports_exit(&g.orders[0], 137);
    agent_reports_exit(&g.orders[2], 137);
    assert_int_equal(status_of(&g.id), SESSION_PENDING);
    assert_int_equal(core_explain(world.core, &g.id, NULL, &json, NULL), 0);
    assert_non_null(strstr(json.data, "\"kernel\":\"sub1\""));
    pass(2 * USEC_PER_SEC);
    assert_int_equal(status_of(&g.id), SESSION_SCHEDULED);
    for (size_t i = 6; i < 9; i++)
        agent_reports(find_sent(MSG_KERNEL_CREATE, i), MSG_KERNEL_RUNNING);
    assert_int_equal(status_of(&g.id), SESSION_RUNNING);
    assert_string_equal(core_find_session(world.core, &g.id)->status_data, "{}");
    assert_clean();
}

static void a_kernel_can_never_be_started(void **state)
{
    struct session_request req = gang_request();
    struct ended_session ended;
    struct gang g;

    (void)state;
    agents_come();
    g = gang_begin(&req);
    refuse(&g.orders[1], "image-not-found");
    ended = gang_finish(&g, 1, "{\"kernel\":\"sub1\"");
    check_why(ended.data, &g.orders[1]);
    assert_string_equal(ended.reason, "failed-to-create");
    assert_int_equal(ended.status, SESSION_ERROR);
}

static void a_kernel_is_never_ready(void **state)
{
    struct session_request req = gang_request();
    struct gang g;
    struct msg_kernel_status ready;

    (void)state;
    use_options("fifo", "{\"handler_options\":{\"start-sessions.timeout\":5}}");
    agents_come();
    g = gang_begin(&req);
    for (size_t i = 0; i < 2; i++) {
        ready = kernel_report(&g.orders[i], MSG_KERNEL_CREATING);
        ready.is_ready = true;
        agent_says(g.orders[i].agent_id, ready);
    }
    pass(7 * USEC_PER_SEC);
    assert_int_equal(count_sent(MSG_KERNEL_RELEASE), 0); /* no program ran alone */
    assert_int_equal(status_of(&g.id), SESSION_RESCHEDULING);
    assert_non_null(strstr(core_find_session(world.core, &g.id)->status_data,
                           "{\"kernel\":\"sub2\",\"agent\":"));
}

/* ---- the end ---- */

static void kernels_die_one_by_one(void **state)
{
    struct session_request req = gang_request();
    struct gang g;

    (void)state;
    agents_come();
    g = gang_run(&req);
    agent_reports_exit(&g.orders[0], 0);
    assert_int_equal(status_of(&g.id), SESSION_TERMINATING);
    assert_true(find_sent(MSG_KERNEL_DESTROY, 0)->grace_usec > 0);
    agent_reports_end(&g.orders[2], 137, "out-of-memory");
    assert_int_equal(status_of(&g.id), SESSION_TERMINATING);
    agent_reports(&g.orders[1], MSG_KERNEL_ERROR);
    assert_int_equal(status_of(&g.id), GONE);
    assert_int_equal(ended_session_read(&g.id).result, RESULT_SUCCESS);
    assert_clean();
}

/* ---- a lost agent ---- */

/* The agent that has one of the kernels falls silent until it is lost; the others report theirs,
 * unless they are told to end them. The lost one's rank.
 */
static size_t lose_agent(const struct gang *g)
{
    size_t lost = strcmp(g->orders[0].agent_id, g->orders[1].agent_id) == 0 ? 2 : 0;
    static const char *const agents[] = { "i-001", "i-002", "i-003" };

    if (lost == 0 && strcmp(g->orders[0].agent_id, g->orders[2].agent_id) == 0)
        lost = 1;
    agent_goes(g->orders[lost].agent_id);
    for (int i = 0; i < 55; i++) { /* 40 s, then until the lease is over */
        for (size_t a = 0; a < AQ_COUNT(agents); a++) {
            struct msg_kernel_status kept[2];
            size_t count = 0;

            if (!agent_entry_find(world.core, agents[a])
                || strcmp(agents[a], g->orders[lost].agent_id) == 0)
                continue;
            for (size_t k = 0; k < 3; k++)
                if (strcmp(g->orders[k].agent_id, agents[a]) == 0 && status_of(&g->id) != GONE)
                    kept[count++] = kernel_report(&g->orders[k], MSG_KERNEL_RUNNING);
            agent_beats(agents[a], kept, count);
        }
        pass(USEC_PER_SEC);
    }
    return lost;
}

static void a_lost_agent_ends_it(void **state)
{
    struct session_request req = gang_request();
    static const char *const names[] = { "main1", "sub1", "sub2" };
    struct ended_session ended;
    struct gang g;
    size_t lost;
    char want[160];

    (void)state;
    use_options("fifo", "{}"); /* whose policy is to wait */
    agents_come();
    req.spec.on_node_loss = "end";
    g = gang_run(&req);
    lost = lose_agent(&g);
    for (size_t i = 0; i < 3; i++)
        if (i != lost && status_of(&g.id) != GONE)
            agent_reports_exit(&g.orders[i], 143);
    assert_int_equal(status_of(&g.id), GONE);
    ended = ended_session_read(&g.id);
    assert_string_equal(ended.reason, "agent-lost");
    (void)snprintf(want, sizeof(want),
                   "{\"kernel\":\"%s\",\"agent\":\"%s\",\"kernels\":[\"%s\"],\"text\":\"Agent '%s' "
                   "was lost with %s of this session.\"}",
                   names[lost], g.orders[lost].agent_id, names[lost], g.orders[lost].agent_id,
                   names[lost]);
    assert_string_equal(ended.data, want);
}

/* The others run on while the lost kernel starts elsewhere, unless it is main1: then all start again. */
static void a_lost_agent_restarts_its_kernel(void **state)
{
    struct session_request req = gang_request();
    struct gang g;
    size_t lost;

    (void)state;
    use_options("fifo", "{}"); /* whose policy is to wait */
    agents_come();
    req.spec.on_node_loss = "restart-kernel";
    g = gang_run(&req);
    agent_comes("i-003", TWO_CPUS);
    lost = lose_agent(&g);
    if (lost == 0) {
        assert_int_equal(status_of(&g.id), SESSION_RESCHEDULING);
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 2);
    } else {
        assert_int_equal(status_of(&g.id), SESSION_RUNNING);
        assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 0);
        assert_int_equal(count_sent(MSG_KERNEL_CREATE), 4);
        assert_string_equal(find_sent(MSG_KERNEL_CREATE, 3)->agent_id, "i-003");
        assert_int_equal(find_sent(MSG_KERNEL_CREATE, 3)->attempt, 2);
    }
    assert_clean();
}

/* Never two halves: all kernels end before the next attempt, and the lost agent's when it is back. */
static void a_lost_agent_restarts_all(void **state)
{
    struct session_request req = gang_request();
    struct msg_kernel_status old;
    struct gang g;
    const char *returning;
    size_t lost;

    (void)state;
    use_options("fifo", "{}");
    agents_come();
    agent_comes("i-003", TWO_CPUS);
    req.spec.on_node_loss = "restart-all";
    g = gang_run(&req);
    lost = lose_agent(&g);
    returning = g.orders[lost].agent_id;
    old = kernel_report(&g.orders[lost], MSG_KERNEL_RUNNING);
    for (size_t i = 0; i < 3; i++)
        if (i != lost)
            agent_reports_exit(&g.orders[i], 137);
    assert_int_equal(status_of(&g.id), SESSION_SCHEDULED);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 6);
    for (size_t i = 3; i < 6; i++) {
        struct sent again = *find_sent(MSG_KERNEL_CREATE, i);

        assert_int_equal(again.attempt, 2);
        assert_string_not_equal(again.agent_id, returning);
        agent_reports(&again, MSG_KERNEL_RUNNING);
    }
    assert_int_equal(status_of(&g.id), SESSION_RUNNING);
    world.sent_count = 0;
    assert_int_equal(agent_greets(returning, TWO_CPUS, uuid_random()), 0);
    agent_beats(returning, &old, 1);
    assert_int_equal(count_sent(MSG_KERNEL_DESTROY), 1);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->attempt, 1);
    assert_int_equal(find_sent(MSG_KERNEL_DESTROY, 0)->grace_usec, 0);
    assert_string_equal(find_sent(MSG_KERNEL_DESTROY, 0)->agent_id, returning);
    old.state = MSG_KERNEL_TERMINATED;
    agent_says(returning, old); /* its end is not the session's */
    assert_int_equal(status_of(&g.id), SESSION_RUNNING);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    static const struct CMUnitTest tests[] = {
        TEST(any_failure_ends_it),
        TEST(the_session_says_what_a_failure_means),
        TEST(a_sub_kernel_may_end_before),
        TEST(a_container_disappears),
        TEST(a_failure_before_all_run),
        TEST(a_bootstrap_script_fails),
        TEST(a_kernel_cannot_be_started),
        TEST(a_kernel_is_never_ready),
        TEST(a_kernel_can_never_be_started),
        TEST(kernels_die_one_by_one),
        TEST(a_lost_agent_ends_it),
        TEST(a_lost_agent_restarts_all),
        TEST(a_lost_agent_restarts_its_kernel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
