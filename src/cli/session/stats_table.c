/* SPDX-License-Identifier: Apache-2.0 */
/* stats_table.c - what a session's kernels use, a row for each metric, with its last samples */
#include "cli/session/stats_table.h"

#include <string.h>

#include "cli/output/resource_usage.h"
#include "cli/session/live.h"
#include "model/metric.h"

#define NARROW 60 /* columns of a terminal that has room for few samples */
#define NARROW_SAMPLES 8

static const struct column stats_columns[] = {
    { "kernel", "KERNEL", COLUMN_TEXT, 0 },
    { "metric", "METRIC", COLUMN_TEXT, COLUMN_IS_NAME },
    { "now", "NOW", COLUMN_NUMBER, 0 },
    { "of", "OF", COLUMN_NUMBER, 0 },
    { "pct", "%", COLUMN_NUMBER, 0 },
    { "max", "MAX", COLUMN_NUMBER, 0 },
    { "avg", "AVG", COLUMN_NUMBER, 0 },
    { "rate", "RATE", COLUMN_NUMBER, 0 },
    { "at", "AGE", COLUMN_TIME, COLUMN_IS_WIDE },
    COLUMN_END,
};

/* The most important first: a narrow terminal shows no more. */
static const struct column stats_live_columns[] = {
    { "metric", "METRIC", COLUMN_TEXT, 0 },
    { "now", "NOW", COLUMN_NUMBER, 0 },
    { "timeline", "LAST SAMPLES", COLUMN_TEXT, 0 },
    { "of", "OF", COLUMN_NUMBER, 0 },
    { "pct", "%", COLUMN_NUMBER, 0 },
    { "max", "MAX", COLUMN_NUMBER, 0 },
    { "avg", "AVG", COLUMN_NUMBER, 0 },
    { "rate", "RATE", COLUMN_NUMBER, 0 },
    { "kernel", "KERNEL", COLUMN_TEXT, 0 },
    COLUMN_END,
};

/* ---- samples ---- */

bool stats_is_measured(const json_t *answer)
{
    json_t *kernel;
    size_t i;

    json_array_foreach(json_object_get(answer, "kernels"), i, kernel)
        if (json_object_size(json_object_get(kernel, "statistics")))
            return true;
    return false;
}

static bool stats_is_repeated(const json_t *last, const json_t *answer)
{
    const json_t *kernels = json_object_get(answer, "kernels"), *before, *kernel;
    size_t i;

    json_array_foreach(kernels, i, kernel) {
        before = json_array_get(json_object_get(last, "kernels"), i);
        if (!json_equal(json_object_get(before, "at"), json_object_get(kernel, "at")))
            return false;
    }
    return true;
}

void stats_history_add(struct stats_history *h, json_t *answer)
{
    if (h->count && stats_is_repeated(h->answers[h->count - 1], answer)) {
        json_decref(h->answers[--h->count]);
    } else if (h->count == STATS_SAMPLES_MAX) {
        json_decref(h->answers[0]);
        memmove(h->answers, h->answers + 1, --h->count * sizeof(*h->answers));
    }
    h->answers[h->count++] = answer;
}

void stats_history_done(struct stats_history *h)
{
    while (h->count)
        json_decref(h->answers[--h->count]);
}

/* The metric in each answer, as a part of all if it is of anything, else of the highest. */
static void stats_write_timeline(const struct output *o, const struct stats_history *h,
                                 size_t kernel, const char *key, struct strbuf *out)
{
    size_t shown = o->width > 0 && o->width < NARROW ? NARROW_SAMPLES : STATS_SAMPLES_MAX;
    double values[STATS_SAMPLES_MAX], highest = 0;
    size_t count = 0;

    for (size_t i = h->count > shown ? h->count - shown : 0; i < h->count; i++) {
        const json_t *at = json_array_get(json_object_get(h->answers[i], "kernels"), kernel);
        const json_t *metric = json_object_get(json_object_get(at, "statistics"), key);
        double part = usage_part(key, metric, json_object_get(at, "requested_slots"));

        if (!metric)
            continue;
        values[count] = part < 0 ? usage_number(metric, "current") : part;
        highest = part < 0 ? AQ_MAX(highest, values[count]) : 1;
        count++;
    }
    usage_write_timeline(o, values, count, highest, out);
}

