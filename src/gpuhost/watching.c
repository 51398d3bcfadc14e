/* watching.c - "aliquot-gpu watch": looks at the devices for somebody else
 *
 * The driver's library can hang or crash whoever calls it, so the agent has a
 * process of its own for that. What goes over the pipe: watch.h.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "gpuhost/program.h"
#include "gpuhost/watch.h"

static int write_all(const void *bytes, size_t len)
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
static bool read_order(struct gpu_watch_order *ret)
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

static int serve(struct gpu_watch *watch, struct aq_error *err)
{
    static struct gpu_use uses[GPU_USES_MAX];
    struct gpu_watch_order order;

    while (read_order(&order)) {
        struct gpu_watch_head head = { .magic = AQ_GPU_MAGIC };
        int count = 0;

        if (order.kind == GPU_ORDER_LIMIT)
            head.result = gpu_watch_limit(watch, order.uuid, order.cgroup, order.bytes, NULL);
        else
            count = gpu_watch_list(watch, uses, GPU_USES_MAX, err);
        if (count < 0)
            return count;
        head.count = (uint32_t)count;
        if (write_all(&head, sizeof(head)) < 0
            || write_all(uses, (size_t)count * sizeof(uses[0])) < 0)
            return 0; /* nobody listens any more */
    }
    return 0;
}

int program_watch(int argc, char **argv, struct aq_error *err)
{
    static const struct option options[] = { { "library", required_argument, NULL, 'l' },
                                             { NULL, 0, NULL, 0 } };
    AQ_CLEANUP(gpu_watch_freep) struct gpu_watch *watch = NULL;
    const char *library = NULL;
    int option, r;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option != 'l')
            return aq_fail(err, EINVAL, "unknown or incomplete option '%s'", argv[optind - 1]);
        library = optarg;
    }
    r = gpu_watch_new(library, &watch, err);
    return r < 0 ? r : serve(watch, err);
}
