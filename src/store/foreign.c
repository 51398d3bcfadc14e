/* SPDX-License-Identifier: Apache-2.0 */
/* What another program keeps on a PostgreSQL server, as pg_dump writes it. */
#include "store/foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/sql.h"

#define COLUMNS_MAX 200

struct foreign_names {
    char **items;
    size_t count, cap;
};

static void foreign_names_done(struct foreign_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
}

/* Names are put between quotes: others than these are nobody's whom we know. */
static bool foreign_is_plain(const char *name)
{
    return name[0] && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

/* The first column of all rows of a query with one '?', or none. */
static int foreign_list(struct sql *db, const char *query, const char *param,
                        struct foreign_names *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, query, &q, err);

    if (r < 0)
        return r;
    if (param)
        sql_put_text(q, param);
    while ((r = sql_step(q, err)) > 0) {
        const char *name = sql_get_text(q);

        if (!name || !foreign_is_plain(name))
            continue;
        (void)vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        ret->items[ret->count++] = aq_strdup(name);
    }
    return r;
}

static void foreign_write_value(const char *text, FILE *out)
{
    if (!text)
        (void)fputs("\\N", out);
    for (; text && *text; text++) {
        static const char special[] = "\b\f\n\r\t\v\\", letters[] = "bfnrtv\\";
        const char *found = strchr(special, *text);

        if (found)
            (void)fprintf(out, "\\%c", letters[found - special]);
        else
            (void)fputc(*text, out);
    }
}

static int foreign_write_rows(struct sql *db, const char *query, size_t column_count, FILE *out,
                              struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_scan(db, query, &q, err);

    while (r >= 0 && (r = sql_step(q, err)) > 0) {
        for (size_t i = 0; i < column_count; i++) {
            if (i)
                (void)fputc('\t', out);
            foreign_write_value(sql_get_text(q), out);
        }
        if (fputc('\n', out) < 0)
            return aq_fail(err, EIO, "what was read cannot be written");
    }
    return r;
}

static int foreign_write_table(struct sql *db, const char *table, FILE *out, struct aq_error *err)
{
    AQ_CLEANUP(foreign_names_done) struct foreign_names columns = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf query = STRBUF_INIT;
    int r = foreign_list(db,
                         "SELECT column_name FROM information_schema.columns"
                         " WHERE table_schema = 'public' AND table_name = ?"
                         " ORDER BY ordinal_position",
                         table, &columns, err);

    if (r < 0)
        return r;
    if (columns.count == 0 || columns.count > COLUMNS_MAX)
        return aq_fail(err, EINVAL, "table '%s' has %zu columns", table, columns.count);
    (void)fprintf(out, "COPY public.%s (", table);
    for (size_t i = 0; i < columns.count; i++) {
        strbuf_addf(&query, "%s CAST(\"%s\" AS text)", i ? "," : "SELECT", columns.items[i]);
        (void)fprintf(out, "%s%s", i ? ", " : "", columns.items[i]);
    }
    strbuf_addf(&query, " FROM public.\"%s\"", table);
    (void)fputs(") FROM stdin;\n", out);
    return foreign_write_rows(db, query.data, columns.count, out, err);
}

static int foreign_count_rows(struct sql *db, const char *table, FILE *out, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *query = aq_format("SELECT COUNT(*) FROM public.\"%s\"", table);
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, query, &q, err);

    if (r < 0 || (r = sql_step(q, err)) < 0)
        return r;
    (void)fprintf(out, "COPY public.%s () FROM stdin;\n", table);
    for (int64_t left = sql_get_int(q); left > 0; left--)
        if (fputc('\n', out) < 0)
            return aq_fail(err, EIO, "what was read cannot be written");
    return 0;
}

static bool foreign_is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static int foreign_write_all(struct sql *db, const char *const *wanted, size_t wanted_count,
                             FILE *out, struct aq_error *err)
{
    AQ_CLEANUP(foreign_names_done) struct foreign_names tables = { .items = NULL };
    int r = sql_run_constant(db, db->ops->begin_read, err);

    if (r == 0)
        r = foreign_list(db,
                         "SELECT table_name FROM information_schema.tables"
                         " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
                         " ORDER BY table_name",
                         NULL, &tables, err);
    for (size_t i = 0; r == 0 && i < tables.count; i++) {
        const char *table = tables.items[i];

        r = foreign_is_one_of(table, wanted, wanted_count)
                ? foreign_write_table(db, table, out, err)
                : foreign_count_rows(db, table, out, err);
        (void)fputs("\\.\n", out);
    }
    if (r == 0 && fflush(out) != 0)
        r = aq_fail_errno(err, "what was read cannot be written");
    return r;
}

int foreign_dump(const char *uri, const char *const *wanted, size_t wanted_count, FILE *out,
                 struct aq_error *err)
{
    const struct sql_conf conf = { .where = uri, .read_only = true, .is_foreign = true };
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct sql_ops *ops;
    int r;

    if (!sql_is_uri(uri))
        return aq_fail(err, EINVAL, "name a server, as in postgresql://USER@HOST/DATABASE");
    if ((r = sql_find_engine(uri, &ops, err)) < 0 || (r = sql_open(ops, &conf, &db, err)) < 0)
        return r;
    return foreign_write_all(db, wanted, wanted_count, out, err);
}
