/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the manager in readable units. */
#include "cli/output/resource_usage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/output/table.h"
#include "model/metric.h"
#include "model/slot.h"

#define TITLE_MAX 14
#define NARROW 70 /* columns of a terminal on which bars are short */

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

/* ---- of what was asked for ---- */

#define CORE_METRIC "cpu_util"
#define CORE_PARTS 1000

static bool usage_is_cores(const char *key)
{
    return strcmp(key, CORE_METRIC) == 0;
}

static void usage_write_cores(double cores, struct strbuf *out)
{
    char buf[METRIC_NUMBER_MAX];

    strbuf_adds(out, metric_format(cores, 2, buf));
}

void usage_write_used(const struct output *o, const char *key, const json_t *metric,
                      const char *member, struct strbuf *out)
{
    if (usage_is_cores(key) && json_is_string(json_object_get(metric, member)))
        usage_write_cores(usage_number(metric, member) / CORE_PARTS, out);
    else
        usage_write(o, metric, member, out);
}

void usage_write_limit(const struct output *o, const char *key, const json_t *metric,
                       const json_t *slots, struct strbuf *out)
{
    double cores = usage_number(slots, "cpu");

    if (!usage_is_cores(key))
        usage_write(o, metric, "capacity", out);
    else if (cores > 0)
        usage_write_cores(cores, out);
    else
        strbuf_addc(out, '-');
}

double usage_part(const char *key, const json_t *metric, const json_t *slots)
{
    double used = usage_number(metric, "current"), of = usage_number(metric, "capacity");

    if (usage_is_cores(key))
        of = usage_number(slots, "cpu") * CORE_PARTS;
    return of > 0 ? used / of : -1;
}

bool usage_is_accelerator(const char *key, size_t *ret_len)
{
    size_t len = strlen(key);

    if (len < 6 || len > METRIC_KEY_MAX || strcmp(key + len - 5, "_util") != 0
        || usage_is_cores(key))
        return false;
    *ret_len = len - 5;
    return true;
}

/* ---- pictures ---- */

void usage_bar(double part, int width, struct strbuf *out)
{
    int full = part >= 1 ? width : part > 0 ? (int)(part * width + 0.5) : 0;

    strbuf_addc(out, '[');
    for (int i = 0; i < width; i++)
        strbuf_addc(out, i < full ? '#' : '.');
    strbuf_addc(out, ']');
}

void usage_cell_bar(const struct output *o, double part, struct strbuf *out)
{
    if (part < 0)
        return;
    usage_bar(part, o->width >= 110 ? 10 : o->width >= NARROW ? 6 : 3, out);
    strbuf_addc(out, ' ');
}

const char *usage_colour(double part)
{
    return part >= 0.9 ? "\033[31m" : part >= 0.7 ? "\033[33m" : "\033[32m";
}

void usage_write_timeline(const struct output *o, const double *values, size_t count, double top,
                          struct strbuf *out)
{
    static const char plain[] = "_.-:=+*#";
    const int levels = (int)sizeof(plain) - 1;

    for (size_t i = 0; i < count; i++) {
        double level = top > 0 ? values[i] / top * levels : 0;
        int at = level >= levels ? levels - 1 : level > 0 ? (int)level : 0;

        if (o->ascii)
            strbuf_addc(out, plain[at]);
        else
            strbuf_addf(out, "\xe2\x96%c", 0x81 + at); /* U+2581 to U+2588 */
    }
}

/* As it fits a terminal: a line has two of them, and one below NARROW columns. */
static void usage_line_bar(const struct output *o, double part, struct strbuf *out)
{
    int width = o->width == 0 || o->width >= 100 ? USAGE_BAR_WIDTH
                : o->width >= 90                 ? 12
                : o->width >= NARROW             ? 6
                                                 : 8;

    strbuf_adds(out, o->colour ? usage_colour(part) : "");
    usage_bar(part, width, out);
    strbuf_adds(out, o->colour ? TABLE_COLOUR_END : "");
}

static void usage_write_of(const struct output *o, const json_t *metric, struct strbuf *out)
{
    usage_write(o, metric, "current", out);
    strbuf_adds(out, " of ");
    usage_write(o, metric, "capacity", out);
}

