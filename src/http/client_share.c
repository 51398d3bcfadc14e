/* SPDX-License-Identifier: Apache-2.0 */
/* client_share.c - see client_share.h */
#include "http/client_share.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

#define SHARE_LEAST 16 /* of each client */

struct client_share *client_share_get(struct map *shares, const char *name)
{
    struct client_share *share = map_gets(shares, name);

    if (share)
        return share;
    share = aq_alloc(sizeof(*share));
    (void)snprintf(share->name, sizeof(share->name), "%s", name);
    map_sets(shares, name, share);
    return share;
}

bool client_share_is_used_up(const struct client_share *share, size_t used, size_t max)
{
    return share && share->connections >= SHARE_LEAST
           && share->connections >= (used < max ? (max - used) / 2 : 0);
}

void client_share_leave(struct map *shares, struct client_share *share)
{
    if (!share || --share->connections)
        return;
    (void)map_removes(shares, share->name);
    free(share);
}
