/* SPDX-License-Identifier: Apache-2.0 */
/* bench/idle-checks - processor time of the manager for idle checks of running sessions
 *
 * One played agent runs so many interactive sessions and reports fresh values of each every five
 * seconds, which is an agent's default interval. The clock is the benchmark's: it advances by a
 * second at a time, so ten minutes of a manager take as long as their work does. The same ten
 * minutes are played twice: without idle checks, and with an idle timeout of two hours and four
 * thresholds of utilization. The last line is one JSON object: percent of one core with and
 * without them, the difference, and the memory of the checks per session.
 *
 *     bench/idle-checks [SESSIONS]
 */
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/deferred.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/statistics_internal.h"

#define AGENT "bench-agent"
#define USER_KEY "AKIANABBDUSEREXAMPLE"
#define INTERVAL_SEC 5
#define WARM_UP_SEC 180
#define MEASURED_SEC 600
#define KERNELS_PER_MESSAGE 100

static const struct msg_metric metrics[] = {
    { "cpu_util", METRIC_PERCENT, METRIC_RATE, 0 },   { "mem", METRIC_BYTES, METRIC_VALUE, 0 },
    { "net_rx", METRIC_BYTES, METRIC_RATE, 0 },       { "net_tx", METRIC_BYTES, METRIC_RATE, 0 },
    { "io_read", METRIC_BYTES, METRIC_RATE, 0 },      { "io_write", METRIC_BYTES, METRIC_RATE, 0 },
    { "cuda_util", METRIC_PERCENT, METRIC_VALUE, 0 }, { "cuda_mem", METRIC_BYTES, METRIC_VALUE, 0 },
};

static struct {
    uv_loop_t loop;
    struct core *core;
    size_t count, running;
    struct message *orders; /* MSG_KERNEL_CREATE: ids and the attempt alone */
    size_t order_count;
    int64_t mono_usec, wall_usec;
    int64_t sampled_sec; /* simulated seconds of samples so far */
    bool is_saved;
} bench;

