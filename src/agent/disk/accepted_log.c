/* SPDX-License-Identifier: Apache-2.0 */
/* accepted_log.c - the durable log of the commands this node has accepted */
#include "agent/disk/accepted_log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "agent/disk/disk_worker.h"
#include "agent/runtime/exit_file.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "monitor/protocol.h"

#define ACCEPTED_MAX (64u << 20)
#define LINES_MAX 65536 /* of kernels that are gone, before the file is rewritten */
#define BOOT_MAX 64

struct accepted_log {
    char *state, *path;
    int fd;
    struct map attempts; /* 16 bytes of id -> the attempt as a number */
    size_t lines;
    struct strbuf noted; /* lines that are not in the file yet */
    bool is_torn;        /* the file's end is not known */
    char boot[BOOT_MAX];
};

static int64_t accepted_log_get(const struct accepted_log *a, const struct uuid *id)
{
    return (int64_t)(intptr_t)map_get(&a->attempts, id->bytes, sizeof(id->bytes));
}

static void accepted_log_set(struct accepted_log *a, const struct uuid *id, int64_t attempt)
{
    if (attempt)
        map_set(&a->attempts, id->bytes, sizeof(id->bytes), (void *)(intptr_t)attempt);
    else
        (void)map_remove(&a->attempts, id->bytes, sizeof(id->bytes));
}

static struct uuid accepted_log_id_at(const struct accepted_log *a, size_t i)
{
    struct uuid id;

    memcpy(id.bytes, a->attempts.entries[i].key, sizeof(id.bytes));
    return id;
}

static void accepted_log_add_line(struct strbuf *out, const struct uuid *id, int64_t attempt)
{
    char text[UUID_TEXT_MAX];

    strbuf_addf(out, "%s %" PRId64 "\n", uuid_format(id, text), attempt);
}

/* ---- the file ---- */

