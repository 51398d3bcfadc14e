/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/opt.h"
#include "cli/output/output.h"
#include "cli/output/prose.h"
#include "cli/output/table.h"
#include "model/status.h"

static const struct column columns[] = {
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "size", "SIZE", COLUMN_BYTES, 0 },
    { "slots", "RESOURCES", COLUMN_SLOTS, 0 },
    { "at", "AGE", COLUMN_TIME, 0 },
    { "reason", "REASON", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "secret", "SECRET", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static const char rows_text[] =
    "[{\"id\":\"1\",\"name\":\"beta\",\"status\":\"RUNNING\",\"size\":2147483648,"
    "\"slots\":{\"cpu\":\"1.5\",\"mem\":\"1073741824\"},\"at\":\"2026-11-21T00:00:00+00:00\","
    "\"reason\":null,\"secret\":\"x\"},"
    "{\"id\":\"2\",\"name\":\"alpha\",\"status\":\"PENDING\",\"size\":10,\"slots\":{},"
    "\"at\":\"2026-11-20T00:00:00+00:00\",\"reason\":\"no \\u001b[31m, \\\"room\\\"\"}]";

static json_t *load_rows(void)
{
    json_t *rows = json_loads(rows_text, 0, NULL);

    assert_non_null(rows);
    return rows;
}

static struct output make_output(enum output_format format)
{
    struct output o = { .format = format };

    assert_int_equal(clock_parse_date("2026-11-21T00:03:00+00:00", &o.now_usec), 0);
    return o;
}

static void expect_list(const struct output *o, const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *rows = load_rows();
    struct aq_error err = { 0 };

    assert_row(output_list(o, columns, rows, &out, &err) == 0, "%s", err.text);
    json_decref(rows);
    assert_string_equal(out.data, want);
}

/* Rows as they come make the same table as a tree of all of them. */
static void expect_stream(const struct output *o, const char *text, const char *want)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(table_freep) struct table *table = NULL;
    struct json_scan scan = json_scan_make(text, strlen(text));
    struct aq_error err = { 0 };

    assert_int_equal(output_begin_table(o, columns, &table, &err), 0);
    while (json_scan_item(&scan))
        assert_true(table_add_text(table, json_scan_value(&scan)));
    table_end(table, &out);
    assert_string_equal(out.data, want);
}

