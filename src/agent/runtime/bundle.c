/* SPDX-License-Identifier: Apache-2.0 */
/* bundle.c - writes config.json of an OCI bundle */
#include "agent/runtime/bundle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "agent/runtime/seccomp_filter.h"
#include "base/jsonw.h"
#include "monitor/volume_mounts.h"
#include "transfer/volume_layout.h"

#define SHM_BYTES (INT64_C(64) << 20)

/* What the runner needs to set the program up, and package managers to
 * install; programs themselves run as a user who has none of it.
 */
const char *const bundle_capabilities[] = {
    "CAP_CHOWN",   "CAP_DAC_OVERRIDE",     "CAP_FOWNER",     "CAP_FSETID",
    "CAP_KILL",    "CAP_NET_BIND_SERVICE", "CAP_SETFCAP",    "CAP_SETGID",
    "CAP_SETPCAP", "CAP_SETUID",           "CAP_SYS_CHROOT", NULL,
};

static const char *const common_devices[] = {
    "c *:* m",   "b *:* m", /* a node that may be made need not be usable */
    "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm",   "c 1:9 rwm", /* null … urandom */
    "c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm",              /* terminals */
};

const char *const *bundle_device_rules(const struct container_spec *container, struct arena *arena,
                                       struct aq_error *err)
{
    size_t count = AQ_COUNT(common_devices);
    const char **rules = arena_array(arena, count + container->device_count + 1, sizeof(*rules));

    memcpy(rules, common_devices, sizeof(common_devices));
    for (size_t i = 0; i < container->device_count; i++) {
        const struct container_device *device = &container->devices[i];
        char text[64];
        struct stat st;

        if (stat(device->source, &st) < 0)
            return (void)aq_fail_errno(err, "device '%s'", device->source), NULL;
        if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
            return (void)aq_fail(err, EINVAL, "'%s' is no device", device->source), NULL;
        (void)snprintf(text, sizeof(text), "%c %u:%u %s%s%s", S_ISCHR(st.st_mode) ? 'c' : 'b',
                       major(st.st_rdev), minor(st.st_rdev), device->may_read ? "r" : "",
                       device->may_write ? "w" : "", device->may_mknod ? "m" : "");
        rules[count++] = arena_strdup(arena, text);
    }
    return rules;
}

/* ---- writing ---- */

static void bundle_write_list(struct jsonw *w, const char *key, const char *const *texts)
{
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (; texts && *texts; texts++)
        jsonw_str(w, *texts);
    jsonw_array_end(w);
}

static void bundle_write_rlimit(struct jsonw *w, const char *type, uint64_t value)
{
    char number[24]; /* JSON's integers of ours are signed */
    int len = snprintf(number, sizeof(number), "%" PRIu64, value);

    jsonw_object_begin(w);
    jsonw_member_str(w, "type", type);
    jsonw_key(w, "hard");
    jsonw_raw(w, number, (size_t)len);
    jsonw_key(w, "soft");
    jsonw_raw(w, number, (size_t)len);
    jsonw_object_end(w);
}

/* The container's root must not have the ports of the node that are for its root alone. */
static void bundle_write_capabilities(struct jsonw *w, const char *set, bool uses_host_network)
{
    jsonw_key(w, set);
    jsonw_array_begin(w);
    for (const char *const *name = bundle_capabilities; *name; name++)
        if (!uses_host_network || strcmp(*name, "CAP_NET_BIND_SERVICE") != 0)
            jsonw_str(w, *name);
    jsonw_array_end(w);
}

