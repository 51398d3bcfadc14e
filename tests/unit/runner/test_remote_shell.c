/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-rsh: which port, and what is refused before a client starts. */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "runner/remote_shell.h"

static void test_ports(void **state)
{
    static const char ports[] = "main1 2200\nsub1 20488\nsub12 20496\n";

    (void)state;
    assert_int_equal(remote_shell_find_port(ports, "main1"), 2200);
    assert_int_equal(remote_shell_find_port(ports, "sub1"), 20488);
    assert_int_equal(remote_shell_find_port(ports, "sub12"), 20496);
    assert_int_equal(remote_shell_find_port(ports, "sub"), 0);
    assert_int_equal(remote_shell_find_port(ports, ""), 0);
    assert_int_equal(remote_shell_find_port(ports, "work@sub1"), 0);
}

static void test_words(void **state)
{
    static char *const rows[][5] = {
        { (char *)"aliquot-rsh" },
        { (char *)"aliquot-rsh", (char *)"-x", (char *)"sub1" },
        { (char *)"aliquot-rsh", (char *)"-p", (char *)"22", (char *)"sub1" },
        { (char *)"aliquot-rsh", (char *)"-", (char *)"sub1", (char *)"true" },
        { (char *)"aliquot-rsh", (char *)"--", (char *)"sub1", (char *)"true" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct aq_error err = { 0 };
        char *argv[5];
        int argc = 0;

        memcpy(argv, rows[i], sizeof(argv));
        while (argv[argc])
            argc++;
        assert_row(remote_shell_run(argc, argv, &err) == -EINVAL, "%zu", i);
        assert_row(strstr(err.text, "HOST COMMAND"), "%zu: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
