/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - a commented example of all settings */
#include <string.h>

#include "base/clock.h"
#include "conf/conf.h"

/* The words of a list's default. */
static void sample_write_list(const char *words, struct strbuf *out)
{
    bool is_first = true;

    strbuf_addc(out, '[');
    for (words += strspn(words, " ,"); *words; words += strspn(words, " ,")) {
        int len = (int)strcspn(words, " ,");

        strbuf_addf(out, "%s\"%.*s\"", is_first ? "" : ", ", len, words);
        is_first = false;
        words += len;
    }
    strbuf_addc(out, ']');
}

/* A default as TOML: bare for numbers and booleans, quoted otherwise. */
static void sample_write_value(const struct conf_item *item, struct strbuf *out)
{
    const char *text = item->initial ? item->initial : "";
    bool is_digits = text[0] && text[strspn(text, "0123456789")] == '\0';

    if (item->type == CONF_LIST)
        sample_write_list(text, out);
    else if (item->type == CONF_PAIRS || item->type == CONF_TABLES)
        strbuf_adds(out, item->type == CONF_PAIRS ? "{}" : "[]");
    else if (item->type == CONF_BOOL)
        strbuf_adds(out, item->initial ? text : "false");
    else if (item->type != CONF_STR && item->type != CONF_PATH && is_digits)
        strbuf_adds(out, text);
    else if (!text[0]
             && (item->type == CONF_INT || item->type == CONF_SIZE || item->type == CONF_DURATION
                 || item->type == CONF_MICRO))
        strbuf_adds(out, "0");
    else
        strbuf_addf(out, "\"%s\"", text);
}

/* As it is written in a file, in the largest unit in which it is whole: "10m", "64k", "0.25". */
static void sample_write_number(enum conf_type type, int64_t value, struct strbuf *out)
{
    static const struct {
        enum conf_type type;
        int64_t size;
        char letter;
    } units[] = {
        { CONF_DURATION, 86400 * USEC_PER_SEC, 'd' }, { CONF_DURATION, 3600 * USEC_PER_SEC, 'h' },
        { CONF_DURATION, 60 * USEC_PER_SEC, 'm' },    { CONF_DURATION, USEC_PER_SEC, 's' },
        { CONF_SIZE, INT64_C(1) << 40, 't' },         { CONF_SIZE, INT64_C(1) << 30, 'g' },
        { CONF_SIZE, INT64_C(1) << 20, 'm' },         { CONF_SIZE, INT64_C(1) << 10, 'k' }
    };

    for (size_t i = 0; i < AQ_COUNT(units); i++) {
        if (units[i].type != type || value == 0 || value % units[i].size != 0)
            continue;
        strbuf_addi(out, value / units[i].size);
        strbuf_addc(out, units[i].letter);
        return;
    }
    if (type == CONF_DURATION || type == CONF_MICRO)
        strbuf_addf(out, "%g%s", (double)value / 1e6, type == CONF_DURATION && value ? "s" : "");
    else
        strbuf_addi(out, value);
}

/* " (1s to 10m)"; nothing of what has no range. */
static void sample_write_range(const struct conf_item *item, struct strbuf *out)
{
    if (item->min == 0 && (item->max == 0 || item->max >= INT64_MAX / 2))
        return;
    strbuf_adds(out, " (");
    sample_write_number(item->type, item->min, out);
    strbuf_adds(out, item->max < INT64_MAX / 2 ? " to " : " or more");
    if (item->max < INT64_MAX / 2)
        sample_write_number(item->type, item->max, out);
    strbuf_adds(out, item->flags & CONF_OR_FOREVER ? ", or forever)" : ")");
}

void conf_write_sample(const struct conf_item *items, struct strbuf *out)
{
    const char *section = "";

    for (const struct conf_item *item = items; item->type != CONF_END; item++) {
        if (strcmp(item->section, section) != 0)
            strbuf_addf(out, "\n[%s]\n", item->section);
        section = item->section;
        strbuf_addf(out, "# %s%s", item->doc, item->flags & CONF_REQUIRED ? " (required)" : "");
        sample_write_range(item, out);
        strbuf_addf(out, "\n#%s = ", item->key);
        sample_write_value(item, out);
        strbuf_addc(out, '\n');
    }
}
