/* SPDX-License-Identifier: Apache-2.0 */
/* container.c - a container and its slice: making, adopting and ending it */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/limits/limits_internal.h"

/* ---- finding ---- */

struct container *container_find(const struct limits *limits, const char *pod, const char *name)
{
    LIST_FOREACH(link, &limits->containers) {
        struct container *container = LIST_ENTRY(link, struct container, link);

        if (strcmp(container->pod, pod) == 0 && strcmp(container->name, name) == 0)
            return container;
    }
    return NULL;
}

struct container *container_find_by_id(const struct limits *limits, const struct cgroup_name *name)
{
    LIST_FOREACH(link, &limits->containers) {
        struct container *container = LIST_ENTRY(link, struct container, link);

        if (strcmp(container->pod, name->pod) == 0 && strcmp(container->id, name->container) == 0)
            return container;
    }
    return NULL;
}

/* ---- what is granted ---- */

static const struct accel_device *container_device(const struct accel *accel, const char *card)
{
    const struct accel_plugin *plugin;

    for (size_t i = 0; (plugin = accel_plugin(accel, i)); i++)
        for (size_t d = 0; d < plugin->device_count; d++)
            if (strcmp(plugin->devices[d].id, card) == 0)
                return &plugin->devices[d];
    return NULL;
}

/* A card has a whole number of units and may have a little less memory than that: who has the last
 * one has what there is of it.
 */
static uint64_t container_memory(const struct given_part *part, uint64_t unit, uint64_t card_bytes)
{
    uint64_t bytes = part->memory * unit, end = (part->last + 1) * unit;
    uint64_t missing = end > card_bytes ? end - card_bytes : 0;

    return bytes > missing ? bytes - missing : 0;
}

static int container_grant(const struct limits *limits, const struct given_part *part,
                           struct gpu_grant *ret, struct aq_error *err)
{
    const struct accel_device *device = container_device(limits->conf.accel, part->card);
    const struct settings *settings = limits->conf.settings;
    uint64_t share = part->compute ? (uint64_t)part->compute * AQ_GPU_WHOLE
                                         / (uint64_t)settings->compute_units
                                   : AQ_GPU_WHOLE;

    if (!device)
        return aq_fail(err, ENODEV, "card %s is not there", part->card);
    *ret = (struct gpu_grant){
        .memory_bytes = container_memory(part, (uint64_t)settings->memory_unit,
                                         device->memory_bytes),
        .share = (uint32_t)AQ_MIN(AQ_MAX(share, UINT64_C(1)), (uint64_t)AQ_GPU_WHOLE),
    };
    ret->processors = (uint32_t)AQ_MAX((uint64_t)device->processors * ret->share / AQ_GPU_WHOLE,
                                       UINT64_C(1));
    return gpu_uuid_read(part->card, ret->uuid)
               ? 0
               : aq_fail(err, EINVAL, "card %s has an id that is no UUID of a GPU", part->card);
}

static int container_make_region(struct container *container, const struct node_pod *pod,
                                 const struct device_holder *holder, struct aq_error *err)
{
    struct gpu_region_host **ret = &container->slice.region;
    struct gpu_grant grants[AQ_GPU_DEVICES_MAX];
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < holder->part_count; i++)
        if (holder->parts[i].memory && count < AQ_GPU_DEVICES_MAX)
            r = container_grant(container->limits, &holder->parts[i], &grants[count++], err);
    if (r < 0
        || recover_region(container->limits, pod, container->name, grants, count,
                          container->allocs_path, ret)
               == 0)
        return r;
    (void)unlink(container->allocs_path);
    r = gpu_region_host_new(grants, count, ret, err);
    return r < 0 ? r : gpu_region_host_persist_allocs(*ret, container->allocs_path, err);
}

/* ---- life ---- */

static void container_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void container_leave(struct container *container)
{
    bool is_polled;

    if (!container)
        return;
    is_polled = container->poll.data != NULL;
    if (is_polled)
        uv_close((uv_handle_t *)&container->poll, container_on_closed);
    slices_remove(container->limits->slices, &container->slice);
    gpu_region_host_free(AQ_TAKE(container->slice.region));
    list_remove(&container->link);
    free(container->allocs_path);
    if (!is_polled)
        free(container);
}
AQ_DEFINE_CLEANUP(struct container, container_leave)

static void container_key(const struct container *container, char ret[KEEP_KEY_SIZE])
{
    (void)snprintf(ret, KEEP_KEY_SIZE, "%s/%s", container->pod, container->name);
}

/* The slice is over, and not kept any more. */
static void container_end(struct container *container)
{
    char key[KEEP_KEY_SIZE];

    container_key(container, key);
    keep_client_drop(container->limits->keep, key);
    (void)unlink(container->allocs_path);
    log_info("pod %s/%s container %s: its slice is over", container->namespace, container->pod_name,
             container->name);
    container_leave(container);
}

void container_keep(struct container *container)
{
    char key[KEEP_KEY_SIZE], text[KEEP_TEXT_SIZE];
    int files[KEEP_FILES];

    container_key(container, key);
    (void)snprintf(text, sizeof(text), "%s\n%s\n%s", container->namespace, container->pod_name,
                   container->id);
    gpu_region_host_files(container->slice.region, &files[0], &files[1]);
    keep_client_put(container->limits->keep, key, text, files);
}

void container_note(struct container *container, const struct cgroup_name *name)
{
    memcpy(container->cgroup, name->path, sizeof(container->cgroup));
    if (strcmp(container->id, name->container) == 0)
        return;
    memcpy(container->id, name->container, sizeof(container->id));
    container_keep(container);
}

