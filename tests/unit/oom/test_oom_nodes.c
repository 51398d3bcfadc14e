/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while agents come, change what they offer, are drained, lost and removed:
 * what an administrator asked for is answered, and no session is forgotten.
 */
#include "oom_world.h"

#include "manager/core/state/agent_devices.h"

#define ONE_DEVICE "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\"}]"
#define BROKEN_SLOTS                                                 \
    "{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"8589934592\"]," \
    "\"npu.device\":[\"count\",\"1\"]}"
#define BROKEN_DEVICES                                                                 \
    "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\",\"model\":\"A100\"," \
    "\"status\":\"unhealthy\"},"                                                       \
    "{\"id\":\"NPU-1\",\"slot\":\"npu.device\",\"amount\":\"1\",\"model\":\"N1\"}]"

static struct session_request job(const char *name)
{
    struct session_request req = oom_job(name);

    req.spec.image = "python:3";
    return req;
}

/* What agents say goes on, whether they are connected or not: the link decides that. */
static void agent_sends(const char *id, struct message msg)
{
    if (!oom_is_connected(id))
        return;
    inventory_link_ops.on_message(world.core, id, &msg);
    settle();
}

/* The agent has all kernels that it was told to make, and says so in a heartbeat. */
static void inventory_beats(const char *id, enum msg_kernel_state state, const char *slots,
                            const char *devices)
{
    struct msg_kernel_status kernels[AQ_COUNT(world.sent)];
    size_t count = 0;

    for (size_t i = 0; i < world.sent_count; i++)
        if (world.sent[i].type == MSG_KERNEL_CREATE && strcmp(world.sent[i].agent_id, id) == 0)
            kernels[count++] = (struct msg_kernel_status){ .kernel_id = world.sent[i].kernel_id,
                                                           .session_id = world.sent[i].session_id,
                                                           .attempt = world.sent[i].attempt,
                                                           .state = state };
    agent_sends(id, (struct message){ .type = MSG_HEARTBEAT,
                                      .heartbeat = { .kernels = kernels,
                                                     .kernel_count = count,
                                                     .slots = slots,
                                                     .devices = devices,
                                                     .plugins = "[]" } });
}

/* ---- what an agent offers ---- */

static void drain(const char *id, bool on)
{
    struct answer a = { 0 };
    bool is_known = core_find_agent(world.core, id) != NULL;

    drain_agent(id, on, on ? "new disk" : NULL, &a);
    settle();
    if (is_known || a.r != -ENOENT)
        oom_says("drain", &a);
    if (a.r == 0)
        assert_int_equal(core_find_agent(world.core, id)->schedulable, !on);
}

static void remove_agent(const char *id)
{
    struct answer a = { 0 };
    bool is_known = core_find_agent(world.core, id) != NULL;

    core_remove_agent(world.core, id, NULL, on_answer, &a);
    settle();
    if (a.r != -EBUSY && (is_known || a.r != -ENOENT))
        oom_says("remove", &a);
    if (a.r == 0)
        assert_null(core_find_agent(world.core, id));
}

/* It is right as soon as memory is there again, and stays so. */
static void offer_is(const char *id, const char *slot, int64_t amount)
{
    oom_end();
    pass(2 * USEC_PER_SEC);
    oom_comes(id, GPU_NODE);
    inventory_beats(id, MSG_KERNEL_RUNNING, GPU_NODE, GPU_DEVICES);
    assert_int_equal(slots_get(&core_find_agent(world.core, id)->available, slot), amount);
    assert_string_equal(core_find_agent(world.core, id)->devices, GPU_DEVICES);
}

static void run_offer(const char *dir)
{
    struct session_request req = job("works");
    struct answer a;

    oom_world_open(dir);
    oom_set_slot(&req.resources, "cuda.shares", AMOUNT_ONE / 2);
    oom_begin();
    oom_comes("i-001", FOUR_CPUS);
    inventory_beats("i-001", MSG_KERNEL_RUNNING, GPU_NODE, GPU_DEVICES);
    inventory_beats("i-001", MSG_KERNEL_RUNNING, GPU_NODE, GPU_DEVICES);
    a = oom_create(&req);
    oom_all_report(MSG_KERNEL_RUNNING, "{\"cuda.shares\":{\"GPU-2\":\"0.50\"}}", NULL);
    if (a.r == 0)
        oom_explain(&a.created.id);
    drain("i-001", true);
    drain("i-001", false);
    if (a.r == 0)
        oom_terminate(&a.created.id, false);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    inventory_beats("i-001", MSG_KERNEL_TERMINATED, FOUR_CPUS, ONE_DEVICE);
    offer_is("i-001", "cuda.shares", 2 * AMOUNT_ONE);
    slots_done(&req.resources);
    oom_world_pass();
}

/* ---- images ---- */

