/* SPDX-License-Identifier: Apache-2.0 */
/* top_rows.c - the sessions of "top" as rows: what they use, their order, which match */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/output/resource_usage.h"
#include "cli/session/live.h"
#include "cli/session/top.h"

const struct column top_columns[] = {
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "name", "SESSION", COLUMN_TEXT, COLUMN_IS_NAME },
    { "user", "USER", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_MAY_SHRINK },
    { "running_since", "AGE", COLUMN_TIME, 0 },
    { "cpu", "CPU %", COLUMN_NUMBER, 0 },
    { "mem", "MEMORY", COLUMN_NUMBER, 0 },
    { "accelerators", "ACCELERATORS", COLUMN_TEXT, 0 },
    { "net", "NET IN/OUT", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "io", "IO READ/WRITE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "connections", "CONNECTIONS", COLUMN_NUMBER, COLUMN_IS_WIDE },
    COLUMN_END,
};

static void top_set_text(json_t *row, const char *key, const struct strbuf *text)
{
    (void)json_object_set_new(row, key, text->len ? json_string(text->data) : json_null());
}

static void top_set_pair(const struct output *o, json_t *row, const char *key, const json_t *used,
                         const char *in, const char *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_object_get(used, in)) {
        usage_write(o, json_object_get(used, in), "current", &text);
        strbuf_adds(&text, " / ");
        usage_write(o, json_object_get(used, out), "current", &text);
    }
    top_set_text(row, key, &text);
}

/* A text with the part of all that it is; null if there is none. */
static void top_set_load(json_t *row, const char *key, double part, const struct strbuf *text)
{
    (void)json_object_set_new(row, key,
                              text->len ? json_pack("{s:f,s:s}", "part", part, "text", text->data)
                                        : json_null());
}

static void top_set_cores(const struct output *o, json_t *row, const json_t *used)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf percent = STRBUF_INIT, cores = STRBUF_INIT;
    const json_t *metric = json_object_get(used, "cpu_util");
    const json_t *slots = json_object_get(row, "requested_slots");

    if (metric) {
        strbuf_addf(&percent, "%.1f", usage_number(metric, "current") / 10);
        usage_write_used(o, "cpu_util", metric, "current", &cores);
        strbuf_addc(&cores, '/');
        usage_write_limit(o, "cpu_util", metric, slots, &cores);
    }
    top_set_text(row, "cpu", &percent);
    top_set_load(row, "cpu_load", usage_part("cpu_util", metric, slots), &cores);
}

static void top_set_memory(const struct output *o, json_t *row, const json_t *used)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const json_t *metric = json_object_get(used, "mem");

    if (metric)
        usage_write_used(o, "mem", metric, "current", &text);
    top_set_text(row, "mem", &text);
    top_set_load(row, "mem_load", usage_part("mem", metric, NULL), &text);
}

/* "cuda 73 % 1.5 GiB" for each kind of device that the session has. */
static void top_set_accelerators(const struct output *o, json_t *row, const json_t *used)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *key;
    json_t *metric;
    double part = -1;
    size_t len;

    json_object_foreach((json_t *)(uintptr_t)used, key, metric) {
        double own = usage_part(key, metric, NULL);
        char memory[80];

        if (!usage_is_accelerator(key, &len))
            continue;
        part = AQ_MAX(part, own);
        (void)snprintf(memory, sizeof(memory), "%.*s_mem", (int)len, key);
        strbuf_addf(&text, "%s%.*s %.0f %%", text.len ? ", " : "", (int)len, key,
                    usage_number(metric, "pct"));
        if (json_object_get(used, memory)) {
            strbuf_addc(&text, ' ');
            usage_write_used(o, memory, json_object_get(used, memory), "current", &text);
        }
    }
    top_set_text(row, "accelerators", &text);
    top_set_load(row, "accelerator_load", part, &text);
}

void top_adapt(const struct output *o, json_t *session)
{
    const json_t *used = json_object_get(session, "used");

    top_set_cores(o, session, used);
    top_set_memory(o, session, used);
    top_set_accelerators(o, session, used);
    top_set_pair(o, session, "net", used, "net_rx", "net_tx");
    top_set_pair(o, session, "io", used, "io_read", "io_write");
}

/* ---- live: order and search ---- */

