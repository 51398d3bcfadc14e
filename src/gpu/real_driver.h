/* SPDX-License-Identifier: Apache-2.0 */
/* real_driver.h - the driver that the program found, and the names that lead to it
 *
 * gpu_real (hooks.h) is filled when the program first comes by: a driver
 * library that is loaded under its own name, or the one that the program has
 * just looked a symbol up in. It stays loaded from then on, so the pointers
 * stay good whatever the program closes.
 */
#ifndef AQ_GPU_REAL_DRIVER_H
#define AQ_GPU_REAL_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

enum gpu_api { GPU_CUDA, GPU_NVML, GPU_API_COUNT };

/* A line of hooks.def; tools/gpu-hooks makes the table. */
struct gpu_name {
    const char *symbol;
    int since;
    int base_len; /* of the symbol without version and form */
    enum gpu_api api;
    bool per_thread;
    size_t offset; /* in struct gpu_real */
    void *hook;    /* the exported entry point, NULL = not intercepted */
};
extern const struct gpu_name gpu_names[];
extern const size_t gpu_name_count;

/* The loader's own functions. */
struct gpu_loader {
    void *(*dlsym)(void *handle, const char *name);
    void *(*dlvsym)(void *handle, const char *name, const char *version); /* NULL on musl */
    void *(*dlopen)(const char *path, int flags);
};
extern struct gpu_loader gpu_loader;

/* Find them, once. gpu_loader.dlsym is never NULL afterwards. */
void gpu_loader_find(void);

/* Fill gpu_real for 'api' from the loaded driver; nothing if it is filled or
 * no driver is loaded. errno stays.
 */
void gpu_resolve(enum gpu_api api);

/* The same, from the library at 'address' if it calls itself the driver's
 * library; true if it does.
 */
bool gpu_resolve_at(const void *address, enum gpu_api api);

/* Load NVML if the program has not; false if there is none. */
bool gpu_load_nvml(void);

/* A known symbol, or NULL. */
const struct gpu_name *gpu_name_find(const char *symbol);

/* The function in the driver that was found. */
void *gpu_name_real(const struct gpu_name *name);

/* The hook for a pointer that the driver gave out; NULL = none is known. */
void *gpu_hook_of(const void *real);

/* The hook for what cuGetProcAddress calls 'base' at 'version', when the driver
 * gave a pointer that it does not export; that becomes the hook's real
 * function if it had none. NULL = unknown.
 */
void *gpu_hook_of_base(const char *base, int version, bool per_thread, void *real);

#endif
