/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how much of a server one client may have under way: requests, bytes of bodies, and of
 * answers that it has not taken
 *
 * A client is what the guard names: a user, an address. It may have QUOTA_REQUESTS_LEAST
 * requests and QUOTA_BYTES_LEAST bytes at any time, and beyond that half of what nobody has.
 * So one alone gets a third of all there is, n of them 1/(n+2) each, and the next one
 * finds room (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking
 * 6(2), 1998). Belongs to the thread of the loop.
 */
#ifndef AQ_HTTP_QUOTA_H
#define AQ_HTTP_QUOTA_H

#include "base/error.h"
#include "base/list.h"
#include "base/map.h"

#define QUOTA_REQUESTS_LEAST 16
#define QUOTA_BYTES_LEAST ((size_t)256 << 10)

/* Requests of a client that wait for their handlers: the server's, see ready.c. */
struct ready_client {
    struct list link;     /* while there are any */
    struct list requests; /* connection.ready_link */
};

struct quota_client {
    char *name;
    size_t requests, bytes;
    struct ready_client ready;
};

struct quota {
    struct map clients; /* name -> struct quota_client with a request under way */
    size_t requests, requests_max;
    size_t bytes, bytes_max;
};

void quota_init(struct quota *quota, size_t requests_max, size_t bytes_max);
/* Every request has left. */
void quota_done(struct quota *quota);

/* Count a request of the client; 'name' is copied. -EAGAIN (rate-limit-exceeded) if it has too
 * many.
 */
int quota_enter(struct quota *quota, const char *name, struct quota_client **ret,
                struct aq_error *err);

/* Whether there is room for so many bytes more; 'client' NULL = only that of the server. */
bool quota_has_room(const struct quota *quota, const struct quota_client *client, size_t bytes);

/* Count bytes of a request's body or of its answer. False if there is no room for them. */
bool quota_add_bytes(struct quota *quota, struct quota_client *client, size_t bytes);

/* The request with this many bytes is over; it had no client if that is NULL. */
void quota_leave(struct quota *quota, struct quota_client *client, size_t bytes);

#endif
