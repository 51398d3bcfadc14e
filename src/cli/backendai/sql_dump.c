/* SPDX-License-Identifier: Apache-2.0 */
/* sql_dump.c - statements and lines of a dump: where each ends */
#include "cli/backendai/sql_dump.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "cli/backendai/sql_statement.h"

#define DOLLAR_TAG_MAX 64
/* A statement is kept so far before it is asked whether anybody wants it. */
#define PROBE_BYTES 4096

enum sql_dump_state {
    DUMP_PLAIN,
    DUMP_QUOTE,         /* '...' */
    DUMP_QUOTE_ESCAPES, /* E'...' */
    DUMP_NAME,          /* "..." */
    DUMP_LINE_COMMENT,  /* --... or a command of psql */
    DUMP_COMMENT,       /* between slashes and stars */
    DUMP_DOLLAR,        /* $tag$...$tag$ */
    DUMP_COPY,          /* lines until "\." */
};

struct sql_dump {
    const struct sql_dump_ops *ops;
    void *data;
    struct sql_tables tables;

    enum sql_dump_state state;
    char last;       /* byte before; 0 = it has been used */
    bool is_escaped; /* the byte before was a backslash in E'...' */
    unsigned depth;  /* of comments in comments */
    char tag[DOLLAR_TAG_MAX];
    size_t tag_len, tag_at;

    struct strbuf text; /* of the statement or line so far */
    bool is_dropped;    /* nobody wants it: 'text' is its beginning */
    size_t line, text_line;

    bool copy_is_wanted;
    bool copy_awaits_line; /* its rows begin with the line after the statement */
    size_t copy_columns;
    char copy_table[SQL_NAME_MAX + 1];
    char tail[2]; /* of a line of COPY that is not kept: its first bytes */
    size_t line_len;

    bool is_pg_dump, is_complete; /* as its comments say */
};

struct sql_dump *sql_dump_new(const struct sql_dump_ops *ops, void *data)
{
    struct sql_dump *dump = aq_alloc(sizeof(*dump));

    dump->ops = ops;
    dump->data = data;
    dump->line = dump->text_line = 1;
    return dump;
}

void sql_dump_free(struct sql_dump *dump)
{
    if (!dump)
        return;
    sql_tables_done(&dump->tables);
    if (dump->text.len)
        explicit_bzero(dump->text.data, dump->text.len);
    strbuf_done(&dump->text);
    free(dump);
}

/* ---- COPY ---- */

static int sql_dump_end_line(struct sql_dump *dump, struct aq_error *err)
{
    bool is_end = dump->copy_is_wanted
                      ? dump->text.len == 2 && memcmp(dump->text.data, "\\.", 2) == 0
                      : dump->line_len == 2 && memcmp(dump->tail, "\\.", 2) == 0;
    int r = 0;

    if (is_end) {
        dump->state = DUMP_PLAIN;
        dump->last = '\0';
    } else if (!dump->copy_is_wanted) {
        dump->ops->skipped(dump->data);
    } else {
        strbuf_addc(&dump->text, '\0');
        r = sql_copy_line(dump->text.data, dump->text.len - 1, dump->copy_columns, dump->line,
                          dump->ops, dump->data, err);
    }
    strbuf_clear(&dump->text);
    dump->line_len = 0;
    dump->line++;
    dump->text_line = dump->line;
    return r;
}

/* Of a line of COPY, up to its end. Returns how many bytes were taken. */
static size_t sql_dump_take_line(struct sql_dump *dump, const char *bytes, size_t len)
{
    const char *end = memchr(bytes, '\n', len);
    size_t taken = end ? (size_t)(end - bytes) : len;

    if (dump->copy_is_wanted)
        strbuf_add(&dump->text, bytes, taken);
    for (size_t i = 0; i < taken && dump->line_len + i < sizeof(dump->tail); i++)
        dump->tail[dump->line_len + i] = bytes[i];
    dump->line_len += taken;
    return taken;
}

/* ---- statements ---- */

