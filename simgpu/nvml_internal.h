/* SPDX-License-Identifier: Apache-2.0 */
/* nvml_internal.h - inside the simulated libnvidia-ml.so.1, which only observes the card */
#ifndef SIMGPU_NVML_INTERNAL_H
#define SIMGPU_NVML_INTERNAL_H

#include "device.h"
#include "exports.h"

/* The card, without a client's slot; NULL = there is none. Its descriptor is known then. */
struct sim_card *sim_nvml_card(void);
extern int sim_nvml_fd;

/* Is NVML initialised, and the handle a device's? Its index. Delays by nvml_delay_us. */
nvmlReturn_t sim_nvml_check(nvmlDevice_t handle, uint32_t *ret);

/* Return an error from the calling function unless the handle and 'good' are valid. */
#define SIM_CHECK_DEVICE(handle, device, good)                    \
    do {                                                          \
        nvmlReturn_t checked = sim_nvml_check(handle, &(device)); \
                                                                  \
        if (checked != NVML_SUCCESS)                              \
            return checked;                                       \
        if (!(good))                                              \
            return NVML_ERROR_INVALID_ARGUMENT;                   \
    } while (0)

#endif
