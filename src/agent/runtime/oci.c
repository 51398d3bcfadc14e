/* SPDX-License-Identifier: Apache-2.0 */
/* oci.c - containers, by an OCI runtime under aliquot-monitor */
#include "agent/runtime/oci.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/runtime/bundle.h"
#include "agent/runtime/monitored.h"
#include "agent/runtime/overlay.h"
#include "agent/runtime/program_file.h"
#include "agent/runtime/runner_client.h"
#include "agent/runtime/sealed.h"
#include "agent/runtime/sync_tool.h"
#include "agent/settings/state_room.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "monitor/protocol.h"

#define RUNNER_INSIDE "/opt/kernel/aliquot-runner"
#define WHY_MAX 140

#define OCI_HOME "/home/work"

struct oci_runtime {
    struct monitored_runtime monitored;
    struct oci_host host;
    char *runner_path;    /* on the node */
    char *program;        /* crun or runc, absolute */
    struct sealed sealed; /* the same */
    char *version;        /* "crun 1.8.1" */
    bool is_runc;
};

static struct oci_runtime *oci_of(const struct runtime *rt)
{
    return AQ_CONTAINER_OF(rt, struct oci_runtime, monitored.super);
}

const char *runtime_oci_monitor(const struct runtime *rt)
{
    return oci_of(rt)->monitored.monitor_path;
}

const char *runtime_oci_version(const struct runtime *rt)
{
    return oci_of(rt)->version;
}

const struct oci_host *runtime_oci_host(const struct runtime *rt)
{
    return &oci_of(rt)->host;
}

/* ---- what is written for one container ---- */

/* All that oci_start() decides for a container. */
struct oci_draft {
    struct oci_runtime *rt;
    const struct runtime_spec *spec;
    const struct container_spec *container;
    struct arena arena;
    struct bundle_host bundle;
    const char *const *device_rules;
    char *files; /* directory of the runtime's files about it */
    char *cgroup;
};

static void oci_draft_done(struct oci_draft *d)
{
    free(d->files);
    free(d->cgroup);
    arena_done(&d->arena);
}

static const char *oci_print(struct arena *arena, const char *fmt, ...) AQ_PRINTF(2, 3);

static const char *oci_print(struct arena *arena, const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&text, fmt, args);
    va_end(args);
    return arena_strdup(arena, text.data);
}

static int oci_draft_init(struct oci_draft *d, struct oci_runtime *rt,
                          const struct runtime_spec *spec, struct aq_error *err)
{
    const struct container_spec *c = spec->container;
    bool is_mapped = oci_host_can_map(&rt->host, c->layers, c->layer_count);

    *d = (struct oci_draft){ .rt = rt, .spec = spec, .container = c };
    if (c->is_node && (!is_mapped || c->uid == 0 || c->gid == 0))
        return aq_fail_as(
            err, ENOTSUP, "no-containers", "image",
            "the node's own files are shown only to users of a user namespace, whose "
            "file system maps them, and not to root or its group: see 'aliquot doctor containers'");
    d->files = oci_host_kernel_path(&rt->host, c->id, "");
    if (rt->is_runc && rt->host.cgroups.count) {
        AQ_CLEANUP(aq_freep) char *inner = aq_format("%s/container", c->id);

        d->bundle.cgroup = d->cgroup = cgroup_path(&rt->host.cgroups, inner);
    }
    d->bundle.stage = rt->host.stage;
    d->bundle.seccomp = rt->host.seccomp;
    d->bundle.filter = rt->is_runc ? NULL : rt->host.filter;
    d->bundle.memlock_max = rt->host.memlock_max;
    d->bundle.id_base = is_mapped ? oci_host_id_base(&rt->host, c->id) : 0;
    d->bundle.id_count = is_mapped ? ID_RANGE : 0;
    d->device_rules = bundle_device_rules(c, &d->arena, err);
    return d->device_rules ? 0 : -err->code;
}

static size_t oci_put_option(const char **argv, const char *name, const char *value)
{
    if (!value)
        return 0;
    argv[0] = name;
    argv[1] = value;
    return 2;
}

