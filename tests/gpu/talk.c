/* SPDX-License-Identifier: Apache-2.0 */
/* talk.c - does with memory what it is told, a command a line, and answers each with one
 *
 *   create MIB -> HANDLE     export HANDLE -> PID FD    import PID FD -> HANDLE
 *   map HANDLE MIB -> PLACE  unmap PLACE MIB            release HANDLE     shut FD
 *   alloc MIB -> POINTER     get POINTER -> HEX         open HEX -> POINTER
 *   free POINTER             close POINTER              external PID FD MIB -> MEMORY
 *   destroy MEMORY           load                       free-bytes -> BYTES
 *
 * "error N" is the driver's result.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "client.h"

static int fd_of(const char *words)
{
    int pid, fd, pidfd;

    if (sscanf(words, "%d %d", &pid, &fd) != 2)
        return -1;
    if (pid == getpid())
        return dup(fd);
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    fd = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0); /* the same open file, as if it was sent */
    (void)close(pidfd);
    return fd;
}

static CUresult create(const char *words, unsigned long long *ret)
{
    const CUmemAllocationProp prop = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
    };

    return FN(cuMemCreate)(ret, strtoull(words, NULL, 0) * MIB, &prop, 0);
}

static CUresult import(const char *words, unsigned long long *ret)
{
    int fd = fd_of(words);
    CUresult result = FN(cuMemImportFromShareableHandle)(ret, (void *)(intptr_t)fd,
                                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

    (void)close(fd);
    return result;
}

static CUresult map(const char *words, unsigned long long *ret)
{
    char *end;
    unsigned long long handle = strtoull(words, &end, 0), bytes = strtoull(end, NULL, 0) * MIB;
    CUresult result = FN(cuMemAddressReserve)(ret, bytes, 0, 0, 0);

    return result ? result : FN(cuMemMap)(*ret, bytes, 0, handle, 0);
}

static CUresult export(const char *words)
{
    int fd = -1;
    CUresult result = FN(cuMemExportToShareableHandle)(&fd, strtoull(words, NULL, 0),
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);

    if (result == CUDA_SUCCESS)
        (void)printf("%d %d\n", (int)getpid(), fd);
    return result;
}

static CUresult get(const char *words)
{
    CUipcMemHandle handle;
    CUresult result = FN(cuIpcGetMemHandle)(&handle, strtoull(words, NULL, 0));

    for (size_t i = 0; result == CUDA_SUCCESS && i < sizeof(handle); i++)
        (void)printf("%02x%s", (unsigned char)handle.reserved[i],
                     i + 1 < sizeof(handle) ? "" : "\n");
    return result;
}

static CUresult open_ipc(const char *words, unsigned long long *ret)
{
    CUipcMemHandle handle;

    for (size_t i = 0; i < sizeof(handle); i++) {
        unsigned int byte;

        CHECK(sscanf(words + 2 * i, "%2x", &byte) == 1);
        handle.reserved[i] = (char)byte;
    }
    return FN(cuIpcOpenMemHandle_v2)(ret, handle, 1);
}

static CUresult import_external(const char *words, unsigned long long *ret)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC want = { .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD };
    CUexternalMemory memory = NULL;
    CUresult result;
    int mib = 0;

    (void)sscanf(words, "%*d %*d %d", &mib);
    want.handle.fd = fd_of(words);
    want.size = (unsigned long long)mib * MIB;
    result = FN(cuImportExternalMemory)(&memory, &want);
    (void)close(want.handle.fd);
    *ret = (uintptr_t)memory;
    return result;
}

/* 'ret' stays 0 if the answer is only that it worked; -1: it is printed already. */
static int obey(const char *verb, const char *words, unsigned long long *ret)
{
    unsigned long long number = strtoull(words, NULL, 0);
    CUmodule module;
    char *end;

#define IS(name) (strcmp(verb, name) == 0)
    if (IS("create"))
        return (int)create(words, ret);
    if (IS("alloc"))
        return (int)FN(cuMemAlloc_v2)(ret, number * MIB);
    if (IS("import"))
        return (int)import(words, ret);
    if (IS("map"))
        return (int)map(words, ret);
    if (IS("open"))
        return (int)open_ipc(words, ret);
    if (IS("external"))
        return (int)import_external(words, ret);
    if (IS("release"))
        return (int)FN(cuMemRelease)(number);
    if (IS("free"))
        return (int)FN(cuMemFree_v2)(number);
    if (IS("close"))
        return (int)FN(cuIpcCloseMemHandle)(number);
    if (IS("destroy"))
        return (int)FN(cuDestroyExternalMemory)((CUexternalMemory)(uintptr_t)number);
    if (IS("load"))
        return (int)FN(cuModuleLoadData)(&module, work_ptx);
    if (IS("sync"))
        return (int)FN(cuCtxSynchronize)();
    if (IS("shut"))
        return close((int)number);
    if (IS("unmap")) {
        number = strtoull(words, &end, 0);
        return (int)FN(cuMemUnmap)(number, strtoull(end, NULL, 0) * MIB);
    }
    if (IS("free-bytes")) {
        *ret = free_bytes();
        return 0;
    }
    return 999;
#undef IS
}

int main(void)
{
    char line[512], verb[32];
    int used;

    (void)start_cuda();
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    (void)printf("ready\n");
    while (fgets(line, sizeof(line), stdin) && sscanf(line, "%31s %n", verb, &used) == 1) {
        unsigned long long value = 0;
        int result;

        if (strcmp(verb, "export") == 0 || strcmp(verb, "get") == 0) {
            result = (int)(verb[0] == 'e' ? export(line + used) : get(line + used));
            if (result)
                (void)printf("error %d\n", result);
            continue;
        }
        result = obey(verb, line + used, &value);
        if (result)
            (void)printf("error %d\n", result);
        else
            (void)printf("%llu\n", value);
    }
    return 0;
}
