/* SPDX-License-Identifier: Apache-2.0 */
/* The unit of systemd in whose cgroup a process is. */
#include "testing.h"

#include "agent/agent_internal.h"

static const struct {
    const char *cgroups, *unit; /* NULL = none */
} cases[] = {
    { "0::/system.slice/aliquot-agent.service\n", "aliquot-agent.service" },
    { "0::/system.slice/aliquot-agent.service/agent\n", "aliquot-agent.service" },
    { "0::/user.slice/user-7.slice/user@7.service/app.slice/mine.service\n", "mine.service" },
    { "12:cpu:/\n1:name=systemd:/system.slice/a.service\n0::/\n", "a.service" },
    { "0::/system.slice/aliquot-agent@one.service/x.scope", "aliquot-agent@one.service" },
    { "0::/user.slice/user-0.slice/session-3.scope\n", NULL },
    { "0::/.service\n", NULL },
    { "0::/\n", NULL },
    { "\n\n", NULL },
    { "", NULL },
};

static void test_the_unit_is_the_innermost_service(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        char unit[OWN_SERVICE_UNIT_MAX] = "";
        bool found = own_service_read_unit(cases[i].cgroups, unit);

        assert_row(found == (cases[i].unit != NULL), "%s", cases[i].cgroups);
        assert_row(!found || strcmp(unit, cases[i].unit) == 0, "%s: '%s'", cases[i].cgroups, unit);
    }
}

static void test_a_name_that_is_too_long_is_none(void **state)
{
    char text[600], unit[OWN_SERVICE_UNIT_MAX] = "";

    (void)state;
    memset(text, 'x', sizeof(text));
    memcpy(text, "0::/", 4);
    memcpy(text + sizeof(text) - 10, ".service\n", 10);
    assert_false(own_service_read_unit(text, unit));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_unit_is_the_innermost_service),
        cmocka_unit_test(test_a_name_that_is_too_long_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
