/* SPDX-License-Identifier: Apache-2.0 */
/* real_driver.c - finding the driver's functions, and hooks by name or pointer */
#include "gpu/real_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/elf.h"
#include "gpu/hooks.h"
#include "gpu/lock.h"

static const char *const sonames[GPU_API_COUNT] = { "libcuda.so.1", "libnvidia-ml.so.1" };

/* The newest CUDA that hooks.def was checked against. */
#define NEWEST_CUDA 13040

/* Pointers of the driver in order, to find a hook by identity. */
struct known {
    const void *real;
    void *hook;
};

static struct gpu_lock lock;
static bool is_resolved[GPU_API_COUNT];
static struct known known[GPU_API_COUNT][512];
static size_t known_count[GPU_API_COUNT];

static void *real_driver_no_dlsym(void *handle, const char *name)
{
    (void)handle;
    (void)name;
    return NULL;
}

struct gpu_loader gpu_loader = { .dlsym = real_driver_no_dlsym };

/* glibc: libc.so.6, before 2.34 libdl.so.2; musl: libc.musl-ARCH.so.1 or unnamed ld-musl. */
static bool real_driver_has_dlsym(const struct elf_object *object, void *self)
{
    const char *slash = strrchr(object->path, '/');
    const char *name = object->soname ? object->soname : slash ? slash + 1 : object->path;

    if ((uintptr_t)self >= object->start && (uintptr_t)self < object->end)
        return false;
    return (strncmp(name, "libc.", 5) == 0 || strncmp(name, "libdl.", 6) == 0
            || strncmp(name, "ld-musl", 7) == 0)
           && elf_symbol(object, "dlsym") && elf_symbol(object, "dlopen");
}

void gpu_loader_find(void)
{
    static bool is_found;
    struct elf_object object;

    if (__atomic_load_n(&is_found, __ATOMIC_ACQUIRE)
        || !elf_find(real_driver_has_dlsym, (void *)&gpu_loader, &object))
        return;
    *(void **)&gpu_loader.dlopen = elf_symbol(&object, "dlopen");
    *(void **)&gpu_loader.dlvsym = elf_symbol(&object, "dlvsym");
    *(void **)&gpu_loader.dlsym = elf_symbol(&object, "dlsym");
    __atomic_store_n(&is_found, true, __ATOMIC_RELEASE);
}

static void **real_driver_slot(const struct gpu_name *name)
{
    return (void **)((char *)&gpu_real + name->offset);
}

void *gpu_name_real(const struct gpu_name *name)
{
    return __atomic_load_n(real_driver_slot(name), __ATOMIC_ACQUIRE);
}

static int real_driver_compare_known(const void *a, const void *b)
{
    const struct known *left = a, *right = b;

    return left->real < right->real ? -1 : left->real > right->real;
}

/* Under the lock: take every symbol that the object has. Two names may share an
 * address (an alias in the driver): the first with a hook counts.
 */
static void real_driver_fill(enum gpu_api api, const struct elf_object *object)
{
    size_t count = 0;

    for (size_t i = 0; i < gpu_name_count; i++) {
        const struct gpu_name *name = &gpu_names[i];
        void *real = name->api == api ? elf_symbol(object, name->symbol) : NULL;

        if (!real)
            continue;
        __atomic_store_n(real_driver_slot(name), real, __ATOMIC_RELEASE);
        if (name->hook && count < sizeof(known[0]) / sizeof(known[0][0]))
            known[api][count++] = (struct known){ real, name->hook };
    }
    qsort(known[api], count, sizeof(known[0][0]), real_driver_compare_known);
    known_count[api] = count;
    __atomic_store_n(&is_resolved[api], true, __ATOMIC_RELEASE);
}

struct real_wanted {
    enum gpu_api api;
    const void *address; /* or NULL */
};

static bool real_driver_is_driver(const struct elf_object *object, void *data)
{
    const struct real_wanted *wanted = data;

    if (wanted->address
        && ((uintptr_t)wanted->address < object->start
            || (uintptr_t)wanted->address >= object->end))
        return false;
    return object->soname && strcmp(object->soname, sonames[wanted->api]) == 0;
}

static bool real_driver_resolve(struct real_wanted wanted)
{
    struct elf_object object;

    gpu_loader_find();
    if (!elf_find(real_driver_is_driver, &wanted, &object))
        return false;
    /* the extra reference keeps it loaded */
    if (gpu_loader.dlopen)
        (void)gpu_loader.dlopen(object.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
    gpu_lock_take(&lock);
    if (!is_resolved[wanted.api])
        real_driver_fill(wanted.api, &object);
    gpu_lock_give(&lock);
    return true;
}

void gpu_resolve(enum gpu_api api)
{
    int saved = errno;

    if (!__atomic_load_n(&is_resolved[api], __ATOMIC_ACQUIRE))
        (void)real_driver_resolve((struct real_wanted){ api, NULL });
    errno = saved;
}

bool gpu_resolve_at(const void *address, enum gpu_api api)
{
    int saved = errno;
    bool found = real_driver_resolve((struct real_wanted){ api, address });

    errno = saved;
    return found;
}

bool gpu_load_nvml(void)
{
    int saved = errno;

    gpu_loader_find();
    if (!is_resolved[GPU_NVML] && gpu_loader.dlopen)
        (void)gpu_loader.dlopen(sonames[GPU_NVML], RTLD_LAZY | RTLD_LOCAL);
    gpu_resolve(GPU_NVML);
    errno = saved;
    return __atomic_load_n(&is_resolved[GPU_NVML], __ATOMIC_ACQUIRE);
}

static int real_driver_compare_name(const void *key, const void *entry)
{
    return strcmp(key, ((const struct gpu_name *)entry)->symbol);
}

const struct gpu_name *gpu_name_find(const char *symbol)
{
    if (!symbol || (strncmp(symbol, "cu", 2) != 0 && strncmp(symbol, "nvml", 4) != 0))
        return NULL;
    return bsearch(symbol, gpu_names, gpu_name_count, sizeof(gpu_names[0]),
                   real_driver_compare_name);
}

void *gpu_hook_of(const void *real)
{
    for (int api = 0; api < GPU_API_COUNT; api++) {
        struct known key = { real, NULL };
        const struct known *found = __atomic_load_n(&is_resolved[api], __ATOMIC_ACQUIRE)
                                        ? bsearch(&key, known[api], known_count[api], sizeof(key),
                                                  real_driver_compare_known)
                                        : NULL;

        if (found)
            return found->hook;
    }
    return NULL;
}

void *gpu_hook_of_base(const char *base, int version, bool per_thread, void *real)
{
    const struct gpu_name *best = NULL;
    size_t len = strlen(base);
    int driver = 0;

    /* a driver that is newer than the table may mean another function by the name */
    if (!gpu_real.cuDriverGetVersion || gpu_real.cuDriverGetVersion(&driver) != CUDA_SUCCESS
        || driver > NEWEST_CUDA)
        return NULL;
    for (size_t i = 0; i < gpu_name_count; i++) {
        const struct gpu_name *name = &gpu_names[i];

        if (name->api == GPU_CUDA && (size_t)name->base_len == len && name->since <= version
            && strncmp(name->symbol, base, len) == 0 && name->per_thread == per_thread
            && (!best || name->since > best->since))
            best = name;
    }
    if (!best && per_thread)
        return gpu_hook_of_base(base, version, false, real);
    if (!best || !best->hook)
        return NULL;
    if (!gpu_name_real(best))
        __atomic_store_n(real_driver_slot(best), real, __ATOMIC_RELEASE);
    return best->hook;
}
