/* SPDX-License-Identifier: Apache-2.0 */
/* results.c - collects what a plugin hands over during a call, as JSON */
#include "accel/results.h"

#include <errno.h>
#include <stdio.h>

#include "base/jsonw.h"

void results_init(struct results *results)
{
    *results = (struct results){ STRBUF_INIT, STRBUF_INIT, STRBUF_INIT, STRBUF_INIT,
                                 STRBUF_INIT, STRBUF_INIT, STRBUF_INIT, "" };
}

void results_done(struct results *results)
{
    strbuf_done(&results->identity);
    strbuf_done(&results->info);
    strbuf_done(&results->slots);
    strbuf_done(&results->devices);
    strbuf_done(&results->needs);
    strbuf_done(&results->parts);
    strbuf_done(&results->metrics);
}

/* One more member of a list. */
static struct jsonw results_begin(struct strbuf *list)
{
    struct jsonw w = jsonw_make(list);

    if (list->len)
        strbuf_addc(list, ',');
    jsonw_object_begin(&w);
    return w;
}

static void results_put_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_member_str(w, key, text);
}

static void results_put_int(struct jsonw *w, const char *key, int64_t value)
{
    if (value)
        jsonw_member_int(w, key, value);
}

static void results_put_double(struct jsonw *w, const char *key, double value)
{
    jsonw_key(w, key);
    jsonw_double(w, value);
}

static void results_on_identity(void *data, const struct aq_accelerator_identity *identity)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->identity);

    results_put_text(&w, "key", identity->key);
    results_put_text(&w, "name", identity->name);
    results_put_text(&w, "version", identity->version);
    results_put_int(&w, "status", identity->status);
    results_put_text(&w, "status_text", identity->status_text);
    jsonw_object_end(&w);
}

static void results_on_info(void *data, const char *key, const char *value)
{
    struct results *results = data;
    struct jsonw w = jsonw_make(&results->info);

    w.need_comma = results->info.len > 0;
    if (key)
        jsonw_member_str(&w, key, value);
}

static void results_on_slot(void *data, const struct aq_accelerator_slot *slot)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->slots);

    results_put_text(&w, "name", slot->name);
    results_put_int(&w, "type", slot->type);
    results_put_int(&w, "round_length", slot->round_length);
    results_put_int(&w, "quantum", slot->quantum);
    results_put_text(&w, "exclusive", slot->exclusive);
    results_put_text(&w, "human_name", slot->human_name);
    results_put_text(&w, "description", slot->description);
    results_put_text(&w, "display_unit", slot->display_unit);
    results_put_text(&w, "display_icon", slot->display_icon);
    jsonw_object_end(&w);
}

static void results_on_device(void *data, const struct aq_accelerator_device *device)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->devices);

    results_put_text(&w, "id", device->id);
    results_put_text(&w, "slot", device->slot);
    results_put_int(&w, "amount", device->amount);
    results_put_int(&w, "quantum", device->quantum);
    results_put_text(&w, "model", device->model);
    results_put_text(&w, "location", device->location);
    results_put_int(&w, "memory_bytes", (int64_t)(device->memory_bytes & INT64_MAX));
    results_put_int(&w, "processors", device->processors);
    jsonw_member_int(&w, "numa_node", device->numa_node);
    results_put_text(&w, "parent", device->parent);
    results_put_int(&w, "status", device->status);
    results_put_text(&w, "status_text", device->status_text);
    jsonw_object_end(&w);
}

static void results_on_need(void *data, const struct aq_accelerator_need *need)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->needs);

    results_put_int(&w, "kind", need->kind);
    results_put_int(&w, "flags", need->flags);
    results_put_text(&w, "name", need->name);
    results_put_text(&w, "value", need->value);
    jsonw_object_end(&w);
}

static void results_on_part(void *data, const struct aq_accelerator_part *part)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->parts);

    results_put_text(&w, "device", part->device);
    results_put_text(&w, "model", part->model);
    results_put_int(&w, "memory_bytes", (int64_t)(part->memory_bytes & INT64_MAX));
    results_put_int(&w, "processors", part->processors);
    results_put_int(&w, "time", part->time);
    jsonw_object_end(&w);
}

static void results_on_metric(void *data, const struct aq_accelerator_metric *metric)
{
    struct results *results = data;
    struct jsonw w = results_begin(&results->metrics);

    results_put_text(&w, "key", metric->key);
    results_put_text(&w, "device", metric->device);
    if (metric->target != AQ_ACCELERATOR_NO_TARGET)
        jsonw_member_int(&w, "target", metric->target);
    results_put_int(&w, "unit", metric->unit);
    results_put_int(&w, "stats", metric->stats);
    results_put_double(&w, "value", metric->value); /* null if it is not a number */
    if (!(metric->capacity < 0))
        results_put_double(&w, "capacity", metric->capacity);
    jsonw_object_end(&w);
}

static void results_on_error(void *data, const char *text)
{
    struct results *results = data;

    (void)snprintf(results->error, sizeof(results->error), "%s", text ? text : "");
}

struct aq_accelerator_out results_out(struct results *results)
{
    return (struct aq_accelerator_out){
        .abi = AQ_ACCELERATOR_ABI,
        .size = sizeof(struct aq_accelerator_out),
        .data = results,
        .identity = results_on_identity,
        .info = results_on_info,
        .slot = results_on_slot,
        .device = results_on_device,
        .need = results_on_need,
        .part = results_on_part,
        .metric = results_on_metric,
        .error = results_on_error,
    };
}

void results_write(const struct results *results, struct strbuf *out)
{
    const struct {
        const char *name, *open, *close;
        const struct strbuf *list;
    } lists[] = {
        /* two identities make text that is not JSON: refused by the reader */
        { "identity", "", "", &results->identity }, { "info", "{", "}", &results->info },
        { "slots", "[", "]", &results->slots },     { "devices", "[", "]", &results->devices },
        { "needs", "[", "]", &results->needs },     { "parts", "[", "]", &results->parts },
        { "metrics", "[", "]", &results->metrics },
    };
    bool is_first = true;

    strbuf_addc(out, '{');
    for (size_t i = 0; i < AQ_COUNT(lists); i++) {
        if (lists[i].list->len == 0)
            continue;
        strbuf_addf(out, "%s\"%s\":%s", is_first ? "" : ",", lists[i].name, lists[i].open);
        strbuf_add(out, lists[i].list->data, lists[i].list->len);
        strbuf_adds(out, lists[i].close);
        is_first = false;
    }
    strbuf_addc(out, '}');
}
