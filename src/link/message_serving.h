/* SPDX-License-Identifier: Apache-2.0 */
/* message_serving.h - messages about model services: health of replicas, routes of proxies, use
 *
 * See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_SERVING_H
#define AQ_LINK_MESSAGE_SERVING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lists.h"
#include "base/uuid.h"

/* Of a kernel with a probe (kernel_spec.probe_port). */
struct msg_kernel_health {
    struct uuid kernel_id;
    int64_t attempt;
    const char *state; /* "starting" (never answered yet), "ready", "unhealthy" (answered before) */
    const char *text;  /* what the last probe found, for people; NULL = it answered as expected */
    int64_t at_usec;   /* wall clock: since when */
};

#define MSG_SERVICES_MAX 1024       /* of a cluster */
#define MSG_REPLICAS_MAX 1024       /* of a service */
#define MSG_SERVING_TOKENS_MAX 1024 /* of a service */

struct msg_serving_token { /* a bearer token; the token itself is with its user alone */
    struct uuid id;
    const char *hash;      /* SHA-256 of the token, 64 lower-case hexadecimal digits */
    int64_t expires_usec;  /* wall clock; 0 = never */
    struct str_list paths; /* prefixes of paths that it may ask for; empty = all */
    int64_t rate_milli;    /* thousandths of requests a second, in a bucket of 10 s; 0 = no limit */
    int64_t budget;        /* OpenAI tokens that are left; 0 = no limit, see is_spent */
    bool is_spent;         /* its budget is used up */
};

struct msg_serving_replica {
    struct uuid session_id;
    int64_t revision;
    int64_t share_ppm; /* what it gives in relation to others, millionths; 1000000 = one share */
    int64_t ratio_ppm; /* traffic ratio; is 0 only with is_draining */
    bool is_draining;  /* takes no new request; those under way go on */
    bool is_unhealthy; /* its agent says so: only if there is no other */
};

struct msg_serving_service {
    struct uuid id;
    const char *name;
    bool is_gone;           /* it has ended, or ends: only id and name are there, and the tokens of
                               what is under way */
    bool is_public;         /* without tokens */
    const char *access_key; /* of its owner, on whose behalf replicas are reached */
    int64_t cap;            /* requests under way in one replica, of this proxy; 0 = no limit */
    int64_t queue_max;      /* requests that wait, in this proxy */
    int64_t queue_bytes;    /* and their bytes together */
    int64_t queue_usec;     /* how long one waits before 503 */
    int64_t request_usec;   /* no byte of an answer for so long: 504; 0 = no limit */
    const char *affinity;   /* "none", "header:NAME", "prompt" */
    int64_t wanted;         /* replicas; 0 and no replica = it sleeps, requests wake it */
    const char *problem;    /* why it has no replica, for people; NULL = none is known */
    struct msg_serving_token *tokens;
    size_t token_count;
    struct msg_serving_replica *replicas;
    size_t replica_count;
};

struct msg_serving_routes {
    int64_t version; /* grows, also over restarts of the manager: wall clock of it */
    bool is_whole;   /* services that are not listed are gone; else as they were */
    struct msg_serving_service *services;
    size_t service_count;
};

struct msg_serving_done {
    int64_t version;
};

struct msg_serving_replica_use { /* counts and sums are since the last serving.use */
    struct uuid session_id;
    int64_t revision;  /* of the routes; 0: an older proxy, which has nothing of the second group */
    int64_t in_flight; /* now */
    int64_t requests, failures; /* failures: no answer, or one that broke off */
    bool is_ejected; /* this proxy routes no requests to it: it refused or reset connections */

    int64_t ok, client_errors, server_errors, broken; /* as of the service */
    int64_t duration_usec, first_byte_usec;           /* sums over the answered */
    /* The answered by serving/latency.h; buckets at the end that are 0 may be absent. */
    struct int_list duration_buckets, first_byte_buckets;
    int64_t prompt_tokens, completion_tokens, cached_tokens;
};

struct msg_serving_token_use { /* since the last */
    struct uuid id;
    int64_t requests, prompt_tokens, completion_tokens;
    int64_t cached_tokens, ok, client_errors, server_errors, refused;
};

struct msg_serving_service_use { /* counts and sums are since the last serving.use */
    struct uuid id;
    int64_t in_flight, queued;                /* now; in_flight without those that wait */
    int64_t arrived;                          /* requests that were let in */
    int64_t ok, client_errors, server_errors; /* answers 2xx-3xx, 4xx, 5xx of replicas */
    int64_t refused;                          /* 429 and 503 of the proxy */
    int64_t broken;                           /* clients that left, answers that broke off */
    int64_t duration_usec, first_byte_usec, queue_usec; /* sums over the answered */
    int64_t waited; /* how many of the answered had waited in the queue */
    int64_t prompt_tokens, completion_tokens, cached_tokens;
    int64_t oldest_usec; /* how long the first of those that wait now has waited */
    struct msg_serving_replica_use *replicas; /* in the others nothing is under way */
    size_t replica_count;
    struct msg_serving_token_use *tokens;
    size_t token_count;
};

/* At once when a request comes to a service without a replica, else when the counts have changed,
 * at most each 100 ms.
 */
struct msg_serving_use {
    int64_t version; /* of the routes in use */
    struct msg_serving_service_use *services;
    size_t service_count;
};

#endif