/* ---- rows ---- */

static void stats_set_text(json_t *row, const char *key, const struct strbuf *text)
{
    (void)json_object_set_new(row, key, json_string(text->data));
}

/* As users read it: the same functions as of every other view. */
static void stats_set_shown(const struct output *o, json_t *row, const char *key,
                            const json_t *metric, const json_t *slots)
{
    static const struct {
        const char *column, *member;
    } members[] = { { "now", "current" },
                    { "max", "stats.max" },
                    { "avg", "stats.avg" },
                    { "rate", "stats.rate" } };
    AQ_CLEANUP(strbuf_donep) struct strbuf of = STRBUF_INIT;
    double part = usage_part(key, metric, slots);
    char percent[METRIC_NUMBER_MAX];

    for (size_t i = 0; i < AQ_COUNT(members); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        usage_write_used(o, key, metric, members[i].member, &text);
        stats_set_text(row, members[i].column, &text);
    }
    usage_write_limit(o, key, metric, slots, &of);
    stats_set_text(row, "of", &of);
    (void)json_object_set_new(
        row, "pct", part < 0 ? json_null() : json_string(metric_format(part * 100, 2, percent)));
}

/* As it came, for programs. */
static void stats_set_raw(json_t *row, const json_t *metric)
{
    static const struct {
        const char *column, *member;
    } members[] = { { "now", "current" },   { "of", "capacity" },   { "pct", "pct" },
                    { "max", "stats.max" }, { "avg", "stats.avg" }, { "rate", "stats.rate" } };

    for (size_t i = 0; i < AQ_COUNT(members); i++) {
        json_t *value = json_object_get(metric, members[i].member);

        (void)json_object_set(row, members[i].column, value ? value : json_null());
    }
}

static void stats_add_kernel(const struct output *o, const struct stats_history *h, size_t index,
                             const json_t *kernel, json_t *rows)
{
    const json_t *slots = json_object_get(kernel, "requested_slots");
    json_t *name = json_object_get(kernel, "hostname"), *at = json_object_get(kernel, "at"),
           *metric;
    const char *key;

    json_object_foreach(json_object_get(kernel, "statistics"), key, metric) {
        AQ_CLEANUP(strbuf_donep) struct strbuf timeline = STRBUF_INIT;
        json_t *row = json_object();

        (void)json_object_set(row, "kernel", name ? name : json_null());
        (void)json_object_set_new(row, "metric", json_string(key));
        (void)json_object_set(row, "at", at ? at : json_null());
        if (output_is_human(o)) {
            stats_set_shown(o, row, key, metric, slots);
            stats_write_timeline(o, h, index, key, &timeline);
            stats_set_text(row, "timeline", &timeline);
        } else {
            stats_set_raw(row, metric);
        }
        (void)json_array_append_new(rows, row);
    }
}

static json_t *stats_rows(const struct output *o, const struct stats_history *h)
{
    const json_t *last = h->count ? h->answers[h->count - 1] : NULL, *kernel;
    json_t *rows = json_array();
    size_t i;

    json_array_foreach(json_object_get(last, "kernels"), i, kernel)
        stats_add_kernel(o, h, i, kernel, rows);
    return rows;
}

int stats_write(const struct output *o, const struct stats_history *h, struct strbuf *out,
                struct aq_error *err)
{
    json_t *rows = stats_rows(o, h);
    int r = output_list(o, stats_columns, rows, out, err);

    json_decref(rows);
    return r;
}

void stats_write_live(const struct output *o, const struct stats_history *h, struct strbuf *out)
{
    static const struct column name = { "name", "", COLUMN_TEXT, 0 };
    static const struct column status = { "status", "", COLUMN_TEXT, 0 };
    const json_t *last = h->count ? h->answers[h->count - 1] : NULL;
    json_t *rows = stats_rows(o, h);

    cell_write(o, &name, json_object_get(last, "name"), out);
    strbuf_adds(out, "  ");
    cell_write(o, &status, json_object_get(last, "status"), out);
    strbuf_adds(out, "\n\n");
    live_write_table(o, stats_live_columns, rows, out);
    json_decref(rows);
}