static void test_stream(void **state)
{
    static const char *const bad[] = {
        "", "1", "[]", "{\"name\":}", "{\"name\":[1}}", "{\"name\":nul}"
    };
    static const char repeated[] = "[{\"name\":\"b\\u00e4\",\"status\":\"ERROR\"},"
                                   "{\"name\":\"b\\u00e4\",\"size\":1},{\"status\":\"ERROR\"}]";
    struct output o = make_output(OUTPUT_TABLE);
    AQ_CLEANUP(table_freep) struct table *table = NULL;

    (void)state;
    expect_stream(&o, rows_text,
                  "NAME   STATUS       SIZE  RESOURCES          AGE    REASON\n"
                  "beta   RUNNING     2 GiB  cpu=1.5 mem=1 GiB  3 min  -\n"
                  "alpha  PENDING  10 bytes  -                  24 h   no ?[31m, \"room\"\n");
    o.columns = "name,status,size,name";
    o.colour = o.no_header = true;
    expect_stream(&o, repeated,
                  "b\xc3\xa4  \033[31mERROR\033[0m       -  b\xc3\xa4\n"
                  "b\xc3\xa4  -      1 byte  b\xc3\xa4\n"
                  "-   \033[31mERROR\033[0m       -  -\n");
    assert_int_equal(output_begin_table(&o, columns, &table, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_row(!table_add_text(table, (struct json_span){ bad[i], strlen(bad[i]) }), "%s",
                   bad[i]);
}

static void test_table(void **state)
{
    struct output o = make_output(OUTPUT_TABLE);

    (void)state;
    expect_list(&o, "NAME   STATUS       SIZE  RESOURCES          AGE    REASON\n"
                    "beta   RUNNING     2 GiB  cpu=1.5 mem=1 GiB  3 min  -\n"
                    "alpha  PENDING  10 bytes  -                  24 h   no ?[31m, \"room\"\n");
    o.no_header = true;
    o.columns = "status,id";
    o.sort = "id";
    expect_list(&o, "RUNNING  1\nPENDING  2\n");
    o.sort = "-id";
    expect_list(&o, "PENDING  2\nRUNNING  1\n");
    o.sort = "name,-id";
    o.colour = true;
    expect_list(&o, "\033[33mPENDING\033[0m  2\n\033[32mRUNNING\033[0m  1\n");
}

static void test_table_width(void **state)
{
    struct output o = make_output(OUTPUT_TABLE);

    (void)state;
    o.columns = "name,reason";
    o.width = 15;
    o.ascii = true;
    expect_list(&o, "NAME   REASON\nbeta   -\nalpha  no\n       ?[31m,\n       \"room\"\n");
    o.width = 10; /* the words do not fit beside each other */
    expect_list(&o, "NAME    beta\nREASON  -\n\nNAME    alpha\nREASON  no ?[31m, \"room\"\n");
    o.format = OUTPUT_WIDE;
    expect_list(&o, "NAME   REASON\nbeta   -\nalpha  no ?[31m, \"room\"\n");
    o.is_screen = true; /* a line for each row */
    o.format = OUTPUT_TABLE;
    o.width = 15;
    expect_list(&o, "NAME   REASON\nbeta   -\nalpha  no ?[31~\n");
    o.ascii = false;
    expect_list(&o, "NAME   REASON\nbeta   -\nalpha  no ?[31\xe2\x80\xa6\n");
}

/* A word of a reason takes several lines before the table becomes blocks. */
static void test_narrow_reason(void **state)
{
    static const struct column narrow[] = { { "name", "NAME", COLUMN_TEXT, 0 },
                                            { "why", "REASON", COLUMN_REASON, COLUMN_MAY_SHRINK },
                                            COLUMN_END };
    struct output o = make_output(OUTPUT_TABLE);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *rows = json_pack("[{s:s,s:s}]", "name", "one", "why", "no-available-instances");
    struct aq_error err = { 0 };

    (void)state;
    o.width = 20;
    assert_int_equal(output_list(&o, narrow, rows, &out, &err), 0);
    assert_string_equal(out.data, "NAME  REASON\none   no-available-\n      instances\n");
    o.width = 15;
    strbuf_clear(&out);
    assert_int_equal(output_list(&o, narrow, rows, &out, &err), 0);
    assert_string_equal(out.data, "NAME    one\nREASON  no-available-instances\n");
    json_decref(rows);
}

static void test_prose(void **state)
{
    static const struct {
        const char *text;
        int width;
        const char *lines;
    } cases[] = {
        { "one two three", 0, "one two three" },
        { "one two three", 8, "one two\nthree" },
        { "a-long-name b", 4, "a-long-name\nb" },
        { "  - needs 4 of 8 GiB\nend", 16, "  - needs 4 of\n    8 GiB\nend" },
        { "", 8, "" },
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        strbuf_clear(&out);
        prose_wrap(cases[i].text, cases[i].width, &out);
        assert_row(strcmp(out.len ? out.data : "", cases[i].lines) == 0, "%s: %s", cases[i].text,
                   out.len ? out.data : "");
    }
    strbuf_clear(&out);
    strbuf_adds(&out, "  ls  ");
    prose_wrap_behind("List the sessions", 6, 16, &out);
    assert_string_equal(out.data, "  ls  List the\n      sessions");
    assert_int_equal(setenv("TZ", "CET-1", 1), 0);
    tzset();
    strbuf_clear(&out);
    prose_localize("at 2026-11-21T00:09:00Z (2026-11-20T23:59:50.5+00:00), not 2026-11-21",
                   INT64_C(1795219200) * USEC_PER_SEC, &out);
    assert_string_equal(out.data, "at 2026-11-21 01:09:00 (in 9 min) 2026-11-21 00:59:50 (9 s ago)"
                                  ", not 2026-11-21");
}

static void test_machine(void **state)
{
    struct output o = make_output(OUTPUT_CSV);

    (void)state;
    expect_list(&o, "id,name,status,size,slots,at,reason\n"
                    "1,beta,RUNNING,2147483648,\"{\"\"cpu\"\":\"\"1.5\"\",\"\"mem\"\":"
                    "\"\"1073741824\"\"}\",2026-11-21T00:00:00+00:00,\n"
                    "2,alpha,PENDING,10,{},2026-11-20T00:00:00+00:00,"
                    "\"no ?[31m, \"\"room\"\"\"\n");
    o.format = OUTPUT_NAME;
    expect_list(&o, "beta\nalpha\n");
    o.format = OUTPUT_JSONL;
    o.columns = "name,secret";
    expect_list(&o, "{\"name\":\"beta\",\"secret\":\"x\"}\n{\"name\":\"alpha\",\"secret\":null}\n");
    o.format = OUTPUT_JSON;
    o.columns = "name";
    expect_list(&o, "[\n  {\n    \"name\": \"beta\"\n  },\n  {\n    \"name\": \"alpha\"\n  }\n]\n");
    o.format = OUTPUT_YAML;
    o.columns = "name,at,slots,reason";
    expect_list(&o, "- name: beta\n  at: \"2026-11-21T00:00:00+00:00\"\n  slots:\n"
                    "    cpu: \"1.5\"\n    mem: \"1073741824\"\n  reason: null\n"
                    "- name: alpha\n  at: \"2026-11-20T00:00:00+00:00\"\n  slots: {}\n"
                    "  reason: \"no \\x1b[31m, \\\"room\\\"\"\n");
}

/* Whatever may stand in a column of states has a colour, each word by its meaning. */
static void test_every_state_has_a_colour(void **state)
{
    (void)state;
    for (int i = 0; i < SESSION_STATUS_COUNT; i++)
        assert_non_null(table_status_colour(session_status_name(i)));
    for (int i = 0; i < KERNEL_STATUS_COUNT; i++)
        assert_non_null(table_status_colour(kernel_status_name(i)));
    for (int i = 0; i < AGENT_STATUS_COUNT; i++)
        assert_non_null(table_status_colour(agent_status_name(i)));
    assert_string_equal(table_status_colour("active"), table_status_colour("RUNNING"));
    assert_string_not_equal(table_status_colour("ERROR"), table_status_colour("RUNNING"));
    assert_null(table_status_colour("UNDEFINED"));
}

static void test_record(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct output o = make_output(OUTPUT_TABLE);
    json_t *rows = load_rows();

    (void)state;
    o.columns = "name,slots";
    assert_int_equal(output_record(&o, columns, json_array_get(rows, 0), &out, NULL), 0);
    assert_string_equal(out.data, "NAME       beta\nRESOURCES  cpu=1.5 mem=1 GiB\n");
    strbuf_clear(&out);
    o.format = OUTPUT_JSON;
    assert_int_equal(output_record(&o, columns, json_array_get(rows, 1), &out, NULL), 0);
    assert_string_equal(out.data, "{\n  \"name\": \"alpha\",\n  \"slots\": {}\n}\n");
    json_decref(rows);
}

static void test_refused(void **state)
{
    static const struct {
        const char *columns, *sort, *says;
    } cases[] = {
        { "naem", NULL, "did you mean 'name'" },
        { "", NULL, "there are: id, name" },
        { "name,", NULL, "there are: id, name" },
        { NULL, "zzz", "--sort: there is no column 'zzz'" },
        { NULL, "--id", "--sort" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = make_output(OUTPUT_TABLE);
        json_t *rows = load_rows();
        struct aq_error err = { 0 };

        o.columns = cases[i].columns;
        o.sort = cases[i].sort;
        assert_row(output_list(&o, columns, rows, &out, &err) == -EINVAL, "%zu", i);
        assert_row(strstr(err.text, cases[i].says), "%zu: %s", i, err.text);
        assert_row(out.len == 0, "%zu", i);
        json_decref(rows);
    }
}

/* What PyYAML reads from our YAML is what we wrote, for texts that are easily
 * taken for something else.
 */
static void test_yaml_round_trip(void **state)
{
    static const char *const texts[] = {
        "",
        " ",
        "a",
        "a b",
        "a  b",
        "a ",
        " a",
        "null",
        "Null",
        "~",
        "true",
        "Yes",
        "no",
        "ON",
        "off",
        "y",
        "n",
        "1",
        "-1",
        "1.5",
        "1e3",
        "0x1f",
        "0o7",
        "017",
        "1_000",
        "12:30:45",
        "2026-11-21",
        "2026-11-21T01:02:03Z",
        ".inf",
        ".NaN",
        "inf",
        "-",
        "- a",
        "?",
        "? a",
        ":",
        "a: b",
        "a:b",
        "#",
        "a #b",
        "a#b",
        "&a",
        "*a",
        "!a",
        "!!str a",
        "|",
        ">",
        "'",
        "\"",
        "a'b",
        "a\"b",
        "\\",
        "a\\nb",
        "%a",
        "@a",
        "`a",
        "{a}",
        "[a]",
        "a,b",
        "a, b",
        "=",
        "<<",
        "---",
        "...",
        "--- a",
        "line\nline",
        "\n",
        "tab\there",
        "\ttab",
        "\r",
        "\x01\x1b\x7f",
        "h\xc3\xa9llo",
        "\xed\x95\x9c\xea\xb5\xad",
        "\xf0\x9f\x98\x80",
        "\xc2\x85",
        "\xe2\x80\xa8",
        ("\xef\xbb\xbf"
         "bom"),
        "/usr/bin",
        "_a",
        "a@b.c",
        "key=value",
    };
    static const char script[] =
        "import json,sys,yaml\n"
        "want=json.load(open(sys.argv[1]))\n"
        "got=yaml.safe_load(open(sys.argv[2],encoding='utf-8'))\n"
        "sys.exit('differs: %r' % [(w,g) for w,g in zip(want['texts'],got['texts']) if w!=g]"
        " if want!=got else 0)\n";
    AQ_CLEANUP(strbuf_donep) struct strbuf yaml = STRBUF_INIT;
    char folder[] = "/tmp/aliquot-yaml-XXXXXX", json_path[64], yaml_path[64], command[1024];
    json_t *root = json_pack("{s:[], s:{}, s:[], s:{s:n, s:b, s:f, s:I}, s:[[i,[i]],{s:[{s:i}]}]}",
                             "texts", "empty", "none", "mixed", "nothing", "yes", 1, "real", 0.25,
                             "big", (json_int_t)INT64_MAX, "nested", 1, 2, "k", "l", 3);

    (void)state;
    assert_non_null(root);
    if (system("python3 -c 'import yaml' 2>/dev/null") != 0)
        skip();
    for (size_t i = 0; i < AQ_COUNT(texts); i++) {
        assert_int_equal(
            json_array_append_new(json_object_get(root, "texts"), json_string(texts[i])), 0);
        assert_int_equal(
            json_object_set_new(json_object_get(root, "empty"), texts[i], json_string(texts[i])),
            0);
    }
    yaml_write(root, &yaml);
    assert_true(strbuf_ok(&yaml));
    assert_non_null(mkdtemp(folder));
    (void)snprintf(json_path, sizeof(json_path), "%s/a.json", folder);
    (void)snprintf(yaml_path, sizeof(yaml_path), "%s/a.yaml", folder);
    assert_int_equal(json_dump_file(root, json_path, 0), 0);
    assert_int_equal(fs_write_atomic(-100, yaml_path, yaml.data, yaml.len, 0600, NULL), 0);
    (void)snprintf(command, sizeof(command), "python3 -c \"%s\" %s %s", script, json_path,
                   yaml_path);
    assert_int_equal(system(command), 0);
    assert_int_equal(fs_remove_tree(-100, folder, NULL), 0);
    json_decref(root);
}

static void test_cells(void **state)
{
    static const struct {
        enum column_kind kind;
        const char *json, *want;
    } cases[] = {
        { COLUMN_TEXT, "null", "-" },
        { COLUMN_TEXT, "\"\"", "-" },
        { COLUMN_TEXT, "\"a\\nb\\tc\"", "a b c" },
        { COLUMN_TEXT, "{\"a\":[1]}", "{\"a\":[1]}" },
        { COLUMN_NUMBER, "12", "12" },
        { COLUMN_BOOL, "true", "yes" },
        { COLUMN_BOOL, "false", "no" },
        { COLUMN_TIME, "\"2026-11-21T00:02:59+00:00\"", "1 s" },
        { COLUMN_TIME, "\"2026-11-20T22:03:00+00:00\"", "2 h" },
        { COLUMN_TIME, "\"2026-11-01T00:00:00+00:00\"", "20 d" },
        { COLUMN_TIME, "\"2026-11-21T00:33:00+00:00\"", "in 30 min" },
        { COLUMN_TIME, "\"never\"", "never" },
        { COLUMN_NAMES, "[{\"name\":\"a\"},{\"name\":\"b\"}]", "a, b" },
        { COLUMN_NAMES, "[\"a\",\"b\"]", "a, b" },
        { COLUMN_NAMES, "[]", "-" },
        { COLUMN_SLOTS, "{\"cpu\":\"2\"}", "cpu=2" },
        { COLUMN_SLOTS, "\"odd\"", "odd" },
        { COLUMN_BYTES, "1536", "1.5 KiB" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct column column = { "k", "K", cases[i].kind, 0 };
        struct output o = make_output(OUTPUT_TABLE);
        json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);

        cell_write(&o, &column, value, &out);
        json_decref(value);
        assert_row(strcmp(out.data, cases[i].want) == 0, "%s: '%s'", cases[i].json, out.data);
    }
}

/* Values that would steer a terminal: programs get them by escapes, others see that they are there. */
static void test_what_is_not_shown(void **state)
{
    static const char text[] = "{\"v\":\"=a\\u009b\\u007f\\u202e\\udb40\\udc61\\u00e9\"}";
    static const struct {
        enum output_format format;
        const char *want;
    } rows[] = {
        { OUTPUT_TABLE, "=a????\xc3\xa9\n" },
        { OUTPUT_NAME, "=a????\xc3\xa9\n" },
        { OUTPUT_CSV, "'=a????\xc3\xa9\n" },
        { OUTPUT_JSONL, "{\"v\":\"=a\\u009b\\u007f\\u202e\\udb40\\udc61\xc3\xa9\"}\n" },
        { OUTPUT_YAML, "- v: \"=a\\x9b\\x7f\\u202e\\U000e0061\xc3\xa9\"\n" },
    };
    static const struct column one[] = { { "v", "V", COLUMN_TEXT, COLUMN_IS_NAME }, COLUMN_END };
    json_t *list = json_pack("[o]", json_loads(text, 0, NULL));

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = make_output(rows[i].format);

        o.no_header = true;
        assert_int_equal(output_list(&o, one, list, &out, NULL), 0);
        assert_row(strcmp(out.data, rows[i].want) == 0, "%zu: '%s'", i, out.data);
    }
    json_decref(list);
}

static void test_fractions_have_the_digits_with_which_they_came(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT, yaml = STRBUF_INIT;
    json_t *value = json_loads("{\"h\":30.000081}", 0, NULL);

    (void)state;
    output_json(value, &json);
    yaml_write(value, &yaml);
    json_decref(value);
    assert_non_null(strstr(json.data, "\"h\": 30.000081\n"));
    assert_non_null(strstr(yaml.data, "h: 30.000081\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fractions_have_the_digits_with_which_they_came),
        cmocka_unit_test(test_what_is_not_shown),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_width),
        cmocka_unit_test(test_narrow_reason),
        cmocka_unit_test(test_prose),
        cmocka_unit_test(test_machine),
        cmocka_unit_test(test_every_state_has_a_colour),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_yaml_round_trip),
        cmocka_unit_test(test_cells),
    };

    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
