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

int main(void)
{
    static const struct CMUnitTest tests[] = { cmocka_unit_test(test_splitting) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
