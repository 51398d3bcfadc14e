/* SPDX-License-Identifier: Apache-2.0 */
/* Batch scripts: their first comments, and sbatch's options in ours. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "cli/submit/batch_script.h"
#include "cli/submit/slurm_begin.h"
#include "cli/submit/slurm_options.h"
#include "cli/submit/slurm_table.h"
#include "cli/submit/slurm_value.h"

static void test_times(void **state)
{
    static const struct {
        const char *text;
        int64_t sec; /* -1 = refused */
    } rows[] = {
        { "90", 5400 },      { "1:30", 90 },         { "2:00:00", 7200 },
        { "0:0:5", 5 },      { "1-0", 86400 },       { "2-3", 2 * 86400 + 3 * 3600 },
        { "1-2:30", 95400 }, { "1-2:30:15", 95415 }, { "0", 0 },
        { "-1", 0 },         { "UNLIMITED", 0 },     { "infinite", 0 },
        { "", -1 },          { "1h", -1 },           { "1:2:3:4", -1 },
        { "-5", -1 },        { "1-", -1 },           { "1:", -1 },
        { ":1", -1 },        { "1-2-3", -1 },        { "1:2-3", -1 },
        { "1 ", -1 },        { "1-2:3:4:5", -1 },    { "9999999999999999999", -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t sec = -1;
        int r = slurm_time_parse(rows[i].text, &sec);

        assert_row(r == (rows[i].sec < 0 ? -EINVAL : 0) && sec == rows[i].sec, "%s: %lld",
                   rows[i].text, (long long)sec);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        int64_t bytes; /* -1 = refused */
    } rows[] = {
        { "1", 1 << 20 },
        { "500M", 500 << 20 },
        { "4G", INT64_C(4) << 30 },
        { "4GB", INT64_C(4) << 30 },
        { "2k", 2048 },
        { "1T", INT64_C(1) << 40 },
        { "0", 0 },
        { "", -1 },
        { "4GiB", INT64_C(4) << 30 },
        { "4000mb", INT64_C(4000) << 20 },
        { "4Gx", -1 },
        { "1.5G", -1 },
        { "G", -1 },
        { "-1", -1 },
        { "1024T", -1 },
        { "4P", -1 },
        { "4 G", -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t bytes = -1;
        int r = slurm_size_parse(rows[i].text, &bytes);

        assert_row(r == (rows[i].bytes < 0 ? -EINVAL : 0) && bytes == rows[i].bytes, "%s: %lld",
                   rows[i].text, (long long)bytes);
    }
}

static void test_nodes(void **state)
{
    static const struct {
        const char *text;
        int64_t least; /* -1 = refused */
        bool is_range;
    } rows[] = {
        { "1", 1, false },    { "1-1", 1, false },  { "2-4", 2, true },   { "1k", 1024, false },
        { "1,2", 1, true },   { "2-8:2", 2, true }, { "1,4-8", 1, true }, { "0", -1, false },
        { "4-2", -1, false }, { "2-", -1, false },  { "-2", -1, false },  { "x", -1, false },
        { "2,", -1, false },  { "", -1, false },    { "1m", -1, false },  { "1 2", -1, false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t least = -1;
        bool is_range = false;
        int r = slurm_nodes_parse(rows[i].text, &least, &is_range);

        assert_row(r == (rows[i].least < 0 ? -EINVAL : 0) && least == rows[i].least
                       && (r < 0 || is_range == rows[i].is_range),
                   "%s: %lld", rows[i].text, (long long)least);
    }
}

static void test_gpus(void **state)
{
    static const struct {
        const char *text;
        bool is_gres;
        int64_t count; /* -1 = refused */
        bool is_typed;
    } rows[] = {
        { "2", false, 2, false },
        { "a100:2", false, 2, true },
        { "a100:2,v100:1", false, 3, true },
        { "a100", false, 1, true },
        { "0", false, 0, false },
        { "a100:0", false, 0, true },
        { "a100:x", false, -1, false },
        { ":2", false, -1, false },
        { "2,", false, -1, false },
        { "gpu", true, 1, false },
        { "gpu:2", true, 2, false },
        { "gpu:a100", true, 1, true },
        { "gpu:a100:4", true, 4, true },
        { "gpu:2(S:0-1)", true, 2, false },
        { "gpu:0", true, 0, false },
        { "gpu:a100:0", true, 0, true },
        { "gpu=2", true, 2, false },
        { "gpu:a100=2", true, 2, true },
        { "gres/gpu:2", true, 2, false },
        { "gres:gpu:2", true, 2, false },
        { "gpu:a100:2,gpu:v100:1", true, 3, true },
        { "gpu:1,craynetwork:0", true, 1, false },
        { "shard:0", true, 0, false },
        { "none", true, 0, false },
        { "NONE", true, 0, false },
        { "gpu:1,shard:2", true, -1, false },
        { "lscratch:20G", true, -1, false },
        { "gres/", true, -1, false },
        { "gpu:", true, -1, false },
        { "shard:1", true, -1, false },
        { "gpux:1", true, -1, false },
        { "gpu:a100:x", true, -1, false },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t count = -1;
        bool is_typed = false;
        int r = slurm_gpus_parse(rows[i].text, rows[i].is_gres, &count, &is_typed);

        assert_row(r == (rows[i].count < 0 ? -EINVAL : 0) && count == rows[i].count
                       && (r < 0 || is_typed == rows[i].is_typed),
                   "%s: %lld", rows[i].text, (long long)count);
    }
}

static void test_begins(void **state)
{
    static const struct {
        const char *text, *want; /* NULL = refused */
    } rows[] = {
        { "now", "" },
        { "now+90", "90s" },
        { "now+2hours", "7200s" },
        { "now+1hour", "3600s" },
        { "now+1weeks", "604800s" },
        { "2026-12-24", "2026-12-24T05:00:00+00:00" },
        { "2026-12-24T08:30", "2026-12-24T13:30:00+00:00" },
        { "2026-12-24T08:30:15", "2026-12-24T13:30:15+00:00" },
        { "16:00", "2026-11-21T21:00:00+00:00" },
        { "06:00:30", "2026-11-22T11:00:30+00:00" },
        { "NOW", "" },
        { "now + 2 Hours", "7200s" },
        { "midnight", "2026-11-22T05:00:00+00:00" },
        { "noon", "2026-11-21T17:00:00+00:00" },
        { "fika", "2026-11-21T20:00:00+00:00" },
        { "teatime", "2026-11-21T21:00:00+00:00" },
        { "today", "2026-11-21T05:00:00+00:00" },
        { "tomorrow", "2026-11-22T05:00:00+00:00" },
        { "Tomorrow 16:00", "2026-11-22T21:00:00+00:00" },
        { "noon tomorrow", "2026-11-22T17:00:00+00:00" },
        { "4:00PM", "2026-11-21T21:00:00+00:00" },
        { "12:30 am", "2026-11-22T05:30:00+00:00" },
        { "12/24", "2026-12-24T05:00:00+00:00" },
        { "1/2", "2027-01-02T05:00:00+00:00" },
        { "12/24/27 08:30", "2027-12-24T13:30:00+00:00" },
        { "122427", "2027-12-24T05:00:00+00:00" },
        { "2026-12-24 8:30", "2026-12-24T13:30:00+00:00" },
        { "tomorrow today", NULL },
        { "16:00 17:00", NULL },
        { "16:00 PM", NULL },
        { "now+", NULL },
        { "now+1h", NULL },
        { "now-1", NULL },
        { "24:00", NULL },
        { "16", NULL },
        { "late", NULL },
        { "2026-13-01", NULL },
        { "", NULL },
    };
    int64_t now_usec;

    (void)state;
    assert_int_equal(setenv("TZ", "EST5", 1), 0);
    tzset();
    assert_int_equal(clock_parse_date("2026-11-21T12:00:00Z", &now_usec), 0); /* 07:00 there */
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char start[SLURM_BEGIN_MAX] = "none";
        int r = slurm_begin_parse(rows[i].text, now_usec, start);

        assert_row(r == (rows[i].want ? 0 : -EINVAL)
                       && strcmp(start, rows[i].want ? rows[i].want : "none") == 0,
                   "%s: %s", rows[i].text, start);
    }
    assert_int_equal(unsetenv("TZ"), 0);
}

/* ---- scripts ---- */

/* "2:slurm|word|word/" of each line, or the error. */
static void say_script(const char *text, size_t len, struct strbuf *out)
{
    struct batch_script script = { .count = 0 };
    struct aq_error err = { 0 };

    if (batch_script_parse(text, len, &script, &err) < 0) {
        strbuf_adds(out, err.text);
    } else {
        strbuf_addf(out, "%s%s%s/", script.interpreter, script.argument ? " " : "",
                    script.argument ? script.argument : "");
        for (size_t i = 0; i < script.count; i++) {
            const struct batch_line *line = &script.lines[i];

            strbuf_addf(out, "%u:%s", line->number, line->is_slurm ? "slurm" : "ours");
            for (int k = 0; k < line->argc; k++)
                strbuf_addf(out, "|%s", line->argv[k]);
            strbuf_addc(out, '/');
        }
        strbuf_addf(out, "%u", script.late_line);
    }
    batch_script_done(&script);
}

static void test_scripts(void **state)
{
    static const struct {
        const char *text, *want;
    } rows[] = {
        { "#!/bin/sh\n", "/bin/sh/0" },
        { "#!/bin/sh", "/bin/sh/0" },
        { "#! /bin/bash -l x \necho", "/bin/bash -l x/0" },
        { "#!/bin/sh\n#SBATCH -n 2 --mem=4G\n#ALIQUOT -r cpu=1\n",
          "/bin/sh/2:slurm|-n|2|--mem=4G/3:ours|-r|cpu=1/0" },
        { "#!/bin/sh\n\n  # a comment\n\t\n#SBATCH\n#SBATCH\t-H", "/bin/sh/5:slurm/6:slurm|-H/0" },
        { "#!/bin/sh\n#SBATCH-n 2\n#SBATCH--mem=1G\n#ALIQUOT--name x",
          "/bin/sh/2:slurm|-n|2/3:slurm|--mem=1G/4:ours|--name|x/0" },
        { "#!/bin/sh\n#SBATCH\xc2\xa0-n 2\n", "/bin/sh/2:slurm|\xc2\xa0-n|2/0" },
        { "#!/bin/sh\n##SBATCH -n 2\n #SBATCH -n 2\n#SBATCHX\n# SBATCH -n 1\n", "/bin/sh/0" },
        { "#!/bin/sh\n#SBATCH -J 'a b' --x=\"c\\\"d\"e\\ f '' # -n 2\n",
          "/bin/sh/2:slurm|-J|a b|--x=c\"de f|/0" },
        { "#!/bin/sh\n#SBATCH -J a#b\n", "/bin/sh/2:slurm|-J|a#b/0" },
        { "#!/bin/sh\necho\n#SBATCH -n 2\n#SBATCH -n 3\n", "/bin/sh/3" },
        { "", "line 1: a script begins with its interpreter, such as #!/bin/bash" },
        { "#!  \n", "line 1: a script begins with its interpreter, such as #!/bin/bash" },
        { "\n#!/bin/sh", "line 1: a script begins with its interpreter, such as #!/bin/bash" },
        { "#!/bin/sh\n#SBATCH 'a\n", "line 2: a quotation mark is not closed" },
        { "#!/bin/sh\r\n", "line 1 ends as in DOS (\\r\\n); dos2unix changes that" },
        { "#!/bin/sh\necho\r\n", "line 2 ends as in DOS (\\r\\n); dos2unix changes that" },
        { "#!/bin/sh\recho\r", "line 1 has a carriage return (\\r), which ended lines on old "
                               "Macs; mac2unix changes that" },
        { "\xef\xbb\xbf#!/bin/sh\n", "line 1: a byte order mark is before the #!; save it as UTF-8 "
                                     "without one, or: sed -i '1s/^\\xef\\xbb\\xbf//' FILE" },
        { "\xff\xfe#!", "line 1: the text is UTF-16; save it as UTF-8 (iconv -f utf-16)" },
        { "#!/bin/\xfc\n", "line 1: the interpreter is not UTF-8" },
        { "#!/bin/sh\n# Pr\xfc\n#SBATCH -J '\xfc'\necho \r x", "/bin/sh/3:slurm|-J|\xfc/0" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

        say_script(rows[i].text, strlen(rows[i].text), &said);
        assert_row(strcmp(said.data, rows[i].want) == 0, "%zu: %s", i, said.data);
    }
}

static void test_limits_of_scripts(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, said = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "#!/bin/sh\n#SBATCH");
    for (int i = 0; i < BATCH_WORDS_MAX; i++)
        strbuf_adds(&text, " x");
    say_script(text.data, text.len, &said);
    assert_non_null(strstr(said.data, "2:slurm|x|x"));
    strbuf_adds(&text, " x");
    strbuf_clear(&said);
    say_script(text.data, text.len, &said);
    assert_non_null(strstr(said.data, "line 2: more than 64 words"));
    while (text.len <= BATCH_SCRIPT_MAX)
        strbuf_addc(&text, '\n');
    strbuf_clear(&said);
    say_script(text.data, text.len, &said);
    assert_non_null(strstr(said.data, "at most 64 KiB"));
    strbuf_clear(&said);
    say_script("#!/bin/sh\n\0\n", 12, &said);
    assert_non_null(strstr(said.data, "line 2: a NUL byte: this is no text"));
}

/* ---- sbatch's options ---- */

/* "word word/note/note gpus=N", or the error. */
static void say_options(const char *lines, bool is_several, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct batch_script script = { .count = 0 };
    struct slurm_options options = { .gpus = 0 };
    struct aq_error err = { 0 };

    strbuf_addf(&text, "#!/bin/sh\n#SBATCH %s\n", lines);
    assert_int_equal(batch_script_parse(text.data, text.len, &script, NULL), 0);
    if (slurm_options_translate(&script, is_several, &options, &err) < 0)
        strbuf_adds(out, err.text);
    for (size_t i = 0; !err.code && i < options.words.count; i++)
        strbuf_addf(out, "%s%s", i ? " " : "", options.words.items[i]);
    for (size_t i = 0; !err.code && i < options.notes.count; i++)
        strbuf_addf(out, "/%.*s", (int)strcspn(options.notes.items[i] + 8, ":="),
                    options.notes.items[i] + 8);
    if (!err.code && options.gpus)
        strbuf_addf(out, " gpus=%lld", (long long)options.gpus);
    slurm_options_done(&options);
    batch_script_done(&script);
}

static void test_options(void **state)
{
    static const struct {
        const char *lines, *want;
    } rows[] = {
        { "-J train --comment 'a b' -A team", "--name train --tag a b --group team" },
        { "-J 'a b' --comment=", "--name a-b --tag " },
        { "--job-name= --output= --mail-user=''", "/--output/--mail-user" },
        { "-p gpu", "--resource-group gpu" },
        { "-pgpu,cpu", "--resource-group gpu/--partition" },
        { "-t 1:30:00", "--timeout 5400s" },
        { "-t UNLIMITED", "" },
        { "-c4 --mem=8G", "--resource cpu=4 --resource mem=8589934592" },
        { "-n 4 -c 2 --mem-per-cpu=1G", "--resource cpu=8 --resource mem=8589934592/--ntasks" },
        { "-N 2 -n 5", "--resource cpu=3 --cluster 2/--nodes/--ntasks" },
        { "-N 2 --ntasks-per-node=3", "--resource cpu=3 --cluster 2/--nodes/--ntasks-per-node" },
        { "-N 1 -n 1", "--resource cpu=1" },
        { "-N 1-1 -n1", "--resource cpu=1" },
        { "-N 2-4", "--cluster 2/--nodes/--nodes" },
        { "-N 4 -n 2", "--resource cpu=1 --cluster 2/--nodes/--ntasks/--nodes" },
        { "--tasks-per-node=1 --mincpus 3", "--resource cpu=3" },
        { "--gpus-per-node=0 --gres=none", "" },
        { "--gres=gpu:0 --gpus 1", " gpus=1" },
        { "--tres-per-task=cpu=4,gres/gpu:1", "--resource cpu=4 gpus=1" },
        { "--cpus-per-t=4", "--resource cpu=4" },
        { "--job=a1 --mem-per-c 1G --tasks 2",
          "--name a1 --resource cpu=2 --resource mem=2147483648/--tasks-per-node" },
        { "-Qvc4", "--resource cpu=4" },
        { "-WQ -kN1", "--wait/--no-kill" },
        { "--stepmgr --help -I", "" },
        { "--gres=gpu:2", " gpus=2" },
        { "--gres=gpu:a100:2", "/--gres gpus=2" },
        { "-N 2 --gpus=4 --mem-per-gpu=1G", "--resource mem=2147483648 --cluster 2/--nodes "
                                            "gpus=2" },
        { "--gpus-per-task=1 -n 2 --cpus-per-gpu=3", "--resource cpu=6/--ntasks gpus=2" },
        { "--mem=0", "/--mem" },
        { "--begin=now+60 --dependency=afterok:a:b,afterok:c",
          "--starts-at 60s --after a --after b --after c" },
        { "--export=NONE", "" },
        { "--export=ALL,A=1,SET_HERE", "--env A=1 --env SET_HERE/--export" },
        { "--export=nil,NOT_SET_HERE", "" },
        { "--export=\"A='x,y',B=2\"", "--env A=x,y --env B=2" },
        { "--export=\"A='x,y'\"", "--env A=x,y" },
        { "-d afterok:a:a,AfterOK:b:a", "--after a --after b" },
        { "-d after:a,afterany:b:c,afternotok:d",
          "--after start:a --after end:b --after end:c --after failure:d" },
        { "--wait --parsable --no-requeue -Q", "--wait --parsable --on-node-loss end" },
        { "--requeue", "--retry 100 --retry-on node-lost,preempted" },
        { "--exclusive --nice --nice=5 --output=x -e y",
          "/--exclusive/--nice/--nice/--output/--error" },
    };

    (void)state;
    assert_int_equal(setenv("SET_HERE", "1", 1) | unsetenv("NOT_SET_HERE"), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

        say_options(rows[i].lines, false, &said);
        assert_row(strcmp(said.data, rows[i].want) == 0, "%s: %s", rows[i].lines, said.data);
    }
}

static void test_refused_options(void **state)
{
    static const struct {
        const char *lines, *says;
    } rows[] = {
        { "--job-nane=x",
          "line 2: sbatch has no option '--job-nane=x'; did you mean '--job-name'?" },
        { "--cpus=4", "line 2: --cpus=4 may be --cpus-per-task, --cpus-per-gpu" },
        { "--export=A=1,=2", "line 2: --export takes NAME or NAME=VALUE" },
        { "hetjob", "line 2: 'hetjob': the kernels of a session are alike" },
        { "-n 1 : -n 2", "line 2: ':': the kernels of a session are alike" },
        { "-Qy", "line 2: sbatch has no option '-Qy'" },
        { "-A \xfc", "line 2: a value is not UTF-8" },
        { "--tres-per-task=mem:4G", "line 2: --tres-per-task takes cpu:N and gres/gpu:N" },
        { "--frobnicate", "line 2: sbatch has no option '--frobnicate'" },
        { "-y", "line 2: sbatch has no option '-y'" },
        { "train.sh", "line 2: sbatch has no option 'train.sh'" },
        { "-", "line 2: sbatch has no option '-'" },
        { "--", "line 2: sbatch has no option '--'" },
        { "-J", "line 2: --job-name needs a value" },
        { "--mem=", "line 2: --mem needs a value" },
        { "--wait=1", "line 2: --wait takes no value" },
        { "-c 0", "line 2: --cpus-per-task takes one number from 1 to 1000000, not '0'" },
        { "-N 4-1", "line 2: --nodes takes a number of nodes such as 4 or 2-4" },
        { "--gres=shard:1", "-r SLOT=AMOUNT" },
        { "-t soon", "line 2: --time takes minutes" },
        { "--begin=later", "line 2: --begin takes" },
        { "-d singleton", "line 2: --dependency takes afterok, " },
        { "-d afternever:a", "line 2: --dependency takes afterok, " },
        { "-d after:a+5", "line 2: --dependency takes afterok, " },
        { "-d afterok:", "line 2: --dependency takes afterok, " },
        { "-d afterok:a?afterok:b", "line 2: --dependency takes afterok, " },
        { "-d afterok:a:", "line 2: --dependency takes afterok, " },
        { "--hold", "line 2: --hold: sessions are not held" },
        { "--mem-per-cpu=900T -c 1000000 -n 1000000", "more memory than there can be" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

        say_options(rows[i].lines, false, &said);
        assert_row(strstr(said.data, rows[i].says), "%s: %s", rows[i].lines, said.data);
    }
}

static void test_array_with_a_count(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

    (void)state;
    say_options("--array=0-9", true, &said);
    assert_string_equal(said.data, "/--array");
    strbuf_clear(&said);
    say_options("-a 0-9:3%2", false, &said);
    assert_string_equal(said.data, "--array 0-9:3%2");
}

/* No option is there twice, and those that are only named say what to do. */
static void test_table(void **state)
{
    (void)state;
    for (const struct slurm_option *o = slurm_table; o->name; o++) {
        for (const struct slurm_option *other = slurm_table; other != o; other++) {
            assert_row(strcmp(o->name, other->name) != 0, "%s", o->name);
            assert_row(!o->letter || o->letter != other->letter, "%s", o->name);
        }
        if (o->meaning == SLURM_NOTE || o->meaning == SLURM_REFUSE)
            assert_row(o->text && strlen(o->text) > 10, "%s", o->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_begins),
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_limits_of_scripts),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_array_with_a_count),
        cmocka_unit_test(test_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
