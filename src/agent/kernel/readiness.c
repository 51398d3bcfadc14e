/* SPDX-License-Identifier: Apache-2.0 */
/* readiness.c - see readiness.h */
#include "agent/kernel/readiness.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/kernel/kernel_network.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"

#define MARK_FILE "ready"
#define PATH_MAX_BYTES 1024
#define INTERVAL_USEC (10 * USEC_PER_SEC)
#define INTERVAL_LEAST_USEC (100 * USEC_PER_MSEC)
#define TIMEOUT_USEC (15 * USEC_PER_SEC)
#define TIMEOUT_LEAST_USEC (10 * USEC_PER_MSEC)
#define TIME_MOST_USEC (3600 * USEC_PER_SEC)
#define RETRIES 10
#define RETRIES_MOST 1000

static int readiness_check_path(const char *path, struct aq_error *err)
{
    size_t len = strlen(path);

    if (path[0] != '/' || len > PATH_MAX_BYTES)
        return aq_fail_field(
            err, EINVAL, "probe_path",
            "'%.100s' is not the path of a URL: begin with '/', and use at most %d "
            "bytes",
            path, PATH_MAX_BYTES);
    for (size_t i = 0; i < len; i++)
        if (path[i] <= ' ' || path[i] == 127)
            return aq_fail_field(err, EINVAL, "probe_path",
                                 "'%.100s' has a blank, a control character or a character beyond "
                                 "ASCII: write it as %%XX",
                                 path);
    return 0;
}

/* 0 stands for the default. */
static int readiness_check_number(int64_t number, int64_t least, int64_t most, const char *name,
                                  struct aq_error *err)
{
    return number && (number < least || number > most)
               ? aq_fail_field(err, EINVAL, name, "%lld is not from %lld to %lld",
                               (long long)number, (long long)least, (long long)most)
               : 0;
}

int readiness_check(const struct kernel_spec *spec, struct aq_error *err)
{
    int r = readiness_check_number(spec->probe_port, 1, UINT16_MAX, "probe_port", err);

    if (r == 0)
        r = readiness_check_number(spec->probe_status, 100, 599, "probe_status", err);
    if (r == 0)
        r = readiness_check_number(spec->probe_interval_usec, INTERVAL_LEAST_USEC, TIME_MOST_USEC,
                                   "probe_interval_usec", err);
    if (r == 0)
        r = readiness_check_number(spec->probe_timeout_usec, TIMEOUT_LEAST_USEC, TIME_MOST_USEC,
                                   "probe_timeout_usec", err);
    if (r == 0)
        r = readiness_check_number(spec->probe_retries, 1, RETRIES_MOST, "probe_retries", err);
    if (r == 0 && spec->probe_path)
        r = readiness_check_path(spec->probe_path, err);
    return r;
}

/* ---- that it was ready once ---- */

static char *readiness_mark_path(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_run_path(k->agent->disk, &k->id,
                                                                k->run_attempt);

    return aq_format("%s/" MARK_FILE, directory);
}

/* When the file was made; 0 = it is not there. */
static int64_t readiness_find_mark(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = readiness_mark_path(k);
    struct stat st;

    return lstat(path, &st) == 0 ? st.st_mtim.tv_sec * USEC_PER_SEC + st.st_mtim.tv_nsec / 1000 : 0;
}

static void readiness_mark(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = readiness_mark_path(k);
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        log_warning("cannot record in '%s' that the kernel is ready: %s; after a restart of the "
                    "agent it counts as starting until it answers",
                    path, strerror(errno));
}

/* ---- reports ---- */

static void readiness_report(const struct local_kernel *k, const struct probe_finding *finding)
{
    const struct message msg = { .type = MSG_KERNEL_HEALTH,
                                 .kernel_health = { .kernel_id = k->id,
                                                    .attempt = k->run_attempt,
                                                    .state = probe_health_name(finding->health),
                                                    .text = finding->text,
                                                    .at_usec = finding->at_usec } };

    agent_send(k->agent, &msg);
}

void readiness_report_all(struct agent_daemon *agent)
{
    for (size_t i = 0; i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;

        if (k->probe) {
            const struct probe_finding finding = probe_get_finding(k->probe);

            readiness_report(k, &finding);
        }
    }
}

/* ---- the probe ---- */

static int readiness_open_network(void *data, int *ret, struct aq_error *err)
{
    return kernel_open_network(data, ret, err);
}

static void readiness_on_finding(void *data, const struct probe_finding *finding)
{
    struct local_kernel *k = data;

    if (finding->health == PROBE_READY && !k->was_ready) {
        AQ_FAULT("agent.health.ready");
        readiness_mark(k);
        k->was_ready = true;
        AQ_FAULT("agent.health.marked");
    }
    readiness_report(k, finding);
}

void readiness_begin(struct local_kernel *k)
{
    static const struct probe_ops ops = { .open_network = readiness_open_network,
                                          .on_finding = readiness_on_finding };
    const struct kernel_spec *spec = kernel_get_spec(k);
    int64_t interval = spec->probe_interval_usec, timeout = spec->probe_timeout_usec;
    int64_t ready_usec = spec->probe_port ? readiness_find_mark(k) : 0;
    const struct probe_spec probe = {
        .target = { .port = (uint16_t)spec->probe_port,
                    .path = spec->probe_path,
                    .status = spec->probe_status ? (int)spec->probe_status : 200,
                    .timeout_usec = timeout ? timeout : TIMEOUT_USEC },
        .rule = { .interval_usec = interval ? interval : INTERVAL_USEC,
                  .retries = spec->probe_retries ? spec->probe_retries : RETRIES },
    };

    if (!spec->probe_port || k->probe)
        return;
    k->was_ready = ready_usec != 0;
    k->probe = probe_new(k->agent->probes, &probe, ready_usec, &ops, k);
}

void readiness_end(struct local_kernel *k)
{
    probe_free(AQ_TAKE(k->probe));
}
