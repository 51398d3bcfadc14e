/* SPDX-License-Identifier: Apache-2.0 */
/* Names and comments of jobs as a session can have them. */
#include "testing.h"

#include "cli/submit/job_name.h"

#define TEN "abcdefghij"

static void test_names(void **state)
{
    static const struct {
        const char *text, *want;
        size_t max;
    } rows[] = {
        { "train", "train", 64 },
        { "nf-align_(sample 1)", "nf-align_sample-1", 64 },
        { "a b", "a-b", 64 },
        { "smk job.12 [x=1]", "smk-job.12-x-1", 64 },
        { "/path/to/job.sh", "path-to-job.sh", 64 },
        { "x", "job-x", 64 },
        { "  x  ", "job-x", 64 },
        { "_", "job-_", 64 },
        { "..a..", "job-a", 64 },
        { "a (copy).sh", "a-copy.sh", 64 },
        { "\xed\x95\x9c run", "run", 64 },
        { "Pr\xfc"
          "fung",
          "Pr-fung", 64 },
        { "\xed\x95\x9c", "", 64 },
        { "", "", 64 },
        { "-.-", "", 64 },
        { TEN TEN, TEN TEN, 20 },
        { TEN TEN "k", TEN TEN, 20 },
        { TEN "abcdefghi k", TEN "abcdefghi", 20 },
        { "a\nb\tc", "a-b-c", 64 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char name[SESSION_NAME_MAX + 1];

        job_name_clean(rows[i].text, rows[i].max, name);
        assert_row(strcmp(name, rows[i].want) == 0, "%s: %s", rows[i].text, name);
        assert_row(!name[0] || session_name_check(name, NULL) == 0, "%s", name);
    }
}

static void test_tags(void **state)
{
    static const struct {
        const char *text, *want;
        bool is_changed;
    } rows[] = {
        { "of mine", "of mine", false },
        { "", "", false },
        { TEN TEN TEN TEN TEN TEN "1234", TEN TEN TEN TEN TEN TEN "1234", false },
        { TEN TEN TEN TEN TEN TEN "12345", TEN TEN TEN TEN TEN TEN "1234", true },
        { TEN TEN TEN TEN TEN TEN "123\xc3\xa9", TEN TEN TEN TEN TEN TEN "123", true },
        { "Pr\xfc"
          "f",
          "Pr?f", true },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf tag = STRBUF_INIT;
        bool is_changed = job_tag_clean(rows[i].text, &tag);

        assert_row(strcmp(tag.data, rows[i].want) == 0 && is_changed == rows[i].is_changed,
                   "%s: %s", rows[i].text, tag.data);
    }
}

static void test_scripts(void **state)
{
    (void)state;
    assert_string_equal(job_script_name("job.sh"), "job.sh");
    assert_string_equal(job_script_name("/a b/run (copy).sh"), "run (copy).sh");
    assert_string_equal(job_script_name("/dev/fd/63"), "script");
    assert_string_equal(job_script_name("/proc/self/fd/3"), "script");
    assert_string_equal(job_script_name("/tmp/\xfc.sh"), "script");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_scripts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
