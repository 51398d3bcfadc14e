/* SPDX-License-Identifier: Apache-2.0 */
/* node_note.c - see node_note.h */
#include "k8s/plugin/node_note.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "k8s/api_server.h"
#include "k8s/event.h"

#define SETTLE_MSEC 200 /* the kubelet asks for several things one after the other */
#define PAUSE_USEC USEC_PER_SEC
#define AGAIN_MSEC 5000
#define TOLD_MAX 1024

struct node_note {
    struct plugin_daemon *plugin;
    struct devices_request *asking;
    struct kube_call *patching;
    bool is_stale, is_failing;
    int64_t begun_usec;
    struct strbuf sent, sending; /* the annotation */
    struct map told;             /* "UID/CONTAINER" that are on another card */
    uv_timer_t timer;            /* its closing frees all this */
};

static void node_note_on_timer(uv_timer_t *timer);

static void node_note_start(struct node_note *note, unsigned msec)
{
    (void)uv_timer_start(&note->timer, node_note_on_timer, msec, 0);
}

void node_note_wake(struct node_note *note)
{
    int64_t wait;

    if (!note)
        return;
    note->is_stale = true;
    if (note->asking || note->patching || uv_is_active((uv_handle_t *)&note->timer))
        return;
    wait = (note->begun_usec + PAUSE_USEC - clock_monotonic_usec()) / 1000;
    node_note_start(note, (unsigned)AQ_MAX(wait, (int64_t)SETTLE_MSEC));
}

/* ---- what is written ---- */

static void node_note_write_cards(const struct cards *cards, struct jsonw *w)
{
    jsonw_key(w, "cards");
    jsonw_array_begin(w);
    for (size_t i = 0; i < cards->count; i++) {
        const struct card *card = &cards->items[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "id", card->id);
        jsonw_member_str(w, "model", card->model);
        jsonw_member_int(w, "memory", card->units[RESOURCE_MEMORY]);
        jsonw_member_int(w, "compute", card->units[RESOURCE_COMPUTE]);
        jsonw_member_int(w, "numa", card->numa_node);
        jsonw_member_bool(w, "healthy", card->is_healthy);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void node_note_tell_other_card(struct node_note *note, const struct node_pod *pod,
                                      const struct node_container *of, const char *card)
{
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s/%s", pod->uid, of->name);
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "container %s is on card %s, not on %s as the scheduler wanted: what the kubelet had left",
        of->name, card, of->card);
    const struct event event = { .reason = EVENT_OTHER_CARD,
                                 .text = text,
                                 .namespace = pod->namespace,
                                 .pod = pod->name,
                                 .uid = pod->uid };

    if (note->told.count >= TOLD_MAX)
        map_done(&note->told);
    if (map_gets(&note->told, key))
        return;
    map_sets(&note->told, key, note);
    events_tell(limits_events(note->plugin->limits), &event);
}

static void node_note_write_container(struct node_note *note, const struct node_pod *pod,
                                      const struct node_container *of,
                                      const struct device_holder *holder, struct jsonw *w)
{
    for (size_t i = 0; i < holder->part_count; i++) {
        const struct given_part *part = &holder->parts[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "pod", pod->uid);
        jsonw_member_str(w, "container", of->name);
        jsonw_member_str(w, "card", part->card);
        jsonw_member_int(w, "memory", part->memory);
        jsonw_member_int(w, "compute", part->compute);
        jsonw_object_end(w);
        if (of->card[0] && strcmp(of->card, part->card) != 0)
            node_note_tell_other_card(note, pod, of, part->card);
    }
}

static void node_note_write(struct node_note *note, const struct device_list *list,
                            struct strbuf *out)
{
    const struct pods *pods = limits_pods(note->plugin->limits);
    struct jsonw w = jsonw_make(out);
    const struct node_pod *pod;

    jsonw_object_begin(&w);
    node_note_write_cards(&note->plugin->placement.cards, &w);
    jsonw_key(&w, "containers");
    jsonw_array_begin(&w);
    for (size_t i = 0; (pod = pods_at(pods, i)); i++)
        for (size_t k = 0; !pod->is_over && k < pod->container_count; k++) {
            const struct device_holder *holder = device_list_find(
                list, pod->uid, pod->namespace, pod->name, pod->containers[k].name);

            if (holder)
                node_note_write_container(note, pod, &pod->containers[k], holder, &w);
        }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

/* ---- asking and writing ---- */

static void node_note_conclude(struct node_note *note, const struct aq_error *err)
{
    if (err->code) {
        if (!note->is_failing)
            log_warning("the node's annotation " NODE_CARDS " is not written: %s", err->text);
        node_note_start(note, AGAIN_MSEC);
    } else if (note->is_stale) {
        node_note_wake(note);
    }
    note->is_failing = err->code != 0;
}

static void node_note_on_patched(void *data, const json_t *answer, const struct aq_error *err)
{
    struct node_note *note = data;

    note->patching = NULL;
    strbuf_clear(&note->sent);
    if (answer)
        strbuf_adds(&note->sent, note->sending.data);
    node_note_conclude(note, err);
}

static int node_note_patch(struct node_note *note, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/api/v1/nodes/%s",
                                                limits_node(note->plugin->limits));
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct jsonw w = jsonw_make(&body);
    struct kube_ask ask = { .method = METHOD_PATCH, .path = path, .type = KUBE_MERGE_PATCH };

    jsonw_object_begin(&w);
    jsonw_key(&w, "metadata");
    jsonw_object_begin(&w);
    jsonw_key(&w, "annotations");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, NODE_CARDS, note->sending.data);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    ask.body = body.data;
    return kube_api_ask(limits_api(note->plugin->limits), &ask, node_note_on_patched, note,
                        &note->patching, err);
}

static void node_note_on_devices(void *data, const struct device_list *list,
                                 const struct aq_error *err)
{
    struct node_note *note = data;
    struct aq_error failed = *err;

    note->asking = NULL;
    if (list && pods_are_known(limits_pods(note->plugin->limits))) {
        strbuf_clear(&note->sending);
        node_note_write(note, list, &note->sending);
        if (strcmp(note->sending.data, note->sent.data ? note->sent.data : "") != 0
            && node_note_patch(note, &failed) == 0)
            return;
    }
    node_note_conclude(note, &failed);
}

static void node_note_on_timer(uv_timer_t *timer)
{
    struct node_note *note = timer->data;
    struct aq_error err = { 0 };

    note->is_stale = false;
    note->begun_usec = clock_monotonic_usec();
    if (devices_ask(note->plugin->loop, note->plugin->settings, node_note_on_devices, note,
                    &note->asking, &err)
        < 0)
        node_note_conclude(note, &err);
}

/* ---- life ---- */

struct node_note *node_note_new(struct plugin_daemon *plugin)
{
    struct node_note *note = aq_alloc(sizeof(*note));

    note->plugin = plugin;
    strbuf_init(&note->sent);
    strbuf_init(&note->sending);
    (void)uv_timer_init(plugin->loop, &note->timer);
    note->timer.data = note;
    return note;
}

static void node_note_on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void node_note_free(struct node_note *note)
{
    if (!note)
        return;
    devices_cancel(note->asking);
    kube_call_cancel(note->patching);
    strbuf_done(&note->sent);
    strbuf_done(&note->sending);
    map_done(&note->told);
    uv_close((uv_handle_t *)&note->timer, node_note_on_closed);
}
