/* SPDX-License-Identifier: Apache-2.0 */
/* oci_host.c - what this node has for containers: directories, cgroups, users, profile */
#include "agent/runtime/oci_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/runtime/bundle.h"
#include "agent/runtime/seccomp.h"
#include "agent/runtime/seccomp_filter.h"
#include "agent/runtime/sync_tool.h"
#include "base/fs.h"
#include "base/log.h"
#include "monitor/id_map.h"

#define FILES_USUAL 1048576u

static void oci_host_note(struct oci_host *host, enum oci_topic topic, const char *text,
                          const char *why)
{
    (void)snprintf(host->notes[topic], sizeof(host->notes[topic]), "%s: %.320s", text, why);
}

void oci_host_add_notes(const struct oci_host *host, const char *before, const char *after,
                        struct strbuf *out)
{
    for (size_t i = 0; i < OCI_TOPICS; i++)
        if (host->notes[i][0])
            strbuf_addf(out, "%s%s%s", before, host->notes[i], after);
}

/* 64-bit FNV-1a. */
static uint64_t oci_host_hash_text(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

/* ---- directories ---- */

/* Containers' own roots, who are nobody on the node, walk through them. */
static int oci_host_make_directory(const char *path, mode_t mode, struct aq_error *err)
{
    int r = fs_mkdirs(path, mode, err);

    if (r == 0 && chmod(path, mode) < 0)
        r = aq_fail_errno(err, "chmod '%s'", path);
    return r;
}

static int oci_host_name_directories(struct oci_host *host, const char *run, const char *instance,
                                     struct aq_error *err)
{
    host->directory = aq_format("%s/%s", run, instance);
    host->stage = aq_format("%s/%s/stage", run, instance);
    host->kernels = aq_format("%s/%s/kernels", run, instance);
    host->gpu = aq_format("%s/%s/gpu", run, instance);
    return oci_host_make_directory(run, 0711, err);
}

int oci_host_make_directories(const struct oci_host *host, struct aq_error *err)
{
    const struct {
        const char *path;
        mode_t mode;
    } directories[] = { { host->directory, 0711 },
                        { host->stage, 0755 },
                        { host->kernels, 0711 },
                        { host->gpu, 0711 } };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(directories); i++)
        r = oci_host_make_directory(directories[i].path, directories[i].mode, err);
    return r;
}

void oci_host_remove_directories(const struct oci_host *host)
{
    if (rmdir(host->kernels) < 0)
        return; /* containers run on */
    (void)rmdir(host->gpu);
    (void)rmdir(host->stage);
    (void)rmdir(host->directory);
}

static char *oci_host_name_instance(const char *state)
{
    AQ_CLEANUP(aq_freep) char *path = realpath(state, NULL);

    return path ? aq_format("%016" PRIx64, oci_host_hash_text(path)) : NULL;
}

char *oci_host_name_directory(const struct settings *settings)
{
    AQ_CLEANUP(aq_freep) char *instance = oci_host_name_instance(settings->state);

    return instance ? aq_format("%s/%s", settings->run, instance) : NULL;
}

/* ---- scratch space ---- */

/* The directories that every container has in it (monitor/rootfs.c), so that none has
 * to make them.
 */
static int oci_host_make_contents(const char *path, struct aq_error *err)
{
    static const char *const names[] = { "upper", "home", "work" };
    int r = fs_mkdirs(path, 0755, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(names); i++) {
        AQ_CLEANUP(aq_freep) char *name = aq_format("%s/%s", path, names[i]);

        r = fs_mkdirs(name, 0755, err);
    }
    return r;
}

static int oci_host_make_file_system(const char *path, const char *contents, int64_t bytes,
                                     struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    /* no journal: nothing in it survives a crash of the node anyway */
    const char *argv[] = { "mkfs.ext4",
                           "-q",
                           "-F",
                           "-m",
                           "0",
                           "-O",
                           "^has_journal,^resize_inode,sparse_super2",
                           "-E",
                           "lazy_itable_init=1,nodiscard,packed_meta_blocks=1,root_owner=0:0",
                           "-d",
                           contents,
                           path,
                           NULL };

    if (fd < 0 || ftruncate(fd, bytes) < 0)
        return aq_fail_errno(err, "make '%s'", path);
    return tool_run(argv, NULL, err);
}

