/* SPDX-License-Identifier: Apache-2.0 */
/* bench/core - sessions per second through the manager's core, without HTTP,
 * link and processes
 *
 * On a fresh database all sessions are created first (one request under way
 * per client), then a played agent of so many slots runs them: it reports a
 * kernel as running, and as ended in the next turn of the loop. The last line
 * is one JSON object: creations and jobs per second, the CPU of this process
 * per session, memory per pending session, and the rate of the last thousand
 * over that of the second. Each creation has an entry in the audit log unless
 * that is switched off.
 *
 *     bench/core [--dir FOLDER] [--count SESSIONS] [--slots N] [--audit no]
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
#include "manager/core/state/agent_entry.h"
#include "manager/core/nodes/inventory.h"
#include "manager/core/state/account.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define CLIENTS 64
#define AGENT "bench-agent"

struct job {
    struct uuid kernel_id, session_id;
    int64_t attempt;
    bool is_running;
};

static struct {
    uv_loop_t loop;
    uv_idle_t idle;
    struct core *core;
    size_t count, slots, created, answered, ended;
    struct job jobs[4096];
    size_t job_count;
    bool is_audited;
    int64_t marks[4]; /* when 1000, 2000, count - 1000, count had ended */
} bench;

static double cpu_usec(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6
           + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void die(const char *what, const struct aq_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", what, err ? err->text : "failed");
    exit(1);
}

/* ---- the agent ---- */

static void on_idle(uv_idle_t *idle);

static int take_order(struct core *core, const char *agent_id, const struct message *msg,
                      struct aq_error *err)
{
    (void)core;
    (void)agent_id;
    (void)err;
    if (msg->type != MSG_KERNEL_CREATE || bench.job_count == AQ_COUNT(bench.jobs))
        return 0;
    (void)uv_idle_start(&bench.idle, on_idle);
    bench.jobs[bench.job_count++] = (struct job){ msg->kernel_create.kernel_id,
                                                  msg->kernel_create.session_id,
                                                  msg->kernel_create.attempt, false };
    return 0;
}

static void report(const struct job *job, enum msg_kernel_state state)
{
    struct message msg = { .type = MSG_KERNEL_STATUS,
                           .kernel_status = { .kernel_id = job->kernel_id,
                                              .session_id = job->session_id,
                                              .attempt = job->attempt,
                                              .state = state,
                                              .has_exit = state == MSG_KERNEL_TERMINATED } };

    inventory_link_ops.on_message(bench.core, AGENT, &msg);
}

static void on_idle(uv_idle_t *idle)
{
    size_t kept = 0;

    for (size_t i = 0; i < bench.job_count; i++) {
        struct job *job = &bench.jobs[i];

        report(job, job->is_running ? MSG_KERNEL_TERMINATED : MSG_KERNEL_RUNNING);
        if (!job->is_running) {
            job->is_running = true;
            bench.jobs[kept++] = *job;
        }
    }
    bench.job_count = kept;
    if (kept == 0)
        (void)uv_idle_stop(idle);
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
                   "{\"cpu\":[\"count\",\"%zu\"],\"mem\":[\"bytes\",\"%zu\"]}", bench.slots,
                   bench.slots << 30);
    if (inventory_link_ops.on_hello(bench.core, &hello, &welcome, &retry, &err) < 0)
        die("greeting", &err);
    inventory_link_ops.on_connected(bench.core, AGENT, &hello.incarnation);
    inventory_link_ops.on_message(bench.core, AGENT, &beat);
}

/* ---- the clients ---- */

static void submit(void);

static void on_created(void *data, int r, const struct aq_error *err,
                       const struct core_created *created)
{
    (void)data;
    (void)created;
    if (r < 0)
        die("creating", err);
    if (++bench.answered == bench.count)
        uv_stop(&bench.loop);
    else if (bench.created < bench.count)
        submit();
}

