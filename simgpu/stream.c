/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams and events */
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

struct CUevent_st {
    CUdevice device;
    uint32_t number; /* in the client's table */
    uint64_t turn;
    unsigned int flags;
};

static uint32_t streams_made, events_made;
static bool event_in_use[SIM_EVENTS];

static bool stream_is_object(CUstream stream)
{
    return (uintptr_t)stream > 2;
}

uint32_t sim_queue_of(CUstream stream)
{
    return stream_is_object(stream) ? stream->queue : stream == CU_STREAM_PER_THREAD ? 1 : 0;
}

struct CUgraph_st *sim_capture_of(CUstream stream)
{
    return stream_is_object(stream) ? stream->capture : NULL;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    (void)flags;
    (void)priority;
    SIM_CHECK_CONTEXT();
    if (!stream)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(*stream = calloc(1, sizeof(**stream))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*stream)->device = sim_context()->device;
    (*stream)->queue = 2
                       + __atomic_fetch_add(&streams_made, 1, __ATOMIC_RELAXED) % (SIM_STREAMS - 2);
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    if (!stream_is_object(stream))
        return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    return cuStreamDestroy_v2(stream);
}

CUdevice sim_device_of(CUstream stream)
{
    return stream_is_object(stream) ? stream->device : sim_context()->device;
}

static uint64_t stream_pushed(CUdevice device, uint32_t queue)
{
    return __atomic_load_n(&sim_self()->uses[device].queues[queue].pushed, __ATOMIC_RELAXED);
}

CUresult cuStreamSynchronize(CUstream stream)
{
    CUdevice device;

    SIM_CHECK_CONTEXT();
    device = sim_device_of(stream);
    if (sim_capture_of(stream))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    sim_wait_queue((uint32_t)device, sim_queue_of(stream),
                   stream_pushed(device, sim_queue_of(stream)));
    sim_pools_settle();
    return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream)
{
    SIM_CHECK_CONTEXT();
    return sim_is_queue_done((uint32_t)sim_device_of(stream), sim_queue_of(stream))
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_READY;
}

CUresult cuCtxSynchronize(void)
{
    CUdevice device;

    SIM_CHECK_CONTEXT();
    device = sim_context()->device;
    for (uint32_t i = 0; i < SIM_STREAMS; i++)
        if (stream_pushed(device, i))
            sim_wait_queue((uint32_t)device, i, stream_pushed(device, i));
    sim_pools_settle();
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
    (void)context;
    return cuCtxSynchronize();
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    SIM_CHECK_CONTEXT();
    if (!event)
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i < SIM_EVENTS; i++) {
        uint32_t number = __atomic_fetch_add(&events_made, 1, __ATOMIC_RELAXED) % SIM_EVENTS;

        if (__atomic_exchange_n(&event_in_use[number], true, __ATOMIC_ACQUIRE))
            continue;
        if (!(*event = calloc(1, sizeof(**event))))
            return CUDA_ERROR_OUT_OF_MEMORY;
        **event = (struct CUevent_st){ sim_context()->device, number,
                                       sim_self()->events[number].recorded, flags };
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    __atomic_store_n(&event_in_use[event->number], false, __ATOMIC_RELEASE);
    free(event);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event)
{
    return cuEventDestroy_v2(event);
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct sim_item item = { .kind = SIM_EVENT };

    SIM_CHECK_CONTEXT();
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capture_of(stream))
        return CUDA_SUCCESS;
    event->device = sim_device_of(stream);
    event->turn = ++sim_self()->events[event->number].recorded;
    item.event = (uint16_t)event->number;
    item.event_turn = event->turn;
    (void)sim_push((uint32_t)event->device, sim_queue_of(stream), &item);
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    struct sim_item item = { .kind = SIM_WAIT };

    (void)flags;
    SIM_CHECK_CONTEXT();
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_capture_of(stream))
        return CUDA_SUCCESS;
    item.event = (uint16_t)event->number;
    item.event_turn = event->turn;
    (void)sim_push((uint32_t)sim_device_of(stream), sim_queue_of(stream), &item);
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    return sim_is_event_done((uint32_t)event->device, event->number, event->turn)
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_READY;
}

CUresult cuEventSynchronize(CUevent event)
{
    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_wait_event((uint32_t)event->device, event->number, event->turn);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    if (!ms || !start || !end)
        return CUDA_ERROR_INVALID_VALUE;
    if (cuEventQuery(start) != CUDA_SUCCESS || cuEventQuery(end) != CUDA_SUCCESS)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((double)(sim_self()->events[end->number].at_ns
                           - sim_self()->events[start->number].at_ns)
                  / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
    return cuEventElapsedTime(ms, start, end);
}
