/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - loading NVML and finding its functions */
#include "cuda/nvml.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

const char *nvml_error_text(nvmlReturn_t code)
{
    switch ((int)code) {
    case NVML_ERROR_UNINITIALIZED:
        return "not initialised";
    case NVML_ERROR_NOT_SUPPORTED:
        return "not supported";
    case NVML_ERROR_NO_PERMISSION:
        return "no permission";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "the driver is not loaded";
    case NVML_ERROR_GPU_IS_LOST:
        return "the GPU is lost: it has fallen off the bus";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "library and driver are of different versions: a driver was installed and not loaded";
    default:
        return "error";
    }
}

/* dlsym() gives an object pointer; POSIX says that a copy of it will do. */
static void nvml_find(void *library, const char *name, void *place)
{
    void *symbol = dlsym(library, name);

    memcpy(place, &symbol, sizeof(symbol));
}

/* Which file was loaded, so that it is seen when an upgrade puts another there. */
static void nvml_note_file(struct nvml *nvml)
{
    const struct link_map *map = NULL;

    if (dlinfo(nvml->library, RTLD_DI_LINKMAP, &map) < 0 || !map || !map->l_name[0]
        || stat(map->l_name, &nvml->file) < 0)
        return;
    (void)snprintf(nvml->path, sizeof(nvml->path), "%s", map->l_name);
}

bool nvml_is_replaced(const struct nvml *nvml)
{
    struct stat now;

    return nvml->library && nvml->path[0]
           && (stat(nvml->path, &now) < 0 || now.st_ino != nvml->file.st_ino
               || now.st_dev != nvml->file.st_dev);
}

int nvml_open(struct nvml *nvml, const char *path, struct aq_error *err)
{
    nvmlReturn_t r;

    *nvml = (struct nvml){ .library = dlopen(path, RTLD_NOW | RTLD_LOCAL) };
    if (!nvml->library)
        return aq_fail(err, ENOENT, "there is no %s", path);
#define NVML_FIND(name, parameters) nvml_find(nvml->library, #name, (void *)&nvml->name);
    NVML_CALLS(NVML_FIND)
#undef NVML_FIND
    r = nvml->nvmlInit_v2 ? nvml->nvmlInit_v2() : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (r == NVML_SUCCESS) {
        nvml_note_file(nvml);
        return 0;
    }
    (void)dlclose(nvml->library);
    nvml->library = NULL;
    return aq_fail(err, ENODEV, "NVML: %s (%d)", nvml_error_text(r), (int)r);
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml->library)
        return;
    if (nvml->nvmlShutdown)
        (void)nvml->nvmlShutdown();
    (void)dlclose(nvml->library);
    nvml->library = NULL;
}