static void die(const char *what, const struct aq_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

static double cpu_usec(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
           + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static int64_t bench_mono(void *data)
{
    (void)data;
    return bench.mono_usec;
}

static int64_t bench_wall(void *data)
{
    (void)data;
    return bench.wall_usec;
}

/* All that follows from what was touched, including what is on its way to the store. */
static void settle(void)
{
    for (int quiet = 0; quiet < 2;) {
        uint64_t commits = bench.core->counts.commits;

        store_flush(bench.core->store);
        core_schedule_turn(bench.core);
        (void)uv_run(&bench.loop, UV_RUN_NOWAIT);
        quiet = commits == bench.core->counts.commits ? quiet + 1 : 0;
    }
}

/* ---- the agent ---- */

static int take_order(struct core *core, const char *agent_id, const struct message *msg,
                      struct aq_error *err)
{
    struct message *to = &bench.orders[bench.order_count];

    (void)core;
    (void)agent_id;
    (void)err;
    if (msg->type != MSG_KERNEL_CREATE || bench.order_count == bench.count)
        return 0;
    to->kernel_create.kernel_id = msg->kernel_create.kernel_id;
    to->kernel_create.session_id = msg->kernel_create.session_id;
    to->kernel_create.attempt = msg->kernel_create.attempt;
    bench.order_count++;
    return 0;
}

static void start_agent(void)
{
    char slots[128];
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = AGENT,
                               .incarnation = uuid_random(),
                               .slots = slots };
    struct message beat = { .type = MSG_HEARTBEAT };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry;

    (void)snprintf(slots, sizeof(slots),
                   "{\"cpu\":[\"count\",\"%zu\"],\"mem\":[\"bytes\",\"%zu\"]}", bench.count,
                   bench.count << 30);
    if (inventory_link_ops.on_hello(bench.core, &hello, &welcome, &retry, &err) < 0)
        die("greeting", &err);
    inventory_link_ops.on_connected(bench.core, AGENT, &hello.incarnation);
    inventory_link_ops.on_message(bench.core, AGENT, &beat);
}

static void report_running(void)
{
    for (size_t i = bench.running; i < bench.order_count; i++) {
        const struct message *order = &bench.orders[i];
        struct message msg = { .type = MSG_KERNEL_STATUS,
                               .kernel_status = { .kernel_id = order->kernel_create.kernel_id,
                                                  .session_id = order->kernel_create.session_id,
                                                  .attempt = order->kernel_create.attempt,
                                                  .state = MSG_KERNEL_RUNNING } };

        inventory_link_ops.on_message(bench.core, AGENT, &msg);
    }
    bench.running = bench.order_count;
}

/* Half of a core and of an accelerator, since the last sample. */
static void sample(void)
{
    double sec = (double)(bench.sampled_sec += INTERVAL_SEC);
    struct msg_value values[] = { { 0, sec * 500, 1000 }, { 1, 1 << 29, 1 << 30 },
                                  { 2, sec * 1000, -1 },  { 3, sec * 1000, -1 },
                                  { 4, sec * 4096, -1 },  { 5, sec * 4096, -1 },
                                  { 6, 50, 100 },         { 7, 1 << 29, 1 << 30 } };
    struct msg_kernel_values kernels[KERNELS_PER_MESSAGE];
    struct msg_statistics m = { .at_usec = bench.wall_usec,
                                .interval_usec = INTERVAL_SEC * USEC_PER_SEC,
                                .metrics = (struct msg_metric *)metrics,
                                .metric_count = AQ_COUNT(metrics),
                                .kernels = kernels };
    struct agent_entry *agent = agent_entry_find(bench.core, AGENT);

    for (size_t i = 0; i < bench.running; i += m.kernel_count) {
        m.kernel_count = AQ_MIN(bench.running - i, (size_t)KERNELS_PER_MESSAGE);
        for (size_t k = 0; k < m.kernel_count; k++) {
            const struct message *order = &bench.orders[i + k];

            kernels[k] = (struct msg_kernel_values){
                .kernel_id = order->kernel_create.kernel_id,
                .session_id = order->kernel_create.session_id,
                .attempt = order->kernel_create.attempt,
                .values = values,
                .value_count = AQ_COUNT(values),
            };
        }
        statistics_take(bench.core, agent, &m);
    }
}

/* Seconds of the manager's life: as many ticks, each with a turn of the loop. */
static void live(int seconds)
{
    for (int i = 0; i < seconds; i++) {
        bench.mono_usec += USEC_PER_SEC;
        bench.wall_usec += USEC_PER_SEC;
        if (i % INTERVAL_SEC == 0)
            sample();
        idle_entry_tick(bench.core);
        core_schedule_turn(bench.core);
        (void)uv_run(&bench.loop, UV_RUN_NOWAIT);
    }
    settle();
}

/* ---- sessions and limits ---- */

static void on_created(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    (void)data;
    (void)created;
    if (r < 0)
        die("creating", err);
}

static void create_sessions(void)
{
    char name[32];
    const struct session_request req = { .name = name,
                                         .type = SESSION_INTERACTIVE,
                                         .spec.image = "sh",
                                         .spec.command = "sh",
                                         .access_key = USER_KEY,
                                         .priority = -1 };
    const struct session_request *requests = &req;

    for (size_t i = 0; i < bench.count; i++) {
        (void)snprintf(name, sizeof(name), "bench-%zu", i);
        core_create_sessions(bench.core, &requests, 1, NULL, NULL, on_created, NULL);
        if (i % 64 == 63)
            settle();
    }
    settle();
    start_agent();
    for (int i = 0; i < 1000 && bench.running < bench.count; i++) {
        settle();
        report_running();
    }
    settle();
    if (bench.running < bench.count)
        die("sessions do not run", NULL);
}

static void on_saved(void *data, int r, const struct aq_error *err)
{
    (void)data;
    if (r < 0)
        die("saving the policy", err);
    bench.is_saved = true;
}

static void switch_on(void)
{
    static const char *const keys[][2] = {
        { "enabled", "network_timeout,utilization" },
        { "checkers/utilization/resource-thresholds/cpu_util/average", "20" },
        { "checkers/utilization/resource-thresholds/mem/average", "20" },
        { "checkers/utilization/resource-thresholds/io_read/average", "1" },
        { "checkers/utilization/resource-thresholds/net_rx/average", "1" },
    };
    const struct keypair *key = core_find_keypair(bench.core, USER_KEY);
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, bench.wall_usec);
    struct idle_settings settings;
    struct aq_error err;

    entity_copy(&keypair_policy_entity, &e->policy, core_find_policy(bench.core, key->policy));
    e->policy.idle_timeout_sec = 7200;
    e->policy.max_session_lifetime_sec = 86400;
    core_save(bench.core, batch, NULL, on_saved, NULL);
    settle();
    if (!bench.is_saved)
        die("the policy is not saved", NULL);
    idle_settings_defaults(&settings);
    for (size_t i = 0; i < AQ_COUNT(keys); i++)
        if (idle_settings_put(&settings, keys[i][0], keys[i][1], &err) != 1)
            die(keys[i][0], &err);
    core_set_idle(bench.core, &settings);
}