static void bundle_write_process(struct jsonw *w, const struct runtime_spec *spec,
                                 const struct container_spec *c, const struct bundle_host *host)
{
    static const char *const sets[] = { "bounding", "effective", "permitted" };

    jsonw_object_begin(w);
    jsonw_member_bool(w, "terminal", false);
    jsonw_key(w, "user");
    jsonw_object_begin(w);
    jsonw_member_int(w, "uid", 0);
    jsonw_member_int(w, "gid", 0);
    jsonw_object_end(w);
    bundle_write_list(w, "args", spec->argv);
    bundle_write_list(w, "env", spec->envp);
    jsonw_member_str(w, "cwd", "/");
    jsonw_key(w, "capabilities");
    jsonw_object_begin(w);
    for (size_t i = 0; i < AQ_COUNT(sets); i++)
        bundle_write_capabilities(w, sets[i], c->uses_host_network);
    jsonw_object_end(w);
    jsonw_key(w, "rlimits");
    jsonw_array_begin(w);
    bundle_write_rlimit(w, "RLIMIT_NOFILE", spec->files_max);
    bundle_write_rlimit(w, "RLIMIT_MEMLOCK", host->memlock_max);
    bundle_write_rlimit(w, "RLIMIT_CORE", 0);
    jsonw_array_end(w);
    jsonw_member_bool(w, "noNewPrivileges", true);
    jsonw_member_int(w, "oomScoreAdj", 0);
    jsonw_object_end(w);
}

/* 'options' are separated by blanks. */
static void bundle_write_mount(struct jsonw *w, const char *target, const char *type,
                               const char *source, const char *options)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "destination", target);
    jsonw_member_str(w, "type", type);
    jsonw_member_str(w, "source", source);
    jsonw_key(w, "options");
    jsonw_array_begin(w);
    while (*options) {
        size_t len = strcspn(options, " ");

        jsonw_strn(w, options, len);
        options += len + (options[len] == ' ');
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void bundle_write_bind(struct jsonw *w, const char *target, const char *source,
                              bool may_write)
{
    bundle_write_mount(w, target, "bind", source,
                       may_write ? "rbind nosuid nodev rw" : "rbind nosuid nodev ro");
}

static void bundle_write_shm(struct jsonw *w, int64_t bytes)
{
    char options[96];

    (void)snprintf(options, sizeof(options), "nosuid noexec nodev mode=1777 size=%" PRId64,
                   bytes ? bytes : SHM_BYTES);
    bundle_write_mount(w, "/dev/shm", "tmpfs", "shm", options);
}

/* From where the monitor has mounted them, with all that they are held to: the runtime may not take
 * back, nor repeat, what the volume's own mount forbids.
 */
static void bundle_write_folders(struct jsonw *w, const struct container_spec *c, const char *stage)
{
    for (size_t i = 0; i < c->folder_count; i++) {
        AQ_CLEANUP(aq_freep) char *source = aq_format("%s/" VOLUME_MOUNTS "/%zu", stage, i);

        bundle_write_mount(w, c->folders[i].target, "bind", source, "bind");
    }
}

static void bundle_write_mounts(struct jsonw *w, const struct container_spec *c,
                                const struct bundle_host *host)
{
    AQ_CLEANUP(aq_freep) char *home = aq_format("%s/scratch/home", host->stage);
    AQ_CLEANUP(aq_freep) char *own_sys = c->uses_host_network ? aq_format("%s/sys", host->stage)
                                                              : NULL;
    const char *sys = own_sys ? own_sys : c->sysfs;

    jsonw_array_begin(w);
    bundle_write_mount(w, "/proc", "proc", "proc", "nosuid noexec nodev");
    bundle_write_mount(w, "/dev", "tmpfs", "tmpfs", "nosuid strictatime mode=755 size=65536k");
    bundle_write_mount(w, "/dev/pts", "devpts", "devpts",
                       "nosuid noexec newinstance ptmxmode=0666 mode=0620 gid=5");
    bundle_write_shm(w, c->shm_bytes);
    bundle_write_mount(w, "/dev/mqueue", "mqueue", "mqueue", "nosuid noexec nodev");
    if (sys) /* no user namespace may mount one for a network that is not its own */
        bundle_write_mount(w, "/sys", "bind", sys, "bind nosuid noexec nodev ro");
    else
        bundle_write_mount(w, "/sys", "sysfs", "sysfs", "nosuid noexec nodev ro");
    bundle_write_mount(w, "/sys/fs/cgroup", "cgroup", "cgroup", "nosuid noexec nodev relatime ro");
    bundle_write_bind(w, "/home/work", home, true);
    bundle_write_folders(w, c, host->stage);
    for (size_t i = 0; i < c->mount_count; i++)
        bundle_write_bind(w, c->mounts[i].target, c->mounts[i].source, c->mounts[i].may_write);
    for (size_t i = 0; i < c->device_count; i++)
        bundle_write_mount(w, c->devices[i].target, "bind", c->devices[i].source,
                           c->devices[i].may_write ? "bind nosuid noexec rw"
                                                   : "bind nosuid noexec ro");
    jsonw_array_end(w);
}

static void bundle_write_namespace(struct jsonw *w, const char *type, const char *path)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "type", type);
    if (path)
        jsonw_member_str(w, "path", path);
    jsonw_object_end(w);
}

