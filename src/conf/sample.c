/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - a commented example of all settings */
#include <string.h>

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

void conf_write_sample(const struct conf_item *items, struct strbuf *out)
{
    const char *section = "";

    for (const struct conf_item *item = items; item->type != CONF_END; item++) {
        if (strcmp(item->section, section) != 0)
            strbuf_addf(out, "\n[%s]\n", item->section);
        section = item->section;
        strbuf_addf(out, "# %s%s\n#%s = ", item->doc,
                    item->flags & CONF_REQUIRED ? " (required)" : "", item->key);
        sample_write_value(item, out);
        strbuf_addc(out, '\n');
    }
}
