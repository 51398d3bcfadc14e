/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short anywhere in the manager's core: who asked hears so, or the process ends
 * and comes back with what the store says.
 */
#include "oom_world.h"

static void rename_to(const struct uuid *id, const char *name)
{
    struct answer a = { 0 };
    const struct session *s;

    if (!core_find_session(world.core, id))
        return;
    core_rename_session(world.core, id, name, NULL, on_answer, &a);
    settle();
    oom_says("rename", &a);
    if ((s = core_find_session(world.core, id)))
        assert_int_equal(strcmp(s->name, name) == 0, a.r == 0);
}

static void set_priority(const struct uuid *id, int priority)
{
    struct answer a = { 0 };
    const struct session *s = core_find_session(world.core, id);

    if (!s || s->status != SESSION_PENDING)
        return;
    core_set_priority(world.core, id, priority, NULL, on_answer, &a);
    settle();
    oom_says("priority", &a);
    if ((s = core_find_session(world.core, id)))
        assert_int_equal(s->priority == priority, a.r == 0);
}

/* ---- a session from its request to its end ---- */

static void run_life(const char *dir)
{
    struct session_request req = { .name = "first",
                                   .type = SESSION_INTERACTIVE,
                                   .spec.image = "sh",
                                   .spec.architecture = "x86_64",
                                   .spec.command = "true",
                                   .spec.bootstrap = "echo",
                                   .spec.tag = "t",
                                   .access_key = USER_KEY,
                                   .spec.environ = { &(struct text_pair){ "A", "b" }, 1 },
                                   .spec.ports = { (int64_t[]){ 8080 }, 1 },
                                   .priority = -1,
                                   .spec.session_group = "apart",
                                   .spec.is_preemptible = true };
    struct session_request after = { .name = "after",
                                     .type = SESSION_BATCH,
                                     .spec.image = "sh",
                                     .spec.command = "true",
                                     .access_key = USER_KEY,
                                     .priority = -1,
                                     .dependencies = (const char *const[]){ "first" },
                                     .dependency_count = 1 };
    struct session_request big = { .name = "large",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .spec.waits_for_capacity = true };
    struct answer first, second, third, a = { 0 };

    oom_world_open(dir);
    oom_set_slot(&big.resources, "cpu", 100 * AMOUNT_ONE);
    oom_begin();
    oom_comes("i-001", GPU_NODE);
    first = oom_create(&req);
    if (find_sent(MSG_KERNEL_CREATE, 0))
        assert_true(find_sent(MSG_KERNEL_CREATE, 0)->has_ssh_seed);
    if (first.r == 0)
        second = oom_create(&after);
    else
        second = first;
    third = oom_create(&big);
    pass(2 * USEC_PER_SEC);
    oom_all_report(MSG_KERNEL_CREATING, NULL, NULL);
    oom_all_report(MSG_KERNEL_RUNNING, "{\"cpu\":{\"0\":\"1\"},\"mem\":{\"root\":\"1073741824\"}}",
                   "[{\"name\":\"web\",\"protocol\":\"http\",\"container_ports\":[8080],"
                   "\"host_ports\":[30000]}]");
    if (first.r == 0) {
        rename_to(&first.created.id, "renamed");
        if (status_of(&first.created.id) == SESSION_RUNNING) {
            core_restart_session(world.core, &first.created.id, NULL, on_answer, &a);
            oom_says_late("restart", &a);
            oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
        }
    }
    if (third.r == 0) {
        set_priority(&third.created.id, 30);
        oom_explain(&third.created.id);
        oom_terminate(&third.created.id, false);
    }
    if (first.r == 0)
        oom_terminate(&first.created.id, false);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(20 * USEC_PER_SEC);
    if (second.r == 0)
        oom_terminate(&second.created.id, true);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_end();
    slots_done(&big.resources);
    oom_world_pass();
}

/* ---- the manager starts with all that there is ---- */

static void prepare_start(const char *dir)
{
    struct session_request req = { .name = "runs",
                                   .type = SESSION_INTERACTIVE,
                                   .spec.image = "sh",
                                   .access_key = USER_KEY,
                                   .spec.environ = { &(struct text_pair){ "A", "b" }, 1 },
                                   .priority = -1,
                                   .spec.session_group = "apart" };

    oom_world_open(dir);
    oom_comes("i-001", GPU_NODE);
    (void)oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, "{\"cpu\":{\"0\":\"1\"},\"mem\":{\"root\":\"1073741824\"}}",
                   NULL);
    req.name = "waits";
    req.dependencies = (const char *const[]){ "runs" };
    req.dependency_count = 1;
    (void)oom_create(&req);
    assert_clean();
    oom_world_close();
}

/* ---- sessions that are preempted, agents that are lost, drained and removed ---- */

static void run_turns(const char *dir)
{
    struct session_request low = { .name = "lower",
                                   .type = SESSION_BATCH,
                                   .spec.image = "sh",
                                   .spec.command = "true",
                                   .access_key = USER_KEY,
                                   .priority = -1,
                                   .spec.is_preemptible = true };
    struct session_request high = { .name = "high",
                                    .type = SESSION_BATCH,
                                    .spec.image = "sh",
                                    .spec.command = "true",
                                    .access_key = USER_KEY,
                                    .priority = -1,
                                    .spec.job_priority = 9 };
    struct answer a, b, said = { 0 };
    bool is_known;

    oom_world_open(dir);
    use_options("fifo", "{\"preemption\":{\"enabled\":true}}");
    oom_set_slot(&low.resources, "cpu", 4 * AMOUNT_ONE);
    oom_set_slot(&high.resources, "cpu", 3 * AMOUNT_ONE);
    oom_begin();
    oom_comes("i-001", FOUR_CPUS);
    a = oom_create(&low);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    b = oom_create(&high);
    pass(2 * USEC_PER_SEC);
    if (b.r == 0)
        oom_explain(&b.created.id);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(2 * USEC_PER_SEC);
    oom_comes("i-002", FOUR_CPUS);
    pass(2 * USEC_PER_SEC);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    is_known = agent_entry_find(world.core, "i-002")
               && agent_entry_find(world.core, "i-002")->is_known;
    drain_agent("i-002", true, "looked after", &said);
    settle();
    assert_true(said.came);
    if (is_known)
        oom_check("drain", said.r, &said.err);
    if (oom_is_connected("i-001"))
        agent_goes("i-001");
    pass(60 * USEC_PER_SEC);
    oom_comes("i-001", FOUR_CPUS); /* with nothing of what it had */
    pass(40 * USEC_PER_SEC);
    if (a.r == 0)
        oom_terminate(&a.created.id, true);
    if (b.r == 0)
        oom_terminate(&b.created.id, true);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    oom_end();
    slots_done(&low.resources);
    slots_done(&high.resources);
    oom_world_pass();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "the life of a session", oom_world_prepare, run_life, oom_world_recover },
        { "the start of the manager", prepare_start, oom_world_start, oom_world_recover },
        { "preemption, lost and drained agents", oom_world_prepare, run_turns, oom_world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
