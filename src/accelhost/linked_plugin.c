/* SPDX-License-Identifier: Apache-2.0 */
/* linked_plugin.c - a plugin that is part of this program and is called within it */
#include "accelhost/linked_plugin.h"

#include <string.h>

#include "accel/host.h"
#include "base/memory.h"

struct linked_plugin {
    struct host host;
    const struct helper_events *events;
    void *data;
    char *request;
    uv_timer_t due; /* its closing frees all this */
};

static void linked_plugin_on_due(uv_timer_t *timer)
{
    struct linked_plugin *linked = timer->data;
    AQ_CLEANUP(aq_freep) char *request = AQ_TAKE(linked->request);
    AQ_CLEANUP(strbuf_donep) struct strbuf answer = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (host_answer(&linked->host, request, strlen(request), &answer, &err) < 0)
        linked->events->on_failed(linked->data, err.text);
    else
        linked->events->on_line(linked->data, answer.data, answer.len - 1); /* without its '\n' */
}

int linked_plugin_new(const struct helper_conf *conf, const struct helper_events *events,
                      void *data, struct linked_plugin **ret, struct aq_error *err)
{
    struct linked_plugin *linked = aq_alloc(sizeof(*linked));
    int r = host_open(conf->linked, conf->plugin, conf->config, &linked->host, err);

    if (r < 0) {
        free(linked);
        return r;
    }
    linked->events = events;
    linked->data = data;
    linked->due.data = linked;
    (void)uv_timer_init(conf->loop, &linked->due);
    *ret = linked;
    return 0;
}

static void linked_plugin_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void linked_plugin_free(struct linked_plugin *linked)
{
    if (!linked)
        return;
    linked->host.plugin->close(linked->host.self);
    free(linked->request);
    uv_close((uv_handle_t *)&linked->due, linked_plugin_on_closed);
}

void linked_plugin_send(struct linked_plugin *linked, char *text)
{
    linked->request = text;
    (void)uv_timer_start(&linked->due, linked_plugin_on_due, 0, 0);
}
