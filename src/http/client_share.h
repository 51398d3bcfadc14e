/* SPDX-License-Identifier: Apache-2.0 */
/* client_share.h - how many connections each client has, and whether that is more than its share
 *
 * A client is an address, an IPv6 network of 64 bits or a user, by name. One thread.
 */
#ifndef AQ_HTTP_CLIENT_SHARE_H
#define AQ_HTTP_CLIENT_SHARE_H

#include "base/map.h"

#define CLIENT_SHARE_NAME_MAX 64

struct client_share {
    char name[CLIENT_SHARE_NAME_MAX];
    size_t connections; /* the caller counts */
};

/* Of this client, in a map from names to shares; a new one has no connections and is the map's
 * until client_share_leave().
 */
struct client_share *client_share_get(struct map *shares, const char *name);

/* Has it half of the places that are free, beyond a few, where 'used' of 'max' are taken? False
 * for NULL.
 */
bool client_share_is_used_up(const struct client_share *share, size_t used, size_t max);

/* One connection less; the last one removes the share. NULL is fine. */
void client_share_leave(struct map *shares, struct client_share *share);

#endif
