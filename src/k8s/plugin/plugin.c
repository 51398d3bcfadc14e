/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the device plugin: memory and compute of this node's GPUs for the kubelet
 *
 * Two resources, each with a socket of its own in the kubelet's folder, which it knows by
 * registration. A kubelet that starts removes all sockets there and makes its own: whenever one of
 * the three is made again, what has to be is done again. Everything belongs to the thread of the
 * libuv loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/log.h"
#include "base/memory.h"
#include "k8s/plugin/node_note.h"
#include "k8s/plugin/plugin_internal.h"
#include "k8s/role.h"

#define AGAIN_MSEC_MIN 1000
#define AGAIN_MSEC_MAX 30000
#define LOCK_MSEC 500

static void plugin_check(struct plugin_daemon *plugin);

/* ---- looking again ---- */

static void plugin_on_again(uv_timer_t *timer)
{
    plugin_check(timer->data);
}

void plugin_try_again(struct plugin_daemon *plugin)
{
    plugin->again_msec = AQ_MIN(AQ_MAX(plugin->again_msec * 2, AGAIN_MSEC_MIN), AGAIN_MSEC_MAX);
    (void)uv_timer_start(&plugin->again, plugin_on_again, plugin->again_msec, 0);
}

void plugin_forget_last(struct plugin_daemon *plugin)
{
    placement_forget(&plugin->placement);
    wanted_forget(&plugin->wanted);
}

static void plugin_on_folder(uv_fs_event_t *watch, const char *name, int events, int status)
{
    struct plugin_daemon *plugin = watch->data;

    (void)name;
    (void)events;
    (void)status;
    plugin->again_msec = 0;
    plugin_check(plugin);
}

/* Sockets are compared with what is known of them, so nothing is missed and nothing done twice. The
 * folder's watch is renewed each time: the folder itself may be another one.
 */
static void plugin_check(struct plugin_daemon *plugin)
{
    struct aq_error err = { 0 };
    int r;

    (void)uv_fs_event_stop(&plugin->watch);
    r = uv_fs_event_start(&plugin->watch, plugin_on_folder, plugin->settings->kubelet, 0);
    if (r < 0)
        (void)aq_fail(&err, -r, "the folder '%s': %s", plugin->settings->kubelet, uv_strerror(r));
    for (size_t i = 0; r == 0 && i < RESOURCE_KINDS; i++)
        r = resource_check(&plugin->resources[i], &err);
    if (r < 0) {
        log_error("%s", err.text);
        plugin_try_again(plugin);
    }
}

/* ---- cards ---- */

static void plugin_read_cards(struct plugin_daemon *plugin)
{
    const struct card_units units = { .memory_unit = plugin->settings->memory_unit,
                                      .compute_units = plugin->settings->compute_units };

    cards_read(plugin->accel, &units, &plugin->placement.cards);
}

static void plugin_on_changed(void *data)
{
    struct plugin_daemon *plugin = data;

    plugin_read_cards(plugin);
    for (size_t i = 0; i < RESOURCE_KINDS; i++)
        resource_tell(&plugin->resources[i]);
    node_note_wake(plugin->note);
}

/* ---- life ---- */

static void plugin_on_closed(uv_handle_t *handle)
{
    struct plugin_daemon *plugin = handle->data;

    if (--plugin->open_handles == 0)
        free(plugin);
}

static void plugin_end(void *data)
{
    struct plugin_daemon *plugin = data;

    for (size_t i = 0; i < RESOURCE_KINDS; i++)
        resource_done(&plugin->resources[i]);
    node_note_free(plugin->note);
    limits_free(plugin->limits);
    accel_free(plugin->accel);
    placement_done(&plugin->placement);
    node_files_done(&plugin->files);
    free(plugin->kubelet_path);
    aq_closep(&plugin->lock);
    plugin->open_handles = 2;
    uv_close((uv_handle_t *)&plugin->watch, plugin_on_closed);
    uv_close((uv_handle_t *)&plugin->again, plugin_on_closed);
}

static void plugin_endp(struct plugin_daemon **plugin)
{
    if (*plugin)
        plugin_end(*plugin);
}

static void plugin_on_pods(void *data)
{
    const struct plugin_daemon *plugin = data;

    node_note_wake(plugin->note);
}

static int plugin_new_limits(struct plugin_daemon *plugin, struct aq_error *err)
{
    const struct limits_conf conf = { .loop = plugin->loop,
                                      .settings = plugin->settings,
                                      .accel = plugin->accel,
                                      .folder = plugin->files.socket_folder,
                                      .on_pods = plugin_on_pods,
                                      .data = plugin };

    return limits_new(&conf, &plugin->limits, err);
}

/* ---- one plugin at a time ---- */

static void plugin_on_lock(uv_timer_t *timer);

static int plugin_serve(struct plugin_daemon *plugin, struct aq_error *err)
{
    int r;

    plugin->note = node_note_new(plugin);
    r = limits_start(plugin->limits, err);
    if (r < 0)
        return r;
    node_note_wake(plugin->note);
    plugin_check(plugin);
    return 0;
}

/* Two that serve the same slices would both give back what a process held that ended, and each
 * could have one of the sockets. So one that starts while another is there, as in a rollout, waits
 * for its end.
 */
static int plugin_lock(struct plugin_daemon *plugin, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/plugin.lock", plugin->settings->run);
    AQ_CLEANUP(aq_closep) int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (lock < 0)
        return aq_fail_errno(err, "lock '%s'", path);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        if (!uv_is_active((uv_handle_t *)&plugin->again))
            log_info("another plugin serves this node: waiting for its end");
        (void)uv_timer_start(&plugin->again, plugin_on_lock, LOCK_MSEC, LOCK_MSEC);
        return 0;
    }
    (void)uv_timer_stop(&plugin->again);
    plugin->lock = AQ_TAKE_FD(lock);
    return plugin_serve(plugin, err);
}

static void plugin_on_lock(uv_timer_t *timer)
{
    struct aq_error err = { 0 };

    if (plugin_lock(timer->data, &err) < 0)
        log_error("%s", err.text);
}

static int plugin_begin(uv_loop_t *loop, const struct settings *settings, void **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(plugin_endp) struct plugin_daemon *plugin = aq_alloc(sizeof(*plugin));
    int r;

    plugin->loop = loop;
    plugin->lock = -1;
    plugin->settings = settings;
    (void)uv_fs_event_init(loop, &plugin->watch);
    (void)uv_timer_init(loop, &plugin->again);
    plugin->watch.data = plugin->again.data = plugin;
    resource_init(plugin, RESOURCE_MEMORY, settings->memory_name, "aliquot-memory.sock");
    resource_init(plugin, RESOURCE_COMPUTE, settings->compute_name, "aliquot-compute.sock");
    plugin->kubelet_path = aq_format("%s/kubelet.sock", settings->kubelet);
    r = node_files_make(settings->run, settings->gpu_library, &plugin->files, err);
    if (r == 0)
        r = accel_new(loop, &settings->accel, plugin_on_changed, plugin, &plugin->accel, err);
    if (r < 0)
        return r;
    plugin_read_cards(plugin);
    r = plugin_new_limits(plugin, err);
    if (r == 0)
        r = plugin_lock(plugin, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(plugin);
    return 0;
}

const struct role plugin_role = {
    .name = "plugin",
    .usage = "the kubelet's device plugin: offers memory and compute of this node's GPUs",
    .begin = plugin_begin,
    .end = plugin_end,
};
