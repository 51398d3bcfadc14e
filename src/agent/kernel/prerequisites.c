/* SPDX-License-Identifier: Apache-2.0 */
/* prerequisites.c - what a container needs to start: image, scratch space, network, GPU slices */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/kernel/container_spec.h"
#include "agent/kernel/devices.h"
#include "agent/kernel/host_network.h"
#include "agent/kernel/prerequisites.h"
#include "agent/kernel/services.h"
#include "agent/runtime/oci.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"

#define MEBIBYTE (INT64_C(1) << 20)

/* ---- image ---- */

/* Which image a kernel has, should its name mean another one when the agent is
 * started again. No flush: what loses it has ended the container, too.
 */
static void prerequisites_note_image(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id, "image");
    struct aq_error err = { 0 };

    if (!k->image->digest)
        (void)unlink(path);
    else if (fs_write_quick(AT_FDCWD, path, k->image->digest, strlen(k->image->digest), 0600, &err)
             < 0)
        log_warning("%s", err.text);
}

static int prerequisites_find_image(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id, "image");
    AQ_CLEANUP(strbuf_donep) struct strbuf digest = STRBUF_INIT;
    bool is_noted = fs_read(AT_FDCWD, path, DIGEST_TEXT_MAX, &digest, NULL) == 0;

    return images_find(k->agent->images, is_noted ? digest.data : kernel_get_spec(k)->session.image,
                       &k->image, err);
}

static void prerequisites_on_image_ready(void *data, struct image *image)
{
    struct local_kernel *k = data;

    k->image_request = NULL;
    k->image = image;
    image_commands_progress(k->agent, &k->session_id, &k->id, kernel_get_spec(k)->session.image,
                            NULL, &k->image_told);
    prerequisites_note_image(k);
    AQ_FAULT("agent.container.image");
    kernel_step(k);
}

static void prerequisites_on_image_failed(void *data, const struct aq_error *err)
{
    struct local_kernel *k = data;
    struct aq_error shown;

    k->image_request = NULL;
    log_warning("no image for a kernel: %s", err->text);
    image_hide_failure(k->agent->images, kernel_get_spec(k)->session.image, err, &shown);
    kernel_fail(k, &shown);
}

static void prerequisites_on_image_progress(void *data, const struct image_progress *progress)
{
    struct local_kernel *k = data;

    const char *image = kernel_get_spec(k)->session.image;
    struct image_progress shown = *progress;
    struct aq_error hidden;

    if (shown.failure) {
        image_hide_failure(k->agent->images, image, shown.failure, &hidden);
        shown.failure = &hidden;
    }
    image_commands_progress(k->agent, &k->session_id, &k->id, image, &shown, &k->image_told);
}

static const struct image_events image_events = { .on_progress = prerequisites_on_image_progress,
                                                  .on_ready = prerequisites_on_image_ready,
                                                  .on_failed = prerequisites_on_image_failed };

static int prerequisites_want_image(struct local_kernel *k, enum image_policy policy,
                                    struct aq_error *err)
{
    const char *owner = kernel_get_spec(k)->user_id;
    int r;

    if (k->image_request)
        return -EINPROGRESS;
    r = images_get(k->agent->images, kernel_get_spec(k)->session.image, NULL, policy, &image_events,
                   k, &k->image_request, err);
    if (r == 0 && owner)
        image_request_charge(k->image_request, owner);
    return r < 0 ? r : -EINPROGRESS;
}

/* ---- scratch space ---- */

bool prerequisites_limit_scratch(const struct agent_daemon *agent)
{
    return agent->containers && runtime_oci_host(agent->containers)->scratch_template;
}

/* What its file takes of the disk; -ENOENT if there is none. */
static int64_t prerequisites_scratch_used(const struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *path = disk_worker_kernel_path(k->agent->disk, &k->id,
                                                              "scratch.img");
    struct stat st;

    return stat(path, &st) == 0 ? (int64_t)st.st_blocks * 512 : -ENOENT;
}

/* What it may write yet. */
static int64_t prerequisites_scratch_left(const struct local_kernel *k)
{
    int64_t size = k->agent->settings->scratch_bytes;

    return size - AQ_MIN(AQ_MAX(prerequisites_scratch_used(k), 0), size);
}

static int64_t prerequisites_scratch_promised(const struct agent_daemon *agent)
{
    int64_t sum = 0;

    for (size_t i = 0; i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;

        if (k->has_scratch)
            sum += prerequisites_scratch_left(k);
    }
    return sum;
}

int64_t prerequisites_scratch_kept(void *data)
{
    const struct agent_daemon *agent = data;
    bool is_kept = agent->settings->scratch_reserve && prerequisites_limit_scratch(agent);

    return is_kept ? prerequisites_scratch_promised(agent) + SETTINGS_SCRATCH_MARGIN : 0;
}

static void prerequisites_on_room(void *data)
{
    kernel_step(data);
}

