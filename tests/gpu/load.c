/* load.c - keep a GPU busy: gpu-load KIND NS SECONDS
 *
 * KIND: async (launch on and on), sync (wait after each launch), graph (ten
 * kernels of NS / 10), burst (100 ms of launches, 100 ms of nothing), pulse
 * (a second of each), two (two streams in turn). Says how long the longest
 * launch call took.
 */
#include <time.h>
#include <unistd.h>

#include "client.h"

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static CUgraphExec make_graph(CUfunction function)
{
    CUDA_KERNEL_NODE_PARAMS params = { .func = function, .gridDimX = 80, .gridDimY = 1,
                                       .gridDimZ = 1, .blockDimX = 256, .blockDimY = 1,
                                       .blockDimZ = 1, .kernelParams = work_params };
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;

    MUST(FN(cuGraphCreate)(&graph, 0));
    for (int i = 0; i < 10; i++)
        MUST(FN(cuGraphAddKernelNode)(&node, graph, NULL, 0, &params));
    MUST(FN(cuGraphInstantiate_v2)(&exec, graph, NULL, NULL, 0));
    return exec;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "async";
    long ns = argc > 2 ? atol(argv[2]) : 100000;
    double length = argc > 3 ? atof(argv[3]) : 5, end, longest = 0;
    bool graph = strcmp(kind, "graph") == 0;
    unsigned int pause_us = strcmp(kind, "burst") == 0   ? 100000
                            : strcmp(kind, "pulse") == 0 ? 1000000
                                                         : 0;
    CUgraphExec exec = NULL;
    CUfunction function;
    CUstream streams[2];
    long count = 0;

    (void)start_cuda();
    function = work_function(graph ? ns / 10 : ns);
    if (graph)
        exec = make_graph(function);
    MUST(FN(cuStreamCreate)(&streams[0], 0));
    MUST(FN(cuStreamCreate)(&streams[1], 0));
    fn_cuLaunchKernel *call = FN(cuLaunchKernel);
    fn_cuGraphLaunch *run = FN(cuGraphLaunch);
    fn_cuStreamSynchronize *sync = FN(cuStreamSynchronize);

    end = seconds() + length;
    while (seconds() < end) {
        CUstream stream = streams[strcmp(kind, "two") == 0 ? count % 2 : 0];
        double before = seconds(), took;

        if (graph)
            MUST(run(exec, stream));
        else
            MUST(launch(call, function, stream));
        took = seconds() - before;
        longest = took > longest ? took : longest;
        count++;
        if (strcmp(kind, "sync") == 0)
            MUST(sync(stream));
        if (pause_us && (long)(seconds() * 1e6 / pause_us) % 2) {
            MUST(sync(stream));
            usleep(pause_us);
        }
    }
    (void)printf("{\"pid\": %d, \"launches\": %ld, \"longest_launch_s\": %.4f}\n", (int)getpid(), count,
                 longest);
    _exit(fflush(stdout) != 0); /* what is queued dies with the process */
}
