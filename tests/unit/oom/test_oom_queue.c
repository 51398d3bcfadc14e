/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while sessions wait: for those before them, for agents that they name,
 * after a start that an agent refused. What is said of them is all that is known, or nothing.
 */
#include "oom_world.h"

/* What still lives ends, on agents that were lost and come back with nothing. */
static void end_all(const struct answer *answers, size_t count)
{
    oom_end();
    pass(60 * USEC_PER_SEC);
    oom_comes("i-001", FOUR_CPUS);
    oom_comes("i-002", FOUR_CPUS);
    pass(40 * USEC_PER_SEC);
    for (size_t i = 0; i < count; i++)
        if (answers[i].r == 0)
            oom_terminate(&answers[i].created.id, true);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_world_pass();
}

/* ---- a start that was refused ---- */

static void refuse_start(void)
{
    const struct sent *order = find_sent(MSG_KERNEL_CREATE, 0);
    struct msg_kernel_status report;

    if (!order || !oom_is_connected(order->agent_id))
        return;
    report = kernel_report(order, MSG_KERNEL_ERROR);
    report.error_kind = "insufficient-resource";
    report.error_text = "no core is free";
    agent_says(order->agent_id, report);
}

/* Both ways of telling it have the agent's words, if it has said any. */
static void tell_why(const struct uuid *id)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, json = STRBUF_INIT,
                                           past = STRBUF_INIT;
    const struct session *s = core_find_session(world.core, id);
    struct aq_error err = { 0 };
    int r;

    if (!s || s->status != SESSION_PENDING)
        return;
    r = core_explain(world.core, id, &text, &json, &err);
    oom_check("explain", r, &err);
    if (r == 0)
        assert_true(strbuf_ok(&text) && strbuf_ok(&json));
    if (r == 0 && s->status_data && strstr(s->status_data, "no core is free")) {
        assert_row(strstr(text.data, "no core is free"), "%s", text.data);
        assert_row(strstr(json.data, "no core is free"), "%s", json.data);
    }
    core_status_text(s->status_data, &past);
    if (strbuf_ok(&past) && s->status_data && strstr(s->status_data, "no core is free"))
        assert_row(strstr(past.data, "no core is free"), "%s", past.data);
}

static void run_refused(const char *dir)
{
    struct session_request req = oom_job("refused");
    struct answer a, said = { 0 };

    oom_world_open(dir);
    oom_comes("i-001", FOUR_CPUS);
    oom_begin();
    a = oom_create(&req);
    drain_agent("i-001", true, "looked after", &said);
    settle();
    oom_says("drain", &said);
    refuse_start();
    if (a.r == 0) {
        tell_why(&a.created.id);
        pass(20 * USEC_PER_SEC); /* what is said of a try that is due is another sentence */
        tell_why(&a.created.id);
    }
    end_all(&a, 1);
}

/* ---- those before it ---- */

static void end_early(const struct uuid *id, struct answer *ret)
{
    core_terminate_session(world.core, id, true, NULL, NULL, on_answer, ret);
}

/* 'last' comes after one that has ended, 'late' for one that ends while it is stored. */
static void run_after(const char *dir)
{
    struct session_request gone = oom_job("gone"), ending = oom_job("ending"),
                           last = oom_job("last"), late = oom_job("late");
    struct answer a[4] = { { 0 } }, said = { 0 };

    oom_world_open(dir);
    oom_comes("i-001", FOUR_CPUS);
    a[0] = oom_create(&gone);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_set_slot(&ending.resources, "cpu", 100 * AMOUNT_ONE);
    ending.spec.waits_for_capacity = true;
    a[1] = oom_create(&ending);
    slots_done(&ending.resources);
    last.dependencies = (const char *const[]){ "gone" };
    late.dependencies = (const char *const[]){ "ending", "gone" };
    last.dependency_count = 1;
    late.dependency_count = 2; /* the store is asked for one while the other ends */
    oom_begin();
    a[2] = oom_create(&last);
    core_create_sessions(world.core, &(const struct session_request *){ &late }, 1, NULL, NULL,
                         on_created, &a[3]);
    end_early(&a[1].created.id, &said);
    settle();
    oom_says_late("terminate", &said);
    if (a[3].r != -EINVAL) /* which it is if that has ended already */
        oom_says("create", &a[3]);
    oom_end();
    pass(5 * USEC_PER_SEC);
    if (said.r == 0)
        assert_row(a[3].r < 0 || status_of(&a[3].created.id) == GONE, "'late' is still there");
    end_all(a, AQ_COUNT(a));
}

/* ---- agents that it names; whose sessions are preempted ---- */

static void run_named(const char *dir)
{
    struct session_request low = oom_job("lower"), high = oom_job("high");
    struct answer a[2];

    oom_world_open(dir);
    use_options("fifo", "{\"preemption\":{\"enabled\":true,\"victim_scope\":\"project\"}}");
    oom_set_slot(&low.resources, "cpu", 4 * AMOUNT_ONE);
    oom_set_slot(&high.resources, "cpu", 3 * AMOUNT_ONE);
    low.spec.agents = high.spec.agents = (struct str_list){ (const char *[]){ "i-001" }, 1 };
    low.spec.is_preemptible = true;
    high.spec.job_priority = 9;
    oom_comes("i-001", FOUR_CPUS);
    oom_comes("i-002", FOUR_CPUS);
    oom_begin();
    a[0] = oom_create(&low);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    a[1] = oom_create(&high);
    pass(2 * USEC_PER_SEC);
    if (a[1].r == 0)
        tell_why(&a[1].created.id);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_end();
    slots_done(&low.resources);
    slots_done(&high.resources);
    end_all(a, AQ_COUNT(a));
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "a start that an agent refused", oom_world_prepare, run_refused, oom_world_recover },
        { "sessions that wait for others", oom_world_prepare, run_after, oom_world_recover },
        { "sessions that name agents", oom_world_prepare, run_named, oom_world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