/* A line for a metric that has a capacity; 'whole' is its percentage when all is used. */
static void usage_write_line(const struct output *o, const char *title, const json_t *metric,
                             double whole, struct strbuf *out)
{
    double percent = usage_number(metric, "pct") * 100 / whole;
    const char *unit = json_string_value(json_object_get(metric, "unit_hint"));

    size_t len = utf8_fit(title, strlen(title), TITLE_MAX);

    strbuf_adds(out, "  ");
    strbuf_add(out, title, len);
    strbuf_addf(out, "%*s ", (int)(TITLE_MAX - utf8_width(title, len)), "");
    usage_line_bar(o, percent / 100, out);
    strbuf_addf(out, " %5.1f %%", percent);
    if (unit && strcmp(unit, "bytes") == 0) {
        strbuf_adds(out, "  ");
        usage_write_of(o, metric, out);
    }
}

/* What is known of one device, or of all that a session has of a kind. */
struct usage_device {
    const json_t *util, *memory, *power, *temperature;
};

static void usage_write_device(const struct output *o, const char *title,
                               const struct usage_device *device, struct strbuf *out)
{
    const json_t *const others[] = { device->power, device->temperature };

    usage_write_line(o, title, device->util, 100, out);
    if (device->memory) {
        strbuf_adds(out, "  ");
        if (o->width == 0 || o->width >= NARROW) {
            usage_line_bar(o, usage_number(device->memory, "pct") / 100, out);
            strbuf_addc(out, ' ');
        }
        usage_write_of(o, device->memory, out);
    }
    for (size_t i = 0; i < AQ_COUNT(others); i++) {
        if (!others[i])
            continue;
        strbuf_adds(out, "  ");
        usage_write(o, others[i], "current", out);
    }
    strbuf_addc(out, '\n');
}

/* ---- nodes and sessions ---- */

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

static void usage_write_one(const struct output *o, const json_t *devices, const char *kind,
                            const char *id, struct strbuf *out)
{
    const struct usage_device device = {
        .util = usage_device_metric(devices, kind, "_util", id),
        .memory = usage_device_metric(devices, kind, "_mem", id),
        .power = usage_device_metric(devices, kind, "_power", id),
        .temperature = usage_device_metric(devices, kind, "_temperature", id),
    };
    const struct column column = { "", "", COLUMN_TEXT, 0 };
    json_t *shown = json_string(id);
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    char title[TITLE_MAX + 1];

    cell_write(o, &column, shown, &clean);
    json_decref(shown);
    usage_write_device(o, usage_device_title(&clean, title), &device, out);
}

/* Devices of each kind that says how busy they are. */
static void usage_write_devices(const struct output *o, const json_t *devices, struct strbuf *out)
{
    const char *key, *id;
    json_t *by_device, *metric;
    char kind[METRIC_KEY_MAX + 1];
    size_t len;

    json_object_foreach((json_t *)(uintptr_t)devices, key, by_device) {
        if (!usage_is_accelerator(key, &len))
            continue;
        (void)snprintf(kind, sizeof(kind), "%.*s", (int)len, key);
        json_object_foreach(by_device, id, metric)
            usage_write_one(o, devices, kind, id, out);
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

/* "train cuda": what is too long of the name is cut. */
static void usage_write_kind(const struct output *o, const struct strbuf *name, const json_t *used,
                             const char *kind, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf title = STRBUF_INIT;
    char memory[METRIC_KEY_MAX + 8], util[METRIC_KEY_MAX + 8];
    size_t room = TITLE_MAX - AQ_MIN(strlen(kind), (size_t)(TITLE_MAX / 2)) - 1;
    struct usage_device device = { .util = NULL };

    (void)snprintf(util, sizeof(util), "%s_util", kind);
    (void)snprintf(memory, sizeof(memory), "%s_mem", kind);
    device.util = json_object_get(used, util);
    device.memory = json_object_get(used, memory);
    strbuf_add(&title, name->data, utf8_fit(name->data, name->len, room));
    strbuf_addf(&title, " %s", kind);
    usage_write_device(o, title.data, &device, out);
}

void usage_write_accelerators(const struct output *o, const json_t *session, struct strbuf *out)
{
    const struct column column = { "", "", COLUMN_TEXT, 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
    json_t *used = json_object_get(session, "used"), *metric;
    char kind[METRIC_KEY_MAX + 1];
    const char *key;
    size_t len;

    cell_write(o, &column, json_object_get(session, "name"), &name);
    json_object_foreach(used, key, metric) {
        if (!usage_is_accelerator(key, &len))
            continue;
        (void)snprintf(kind, sizeof(kind), "%.*s", (int)len, key);
        usage_write_kind(o, &name, used, kind, out);
    }
}
