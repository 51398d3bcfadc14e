/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - the last bytes of a terminal's output, for those who attach */
#include "runner/replay.h"

#include <string.h>

#include "base/cleanup.h"

void replay_add(struct replay *replay, const char *bytes, size_t len)
{
    if (len > sizeof(replay->bytes)) {
        replay->total += len - sizeof(replay->bytes);
        bytes += len - sizeof(replay->bytes);
        len = sizeof(replay->bytes);
    }
    while (len) {
        size_t at = replay->total % sizeof(replay->bytes);
        size_t part = AQ_MIN(len, sizeof(replay->bytes) - at);

        memcpy(replay->bytes + at, bytes, part);
        replay->total += part;
        bytes += part;
        len -= part;
    }
}

const char *replay_get(const struct replay *replay, size_t at, size_t *ret_len)
{
    size_t kept = AQ_MIN(replay->total, sizeof(replay->bytes));
    size_t from = (replay->total - kept + at) % sizeof(replay->bytes);

    *ret_len = at < kept ? AQ_MIN(kept - at, sizeof(replay->bytes) - from) : 0;
    return replay->bytes + from;
}
