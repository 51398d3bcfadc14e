/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the manager in readable units. */
#include "cli/output/resource_usage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/metric.h"
#include "model/slot.h"

#define TITLE_MAX 14

double usage_number(const json_t *metric, const char *member)
{
    const char *text = json_string_value(json_object_get(metric, member));

    return text ? strtod(text, NULL) : 0;
}

static void usage_write_bytes(double bytes, struct strbuf *out)
{
    char amount[AMOUNT_TEXT_MAX];

    if (bytes >= 0 && bytes < 9e18)
        strbuf_adds(out, slot_amount_humanize((int64_t)bytes, SLOT_BYTES, amount));
    else
        strbuf_adds(out, "?");
}

void usage_write(const struct output *o, const json_t *metric, const char *member,
                 struct strbuf *out)
{
    const char *unit = json_string_value(json_object_get(metric, "unit_hint"));
    double value = usage_number(metric, member);
    char buf[METRIC_NUMBER_MAX];

    if (!json_is_string(json_object_get(metric, member)) || !unit) {
        strbuf_adds(out, "-");
    } else if (strcmp(unit, "bytes") == 0) {
        usage_write_bytes(value, out);
        strbuf_adds(out, strcmp(member, "stats.rate") == 0 ? "/s" : "");
    } else if (strcmp(unit, "bps") == 0) {
        usage_write_bytes(value, out);
        strbuf_adds(out, "/s");
    } else {
        strbuf_adds(out, metric_format(value, 1, buf));
        if (strcmp(unit, "Celsius") == 0)
            strbuf_adds(out, o->ascii ? " C" : " °C");
        else if (strcmp(unit, "Watts") == 0)
            strbuf_adds(out, " W");
        else if (strcmp(unit, "msec") == 0)
            strbuf_adds(out, " ms");
    }
}

void usage_bar(double fraction, struct strbuf *out)
{
    int full = fraction >= 1  ? USAGE_BAR_WIDTH
               : fraction > 0 ? (int)(fraction * USAGE_BAR_WIDTH + 0.5)
                              : 0;

    strbuf_addc(out, '[');
    for (int i = 0; i < USAGE_BAR_WIDTH; i++)
        strbuf_addc(out, i < full ? '#' : '.');
    strbuf_addc(out, ']');
}

/* A line for a metric that has a capacity; 'whole' is its percentage when all is used. */
static void usage_write_line(const struct output *o, const char *title, const json_t *metric,
                             double whole, struct strbuf *out)
{
    double percent = usage_number(metric, "pct") * 100 / whole;
    bool is_bytes = strcmp(json_string_value(json_object_get(metric, "unit_hint"))
                               ? json_string_value(json_object_get(metric, "unit_hint"))
                               : "",
                           "bytes")
                    == 0;

    strbuf_addf(out, "  %-14.14s ", title);
    usage_bar(percent / 100, out);
    strbuf_addf(out, " %5.1f %%", percent);
    if (is_bytes) {
        strbuf_adds(out, "  ");
        usage_write(o, metric, "current", out);
        strbuf_adds(out, " of ");
        usage_write(o, metric, "capacity", out);
    }
}

static const json_t *usage_device_metric(const json_t *devices, const char *kind,
                                         const char *suffix, const char *id)
{
    char key[METRIC_KEY_MAX + 1];

    (void)snprintf(key, sizeof(key), "%.40s%s", kind, suffix);
    return json_object_get(json_object_get(devices, key), id);
}

/* The end of a long id, as the picture of an agent has it: devices differ there. */
static const char *usage_device_title(const struct strbuf *id, char buf[TITLE_MAX + 1])
{
    const char *text = id->data ? id->data : "?";

    if (strlen(text) <= TITLE_MAX)
        return text;
    (void)snprintf(buf, TITLE_MAX + 1, "..%s", text + strlen(text) - (TITLE_MAX - 2));
    return buf;
}

static void usage_write_device(const struct output *o, const json_t *devices, const char *kind,
                               const char *id, struct strbuf *out)
{
    static const char *const others[] = { "_power", "_temperature" };
    const json_t *memory = usage_device_metric(devices, kind, "_mem", id);
    const struct column column = { "", "", COLUMN_TEXT, 0 };
    json_t *shown = json_string(id);
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    char title[TITLE_MAX + 1];

    cell_write(o, &column, shown, &clean);
    json_decref(shown);
    usage_write_line(o, usage_device_title(&clean, title),
                     usage_device_metric(devices, kind, "_util", id), 100, out);
    if (memory) {
        strbuf_adds(out, "  ");
        usage_bar(usage_number(memory, "pct") / 100, out);
        strbuf_adds(out, " ");
        usage_write(o, memory, "current", out);
        strbuf_adds(out, " of ");
        usage_write(o, memory, "capacity", out);
    }
    for (size_t i = 0; i < AQ_COUNT(others); i++) {
        const json_t *metric = usage_device_metric(devices, kind, others[i], id);

        if (!metric)
            continue;
        strbuf_adds(out, "  ");
        usage_write(o, metric, "current", out);
    }
    strbuf_addc(out, '\n');
}

/* Devices of each kind that says how busy they are: "cuda_util" but "cpu_util". */
static void usage_write_devices(const struct output *o, const json_t *devices, struct strbuf *out)
{
    const char *key, *id;
    json_t *by_device, *metric;

    json_object_foreach((json_t *)(uintptr_t)devices, key, by_device) {
        size_t len = strlen(key);
        char kind[METRIC_KEY_MAX + 1];

        if (len < 6 || len > METRIC_KEY_MAX || strcmp(key + len - 5, "_util") != 0
            || strcmp(key, "cpu_util") == 0)
            continue;
        (void)snprintf(kind, sizeof(kind), "%.*s", (int)(len - 5), key);
        json_object_foreach(by_device, id, metric)
            usage_write_device(o, devices, kind, id, out);
    }
}

void usage_write_node(const struct output *o, const json_t *statistics, struct strbuf *out)
{
    const json_t *node = json_object_get(statistics, "node");
    const json_t *devices = json_object_get(statistics, "devices");
    const json_t *cpu = json_object_get(node, "cpu_util"), *mem = json_object_get(node, "mem");
    size_t cores = json_object_size(json_object_get(devices, "cpu_util"));

    if (cpu) {
        usage_write_line(o, "cpu", cpu, 100.0 * (double)AQ_MAX(cores, (size_t)1), out);
        strbuf_addf(out, "  %zu cores\n", cores);
    }
    if (mem) {
        usage_write_line(o, "mem", mem, 100, out);
        strbuf_addc(out, '\n');
    }
    usage_write_devices(o, devices, out);
}
