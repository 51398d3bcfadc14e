/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - aliquot-gpu, the program behind `aliquot gpu` */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpuhost/commands.h"

static const char help[] =
    "usage: aliquot gpu run [OPTIONS] [--] PROGRAM [ARGUMENT...]\n"
    "       aliquot gpu top [--once] [--json]\n"
    "\n"
    "run starts PROGRAM on a slice of one GPU:\n"
    "  --memory SIZE        device memory, such as 8g; default all of it\n"
    "  --compute PERCENT    of the GPU's time; default 100\n"
    "  --device N           index or UUID; default: the first one\n"
    "  --work-conserving    use time that other slices leave over\n"
    "  --host-memory        past the limit, allocate managed memory instead of refusing\n"
    "  --stop               end processes that use the GPU past their limits\n"
    "top shows the slices that are running; --json prints them once in the end as JSON.\n";

int main(int argc, char **argv)
{
    struct aq_error err = { 0 };
    const char *command = argc > 1 ? argv[1] : "";
    int r;

    if (strcmp(command, "--help") == 0 || (argc > 2 && strcmp(argv[2], "--help") == 0)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (strcmp(command, "run") == 0)
        r = run_command(argc - 1, argv + 1, &err);
    else if (strcmp(command, "top") == 0)
        r = top_command(argc - 1, argv + 1, &err);
    else if (strcmp(command, "watch") == 0) /* the agent's */
        r = watch_command(argc - 1, argv + 1, &err);
    else
        r = aq_fail(&err, EINVAL, "'%s' is no verb of 'aliquot gpu': run or top", command);
    if (r < 0)
        (void)fprintf(stderr, "aliquot gpu: %s\n", err.text);
    return r >= 0 ? r : err.code == EINVAL ? 2 : 125;
}