/* The most important first: a narrow terminal shows no more. */
static const struct column top_live_columns[] = {
    { "name", "SESSION", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "cpu_load", "CPU CORES", COLUMN_LOAD, 0 },
    { "mem_load", "MEMORY", COLUMN_LOAD, 0 },
    { "accelerator_load", "ACCELERATORS", COLUMN_LOAD, 0 },
    { "running_since", "AGE", COLUMN_TIME, 0 },
    { "user", "USER", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_MAY_SHRINK },
    { "net", "NET IN/OUT", COLUMN_TEXT, 0 },
    { "io", "IO READ/WRITE", COLUMN_TEXT, 0 },
    { "connections", "CONNECTIONS", COLUMN_NUMBER, 0 },
    COLUMN_END,
};

static const struct {
    char key;
    const char *column;
} top_orders[] = {
    { 'c', "cpu_load" },      { 'm', "mem_load" }, { 'g', "accelerator_load" },
    { 'a', "running_since" }, { 'n', "name" },
};

bool top_order_is_key(uint32_t key)
{
    for (size_t i = 0; i < AQ_COUNT(top_orders); i++)
        if (key == (uint32_t)top_orders[i].key)
            return true;
    return false;
}

struct top_ranked {
    json_t *row;
    double measure; /* the highest comes first */
    const char *name, *id;
};

static double top_measure_accelerators(const json_t *used)
{
    const char *key;
    json_t *metric;
    double sum = 0;
    size_t len;

    json_object_foreach((json_t *)(uintptr_t)used, key, metric)
        sum += usage_is_accelerator(key, &len) ? usage_number(metric, "current") : 0;
    return sum;
}

static double top_measure(const json_t *row, char key)
{
    const json_t *used = json_object_get(row, "used");
    int64_t since;

    switch (key) {
    case 'c':
        return usage_number(json_object_get(used, "cpu_util"), "current");
    case 'm':
        return usage_number(json_object_get(used, "mem"), "current");
    case 'g':
        return top_measure_accelerators(used);
    case 'a':
        return clock_parse_date(output_text(row, "running_since"), &since) == 0 ? -(double)since
                                                                                : -1e30;
    default:
        return 0;
    }
}

static int top_compare(const void *left, const void *right, void *data)
{
    const struct top_ranked *a = left, *b = right;
    const struct top_order *order = data;
    int c = (a->measure < b->measure) - (a->measure > b->measure);

    if (c == 0)
        c = strverscmp(a->name, b->name);
    if (c == 0)
        c = strcmp(a->id, b->id);
    return order->is_reversed ? -c : c;
}

static bool top_matches(const json_t *row, const char *search)
{
    return strcasestr(output_text(row, "name"), search)
           || strcasestr(output_text(row, "user"), search);
}

json_t **top_select(json_t *sessions, const char *search, struct top_order order, size_t *ret_count)
{
    size_t all = json_array_size(sessions), count = 0, i;
    AQ_CLEANUP(aq_freep) struct top_ranked *ranked = aq_alloc_array(all + 1, sizeof(*ranked));
    json_t **rows = aq_alloc_array(all + 1, sizeof(*rows)), *row;

    json_array_foreach(sessions, i, row)
        if (top_matches(row, search))
            ranked[count++] = (struct top_ranked){ row, top_measure(row, order.key),
                                                   output_text(row, "name"),
                                                   output_text(row, "id") };
    qsort_r(ranked, count, sizeof(*ranked), top_compare, &order);
    for (i = 0; i < count; i++)
        rows[i] = ranked[i].row;
    *ret_count = count;
    return rows;
}

static const char *top_order_mark(const struct output *o, struct top_order order)
{
    bool is_rising = (order.key == 'n') != order.is_reversed;

    if (o->ascii)
        return is_rising ? "^" : "v";
    return is_rising ? "\xe2\x96\xb2" : "\xe2\x96\xbc";
}

void top_write_rows(const struct output *o, json_t *const *rows, size_t count,
                    struct top_order order, struct strbuf *out)
{
    struct column columns[AQ_COUNT(top_live_columns)];
    json_t *list = json_array();
    const char *ordered = "";
    char title[40];

    memcpy(columns, top_live_columns, sizeof(columns));
    for (size_t i = 0; i < AQ_COUNT(top_orders); i++)
        ordered = top_orders[i].key == order.key ? top_orders[i].column : ordered;
    for (struct column *c = columns; c->title; c++)
        if (strcmp(c->key, ordered) == 0) {
            (void)snprintf(title, sizeof(title), "%s%s", c->title, top_order_mark(o, order));
            c->title = title;
        }
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(list, rows[i]);
    live_write_table(o, columns, list, out);
    json_decref(list);
}