static void submit(void)
{
    char name[32];
    const struct session_request req = { .name = name,
                                         .type = SESSION_BATCH,
                                         .spec.image = "sh",
                                         .spec.command = "true",
                                         .access_key = "AKIANABBDUSEREXAMPLE",
                                         .priority = -1 };
    const struct audit_who by = { .user_name = "user@lablup.com",
                                  .domain = "default",
                                  .access_key = "AKIANABBDUSEREXAMPLE",
                                  .address = "127.0.0.1",
                                  .request_id = "3a50e4c3-75b6-4b6b-a08c-4e7cc8bd4fd3" };
    const struct session_request *requests = &req;

    (void)snprintf(name, sizeof(name), "bench-%zu", bench.created++);
    core_create_sessions(bench.core, &requests, 1, NULL, bench.is_audited ? &by : NULL, on_created,
                         NULL);
}

static void on_event(void *data, const struct core_event *event)
{
    (void)data;
    if (strcmp(event->name, "session_terminated") != 0)
        return;
    bench.ended++;
    if (bench.ended == 1000)
        bench.marks[0] = clock_monotonic_usec();
    if (bench.ended == 2000)
        bench.marks[1] = clock_monotonic_usec();
    if (bench.ended == bench.count - 1000)
        bench.marks[2] = clock_monotonic_usec();
    if (bench.ended == bench.count) {
        bench.marks[3] = clock_monotonic_usec();
        uv_stop(&bench.loop);
    }
}

/* ---- together ---- */

static void run(const char *dir)
{
    const struct core_conf conf = { .loop = &bench.loop, .state_dir = dir, .dev = true };
    struct aq_error err;
    int64_t begin, mid, end;
    double cpu0, cpu1, cpu2, per_session;
    size_t before;

    (void)uv_loop_init(&bench.loop);
    if (core_new(&conf, &bench.core, &err) < 0 || core_start(bench.core, &err) < 0)
        die("core", &err);
    bench.core->send = take_order;
    (void)core_subscribe(bench.core, NULL, on_event, NULL);
    before = mallinfo2().uordblks;
    begin = clock_monotonic_usec();
    cpu0 = cpu_usec();
    for (int i = 0; i < CLIENTS; i++)
        submit();
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    mid = clock_monotonic_usec();
    cpu1 = cpu_usec();
    per_session = (double)(mallinfo2().uordblks - before) / (double)bench.count;
    (void)uv_idle_init(&bench.loop, &bench.idle);
    start_agent();
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    end = clock_monotonic_usec();
    cpu2 = cpu_usec();
    (void)printf(
        "{\"creates_per_s\": %.0f, \"create_cpu_usec\": %.0f, \"jobs_per_s\": %.0f, "
        "\"job_cpu_usec\": %.0f, \"bytes_per_pending\": %.0f, \"late_over_early\": %.2f}\n",
        (double)bench.count * 1e6 / (double)(mid - begin), (cpu1 - cpu0) / (double)bench.count,
        (double)bench.count * 1e6 / (double)(end - mid), (cpu2 - cpu1) / (double)bench.count,
        per_session,
        (double)(bench.marks[1] - bench.marks[0]) / (double)(bench.marks[3] - bench.marks[2]));
    uv_close((uv_handle_t *)&bench.idle, NULL);
    core_free(bench.core);
    (void)uv_run(&bench.loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&bench.loop);
}

int main(int argc, char **argv)
{
    char dir[] = "/tmp/aliquot-bench-core-XXXXXX";
    const char *chosen = NULL;

    bench.count = 16000;
    bench.slots = 64;
    bench.is_audited = true;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0)
            bench.count = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--slots") == 0)
            bench.slots = strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--audit") == 0)
            bench.is_audited = strcmp(argv[i + 1], "no") != 0;
        else if (strcmp(argv[i], "--dir") == 0)
            chosen = argv[i + 1];
    }
    if (bench.count < 3000 || bench.slots == 0 || bench.slots > AQ_COUNT(bench.jobs))
        die("at least 3000 sessions and 1 to 4096 slots", NULL);
    log_init("bench", LOG_LEVEL_WARNING);
    if (!chosen && !mkdtemp(dir))
        die("mkdtemp", NULL);
    run(chosen ? chosen : dir);
    if (!chosen)
        (void)fs_remove_tree(AT_FDCWD, dir, NULL);
    return 0;
}
