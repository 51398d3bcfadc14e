/* SPDX-License-Identifier: Apache-2.0 */
/* ipc.c - memory for other processes: shareable handles, and handles of plain memory
 *
 * Only who holds what is simulated: each process sees contents of its own.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

#define OPENED_MAX 1024
#define IPC_MAGIC UINT64_C(0x637069676d6973)

/* What this process has of shared memory, by its number. */
static struct {
    int objects;
    bool is_maker;
    CUdevice device;
    uint64_t bytes;
} own[SIM_SHARED_MAX];

/* Memory that is open here; number + 1, 0 = free. */
static struct {
    int shared, times;
    CUdeviceptr address;
    uint64_t bytes;
} opened[OPENED_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int sim_export(CUdevice device, uint64_t bytes)
{
    uint64_t whole = (bytes + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
    int number;

    (void)pthread_mutex_lock(&lock);
    number = sim_shared_make((uint32_t)device, whole);
    if (number >= 0) {
        own[number].objects = 1;
        own[number].is_maker = true;
        own[number].device = device;
        own[number].bytes = bytes;
    }
    (void)pthread_mutex_unlock(&lock);
    return number;
}

/* One object more, of memory that may be another's; its bytes, 0 = it is gone. */
static uint64_t ipc_hold(uint64_t name, int number, CUdevice *ret_device)
{
    uint64_t bytes = 0;
    uint32_t device = 0;

    (void)pthread_mutex_lock(&lock);
    if (sim_shared_hold(name, &device, &bytes)) {
        if (!own[number].objects++)
            own[number].is_maker = false;
    } else {
        bytes = 0;
    }
    (void)pthread_mutex_unlock(&lock);
    *ret_device = (CUdevice)device;
    return bytes;
}

void sim_export_drop(int number)
{
    (void)pthread_mutex_lock(&lock);
    if (--own[number].objects == 0) {
        sim_shared_drop(number);
        if (own[number].is_maker)
            sim_physical_give(own[number].device, own[number].bytes);
    }
    (void)pthread_mutex_unlock(&lock);
}

void sim_export_forget(int number)
{
    (void)pthread_mutex_lock(&lock);
    if (--own[number].objects == 0)
        sim_shared_drop(number);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- physical memory ---- */

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      int type, unsigned long long flags)
{
    struct sim_handle *one = (struct sim_handle *)(uintptr_t)handle;
    int fd;

    if (!shareable || !one || flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || one->device < 0)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!(one->prop.requestedHandleTypes & type))
        return CUDA_ERROR_INVALID_VALUE;
    if (!one->shared)
        one->shared = sim_export(one->device, one->bytes) + 1;
    if (!one->shared || (fd = sim_shared_open_fd(one->shared - 1)) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *(int *)shareable = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        int type)
{
    struct sim_handle *made;
    CUdevice device;
    uint64_t bytes, name;
    int number;

    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    name = sim_shared_read_fd((int)(intptr_t)shareable);
    number = sim_shared_find(name);
    if (number < 0 || !(bytes = ipc_hold(name, number, &device)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!(made = calloc(1, sizeof(*made)))) {
        sim_export_drop(number);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct sim_handle){
        .bytes = bytes,
        .device = device,
        .owners = 1,
        .shared = number + 1,
        .prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                  .requestedHandleTypes = type,
                  .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } },
    };
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    if (!prop || !handle)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = ((struct sim_handle *)(uintptr_t)handle)->prop;
    return CUDA_SUCCESS;
}

/* ---- plain memory ---- */

struct ipc {
    uint64_t magic, name;
};

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    struct ipc ipc = { .magic = IPC_MAGIC };
    CUdeviceptr base;
    CUdevice device;
    uint64_t bytes;
    int *shared;

    SIM_CHECK_CONTEXT();
    if (!handle || !sim_allocation_find(pointer, &base, &bytes, &device, &shared))
        return CUDA_ERROR_INVALID_VALUE;
    if (!*shared)
        *shared = sim_export(device, bytes) + 1;
    if (!*shared)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ipc.name = sim_shared_name(*shared - 1);
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &ipc, sizeof(ipc));
    return CUDA_SUCCESS;
}

/* Where it is open already, or a free place; -1 = neither. */
static int ipc_find_opened(int number)
{
    int found = -1;

    for (int i = 0; i < OPENED_MAX; i++) {
        if (opened[i].shared == number + 1)
            return i;
        if (!opened[i].shared && found < 0)
            found = i;
    }
    return found;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    struct ipc ipc;
    CUdevice device;
    int number, place;
    uint64_t bytes;

    SIM_CHECK_CONTEXT();
    memcpy(&ipc, &handle, sizeof(ipc));
    number = ipc.magic == IPC_MAGIC ? sim_shared_find(ipc.name) : -1;
    if (!pointer || flags != 1 || number < 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (own[number].objects && own[number].is_maker)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((place = ipc_find_opened(number)) < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!opened[place].times) {
        if (!(bytes = ipc_hold(ipc.name, number, &device)))
            return CUDA_ERROR_INVALID_VALUE;
        opened[place].address = sim_address_take(bytes);
        opened[place].bytes = bytes;
        opened[place].shared = number + 1;
    }
    opened[place].times++;
    *pointer = opened[place].address;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    SIM_CHECK_CONTEXT();
    for (int i = 0; i < OPENED_MAX && pointer; i++) {
        if (!opened[i].shared || opened[i].address != pointer)
            continue;
        if (--opened[i].times == 0) {
            sim_address_give(pointer, opened[i].bytes);
            sim_export_drop(opened[i].shared - 1);
            opened[i].shared = 0;
        }
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)
{
    CUdeviceptr found = 0;
    uint64_t len = 0;
    CUdevice device;
    int *shared;

    SIM_CHECK_CONTEXT();
    for (int i = 0; i < OPENED_MAX && !len; i++)
        if (opened[i].shared && pointer - opened[i].address < opened[i].bytes) {
            found = opened[i].address;
            len = opened[i].bytes;
        }
    if (!len && !sim_allocation_find(pointer, &found, &len, &device, &shared))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = found;
    if (bytes)
        *bytes = len;
    return CUDA_SUCCESS;
}

/* ---- memory of another interface: it is there already ---- */

struct CUextMemory_st {
    uint64_t bytes;
};

CUresult cuImportExternalMemory(CUexternalMemory *memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *want)
{
    SIM_CHECK_CONTEXT();
    if (!memory || !want || want->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || !want->size)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*memory = calloc(1, sizeof(**memory))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*memory)->bytes = want->size;
    return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory memory)
{
    SIM_CHECK_CONTEXT();
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    free(memory);
    return CUDA_SUCCESS;
}
