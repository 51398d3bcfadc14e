/* memory.c - plain and virtual memory, arrays, copies */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda.h"

#define SPACE ((uint64_t)1 << 40)
#define CLASSES 41
#define PITCH 512

struct allocation {
    CUdeviceptr address;
    uint64_t bytes, physical; /* physical 0 = nothing is charged here */
    CUdevice device;
    int shared; /* its number + 1; 0 = is not (export.c) */
};

struct mapping {
    CUdeviceptr address;
    uint64_t bytes;
    struct sim_handle *handle;
    struct mapping *next;
};

struct CUarray_st {
    CUdevice device;
    uint64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUdeviceptr space, space_end;
static struct {
    CUdeviceptr *list;
    size_t count, capacity;
} spare[CLASSES];
static struct allocation *table; /* open addressing by address */
static size_t capacity, count;
static uint64_t small_bytes[SIM_DEVICES_MAX];
static struct mapping *mappings;

static int class_of(uint64_t bytes)
{
    int class = 9;

    while (class < CLASSES - 1 && (uint64_t)1 << class < bytes)
        class++;
    return class;
}

CUdeviceptr sim_address_take(uint64_t bytes)
{
    int class = class_of(bytes);
    CUdeviceptr address = 0;

    (void)pthread_mutex_lock(&lock);
    if (!space) {
        void *mapped = mmap(NULL, SPACE, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        space = mapped == MAP_FAILED ? 0 : (CUdeviceptr)(uintptr_t)mapped;
        space = (space + SIM_GRANULE) & ~(SIM_GRANULE - 1);
        space_end = (CUdeviceptr)(uintptr_t)mapped + SPACE;
    }
    if (spare[class].count) {
        address = spare[class].list[--spare[class].count];
    } else if (space + ((uint64_t)1 << class) <= space_end) {
        uint64_t align = class >= 21 ? SIM_GRANULE : 512;

        space = (space + align - 1) & ~(align - 1);
        address = space;
        space += (uint64_t)1 << class;
    }
    (void)pthread_mutex_unlock(&lock);
    return address;
}

void sim_address_give(CUdeviceptr address, uint64_t bytes)
{
    int class = class_of(bytes);

    (void)pthread_mutex_lock(&lock);
    if (spare[class].count == spare[class].capacity) {
        size_t more = spare[class].capacity ? spare[class].capacity * 2 : 64;
        CUdeviceptr *list = realloc(spare[class].list, more * sizeof(*list));

        if (list) {
            spare[class].list = list;
            spare[class].capacity = more;
        }
    }
    if (spare[class].count < spare[class].capacity)
        spare[class].list[spare[class].count++] = address;
    (void)pthread_mutex_unlock(&lock);
}

static uint64_t whole(uint64_t bytes)
{
    return (bytes + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1);
}

static uint64_t packed(uint64_t bytes)
{
    return (bytes + 511) & ~(uint64_t)511;
}

/* Small pieces share granules. The card is asked when a granule begins or ends. */
bool sim_physical_take(CUdevice device, uint64_t bytes)
{
    uint64_t before, after;
    bool taken = true;

    if (bytes >= SIM_LARGE)
        return whole(bytes) >= bytes && sim_memory_take((uint32_t)device, whole(bytes));
    (void)pthread_mutex_lock(&lock);
    before = whole(small_bytes[device]);
    after = whole(small_bytes[device] + packed(bytes));
    if (after > before || sim_card()->faults.alloc_every)
        taken = sim_memory_take((uint32_t)device, after - before);
    if (taken)
        small_bytes[device] += packed(bytes);
    (void)pthread_mutex_unlock(&lock);
    return taken;
}

void sim_physical_give(CUdevice device, uint64_t bytes)
{
    uint64_t before, after;

    if (bytes >= SIM_LARGE) {
        sim_memory_give((uint32_t)device, whole(bytes));
        return;
    }
    (void)pthread_mutex_lock(&lock);
    before = whole(small_bytes[device]);
    small_bytes[device] -= packed(bytes) < small_bytes[device] ? packed(bytes) : small_bytes[device];
    after = whole(small_bytes[device]);
    if (before > after)
        sim_memory_give((uint32_t)device, before - after);
    (void)pthread_mutex_unlock(&lock);
}

static size_t place(CUdeviceptr address)
{
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (capacity - 1);
}

static void insert(struct allocation one)
{
    size_t i = place(one.address);

    while (table[i].address)
        i = (i + 1) & (capacity - 1);
    table[i] = one;
    count++;
}

static bool enter(struct allocation one)
{
    (void)pthread_mutex_lock(&lock);
    if (count * 2 >= capacity) {
        struct allocation *old = table;
        size_t old_capacity = capacity, more = capacity ? capacity * 2 : 1024;
        struct allocation *fresh = calloc(more, sizeof(*fresh));

        if (!fresh) {
            (void)pthread_mutex_unlock(&lock);
            return false;
        }
        table = fresh;
        capacity = more;
        count = 0;
        for (size_t i = 0; i < old_capacity; i++)
            if (old[i].address)
                insert(old[i]);
        free(old);
    }
    insert(one);
    (void)pthread_mutex_unlock(&lock);
    return true;
}

static bool leave(CUdeviceptr address, struct allocation *ret)
{
    bool found = false;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = capacity ? place(address) : 0; capacity && table[i].address;
         i = (i + 1) & (capacity - 1)) {
        if (table[i].address != address)
            continue;
        *ret = table[i];
        found = true;
        for (size_t gap = i, j = (i + 1) & (capacity - 1);; j = (j + 1) & (capacity - 1)) {
            if (!table[j].address) {
                table[gap] = (struct allocation){ 0 };
                count--;
                break;
            }
            if (((j - place(table[j].address)) & (capacity - 1)) >= ((j - gap) & (capacity - 1))) {
                table[gap] = table[j];
                gap = j;
            }
        }
        break;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

void sim_memory_forget(CUdevice device)
{
    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < capacity; i++)
        if (table[i].address && table[i].device == device) {
            table[i].physical = 0;
            if (table[i].shared)
                sim_export_forget(table[i].shared - 1);
            table[i].shared = 0;
        }
    small_bytes[device] = 0;
    (void)pthread_mutex_unlock(&lock);
    sim_memory_give((uint32_t)device, UINT64_MAX);
}

bool sim_allocation_find(CUdeviceptr address, CUdeviceptr *ret_base, uint64_t *ret_bytes,
                         CUdevice *ret_device, int **ret_shared)
{
    bool found = false;

    (void)pthread_mutex_lock(&lock);
    for (size_t i = 0; i < capacity && !found; i++) {
        struct allocation *one = &table[i];

        found = one->address && address >= one->address && address - one->address < one->bytes;
        if (!found)
            continue;
        *ret_base = one->address;
        *ret_bytes = one->bytes;
        *ret_device = one->device;
        *ret_shared = &one->shared;
    }
    (void)pthread_mutex_unlock(&lock);
    return found;
}

static CUresult allocate(CUdeviceptr *pointer, uint64_t bytes)
{
    CUdevice device = sim_context()->device;
    CUdeviceptr address;

    if (!sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    address = sim_address_take(bytes);
    if (!address || !enter((struct allocation){ address, bytes, bytes, device, 0 })) {
        sim_physical_give(device, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *pointer = address;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(pointer, bytes);
}

CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !bytes || !(flags & (CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST)))
        return CUDA_ERROR_INVALID_VALUE;
    /* lives where it was last used: in the host until the device has room */
    *pointer = sim_address_take(bytes);
    if (!*pointer || !enter((struct allocation){ *pointer, bytes, 0, sim_context()->device, 0 }))
        return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height,
                            unsigned int element)
{
    SIM_CHECK_CONTEXT();
    if (!pointer || !pitch || !width || !height
        || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + PITCH - 1) / PITCH * PITCH;
    return allocate(pointer, *pitch * height);
}

CUresult cuMemFree_v2(CUdeviceptr pointer)
{
    struct allocation one;

    SIM_CHECK_CONTEXT();
    if (!pointer)
        return CUDA_SUCCESS;
    if (sim_pool_free(pointer))
        return CUDA_SUCCESS;
    if (!leave(pointer, &one))
        return CUDA_ERROR_INVALID_VALUE;
    if (one.shared)
        sim_export_drop(one.shared - 1);
    else if (one.physical)
        sim_physical_give(one.device, one.physical);
    sim_address_give(one.address, one.bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct sim_card *card = sim_card();
    uint64_t used;

    SIM_CHECK_CONTEXT();
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    sim_lock(card);
    used = sim_memory_used(card, (uint32_t)sim_context()->device);
    sim_unlock(card);
    *total = card->devices[sim_context()->device].memory;
    *free_bytes = *total - used;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop, int option)
{
    (void)option;
    if (!bytes || !prop)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = SIM_GRANULE;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    struct sim_handle *made;
    CUdevice device;

    (void)flags;
    if (!sim_is_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (!handle || !bytes || !prop || bytes % SIM_GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? prop->location.id : -1;
    if (device >= (int)sim_card()->device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    if (device >= 0 && !sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(made = calloc(1, sizeof(*made))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (struct sim_handle){ bytes, device, 1, 0, *prop };
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)made;
    return CUDA_SUCCESS;
}

static void drop(struct sim_handle *handle)
{
    if (__atomic_sub_fetch(&handle->owners, 1, __ATOMIC_ACQ_REL))
        return;
    if (handle->shared)
        sim_export_drop(handle->shared - 1);
    else if (handle->device >= 0)
        sim_physical_give(handle->device, handle->bytes);
    free(handle);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    drop((struct sim_handle *)(uintptr_t)handle);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t align, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)align;
    (void)hint;
    (void)flags;
    if (!address || !bytes || bytes % SIM_GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    *address = sim_address_take(bytes);
    return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    if (!address || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_address_give(address, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct sim_handle *mapped = (struct sim_handle *)(uintptr_t)handle;
    struct mapping *mapping;

    (void)flags;
    if (!address || !bytes || !mapped || offset + bytes > mapped->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(mapping = calloc(1, sizeof(*mapping))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (void)__atomic_add_fetch(&mapped->owners, 1, __ATOMIC_ACQ_REL);
    (void)pthread_mutex_lock(&lock);
    *mapping = (struct mapping){ address, bytes, mapped, mappings };
    mappings = mapping;
    (void)pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    struct mapping *gone = NULL;

    (void)pthread_mutex_lock(&lock);
    for (struct mapping **at = &mappings; *at;) {
        struct mapping *one = *at;

        if (one->address >= address && one->address - address < bytes) {
            *at = one->next;
            one->next = gone;
            gone = one;
        } else {
            at = &one->next;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (!gone)
        return CUDA_ERROR_INVALID_VALUE;
    while (gone) {
        struct mapping *next = gone->next;

        drop(gone->handle);
        free(gone);
        gone = next;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
    CUdeviceptr wanted = (CUdeviceptr)(uintptr_t)address;
    CUresult result = CUDA_ERROR_INVALID_VALUE;

    (void)pthread_mutex_lock(&lock);
    for (struct mapping *one = mappings; one && handle; one = one->next)
        if (wanted >= one->address && wanted - one->address < one->bytes) {
            (void)__atomic_add_fetch(&one->handle->owners, 1, __ATOMIC_ACQ_REL);
            *handle = (CUmemGenericAllocationHandle)(uintptr_t)one->handle;
            result = CUDA_SUCCESS;
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return result;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t entries)
{
    return address && bytes && access && entries ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uint64_t texel_bytes(int format, unsigned int channels)
{
    uint64_t one = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_UNSIGNED_INT32
                           || format == CU_AD_FORMAT_SIGNED_INT32
                       ? 4
                   : format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_UNSIGNED_INT16
                           || format == CU_AD_FORMAT_SIGNED_INT16
                       ? 2
                       : 1;

    return one * channels;
}

/* Rows of arrays are padded to 64 bytes here; the real layout is nobody's business. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    uint64_t row = (want->Width * texel_bytes(want->Format, want->NumChannels) + 63) / 64 * 64;

    return row * (want->Height ? want->Height : 1) * (want->Depth ? want->Depth : 1);
}

static CUresult make_array(CUarray *array, uint64_t bytes)
{
    CUdevice device = sim_context()->device;

    if (bytes > SPACE || !sim_physical_take(device, bytes))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(*array = calloc(1, sizeof(**array))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    **array = (struct CUarray_st){ device, bytes };
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *want)
{
    bool sparse;

    SIM_CHECK_CONTEXT();
    if (!array || !want || !want->Width || !want->NumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    sparse = want->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);
    return make_array(array, sparse ? 0 : array_bytes(want));
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *want)
{
    CUDA_ARRAY3D_DESCRIPTOR full = { 0 };

    if (!array || !want)
        return CUDA_ERROR_INVALID_VALUE;
    full.Width = want->Width;
    full.Height = want->Height;
    full.Format = want->Format;
    full.NumChannels = want->NumChannels;
    return cuArray3DCreate_v2(array, &full);
}

CUresult cuArrayDestroy(CUarray array)
{
    SIM_CHECK_CONTEXT();
    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_physical_give(array->device, array->bytes);
    free(array);
    return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array,
                                      CUdevice device)
{
    (void)device;
    if (!needs || !array)
        return CUDA_ERROR_INVALID_VALUE;
    *needs = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ .size = array->bytes, .alignment = 512 };
    return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *want,
                                unsigned int levels)
{
    CUDA_ARRAY3D_DESCRIPTOR level;
    uint64_t bytes = 0;

    SIM_CHECK_CONTEXT();
    if (!array || !want || !want->Width || !levels)
        return CUDA_ERROR_INVALID_VALUE;
    level = *want;
    for (unsigned int i = 0; i < levels; i++) {
        bytes += array_bytes(&level);
        level.Width = level.Width > 1 ? level.Width / 2 : 1;
        level.Height = level.Height > 1 ? level.Height / 2 : level.Height;
        level.Depth = level.Depth > 1 ? level.Depth / 2 : level.Depth;
    }
    return make_array((CUarray *)array, bytes);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
    return cuArrayDestroy((CUarray)array);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs,
                                               CUmipmappedArray array, CUdevice device)
{
    return cuArrayGetMemoryRequirements(needs, (CUarray)array, device);
}

/* The data is written in its memory in program order: copies do not take device time. */
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!to || !from)
        return CUDA_ERROR_INVALID_VALUE;
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return cuMemcpy(to, (CUdeviceptr)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpy((CUdeviceptr)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return cuMemcpy(to, from, bytes);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpy(to, from, bytes);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyHtoD_v2(to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)stream;
    return cuMemcpyDtoH_v2(to, from, bytes);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t bytes)
{
    SIM_CHECK_CONTEXT();
    if (!to)
        return CUDA_ERROR_INVALID_VALUE;
    memset((void *)(uintptr_t)to, value, bytes);
    return CUDA_SUCCESS;
}
