/* SPDX-License-Identifier: Apache-2.0 */
/* Batch sessions that are run again: after which ends, when, and what is kept of each attempt. */
#include "world.h"

#include "ended_session.h"

#define SEC USEC_PER_SEC

static struct uuid submit_spec(const struct session_spec *spec)
{
    struct session_request req = { .name = "again",
                                   .type = SESSION_BATCH,
                                   .spec = *spec,
                                   .access_key = USER_KEY,
                                   .priority = -1 };
    struct answer a;

    req.spec.image = IMAGE_OF_PROCESSES;
    req.spec.command = "first";
    a = create(&req);
    if (a.r < 0)
        fail_msg("%s", a.err.text);
    return a.created.id;
}

static const struct rerun_record *record_of(const struct uuid *id)
{
    return core_find_session(world.core, id)->rerun;
}

/* The order of the n-th attempt, 1-based, which there is. */
static struct sent attempt(size_t n)
{
    const struct sent *order = find_sent(MSG_KERNEL_CREATE, n - 1);

    assert_row(order != NULL, "attempt %zu was not ordered", n);
    return *order;
}

static struct sent run_attempt(size_t n)
{
    struct sent order = attempt(n);

    agent_reports(&order, MSG_KERNEL_RUNNING);
    return order;
}

struct runs {
    const struct uuid *id;
    char text[1024];
};

static int read_runs(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct runs *runs = data;
    struct store_query query = { .ids = runs->id, .id_count = 1, .limit = 1, .with_runs = true };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    size_t len = 0;
    int r = store_list_sessions(tx, &query, &page, err);

    for (size_t i = 0; r == 0 && i < page->sessions[0].run_count; i++) {
        const struct run_row *run = &page->sessions[0].runs[i];

        len += (size_t)snprintf(runs->text + len, sizeof(runs->text) - len, "%u:%s:%d:%s:%u%s ",
                                (unsigned)run->number, run->reason,
                                run->has_exit ? run->exit_code : -1, run->agent_id,
                                (unsigned)run->kernel_attempt, run->started_usec ? "" : "!");
    }
    return r;
}

/* "1:task-failed:3:a:1 " each: number, reason, exit code, agent, attempt of the kernel; "!" marks
 * one whose program did not start.
 */
static void check_runs(const struct uuid *id, const char *want)
{
    struct runs runs = { .id = id };
    struct aq_error err;

    assert_int_equal(store_call(world.core->store, read_runs, &runs, &err), 0);
    assert_string_equal(runs.text, want);
}

