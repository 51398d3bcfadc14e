/* SPDX-License-Identifier: Apache-2.0 */
/* ipc.c - memory of other processes, and of other interfaces
 *
 * Memory of the container is charged once: who exports it pays, and after that
 * the container (shared_alloc.h). What nobody of the container pays for is charged to
 * who imports it: memory of another container, or of Vulkan.
 */
#include "gpu/device.h"
#include "gpu/hooks.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"

/* ---- plain memory, by cuIpcGetMemHandle ---- */

/* The driver frees it, by what is documented, in nobody's interest: an importer who
 * still has it open keeps it, so the charge stays until the last one closes it.
 */
CUresult on_ipc_get(fn_cuIpcGetMemHandle *real, CUipcMemHandle *handle, CUdeviceptr pointer)
{
    CUresult result = real(handle, pointer);
    struct ledger_entry entry;

    if (result == CUDA_SUCCESS && handle
        && (ledger_get(LEDGER_MEMORY, pointer, &entry)
            || ledger_find_range(LEDGER_MEMORY, pointer, &entry)))
        (void)shared_alloc_export(LEDGER_MEMORY, entry.key,
                                  shared_alloc_hash_token(handle, sizeof(*handle)));
    return result;
}

/* It is open, and nobody pays for it. */
static bool ipc_charge_opened(uint64_t token, CUdeviceptr pointer, int device,
                              struct ledger_entry *ret)
{
    CUdeviceptr base;
    size_t bytes = 0;

    if (gpu_real.cuMemGetAddressRange_v2)
        (void)gpu_real.cuMemGetAddressRange_v2(&base, &bytes, pointer);
    return device >= 0 && shared_alloc_charge(token, (uint32_t)device, bytes, ret);
}

