/* SPDX-License-Identifier: Apache-2.0 */
/* stats_collector.c - takes samples at an interval, sends them, keeps the last for /metrics */
#include "agent/metrics/stats_collector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/kernel/kernel.h"
#include "agent/runtime/oci.h"
#include "agent/stat/kernel_stat.h"
#include "agent/stat/node_stat.h"
#include "agent/stat/proc_tree.h"
#include "agent/stat/sample.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

#define KERNELS_PER_MESSAGE 1000
#define FILES_PER_KERNEL 10
#define PIDS_MAX 4096     /* of a kernel */
#define STALE_INTERVALS 3 /* what accelerators measured before that is not told any more */

struct stats_collector {
    struct agent_daemon *agent;
    struct sample *sample;
    struct node_stat *node;
    struct proc_tree *tree;
    size_t kept_max;                 /* kernels whose files may stay open */
    struct local_kernel **processes; /* of the node, by their number in the tree */
    size_t process_count, process_cap;
    struct accel_target *targets;
    size_t target_count, target_cap;
    int32_t *pids; /* of all targets, PIDS_MAX for each */
    size_t pid_cap;
    uv_timer_t timer; /* its closing frees all this */
};

static bool stats_collector_is_running(const struct local_kernel *k)
{
    return k->run && (k->state == MSG_KERNEL_RUNNING || k->state == MSG_KERNEL_TERMINATING);
}

/* ---- containers ---- */

/* Its files; false if there is nothing to read. */
static bool stats_collector_open_container(struct local_kernel *k)
{
    const struct agent_daemon *agent = k->agent;
    const struct oci_host *host = runtime_oci_host(agent->containers);
    AQ_CLEANUP(aq_freep) char *scratch = disk_worker_kernel_path(agent->disk, &k->id,
                                                                 "scratch.img");
    char id[UUID_TEXT_MAX];
    const struct kernel_stat_conf conf = {
        .cgroups = &host->cgroups,
        .name = uuid_format(&k->id, id),
        .link = k->is_connected ? net_get_info(k->network)->link : NULL,
        .root = "",
        .scratch = host->scratch_template ? scratch : NULL,
        .scratch_bytes = agent->settings->scratch_bytes,
    };

    return k->stat || kernel_stat_open(&conf, &k->stat, NULL) == 0;
}

static void sample_container(struct stats_collector *stats, struct local_kernel *k)
{
    sample_begin_kernel(stats->sample, &k->id, &k->session_id, k->attempt);
    kernel_stat_sample(k->stat, stats->sample);
}

/* ---- processes of the node ---- */

static void stats_collector_add_process(struct stats_collector *stats, struct local_kernel *k)
{
    pid_t pid = runtime_pid(k->run);

    if (pid <= 0)
        return;
    vec_grow(&stats->processes, &stats->process_cap, stats->process_count + 1,
             sizeof(struct local_kernel *));
    stats->processes[stats->process_count++] = k;
    proc_tree_add(stats->tree, pid);
}

static void sample_process(struct stats_collector *stats, size_t number)
{
    const struct local_kernel *k = stats->processes[number];
    struct proc_use use = proc_tree_get(stats->tree, number);
    int64_t memory = slots_get(&k->slots, slot_name_intern("mem", 3));

    if (!use.is_there)
        return;
    sample_begin_kernel(stats->sample, &k->id, &k->session_id, k->attempt);
    sample_add(stats->sample, SAMPLE_CPU_UTIL, use.cpu_msec, 1000);
    sample_add(stats->sample, SAMPLE_CPU_USED, use.cpu_msec, -1);
    sample_add(stats->sample, SAMPLE_MEM, use.memory_bytes, memory ? (double)memory : -1);
}

/* ---- accelerators ---- */

static void stats_add_target(struct stats_collector *stats, const struct local_kernel *k,
                             size_t process)
{
    size_t n = stats->target_count;
    int32_t *pids;
    size_t count;

    if (!accel_is_needed(&k->grant))
        return;
    vec_grow(&stats->targets, &stats->target_cap, n + 1, sizeof(*stats->targets));
    vec_grow(&stats->pids, &stats->pid_cap, (n + 1) * PIDS_MAX, sizeof(*stats->pids));
    pids = stats->pids + n * PIDS_MAX;
    count = k->stat ? kernel_stat_pids(k->stat, pids, PIDS_MAX)
                    : proc_tree_pids(stats->tree, process, pids, PIDS_MAX);
    stats->targets[n] = (struct accel_target){ .kernel_id = k->id,
                                               .grant = &k->grant,
                                               .pid_count = count };
    stats->target_count++;
}

static void stats_collector_ask_accelerators(struct stats_collector *stats)
{
    for (size_t i = 0; i < stats->target_count; i++)
        stats->targets[i].pids = stats->pids + i * PIDS_MAX;
    accel_measure(stats->agent->accel, stats->targets, stats->target_count);
}

static void stats_collector_add_metric(struct stats_collector *stats, const struct accel_metric *m)
{
    sample_add_accel(stats->sample, m->key, m->unit, m->stats, m->value, m->capacity);
}

static bool stats_collector_is_same_owner(const struct accel_metric *a,
                                          const struct accel_metric *b)
{
    return a->is_of_kernel == b->is_of_kernel
           && (a->is_of_kernel ? uuid_equals(&a->kernel_id, &b->kernel_id)
                               : strcmp(a->device, b->device) == 0);
}

