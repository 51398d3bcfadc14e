/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - which GPUs may be offered: critical Xids, uncorrected ECC errors, heat */
#include <stdio.h>
#include <string.h>

#include "cuda/plugin.h"

/* Degrees below the shutdown: from there on it is cordoned, and there it returns. */
#define HOT_DEGREES 5
#define COOL_DEGREES 15

/* Xids that a program causes by itself: the GPU is well. */
static bool cuda_is_harmless(unsigned long long xid)
{
    static const unsigned long long harmless[] = { 13, 31, 43, 45, 68, 109 };

    for (size_t i = 0; i < AQ_COUNT(harmless); i++)
        if (harmless[i] == xid)
            return true;
    return false;
}

void cuda_register_events(struct cuda *cuda, nvmlDevice_t handle)
{
    if (!cuda->events && NVML_CALL(&cuda->nvml, nvmlEventSetCreate, &cuda->events) != NVML_SUCCESS)
        cuda->events = NULL;
    if (cuda->events) /* registering again is fine */
        (void)NVML_CALL(&cuda->nvml, nvmlDeviceRegisterEvents, handle, NVML_EVENT_XID_CRITICAL,
                        cuda->events);
}

static void cuda_note_fault(struct cuda *cuda, const nvmlEventData_t *event)
{
    nvmlPciInfo_t pci = { .domain = 0 };
    struct cuda_fault *fault = &cuda->faults[cuda->fault_count];

    if (event->eventType != NVML_EVENT_XID_CRITICAL || cuda_is_harmless(event->eventData)
        || cuda->fault_count == AQ_COUNT(cuda->faults)
        || NVML_CALL(&cuda->nvml, nvmlDeviceGetPciInfo_v3, event->device, &pci) != NVML_SUCCESS)
        return;
    for (size_t i = 0; i < cuda->fault_count; i++)
        if (strcmp(cuda->faults[i].location, pci.busId) == 0)
            return;
    memcpy(fault->location, pci.busId, sizeof(fault->location));
    fault->xid = event->eventData;
    cuda->fault_count++;
}

void cuda_read_faults(struct cuda *cuda)
{
    nvmlEventData_t event;

    for (int i = 0; cuda->events && i < 1000; i++) {
        if (NVML_CALL(&cuda->nvml, nvmlEventSetWait_v2, cuda->events, &event, 0) != NVML_SUCCESS)
            return;
        cuda_note_fault(cuda, &event);
    }
}

static unsigned long long cuda_find_xid(const struct cuda *cuda, const struct cuda_device *device)
{
    size_t len = strlen(device->location);

    for (size_t i = 0; i < cuda->fault_count; i++) {
        const char *at = cuda->faults[i].location;
        size_t at_len = strlen(at);

        if (len && at_len >= len && strncasecmp(at + at_len - len, device->location, len) == 0)
            return cuda->faults[i].xid;
    }
    return 0;
}

static void cuda_set_status(struct cuda_device *device, uint32_t status, const char *text)
{
    device->status = status;
    (void)snprintf(device->status_text, sizeof(device->status_text), "%s", text);
}

/* Close to the temperature at which it would switch itself off, or not yet well
 * below it again.
 */
static bool cuda_is_hot(struct cuda *cuda, const struct cuda_device *device)
{
    const struct nvml *nvml = &cuda->nvml;
    unsigned int heat = 0, limit = 0;
    size_t at = 0;

    if (NVML_CALL(nvml, nvmlDeviceGetTemperature, device->handle, NVML_TEMPERATURE_GPU, &heat)
            != NVML_SUCCESS
        || NVML_CALL(nvml, nvmlDeviceGetTemperatureThreshold, device->handle,
                     NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &limit)
               != NVML_SUCCESS
        || limit <= COOL_DEGREES)
        return false;
    while (at < cuda->hot_count && strcmp(cuda->hot[at], device->id) != 0)
        at++;
    if (heat < limit - (at < cuda->hot_count ? COOL_DEGREES : HOT_DEGREES)) {
        if (at < cuda->hot_count)
            memmove(cuda->hot[at], cuda->hot[--cuda->hot_count], sizeof(cuda->hot[at]));
        return false;
    }
    if (at == cuda->hot_count && at < AQ_COUNT(cuda->hot))
        memcpy(cuda->hot[cuda->hot_count++], device->id, sizeof(device->id));
    return true;
}

void cuda_check_health(struct cuda *cuda, struct cuda_device *device)
{
    const struct nvml *nvml = &cuda->nvml;
    unsigned long long xid = cuda_find_xid(cuda, device), errors = 0;
    nvmlMemory_t memory;
    char text[96];

    if (NVML_CALL(nvml, nvmlDeviceGetMemoryInfo, device->handle, &memory)
        == NVML_ERROR_GPU_IS_LOST) {
        cuda_set_status(device, AQ_ACCELERATOR_OFFLINE, nvml_error_text(NVML_ERROR_GPU_IS_LOST));
    } else if (xid) {
        (void)snprintf(text, sizeof(text), "Xid %llu: reset the GPU", xid);
        cuda_set_status(device, AQ_ACCELERATOR_OFFLINE, text);
    } else if (NVML_CALL(nvml, nvmlDeviceGetTotalEccErrors, device->handle, NVML_ECC_UNCORRECTED,
                         NVML_ECC_VOLATILE, &errors)
                   == NVML_SUCCESS
               && errors > 0) {
        (void)snprintf(text, sizeof(text), "%llu memory errors that ECC could not correct", errors);
        cuda_set_status(device, AQ_ACCELERATOR_OFFLINE, text);
    } else if (cuda_is_hot(cuda, device)) {
        /* no number: a status that changes is news */
        cuda_set_status(device, AQ_ACCELERATOR_OFFLINE,
                        "about to shut down for heat: it has to cool");
    }
}
