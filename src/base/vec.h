/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - room in growing arrays
 *
 * An array is three plain members of the struct that owns it: 'item *items',
 * 'size_t count', 'size_t cap'. vec_grow() makes room for one more; the owner
 * frees items. No wrapper type, so elements keep their type.
 *
 *     vec_grow(&list->items, &list->cap, list->count + 1, sizeof(*list->items));
 *     list->items[list->count++] = item;
 */
#ifndef AQ_BASE_VEC_H
#define AQ_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

/* Let *items (a pointer to any object pointer) hold at least 'need' elements
 * of 'size' bytes. False, with nothing changed, only after memory_recover().
 */
bool vec_grow(void *items, size_t *cap, size_t need, size_t size);

#endif