/* Grant the kernel its scratch space, if that is not so already. -EINPROGRESS: unused images give
 * way to it, and kernel_step() is called when they are gone. -ENOSPC with the kind
 * "insufficient-resource", and with what would fit.
 */
static int prerequisites_take_scratch(struct local_kernel *k, struct aq_error *err)
{
    const struct settings *settings = k->agent->settings;
    struct statvfs disk;
    int64_t room, missing;

    list_remove(&k->room.link);
    if (k->has_scratch || !settings->scratch_reserve || !prerequisites_limit_scratch(k->agent))
        return 0;
    if (statvfs(settings->state, &disk) < 0)
        return aq_fail_errno(err, "statvfs '%s'", settings->state);
    room = (int64_t)(disk.f_bavail * disk.f_frsize) - prerequisites_scratch_kept(k->agent);
    missing = prerequisites_scratch_left(k) - room;
    k->room.on_made = prerequisites_on_room;
    k->room.data = k;
    if (missing > 0 && images_make_room(k->agent->images, missing, &k->room))
        return -EINPROGRESS;
    if (missing > 0)
        return aq_fail_kind(err, ENOSPC, "insufficient-resource",
                            "scratch space of %" PRId64 " MiB does not fit on this node's disk: "
                            "%" PRId64 " MiB of it are neither used nor granted to others; end "
                            "sessions, or set [container] scratch-size to that",
                            settings->scratch_bytes / MEBIBYTE, AQ_MAX(room, 0) / MEBIBYTE);
    k->has_scratch = true;
    return 0;
}

/* A kernel that was found: it was granted its space if it has a file. */
static void prerequisites_adopt_scratch(struct local_kernel *k)
{
    k->has_scratch = prerequisites_scratch_used(k) >= 0;
}

/* ---- network ---- */

static void prerequisites_on_connected(void *data, const struct aq_error *err)
{
    struct local_kernel *k = data;

    if (err) {
        kernel_fail(k, err);
        return;
    }
    k->is_connected = true;
    kernel_step(k);
}

static int prerequisites_want_network(struct local_kernel *k, const struct services *services,
                                      struct aq_error *err)
{
    const struct net_request request = { .kernel_id = k->id,
                                         .session_id = k->session_id,
                                         .hostname = kernel_hostname_of(k),
                                         .is_closed = image_is_for_files(k->image),
                                         .ports = services->ports,
                                         .port_count = services->port_count };

    return k->network
               ? 0
               : net_open(k->agent->net, &request, prerequisites_on_connected, k, &k->network, err);
}

/* ---- network between nodes ---- */

static int prerequisites_open_cluster(struct local_kernel *k, bool is_found, struct aq_error *err)
{
    const struct cluster_request request = { .session_id = k->session_id,
                                             .hostname = kernel_hostname_of(k),
                                             .network = kernel_get_spec(k)->network,
                                             .is_found = is_found };

    if (!request.network || !k->is_container || host_network_is_wanted(k))
        return 0;
    if (!k->agent->cluster)
        return aq_fail_as(err, ENOTSUP, "no-cluster-network", "network",
                          "containers of this node have no network, so the session's kernels on "
                          "other nodes cannot be reached; there, 'aliquot-agent doctor' says what "
                          "to do");
    return cluster_open(k->agent->cluster, &request, &k->cluster, err);
}

int prerequisites_announce(struct local_kernel *k, const char *former, struct aq_error *err)
{
    const char *network = kernel_get_spec(k)->network;

    if (k->cluster && former && network && strcmp(former, network) == 0)
        return 0;
    return k->cluster && network
               ? cluster_set_session(k->agent->cluster, &k->session_id, network, err)
               : prerequisites_open_cluster(k, false, err);
}

static void prerequisites_on_reached(void *data, const struct aq_error *err)
{
    struct local_kernel *k = data;

    k->is_joining = false;
    if (err) {
        kernel_fail(k, err);
        return;
    }
    k->is_reached = true;
    kernel_step(k);
}

/* 0 if it is joined, -EINPROGRESS until then. */
static int prerequisites_want_cluster(struct local_kernel *k)
{
    if (!k->cluster || k->is_reached)
        return 0;
    if (!k->is_joining)
        cluster_join(k->cluster, k->network, prerequisites_on_reached, k);
    k->is_joining = true;
    return -EINPROGRESS;
}

static void prerequisites_adopt_cluster(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    if (!k->is_connected)
        return;
    if (prerequisites_open_cluster(k, true, &err) < 0)
        log_warning("a kernel does not reach other nodes kernel=%s: %s",
                    uuid_format(&k->id, (char[UUID_TEXT_MAX]){ 0 }), err.text);
    if (k->cluster)
        cluster_adopt(k->cluster, k->network);
}

/* ---- GPU slices ---- */