static int oci_host_make_template(const char *path, int64_t bytes, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *fresh = aq_format("%s.new", path),
                              *contents = aq_format("%s.contents", path);
    int r = oci_host_make_contents(contents, err);

    if (r == 0)
        r = oci_host_make_file_system(fresh, contents, bytes, err);
    (void)fs_remove_tree(AT_FDCWD, contents, NULL);
    if (r == 0 && rename(fresh, path) < 0)
        r = aq_fail_errno(err, "rename '%s'", fresh);
    if (r < 0)
        (void)unlink(fresh);
    return r;
}

static void oci_host_prepare_scratch(struct oci_host *host, const struct settings *settings)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/scratch-%" PRId64 ".img", settings->state,
                                                settings->scratch_bytes);
    struct aq_error err = { 0 };

    if (access("/dev/loop-control", R_OK | W_OK) < 0) {
        oci_host_note(host, OCI_SCRATCH, "scratch space has no limit", "there are no loop devices");
    } else if (access(path, R_OK) == 0
               || oci_host_make_template(path, settings->scratch_bytes, &err) == 0) {
        host->scratch_template = AQ_TAKE(path);
    } else {
        oci_host_note(host, OCI_SCRATCH, "scratch space has no limit", err.text);
    }
}

/* ---- system calls ---- */

static void oci_host_prepare_filter(struct oci_host *host)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (seccomp_filter_make(host->seccomp, &text, &err) == 0)
        host->filter = strbuf_steal(&text);
    else
        log_info("the filter of system calls is compiled for each container: %s", err.text);
}

/* Without a profile there are still the calls that no program gets. */
static int oci_host_prepare_seccomp(struct oci_host *host, const struct settings *settings,
                                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf profile = STRBUF_INIT, text = STRBUF_INIT;
    struct seccomp_host node = { .capabilities = bundle_capabilities, .may_nest = host->may_nest };
    struct aq_error why = { 0 };
    struct utsname names;
    int r = fs_read(AT_FDCWD, settings->seccomp, SECCOMP_PROFILE_MAX, &profile, &why);

    (void)uname(&names);
    node.machine = names.machine;
    node.release = names.release;
    if (r == 0)
        r = seccomp_translate(profile.data, profile.len, &node, &text, &why);
    if (r < 0) {
        oci_host_note(host, OCI_SECCOMP, "system calls are not filtered", why.text);
        strbuf_done(&text);
        r = seccomp_translate(SECCOMP_PROFILE_OPEN, strlen(SECCOMP_PROFILE_OPEN), &node, &text,
                              err);
    }
    if (r < 0)
        return r;
    host->seccomp = strbuf_steal(&text);
    oci_host_prepare_filter(host);
    return 0;
}

/* ---- users ---- */

static void oci_host_prepare_users(struct oci_host *host, const struct settings *settings)
{
    struct aq_error err = { 0 };
    int r;

    host->id_start = (uint32_t)settings->id_start;
    host->id_ranges = (uint32_t)settings->id_ranges;
    if (settings->id_ranges == 0)
        return;
    host->users = id_map_open(host->id_start, ID_RANGE, &err);
    if (host->users < 0) {
        oci_host_note(host, OCI_USERS, "no user namespaces", err.text);
        return;
    }
    r = id_map_check(settings->state, host->users);
    if (r < 0)
        oci_host_note(host, OCI_IMAGE_USERS,
                      "no user namespaces where the file system of an image cannot map users",
                      strerror(-r));
}

bool oci_host_can_map(const struct oci_host *host, const char *const *directories, size_t count)
{
    bool can = host->users >= 0;

    for (size_t i = 0; can && i < count; i++)
        can = id_map_check(directories[i], host->users) == 0;
    return can;
}

uint32_t oci_host_id_base(const struct oci_host *host, const char *kernel_id)
{
    return host->id_start + (uint32_t)(oci_host_hash_text(kernel_id) % host->id_ranges) * ID_RANGE;
}

/* ---- cgroups ---- */

