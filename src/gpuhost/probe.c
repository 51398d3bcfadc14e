/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - aliquot-gpu-probe: can programs of this image be limited to a part of a GPU?
 *
 * Started in a container by the image's own loader, which finds the preload
 * library in /etc/ld.so.preload, and the driver's, which this program is
 * linked with. The first cuInit() must be ours, ask the agent for the memory
 * files and get them. Says why not and exits with 1.
 *
 * It runs with any C library that has the functions below: no start files,
 * which belong to the C library of the machine that compiled them.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CUDA_ERROR_SYSTEM_NOT_READY 802
#define TRIES 100 /* an agent that is being restarted needs seconds */
#define PAUSE_NS 100000000

extern int cuInit(unsigned int flags);
extern int nvmlInit_v2(void) __attribute__((weak)); /* our library has it, libcuda.so.1 has not */

static int probe_fail(const char *text)
{
    ssize_t put = write(STDERR_FILENO, text, strlen(text));

    (void)put;
    return 1;
}

static int probe_run(void)
{
    const struct timespec pause = { .tv_nsec = PAUSE_NS };

    if (!nvmlInit_v2)
        return probe_fail("the loader does not load the library that /etc/ld.so.preload names\n");
    for (int i = 0; i < TRIES; i++) {
        if (cuInit(0) != CUDA_ERROR_SYSTEM_NOT_READY)
            return 0;
        (void)nanosleep(&pause, NULL);
    }
    return probe_fail("the agent does not answer on /run/aliquot/gpu.sock\n");
}

__attribute__((noreturn, used)) static void gpuhost_probe_start(void)
{
    _exit(probe_run());
}

#if defined(__x86_64__)
__asm__(
    ".globl _start\n_start:\n xor %ebp, %ebp\n and $-16, %rsp\n call gpuhost_probe_start\n hlt\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n mov x29, #0\n mov x30, #0\n bl gpuhost_probe_start\n brk #0\n");
#endif