/* Percent of one core. */
static double measure(void)
{
    double begin;

    live(WARM_UP_SEC);
    begin = cpu_usec();
    live(MEASURED_SEC);
    return (cpu_usec() - begin) / (MEASURED_SEC * 1e6) * 100;
}

static void check_sessions(void)
{
    struct core_idle idle;
    const struct kernel *k;

    for (size_t i = 0; i < bench.running; i++) {
        k = core_find_kernel(bench.core, &bench.orders[i].kernel_create.kernel_id);
        if (!k || k->session->status != SESSION_RUNNING
            || !core_read_idle(bench.core, k->session, &idle) || !idle.limits.network_usec
            || !idle.limits.window_usec)
            die("a session is not checked", NULL);
    }
}

static void run(const char *dir)
{
    const struct core_conf conf = { .loop = &bench.loop,
                                    .state_dir = dir,
                                    .agent_timeout_usec = 86400 * USEC_PER_SEC,
                                    .dev = true };
    struct aq_error err;
    double without, with;
    size_t before;

    (void)uv_loop_init(&bench.loop);
    if (core_new(&conf, &bench.core, &err) < 0 || core_start(bench.core, &err) < 0)
        die("core", &err);
    bench.core->send = take_order;
    create_sessions();
    without = measure();
    before = mallinfo2().uordblks;
    switch_on();
    with = measure();
    check_sessions();
    (void)printf("{\"sessions\": %zu, \"percent_without\": %.3f, \"percent_with\": %.3f, "
                 "\"percent_of_checks\": %.3f, \"bytes_per_session\": %.0f}\n",
                 bench.count, without, with, with - without,
                 (double)(mallinfo2().uordblks - before) / (double)bench.count);
    core_free(bench.core);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&bench.loop);
}

int main(int argc, char **argv)
{
    static const struct clock clock = { bench_wall, bench_mono, NULL };
    char dir[] = "/tmp/aliquot-bench-idle-XXXXXX";

    bench.count = argc > 1 ? strtoul(argv[1], NULL, 10) : 10000;
    if (bench.count == 0 || bench.count > 100000)
        die("SESSIONS must be from 1 to 100000", NULL);
    bench.mono_usec = 1000 * USEC_PER_SEC;
    bench.wall_usec = INT64_C(1763694000) * USEC_PER_SEC;
    clock_set(&clock);
    log_init("bench", LOG_LEVEL_WARNING);
    bench.orders = aq_alloc_array(bench.count, sizeof(*bench.orders));
    if (!mkdtemp(dir))
        die("mkdtemp", NULL);
    run(dir);
    (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    free(bench.orders);
    return 0;
}
