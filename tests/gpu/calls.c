/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - CPU nanoseconds per driver call: gpu-calls [BATCHES]
 *
 * One JSON object: for each call the median of batches. Run it natively and
 * with the library; the difference is what the library adds.
 */
#include <sched.h>
#include <time.h>

#include "client.h"

#define BATCH 1000
#define LIVE_MAX 10000

static int batches = 200;
static CUfunction function;
static CUgraphExec graph;
static CUstream stream;
static fn_cuCtxGetDevice *get_device;
static fn_cuMemGetInfo_v2 *get_info;
static fn_cuMemAlloc_v2 *alloc;
static fn_cuMemFree_v2 *release;
static fn_cuLaunchKernel *launch_kernel;
static fn_cuGraphLaunch *launch_graph;

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void call_unrelated(void)
{
    CUdevice device;

    (void)get_device(&device);
}

static void call_info(void)
{
    size_t left, all;

    (void)get_info(&left, &all);
}

static void call_alloc_free(void)
{
    CUdeviceptr pointer;

    MUST(alloc(&pointer, 4096));
    (void)release(pointer);
}

static void call_launch(void)
{
    (void)launch(launch_kernel, function, stream);
}

static void call_graph(void)
{
    (void)launch_graph(graph, stream);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static void measure(const char *name, void (*call)(void), const char *end)
{
    double *took = calloc((size_t)batches, sizeof(*took));

    for (int i = 0; i < batches; i++) {
        double before = cpu_ns();

        for (int j = 0; j < BATCH; j++)
            call();
        took[i] = (cpu_ns() - before) / BATCH;
    }
    qsort(took, (size_t)batches, sizeof(*took), compare);
    (void)printf("\"%s\": %.2f%s", name, took[batches / 2], end);
    free(took);
}

static void hold(int count)
{
    static int held;
    CUdeviceptr pointer;

    for (; held < count; held++)
        MUST(alloc(&pointer, 4096));
}

int main(int argc, char **argv)
{
    const char *cpu = getenv("GPU_CALLS_CPU");
    cpu_set_t set;
    CUgraph made;

    if (argc > 1)
        batches = atoi(argv[1]);
    CPU_ZERO(&set);
    CPU_SET(cpu ? atoi(cpu) : 0, &set);
    (void)sched_setaffinity(0, sizeof(set), &set);
    (void)start_cuda();
    function = work_function(0);
    get_device = FN(cuCtxGetDevice);
    get_info = FN(cuMemGetInfo_v2);
    alloc = FN(cuMemAlloc_v2);
    release = FN(cuMemFree_v2);
    launch_kernel = FN(cuLaunchKernel);
    launch_graph = FN(cuGraphLaunch);
    MUST(FN(cuStreamCreate)(&stream, 0));
    MUST(FN(cuGraphCreate)(&made, 0));
    MUST(FN(cuGraphInstantiate_v2)(&graph, made, NULL, NULL, 0));
    hold(10);
    (void)printf("{");
    measure("unrelated", call_unrelated, ", ");
    measure("info", call_info, ", ");
    measure("alloc_free_10", call_alloc_free, ", ");
    hold(LIVE_MAX);
    measure("alloc_free_10000", call_alloc_free, ", ");
    measure("launch", call_launch, ", ");
    measure("graph_launch", call_graph, "}\n");
    return 0;
}
