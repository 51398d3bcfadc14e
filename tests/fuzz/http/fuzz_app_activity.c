/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a connection to an app, in pieces: the count of work is never more than the bytes, and
 * no piece is left over.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "http/app_activity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_repeated(void *data, uint64_t hash)
{
    (void)data;
    return hash % 3 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct app_activity_found found = { .is_repeated = is_repeated };
    size_t piece = size ? data[0] % 64u + 1 : 1;
    struct app_activity a;

    app_activity_begin(&a);
    for (size_t at = 1; at < size; at += piece)
        app_activity_take(&a, (const char *)data + at, AQ_MIN(piece, size - at), &found);
    if (found.bytes < 0 || (uint64_t)found.bytes > size)
        abort();
    app_activity_done(&a);
    return 0;
}