static int oci_host_prepare_cgroups(struct oci_host *host, const struct settings *settings,
                                    const char *instance, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, missing = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", settings->cgroup_parent, instance);
    struct aq_error why = { 0 };
    int r = fs_read(AT_FDCWD, "/proc/self/mountinfo", 1 << 20, &text, err);

    if (r < 0)
        return r;
    if (cgroup_layout_read(text.data, "", &host->cgroups, &why) < 0) {
        oci_host_note(host, OCI_CGROUPS, "nothing is limited", why.text);
        return 0;
    }
    cgroup_prepare(&host->cgroups, path, &missing);
    if (missing.len)
        oci_host_note(host, OCI_CGROUPS, "cgroups cannot limit these", missing.data);
    return 0;
}

/* ---- all of it ---- */

/* The most that programs can get of a resource: 'wanted', unless the agent may
 * not raise its limits.
 */
static uint64_t oci_host_find_limit(int resource, rlim_t wanted)
{
    struct rlimit own, raised;

    if (getrlimit(resource, &own) < 0 || own.rlim_max >= wanted)
        return wanted;
    raised = (struct rlimit){ own.rlim_cur, wanted };
    if (setrlimit(resource, &raised) < 0)
        return own.rlim_max;
    (void)setrlimit(resource, &own);
    return wanted;
}

static void oci_host_prepare_limits(struct oci_host *host)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    uint64_t most = FILES_USUAL;

    if (fs_read(AT_FDCWD, "/proc/sys/fs/nr_open", 64, &text, NULL) == 0)
        most = AQ_MIN(most, strtoull(text.data, NULL, 10));
    host->files_max = oci_host_find_limit(RLIMIT_NOFILE, most);
    host->memlock_max = oci_host_find_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
}

int oci_host_init(struct oci_host *host, const struct settings *settings, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *instance = NULL;
    int r = fs_mkdirs(settings->state, 0700, err);

    *host = (struct oci_host){ .users = -1, .may_nest = settings->container_namespaces };
    instance = oci_host_name_instance(settings->state);
    if (r == 0 && !instance)
        r = aq_fail_errno(err, "resolve '%s'", settings->state);
    if (r == 0)
        r = oci_host_name_directories(host, settings->run, instance, err);
    if (r == 0)
        r = oci_host_make_directories(host, err);
    if (r == 0)
        r = oci_host_prepare_cgroups(host, settings, instance, err);
    if (r == 0)
        r = oci_host_prepare_seccomp(host, settings, err);
    if (r < 0) {
        oci_host_done(host);
        return r;
    }
    oci_host_prepare_limits(host);
    oci_host_prepare_scratch(host, settings);
    oci_host_prepare_users(host, settings);
    return 0;
}

void oci_host_done(struct oci_host *host)
{
    cgroup_leave(&host->cgroups);
    cgroup_layout_done(&host->cgroups);
    free(host->directory);
    free(host->stage);
    free(host->kernels);
    free(host->gpu);
    free(host->scratch_template);
    free(host->seccomp);
    free(host->filter);
    aq_closep(&host->users);
    *host = (struct oci_host){ .users = -1 }; /* it may come again, after a failed start */
}

/* ---- what is left ---- */

static void oci_host_sweep_directory(const char *path,
                                     bool (*is_known)(void *data, const struct uuid *kernel),
                                     void *data)
{
    DIR *dir = opendir(path);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        struct uuid id;

        if (uuid_parse(entry->d_name, &id) == 0 && !is_known(data, &id))
            (void)fs_remove_tree(dirfd(dir), entry->d_name, NULL);
    }
    if (dir)
        (void)closedir(dir);
}

void oci_host_sweep(const struct oci_host *host,
                    bool (*is_known)(void *data, const struct uuid *kernel), void *data)
{
    int count = cgroup_sweep(&host->cgroups, is_known, data);

    if (count)
        log_warning("ended what was left of containers that are not known count=%d", count);
    oci_host_sweep_directory(host->kernels, is_known, data);
}

char *oci_host_kernel_path(const struct oci_host *host, const char *kernel_id, const char *name)
{
    return aq_format("%s/%s%s%s", host->kernels, kernel_id, name[0] ? "/" : "", name);
}
