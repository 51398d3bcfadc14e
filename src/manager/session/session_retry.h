/* SPDX-License-Identifier: Apache-2.0 */
/* session_retry.h - the request for a new session that repeats one that has ended
 *
 * What a session keeps of its request (struct session_spec, the amounts of its kernels) is asked
 * for again, so rights, limits and quotas apply as to any new session. Pure but for lookups in
 * memory; loop's thread only.
 */
#ifndef AQ_MANAGER_SESSION_SESSION_RETRY_H
#define AQ_MANAGER_SESSION_SESSION_RETRY_H

#include "manager/call/api.h"
#include "store/array_list.h"
#include "store/query.h"

/* Members of a request that repeats a session; zeroed: as it was. */
struct session_retry_params {
    const char *owner_access_key;
    const char *name, *image;
    struct slot *changes; /* amounts per kernel that differ */
    size_t change_count;
    bool with_suggested;   /* the suggested amounts of its summary */
    bool with_empty_input; /* of a session whose input came from its client */
};

/* The session and rows that belong to it; borrowed. */
struct session_retry_source {
    const struct session_row *row; /* whole, with kernels and runs */
    const struct array_row *array; /* that it is an element of; NULL = none */
    const struct str_list *waits;  /* "CONDITION:ID" of dependencies that have not ended */
    size_t ended_dependencies;     /* which are not waited for again */
};

/* A request with texts in 'arena' and in the source's rows, its amounts to be released with
 * session_retry_done(). 'left_out' gets what the new session lacks, as words of the API:
 * "dependencies", "array", "input". -EBUSY (session-not-ended), -EPERM (session-type-lacks-feature,
 * insufficient-privilege), -ESTALE (session-not-repeatable), -EINVAL with a field.
 */
#define SESSION_RETRY_LEFT_OUT_MAX 3
int session_retry_build(const struct api *api, const struct principal *who, struct arena *arena,
                        const struct session_retry_source *source,
                        const struct session_retry_params *params, struct session_request *ret,
                        struct str_list *left_out, struct aq_error *err);

void session_retry_done(struct session_request *request);

#endif