/* Process 1 and what it is to start. */
static const char *const *oci_runner_argv(struct oci_draft *d)
{
    const struct container_spec *c = d->container;
    AQ_CLEANUP(strbuf_donep) struct strbuf groups = STRBUF_INIT;
    size_t count = 0, n = 0;
    const char **argv;

    while (d->spec->argv[count])
        count++;
    argv = arena_array(&d->arena, count + 40, sizeof(*argv));
    argv[n++] = RUNNER_INSIDE;
    argv[n++] = "--socket";
    argv[n++] = "3";
    argv[n++] = "--report";
    argv[n++] = "4";
    argv[n++] = "--uid";
    argv[n++] = oci_print(&d->arena, "%u", (unsigned)c->uid);
    argv[n++] = "--gid";
    argv[n++] = oci_print(&d->arena, "%u", (unsigned)c->gid);
    for (size_t i = 0; i < c->group_count; i++)
        strbuf_addf(&groups, "%s%u", i ? "," : "", (unsigned)c->groups[i]);
    if (groups.len) {
        argv[n++] = "--groups";
        argv[n++] = arena_strdup(&d->arena, groups.data);
    }
    argv[n++] = "--cwd";
    argv[n++] = d->spec->cwd;
    n += oci_put_option(argv + n, "--bootstrap", d->spec->has_bootstrap ? BOOTSTRAP_FD_TEXT : NULL);
    n += oci_put_option(argv + n, "--output", d->spec->output);
    n += oci_put_option(argv + n, "--check", c->check);
    n += oci_put_option(argv + n, "--home-from", c->home_from);
    n += oci_put_option(argv + n, "--dotfiles", c->dotfiles);
    n += oci_put_option(argv + n, "--home", c->home_from || c->dotfiles ? "/home/work" : NULL);
    n += oci_put_option(argv + n, "--ssh", c->ssh);
    n += oci_put_option(argv + n, "--ssh-port",
                        c->ssh_port ? oci_print(&d->arena, "%u", (unsigned)c->ssh_port) : NULL);
    n += oci_put_option(argv + n, "--linger", c->network ? "2" : NULL);
    n += oci_put_option(argv + n, "--ssh-for", c->is_for_files ? "files" : NULL);
    n += oci_put_option(argv + n, "--ssh-idle",
                        c->ssh_idle_sec ? oci_print(&d->arena, "%lld", (long long)c->ssh_idle_sec)
                                        : NULL);
    if (d->spec->tty) {
        argv[n++] = "--tty";
        argv[n++] = oci_print(&d->arena, "%ux%u", d->spec->rows ? d->spec->rows : 24u,
                              d->spec->cols ? d->spec->cols : 80u);
    }
    argv[n++] = "--";
    memcpy(argv + n, d->spec->argv, count * sizeof(*argv));
    return argv;
}

/* Set before the runtime starts: from within a user namespace no limit can be raised. */
static uint64_t oci_files_max(const struct oci_draft *d)
{
    uint64_t most = d->rt->host.files_max;

    return d->spec->files_max ? AQ_MIN(d->spec->files_max, most) : most;
}

/* Hooks read config.json as the container's root: where there are some, it is
 * in a directory that nobody else but the node's root gets into.
 */
static const char *oci_bundle_directory(const struct oci_draft *d)
{
    return d->container->hook_count ? d->files : d->spec->directory;
}

static int oci_let_hooks_read(const struct oci_draft *d, const char *path, struct aq_error *err)
{
    gid_t group = (gid_t)d->bundle.id_base;

    if (d->container->hook_count == 0)
        return 0;
    if (chown(d->files, (uid_t)-1, group) < 0 || chmod(d->files, 0710) < 0
        || chown(path, (uid_t)-1, group) < 0 || chmod(path, 0640) < 0)
        return aq_fail_errno(err, "open '%s' to hooks", path);
    return 0;
}

static int oci_write_config(struct oci_draft *d, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/config.json", oci_bundle_directory(d));
    struct container_spec container = *d->container;
    struct runtime_spec spec = *d->spec;
    struct container_mount *mounts = arena_array(&d->arena, container.mount_count + 1,
                                                 sizeof(*mounts));
    int r;

    spec.argv = oci_runner_argv(d);
    spec.files_max = oci_files_max(d);
    if (container.mount_count)
        memcpy(mounts, container.mounts, container.mount_count * sizeof(*mounts));
    mounts[container.mount_count++] = (struct container_mount){ .source = d->rt->runner_path,
                                                                .target = RUNNER_INSIDE };
    container.mounts = mounts;
    bundle_write(&spec, &container, &d->bundle, d->device_rules, &text);
    r = fs_overwrite(AT_FDCWD, path, text.data, text.len, 0600, err);
    return r < 0 ? r : oci_let_hooks_read(d, path, err);
}

/* ---- the monitor's program: the OCI runtime ---- */

