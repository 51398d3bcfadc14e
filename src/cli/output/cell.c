/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a column as users read it: sizes, times, slots, names. */
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/output.h"
#include "cli/output/resource_usage.h"
#include "model/slot.h"

/* As utf8_write_printable(), in one line, and in ASCII if that is all the terminal knows. */
static void cell_write_clean(const struct output *o, const char *text, size_t len,
                             struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    utf8_write_printable(text, len, &clean);
    for (size_t i = 0; i < clean.len; i++) {
        unsigned char c = (unsigned char)clean.data[i];

        if (c == '\n' || c == '\t')
            strbuf_addc(out, ' ');
        else if (!o->ascii || c < 0x80)
            strbuf_addc(out, (char)c);
        else if (c >= 0xc0)
            strbuf_addc(out, '?');
    }
}

void cell_write_span(int64_t usec, struct strbuf *out)
{
    static const struct {
        int64_t below, sec; /* below so many seconds it is counted in so many */
        const char *unit;
    } units[] = { { 90, 1, " s" },
                  { 90 * 60, 60, " min" },
                  { 48 * 3600, 3600, " h" },
                  { INT64_MAX, 86400, " d" } };
    int64_t sec = usec / USEC_PER_SEC;
    size_t i = 0;

    while (sec >= units[i].below)
        i++;
    strbuf_addi(out, sec / units[i].sec);
    strbuf_adds(out, units[i].unit);
}

void cell_write_duration(int64_t sec, struct strbuf *out)
{
    static const struct {
        int64_t sec;
        char unit;
    } units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };

    if (sec <= 0)
        strbuf_adds(out, "0s");
    for (size_t i = 0; i < AQ_COUNT(units); sec %= units[i++].sec)
        if (sec >= units[i].sec)
            strbuf_addf(out, "%lld%c", (long long)(sec / units[i].sec), units[i].unit);
}

static void cell_write_time(const struct output *o, const char *text, struct strbuf *out)
{
    int64_t at;

    if (clock_parse_date(text, &at) < 0) {
        cell_write_clean(o, text, strlen(text), out);
    } else if (at > o->now_usec + USEC_PER_SEC) {
        strbuf_adds(out, "in ");
        cell_write_span(at - o->now_usec, out);
    } else {
        cell_write_span(AQ_MAX(o->now_usec - at, INT64_C(0)), out);
    }
}

static void cell_write_clock(const struct output *o, const char *text, struct strbuf *out)
{
    char local[CLOCK_ISO_MAX];
    int64_t at;

    if (clock_parse_date(text, &at) < 0)
        cell_write_clean(o, text, strlen(text), out);
    else
        strbuf_adds(out, clock_format_local(at, local));
}

static bool cell_write_slots(const json_t *value, struct strbuf *out)
{
    AQ_CLEANUP(slots_donep) struct slots slots = { .items = NULL };

    if (!json_is_object(value) || slots_from_json(value, NULL, &slots, NULL) < 0)
        return false;
    if (slots.count == 0)
        strbuf_addc(out, '-');
    slots_humanize(&slots, NULL, out);
    return true;
}

static void cell_write_names(const struct output *o, const json_t *list, struct strbuf *out)
{
    json_t *item;
    size_t i;

    if (json_array_size(list) == 0)
        strbuf_addc(out, '-');
    json_array_foreach(list, i, item) {
        const json_t *name = json_is_object(item) ? json_object_get(item, "name") : item;
        const char *text = json_string_value(name);

        strbuf_adds(out, i ? ", " : "");
        if (json_is_integer(name))
            strbuf_addi(out, json_integer_value(name));
        else
            cell_write_clean(o, text ? text : "?", text ? strlen(text) : 1, out);
    }
}

static void cell_write_load(const struct output *o, const json_t *load, struct strbuf *out)
{
    const json_t *text = json_object_get(load, "text");

    usage_cell_bar(o, json_number_value(json_object_get(load, "part")), out);
    cell_write_clean(o, json_string_value(text), json_string_length(text), out);
}

/* Backend.AI's names that say nothing to users. */
static void cell_write_reason(const struct output *o, const json_t *reason, struct strbuf *out)
{
    const char *text = json_string_value(reason);

    if (strcmp(text, "predicate-checks-failed") == 0)
        strbuf_adds(out, "limit-or-condition");
    else
        cell_write_clean(o, text, json_string_length(reason), out);
}

static void cell_write_json(const struct output *o, const json_t *value, struct strbuf *out)
{
    char *text = json_dumps(value, OUTPUT_JSON_FLAGS | JSON_COMPACT);

    cell_write_clean(o, text, strlen(text), out);
    free(text);
}

void cell_write(const struct output *o, const struct column *column, const json_t *value,
                struct strbuf *out)
{
    char amount[AMOUNT_TEXT_MAX];

    if (!value || json_is_null(value) || (json_is_string(value) && !json_string_length(value)))
        strbuf_addc(out, '-');
    else if (column->kind == COLUMN_TIME && json_is_string(value))
        cell_write_time(o, json_string_value(value), out);
    else if (column->kind == COLUMN_CLOCK && json_is_string(value))
        cell_write_clock(o, json_string_value(value), out);
    else if (column->kind == COLUMN_SPAN && json_is_integer(value))
        cell_write_duration(json_integer_value(value), out);
    else if (column->kind == COLUMN_REASON && json_is_string(value))
        cell_write_reason(o, value, out);
    else if (column->kind == COLUMN_BYTES && json_is_integer(value))
        strbuf_adds(out, slot_amount_humanize(json_integer_value(value), SLOT_BYTES, amount));
    else if (json_is_boolean(value))
        strbuf_adds(out, json_is_true(value) ? "yes" : "no");
    else if (column->kind == COLUMN_NAMES && json_is_array(value))
        cell_write_names(o, value, out);
    else if (column->kind == COLUMN_LOAD && json_is_object(value))
        cell_write_load(o, value, out);
    else if (column->kind == COLUMN_SLOTS && cell_write_slots(value, out))
        return;
    else if (json_is_string(value))
        cell_write_clean(o, json_string_value(value), json_string_length(value), out);
    else
        cell_write_json(o, value, out);
}
