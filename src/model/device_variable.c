/* SPDX-License-Identifier: Apache-2.0 */
/* device_variable.c - environment variables that choose among accelerators */
#include "model/device_variable.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const char *const device_variable_names[] = {
    "ASCEND_RT_VISIBLE_DEVICES", "ASCEND_VISIBLE_DEVICES",  "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",        "HABANA_VISIBLE_DEVICES",  "HABANA_VISIBLE_MODULES",
    "HIP_VISIBLE_DEVICES",       "NEURON_RT_VISIBLE_CORES", "NVIDIA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",      "TPU_VISIBLE_CHIPS",       "TPU_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
};

/* How each of them is told that there is to be none. */
static const char *const device_variable_nothing[] = { "", "-1", "NoDevFiles", "none", "void" };

static bool device_variable_is_name(const char *variable, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(device_variable_names); i++)
        if (strlen(device_variable_names[i]) == len
            && strncmp(device_variable_names[i], variable, len) == 0)
            return true;
    return false;
}

/* "0,2": nothing but numbers below 'count'. */
static bool device_variable_is_own(const char *value, size_t count)
{
    for (;;) {
        size_t len = strspn(value, "0123456789");

        if (len == 0 || len > 4 || strtoul(value, NULL, 10) >= count)
            return false;
        value += len;
        if (*value == '\0')
            return true;
        if (*value++ != ',')
            return false;
    }
}

bool device_variable_exceeds(const char *variable, size_t count)
{
    size_t len = strcspn(variable, "=");

    if (!variable[len] || !device_variable_is_name(variable, len))
        return false;
    for (size_t i = 0; i < AQ_COUNT(device_variable_nothing); i++)
        if (strcmp(variable + len + 1, device_variable_nothing[i]) == 0)
            return false;
    return !device_variable_is_own(variable + len + 1, count);
}
