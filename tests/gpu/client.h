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

/* A kernel that works for so long: the simulated GPU knows "work" by name, a
 * real one runs this program, which watches the device's clock.
 */
static const char work_ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry work(.param .u64 ns)\n{\n"
    "  .reg .u64 %len, %begin, %now;\n  .reg .pred %more;\n"
    "  ld.param.u64 %len, [ns];\n  mov.u64 %begin, %globaltimer;\n"
    "again:\n  mov.u64 %now, %globaltimer;\n  sub.u64 %now, %now, %begin;\n"
    "  setp.lt.u64 %more, %now, %len;\n  @%more bra again;\n  ret;\n}\n";
static long work_ns;
static void *work_params[] = { &work_ns };

static inline CUfunction work_function(long ns)
{
    CUmodule module;
    CUfunction function;

    work_ns = ns;
    MUST(FN(cuModuleLoadData)(&module, work_ptx));
    MUST(FN(cuModuleGetFunction)(&function, module, "work"));
    return function;
}

static inline CUresult launch(fn_cuLaunchKernel *call, CUfunction function, CUstream stream)
{
    return call(function, 80, 1, 1, 256, 1, 1, 0, stream, work_params, NULL);
}

#endif
