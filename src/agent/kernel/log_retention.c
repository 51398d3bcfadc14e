/* SPDX-License-Identifier: Apache-2.0 */
/* log_retention.c - the output of forgotten kernels, within limits of age, number and space */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/agent_internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "monitor/log_times.h"

struct retained_log {
    struct uuid id;
    int64_t bytes, at_usec;
};

static struct retained_log *log_retention_oldest(struct retained_logs *logs)
{
    return &logs->items[logs->first];
}

static bool log_retention_is_too_much(const struct agent_daemon *agent)
{
    const struct retained_logs *logs = &agent->retained_logs;
    const struct settings *settings = agent->settings;

    return (int64_t)logs->count > settings->keep_count || logs->bytes > settings->keep_bytes
           || logs->items[logs->first].at_usec + settings->keep_usec < clock_realtime_usec();
}

static void log_retention_prune(struct agent_daemon *agent)
{
    struct retained_logs *logs = &agent->retained_logs;

    while (logs->count && log_retention_is_too_much(agent)) {
        struct disk_job job = { .action = DISK_PRUNE, .id = log_retention_oldest(logs)->id };

        disk_worker_add(agent->disk, &job);
        logs->bytes -= log_retention_oldest(logs)->bytes;
        logs->count--;
        logs->first++;
    }
}

static void log_retention_append(struct retained_logs *logs, const struct uuid *id, int64_t bytes,
                                 int64_t at_usec)
{
    if (logs->first > logs->count) { /* more room before than in use: move to the front */
        memmove(logs->items, log_retention_oldest(logs), logs->count * sizeof(*logs->items));
        logs->first = 0;
    }
    vec_grow(&logs->items, &logs->cap, logs->first + logs->count + 1, sizeof(*logs->items));
    logs->items[logs->first + logs->count++] = (struct retained_log){ .id = *id,
                                                                      .bytes = bytes,
                                                                      .at_usec = at_usec };
    logs->bytes += bytes;
}

void log_retention_add(struct agent_daemon *agent, const struct uuid *id, int64_t bytes)
{
    log_retention_append(&agent->retained_logs, id, bytes, clock_realtime_usec());
    log_retention_prune(agent);
}

static int log_retention_compare(const void *a, const void *b)
{
    const struct retained_log *x = a, *y = b;

    if (x->at_usec != y->at_usec)
        return x->at_usec < y->at_usec ? -1 : 1;
    return uuid_compare(&x->id, &y->id);
}

/* Size of the files below logs/ID/ATTEMPT, and when they were written last. */
static int64_t log_retention_measure(const struct agent_daemon *agent, const struct uuid *id,
                                     int64_t *ret_usec)
{
    AQ_CLEANUP(aq_freep) char *directory = disk_worker_log_path(agent->disk, id);
    static const char *const files[] = { "log", "log.1", LOG_TIMES_FILE, LOG_TIMES_FILE_OLDER };
    int64_t attempt = disk_worker_newest_attempt(directory), bytes = 0;

    *ret_usec = 0;
    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%lld/%s", directory, (long long)attempt,
                                                    files[i]);
        struct stat st;

        if (stat(path, &st) < 0)
            continue;
        bytes += st.st_size;
        *ret_usec = AQ_MAX(*ret_usec, (int64_t)st.st_mtim.tv_sec * USEC_PER_SEC);
    }
    return bytes;
}

int log_retention_load(struct agent_daemon *agent, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *directory = settings_path(agent->settings, "logs");
    DIR *dir = opendir(directory);
    struct retained_logs *logs = &agent->retained_logs;
    struct dirent *entry;

    if (!dir)
        return aq_fail_errno(err, "open '%s'", directory);
    while ((entry = readdir(dir))) {
        struct uuid id;
        int64_t at_usec, bytes;

        if (uuid_parse(entry->d_name, &id) < 0)
            continue;
        bytes = log_retention_measure(agent, &id, &at_usec);
        log_retention_append(logs, &id, bytes, at_usec);
    }
    (void)closedir(dir);
    if (logs->count)
        qsort(logs->items, logs->count, sizeof(*logs->items), log_retention_compare);
    log_retention_prune(agent);
    return 0;
}

void log_retention_done(struct retained_logs *logs)
{
    free(logs->items);
    *logs = (struct retained_logs){ .items = NULL };
}
