/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's commands: sessions as jobs, formats, and where a job writes. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/slurm/field.h"
#include "cli/slurm/job_ids.h"
#include "cli/submit/job_name.h"
#include "cli/submit/job_place.h"
#include "cli/submit/slurm_begin.h"

#define NOW (INT64_C(1795000000) * USEC_PER_SEC)

static void test_states(void **state)
{
    static const struct {
        const char *status, *result, *reason, *code, *exit;
        int exit_code; /* -1 = none */
    } rows[] = {
        { "PENDING", "UNDEFINED", "", "PD", "0:0", -1 },
        { "PREPARING", "UNDEFINED", "", "CF", "0:0", -1 },
        { "RUNNING", "UNDEFINED", "", "R", "0:0", -1 },
        { "TERMINATING", "UNDEFINED", "user-requested", "CG", "0:0", -1 },
        { "TERMINATED", "SUCCESS", "task-finished", "CD", "0:0", 0 },
        { "TERMINATED", "FAILURE", "task-failed", "F", "3:0", 3 },
        { "TERMINATED", "FAILURE", "task-failed", "F", "137:0", 137 },
        { "TERMINATED", "FAILURE", "user-requested", "CA", "0:15", 143 },
        { "TERMINATED", "FAILURE", "task-timeout", "TO", "0:15", 143 },
        { "TERMINATED", "FAILURE", "out-of-memory", "OOM", "0:9", 137 },
        { "TERMINATED", "FAILURE", "agent-lost", "NF", "0:0", -1 },
        { "TERMINATED", "FAILURE", "preempted", "PR", "0:9", 137 },
        { "TERMINATED", "UNDEFINED", "self-terminated", "CA", "0:0", -1 },
        { "CANCELLED", "UNDEFINED", "dependency-failed", "CA", "0:0", -1 },
        { "ERROR", "UNDEFINED", "failed-to-start", "F", "1:0", -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *row = json_pack("{s:i s:s s:s s:s s:s}", "job_id", 7, "name", "a", "status",
                                rows[i].status, "result", rows[i].result, "reason", rows[i].reason);
        struct slurm_line line = { .count = 0 };
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        AQ_CLEANUP(aq_freep) char *expected = aq_format("%s|%s\n", rows[i].code, rows[i].exit);
        struct job job;

        if (rows[i].exit_code >= 0)
            (void)json_object_set_new(row, "exit_code", json_integer(rows[i].exit_code));
        assert_int_equal(job_read(row, NOW, &job, NULL), 0);
        line.delimiter = "|";
        assert_int_equal(
            slurm_line_parse("StateCompact,ExitCode", SLURM_LINE_SACCT, job_fields, &line, NULL),
            0);
        slurm_line_write(&line, &job, &out);
        assert_row(strcmp(out.data, expected) == 0, "%s %s: %s", rows[i].status, rows[i].reason,
                   out.data);
        json_decref(row);
    }
}

static json_t *make_row(void)
{
    json_error_t error;

    return json_loads("{\"job_id\": 12, \"name\": \"train.j1a2b3c\", \"status\": \"RUNNING\","
                      " \"result\": \"UNDEFINED\", \"user\": \"ann@example.org\","
                      " \"group\": \"ml\", \"resource_group\": \"default\", \"cluster_size\": 2,"
                      " \"requested_slots\": {\"cpu\": \"4\", \"mem\": \"8589934592\","
                      " \"cuda.device\": \"2\"}, \"agents\": [\"n1\", \"n2\"], \"priority\": 10,"
                      " \"timeout_sec\": 93784, \"tag\": null}",
                      0, &error);
}

static void write_line(const char *format, enum slurm_line_style style, bool has_header,
                       struct strbuf *out)
{
    struct slurm_line line = { .count = 0 };
    struct aq_error err = { 0 };
    json_t *row = make_row();
    struct job job;

    assert_int_equal(job_read(row, NOW, &job, NULL), 0);
    job.start_usec = NOW - 65 * USEC_PER_SEC;
    if (slurm_line_parse(format, style, job_fields, &line, &err) < 0)
        strbuf_adds(out, err.text);
    else if (has_header)
        slurm_line_write_header(&line, out);
    if (!err.code)
        slurm_line_write(&line, &job, out);
    json_decref(row);
}

static void test_lines(void **state)
{
    static const struct {
        enum slurm_line_style style;
        const char *format, *line;
    } rows[] = {
        { SLURM_LINE_LETTERS, "%i %t", "12 R\n" },
        { SLURM_LINE_LETTERS, "%i|%T", "12|RUNNING\n" },
        { SLURM_LINE_LETTERS, "[%.5i|%5t|%.3j]", "[   12|R    |tra]\n" },
        { SLURM_LINE_LETTERS, "%u %a %P %D %C %m %M %l %R %k",
          "ann ml default 2 4 8G 1:05"
          " 1-02:03:04 n1,n2 (null)\n" },
        { SLURM_LINE_LETTERS, "%L", "1-02:01:59\n" },
        { SLURM_LINE_LETTERS, "%b %S", "gres/gpu:2 " }, /* and a time of here */
        { SLURM_LINE_LETTERS, "%y", "Invalid format specification: %y" },
        { SLURM_LINE_LETTERS, "%", "Invalid format specification: % at the end" },
        { SLURM_LINE_LETTERS, "i", "Invalid format specification: 'i' names no field" },
        { SLURM_LINE_NAMES, "jobid:4,State:.8", "12   RUNNING\n" },
        { SLURM_LINE_SACCT, "JobID%4,jobname%-6,State%3", "  12 train  RU+ \n" },
        { SLURM_LINE_SACCT, "ReqTRES%60",
          "                    cpu=4,mem=8G,node=2,billing=4,gres/gpu=2 \n" },
        { SLURM_LINE_SACCT, "Elapsed,ElapsedRaw%3,TimelimitRaw%5", "  00:01:05  65  1564 \n" },
        { SLURM_LINE_SACCT, "JobID,Nonsense", "Invalid field requested: \"Nonsense\"" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        write_line(rows[i].format, rows[i].style, false, &out);
        assert_row(strncmp(out.data, rows[i].line, strlen(rows[i].line)) == 0, "%s: %s",
                   rows[i].format, out.data);
    }
}

static void test_headers(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf queue = STRBUF_INIT, account = STRBUF_INIT;

    (void)state;
    write_line("%.6i %.4j", SLURM_LINE_LETTERS, true, &queue);
    assert_string_equal(queue.data, " JOBID NAME\n    12 trai\n");
    write_line("JobID%5,State", SLURM_LINE_SACCT, true, &account);
    assert_string_equal(account.data, "JobID      State \n----- ---------- \n"
                                      "   12    RUNNING \n");
}

static void test_names(void **state)
{
    static const struct {
        const char *session, *job;
    } rows[] = {
        { "train", "train" },
        { "train.j1a2b3c", "train" },
        { "train.j1a2b3", "train.j1a2b3" },
        { "train.j1a2b3g", "train.j1a2b3g" },
        { "run-202411", "run-202411" },
        { ".j1a2b3c", ".j1a2b3c" },
    };
    char name[SESSION_NAME_MAX + 1], again[SESSION_NAME_MAX + 1];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        job_name_of_session(rows[i].session, name);
        assert_row(strcmp(name, rows[i].job) == 0, "%s: %s", rows[i].session, name);
    }
    job_name_with_chance("0d3013dd-acfb-4978-a517-57eded17715b", name);
    job_name_of_session(name, again);
    assert_string_equal(again, "0d3013dd-acfb-4978-a517-57eded17715b");
}

static void test_places(void **state)
{
    static const struct {
        struct job_place place;
        const char *lines;
    } rows[] = {
        { { .directory = NULL }, "" },
        { { .directory = "/a b", .must_have = true }, "cd '/a b' || exit 1\n" },
        { { .output = "o-%j.log" }, "exec >\"o-${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}.log\" 2>&1\n" },
        { { .output = "o", .error = "e", .is_appended = true }, "exec >>\"o\" 2>>\"e\"\n" },
        { { .output = "o", .error = "o", .input = "/dev/null" },
          "exec <\"/dev/null\" >\"o\" 2>&1\n" },
        { { .output = "%x.%u.%4j.%%.$HOME", .user = "ann" },
          "exec >\"${SLURM_JOB_NAME:-$BACKENDAI_SESSION_NAME}.ann."
          "${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}.%.\\$HOME\" 2>&1\n" },
        { { .error = "e-%A_%a" },
          "exec 2>\"e-${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}}_"
          "${SLURM_ARRAY_TASK_ID:-4294967294}\"\n" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

        job_place_write(&rows[i].place, &out);
        assert_row(strcmp(out.data, rows[i].lines) == 0, "%zu: %s", i, out.data);
    }
}

static void test_moments(void **state)
{
    static const struct {
        const char *text;
        int64_t sec; /* after NOW; 1 = refused */
    } rows[] = {
        { "now", 0 },
        { "now-2days", -172800 },
        { "now-1hour", -3600 },
        { "now+90", 90 },
        { "2026-11-18T00:00", 1794960000 - 1795000000 },
        { "2026-11-18", 1794960000 - 1795000000 },
        { "yesterday", 1 },
        { "now-", 1 },
        { "now-2x", 1 },
        { "", 1 },
    };

    (void)state;
    assert_int_equal(setenv("TZ", "UTC", 1), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t usec = 0;
        int r = slurm_moment_parse(rows[i].text, NOW, &usec);

        assert_row(rows[i].sec == 1 ? r == -EINVAL
                                    : r == 0 && usec == NOW + rows[i].sec * USEC_PER_SEC,
                   "%s: %d %lld", rows[i].text, r, (long long)(usec / USEC_PER_SEC));
    }
}

static void test_elements(void **state)
{
    static const char format[] = "%i|%F|%K|%A|%t|%r|%j|%C";
    json_t *element = json_pack("{s:i s:s s:s s:{s:s s:i}}", "job_id", 15, "name",
                                "sweep.j1a2b3c[3]", "status", "RUNNING", "array", "id", "a",
                                "index", 3);
    json_t *array = json_pack("{s:i s:s s:s s:i s:i s:{s:s}}", "number", 12, "id", "a", "name",
                              "sweep.j1a2b3c", "limit", 2, "running", 2, "requested_slots", "cpu",
                              "4");
    struct slurm_line line = { .count = 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    char set[] = "4-9%2", none[] = "4-9";
    struct job job;

    (void)state;
    assert_int_equal(slurm_line_parse(format, SLURM_LINE_LETTERS, job_fields, &line, NULL), 0);
    assert_int_equal(job_read(element, NOW, &job, NULL), 0);
    job.array_number = 12;
    slurm_line_write(&line, &job, &out);
    assert_int_equal(job_read_set(array, set, false, NOW, &job, NULL), 0);
    slurm_line_write(&line, &job, &out);
    assert_int_equal(job_read_set(array, none, true, NOW, &job, NULL), 0);
    slurm_line_write(&line, &job, &out);
    assert_string_equal(out.data, "12_3|12|3|15|R|None|sweep|0\n"
                                  "12_[4-9%2]|12|4-9%2|12|PD|JobArrayTaskLimit|sweep|4\n"
                                  "12_[4-9]|12|4-9|12|CA|None|sweep|4\n");
    json_decref(element);
    json_decref(array);
}

static void test_why_jobs_wait(void **state)
{
    static const struct {
        const char *state, *reason;
    } rows[] = {
        { "waiting", "Dependency" },
        { "unmet", "Dependency" },
        { "met", "Resources" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *row = json_pack("{s:i s:s s:s s:[{s:s}]}", "job_id", 15, "name", "train", "status",
                                "PENDING", "dependencies", "state", rows[i].state);
        struct job job;

        assert_int_equal(job_read(row, NOW, &job, NULL), 0);
        assert_string_equal(job.reason, rows[i].reason);
        json_decref(row);
    }
}

static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        int count;                /* -1 = refused */
        int64_t number, elements; /* of the last */
    } rows[] = { { "12", 1, 12, 0 },
                 { "12,13", 2, 13, 0 },
                 { " 12 13 ", 2, 13, 0 },
                 { "12_3", 1, 12, 1 },
                 { "12_[1-3,7]", 1, 12, 4 },
                 { "12_[1-3,7%2],14", 2, 14, 0 },
                 { "14,12_[0-10:5]", 2, 12, 3 },
                 { "12.batch", 0, 0, 0 },
                 { "12_3.batch,13", 1, 13, 0 },
                 { "", 0, 0, 0 },
                 { "0", -1, 0, 0 },
                 { "-1", -1, 0, 0 },
                 { "x", -1, 0, 0 },
                 { "12_", -1, 0, 0 },
                 { "12_x", -1, 0, 0 },
                 { "12_[", -1, 0, 0 },
                 { "12_[]", -1, 0, 0 },
                 { "12_[3-1]", -1, 0, 0 },
                 { "12x", -1, 0, 0 },
                 { "12_[1-3", -1, 0, 0 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(job_ids_done) struct job_ids ids = { .items = NULL };
        int r = job_ids_read(rows[i].text, &ids, NULL);

        assert_row(r < 0 ? rows[i].count < 0 : (int)ids.count == rows[i].count, "'%s'",
                   rows[i].text);
        if (r < 0 || !ids.count)
            continue;
        assert_row(ids.items[ids.count - 1].number == rows[i].number
                       && array_set_size(&ids.items[ids.count - 1].elements) == rows[i].elements,
                   "'%s'", rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_states),        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_why_jobs_wait), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_lines),         cmocka_unit_test(test_headers),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_places),
        cmocka_unit_test(test_moments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