static int sql_dump_finish_statement(struct sql_dump *dump, struct aq_error *err)
{
    struct sql_statement statement = { .line = dump->text_line };
    int r = 0;

    strbuf_addc(&dump->text, '\0');
    statement.text = dump->text.data;
    if (!dump->is_dropped)
        r = sql_statement_run(&statement, &dump->tables, dump->ops, dump->data, err);
    strbuf_clear(&dump->text);
    dump->is_dropped = false;
    dump->last = '\0';
    if (r < 0 || !statement.is_copy)
        return r;
    dump->state = DUMP_COPY;
    dump->copy_awaits_line = true;
    dump->copy_is_wanted = statement.is_wanted;
    dump->copy_columns = statement.column_count;
    memcpy(dump->copy_table, statement.table, sizeof(dump->copy_table));
    return 0;
}

/* A long one is dropped unless it has rows that are wanted. */
static int sql_dump_keep(struct sql_dump *dump, char c, struct aq_error *err)
{
    int r;

    if (dump->text.len == 0 && isspace((unsigned char)c))
        return 0;
    if (dump->text.len == 0)
        dump->text_line = dump->line;
    if (dump->is_dropped)
        return 0;
    strbuf_addc(&dump->text, c);
    if (dump->text.len == PROBE_BYTES
        && (r = sql_statement_may_matter(dump->text.data, dump->text.len, dump->text_line,
                                         dump->ops, dump->data, err))
               <= 0) {
        dump->is_dropped = true;
        return r;
    }
    if (dump->text.len > SQL_DUMP_ROW_MAX)
        return aq_fail(err, EINVAL, "line %zu: a statement has more than %u MiB", dump->text_line,
                       SQL_DUMP_ROW_MAX >> 20);
    return 0;
}

static void sql_dump_read_comment(struct sql_dump *dump)
{
    static const char whole[] = "-- PostgreSQL database dump complete";

    if (dump->text.len < strlen(whole) - strlen(" complete"))
        return;
    if (memcmp(dump->text.data, whole, strlen(whole) - strlen(" complete")) == 0) {
        dump->is_pg_dump = true;
        dump->is_complete = dump->text.len >= strlen(whole)
                            && memcmp(dump->text.data, whole, strlen(whole)) == 0;
    }
}

static int sql_dump_plain(struct sql_dump *dump, char c, struct aq_error *err)
{
    char before = dump->last;

    dump->last = c;
    if (c == ';')
        return sql_dump_finish_statement(dump, err);
    if (c == '\'')
        dump->state = before == 'E' || before == 'e' ? DUMP_QUOTE_ESCAPES : DUMP_QUOTE;
    else if (c == '"')
        dump->state = DUMP_NAME;
    else if (c == '*' && before == '/') {
        dump->state = DUMP_COMMENT;
        dump->depth = 1;
        dump->last = '\0';
        if (dump->text.len && !dump->is_dropped)
            strbuf_truncate(&dump->text, dump->text.len - 1);
        return 0;
    } else if ((c == '-' && before == '-') || (c == '\\' && dump->text.len == 0)) {
        dump->state = DUMP_LINE_COMMENT;
    } else if (c == '$') {
        if (dump->tag_len && dump->tag_len < sizeof(dump->tag)) { /* $tag$ has come */
            dump->tag[dump->tag_len++] = c;
            dump->state = DUMP_DOLLAR;
            dump->tag_at = 0;
        } else if (!isalnum((unsigned char)before) && before != '_') {
            dump->tag[0] = c;
            dump->tag_len = 1;
        }
        return sql_dump_keep(dump, c, err);
    }
    if (dump->tag_len && (isalnum((unsigned char)c) || c == '_')
        && dump->tag_len < sizeof(dump->tag) - 1)
        dump->tag[dump->tag_len++] = c;
    else
        dump->tag_len = 0;
    return sql_dump_keep(dump, c, err);
}

static void sql_dump_comment(struct sql_dump *dump, char c)
{
    char pair[2] = { dump->last, c };

    dump->last = c;
    if (memcmp(pair, "/*", 2) == 0)
        dump->depth++;
    else if (memcmp(pair, "*/", 2) == 0 && --dump->depth == 0)
        dump->state = DUMP_PLAIN;
    else
        return;
    dump->last = '\0';
}

static void sql_dump_dollar(struct sql_dump *dump, char c)
{
    if (c == dump->tag[dump->tag_at])
        dump->tag_at++;
    else
        dump->tag_at = c == '$' ? 1 : 0;
    if (dump->tag_at < dump->tag_len)
        return;
    dump->state = DUMP_PLAIN;
    dump->tag_len = 0;
    dump->last = '\0';
}

