#include "link/reuse.h"

#include <stdlib.h>

struct reuse {
    unsigned refs;
    void (*give)(void *owner, struct stream *connection); /* NULL: the owner has gone */
    void *owner;
};

struct reuse *reuse_new(void (*give)(void *owner, struct stream *connection), void *owner)
{
    struct reuse *reuse = calloc(1, sizeof(*reuse));

    if (reuse)
        *reuse = (struct reuse){ .refs = 1, .give = give, .owner = owner };
    return reuse;
}

struct reuse *reuse_ref(struct reuse *reuse)
{
    reuse->refs++;
    return reuse;
}

void reuse_unref(struct reuse *reuse)
{
    if (reuse && --reuse->refs == 0)
        free(reuse);
}

void reuse_end(struct reuse *reuse)
{
    if (!reuse)
        return;
    reuse->give = NULL;
    reuse_unref(reuse);
}

void reuse_give(struct reuse *reuse, struct stream *connection, const char *rest, size_t len)
{
    if (!reuse->give || stream_push_back(connection, rest, len) < 0) {
        stream_close(connection);
        return;
    }
    reuse->give(reuse->owner, connection);
}
