/* SPDX-License-Identifier: Apache-2.0 */
/* What the two engines call differently. */
#include "store/postgres/postgres.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static size_t postgres_word_length(const char *text)
{
    size_t len = 0;

    while (isalnum((unsigned char)text[len]) || text[len] == '_')
        len++;
    return len;
}

/* 'text' begins with this word; returns how long it is, else 0. */
static size_t postgres_skip_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    return postgres_word_length(text) == len && strncmp(text, word, len) == 0 ? len : 0;
}

/* From the quote at its begin to the one at its end. */
static size_t postgres_quoted_length(const char *text)
{
    const char *end = strchr(text + 1, '\'');

    return end ? (size_t)(end - text) + 1 : strlen(text);
}

/* "?" or "?7": its number goes to the text. */
static size_t postgres_add_param(struct strbuf *out, const char *text, int *max)
{
    size_t digits = strspn(text + 1, "0123456789");
    int number = digits ? atoi(text + 1) : *max + 1;

    if (number > *max)
        *max = number;
    strbuf_addf(out, "$%d", number);
    return 1 + digits;
}

/* "INDEXED BY name" or "NOT INDEXED", hints. */
static size_t postgres_skip_hint(const char *text)
{
    static const char none[] = "NOT INDEXED";
    size_t len = postgres_skip_word(text, "INDEXED");

    if (strncmp(text, none, sizeof(none) - 1) == 0)
        return sizeof(none) - 1;
    if (!len || strncmp(text + len, " BY ", 4) != 0)
        return 0;
    return len + 4 + postgres_word_length(text + len + 4);
}

/* "json_each(column)" or of a parameter, as rows of key and value, both texts. */
static size_t postgres_add_json_each(struct strbuf *out, const char *text, int *max)
{
    size_t len = postgres_skip_word(text, "json_each");
    const char *of = text + len + 1, *end = len ? strchr(text + len, ')') : NULL;

    if (!end)
        return 0;
    strbuf_adds(out, "json_each_text(CAST(");
    if (*of == '?')
        (void)postgres_add_param(out, of, max);
    else
        strbuf_add(out, of, (size_t)(end - of));
    strbuf_adds(out, " AS JSON))");
    return (size_t)(end - text) + 1;
}

static size_t postgres_add_word(struct strbuf *out, const char *text, int *max)
{
    size_t len = postgres_skip_hint(text);

    if (len || (len = postgres_add_json_each(out, text, max)))
        return len;
    len = postgres_word_length(text);
    strbuf_add(out, text, len);
    return len;
}

char *postgres_translate(const char *text, int *ret_params)
{
    struct strbuf out = STRBUF_INIT;

    *ret_params = 0;
    while (*text) {
        size_t len = 1;

        if (*text == '?') {
            len = postgres_add_param(&out, text, ret_params);
        } else if (postgres_word_length(text)) {
            len = postgres_add_word(&out, text, ret_params);
        } else {
            if (*text == '\'')
                len = postgres_quoted_length(text);
            strbuf_add(&out, text, len);
        }
        text += len;
    }
    return strbuf_steal(&out);
}

char *postgres_translate_one(const char *text)
{
    struct strbuf out = STRBUF_INIT;

    strbuf_addf(&out, "WITH changed AS (%s RETURNING 1) SELECT 1 / COUNT(*) FROM changed", text);
    return strbuf_steal(&out);
}

static size_t postgres_add_type(struct strbuf *out, const char *text)
{
    static const char rowid[] = "WITHOUT ROWID";
    static const struct {
        const char *ours, *theirs;
    } types[] = {
        { "INTEGER", "BIGINT" },
        { "TEXT", "TEXT COLLATE \"C\"" }, /* by bytes, whatever the database's own order is */
        { "BLOB", "BYTEA" },
    };
    size_t len;

    if (strncmp(text, rowid, sizeof(rowid) - 1) == 0)
        return sizeof(rowid) - 1;
    for (size_t i = 0; i < AQ_COUNT(types); i++)
        if ((len = postgres_skip_word(text, types[i].ours))) {
            strbuf_adds(out, types[i].theirs);
            return len;
        }
    len = postgres_word_length(text);
    strbuf_add(out, text, len);
    return len;
}

char *postgres_translate_script(const char *script)
{
    struct strbuf out = STRBUF_INIT;

    while (*script) {
        size_t len = 1;

        if (postgres_word_length(script)) {
            len = postgres_add_type(&out, script);
        } else {
            if (script[0] == '\'')
                len = postgres_quoted_length(script);
            else if (script[0] == '-' && script[1] == '-')
                len = strcspn(script, "\n");
            strbuf_add(&out, script, len);
        }
        script += len;
    }
    return strbuf_steal(&out);
}