/* Of devices and kernels; false if the kernel is gone. */
static bool stats_collector_begin_owner(struct stats_collector *stats, const struct accel_metric *m)
{
    const struct local_kernel *k = m->is_of_kernel ? kernel_find(stats->agent, &m->kernel_id)
                                                   : NULL;

    if (m->is_of_kernel && (!k || !stats_collector_is_running(k)))
        return false;
    if (k)
        sample_begin_kernel(stats->sample, &k->id, &k->session_id, k->attempt);
    else
        sample_begin_device(stats->sample, m->device);
    return true;
}

static void sample_plugin(struct stats_collector *stats, size_t plugin, int64_t now)
{
    const struct agent_daemon *agent = stats->agent;
    size_t count;
    int64_t at;
    const struct accel_metric *items = accel_metrics(agent->accel, plugin, &count, &at);
    const struct accel_metric *before = NULL;
    bool is_there = false;

    if (now - at > STALE_INTERVALS * agent->settings->stat_interval_usec)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct accel_metric *m = &items[i];

        if (!m->is_of_kernel && !m->device)
            continue; /* the node's come first of all */
        if (!before || !stats_collector_is_same_owner(before, m))
            is_there = stats_collector_begin_owner(stats, m);
        before = m;
        if (is_there)
            stats_collector_add_metric(stats, m);
    }
}

static void sample_plugins_of_node(struct stats_collector *stats, int64_t now)
{
    const struct agent_daemon *agent = stats->agent;

    for (size_t p = 0; accel_plugin(agent->accel, p); p++) {
        size_t count;
        int64_t at;
        const struct accel_metric *items = accel_metrics(agent->accel, p, &count, &at);

        for (size_t i = 0; i < count; i++)
            if (!items[i].is_of_kernel && !items[i].device
                && now - at <= STALE_INTERVALS * agent->settings->stat_interval_usec)
                stats_collector_add_metric(stats, &items[i]);
    }
}

/* ---- a sample ---- */

static void sample_kernels(struct stats_collector *stats)
{
    struct map *kernels = &stats->agent->kernels;
    size_t kept = 0;

    proc_tree_begin(stats->tree);
    stats->process_count = stats->target_count = 0;
    for (size_t i = 0; i < kernels->count; i++) {
        struct local_kernel *k = kernels->entries[i].value;

        if (!stats_collector_is_running(k)) {
            kernel_stat_free(AQ_TAKE(k->stat));
        } else if (!k->is_container) {
            stats_collector_add_process(stats, k);
        } else if (stats_collector_open_container(k)) {
            sample_container(stats, k);
            stats_add_target(stats, k, 0);
            if (kept++ >= stats->kept_max)
                kernel_stat_free(AQ_TAKE(k->stat));
        }
    }
    proc_tree_look(stats->tree);
    for (size_t i = 0; i < stats->process_count; i++) {
        sample_process(stats, i);
        stats_add_target(stats, stats->processes[i], i);
    }
}

static void stats_collector_send_sample(struct stats_collector *stats)
{
    struct agent_daemon *agent = stats->agent;
    struct message msg = { .type = MSG_STATISTICS, .statistics = *sample_last(stats->sample) };
    size_t left = msg.statistics.kernel_count;

    if (!agent->link || !link_client_is_connected(agent->link))
        return;
    do {
        msg.statistics.kernel_count = AQ_MIN(left, KERNELS_PER_MESSAGE);
        agent_send(agent, &msg);
        left -= msg.statistics.kernel_count;
        msg.statistics.kernels += msg.statistics.kernel_count;
        msg.statistics.node_count = msg.statistics.device_count = 0;
    } while (left);
}

static void stats_on_timer(uv_timer_t *timer)
{
    struct stats_collector *stats = timer->data;
    int64_t now = clock_monotonic_usec();

    sample_begin(stats->sample, clock_realtime_usec(), stats->agent->settings->stat_interval_usec);
    sample_plugins_of_node(stats, now);
    node_stat_sample(stats->node, stats->sample);
    sample_kernels(stats);
    for (size_t p = 0; accel_plugin(stats->agent->accel, p); p++)
        sample_plugin(stats, p, now);
    (void)sample_end(stats->sample);
    stats_collector_send_sample(stats);
    stats_collector_ask_accelerators(stats);
}

const struct msg_statistics *stats_collector_last(const struct stats_collector *stats)
{
    return stats ? sample_last(stats->sample) : NULL;
}

/* ---- life ---- */

static void stats_release(struct stats_collector *stats)
{
    sample_free(stats->sample);
    node_stat_free(stats->node);
    proc_tree_free(stats->tree);
    free(stats->processes);
    free(stats->targets);
    free(stats->pids);
    free(stats);
}

static void stats_on_closed(uv_handle_t *handle)
{
    stats_release(handle->data);
}

void stats_collector_free(struct stats_collector *stats)
{
    if (stats)
        uv_close((uv_handle_t *)&stats->timer, stats_on_closed);
}

/* Half of the files that we may have open; the rest is opened each time. */
static size_t stats_collector_count_kept(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 / FILES_PER_KERNEL : 0;
}

struct stats_collector *stats_collector_new(struct agent_daemon *agent)
{
    uint64_t msec = (uint64_t)(agent->settings->stat_interval_usec / USEC_PER_MSEC);
    struct stats_collector *stats;

    if (!msec)
        return NULL;
    stats = aq_alloc(sizeof(*stats));
    stats->agent = agent;
    stats->kept_max = stats_collector_count_kept();
    stats->sample = sample_new();
    stats->node = node_stat_new("");
    stats->tree = proc_tree_new("");
    stats->timer.data = stats;
    (void)uv_timer_init(agent->loop, &stats->timer);
    (void)uv_timer_start(&stats->timer, stats_on_timer, AQ_MIN(msec, 1000), msec);
    return stats;
}
