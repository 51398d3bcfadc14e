/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - parses the file 'program' of a run directory (protocol.h) */
#include "monitor/program.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/fs.h"
#include "base/vec.h"

#define PROGRAM_MAX (4u << 20)
#define MARKER "ALIQUOT_KERNEL_ID="

static const struct {
    const char *name;
    int resource;
} rlimits[] = {
    { "as", RLIMIT_AS },       { "core", RLIMIT_CORE },       { "data", RLIMIT_DATA },
    { "fsize", RLIMIT_FSIZE }, { "memlock", RLIMIT_MEMLOCK }, { "nofile", RLIMIT_NOFILE },
    { "nproc", RLIMIT_NPROC }, { "stack", RLIMIT_STACK },
};

static int monitor_program_parse_number(const char *key, const char *text, uint64_t max,
                                        uint64_t *ret, struct aq_error *err)
{
    unsigned long long value;
    char *end;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || value > max)
        return aq_fail_field(err, EINVAL, key, "program: %s: '%s' is not a number up to %llu", key,
                             text, (unsigned long long)max);
    *ret = value;
    return 0;
}

static int monitor_program_add_text(char ***list, size_t *count, size_t *cap, char *text,
                                    struct aq_error *err)
{
    if (!vec_grow(list, cap, *count + 2, sizeof(**list)))
        return aq_fail_oom(err);
    (*list)[(*count)++] = text;
    (*list)[*count] = NULL;
    return 0;
}

/* The keys of a container that may come several times; NULL = it is none. */
static struct texts *program_find_texts(struct sandbox *s, const char *key)
{
    return strcmp(key, "cgroup") == 0           ? &s->cgroups
           : strcmp(key, "limit") == 0          ? &s->limits
           : strcmp(key, "device") == 0         ? &s->devices
           : strcmp(key, "layer") == 0          ? &s->layers
           : strcmp(key, "hide") == 0           ? &s->hidden
           : strcmp(key, "empty") == 0          ? &s->empty
           : strcmp(key, "mounted_file") == 0   ? &s->files
           : strcmp(key, "mounted_folder") == 0 ? &s->folders
           : strcmp(key, "remove") == 0         ? &s->leftovers
                                                : NULL;
}

/* And those that come once. */
static const char **program_find_path(struct sandbox *s, const char *key)
{
    return strcmp(key, "stage") == 0              ? &s->stage
           : strcmp(key, "scratch") == 0          ? &s->scratch
           : strcmp(key, "scratch_template") == 0 ? &s->scratch_template
           : strcmp(key, "home") == 0             ? &s->home
           : strcmp(key, "runner_file") == 0      ? &s->runner
           : strcmp(key, "pid_file") == 0         ? &s->unused
           : strcmp(key, "runtime_log") == 0      ? &s->unused
                                                  : NULL;
}

/* 1 if the key is one of a container's, 0 if not, or -errno. */
static int program_parse_sandbox(struct sandbox *s, const char *key, char *value,
                                 struct aq_error *err)
{
    struct texts *texts = program_find_texts(s, key);
    const char **path = program_find_path(s, key);
    int r;

    if (!texts && !path)
        return 0;
    if (value[0] != '/' && texts != &s->devices)
        return aq_fail_field(err, EINVAL, key, "program: %s: '%s' is no absolute path", key, value);
    if (path) {
        *path = value;
        return 1;
    }
    r = monitor_program_add_text(&texts->items, &texts->count, &texts->cap, value, err);
    return r < 0 ? r : 1;
}

/* 1 if the key is one of a mount's, 0 if not, or -errno. The first of them begins a mount. */
static int program_parse_mount(struct sandbox *s, const char *key, const char *value,
                               struct aq_error *err)
{
    struct volume_mount *mount = s->volume_mount_count
                                     ? &s->volume_mounts[s->volume_mount_count - 1]
                                     : NULL;
    const char *name = key + strlen("mount_");

    if (strncmp(key, "mount_", strlen("mount_")) != 0)
        return 0;
    if (strcmp(name, "volume") == 0) {
        if (!vec_grow(&s->volume_mounts, &s->volume_mount_cap, s->volume_mount_count + 1,
                      sizeof(*s->volume_mounts)))
            return aq_fail_oom(err);
        s->volume_mounts[s->volume_mount_count++] = (struct volume_mount){
            .volume = value, .folder = "", .path = "", .name = "", .target = "/"
        };
        return 1;
    }
    if (!mount)
        return aq_fail_field(err, EINVAL, key, "program: '%s' comes before mount_volume", key);
    if (strcmp(name, "folder") == 0)
        mount->folder = value;
    else if (strcmp(name, "path") == 0)
        mount->path = value;
    else if (strcmp(name, "name") == 0)
        mount->name = value;
    else if (strcmp(name, "target") == 0)
        mount->target = value;
    else if (strcmp(name, "writable") == 0)
        mount->may_write = strcmp(value, "1") == 0;
    else
        return 0;
    return 1;
}