CUresult on_ipc_open(fn_cuIpcOpenMemHandle *real, CUdeviceptr *pointer, CUipcMemHandle handle,
                     unsigned int flags)
{
    uint64_t token = shared_alloc_hash_token(&handle, sizeof(handle));
    struct ledger_entry part = { .link = token };
    bool joined = shared_alloc_join(token);
    CUresult result = real(pointer, handle, flags);

    if (result == CUDA_SUCCESS && !ledger_ref(LEDGER_OPENED, *pointer)) {
        bool paid = joined || ipc_charge_opened(token, *pointer, gpu_device_current(), &part);

        if (paid && ledger_add(LEDGER_OPENED, *pointer, part.device, part.bytes, part.link))
            return result;
        if (gpu_real.cuIpcCloseMemHandle)
            (void)gpu_real.cuIpcCloseMemHandle(*pointer);
        if (paid)
            shared_alloc_release(&part);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (joined) /* not open, or open before */
        shared_alloc_leave(token);
    return result;
}

CUresult on_ipc_close(fn_cuIpcCloseMemHandle *real, CUdeviceptr pointer)
{
    CUresult result = real(pointer);
    struct ledger_entry freed;

    if (result == CUDA_SUCCESS && ledger_unref(LEDGER_OPENED, pointer, &freed))
        shared_alloc_release(&freed);
    return result;
}

/* ---- physical memory, by shareable handles ---- */

CUresult on_vmm_export(fn_cuMemExportToShareableHandle *real, void *shareable,
                       CUmemGenericAllocationHandle handle, int type, unsigned long long flags)
{
    CUresult result = real(shareable, handle, type, flags);
    struct ledger_entry entry;
    uint64_t token;

    if (result != CUDA_SUCCESS || !shareable || !ledger_get(LEDGER_HANDLE, handle, &entry))
        return result;
    token = type == CU_MEM_HANDLE_TYPE_FABRIC
                ? shared_alloc_hash_token(shareable, CU_IPC_HANDLE_SIZE)
                : shared_alloc_new_token(entry.bytes);
    token = shared_alloc_export(LEDGER_HANDLE, handle, token);
    if (token && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        (void)shared_alloc_tag_fd(*(const int *)shareable, token);
    return result;
}

/* The slice's device of an imported handle; -1 = no memory of a device. */
static int ipc_device_of(CUmemGenericAllocationHandle handle)
{
    CUmemAllocationProp prop = { .location = { .type = CU_MEM_LOCATION_TYPE_INVALID } };

    if (!gpu_real.cuMemGetAllocationPropertiesFromHandle
        || gpu_real.cuMemGetAllocationPropertiesFromHandle(&prop, handle) != CUDA_SUCCESS
        || prop.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return -1;
    return gpu_device_index(prop.location.id);
}

static uint64_t ipc_shareable_token(void *shareable, int type)
{
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return shared_alloc_read_fd_tag((int)(intptr_t)shareable);
    return type == CU_MEM_HANDLE_TYPE_FABRIC && shareable
               ? shared_alloc_hash_token(shareable, CU_IPC_HANDLE_SIZE)
               : 0;
}

/* What comes without a token has no size before it is mapped: vmm.c charges it then. */
CUresult on_vmm_import(fn_cuMemImportFromShareableHandle *real,
                       CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
    uint64_t token = ipc_shareable_token(shareable, type);
    struct ledger_entry part = { .link = token };
    bool joined = token && shared_alloc_join(token);
    CUresult result = real(handle, shareable, type);
    int device = result == CUDA_SUCCESS && handle ? ipc_device_of(*handle) : -1;

    if (device >= 0 && !ledger_ref(LEDGER_HANDLE, *handle)) {
        uint64_t bytes = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                             ? shared_alloc_token_bytes(token)
                             : 0;
        bool paid = joined || shared_alloc_charge(token, (uint32_t)device, bytes, &part);

        if (paid && ledger_add(LEDGER_HANDLE, *handle, (uint32_t)device, part.bytes, part.link))
            return result;
        if (gpu_real.cuMemRelease)
            (void)gpu_real.cuMemRelease(*handle);
        if (paid)
            shared_alloc_release(&part);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (joined) /* failed, not of a device, or here before */
        shared_alloc_leave(token);
    return result;
}

/* ---- memory of other interfaces ---- */

/* Join the shared allocation of a descriptor, or charge it here and tag the descriptor. */
static bool ipc_take_part(int fd, int device, uint64_t bytes, struct ledger_entry *ret)
{
    uint64_t token = shared_alloc_read_fd_tag(fd);

    *ret = (struct ledger_entry){ .link = token, .device = (uint8_t)device };
    if (token && shared_alloc_join(token))
        return true;
    if (!token && !shared_alloc_tag_fd(fd, token = shared_alloc_new_token(bytes)))
        token = 0;
    return shared_alloc_charge(token, (uint32_t)device, bytes, ret);
}

/* No ledger has it, as Vulkan is not held: charged where it comes into CUDA's hands,
 * and once, as its descriptor is marked.
 */
CUresult on_external_import(fn_cuImportExternalMemory *real, CUexternalMemory *memory,
                            const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *want)
{
    int device = gpu_device_current();
    struct ledger_entry part;
    CUresult result;

    if (!memory || !want || want->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD || device < 0)
        return real(memory, want);
    if (!ipc_take_part(want->handle.fd, device, want->size, &part))
        return CUDA_ERROR_OUT_OF_MEMORY;
    result = real(memory, want);
    if (result == CUDA_SUCCESS) {
        if (ledger_add(LEDGER_EXTERNAL, (uintptr_t)*memory, (uint32_t)device, part.bytes,
                       part.link))
            return result;
        if (gpu_real.cuDestroyExternalMemory)
            (void)gpu_real.cuDestroyExternalMemory(*memory);
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    shared_alloc_release(&part);
    return result;
}

CUresult on_external_destroy(fn_cuDestroyExternalMemory *real, CUexternalMemory memory)
{
    CUresult result = real(memory);
    struct ledger_entry freed;

    if (result == CUDA_SUCCESS && ledger_unref(LEDGER_EXTERNAL, (uintptr_t)memory, &freed))
        shared_alloc_release(&freed);
    return result;
}
