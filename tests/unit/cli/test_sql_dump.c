/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a plain SQL dump, however it comes in pieces; dotfiles in MessagePack. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "cli/backendai/dotfiles.h"
#include "cli/backendai/sql_dump.h"

/* Tables whose names begin with "no" are not wanted. */
static int on_begin(void *data, const char *table, const char *const *columns, size_t count,
                    size_t line, struct aq_error *err)
{
    (void)err;
    if (strncmp(table, "no", 2) == 0)
        return 0;
    if (!columns)
        return 1;
    strbuf_addf(data, "%zu %s(", line, table);
    for (size_t i = 0; i < count; i++)
        strbuf_addf(data, "%s%s", i ? "," : "", columns[i]);
    strbuf_adds(data, ");");
    return 1;
}

static int on_row(void *data, const char *const *values, size_t count, size_t line,
                  struct aq_error *err)
{
    (void)err;
    strbuf_addf(data, "%zu:", line);
    for (size_t i = 0; i < count; i++)
        strbuf_addf(data, "%s%s", i ? "|" : "", values[i] ? values[i] : "~");
    strbuf_addc(data, ';');
    return 0;
}

static void on_skipped(void *data)
{
    strbuf_addc(data, '-');
}

static const struct sql_dump_ops ops = { on_begin, on_row, on_skipped };

/* In pieces of 'step' bytes; what was read, and after it an error. */
static void read_dump(const char *text, size_t step, struct strbuf *out)
{
    AQ_CLEANUP(sql_dump_freep) struct sql_dump *dump = sql_dump_new(&ops, out);
    size_t len = strlen(text);
    struct aq_error err = { 0 };
    int r = 0;

    strbuf_clear(out);
    for (size_t at = 0; r == 0 && at < len; at += step)
        r = sql_dump_feed(dump, text + at, AQ_MIN(step, len - at), &err);
    if (r == 0)
        r = sql_dump_end(dump, &err);
    assert_int_equal(r, -err.code);
    if (r < 0)
        strbuf_addf(out, "! %s", err.text);
    assert_true(strbuf_ok(out));
}

#define HEAD "-- PostgreSQL database dump\n"
#define TAIL "--\n-- PostgreSQL database dump complete\n--\n"
#define CUT ": it was cut short"

static const struct {
    const char *text, *read;
} rows[] = {
    { "", "" },
    { HEAD TAIL, "" },
    { HEAD "COPY public.t (a, \"b\") FROM stdin;\n1\t\\N\n\\\\N\ta\\tb\\n\\\\\n\t\n\\.\n" TAIL,
      "2 t(a,b);3:1|~;4:\\N|a\tb\n\\;5:|;" },
    { "COPY other.t (a) FROM stdin;\nx\n\\.\n", "1 other.t(a);2:x;" },
    { "COPY t (a) FROM stdin;\n\\101\\x42\\q\n\\.\n;;", "1 t(a);2:ABq;" },
    { "COPY no1 (a) FROM stdin;\nx\ny;'\n\\.\nCOPY t (a) FROM stdin;\n1\n\\.\n", "--5 t(a);6:1;" },
    { "COPY t (a) TO stdout;", "" },
    { "COPY t (a, b) FROM stdin;\n1\n\\.\n",
      "1 t(a,b);! line 2: a row does not have 2 columns: it is damaged" },
    { "COPY t (a) FROM stdin;\n1\t2\n\\.\n",
      "1 t(a);! line 2: a row does not have 1 columns: it is damaged" },
    { "COPY t (a) FROM stdin;\n1\n", "1 t(a);2:1;! line 3: it ends among the rows of 't'" CUT },
    { "COPY t (a) FROM stdin;", "1 t(a);! line 1: it ends among the rows of 't'" CUT },
    { HEAD "SELECT 1;\n", "! line 3: it ends without pg_dump's last words" CUT },
    { "SELECT 'a", "! line 1: it ends within a statement" CUT },
    { "SELECT 1", "! line 1: it ends within a statement" CUT },
    { "\\connect backend\n\\restrict abc\nINSERT INTO t (a) VALUES (1);\n", "3 t(a);3:1;" },
    { "INSERT INTO public.t (a, b, c) VALUES ('it''s; -- x', NULL, -1.5), (E'a\\nb\\'', true, 'x'::text);",
      "1 t(a,b,c);1:it's; -- x|~|-1.5;1:a\nb'|true|x;" },
    { "CREATE TABLE public.t (\n    a integer DEFAULT f(1, 2) NOT NULL,\n    \"B c\" text,\n"
      "    CONSTRAINT k CHECK ((a > 0))\n);\nINSERT INTO t VALUES (1, '');",
      "6 t(a,B c);6:1|;" },
    { "INSERT INTO t VALUES (1);", "1 t();! line 1: an INSERT does not have 0 columns" },
    { "INSERT INTO t (a) VALUES (1, 2);", "1 t(a);! line 1: an INSERT does not have 1 columns" },
    { "INSERT INTO t (a) VALUES ('x;", "! line 1: it ends within a statement" CUT },
    { "INSERT INTO t (a) SELECT 1;", "1 t(a);! line 1: an INSERT without VALUES" },
    { "INSERT INTO t (a VALUES (1);", "! line 1: its list of columns is damaged" },
    { "INSERT INTO no1 VALUES (1, ')('), (2, 'x');INSERT INTO no1 VALUES (3);", "---" },
    { "CREATE FUNCTION f() AS $x$ '; $y$ ; $x$;\nINSERT INTO t (a) VALUES (2);", "2 t(a);2:2;" },
    { "/* a ; ' /* b */ ; */ INSERT -- c ; '\n INTO t (a) VALUES (3);", "1 t(a);1:3;" },
    { "SELECT \"a;'\", E'\\';', 'a''', $1;INSERT INTO t (a) VALUES (4);", "1 t(a);1:4;" },
    { "INSERT INTO", "! line 1: it ends within a statement" CUT },
    { "INSERT INTO ;COPY;COPY t;CREATE TABLE;CREATE TABLE t;CREATE TABLE t (",
      "! line 1: it ends within a statement" CUT },
};

