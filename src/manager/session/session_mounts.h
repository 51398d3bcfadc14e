/* SPDX-License-Identifier: Apache-2.0 */
/* session_mounts.h - the folders that POST /session asks for */
#ifndef AQ_MANAGER_SESSION_SESSION_MOUNTS_H
#define AQ_MANAGER_SESSION_SESSION_MOUNTS_H

#include "manager/call/api.h"

/* As the members of "config" have them: names or ids, targets by these, and options by both. */
struct session_mount_params {
    struct str_list names, ids;
    struct pair_list targets, id_targets;
    const json_t *options; /* NULL = none */
};

/* What is wanted, in the request's arena; is_automatic is looked at and may become false. -EINVAL
 * names the member.
 */
int session_mounts_read(const struct api *api, struct request *req,
                        const struct session_mount_params *params, struct session_mounts *ret,
                        struct aq_error *err);

#endif