static void bundle_write_namespaces(struct jsonw *w, const struct container_spec *c,
                                    const struct bundle_host *host)
{
    static const char *const own[] = { "pid", "ipc", "uts", "mount", "cgroup" };

    jsonw_key(w, "namespaces");
    jsonw_array_begin(w);
    for (size_t i = 0; i < AQ_COUNT(own); i++)
        bundle_write_namespace(w, own[i], NULL);
    if (!c->uses_host_network)
        bundle_write_namespace(w, "network", c->network);
    if (host->id_count)
        bundle_write_namespace(w, "user", NULL);
    jsonw_array_end(w);
}

static void bundle_write_id_map(struct jsonw *w, const char *key, const struct bundle_host *host)
{
    jsonw_key(w, key);
    jsonw_array_begin(w);
    jsonw_object_begin(w);
    jsonw_member_int(w, "containerID", 0);
    jsonw_member_int(w, "hostID", host->id_base);
    jsonw_member_int(w, "size", host->id_count);
    jsonw_object_end(w);
    jsonw_array_end(w);
}

/* "*" in a rule is a number that is not there. */
static void bundle_write_number(struct jsonw *w, const char *key, const char *text)
{
    if (*text != '*')
        jsonw_member_int(w, key, strtol(text, NULL, 10));
}

/* Programs look for their limit in the innermost cgroup. */
static void bundle_write_memory(struct jsonw *w, uint64_t bytes)
{
    jsonw_key(w, "memory");
    jsonw_object_begin(w);
    jsonw_member_int(w, "limit", (int64_t)bytes);
    jsonw_object_end(w);
}

