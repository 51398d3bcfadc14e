/* SPDX-License-Identifier: Apache-2.0 */
/* redis_reply.h - one reply of a Redis server (RESP 2)
 *
 * https://redis.io/docs/latest/develop/reference/protocol-spec/
 *
 * A server may be hostile: a length is only believed as far as bytes have come, and a reply may have
 * REDIS_REPLY_MAX bytes, REDIS_ITEMS_MAX items in all and lists within lists of REDIS_DEPTH_MAX.
 */
#ifndef AQ_REDIS_REDIS_REPLY_H
#define AQ_REDIS_REDIS_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

#define REDIS_REPLY_MAX (1u << 20)
#define REDIS_ITEMS_MAX 16384u
#define REDIS_DEPTH_MAX 4u

enum redis_type { REDIS_NULL, REDIS_STATUS, REDIS_ERROR, REDIS_INTEGER, REDIS_TEXT, REDIS_LIST };

struct redis_reply {
    enum redis_type type;
    const char *text; /* STATUS, ERROR, TEXT: 'len' bytes and a NUL; may have NULs within */
    size_t len;
    int64_t number; /* INTEGER */
    struct redis_reply *items;
    size_t count; /* LIST */
};

/* The reply at the beginning of bytes[len], copied into the arena. Returns how many bytes it has, 0 if
 * more must come, -EPROTO for what is not a reply, -E2BIG past a limit.
 */
ssize_t redis_reply_read(const char *bytes, size_t len, struct arena *arena,
                         struct redis_reply *ret, struct aq_error *err) AQ_UNTRUSTED;

/* An integer, or a text that is one, from 'min' to 'max'. */
bool redis_reply_get_number(const struct redis_reply *reply, int64_t min, int64_t max,
                            int64_t *ret);

#endif
