/* SPDX-License-Identifier: Apache-2.0 */
/* vec.c - room in growing arrays */
#include "base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

bool vec_grow(void *items, size_t *cap, size_t need, size_t size)
{
    size_t grown = *cap ? *cap : 8;
    void *old, *new;

    if (need <= *cap)
        return true;
    while (grown < need && grown <= SIZE_MAX / 2)
        grown *= 2;
    memcpy(&old, items, sizeof(old));
    new = grown < need || grown > SIZE_MAX / size ? NULL : realloc(old, grown * size);
    if (!new) {
        memory_is_short();
        return false;
    }
    memcpy(items, &new, sizeof(new));
    *cap = grown;
    return true;
}