static void test_rows(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *read = rows[i].read;

        for (size_t step = 1; step <= strlen(rows[i].text) + 1; step++) {
            read_dump(rows[i].text, step, &out);
            assert_row(strcmp(out.len ? out.data : "", read) == 0, "%s\nread: %s", rows[i].text,
                       out.data);
        }
    }
}

/* Long ones that nobody wants are not kept; those that are wanted have a limit. */
static void test_long_statements(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "INSERT INTO no1 VALUES ('");
    for (size_t i = 0; i < SQL_DUMP_ROW_MAX / 8; i++)
        strbuf_adds(&text, "; 0123456789 ");
    strbuf_adds(&text, "');INSERT INTO t (a) VALUES (1);");
    read_dump(text.data, 65536, &out);
    assert_string_equal(out.data, "-1 t(a);1:1;");
    memcpy(text.data, "INSERT INTO yes", 15);
    read_dump(text.data, 65536, &out);
    assert_string_equal(out.data, "! line 1: a statement has more than 4 MiB");
    memset(text.data, '-', text.len);
    text.data[text.len - 1] = '\n';
    strbuf_adds(&text, "INSERT INTO t (a) VALUES (2);");
    read_dump(text.data, 65536, &out);
    assert_string_equal(out.data, "2 t(a);2:2;");
    memset(text.data, ' ', text.len);
    memcpy(text.data, "COPY t (a) FROM stdin;\n", 23);
    read_dump(text.data, 65536, &out);
    assert_string_equal(out.data, "1 t(a);! line 2: a row of 't' has more than 4 MiB");
}

static void test_bytes_that_are_no_text(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(sql_dump_freep) struct sql_dump *dump = sql_dump_new(&ops, &out);
    AQ_CLEANUP(sql_dump_freep) struct sql_dump *copy = sql_dump_new(&ops, &out);
    static const char lines[] = "COPY t (a) FROM stdin;\nx\0y\n";
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(sql_dump_feed(dump, "SELECT\n\0", 8, &err), -EINVAL);
    assert_string_equal(err.text, "line 2 has a NUL byte: it is no plain SQL");
    assert_int_equal(sql_dump_feed(copy, lines, sizeof(lines) - 1, &err), -EINVAL);
    assert_string_equal(err.text, "line 2 has a NUL byte: it is no plain SQL");
}

static void test_dotfiles(void **state)
{
    static const struct {
        const char *text, *files; /* NULL = refused */
    } cases[] = {
        { "\\x90", "[]" },
        { "\\x9180", "[{}]" },
        { "\\x9181a470617468a161", "[{\"path\":\"a\"}]" },
        { "\\xdc000181a1c3", NULL },
        { "\\xdc000181d90161c40162", "[{\"a\":\"b\"}]" },
        { "\\xdd00000001de0001da000161c6000000016200", NULL },
        { "\\xdd00000001de0001da000161c60000000162", "[{\"a\":\"b\"}]" },
        { "\\x9181a161a1ff", NULL }, /* no UTF-8 */
        { "\\x91", NULL },
        { "\\x9181a161", NULL },
        { "\\x9181a161db7fffffff62", NULL },
        { "\\xddffffffff80", NULL },
        { "\\x9090", NULL },
        { "\\x80", NULL },
        { "\\x9", NULL },
        { "\\x9z", NULL },
        { "\\x", NULL },
        { "90", NULL },
        { "", NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        json_auto_t *files = NULL;
        AQ_CLEANUP(aq_freep) char *text = NULL;
        int r = dotfiles_read(cases[i].text, &files, NULL);

        assert_row(r == (cases[i].files ? 0 : -EINVAL), "%s", cases[i].text);
        text = files ? json_dumps(files, JSON_COMPACT) : NULL;
        assert_row(r < 0 || strcmp(text, cases[i].files) == 0, "%s", cases[i].text);
    }
}

/* A few bytes of the dump each, which take some KiB here. */
static void test_many_tables(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;

    (void)state;
    for (int i = 0; i < 2000; i++)
        strbuf_addf(&text, "CREATE TABLE t%d (a int);\n", i);
    strbuf_adds(&text, "CREATE TABLE t1999 (again int);\nINSERT INTO t1999 VALUES (1);");
    read_dump(text.data, 4096, &out);
    assert_string_equal(out.data, "2002 t1999(a);2002:1;");
    strbuf_adds(&text, "\nCREATE TABLE t (a int);");
    read_dump(text.data, 4096, &out);
    assert_string_equal(out.data, "2002 t1999(a);2002:1;! line 2003: the dump has more than 2000 "
                                  "tables; dump those of Backend.AI alone");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_long_statements),
        cmocka_unit_test(test_many_tables), cmocka_unit_test(test_bytes_that_are_no_text),
        cmocka_unit_test(test_dotfiles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