static int program_parse_rlimit(struct program *p, const char *key, const char *value,
                                struct aq_error *err)
{
    uint64_t number = 0;
    int r;

    for (size_t i = 0; i < AQ_COUNT(rlimits); i++) {
        if (strcmp(key + strlen("rlimit_"), rlimits[i].name) != 0)
            continue;
        if (p->limit_count == AQ_COUNT(p->limits))
            break;
        r = strcmp(value, "unlimited") == 0
                ? (int)(number = RLIM_INFINITY, 0)
                : monitor_program_parse_number(key, value, INT64_MAX, &number, err);
        if (r < 0)
            return r;
        p->limits[p->limit_count].resource = rlimits[i].resource;
        p->limits[p->limit_count++].value = (struct rlimit){ number, number };
        return 0;
    }
    return aq_fail_field(err, EINVAL, key, "program: '%s' is no limit or given too often", key);
}

/* The keys whose value is a number: where it goes. */
static int monitor_program_set_number(struct program *p, const char *key, uint64_t n)
{
    if (strcmp(key, "uid") == 0) {
        p->uid = (uid_t)n;
        p->has_uid = true;
    } else if (strcmp(key, "gid") == 0) {
        p->gid = (gid_t)n;
        p->has_gid = true;
    } else if (strcmp(key, "tty") == 0) {
        p->tty = n != 0;
    } else if (strcmp(key, "input") == 0) {
        p->input_sec = (int64_t)AQ_MIN(n, (uint64_t)INT32_MAX);
    } else if (strcmp(key, "rows") == 0) {
        p->rows = (uint16_t)AQ_MIN(n, UINT16_MAX);
    } else if (strcmp(key, "cols") == 0) {
        p->cols = (uint16_t)AQ_MIN(n, UINT16_MAX);
    } else if (strcmp(key, "log_max") == 0) {
        p->log_max = n;
    } else if (strcmp(key, "timeout_usec") == 0) {
        p->timeout_usec = (int64_t)n;
    } else if (strcmp(key, "grace_usec") == 0) {
        p->grace_usec = (int64_t)n;
    } else if (strcmp(key, "warn_signal") == 0) {
        p->warn_signal = (int)AQ_MIN(n, (uint64_t)NSIG - 1);
    } else if (strcmp(key, "warn_usec") == 0) {
        p->warn_usec = (int64_t)n;
    } else if (strcmp(key, "notice_signal") == 0) {
        p->notice_signal = (int)AQ_MIN(n, (uint64_t)NSIG - 1);
    } else if (strcmp(key, "notice_usec") == 0) {
        p->notice_usec = (int64_t)n;
    } else if (strcmp(key, "bootstrap_usec") == 0) {
        p->has_bootstrap = true;
        p->bootstrap_usec = (int64_t)n;
    } else if (strcmp(key, "runner") == 0) {
        p->sandbox.has_runner = n != 0;
    } else if (strcmp(key, "relays") == 0) {
        p->sandbox.relays = n != 0;
    } else if (strcmp(key, "host_network") == 0) {
        p->sandbox.uses_host_network = n != 0;
    } else if (strcmp(key, "outside") == 0) {
        p->sandbox.is_outside = n != 0;
    } else if (strcmp(key, "home_uid") == 0) {
        p->sandbox.home_uid = (uint32_t)n;
    } else if (strcmp(key, "home_gid") == 0) {
        p->sandbox.home_gid = (uint32_t)n;
    } else if (strcmp(key, "id_base") == 0) {
        p->sandbox.id_base = (uint32_t)n;
    } else if (strcmp(key, "id_count") == 0) {
        p->sandbox.id_count = (uint32_t)n;
    } else {
        return -ENOENT;
    }
    return 0;
}