static void on_image(void *data, const struct core_image_status *status)
{
    int *ends = data;

    *ends += status->is_final;
}

static struct core_image_job *ask_image(const char *action, int *ends)
{
    struct msg_image_command command = { .action = action, .image = "python:3" };
    struct core_image_job *made = NULL;
    struct aq_error err = { 0 };
    int r;

    if (!oom_is_connected("i-001"))
        return NULL;
    r = core_command_image(world.core, "i-001", &command, on_image, ends, &made, &err);
    oom_check("image", r, &err);
    return r == 0 ? made : NULL;
}

static void run_images(const char *dir)
{
    struct session_request req = job("lean");
    int pulled = 0, removed = 0;
    bool is_known;
    struct core_image_job *pull, *removal;
    struct answer a;

    oom_world_open(dir);
    oom_begin();
    oom_comes("i-001", FOUR_CPUS);
    agent_sends("i-001",
                (struct message){ .type = MSG_IMAGE_LIST,
                                  .image_list = { "[{\"digest\":\"sha256:1\",\"names\":"
                                                  "[\"docker.io/library/python:3\"],\"labels\":"
                                                  "{\"ai.backend.resource.min.cpu\":\"2\","
                                                  "\"ai.backend.resource.max.cpu\":\"3\"}}]" } });
    is_known = oom_is_connected("i-001")
               && strcmp(core_get_agent_images(world.core, "i-001"), "[]") != 0;
    pull = ask_image("pull", &pulled);
    removal = ask_image("remove", &removed);
    core_cancel_image(world.core, removal);
    a = oom_create(&req);
    if (is_known && !oom_has_failed())
        assert_int_equal(
            slots_get(&core_find_session(world.core, &a.created.id)->kernels[0].requested, "cpu"),
            2 * AMOUNT_ONE);
    if (a.r == 0 && status_of(&a.created.id) != GONE) {
        struct msg_image_status status = { .session_id = a.created.id,
                                           .image = "python:3",
                                           .state = "fetching" };

        agent_sends("i-001", (struct message){ .type = MSG_IMAGE_STATUS, .image_status = status });
    }
    if (oom_is_connected("i-001"))
        agent_goes("i-001");
    assert_int_equal(pulled, pull != NULL);
    assert_int_equal(removed, 0);
    if (a.r == 0)
        oom_terminate(&a.created.id, true);
    oom_world_pass();
}

/* ---- loss ---- */

static void set_loss_policy(const char *policy)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup("default"),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .selection = strdup("concentrated"),
                                                 .agent_loss_policy = strdup(policy) };
    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

/* Time passes in which only this agent is heard. */
static void only_beats(const char *id, int seconds)
{
    for (int i = 0; i < seconds; i += 5) {
        inventory_beats(id, MSG_KERNEL_RUNNING, NULL, NULL);
        pass(5 * USEC_PER_SEC);
    }
}

static void start_refused(void)
{
    for (size_t i = 0; i < world.sent_count; i++) {
        struct sent order = world.sent[i];
        struct msg_kernel_status report;

        if (order.type != MSG_KERNEL_CREATE || !oom_is_connected(order.agent_id))
            continue;
        report = kernel_report(&order, MSG_KERNEL_ERROR);
        report.error_kind = "insufficient-resource";
        report.error_field = "cpu";
        report.error_text = "no core is free";
        agent_says(order.agent_id, report);
        return;
    }
}

/* Sessions on an agent that is lost, and comes back with what it had. */
static void run_loss(const char *dir, const char *policy)
{
    struct session_request batch = job("one"), interactive = job("two");
    struct answer one, two;

    oom_world_open(dir);
    set_loss_policy(policy);
    interactive.type = SESSION_INTERACTIVE;
    interactive.spec.command = NULL;
    oom_begin();
    oom_comes("i-001", FOUR_CPUS);
    one = oom_create(&batch);
    start_refused();
    pass(2 * USEC_PER_SEC);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    two = oom_create(&interactive);
    oom_comes("i-002", FOUR_CPUS);
    oom_all_report(MSG_KERNEL_RUNNING, NULL, NULL);
    if (oom_is_connected("i-001"))
        agent_goes("i-001");
    only_beats("i-002", 60);
    if (core_find_agent(world.core, "i-001") && !oom_has_failed())
        assert_int_equal(core_find_agent(world.core, "i-001")->status, AGENT_LOST);
    drain("i-001", true);
    drain("i-001", false);
    oom_comes("i-001", FOUR_CPUS); /* with nothing, and then with all of it */
    inventory_beats("i-001", MSG_KERNEL_RUNNING, NULL, NULL);
    inventory_beats("i-001", MSG_KERNEL_TERMINATED, NULL, NULL);
    pass(2 * USEC_PER_SEC);
    if (one.r == 0)
        oom_terminate(&one.created.id, true);
    if (two.r == 0)
        oom_terminate(&two.created.id, true);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    remove_agent("i-002");
    oom_end();
    oom_comes("i-001", FOUR_CPUS);
    oom_comes("i-002", FOUR_CPUS);
    if (one.r == 0)
        oom_terminate(&one.created.id, true);
    if (two.r == 0)
        oom_terminate(&two.created.id, true);
    pass(10 * USEC_PER_SEC);
    oom_all_report(MSG_KERNEL_TERMINATED, NULL, NULL);
    assert_true(one.r < 0 || status_of(&one.created.id) == GONE);
    assert_true(two.r < 0 || status_of(&two.created.id) == GONE);
    remove_agent("i-002");
    assert_null(core_find_agent(world.core, "i-002"));
    oom_world_pass();
}

