/* SPDX-License-Identifier: Apache-2.0 */
/* bypass.c - ways round the library: gpu-bypass WAY
 *
 * Each tries to allocate 1 GiB on a slice of 512 MiB. Exit 0: refused, or
 * nothing to call was found; 3: it got the memory (then it holds it for a
 * while, so that a watchdog has something to see).
 */
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"

extern char **environ;

#define GIB ((size_t)1 << 30)

typedef void *lookup_fn(void *handle, const char *name);

static int verdict(CUresult result)
{
    if (result != CUDA_SUCCESS)
        return 0;
    (void)printf("got 1 GiB\n");
    (void)fflush(stdout);
    sleep(4);
    return 3;
}

/* Everything from functions found by 'lookup'. */
static int allocate_by(lookup_fn *lookup, void *handle)
{
    fn_cuInit *init = (fn_cuInit *)lookup(handle, "cuInit");
    fn_cuDevicePrimaryCtxRetain *retain = (fn_cuDevicePrimaryCtxRetain *)lookup(
        handle, "cuDevicePrimaryCtxRetain");
    fn_cuCtxSetCurrent *set = (fn_cuCtxSetCurrent *)lookup(handle, "cuCtxSetCurrent");
    fn_cuMemAlloc_v2 *alloc = (fn_cuMemAlloc_v2 *)lookup(handle, "cuMemAlloc_v2");
    CUcontext context;
    CUdeviceptr pointer;

    if (!init || !retain || !set || !alloc || init(0) != CUDA_SUCCESS
        || retain(&context, 0) != CUDA_SUCCESS || set(context) != CUDA_SUCCESS)
        return 0;
    return verdict(alloc(&pointer, GIB));
}

static int way_dlsym(void)
{
    return allocate_by(dlsym, dlopen("libcuda.so.1", RTLD_NOW));
}

static int way_dlvsym_of_dlsym(void)
{
    lookup_fn *found = (lookup_fn *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");

    return found ? allocate_by(found, dlopen("libcuda.so.1", RTLD_NOW)) : 0;
}

static int way_dlsym_of_libc(void)
{
    void *libc = dlopen("libc.so.6", RTLD_NOW);
    lookup_fn *found = (lookup_fn *)dlsym(libc, "dlsym");

    return found ? allocate_by(found, dlopen("libcuda.so.1", RTLD_NOW)) : 0;
}

static int way_next(void)
{
    (void)dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    return allocate_by(dlsym, RTLD_NEXT);
}

static int way_deepbind_handle(void)
{
    return allocate_by(dlsym, dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND));
}

/* Linked with the driver, and looks its own libraries up before what was preloaded. */
static int way_deepbind_linked(void)
{
    CUresult (*allocate)(size_t bytes);
    char path[4096];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 32);
    void *library;

    CHECK(len > 0);
    path[len] = '\0';
    (void)strcpy(strrchr(path, '/') + 1, "gpu-deepbind.so");
    library = dlopen(path, RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library);
    allocate = (CUresult(*)(size_t))dlsym(library, "allocate_linked");
    CHECK(allocate);
    return verdict(allocate(GIB));
}

static void *by_proc_address(void *handle, const char *name)
{
    fn_cuGetProcAddress *get = (fn_cuGetProcAddress *)dlsym(handle, "cuGetProcAddress");
    char base[64];
    void *found = NULL;

    (void)snprintf(base, sizeof(base), "%s", name);
    if (strstr(base, "_v2"))
        *strstr(base, "_v2") = '\0';
    if (get)
        (void)get(base, &found, 12000, 0);
    return found;
}

static int way_proc_address(void)
{
    return allocate_by(by_proc_address, dlopen("libcuda.so.1", RTLD_NOW));
}

static void *by_own_proc_address(void *handle, const char *name)
{
    void *self = by_proc_address(handle, "cuGetProcAddress");
    char base[64];
    void *found = NULL;

    (void)snprintf(base, sizeof(base), "%s", name);
    if (strstr(base, "_v2"))
        *strstr(base, "_v2") = '\0';
    if (self)
        (void)((fn_cuGetProcAddress_v2 *)self)(base, &found, 12000,
                                               CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL);
    return found;
}

static int way_own_proc_address(void)
{
    return allocate_by(by_own_proc_address, dlopen("libcuda.so.1", RTLD_NOW));
}

static int copy_driver(char path[64])
{
    struct link_map *map = dlopen("libcuda.so.1", RTLD_NOW);
    char bytes[65536];
    int from, to;
    ssize_t got;

    (void)snprintf(path, 64, "/tmp/gpu-copy-%d.so", (int)getpid());
    from = open(map->l_name, O_RDONLY | O_CLOEXEC);
    to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    while ((got = read(from, bytes, sizeof(bytes))) > 0)
        CHECK(write(to, bytes, (size_t)got) == got);
    close(from);
    close(to);
    return 0;
}

static int way_copy(void)
{
    char path[64];
    void *handle;

    copy_driver(path);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    return allocate_by(dlsym, handle);
}