static int program_parse_entry(struct program *p, char *key, char *value, struct aq_error *err)
{
    bool is_id = strcmp(key, "uid") == 0 || strcmp(key, "gid") == 0 || strncmp(key, "id_", 3) == 0
                 || strncmp(key, "home_", 5) == 0;
    uint64_t number = 0;
    int r;

    if (strcmp(key, "arg") == 0)
        return monitor_program_add_text(&p->argv, &p->argc, &p->argv_cap, value, err);
    if (strcmp(key, "env") == 0)
        return monitor_program_add_text(&p->envp, &p->envc, &p->envp_cap, value, err);
    if (strcmp(key, "cwd") == 0) {
        p->cwd = value;
        return 0;
    }
    if (strcmp(key, "output") == 0) {
        p->output = value;
        return value[0] == '/'
                   ? 0
                   : aq_fail_field(err, EINVAL, key, "program: %s: '%s' is not an absolute path",
                                   key, value);
    }
    if (strncmp(key, "rlimit_", strlen("rlimit_")) == 0)
        return program_parse_rlimit(p, key, value, err);
    r = program_parse_mount(&p->sandbox, key, value, err);
    if (r == 0)
        r = program_parse_sandbox(&p->sandbox, key, value, err);
    if (r != 0)
        return r < 0 ? r : 0;
    r = monitor_program_parse_number(key, value, is_id ? UINT32_MAX - 1 : INT64_MAX, &number, err);
    if (r == 0 && monitor_program_set_number(p, key, number) < 0)
        return aq_fail_field(err, EINVAL, key, "program: unknown key '%s'", key);
    return r;
}

static int program_check_sandbox(const struct sandbox *s, struct aq_error *err)
{
    if (!sandbox_is_used(s))
        return 0;
    if (!s->scratch)
        return aq_fail_field(err, EINVAL, "scratch", "program: a container needs scratch space");
    if (s->layers.count == 0)
        return aq_fail_field(err, EINVAL, "layer", "program: a container needs a layer");
    return 0;
}

int program_parse(struct strbuf *text, struct program *ret, struct aq_error *err)
{
    struct program p = {
        .log_max = 10 << 20, .grace_usec = 10000000, .rows = 24, .cols = 80, .text = *text
    };
    int r = 0;

    strbuf_init(text);
    if (p.text.len && p.text.data[p.text.len - 1] != '\0')
        r = aq_fail(err, EINVAL, "program: the last string has no end");
    for (size_t at = 0; r == 0 && at < p.text.len; at += strlen(p.text.data + at) + 1) {
        char *key = p.text.data + at, *equals = strchr(key, '=');

        if (!equals) {
            r = aq_fail(err, EINVAL, "program: '%.40s' is no key=value", key);
            break;
        }
        *equals = '\0';
        r = program_parse_entry(&p, key, equals + 1, err);
        *equals = '='; /* the step to the next string needs the whole length */
    }
    if (r == 0 && (p.argc == 0 || p.argv[0][0] != '/'))
        r = aq_fail_field(err, EINVAL, "arg", "program: the first arg must be an absolute path");
    if (r == 0 && !p.envp)
        r = aq_fail_field(err, EINVAL, "env", "program: there must be an environment");
    if (r == 0)
        r = program_check_sandbox(&p.sandbox, err);
    if (r < 0) {
        program_done(&p);
        return r;
    }
    *ret = p;
    return 0;
}

int program_read(int directory, struct program *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(directory, "program", PROGRAM_MAX, &text, err);

    if (r == -ENOENT) /* a monitor before us was about to start it, or did */
        r = fs_read(directory, "started", PROGRAM_MAX, &text, err);
    return r < 0 ? r : program_parse(&text, ret, err);
}

void program_done(struct program *program)
{
    struct sandbox *s = &program->sandbox;
    struct texts *lists[] = { &s->cgroups, &s->limits, &s->devices, &s->layers,   &s->hidden,
                              &s->empty,   &s->files,  &s->folders, &s->leftovers };

    for (size_t i = 0; i < AQ_COUNT(lists); i++)
        free(lists[i]->items);
    free(s->volume_mounts);
    free(program->argv);
    free(program->envp);
    strbuf_done(&program->text);
    *program = (struct program){ .text = STRBUF_INIT };
}

const char *program_kernel_id(const struct program *program)
{
    const char *marker = program_marker(program);

    return marker ? marker + strlen(MARKER) : NULL;
}

const char *program_marker(const struct program *program)
{
    for (size_t i = 0; i < program->envc; i++)
        if (strncmp(program->envp[i], MARKER, strlen(MARKER)) == 0)
            return program->envp[i];
    return NULL;
}
