/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - keep a GPU busy: gpu-load KIND NS SECONDS [SHARE FILE]
 *
 * KIND: async (launch on and on), graph (ten kernels of NS / 10), burst (100 ms
 * of launches, 100 ms of nothing), pulse (a second of each), two (two streams in
 * turn); sync, graph-sync, burst-sync: the same, waiting after each launch; calibrate: say
 * how many turns (client.h) a real GPU does in a microsecond, and nothing else. Says how
 * long the longest launch call took, and, with SHARE in percent and a FILE that the programs of one
 * container have in common, the most that one took beyond its debt by that share:
 * the debt that the slice says at its begin, or what had been launched and not been
 * granted yet, if that is more.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "gpu/rate_limit.h"

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The container's account: time on the device that was launched, and granted. */
struct account {
    int64_t begin_ns; /* when the first program came; 0 = not yet */
    int64_t paid_ns;  /* since then */
};

#define IDLE_NS 20000000 /* what a container that was idle may use at once */

static struct account *open_account(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *map;

    CHECK(fd >= 0 && ftruncate(fd, sizeof(struct account)) == 0);
    map = mmap(NULL, sizeof(struct account), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    close(fd);
    return map;
}

/* What the container owes now, in seconds of waiting. A launch of 'ns' is added. */
static double owe(struct account *account, double share, double now, long ns)
{
    int64_t begin = 0, at = (int64_t)(now * 1e9), granted, old, paid;

    if (__atomic_compare_exchange_n(&account->begin_ns, &begin, at, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        begin = at;
    granted = (int64_t)((double)(at - begin) * share);
    old = __atomic_load_n(&account->paid_ns, __ATOMIC_RELAXED);
    do
        paid = old < granted - IDLE_NS ? granted - IDLE_NS : old;
    while (!__atomic_compare_exchange_n(&account->paid_ns, &old, paid + ns, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return paid > granted ? (double)(paid - granted) / 1e9 / share : 0;
}

/* The slice that this program is in, as an onlooker sees it. */
struct slice {
    const struct aq_gpu_limits *limits;
    const struct aq_gpu_usage *usage;
};

static const void *map_file(int fd, size_t size)
{
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    CHECK(map != MAP_FAILED);
    close(fd);
    return map;
}

static struct slice look_at_slice(void)
{
    const struct aq_gpu_hello hello = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION };
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    const char *path = getenv("ALIQUOT_GPU_SOCKET");
    struct aq_gpu_welcome welcome;
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = { &welcome, sizeof(welcome) };
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)
    };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fds[2];

    CHECK(path && strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    CHECK(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
    CHECK(recvmsg(fd, &message, 0) == sizeof(welcome) && CMSG_FIRSTHDR(&message));
    memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
    close(fd);
    return (struct slice){ map_file(fds[0], sizeof(struct aq_gpu_limits)),
                           map_file(fds[1], sizeof(struct aq_gpu_usage)) };
}

/* Its debt, in seconds of waiting by its share. */
static double debt_of(const struct slice *slice, double share, double now_s)
{
    const struct aq_gpu_limits_device *limits = &slice->limits->devices[0];
    int64_t now = (int64_t)(now_s * 1e9);
    int64_t debt = rate_limit_debt(&slice->usage->devices[0],
                                   rate_limit_clock(&limits->grant, now, now, limits->share));

    return debt > 0 ? (double)debt / 1e9 / share : 0;
}

static CUgraphExec make_graph(CUfunction function)
{
    CUDA_KERNEL_NODE_PARAMS params = { .func = function,
                                       .gridDimX = 80,
                                       .gridDimY = 1,
                                       .gridDimZ = 1,
                                       .blockDimX = 256,
                                       .blockDimY = 1,
                                       .blockDimZ = 1,
                                       .kernelParams = work_params };
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;

    MUST(FN(cuGraphCreate)(&graph, 0));
    for (int i = 0; i < 10; i++)
        MUST(FN(cuGraphAddKernelNode)(&node, graph, NULL, 0, &params));
    MUST(FN(cuGraphInstantiate_v2)(&exec, graph, NULL, NULL, 0));
    return exec;
}

/* The quickest of some: others may have been at work in between. */
static void calibrate(void)
{
    CUfunction function = work_function(0);
    double best = 0;

    work_turns = 10000000;
    for (int i = 0; i < 10; i++) {
        double before = seconds(), rate;

        MUST(launch(FN(cuLaunchKernel), function, NULL));
        MUST(FN(cuCtxSynchronize)());
        rate = (double)work_turns / (seconds() - before) / 1e6;
        best = rate > best ? rate : best;
    }
    (void)printf("%.3f\n", best);
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "async";
    long ns = argc > 2 ? atol(argv[2]) : 100000;
    double length = argc > 3 ? atof(argv[3]) : 5, end, longest = 0;
    double beyond_debt = 0;
    double share = argc > 5 ? atof(argv[4]) / 100 : 1;
    struct account *account = argc > 5 ? open_account(argv[5]) : NULL;
    struct slice slice = { NULL, NULL };
    bool graph = strncmp(kind, "graph", 5) == 0, waits;
    unsigned int pause_us = strncmp(kind, "burst", 5) == 0 ? 100000
                            : strcmp(kind, "pulse") == 0   ? 1000000
                                                           : 0;
    CUgraphExec exec = NULL;
    CUfunction function;
    CUstream streams[2];
    long count = 0;

    waits = strcmp(kind, "sync") == 0 || strstr(kind, "-sync");
    (void)start_cuda();
    if (strcmp(kind, "calibrate") == 0) {
        calibrate();
        return 0;
    }
    function = work_function(graph ? ns / 10 : ns);
    if (graph)
        exec = make_graph(function);
    MUST(FN(cuStreamCreate)(&streams[0], 0));
    MUST(FN(cuStreamCreate)(&streams[1], 0));
    if (account)
        slice = look_at_slice();
    fn_cuLaunchKernel *call = FN(cuLaunchKernel);
    fn_cuGraphLaunch *run = FN(cuGraphLaunch);
    fn_cuStreamSynchronize *sync = FN(cuStreamSynchronize);

    end = seconds() + length;
    while (seconds() < end) {
        CUstream stream = streams[strcmp(kind, "two") == 0 ? count % 2 : 0];
        double before = seconds(), took, debt = account ? debt_of(&slice, share, before) : 0;
        double owed = account ? owe(account, share, before, ns) : 0;

        debt = owed > debt ? owed : debt;

        if (graph)
            MUST(run(exec, stream));
        else
            MUST(launch(call, function, stream));
        took = seconds() - before;
        longest = took > longest ? took : longest;
        if (took - debt > beyond_debt)
            beyond_debt = took - debt;
        count++;
        if (waits)
            MUST(sync(stream));
        if (pause_us && (long)(seconds() * 1e6 / pause_us) % 2) {
            MUST(sync(stream));
            usleep(pause_us);
        }
    }
    (void)printf("{\"pid\": %d, \"launches\": %ld, \"longest_launch_s\": %.4f, "
                 "\"beyond_debt_s\": %.4f}\n",
                 (int)getpid(), count, longest, beyond_debt);
    _exit(fflush(stdout) != 0); /* what is queued dies with the process */
}