/* For a runtime that makes the innermost cgroup itself. */
static void bundle_write_resources(struct jsonw *w, const struct runtime_spec *spec,
                                   const struct bundle_host *host, const char *const *rules)
{
    jsonw_key(w, "resources");
    jsonw_object_begin(w);
    if (host->cgroup && spec->memory_bytes)
        bundle_write_memory(w, spec->memory_bytes);
    jsonw_key(w, "devices");
    jsonw_array_begin(w);
    jsonw_object_begin(w);
    jsonw_member_bool(w, "allow", false);
    jsonw_member_str(w, "access", "rwm");
    jsonw_object_end(w);
    for (; *rules; rules++) {
        const char *rule = *rules, *colon = strchr(rule, ':');

        jsonw_object_begin(w);
        jsonw_member_bool(w, "allow", true);
        jsonw_key(w, "type");
        jsonw_strn(w, rule, 1);
        bundle_write_number(w, "major", rule + 2);
        bundle_write_number(w, "minor", colon + 1);
        jsonw_member_str(w, "access", strrchr(rule, ' ') + 1);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void bundle_write_masks(struct jsonw *w, const struct container_spec *c)
{
    static const char *const masked[] = {
        "/proc/acpi",        "/proc/asound",        "/proc/kcore",
        "/proc/keys",        "/proc/latency_stats", "/proc/timer_list",
        "/proc/timer_stats", "/proc/sched_debug",   "/proc/scsi",
        "/sys/firmware",     "/sys/fs/selinux",     "/sys/devices/virtual/powercap",
    };
    static const char *const read_only[] = { "/proc/bus",           "/proc/fs",
                                             "/proc/irq",           "/proc/sys",
                                             "/proc/sysrq-trigger", NULL };

    jsonw_key(w, "maskedPaths");
    jsonw_array_begin(w);
    for (size_t i = 0; i < AQ_COUNT(masked); i++)
        jsonw_str(w, masked[i]);
    for (size_t i = 0; i < c->folder_count; i++) {
        AQ_CLEANUP(aq_freep) char *uploads = aq_format("%s/" FOLDER_UPLOADS, c->folders[i].target);

        if (!*c->folders[i].path)
            jsonw_str(w, uploads);
    }
    for (const char *const *path = c->hidden; path && *path; path++)
        jsonw_str(w, *path);
    jsonw_array_end(w);
    bundle_write_list(w, "readonlyPaths", read_only);
}

static void bundle_write_linux(struct jsonw *w, const struct runtime_spec *spec,
                               const struct container_spec *c, const struct bundle_host *host,
                               const char *const *device_rules)
{
    jsonw_object_begin(w);
    bundle_write_namespaces(w, c, host);
    if (host->id_count) {
        bundle_write_id_map(w, "uidMappings", host);
        bundle_write_id_map(w, "gidMappings", host);
    }
    if (host->cgroup)
        jsonw_member_str(w, "cgroupsPath", host->cgroup);
    bundle_write_resources(w, spec, host, device_rules);
    jsonw_key(w, "seccomp");
    jsonw_raw(w, host->seccomp, strlen(host->seccomp));
    bundle_write_masks(w, c);
    jsonw_object_end(w);
}

static void bundle_write_hooks(struct jsonw *w, const struct container_spec *c)
{
    jsonw_key(w, "hooks");
    jsonw_object_begin(w);
    jsonw_key(w, "createContainer");
    jsonw_array_begin(w);
    for (size_t i = 0; i < c->hook_count; i++) {
        const struct container_hook *hook = &c->hooks[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "path", hook->path);
        if (hook->args)
            bundle_write_list(w, "args", hook->args);
        if (hook->env)
            bundle_write_list(w, "env", hook->env);
        if (hook->timeout)
            jsonw_member_int(w, "timeout", hook->timeout);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_object_end(w);
}

void bundle_write(const struct runtime_spec *spec, const struct container_spec *container,
                  const struct bundle_host *host, const char *const *device_rules,
                  struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *rootfs = aq_format("%s/rootfs", host->stage);
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "ociVersion", "1.0.2");
    jsonw_key(&w, "root");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "path", rootfs);
    jsonw_member_bool(&w, "readonly", false);
    jsonw_object_end(&w);
    jsonw_member_str(&w, "hostname", container->hostname);
    jsonw_key(&w, "process");
    bundle_write_process(&w, spec, container, host);
    jsonw_key(&w, "mounts");
    bundle_write_mounts(&w, container, host);
    if (container->hook_count)
        bundle_write_hooks(&w, container);
    jsonw_key(&w, "annotations");
    jsonw_object_begin(&w);
    for (size_t i = 0; i < container->label_count; i++)
        jsonw_member_str(&w, container->labels[i].key, container->labels[i].value);
    if (host->filter)
        jsonw_member_str(&w, SECCOMP_FILTER_ANNOTATION, host->filter);
    jsonw_object_end(&w);
    jsonw_key(&w, "linux");
    bundle_write_linux(&w, spec, container, host, device_rules);
    jsonw_object_end(&w);
}
