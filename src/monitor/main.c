/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-monitor - runs the program of one kernel, outlives the agent */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "monitor/monitor.h"
#include "monitor/volume_probe.h"

int main(int argc, char **argv)
{
    struct aq_error err = { 0 };
    int client = argc >= 3 ? atoi(argv[2]) : -1, program = argc == 4 ? atoi(argv[3]) : -1, r;

    memory_recover();
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        (void)printf("aliquot-monitor %s\n", ALIQUOT_VERSION);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--volume") == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it may hang */
        return volume_probe(argv[2]);
    }
    if (argc < 2 || argc > 4 || argv[1][0] == '-' || (argc >= 3 && client <= STDERR_FILENO)
        || (argc == 4 && program <= STDERR_FILENO)) {
        (void)fprintf(stderr, "usage: aliquot-monitor FOLDER [DESCRIPTOR [PROGRAM]]\n");
        return 2;
    }
    log_init("monitor", LOG_LEVEL_INFO);
    r = monitor_run(argv[1], client, program, &err);
    if (r < 0)
        log_error("%s folder=%s", err.text, argv[1]);
    return r < 0 ? 1 : r;
}