static void oci_put(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "%s=%s", key, value);
    strbuf_add(out, "", 1);
}

static void oci_put_number(struct strbuf *out, const char *key, uint64_t value)
{
    strbuf_addf(out, "%s=%" PRIu64, key, value);
    strbuf_add(out, "", 1);
}

/* What runc allows its containers unasked has to be allowed above them. */
static const char *const *oci_add_rule(struct oci_draft *d, const char *rule)
{
    size_t count = 0;
    const char **rules;

    while (d->device_rules[count])
        count++;
    rules = arena_array(&d->arena, count + 2, sizeof(*rules));
    memcpy(rules, d->device_rules, count * sizeof(*rules));
    rules[count] = rule;
    return rules;
}

static void oci_put_limit(struct strbuf *out, const char *key, uint64_t value)
{
    if (value == RLIM_INFINITY)
        oci_put(out, key, "unlimited");
    else
        oci_put_number(out, key, value);
}

static void oci_put_limits(struct oci_draft *d, struct strbuf *out)
{
    const struct container_spec *c = d->container;
    const char *const *devices = d->rt->is_runc ? oci_add_rule(d, "c 10:200 rwm") : d->device_rules;
    const struct cgroup_limits limits = { .cpus = c->cpus,
                                          .cpu_micro = c->cpu_micro,
                                          .memory_bytes = (int64_t)d->spec->memory_bytes,
                                          .pids_max = d->spec->processes_max,
                                          .devices = devices };
    const struct cgroup_hierarchy *v2 = cgroup_find_v2(&d->rt->host.cgroups);

    /* crun refuses nodes where both versions are mounted and have controllers */
    if (v2 && d->rt->host.cgroups.count > 1 && !d->rt->is_runc)
        oci_put(out, "hide", v2->mount);
    if (d->rt->is_runc)
        oci_put_number(out, "outside", 1);
    cgroup_plan(&d->rt->host.cgroups, c->id, &limits, out);
}

/* Where a node has what is its users', and what they left for each other. */
static const char *const oci_private[] = { "/home", "/media", "/mnt", "/srv", "/tmp", "/var/tmp" };

/* What the runtime mounts there is a folder if its source is one. Those in /dev are in a tmpfs. */
static void oci_put_mount_point(struct strbuf *out, const char *target, const char *source)
{
    struct stat st;

    if (target[0] == '/' && strncmp(target, "/dev/", 5) != 0)
        oci_put(out,
                stat(source, &st) == 0 && S_ISDIR(st.st_mode) ? "mounted_folder" : "mounted_file",
                target);
}

static void oci_put_mount_points(const struct oci_draft *d, struct strbuf *out)
{
    static const char *const folders[] = { "/proc", "/dev", "/sys", OCI_HOME };
    const struct container_spec *c = d->container;

    for (size_t i = 0; i < AQ_COUNT(folders); i++)
        oci_put(out, "mounted_folder", folders[i]);
    oci_put(out, "mounted_file", RUNNER_INSIDE);
    for (size_t i = 0; i < c->folder_count; i++)
        oci_put(out, "mounted_folder", c->folders[i].target);
    for (size_t i = 0; i < c->mount_count; i++)
        oci_put_mount_point(out, c->mounts[i].target, c->mounts[i].source);
    for (size_t i = 0; i < c->device_count; i++)
        oci_put_mount_point(out, c->devices[i].target, c->devices[i].source);
}

static void oci_put_folder(struct strbuf *out, const struct volume_mount *folder)
{
    oci_put(out, "mount_volume", folder->volume);
    oci_put(out, "mount_folder", folder->folder);
    oci_put(out, "mount_path", folder->path);
    oci_put(out, "mount_name", folder->name);
    oci_put(out, "mount_target", folder->target);
    oci_put_number(out, "mount_writable", folder->may_write);
}

