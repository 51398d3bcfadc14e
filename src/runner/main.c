/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-runner - PID 1 of a container */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runner/runner.h"

#define EXIT_RUNNER 125 /* the runner itself failed, as docker(1) says it */

int main(int argc, char **argv)
{
    struct aq_error err = { 0 };
    struct options options;
    int r;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)dprintf(STDOUT_FILENO, "aliquot-runner %s\n", ALIQUOT_VERSION);
        return 0;
    }
    r = options_parse(argc, argv, &options, &err);
    if (r == 0)
        r = runner_run(&options, &err);
    if (r < 0)
        (void)dprintf(STDERR_FILENO, "aliquot-runner: %s\n", err.text);
    return r < 0 ? EXIT_RUNNER : r;
}
