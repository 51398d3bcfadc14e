/* SPDX-License-Identifier: Apache-2.0 */
/* churn.c - allocate and free at random until killed, or for SECONDS */
#include <time.h>
#include <unistd.h>

#include "client.h"

#define HELD 64

int main(int argc, char **argv)
{
    unsigned int seed = (unsigned int)getpid();
    time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 1000000);
    CUdeviceptr held[HELD] = { 0 };

    (void)start_cuda();
    fn_cuMemAlloc_v2 *alloc = FN(cuMemAlloc_v2);
    fn_cuMemFree_v2 *release = FN(cuMemFree_v2);

    while (time(NULL) < end) {
        unsigned int at = (unsigned int)rand_r(&seed) % HELD;
        size_t size = (size_t)1 << (9 + (unsigned int)rand_r(&seed) % 16);
        CUresult result;

        if (held[at]) {
            MUST(release(held[at]));
            held[at] = 0;
        } else {
            result = alloc(&held[at], size);
            CHECK(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY);
            if (result != CUDA_SUCCESS)
                held[at] = 0;
        }
        usleep(500);
    }
    for (int i = 0; i < HELD; i++)
        if (held[i])
            MUST(release(held[i]));
    return 0;
}
