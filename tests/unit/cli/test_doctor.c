/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of doctor: read, evaluated and shown. */
#include "unit/testing.h"

#include "cli/admin/doctor.h"

static const char lines[] =
    "{\"id\":\"manager.clock\",\"part\":\"manager\",\"title\":\"clock\",\"level\":\"warning\","
    "\"text\":\"wrong\",\"meaning\":\"refused\",\"remedy\":\"apt install chrony\"}\n"
    "==7== a word of a sanitizer\n"
    "{\"id\":\"agent.clock\",\"part\":\"agent\",\"title\":\"clock\",\"level\":\"warning\","
    "\"text\":\"wrong\",\"meaning\":\"refused\",\"remedy\":\"apt install chrony\"}\n"
    "{\"id\":\"agent.state\",\"part\":\"agent\",\"title\":\"state folder\",\"level\":\"ok\","
    "\"text\":\"a\\u001b[2Jb\",\"meaning\":null,\"remedy\":null}\n"
    "{\"id\":\"gpu.driver\",\"part\":\"gpu\",\"title\":\"driver\",\"level\":\"absent\","
    "\"text\":\"no GPU\",\"meaning\":null,\"remedy\":null}\n";
static const char broken[] =
    "{\"id\":\"containers.runtime\",\"part\":\"containers\",\"title\":\"OCI runtime\","
    "\"level\":\"missing\",\"text\":\"none\",\"meaning\":null,\"remedy\":\"apt install crun\"}\n"
    "{\"id\":\"half\",\"pa";

static json_t *read_all(const char *text)
{
    json_t *findings = json_array();

    doctor_add_lines(findings, text);
    return findings;
}

static void test_verdict(void **state)
{
    json_t *findings = read_all(lines);
    char agent[] = "agent", gpu[] = "gpu", *parts[] = { agent, gpu };

    (void)state;
    assert_int_equal(json_array_size(findings), 4);
    assert_false(doctor_is_unfit(findings, NULL, 0)); /* nobody asked for a GPU */
    assert_false(doctor_is_unfit(findings, parts, 1));
    assert_true(doctor_is_unfit(findings, parts, 2));
    doctor_add_lines(findings, broken);
    assert_int_equal(json_array_size(findings), 5);
    assert_true(doctor_is_unfit(findings, NULL, 0));
    json_decref(findings);
}

static void test_shown_to_accounts(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct output o = { .ascii = true };
    json_t *findings = read_all(lines);

    (void)state;
    doctor_add_lines(findings, broken);
    doctor_show(&o, findings, &out);
    assert_string_equal(out.data, "To run the manager here (manager)\n"
                                  "  ! warning  clock: wrong\n"
                                  "             means: refused\n"
                                  "             mend:  apt install chrony\n"
                                  "\n"
                                  "To run an agent with sessions as processes (agent)\n"
                                  "  + ok       state folder: a?[2Jb\n"
                                  "\n"
                                  "To give GPUs to sessions (gpu)\n"
                                  "  - absent   driver: no GPU\n"
                                  "\n"
                                  "To run sessions in containers (containers)\n"
                                  "  x missing  OCI runtime: none\n"
                                  "             mend:  apt install crun\n"
                                  "\n1 ok, 1 warning, 1 missing, 1 absent\n");
    json_decref(findings);
}

static void test_colours(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct output o = { .colour = true };
    json_t *findings = read_all(broken);

    (void)state;
    doctor_show(&o, findings, &out);
    assert_non_null(strstr(out.data, "\033[31m\342\234\227 missing\033[0m  OCI runtime: none\n"));
    json_decref(findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdict),
        cmocka_unit_test(test_shown_to_accounts),
        cmocka_unit_test(test_colours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