static void failures_up_to_the_limit(void **state)
{
    struct session_spec spec = { .retry = 2, .resume_command = "again" };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    assert_string_equal(order.command, "first");
    assert_int_equal(order.attempts, 0);
    agent_reports_exit(&order, 3);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_int_equal(core_explain(world.core, &id, &text, &json, NULL), 0);
    assert_non_null(
        strstr(text.data, "Attempt 1 of 3 failed (its program failed on agent 'a'); the next"));
    assert_non_null(strstr(json.data, "\"attempt\":1,\"attempts_max\":3,\"cause\":\"failure\""));
    pass(9 * SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(2 * SEC);
    assert_int_equal(status_of(&id), SESSION_SCHEDULED);
    order = run_attempt(2);
    assert_int_equal(order.attempt, 2);
    assert_int_equal(order.attempts, 1);
    assert_string_equal(order.command, "again");
    agent_reports_end(&order, 137, "out-of-memory");
    pass(19 * SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_clean();
    pass(2 * SEC);
    order = run_attempt(3);
    agent_reports_exit(&order, 4);
    assert_int_equal(status_of(&id), GONE);
    assert_string_equal(ended_session_read(&id).reason, "task-failed");
    assert_int_equal(ended_session_read(&id).exit_code, 4);
    check_runs(&id, "1:task-failed:3:a:1 2:out-of-memory:137:a:2 ");
    assert_clean();
}

static void success_ends_it(void **state)
{
    struct session_spec spec = { .retry = 5, .retry_delay_usec = SEC };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    agent_reports_exit(&order, 1);
    pass(2 * SEC);
    order = run_attempt(2);
    agent_reports_exit(&order, 0);
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(ended_session_read(&id).result, RESULT_SUCCESS);
    assert_clean();
}

/* A manager that starts again neither shortens the delay nor grants another attempt. */
static void a_delay_outlives_the_manager(void **state)
{
    struct session_spec spec = { .retry = 1, .retry_delay_usec = 60 * SEC };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    agent_reports_exit(&order, 1);
    pass(30 * SEC);
    restart_core();
    agent_comes("a", FOUR_CPUS);
    world.sent_count = 0;
    assert_int_equal(record_of(&id)->retries, 1);
    pass(25 * SEC);
    agent_beats("a", NULL, 0);
    pass(4 * SEC);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    assert_int_equal(count_sent(MSG_KERNEL_CREATE), 0);
    agent_beats("a", NULL, 0);
    pass(2 * SEC);
    order = run_attempt(1);
    assert_int_equal(order.attempt, 2);
    assert_int_equal(order.attempts, 1);
    agent_reports_exit(&order, 1);
    assert_int_equal(status_of(&id), GONE);
    check_runs(&id, "1:task-failed:1:a:1 ");
    assert_clean();
}

static void ends_that_somebody_wanted(void **state)
{
    struct session_spec spec = { .retry = 5 };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    (void)terminate(&id, false);
    agent_reports_end(&order, 143, "user-requested");
    assert_int_equal(status_of(&id), GONE);
    assert_string_equal(ended_session_read(&id).reason, "user-requested");
    world.sent_count = 0;
    id = submit_spec(&spec); /* while it waits for its next attempt */
    order = run_attempt(1);
    agent_reports_exit(&order, 1);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    (void)terminate(&id, false);
    assert_int_equal(status_of(&id), GONE);
    assert_int_equal(ended_session_read(&id).status, SESSION_CANCELLED);
    assert_clean();
}

static void only_after_the_ends_that_it_names(void **state)
{
    struct session_spec spec = { .retry = 5,
                                 .retry_on = "exit=7,timeout",
                                 .retry_delay_usec = SEC };
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    agent_reports_end(&order, 143, "task-timeout");
    pass(2 * SEC);
    order = run_attempt(2);
    agent_reports_exit(&order, 7);
    pass(3 * SEC);
    order = run_attempt(3);
    agent_reports_exit(&order, 8);
    assert_int_equal(status_of(&id), GONE);
    check_runs(&id, "1:task-timeout:143:a:1 2:task-failed:7:a:2 ");
    assert_clean();
}

static void starts_that_fail(void **state)
{
    struct session_spec spec = { .retry = 1, .retry_delay_usec = SEC };
    struct msg_kernel_status report;
    struct sent order;
    struct uuid id;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = attempt(1);
    report = kernel_report(&order, MSG_KERNEL_ERROR);
    report.error_kind = "no-command";
    report.error_text = "no such program";
    agent_says("a", report);
    assert_int_equal(status_of(&id), SESSION_PENDING);
    pass(2 * SEC);
    order = attempt(2);
    assert_int_equal(order.attempts, 1);
    report = kernel_report(&order, MSG_KERNEL_ERROR);
    report.error_kind = "no-command";
    agent_says("a", report);
    assert_int_equal(status_of(&id), GONE);
    assert_string_equal(ended_session_read(&id).reason, "failed-to-create");
    check_runs(&id, "1:failed-to-create:-1:a:1! ");
    assert_clean();
}

/* Its resource group waits for lost agents: a session that is run again does not. */
static void a_lost_agent(void **state)
{
    struct session_spec spec = { .retry = 1, .retry_delay_usec = SEC };
    struct sent order;
    struct uuid id;

    (void)state;
    set_loss_policy("wait", 10 * SEC);
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    agent_goes("a");
    agent_comes("b", FOUR_CPUS);
    for (int i = 0; i < 120 && count_sent(MSG_KERNEL_CREATE) < 2; i++) {
        pass(SEC);
        agent_beats("b", NULL, 0);
    }
    order = run_attempt(2);
    assert_string_equal(order.agent_id, "b");
    assert_int_equal(status_of(&id), SESSION_RUNNING);
    check_runs(&id, "1:agent-lost:-1:a:1 ");
    assert_clean();
}

/* The group puts it back into the queue after it has run, and its next start fails. */
static void a_failed_start_after_a_requeue(void **state)
{
    struct session_spec spec = { .image = "sh" };
    struct msg_kernel_status report;
    struct ended_session ended;
    struct sent order;
    struct uuid id;

    (void)state;
    set_loss_policy("requeue", SEC);
    agent_comes("a", FOUR_CPUS);
    id = submit_spec(&spec);
    order = run_attempt(1);
    assert_true(session_started_usec(core_find_session(world.core, &id)) > 0);
    agent_goes("a");
    agent_comes("b", FOUR_CPUS);
    for (int i = 0; i < 120 && count_sent(MSG_KERNEL_CREATE) < 2; i++) {
        pass(SEC);
        agent_beats("b", NULL, 0);
    }
    order = attempt(2);
    assert_int_equal(order.attempts, 1);
    assert_int_equal(session_started_usec(core_find_session(world.core, &id)), 0);
    report = kernel_report(&order, MSG_KERNEL_ERROR);
    report.error_kind = "no-command";
    agent_says("b", report);
    assert_int_equal(status_of(&id), GONE);
    check_runs(&id, "1:agent-lost:-1:a:1 ");
    ended = ended_session_read(&id);
    assert_string_equal(ended.reason, "failed-to-create");
    assert_true(ended.running_usec > 0);
    assert_int_equal(ended.started_usec, 0);
    assert_clean();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)
    const struct CMUnitTest tests[] = {
        TEST(failures_up_to_the_limit),
        TEST(success_ends_it),
        TEST(a_delay_outlives_the_manager),
        TEST(ends_that_somebody_wanted),
        TEST(only_after_the_ends_that_it_names),
        TEST(starts_that_fail),
        TEST(a_lost_agent),
        TEST(a_failed_start_after_a_requeue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