static void container_on_readable(uv_poll_t *poll, int status, int events)
{
    struct container *container = poll->data;

    (void)status;
    (void)events;
    gpu_region_host_dispatch(container->slice.region);
    if (gpu_region_host_count(container->slice.region) == 0)
        containers_sweep(container->limits);
}

static struct container *container_alloc(struct limits *limits, const char *pod, const char *name)
{
    struct container *container = aq_alloc(sizeof(*container));

    container->limits = limits;
    list_init(&container->link);
    (void)snprintf(container->pod, sizeof(container->pod), "%s", pod);
    (void)snprintf(container->name, sizeof(container->name), "%s", name);
    container->allocs_path = aq_format("%s/%s.%s", limits->allocs_folder, pod, name);
    return container;
}

/* It has its region: keep its clocks, follow its processes. */
static int container_begin(struct container *container, struct aq_error *err)
{
    struct limits *limits = container->limits;

    slices_add(limits->slices, &container->slice);
    if (uv_poll_init(limits->conf.loop, &container->poll,
                     gpu_region_host_poll_fd(container->slice.region))
        < 0)
        return aq_fail(err, EIO, "slice of a GPU: it cannot be waited for");
    container->poll.data = container;
    (void)uv_poll_start(&container->poll, UV_READABLE, container_on_readable);
    list_add(&limits->containers, &container->link);
    return 0;
}

int container_make(struct limits *limits, const struct node_pod *pod, const char *name,
                   const struct device_holder *holder, struct container **ret, struct aq_error *err)
{
    AQ_CLEANUP(container_leavep) struct container *container = container_alloc(limits, pod->uid,
                                                                               name);
    int r;

    (void)snprintf(container->namespace, sizeof(container->namespace), "%s", pod->namespace);
    (void)snprintf(container->pod_name, sizeof(container->pod_name), "%s", pod->name);
    r = container_make_region(container, pod, holder, err);
    if (r == 0)
        r = container_begin(container, err);
    if (r < 0)
        return r;
    log_info("pod %s/%s container %s has a slice", pod->namespace, pod->name, name);
    *ret = AQ_TAKE(container);
    return 0;
}

/* ---- one that was kept ---- */

static bool container_read_key(const char *key, char pod[POD_UID_MAX + 1], const char **ret_name)
{
    const char *slash = strchr(key, '/');

    if (!slash || !pod_is_uid(key, (size_t)(slash - key)) || !pod_is_container_name(slash + 1))
        return false;
    memcpy(pod, key, (size_t)(slash - key));
    pod[slash - key] = '\0';
    *ret_name = slash + 1;
    return true;
}

/* "NAMESPACE\nPOD\nID" */
static bool container_read_text(const char *text, struct container *container)
{
    size_t first = strcspn(text, "\n"), second;
    const char *pod, *id;

    if (first >= sizeof(container->namespace) || !text[first])
        return false;
    pod = text + first + 1;
    second = strcspn(pod, "\n");
    if (second >= sizeof(container->pod_name) || !pod[second])
        return false;
    id = pod + second + 1;
    if (!pod_is_container_id(id, strlen(id)))
        return false;
    memcpy(container->namespace, text, first);
    memcpy(container->pod_name, pod, second);
    memcpy(container->id, id, strlen(id) + 1);
    return true;
}

int container_adopt(struct limits *limits, const char *key, const char *text, int files[KEEP_FILES],
                    struct aq_error *err)
{
    AQ_CLEANUP(container_leavep) struct container *container = NULL;
    AQ_CLEANUP(aq_closep) int limits_fd = files[0];
    AQ_CLEANUP(aq_closep) int usage_fd = files[1];
    char pod[POD_UID_MAX + 1];
    const char *name;
    int r;

    if (!container_read_key(key, pod, &name))
        return aq_fail(err, EPROTO, "'%s' is no pod and container", key);
    if (container_find(limits, pod, name))
        return 0;
    container = container_alloc(limits, pod, name);
    if (!container_read_text(text, container))
        return aq_fail(err, EPROTO, "what is kept of '%s' has no names", key);
    r = gpu_region_host_adopt(AQ_TAKE_FD(limits_fd), AQ_TAKE_FD(usage_fd), container->allocs_path,
                              &container->slice.region, err);
    if (r == 0)
        r = container_begin(container, err);
    if (r == 0)
        container = NULL;
    return r;
}

/* ---- the end of containers ---- */

/* Also of one that the API server does not know to run yet, if no process of it has a slot: it gets
 * another slice.
 */
static bool container_is_over(const struct container *container)
{
    const struct pods *pods = container->limits->pods;
    const struct node_pod *pod = pods_find(pods, container->pod);
    const struct node_container *of = pod ? pod_container_by_name(pod, container->name) : NULL;

    return pods_are_known(pods) && gpu_region_host_count(container->slice.region) == 0
           && (!of || pod->is_over || !of->is_running);
}

void containers_sweep(struct limits *limits)
{
    LIST_FOREACH(link, &limits->containers) {
        struct container *container = LIST_ENTRY(link, struct container, link);

        if (container_is_over(container))
            container_end(container);
    }
}

void containers_sweep_files(const struct limits *limits)
{
    DIR *dir = opendir(limits->allocs_folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        AQ_CLEANUP(aq_freep) char *pod = aq_strndup(entry->d_name, strcspn(entry->d_name, "."));

        if (pod[0] && !pods_find(limits->pods, pod))
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        (void)closedir(dir);
}
