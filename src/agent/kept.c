/* kept.c - the output of forgotten kernels, within limits of age, number and space */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/node.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"

struct kept_item {
    struct uuid id;
    int64_t bytes, at_usec;
};

static struct kept_item *oldest(struct kept *kept)
{
    return &kept->items[kept->first];
}

static bool is_too_much(const struct agent *agent)
{
    const struct kept *kept = &agent->kept;
    const struct settings *settings = agent->settings;

    return (int64_t)kept->count > settings->keep_count || kept->bytes > settings->keep_bytes
           || kept->items[kept->first].at_usec + settings->keep_usec < clock_realtime_usec();
}

static void prune(struct agent *agent)
{
    struct kept *kept = &agent->kept;
    struct aq_error err = { 0 };

    while (kept->count && is_too_much(agent)) {
        struct disk_job job = { .action = DISK_PRUNE, .id = oldest(kept)->id };

        if (disk_add(agent->disk, &job, &err) < 0) {
            log_warning("old logs: %s", err.text);
            return;
        }
        kept->bytes -= oldest(kept)->bytes;
        kept->count--;
        kept->first++;
    }
}

static bool append(struct kept *kept, const struct uuid *id, int64_t bytes, int64_t at_usec)
{
    if (kept->first > kept->count) { /* more room before than in use: move to the front */
        memmove(kept->items, oldest(kept), kept->count * sizeof(*kept->items));
        kept->first = 0;
    }
    if (!vec_grow(&kept->items, &kept->cap, kept->first + kept->count + 1, sizeof(*kept->items)))
        return false;
    kept->items[kept->first + kept->count++] =
        (struct kept_item){ .id = *id, .bytes = bytes, .at_usec = at_usec };
    kept->bytes += bytes;
    return true;
}

void kept_add(struct agent *agent, const struct uuid *id, int64_t bytes)
{
    if (!append(&agent->kept, id, bytes, clock_realtime_usec()))
        log_warning("old logs: memory is short");
    prune(agent);
}

static int compare(const void *a, const void *b)
{
    const struct kept_item *x = a, *y = b;

    if (x->at_usec != y->at_usec)
        return x->at_usec < y->at_usec ? -1 : 1;
    return uuid_compare(&x->id, &y->id);
}

/* Size of both halves of the log below logs/ID/ATTEMPT, and when it was written last. */
static int64_t measure(const struct agent *agent, const struct uuid *id, int64_t *ret_usec)
{
    AQ_CLEANUP(aq_freep) char *folder = disk_kept_path(agent->disk, id);
    static const char *const halves[] = { "log", "log.1" };
    int64_t attempt = folder ? disk_newest_attempt(folder) : 0, bytes = 0;

    *ret_usec = 0;
    for (size_t i = 0; folder && i < AQ_COUNT(halves); i++) {
        AQ_CLEANUP(aq_freep) char *path =
            aq_format("%s/%lld/%s", folder, (long long)attempt, halves[i]);
        struct stat st;

        if (!path || stat(path, &st) < 0)
            continue;
        bytes += st.st_size;
        *ret_usec = AQ_MAX(*ret_usec, (int64_t)st.st_mtim.tv_sec * USEC_PER_SEC);
    }
    return bytes;
}

int kept_load(struct agent *agent, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = settings_path(agent->settings, "logs");
    DIR *dir = folder ? opendir(folder) : NULL;
    struct kept *kept = &agent->kept;
    struct dirent *entry;
    bool is_ok = true;

    if (!dir)
        return folder ? aq_fail_errno(err, "open '%s'", folder) : aq_fail(err, ENOMEM, "logs");
    while (is_ok && (entry = readdir(dir))) {
        struct uuid id;
        int64_t at_usec, bytes;

        if (uuid_parse(entry->d_name, &id) < 0)
            continue;
        bytes = measure(agent, &id, &at_usec);
        is_ok = append(kept, &id, bytes, at_usec);
    }
    (void)closedir(dir);
    if (!is_ok)
        return aq_fail(err, ENOMEM, "logs");
    if (kept->count)
        qsort(kept->items, kept->count, sizeof(*kept->items), compare);
    prune(agent);
    return 0;
}

void kept_done(struct kept *kept)
{
    free(kept->items);
    *kept = (struct kept){ .items = NULL };
}
