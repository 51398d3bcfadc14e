/* SPDX-License-Identifier: Apache-2.0 */
/* connection_reuse.c - connections whose stream has ended are kept for the next stream */
#include "link/connection_reuse.h"

#include <stdlib.h>

#include "base/memory.h"

struct connection_reuse {
    unsigned refs;
    void (*give)(void *owner, struct stream *connection); /* NULL: the owner has gone */
    void *owner;
};

struct connection_reuse *connection_reuse_new(void (*give)(void *owner, struct stream *connection),
                                              void *owner)
{
    struct connection_reuse *reuse = aq_alloc(sizeof(*reuse));

    *reuse = (struct connection_reuse){ .refs = 1, .give = give, .owner = owner };
    return reuse;
}

struct connection_reuse *connection_reuse_ref(struct connection_reuse *reuse)
{
    reuse->refs++;
    return reuse;
}

void connection_reuse_unref(struct connection_reuse *reuse)
{
    if (reuse && --reuse->refs == 0)
        free(reuse);
}

void connection_reuse_end(struct connection_reuse *reuse)
{
    if (!reuse)
        return;
    reuse->give = NULL;
    connection_reuse_unref(reuse);
}

void connection_reuse_give(struct connection_reuse *reuse, struct stream *connection,
                           const char *rest, size_t len)
{
    if (!reuse->give) {
        stream_close(connection);
        return;
    }
    stream_push_back(connection, rest, len);
    reuse->give(reuse->owner, connection);
}
