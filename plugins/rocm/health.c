/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - which GPUs may be offered: missing render nodes, uncorrected ECC errors */
#include <inttypes.h>

#include "common/sysfile.h"
#include "rocm/plugin.h"

/* Errors that ECC could not correct: "ue: 3" in the file. */
static bool rocm_has_errors(const char *root, const struct rocm_device *device)
{
    AQ_CLEANUP(aq_freep) char *path = rocm_path(device, "ras/umc_err_count");

    return sysfile_property(root, path, "ue", 0) > 0;
}

const char *rocm_check_health(const char *root, const struct rocm_device *device)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("/dev/dri/renderD%" PRId64, device->minor);

    if (!sysfile_exists(root, path))
        return "its render node is missing";
    return rocm_has_errors(root, device) ? "memory errors that ECC could not correct" : NULL;
}
