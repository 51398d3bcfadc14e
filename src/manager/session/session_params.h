/* SPDX-License-Identifier: Apache-2.0 */
/* session_params.h - what POST /session takes */
#ifndef AQ_MANAGER_SESSION_SESSION_PARAMS_H
#define AQ_MANAGER_SESSION_SESSION_PARAMS_H

#include "manager/call/api.h"

extern const struct field session_fields[];

/* As the members of "config" have them: names or ids, targets by these, and options by both. */
struct session_mount_params {
    struct str_list names, ids;
    struct pair_list targets, id_targets;
    const json_t *options; /* NULL = none */
};

struct session_params {
    struct session_request request; /* texts in the request's arena; resources are ours */
    const char *type, *starts_at, *group, *domain;
    const char *owner_access_key;
    const char *array; /* indices and limit of an array; NULL = one session */
    int64_t cluster_size, priority;
    struct str_list dependencies;
    const json_t *resources, *roles;
    struct session_mount_params mounts;
    bool enqueue_only;
    int64_t max_wait_sec; /* 0 = as long as it takes */
};

/* Decode and check one object of the body. params->request is complete and
 * independent of 'object' afterwards. On failure nothing is to be released.
 */
int session_params_read(const struct api *api, struct request *req, const json_t *object,
                        struct session_params *ret, struct aq_error *err);
void session_params_done(struct session_params *params);

/* Amounts per kernel of an object of slots (NULL = none), to be released with slots_done(). -EINVAL
 * with a field such as "config.resources.cpu".
 */
int session_params_read_slots(const struct api *api, const json_t *resources, struct slots *ret,
                              struct aq_error *err);

#endif
