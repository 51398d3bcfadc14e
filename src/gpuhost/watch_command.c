/* SPDX-License-Identifier: Apache-2.0 */
/* watch_command.c - "aliquot-gpu watch": asks the driver on behalf of the agent
 *
 * The driver's library can hang or crash its caller, so the agent has a
 * process of its own for that. What goes over the pipe: watch_protocol.h.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "gpuhost/commands.h"
#include "gpuhost/nvml.h"

static int watch_command_write(const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len) {
        ssize_t put = write(STDOUT_FILENO, at, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return -errno;
        at += put;
        len -= (size_t)put;
    }
    return 0;
}

/* False at the end. */
static bool watch_command_read(struct gpu_watch_request *ret)
{
    char *at = (char *)ret;
    size_t len = sizeof(*ret);

    while (len) {
        ssize_t got = read(STDIN_FILENO, at, len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        len -= (size_t)got;
    }
    ret->cgroup[sizeof(ret->cgroup) - 1] = '\0';
    return true;
}

static int watch_command_serve(struct gpu_nvml *nvml, struct aq_error *err)
{
    static struct gpu_process_memory processes[GPU_PROCESSES_MAX];
    struct gpu_watch_request request;

    while (watch_command_read(&request)) {
        struct gpu_watch_response response = { .magic = AQ_GPU_MAGIC };
        int count = 0;

        if (request.kind == GPU_WATCH_LIMIT)
            response.result = gpu_nvml_limit_memory(nvml, request.uuid, request.cgroup,
                                                    request.bytes, NULL);
        else
            count = gpu_nvml_processes(nvml, processes, GPU_PROCESSES_MAX, err);
        if (count < 0)
            return count;
        response.count = (uint32_t)count;
        if (watch_command_write(&response, sizeof(response)) < 0
            || watch_command_write(processes, (size_t)count * sizeof(processes[0])) < 0)
            return 0; /* nobody listens any more */
    }
    return 0;
}

int watch_command(int argc, char **argv, struct aq_error *err)
{
    static const struct option options[] = { { "library", required_argument, NULL, 'l' },
                                             { NULL, 0, NULL, 0 } };
    AQ_CLEANUP(gpu_nvml_closep) struct gpu_nvml *nvml = NULL;
    const char *library = NULL;
    int option, r;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* also where the driver hangs */
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option != 'l')
            return aq_fail(err, EINVAL, "unknown or incomplete option '%s'", argv[optind - 1]);
        library = optarg;
    }
    r = gpu_nvml_open(library, &nvml, err);
    return r < 0 ? r : watch_command_serve(nvml, err);
}
