/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - see volumes.h */
#include "agent/volume/volumes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/spawn.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "transfer/volume_layout.h"

#define LOOK_MSEC 10000u

struct volume_state {
    struct volumes *volumes;
    const char *item;      /* of the settings */
    struct spawned *probe; /* NULL = none runs, or its end is not known */
    int code;              /* of volume_probe(); EINPROGRESS = not known, ETIMEDOUT = it hangs */
};

struct volumes {
    uv_timer_t timer;
    uv_loop_t *loop;
    char *monitor;
    void (*on_change)(void *data);
    void *data;
    struct strbuf list;
    size_t count;
    struct volume_state items[];
};

static bool volumes_is_usable(const struct volume_state *v)
{
    return v->code == 0 || v->code == EOPNOTSUPP;
}

static int volumes_fail(const struct volume_state *v, struct aq_error *err)
{
    const char *path = settings_volume_path(v->item);
    int len = (int)(path - v->item - 1);

    switch (v->code) {
    case 0:
        return 0;
    case EOPNOTSUPP:
        return aq_fail(err, v->code,
                       "volume '%.*s': the file system of %s cannot map users, so only folders of "
                       "the user that containers are on this node can be mounted",
                       len, v->item, path);
    case EPERM:
        return aq_fail(err, v->code,
                       "volume '%.*s': other users of this node have permissions on %s, so that "
                       "they could run setuid programs in its folders: chmod 0700 %s",
                       len, v->item, path, path);
    case ENODATA:
        return aq_fail(err, v->code,
                       "volume '%.*s': no storage host has marked %s (" VOLUME_MARK
                       "); perhaps it is not mounted",
                       len, v->item, path);
    case EINPROGRESS:
    case ETIMEDOUT:
        return aq_fail(err, v->code, "volume '%.*s': %s does not answer", len, v->item, path);
    default:
        return aq_fail(err, v->code, "volume '%.*s': %s: %s", len, v->item, path,
                       strerror(v->code));
    }
}

static void volumes_write_list(struct volumes *volumes)
{
    struct jsonw w = jsonw_make(&volumes->list);

    strbuf_truncate(&volumes->list, 0);
    jsonw_array_begin(&w);
    for (size_t i = 0; i < volumes->count; i++) {
        const char *item = volumes->items[i].item;

        if (volumes_is_usable(&volumes->items[i]))
            jsonw_strn(&w, item, strcspn(item, "="));
    }
    jsonw_array_end(&w);
}

static void volumes_set(struct volume_state *v, int code)
{
    bool was_usable = volumes_is_usable(v);
    struct aq_error err = { 0 };

    if (v->code == code)
        return;
    v->code = code;
    if (volumes_fail(v, &err) < 0)
        log_warning("%s", err.text);
    else
        log_info("volume '%.*s' is there", (int)strcspn(v->item, "="), v->item);
    if (volumes_is_usable(v) == was_usable)
        return;
    volumes_write_list(v->volumes);
    v->volumes->on_change(v->volumes->data);
}

static void volumes_on_probed(void *data, int status, int signum)
{
    struct volume_state *v = data;

    v->probe = NULL;
    volumes_set(v, signum ? EIO : status);
}

static void volumes_probe(struct volume_state *v)
{
    static char flag[] = "--volume";
    static const int no_fds[SPAWN_FDS] = { -1, -1 };
    char *const args[] = { v->volumes->monitor, flag,
                           (char *)(uintptr_t)settings_volume_path(v->item), NULL };
    struct aq_error err = { 0 };

    if (spawn(v->volumes->loop, args, no_fds, volumes_on_probed, v, &v->probe, &err) < 0) {
        log_warning("%s", err.text);
        volumes_set(v, EAGAIN);
    }
}

static void volumes_on_timer(uv_timer_t *timer)
{
    struct volumes *volumes = timer->data;

    for (size_t i = 0; i < volumes->count; i++) {
        if (volumes->items[i].probe)
            volumes_set(&volumes->items[i], ETIMEDOUT);
        else
            volumes_probe(&volumes->items[i]);
    }
}

struct volumes *volumes_new(uv_loop_t *loop, const struct settings *settings, const char *monitor,
                            void (*on_change)(void *data), void *data)
{
    size_t count = settings->volumes.count;
    struct volumes *volumes = aq_alloc(sizeof(*volumes) + count * sizeof(*volumes->items));

    *volumes = (struct volumes){ .loop = loop,
                                 .monitor = aq_strdup(monitor),
                                 .on_change = on_change,
                                 .data = data,
                                 .count = count };
    for (size_t i = 0; i < count; i++)
        volumes->items[i] = (struct volume_state){ .volumes = volumes,
                                                   .item = settings->volumes.items[i],
                                                   .code = EINPROGRESS };
    volumes_write_list(volumes);
    volumes->timer.data = volumes;
    (void)uv_timer_init(loop, &volumes->timer);
    if (count)
        (void)uv_timer_start(&volumes->timer, volumes_on_timer, 0, LOOK_MSEC);
    return volumes;
}

static void volumes_on_closed(uv_handle_t *handle)
{
    struct volumes *volumes = handle->data;

    strbuf_done(&volumes->list);
    free(volumes->monitor);
    free(volumes);
}

void volumes_free(struct volumes *volumes)
{
    if (!volumes)
        return;
    for (size_t i = 0; i < volumes->count; i++)
        spawned_forget(AQ_TAKE(volumes->items[i].probe));
    uv_close((uv_handle_t *)&volumes->timer, volumes_on_closed);
}

bool volumes_are_known(const struct volumes *volumes)
{
    for (size_t i = 0; i < volumes->count; i++)
        if (volumes->items[i].code == EINPROGRESS)
            return false;
    return true;
}

const char *volumes_list(const struct volumes *volumes)
{
    return volumes->list.data;
}

int volumes_find(const struct volumes *volumes, const char *host, const char **ret_path,
                 struct aq_error *err)
{
    size_t len = strlen(host);

    for (size_t i = 0; i < volumes->count; i++) {
        const struct volume_state *v = &volumes->items[i];

        if (strncmp(v->item, host, len) != 0 || v->item[len] != '=')
            continue;
        *ret_path = settings_volume_path(v->item);
        return volumes_is_usable(v) ? 0 : volumes_fail(v, err);
    }
    return aq_fail(err, ENOENT, "this node mounts no volume '%s'", host);
}

int volumes_check(const struct volumes *volumes, size_t number, struct aq_error *err)
{
    return volumes_fail(&volumes->items[number], err);
}