/* A quote that is doubled ends one text and begins the next: that is as good. */
static void sql_dump_quote(struct sql_dump *dump, char c)
{
    char end = dump->state == DUMP_NAME ? '"' : '\'';
    bool was_escaped = dump->is_escaped;

    dump->is_escaped = dump->state == DUMP_QUOTE_ESCAPES && c == '\\' && !was_escaped;
    if (c != end || was_escaped)
        return;
    /* E'a''b': what follows is still with escapes */
    dump->last = dump->state == DUMP_QUOTE_ESCAPES ? 'E' : '\0';
    dump->state = DUMP_PLAIN;
}

/* The text of a comment is kept, not too long, for pg_dump's first and last words. */
static int sql_dump_line_comment(struct sql_dump *dump, char c, struct aq_error *err)
{
    if (c != '\n')
        return dump->text.len < PROBE_BYTES - 1 ? sql_dump_keep(dump, c, err) : 0;
    dump->state = DUMP_PLAIN;
    dump->last = '\0';
    if (dump->text.len && (dump->text.data[0] == '\\' || memcmp(dump->text.data, "--", 2) == 0)) {
        sql_dump_read_comment(dump);
        strbuf_clear(&dump->text);
        return 0;
    }
    return sql_dump_keep(dump, c, err);
}

static int sql_dump_byte(struct sql_dump *dump, char c, struct aq_error *err)
{
    int r = 0;

    if (c == '\0')
        return aq_fail(err, EINVAL, "line %zu has a NUL byte: it is no plain SQL", dump->line);
    if (dump->state == DUMP_PLAIN) {
        r = sql_dump_plain(dump, c, err);
    } else if (dump->state == DUMP_LINE_COMMENT) {
        r = sql_dump_line_comment(dump, c, err);
    } else if (dump->state == DUMP_COMMENT) {
        sql_dump_comment(dump, c);
    } else {
        if (dump->state == DUMP_DOLLAR)
            sql_dump_dollar(dump, c);
        else
            sql_dump_quote(dump, c);
        r = sql_dump_keep(dump, c, err);
    }
    dump->line += c == '\n' && r == 0;
    return r;
}

/* Of a COPY, up to a line's end. Returns how many bytes were taken. */
static size_t sql_dump_copy(struct sql_dump *dump, const char *bytes, size_t len,
                            struct aq_error *err)
{
    size_t taken = 0;

    if (dump->copy_awaits_line) {
        const char *end = memchr(bytes, '\n', len);

        if (!end)
            return len;
        dump->copy_awaits_line = false;
        dump->line++;
        return (size_t)(end - bytes) + 1;
    }
    taken = sql_dump_take_line(dump, bytes, len);
    if (dump->text.len > SQL_DUMP_ROW_MAX)
        (void)aq_fail(err, EINVAL, "line %zu: a row of '%s' has more than %u MiB", dump->line,
                      dump->copy_table, SQL_DUMP_ROW_MAX >> 20);
    else if (taken < len)
        (void)sql_dump_end_line(dump, err);
    return taken + (taken < len);
}

int sql_dump_feed(struct sql_dump *dump, const char *bytes, size_t len, struct aq_error *err)
{
    struct aq_error failed = { 0 };

    for (size_t at = 0; !failed.code && at < len;)
        if (dump->state == DUMP_COPY)
            at += sql_dump_copy(dump, bytes + at, len - at, &failed);
        else
            (void)sql_dump_byte(dump, bytes[at++], &failed);
    if (failed.code && err)
        *err = failed;
    return -failed.code;
}

int sql_dump_end(struct sql_dump *dump, struct aq_error *err)
{
    if (dump->state == DUMP_LINE_COMMENT) {
        int r = sql_dump_line_comment(dump, '\n', err);

        if (r < 0)
            return r;
    }
    if (dump->state == DUMP_COPY)
        return aq_fail(err, EINVAL, "line %zu: it ends among the rows of '%s': it was cut short",
                       dump->line, dump->copy_table);
    if (dump->text.len || dump->state != DUMP_PLAIN)
        return aq_fail(err, EINVAL, "line %zu: it ends within a statement: it was cut short",
                       dump->line);
    if (dump->is_pg_dump && !dump->is_complete)
        return aq_fail(err, EINVAL,
                       "line %zu: it ends without pg_dump's last words: it was cut short",
                       dump->line);
    return 0;
}