static void oci_put_rootfs(struct oci_draft *d, struct strbuf *out)
{
    const struct container_spec *c = d->container;
    const struct oci_host *host = &d->rt->host;

    oci_put(out, "stage", host->stage);
    for (size_t i = 0; i < c->layer_count; i++)
        oci_put(out, "layer", c->layers[i]);
    for (size_t i = 0; c->is_node && i < AQ_COUNT(oci_private); i++)
        oci_put(out, "empty", oci_private[i]);
    oci_put(out, "scratch", c->scratch);
    if (host->scratch_template)
        oci_put(out, "scratch_template", host->scratch_template);
    oci_put_number(out, "id_base", d->bundle.id_base);
    oci_put_number(out, "id_count", c->is_node ? 1 : d->bundle.id_count);
    oci_put_mount_points(d, out);
    for (size_t i = 0; i < c->folder_count; i++)
        oci_put_folder(out, &c->folders[i]);
    oci_put(out, "home", OCI_HOME);
    oci_put_number(out, "home_uid", c->uid);
    oci_put_number(out, "home_gid", c->gid);
    oci_put_number(out, "runner", 1);
    oci_put(out, "runner_file", d->rt->runner_path);
    oci_put_number(out, "relays", d->rt->is_runc);
    if (c->uses_host_network)
        oci_put_number(out, "host_network", 1);
    oci_put(out, "remove", d->files);
}

