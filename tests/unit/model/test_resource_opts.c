/* SPDX-License-Identifier: Apache-2.0 */
/* What resource_opts say, also as they were kept before anybody checked them. */
#include "testing.h"

#include <jansson.h>

#include "model/resource_opts.h"

static void test_splitting(void **state)
{
    static const struct {
        const char *opts;
        enum splitting says;
    } rows[] = {
        { "{}", SPLITTING_UNSAID },
        { "{\"" RESOURCE_OPTS_SPLITTING "\": true}", SPLITTING_ALLOWED },
        { "{\"" RESOURCE_OPTS_SPLITTING "\": false}", SPLITTING_FORBIDDEN },
        { "{\"" RESOURCE_OPTS_SPLITTING "\": null}", SPLITTING_UNSAID },
        { "{\"" RESOURCE_OPTS_SPLITTING "\": \"yes\"}", SPLITTING_UNSAID },
        { "[true]", SPLITTING_UNSAID },
    };

    (void)state;
    assert_int_equal(resource_opts_splitting(NULL), SPLITTING_UNSAID);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *opts = json_loads(rows[i].opts, 0, NULL);

        assert_row(resource_opts_splitting(opts) == rows[i].says, "%s", rows[i].opts);
        json_decref(opts);
    }
}

static void test_shmem(void **state)
{
    static const struct {
        const char *opts;
        int64_t bytes; /* 7 = as it was */
        const char *wrong;
    } rows[] = {
        { "{}", 7, NULL },
        { "{\"shmem\": null}", 7, NULL },
        { "{\"shmem\": \"64m\"}", INT64_C(64) << 20, NULL },
        { "{\"shmem\": \"0.0625g\"}", INT64_C(64) << 20, NULL },
        { "{\"shmem\": 67108864}", INT64_C(64) << 20, NULL },
        { "{\"shmem\": \"64q\"}", 7, "shmem: '64q' has no known unit" },
        { "{\"shmem\": \"1.5\"}", 7, "shmem: '1.5' is a fraction of a byte" },
        { "{\"shmem\": \"-1\"}", 7, "shmem: '-1' cannot be negative" },
        { "{\"shmem\": -1}", 7, "is not a size such as \"512m\" or bytes" },
        { "{\"shmem\": 1.5}", 7, "is not a size" },
        { "{\"shmem\": true}", 7, "is not a size" },
        { "{\"shmem\": {}}", 7, "is not a size" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        json_t *opts = json_loads(rows[i].opts, 0, NULL);
        struct aq_error err = { 0 };
        int64_t bytes = 7;
        int r = resource_opts_shmem(opts, &bytes, &err);

        assert_row(r == (rows[i].wrong ? -22 : 0), "%s: %d", rows[i].opts, r);
        assert_row(bytes == rows[i].bytes, "%s", rows[i].opts);
        if (rows[i].wrong) {
            assert_row(strstr(err.text, rows[i].wrong) != NULL, "%s: %s", rows[i].opts, err.text);
            assert_string_equal(err.field, "config.resource_opts.shmem");
        }
        json_decref(opts);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_splitting),
                                               cmocka_unit_test(test_shmem) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
