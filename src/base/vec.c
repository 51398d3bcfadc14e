/* SPDX-License-Identifier: Apache-2.0 */
/* vec.c - room in growing arrays */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool vec_grow(void *items, size_t *cap, size_t need, size_t size)
{
    size_t grown = *cap ? *cap : 8;
    void *old, *new;

    if (need <= *cap)
        return true;
    while (grown < need) {
        if (grown > SIZE_MAX / 2)
            return false;
        grown *= 2;
    }
    if (grown > SIZE_MAX / size)
        return false;
    memcpy(&old, items, sizeof(old));
    new = realloc(old, grown * size);
    if (!new)
        return false;
    memcpy(items, &new, sizeof(new));
    *cap = grown;
    return true;
}
