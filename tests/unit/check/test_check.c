/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of checks: which are run, and what is written of them. */
#include "unit/testing.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "check/check.h"

static int looked;

static void look_good(void *data, struct finding *ret)
{
    looked += *(int *)data;
    finding_say(ret, CHECK_OK, "%d is fine", 7);
}

static void look_bad(void *data, struct finding *ret)
{
    (void)data;
    finding_say(ret, CHECK_OK, "as was thought first");
    finding_mean(ret, "which is forgotten");
    finding_say(ret, CHECK_MISSING, "no \"crun\"\nat all");
    finding_mend(ret, "apt install %s", "crun");
}

static void look_elsewhere(void *data, struct finding *ret)
{
    (void)data;
    (void)ret;
}

static const struct check table[] = {
    { "agent.state", "agent", "state folder", look_good },
    { "containers.runtime", "containers", "OCI runtime", look_bad },
    { "containers.other", "containers", "other", look_elsewhere },
    { .id = NULL },
};

/* What is written about these parts, as an array of objects. */
static json_t *run(char *const *parts, int count)
{
    char *text = NULL, *at, *line;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_t *all = json_array();
    int one = 1;

    assert_int_equal(checks_run(table, &one, parts, count, out, NULL), 0);
    (void)fclose(out);
    at = text;
    while ((line = strsep(&at, "\n")) && *line)
        json_array_append_new(all, json_loads(line, 0, NULL));
    free(text);
    return all;
}

static const char *member(const json_t *all, size_t index, const char *key)
{
    return json_string_value(json_object_get(json_array_get(all, index), key));
}

static void test_all_are_run(void **state)
{
    json_t *all = run(NULL, 0);

    (void)state;
    assert_int_equal(json_array_size(all), 2); /* who has nothing to say is left out */
    assert_string_equal(member(all, 0, "id"), "agent.state");
    assert_string_equal(member(all, 0, "title"), "state folder");
    assert_string_equal(member(all, 0, "level"), "ok");
    assert_string_equal(member(all, 0, "text"), "7 is fine");
    assert_null(member(all, 0, "meaning"));
    assert_string_equal(member(all, 1, "part"), "containers");
    assert_string_equal(member(all, 1, "level"), "missing");
    assert_string_equal(member(all, 1, "text"), "no \"crun\"\nat all");
    assert_null(member(all, 1, "meaning"));
    assert_string_equal(member(all, 1, "remedy"), "apt install crun");
    json_decref(all);
}

static void test_only_what_is_asked_for(void **state)
{
    char part[] = "containers", *parts[] = { part };
    json_t *all;

    (void)state;
    looked = 0;
    all = run(parts, 1);
    assert_int_equal(looked, 0);
    assert_int_equal(json_array_size(all), 1);
    assert_string_equal(member(all, 0, "id"), "containers.runtime");
    json_decref(all);
}

static void test_unknown_part(void **state)
{
    char good[] = "agent", bad[] = "kitchen", *parts[] = { good, bad };
    struct aq_error err = { 0 };
    int one = 1;

    (void)state;
    looked = 0;
    assert_int_equal(checks_run(table, &one, parts, 2, stdout, &err), -EINVAL);
    assert_non_null(strstr(err.text, "kitchen"));
    assert_int_equal(looked, 0);
}

static void test_nobody_reads(void **state)
{
    FILE *out = fopen("/dev/full", "w");
    struct aq_error err = { 0 };
    int one = 1;

    (void)state;
    assert_int_equal(checks_run(table, &one, NULL, 0, out, &err), -EIO);
    (void)fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_run),
        cmocka_unit_test(test_only_what_is_asked_for),
        cmocka_unit_test(test_unknown_part),
        cmocka_unit_test(test_nobody_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
