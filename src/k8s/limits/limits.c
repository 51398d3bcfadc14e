/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - see limits.h */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/api_server.h"
#include "k8s/limits/limits_internal.h"

const struct pods *limits_pods(const struct limits *limits)
{
    return limits->pods;
}

struct kube_api *limits_api(const struct limits *limits)
{
    return limits->api;
}

struct events *limits_events(const struct limits *limits)
{
    return limits->events;
}

const char *limits_node(const struct limits *limits)
{
    return limits->node;
}

/* ---- what is kept ---- */

static void limits_on_entry(void *data, const char *key, const char *text, int files[KEEP_FILES])
{
    struct aq_error err = { 0 };

    if (container_adopt(data, key, text, files, &err) < 0)
        log_error("a slice that was kept is lost: %s", err.text);
}

/* From here on it is known what containers have: new ones are made for those that have nothing. */
static void limits_on_listed(void *data, bool is_there)
{
    struct limits *limits = data;
    struct aq_error err = { 0 };

    LIST_FOREACH(link, &limits->containers)
        if (is_there)
            container_keep(LIST_ENTRY(link, struct container, link));
    if (limits->server)
        return;
    recover_find(limits);
    if (limits_server_new(limits, &limits->server, &err) < 0)
        log_error("containers get no limits: %s", err.text);
    else
        log_info("containers are given their limits at %s/gpu.sock", limits->conf.folder);
}

/* ---- pods ---- */

static void limits_on_pods(void *data)
{
    struct limits *limits = data;

    if (pods_are_known(limits->pods) && !limits->are_files_swept) {
        containers_sweep_files(limits);
        limits->are_files_swept = true;
    }
    containers_sweep(limits);
    limits_server_again(limits->server);
    violations_set_needed(limits->violations);
    limits->conf.on_pods(limits->conf.data);
}

/* ---- life ---- */

/* Each process of each container is followed by a descriptor. */
static void limits_raise_files(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static void limits_find_root(struct limits *limits)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf own = STRBUF_INIT;

    if (fs_read(AT_FDCWD, "/proc/self/cgroup", 65536, &own, NULL) == 0 && own.len)
        cgroup_name_root(own.data, limits->root);
}

static int limits_make_folder(struct limits *limits, struct aq_error *err)
{
    limits->allocs_folder = aq_format("%s/shared-allocs", limits->conf.settings->run);
    return fs_mkdirs(limits->allocs_folder, 0700, err);
}

static void limits_on_processes(void *data, const struct gpu_process_memory *uses, size_t count)
{
    const struct limits *limits = data;

    violations_on_processes(limits->violations, uses, count);
    limits_metrics_on_processes(limits->metrics, uses, count);
}

static void limits_new_slices(struct limits *limits)
{
    const struct settings *settings = limits->conf.settings;
    AQ_CLEANUP(aq_freep) char *found = settings->gpu_watch ? NULL : installed_find("aliquot-gpu");
    const struct slices_conf conf = { .loop = limits->conf.loop,
                                      .accel = limits->conf.accel,
                                      .watch_program = settings->gpu_watch ? settings->gpu_watch
                                                                           : found,
                                      .conserving = settings->gpu_conserving,
                                      .owns = violations_owns,
                                      .find_cgroup = violations_find_cgroup,
                                      .on_violation = violations_on_violation,
                                      .on_processes = limits_on_processes,
                                      .data = limits };

    limits->slices = slices_new(&conf);
}

void limits_free(struct limits *limits)
{
    if (!limits)
        return;
    limits_metrics_free(limits->metrics);
    limits_server_free(limits->server);
    LIST_FOREACH(link, &limits->containers)
        container_leave(LIST_ENTRY(link, struct container, link));
    keep_client_free(limits->keep);
    slices_free(limits->slices);
    evictions_free(limits->evictions);
    violations_free(limits->violations);
    pods_free(limits->pods);
    events_free(limits->events);
    kube_api_free(limits->api);
    free(limits->allocs_folder);
    free(limits->lost);
    free(limits);
}
AQ_DEFINE_CLEANUP(struct limits, limits_free)

int limits_new(const struct limits_conf *conf, struct limits **ret, struct aq_error *err)
{
    AQ_CLEANUP(limits_freep) struct limits *limits = aq_alloc(sizeof(*limits));
    int r;

    limits->conf = *conf;
    list_init(&limits->containers);
    limits_raise_files();
    limits_find_root(limits);
    if (!(limits->node = api_server_node(conf->settings, err)))
        return -err->code;
    r = limits_make_folder(limits, err);
    if (r == 0)
        r = api_server_new(conf->loop, conf->settings, &limits->api, err);
    if (r < 0)
        return r;
    limits->events = events_new(limits->api, limits->node);
    limits->violations = violations_new(limits);
    limits->evictions = evictions_new(limits);
    limits_new_slices(limits);
    limits->pods = pods_new(limits->api, conf->settings, limits->node, limits_on_pods, limits);
    r = limits_metrics_new(limits, &limits->metrics, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(limits);
    return 0;
}

int limits_start(struct limits *limits, struct aq_error *err)
{
    const struct keep_client_conf keep = { .loop = limits->conf.loop,
                                           .folder = limits->conf.settings->run,
                                           .on_entry = limits_on_entry,
                                           .on_listed = limits_on_listed,
                                           .data = limits };

    return keep_client_new(&keep, &limits->keep, err);
}
