/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - a program that uses a GPU, for tests: functions by name, checks that speak */
#ifndef TESTS_GPU_CLIENT_H
#define TESTS_GPU_CLIENT_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/hooks.h"

#define MIB ((size_t)1 << 20)

static void *driver;

/* The driver's function as a program finds it with dlsym; NULL if it has none. */
#define FN(symbol) ((fn_##symbol *)dlsym(driver, #symbol))

#define MUST(call)                                                                           \
    do {                                                                                     \
        int must_ = (int)(call);                                                             \
                                                                                             \
        if (must_) {                                                                         \
            (void)fprintf(stderr, "%s:%d: %s gives %d\n", __FILE__, __LINE__, #call, must_); \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

#define CHECK(cond)                                                                  \
    do {                                                                             \
        if (!(cond)) {                                                               \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)

static inline CUcontext start_cuda(void)
{
    CUcontext context;

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(driver);
    MUST(FN(cuInit)(0));
    MUST(FN(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST(FN(cuCtxSetCurrent)(context));
    return context;
}

static inline size_t free_bytes(void)
{
    size_t left, all;

    MUST(FN(cuMemGetInfo_v2)(&left, &all));
    return left;
}

/* A GPU kernel that works for so long: the simulated GPU knows "work" by name and reads
 * 'ns', a real one runs this program. It counts 'turns', so that time in which another
 * process has the GPU does not count as work; where nobody has measured how long a turn
 * takes (gpu-load calibrate), it watches the device's clock.
 */
static const char work_ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry work(.param .u64 ns, .param .u64 turns)\n{\n"
    "  .reg .u64 %len, %begin, %now, %left, %sum;\n  .reg .pred %more, %by_turns, %never;\n"
    "  ld.param.u64 %len, [ns];\n  ld.param.u64 %left, [turns];\n"
    "  mov.u64 %begin, %globaltimer;\n  mov.u64 %sum, %begin;\n"
    "  setp.ne.u64 %by_turns, %left, 0;\n  @%by_turns bra turn;\n"
    "again:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %now, %now, %begin;\n"
    "  setp.lt.u64 %more, %now, %len;\n  @%more bra again;\n  ret;\n"
    "turn:\n  mad.lo.u64 %sum, %sum, 6364136223846793005, %left;\n  sub.u64 %left, %left, 1;\n"
    "  setp.ne.u64 %more, %left, 0;\n  @%more bra turn;\n"
    "  setp.eq.u64 %never, %sum, 1;\n  @%never trap;\n  ret;\n}\n"; /* so the sum is needed */
#define WORK_TURNS "ALIQUOT_TEST_TURNS_PER_US"
static long work_ns, work_turns;
static void *work_params[] = { &work_ns, &work_turns };

static inline CUfunction work_function(long ns)
{
    const char *turns_per_us = getenv(WORK_TURNS);
    CUmodule module;
    CUfunction function;

    work_ns = ns;
    work_turns = turns_per_us ? (long)((double)ns * atof(turns_per_us) / 1e3) : 0;
    MUST(FN(cuModuleLoadData)(&module, work_ptx));
    MUST(FN(cuModuleGetFunction)(&function, module, "work"));
    return function;
}

static inline CUresult launch(fn_cuLaunchKernel *call, CUfunction function, CUstream stream)
{
    return call(function, 80, 1, 1, 256, 1, 1, 0, stream, work_params, NULL);
}

#endif