static int way_namespace(void)
{
    return allocate_by(dlsym, dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
}

/* Reads the driver's symbol table itself. */
static void *by_elf(void *handle, const char *name)
{
    const struct link_map *map = handle;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;

    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_SYMTAB)
            symbols = (const void *)d->d_un.d_ptr;
        if (d->d_tag == DT_STRTAB)
            strings = (const void *)d->d_un.d_ptr;
    }
    for (const ElfW(Sym) *s = symbols; (const char *)s < strings; s++)
        if (s->st_value && strcmp(strings + s->st_name, name) == 0)
            return (void *)(map->l_addr + s->st_value);
    return NULL;
}

static int way_elf(void)
{
    return allocate_by(by_elf, dlopen("libcuda.so.1", RTLD_NOW));
}

/* Asks for a slot as everybody does, and takes memory behind the library's back then. */
static int way_elf_later(void)
{
    fn_cuMemAlloc_v2 *alloc;
    CUdeviceptr pointer;

    (void)start_cuda();
    alloc = (fn_cuMemAlloc_v2 *)by_elf(driver, "cuMemAlloc_v2");
    return alloc ? verdict(alloc(&pointer, GIB)) : 0;
}

/* The same program again, with another environment. */
static int again(char **env)
{
    char self[] = "/proc/self/exe", way[] = "dlsym", *argv[] = { self, way, NULL };
    pid_t pid;
    int status;

    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, env) != 0
        || waitpid(pid, &status, 0) < 0)
        return 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static int way_no_preload(void)
{
    unsetenv("LD_PRELOAD");
    return again(environ);
}

static int way_no_socket(void)
{
    unsetenv("ALIQUOT_GPU_SOCKET");
    return again(environ);
}

static int way_false_socket(void)
{
    setenv("ALIQUOT_GPU_SOCKET", "/nonexistent", 1);
    return again(environ);
}

static int way_fork(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(way_dlsym());
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

static int way_many_processes(void)
{
    pid_t pids[8];
    int got = 0, status;

    for (int i = 0; i < 8; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            CUdeviceptr pointer;

            (void)start_cuda();
            _exit(FN(cuMemAlloc_v2)(&pointer, 128 * MIB) == CUDA_SUCCESS ? (sleep(1), 42) : 0);
        }
    }
    for (int i = 0; i < 8; i++) {
        waitpid(pids[i], &status, 0);
        got += WIFEXITED(status) && WEXITSTATUS(status) == 42;
    }
    return got > 4 ? 3 : 0;
}

static void *race(void *data)
{
    CUdeviceptr pointer;
    long got = 0;

    MUST(FN(cuCtxSetCurrent)(data));
    for (int i = 0; i < 64; i++)
        got += FN(cuMemAlloc_v2)(&pointer, 32 * MIB) == CUDA_SUCCESS;
    return (void *)got;
}

static int way_threads(void)
{
    CUcontext context = start_cuda();
    pthread_t threads[8];
    long got = 0;
    void *one;

    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, race, context);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], &one);
        got += (long)one;
    }
    return got * 32 > 512 ? 3 : 0;
}

static int way_old_forms(void)
{
    unsigned int pointer;

    (void)start_cuda();
    return verdict(FN(cuMemAlloc)(&pointer, (unsigned int)GIB));
}

static int way_host_location(void)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    CUmemGenericAllocationHandle handle;

    (void)start_cuda();
    MUST(FN(cuCtxSetCurrent)(NULL)); /* no context: the device is in the property */
    return verdict(FN(cuMemCreate)(&handle, GIB, &prop, 0));
}

static int way_graph(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = { .bytesize = GIB };
    CUgraph graph;
    CUgraphNode node;

    (void)start_cuda();
    params.poolProps.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, 0 };
    MUST(FN(cuGraphCreate)(&graph, 0));
    return verdict(FN(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &params));
}

static int way_release_twice(void)
{
    CUdeviceptr pointer;

    (void)start_cuda();
    for (int i = 0; i < 8; i++) {
        if (FN(cuMemAlloc_v2)(&pointer, 300 * MIB) != CUDA_SUCCESS)
            return 0;
        (void)FN(cuMemFree_v2)(pointer + 4096); /* not an allocation: fails, frees nothing */
    }
    return 3;
}

static const struct {
    const char *name;
    int (*try)(void);
} ways[] = {
    { "dlsym", way_dlsym },
    { "dlvsym-of-dlsym", way_dlvsym_of_dlsym },
    { "dlsym-of-libc", way_dlsym_of_libc },
    { "rtld-next", way_next },
    { "deepbind-handle", way_deepbind_handle },
    { "deepbind-linked", way_deepbind_linked },
    { "proc-address", way_proc_address },
    { "own-proc-address", way_own_proc_address },
    { "copy-of-the-driver", way_copy },
    { "namespace", way_namespace },
    { "elf-walk", way_elf },
    { "elf-walk-later", way_elf_later },
    { "no-preload", way_no_preload },
    { "no-socket", way_no_socket },
    { "false-socket", way_false_socket },
    { "fork", way_fork },
    { "many-processes", way_many_processes },
    { "threads", way_threads },
    { "old-forms", way_old_forms },
    { "no-context", way_host_location },
    { "graph-memory", way_graph },
    { "false-free", way_release_twice },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (argc < 2)
            (void)printf("%s\n", ways[i].name);
        else if (strcmp(argv[1], ways[i].name) == 0)
            return ways[i].try();
    }
    return argc < 2 ? 0 : 2;
}
