/* SPDX-License-Identifier: Apache-2.0 */
/* lists.h - lists of texts, numbers, ids and pairs
 *
 * Plain data; who hands one out says whose its items are. Zeroed = empty.
 */
#ifndef AQ_BASE_LISTS_H
#define AQ_BASE_LISTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text_pair.h"
#include "base/uuid.h"

struct str_list {
    const char **items;
    size_t count;
};

struct int_list {
    int64_t *items;
    size_t count;
};

struct uuid_list {
    struct uuid *items;
    size_t count, cap;
};

struct pair_list {
    struct text_pair *items;
    size_t count;
};

#endif