static int oci_write_program(struct oci_draft *d, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct oci_runtime *rt = d->rt;
    const char *id = d->container->id;
    /* both are removed with the container, whichever process dies (rootfs.h, runner_link.h) */
    const char *argv[] = { rt->program,
                           "--root",
                           oci_print(&d->arena, "%s/runtime", rt->host.stage),
                           "--log",
                           "/proc/self/fd/5",
                           "run",
                           "--preserve-fds",
                           "2",
                           "--bundle",
                           oci_bundle_directory(d),
                           id,
                           NULL,
                           NULL };
    const char *envp[] = { oci_print(&d->arena, "ALIQUOT_KERNEL_ID=%s", id),
                           "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
    struct runtime_spec outer = *d->spec;

    if (!rt->is_runc) {
        memmove(argv + 2, argv + 1, (AQ_COUNT(argv) - 2) * sizeof(*argv));
        argv[1] = "--cgroup-manager=disabled"; /* the monitor's cgroups are those */
    }
    outer.argv = argv;
    outer.envp = envp;
    outer.cwd = "/";
    outer.output = NULL; /* the runner's */
    outer.tty = outer.has_ids = false;
    outer.memory_bytes = outer.processes_max = 0;
    outer.files_max = oci_files_max(d);
    program_file_text(&outer, &text);
    oci_put_limit(&text, "rlimit_memlock", rt->host.memlock_max);
    oci_put_rootfs(d, &text);
    oci_put_limits(d, &text);
    return program_file_put(d->spec->directory, &text, err);
}

int oci_write(struct oci_runtime *rt, const struct runtime_spec *spec, struct aq_error *err)
{
    AQ_CLEANUP(oci_draft_done) struct oci_draft draft;
    int r = oci_draft_init(&draft, rt, spec, err);

    if (r == 0 && mkdir(draft.files, 0700) < 0 && errno != EEXIST)
        r = aq_fail_errno(err, "make '%s'", draft.files);
    AQ_FAULT("agent.bundle.before");
    if (r == 0)
        r = oci_write_config(&draft, err);
    AQ_FAULT("agent.bundle.written");
    return r < 0 ? r : oci_write_program(&draft, err);
}

/* ---- the vtable ---- */

static int oci_describe(struct runtime *runtime, const struct runtime_spec *spec,
                        struct strbuf *out, struct aq_error *err)
{
    (void)runtime;
    (void)spec;
    (void)out;
    return aq_fail(err, ENOTSUP, "a container is described when its image is there");
}

static int oci_start(struct runtime *runtime, const struct runtime_spec *spec,
                     const struct runtime_events *events, void *data, struct runtime_kernel **ret,
                     struct aq_error *err)
{
    struct oci_runtime *rt = oci_of(runtime);
    int r = oci_write(rt, spec, err);

    rt->monitored.program = sealed_get(&rt->sealed, rt->program);
    if (r == 0)
        monitored_open(runtime, spec->directory, spec->kept, events, data, ret);
    return r;
}

void runtime_oci_sweep(struct runtime *rt, bool (*is_known)(void *data, const struct uuid *kernel),
                       void *data)
{
    oci_host_sweep(&oci_of(rt)->host, is_known, data);
}

static void oci_done(struct oci_runtime *rt)
{
    oci_host_done(&rt->host);
    monitored_done(&rt->monitored);
    sealed_done(&rt->sealed);
    free(rt->runner_path);
    free(rt->program);
    free(rt->version);
    free(rt);
}

static void oci_free_runtime(struct runtime *runtime)
{
    oci_done(oci_of(runtime));
}

/* The terminal is the runner's, to whose socket there is no
 * way but through the directory.
 */
static const struct runtime_ops oci_ops = {
    .name = "container",
    .describe = oci_describe,
    .start = oci_start,
    .adopt = monitored_adopt,
    .terminate = monitored_terminate,
    .set_lease = monitored_set_lease,
    .signal = monitored_signal,
    .release = monitored_release,
    .attach = monitored_attach,
    .exec = monitored_exec,
    .feed = monitored_feed,
    .pid = monitored_pid,
    .free = oci_free_runtime,
};

/* ---- which one ---- */

/* "crun version 1.8.1\n..." */
static char *oci_ask_version(const char *program, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *argv[] = { program, "--version", NULL };
    const char *at;

    if (tool_run(argv, &text, NULL) < 0 || !(at = strstr(text.data, "version ")))
        return aq_strdup(name);
    at += strlen("version ");
    return aq_format("%s %.*s", name, (int)strcspn(at, " \n"), at);
}

/* A crun that does not take our filter makes its own. */
static int runtime_oci_probe(struct oci_runtime *rt, const struct settings *settings,
                             struct aq_error *err)
{
    int r = oci_probe(rt, settings, err);

    if (r == 0 || rt->is_runc || !rt->host.filter)
        return r;
    free(AQ_TAKE(rt->host.filter));
    return oci_probe(rt, settings, err);
}

static int oci_try_one(struct oci_runtime *rt, const char *name, const struct settings *settings,
                       struct aq_error *err)
{
    const char *slash = strrchr(name, '/');

    free(rt->program);
    free(rt->version);
    rt->version = NULL;
    rt->program = tool_find(name);
    if (!rt->program)
        return aq_fail(err, ENOENT, "it is not installed");
    rt->is_runc = strncmp(slash ? slash + 1 : name, "runc", 4) == 0;
    rt->version = oci_ask_version(rt->program, slash ? slash + 1 : name);
    return runtime_oci_probe(rt, settings, err);
}

/* The reason is at the end of a text: its last words, as many as fit twice into an error. */
static const char *oci_end_of(const char *text)
{
    size_t len = strlen(text);
    const char *gap = len > WHY_MAX ? strchr(text + len - WHY_MAX, ' ') : NULL;

    return gap ? gap + 1 : text;
}

static int oci_choose(struct oci_runtime *rt, const struct settings *settings, struct aq_error *err)
{
    const char *candidates[] = { "crun", "runc" };
    bool is_open = strcmp(settings->oci_runtime, "auto") == 0;
    struct aq_error why[AQ_COUNT(candidates)] = { { 0 } };

    if (!is_open && oci_try_one(rt, settings->oci_runtime, settings, &why[0]) < 0)
        return aq_fail(err, ENOTSUP, "%s: %s", settings->oci_runtime, why[0].text);
    for (size_t i = 0; is_open && i < AQ_COUNT(candidates); i++) {
        if (oci_try_one(rt, candidates[i], settings, &why[i]) == 0)
            return 0;
        log_warning("containers by %s: %s", candidates[i], why[i].text);
    }
    return is_open ? aq_fail(err, ENOTSUP, "crun: %s; runc: %s", oci_end_of(why[0].text),
                             oci_end_of(why[1].text))
                   : 0;
}

int runtime_new_oci(uv_loop_t *loop, const struct settings *settings, const char *monitor_path,
                    const char *runner_path, struct runtime **ret, struct aq_error *err)
{
    struct oci_runtime *rt = NULL;
    int r;

    if (geteuid() != 0)
        return aq_fail(err, ENOTSUP, "the agent is not run by root");
    if (access(runner_path, X_OK) < 0)
        return aq_fail(err, ENOTSUP, "the runner '%s' cannot be executed", runner_path);
    rt = aq_alloc(sizeof(*rt));
    rt->host.users = -1;
    rt->sealed = (struct sealed)SEALED_NONE;
    rt->monitored.super.ops = &oci_ops;
    rt->monitored.has_containers = true;
    rt->runner_path = aq_strdup(runner_path);
    r = monitored_init(&rt->monitored, loop, monitor_path, err);
    if (r == 0)
        r = oci_host_init(&rt->host, settings, err);
    if (r == 0 && !rt->host.scratch_template) /* then it is in the state directory */
        r = overlay_check(
            state_room_is_short(settings->state, NULL) ? settings->run : settings->state, err);
    if (r == 0)
        r = oci_choose(rt, settings, err);
    if (r < 0) {
        oci_done(rt);
        return r;
    }
    *ret = &rt->monitored.super;
    return 0;
}
