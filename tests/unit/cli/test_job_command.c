/* SPDX-License-Identifier: Apache-2.0 */
/* A script as a line for a shell: whichever shell that is, it writes and runs the same bytes. */
#include "testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "cli/submit/job_command.h"

/* The shells that images have as /bin/sh. */
static const char *const shells[] = { "dash -c", "bash -c", "bash --posix -c", "busybox sh -c" };

static void assert_arrives(const char *shell, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT, got = STRBUF_INIT;
    const struct batch_script script = { .interpreter = "cat" };
    const struct job_command job = { .name = "a b'c", .text = text, .script = &script };
    AQ_CLEANUP(aq_freep) char *command = NULL;
    FILE *pipe;
    int c;

    job_command_write(&job, &line);
    assert_int_equal(setenv("LINE", line.data, 1), 0);
    command = aq_format("%s \"$LINE\"", shell);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    while ((c = fgetc(pipe)) != EOF)
        strbuf_addc(&got, (char)c);
    assert_int_equal(pclose(pipe), 0);
    assert_row(strcmp(got.data, text) == 0, "%s: %s", shell, text);
}

static void test_bytes_arrive(void **state)
{
    char bytes[256] = "", *home = mkdtemp((char[]){ "/tmp/aliquot-job-XXXXXX" });
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/a b'c", home);

    (void)state;
    for (int i = 1; i < 256; i++)
        bytes[i - 1] = (char)i;
    assert_int_equal(setenv("HOME", home, 1), 0);
    for (size_t i = 0; i < AQ_COUNT(shells); i++) {
        AQ_CLEANUP(aq_freep) char *program = strndup(shells[i], strcspn(shells[i], " "));
        AQ_CLEANUP(aq_freep) char *probe = aq_format("command -v %s >/dev/null", program);

        if (system(probe) != 0)
            continue;
        assert_arrives(shells[i], bytes);
        assert_arrives(shells[i], "#!/bin/sh\n# Pr\xc3\xbc'fung 100% \\101 %s\n\n");
        assert_arrives(shells[i], "#!/bin/sh\n# Pr\xfc'fung 1\xe9"
                                  "7 100% \\101 %s\n\n");
        assert_arrives(shells[i], "#!/bin/sh\necho");
    }
    (void)unlink(file);
    (void)rmdir(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
