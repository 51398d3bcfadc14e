/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_variables.c - variables that tell a session's program about its GPUs */
#include "accelhost/gpu_variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "model/device_variable.h"
#include "model/slot.h"

static bool gpu_variables_is_counted(const struct accel_attachment *attachment, size_t i)
{
    return strcmp(attachment->parts[i].kind, attachment->parts[0].kind) == 0;
}

size_t gpu_variables_count_devices(const struct accel_attachment *attachment)
{
    size_t count = 0;

    for (size_t i = 0; i < attachment->part_count; i++)
        count += gpu_variables_is_counted(attachment, i);
    return count;
}

/* "0:4g,1:4g" and "0:4096,1:4096" */
static void gpu_variables_list_memory(const struct accel_attachment *attachment,
                                      struct strbuf *sizes, struct strbuf *megabytes)
{
    char amount[AMOUNT_TEXT_MAX];
    size_t n = 0;

    for (size_t i = 0; i < attachment->part_count; i++) {
        uint64_t bytes = attachment->parts[i].memory_bytes;

        if (!gpu_variables_is_counted(attachment, i))
            continue;
        slot_amount_short((int64_t)bytes, SLOT_BYTES, amount);
        strbuf_addf(sizes, "%s%zu:%s", n ? "," : "", n, amount);
        strbuf_addf(megabytes, "%s%zu:%" PRIu64, n ? "," : "", n, bytes >> 20);
        n++;
    }
}

size_t gpu_variables_make(const struct accel_attachment *attachment, struct arena *arena,
                          struct text_pair ret[GPU_VARIABLES_MAX])
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sizes = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf megabytes = STRBUF_INIT;
    const struct accel_part *first = attachment->part_count ? &attachment->parts[0] : NULL;
    const char *count;
    char number[24];
    size_t n = 0;

    (void)snprintf(number, sizeof(number), "%zu", gpu_variables_count_devices(attachment));
    count = arena_strdup(arena, number);
    if (first) {
        gpu_variables_list_memory(attachment, &sizes, &megabytes);
        ret[n++] = (struct text_pair){ "GPU_TYPE", first->kind };
        ret[n++] = (struct text_pair){ "GPU_MODEL_NAME", first->model ? first->model : "" };
        ret[n++] = (struct text_pair){ "GPU_CONFIG", arena_strdup(arena, sizes.data) };
        ret[n++] = (struct text_pair){ "TF_GPU_MEMORY_ALLOC", arena_strdup(arena, megabytes.data) };
    }
    ret[n++] = (struct text_pair){ DEVICE_COUNT_VARIABLE, count };
    ret[n++] = (struct text_pair){ "N_GPUS", count };
    return n;
}