/* One file with what is known, in place of the former one. */
static int accepted_log_write_anew(struct accepted_log *a, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r, fd;

    strbuf_addf(&text, "%s\n", a->boot);
    for (size_t i = 0; i < a->attempts.count; i++) {
        const struct uuid id = accepted_log_id_at(a, i);

        accepted_log_add_line(&text, &id, accepted_log_get(a, &id));
    }
    r = fs_write_atomic(AT_FDCWD, a->path, text.data, text.len, 0600, err);
    if (r < 0)
        return r;
    AQ_FAULT("agent.accepted.begun");
    fd = open(a->path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", a->path);
    aq_closep(&a->fd);
    a->fd = fd;
    a->lines = a->attempts.count;
    a->is_torn = false;
    strbuf_clear(&a->noted);
    return 0;
}

static int accepted_log_append(struct accepted_log *a, bool durable, struct aq_error *err)
{
    int r = fs_write_all(a->fd, a->noted.data, a->noted.len);

    AQ_FAULT("agent.accepted.written");
    if (r == 0 && durable && fdatasync(a->fd) < 0)
        r = -errno;
    if (r < 0) {
        a->is_torn = true;
        return aq_fail(err, -r, "write '%s': %s", a->path, strerror(-r));
    }
    strbuf_clear(&a->noted);
    return 0;
}

bool accepted_log_is_behind(const struct accepted_log *accepted)
{
    return accepted->is_torn;
}

void accepted_log_note(struct accepted_log *accepted, const struct uuid *id, int64_t attempt)
{
    accepted_log_add_line(&accepted->noted, id, attempt);
    accepted->lines++;
    accepted_log_set(accepted, id, attempt);
}

int accepted_log_write(struct accepted_log *accepted, bool durable, struct aq_error *err)
{
    if (accepted->is_torn || accepted->lines > LINES_MAX + 2 * accepted->attempts.count)
        return accepted_log_write_anew(accepted, err);
    return accepted->noted.len ? accepted_log_append(accepted, durable, err) : 0;
}

/* Lines that are no such are skipped: the last one may lack its end. */
static void accepted_log_read_line(struct accepted_log *a, char *line)
{
    char *space = strchr(line, ' '), *end;
    struct uuid id;
    long long attempt;

    if (!space)
        return;
    *space = '\0';
    attempt = strtoll(space + 1, &end, 10);
    if (uuid_parse(line, &id) == 0 && !*end && attempt >= 0
        && (!attempt || attempt >= accepted_log_get(a, &id)))
        accepted_log_set(a, &id, attempt);
}

/* True in 'ret_was_reboot' if the file is of another run of the machine. */
static int accepted_log_read_file(struct accepted_log *a, bool *ret_was_reboot,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char *at, *end;
    int r = fs_read(AT_FDCWD, a->path, ACCEPTED_MAX, &text, err);

    if (r == -ENOENT)
        return 0;
    for (at = text.data; r == 0 && (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        if (at == text.data)
            *ret_was_reboot = strcmp(at, a->boot) != 0;
        else
            accepted_log_read_line(a, at);
    }
    return r;
}

static int accepted_log_read_boot(char boot[BOOT_MAX], struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", BOOT_MAX, &text, err);

    if (r == 0)
        (void)snprintf(boot, BOOT_MAX, "%.*s", (int)strcspn(text.data, "\n"), text.data);
    return r;
}

/* ---- the directories ---- */

static char *accepted_log_kernel_path(const struct accepted_log *a, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return aq_format("%s/kernels/%s", a->state, uuid_format(id, text));
}

/* A directory whose command was not noted: a process of the agent was killed in between. */
static void accepted_log_add_directory(struct accepted_log *a, const struct uuid *id)
{
    AQ_CLEANUP(aq_freep) char *kernel = accepted_log_kernel_path(a, id);
    AQ_CLEANUP(aq_freep) char *runs = aq_format("%s/run", kernel);
    int64_t newest = AQ_MAX(disk_worker_newest_attempt(runs), 1);

    if (newest > accepted_log_get(a, id))
        accepted_log_set(a, id, newest);
}

static int accepted_log_add_directories(struct accepted_log *a, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *kernels = aq_format("%s/kernels", a->state);
    DIR *dir = opendir(kernels);
    struct dirent *entry;

    if (!dir)
        return aq_fail_errno(err, "open '%s'", kernels);
    while ((entry = readdir(dir))) {
        struct uuid id;

        if (uuid_parse(entry->d_name, &id) == 0)
            accepted_log_add_directory(a, &id);
    }
    (void)closedir(dir);
    return 0;
}

/* The agent was restarted, not the machine: what has no directory is forgotten. */
static void accepted_log_drop_forgotten(struct accepted_log *a)
{
    for (size_t i = a->attempts.count; i-- > 0;) {
        const struct uuid id = accepted_log_id_at(a, i);
        AQ_CLEANUP(aq_freep) char *kernel = accepted_log_kernel_path(a, &id);

        if (access(kernel, F_OK) < 0)
            accepted_log_set(a, &id, 0);
    }
}

static int accepted_log_conclude(struct accepted_log *a, const struct uuid *id,
                                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *kernel = accepted_log_kernel_path(a, id);
    AQ_CLEANUP(aq_freep) char *run = aq_format("%s/run/%" PRId64, kernel, accepted_log_get(a, id));
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/exit.json", run);
    AQ_CLEANUP(aq_freep) char *reserved = aq_format("%s/exit.tmp", run);
    int r;

    if (exit_file_is_of(run, id))
        return 0;
    exit_file_write(id, MONITOR_LOST, "the machine was restarted", &text);
    r = fs_mkdirs(run, 0700, err);
    if (r == 0) /* into what the monitor has kept for it: the disk may be full */
        r = fs_overwrite(AT_FDCWD, reserved, text.data, text.len, 0600, err);
    if (r == 0 && rename(reserved, path) < 0)
        r = aq_fail_errno(err, "make '%s'", path);
    return r;
}

/* Nothing that was requested before still runs or may be started. */
static int accepted_log_conclude_all(struct accepted_log *a, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(a->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;

    if (a->attempts.count)
        log_warning("the machine was restarted; kernels it ended at most: %zu", a->attempts.count);
    for (size_t i = 0; r == 0 && i < a->attempts.count; i++) {
        const struct uuid id = accepted_log_id_at(a, i);

        r = accepted_log_conclude(a, &id, err);
    }
    if (r == 0 && (fd < 0 || syncfs(fd) < 0))
        r = aq_fail_errno(err, "sync '%s'", a->state);
    return r;
}

int accepted_log_open(const char *state, struct accepted_log **ret, struct aq_error *err)
{
    struct accepted_log *a = aq_alloc(sizeof(*a));
    bool was_reboot = false;
    int r;

    a->fd = -1;
    strbuf_init(&a->noted);
    a->state = aq_strdup(state);
    a->path = aq_format("%s/accepted", state);
    r = accepted_log_read_boot(a->boot, err);
    if (r == 0)
        r = accepted_log_read_file(a, &was_reboot, err);
    if (r == 0)
        r = accepted_log_add_directories(a, err);
    if (r == 0 && was_reboot)
        r = accepted_log_conclude_all(a, err);
    else if (r == 0)
        accepted_log_drop_forgotten(a);
    if (r == 0 && fs_is_out_of_room(-(r = accepted_log_write_anew(a, err)))) {
        log_warning("%s; starts are refused until space is freed", err->text);
        a->is_torn = true;
        r = 0;
    }
    if (r < 0)
        accepted_log_free(a);
    else
        *ret = a;
    return r;
}

void accepted_log_free(struct accepted_log *accepted)
{
    if (!accepted)
        return;
    strbuf_done(&accepted->noted);
    map_done(&accepted->attempts);
    aq_closep(&accepted->fd);
    free(accepted->path);
    free(accepted->state);
    free(accepted);
}