/* Repeated for every attempt: what the plugins said last counts. */
static int prerequisites_want_slice(struct local_kernel *k, struct aq_error *err)
{
    int r = 0;

    gpu_slice_close(AQ_TAKE(k->slice));
    if (gpu_is_needed(&k->attachment))
        r = gpu_check_image(k->image, err);
    if (r == -ENOTSUP && k->agent->settings->gpu_unenforced) {
        log_warning("nothing holds a kernel to its part of a GPU: %s", err->text);
        *err = (struct aq_error){ 0 };
        return 0;
    }
    if (r < 0 || !gpu_is_needed(&k->attachment))
        return r;
    r = gpu_slice_open(k->agent->gpu, &k->id, &k->attachment, k->image, &k->slice, err);
    kernel_tell_slots(k);
    return r;
}

/* With the network of the node: it is there, if its ports are free. */
static int prerequisites_use_host(struct local_kernel *k, struct aq_error *err)
{
    struct services services;
    bool is_open = k->host != NULL;
    int r = host_network_open(k, err);

    if (r == 0)
        r = services_find(k, &services, err);
    if (r == 0 && !is_open)
        r = host_network_check_ports(k, &services, err);
    if (r < 0)
        return r;
    services_note(k);
    return prerequisites_want_slice(k, err);
}

/* ---- all of it ---- */

int prerequisites_prepare(struct local_kernel *k, struct aq_error *err)
{
    struct services services;
    int r = container_is_wanted(k->agent, kernel_get_spec(k)->session.image, &k->is_container, err);

    if (r < 0 || !k->is_container)
        return r;
    /* an image that is here is held first: it does not give way to what it is for */
    if (!k->image && (r = prerequisites_want_image(k, IMAGE_PULL_NEVER, err)) != -ENOENT)
        return r;
    if ((r = prerequisites_take_scratch(k, err)) < 0)
        return r;
    if (!k->image)
        return prerequisites_want_image(k, IMAGE_PULL_MISSING, err);
    if (kernel_get_spec(k)->session.needs_rdma && !k->agent->rdma.names.count)
        return aq_fail_as(err, ENOTSUP, "no-rdma", "rdma",
                          "this node does not offer RDMA devices to containers; its "
                          "administrator may set [network] rdma in agent.toml");
    if (host_network_is_wanted(k))
        return prerequisites_use_host(k, err);
    r = services_find(k, &services, err);
    if (r < 0)
        return r;
    if (k->agent->net && !k->is_connected) {
        r = prerequisites_want_network(k, &services, err);
        return r < 0 ? r : -EINPROGRESS;
    }
    if ((r = prerequisites_want_cluster(k)) < 0)
        return r;
    services_note(k);
    return prerequisites_want_slice(k, err);
}

void prerequisites_adopt_slice(struct local_kernel *k)
{
    AQ_CLEANUP(aq_freep) char *directory = NULL;
    struct aq_error err = { 0 };
    int r;

    if (!k->is_container || k->slice || !k->agent->gpu)
        return;
    directory = disk_worker_run_path(k->agent->disk, &k->id, k->run_attempt);
    r = gpu_slice_adopt(k->agent->gpu, &k->id, directory, &k->slice, &err);
    if (r < 0 && r != -ENOENT)
        log_warning("new processes of a kernel get no device memory kernel=%s: %s",
                    uuid_format(&k->id, (char[UUID_TEXT_MAX]){ 0 }), err.text);
    kernel_tell_slots(k);
    devices_resize(k);
}

void prerequisites_adopt(struct local_kernel *k)
{
    struct aq_error err = { 0 };

    (void)container_is_wanted(k->agent, kernel_get_spec(k)->session.image, &k->is_container, &err);
    if (!k->is_container)
        return;
    prerequisites_adopt_scratch(k);
    if (prerequisites_find_image(k, &err) < 0)
        log_info("the image of a kernel is pulled again if the kernel restarts: %s", err.text);
    if (k->agent->net && net_adopt(k->agent->net, &k->id, &k->network, &err) == 0)
        k->is_connected = true;
    prerequisites_adopt_cluster(k);
    if (host_network_is_wanted(k) && host_network_open(k, &err) < 0)
        log_warning("a kernel's ports on the node are not known: %s", err.text);
    services_note(k);
}

void prerequisites_release(struct local_kernel *k)
{
    k->has_scratch = false;
    list_remove(&k->room.link);
    if (k->image_request)
        images_cancel(AQ_TAKE(k->image_request));
    image_unref(AQ_TAKE(k->image));
    if (k->agent->is_closing)
        gpu_slice_leave(AQ_TAKE(k->slice));
    else
        gpu_slice_close(AQ_TAKE(k->slice));
    if (k->agent->is_closing)
        cluster_leave(AQ_TAKE(k->cluster));
    else
        cluster_close(AQ_TAKE(k->cluster));
    k->is_reached = k->is_joining = false;
    if (k->network && !k->agent->is_closing)
        net_close(AQ_TAKE(k->network), NULL, NULL);
    k->is_connected = false;
    host_network_close(k);
}
