/* SPDX-License-Identifier: Apache-2.0 */
/* The gpu_alloc_map of the API. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "alloc/alloc_map.h"

/* The i-th device if it is a whole accelerator that holds something. */
static bool gpu_map_find_counted(const struct alloc_map *map, size_t i,
                                 struct alloc_device_state *ret, bool *ret_end)
{
    *ret_end = !alloc_map_device(map, i, ret);
    return !*ret_end && ret->allocated > 0 && slot_name_is_accelerator(ret->slot_name)
           && !strchr(ret->slot_name, ':');
}

/* Sum over all slots under which the device is held; 0 if it was met before 'i'. */
static int64_t gpu_map_sum_device(const struct alloc_map *map, size_t i, const char *id)
{
    struct alloc_device_state other;
    int64_t sum = 0;
    bool end = false;

    for (size_t j = 0; !end; j++) {
        if (!gpu_map_find_counted(map, j, &other, &end) || strcmp(other.id, id) != 0)
            continue;
        if (j < i)
            return 0;
        if (__builtin_add_overflow(sum, other.allocated, &sum))
            return INT64_MAX; /* only a damaged resource.txt holds as much */
    }
    return sum;
}

void alloc_map_write_gpu(const struct alloc_map *map, struct jsonw *w)
{
    struct alloc_device_state device;
    char text[AMOUNT_TEXT_MAX];
    bool end = false;

    jsonw_object_begin(w);
    for (size_t i = 0; !end; i++) {
        int64_t sum, cents, rest;

        if (!gpu_map_find_counted(map, i, &device, &end))
            continue;
        sum = gpu_map_sum_device(map, i, device.id);
        if (sum == 0)
            continue;
        cents = sum / (AMOUNT_ONE / 100);
        rest = sum % (AMOUNT_ONE / 100) * 2;
        cents += rest > AMOUNT_ONE / 100 || (rest == AMOUNT_ONE / 100 && cents % 2);
        (void)snprintf(text, sizeof(text), "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
        jsonw_member_str(w, device.id, text);
    }
    jsonw_object_end(w);
}