static void run_loss_wait(const char *dir)
{
    run_loss(dir, "wait");
}

static void run_loss_terminate(const char *dir)
{
    run_loss(dir, "terminate");
}

static void run_loss_requeue(const char *dir)
{
    run_loss(dir, "requeue");
}

/* ---- orders ---- */

/* The agent does what it is told, and only that: in the end all orders have come. */
static void run_orders(const char *dir)
{
    struct session_request req = job("ordered");
    struct answer a;

    oom_world_open(dir);
    oom_begin();
    oom_comes("i-001", FOUR_CPUS);
    a = oom_create(&req);
    only_beats("i-001", 10);
    if (a.r == 0)
        oom_terminate(&a.created.id, false);
    only_beats("i-001", 10);
    oom_end();
    if (!oom_is_connected("i-001"))
        oom_comes("i-001", FOUR_CPUS);
    if (a.r == 0 && status_of(&a.created.id) != SESSION_TERMINATING)
        oom_terminate(&a.created.id, false);
    only_beats("i-001", 30);
    if (a.r == 0 && status_of(&a.created.id) != GONE) {
        assert_int_not_equal(count_sent(MSG_KERNEL_DESTROY), 0);
        inventory_beats("i-001", MSG_KERNEL_TERMINATED, NULL, NULL);
        assert_int_equal(status_of(&a.created.id), GONE);
    }
    inventory_beats("i-001", MSG_KERNEL_TERMINATED, NULL, NULL);
    assert_true(count_sent(MSG_KERNEL_FORGET) || !count_sent(MSG_KERNEL_CREATE));
    oom_world_pass();
}

/* ---- devices that are out of order ---- */

static void check_broken(void)
{
    const struct sched_device *devices;
    const struct slots *capacity;
    struct agent_entry *a = agent_entry_find(world.core, "i-001");
    size_t count;

    assert_int_equal(agent_devices_find(world.core, a, &devices, &count), 0);
    assert_row(count == 1 && devices[0].model && strcmp(devices[0].model, "N1") == 0,
               "%zu devices are in order, of model %s", count,
               count && devices[0].model ? devices[0].model : "?");
    assert_int_equal(agent_devices_find_capacity(world.core, a, &capacity, &devices, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(slots_get(capacity, "cuda.shares"), AMOUNT_ONE);
}

/* All of its GPUs are: what asks for one waits, for it is not more than the agent has. */
static void run_broken(const char *dir)
{
    struct session_request plain = job("plain"), req = job("hopes");
    struct answer a;

    oom_world_open(dir);
    oom_comes("i-001", GPU_NODE);
    oom_begin();
    inventory_beats("i-001", MSG_KERNEL_RUNNING, BROKEN_SLOTS, BROKEN_DEVICES);
    pass(2 * USEC_PER_SEC);
    (void)oom_create(&plain); /* what it may ask for is what agents have */
    oom_end();
    inventory_beats("i-001", MSG_KERNEL_RUNNING, BROKEN_SLOTS, BROKEN_DEVICES);
    pass(2 * USEC_PER_SEC);
    check_broken();
    oom_set_slot(&req.resources, "cuda.shares", AMOUNT_ONE);
    a = create(&req);
    slots_done(&req.resources);
    assert_row(a.r == 0, "%s", a.err.text);
    assert_int_equal(status_of(&a.created.id), SESSION_PENDING);
    oom_world_pass();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "what an agent offers", oom_world_prepare, run_offer, oom_world_recover },
        { "images on agents", oom_world_prepare, run_images, oom_world_recover },
        { "a lost agent is waited for", oom_world_prepare, run_loss_wait, oom_world_recover },
        { "a lost agent's sessions end", oom_world_prepare, run_loss_terminate, oom_world_recover },
        { "a lost agent's sessions start elsewhere", oom_world_prepare, run_loss_requeue,
          oom_world_recover },
        { "orders", oom_world_prepare, run_orders, oom_world_recover },
        { "devices that are out of order", oom_world_prepare, run_broken, oom_world_recover },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
