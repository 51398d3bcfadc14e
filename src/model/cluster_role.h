/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_role.h - kernels of a session that are not like its main one
 *
 * Without roles all kernels of a session run what the session says: the first is "main1", the
 * others are "sub1" and so on. With roles the session says what "main1" runs, and each role what
 * its kernels do; nothing of the one is the other's but what concerns the session as a whole. The
 * session keeps its roles as JSON in session_spec.roles. Pure.
 */
#ifndef AQ_MODEL_CLUSTER_ROLE_H
#define AQ_MODEL_CLUSTER_ROLE_H

#include "model/session_spec.h"

#define CLUSTER_ROLES_MAX 64
#define CLUSTER_SIZE_MAX 1000 /* kernels of a session */

/* Zeroed: nothing is said. */
struct cluster_role {
    const char *name;                        /* of 15 small letters, digits and '-'; not "main" */
    int64_t count;                           /* kernels */
    const char *image, *command, *bootstrap; /* as in struct session_spec */
    struct pair_list environ;
};

/* It is part of host names, with a number behind it: "main", "worker". */
bool cluster_role_is_name(const char *name);

/* -EINVAL with a field as "roles.image". */
int cluster_role_check(const struct cluster_role *role, struct aq_error *err);

/* Replace the field of an error about kernels, "config.resources.cpu" or "clusterSize", by that of
 * their role: "roles.worker.resources.cpu", "roles.worker.count". Other fields are unchanged.
 */
void cluster_role_set_field(const char *role, struct aq_error *err);

/* The list as JSON. */
void cluster_roles_write(const struct cluster_role *roles, size_t count, struct jsonw *w);

/* The roles of a session (NULL = none); in the arena. -EINVAL. Of the largest list this takes
 * milliseconds and a MiB: not to be done for each kernel.
 */
int cluster_roles_parse(const char *roles, struct arena *arena, struct cluster_role **ret,
                        size_t *ret_count, struct aq_error *err) AQ_UNTRUSTED;

/* Make 'spec', a session's, what a kernel of this role runs; it borrows from 'roles'. */
void cluster_role_apply(const struct cluster_role *roles, size_t count, const char *role,
                        struct session_spec *spec);

#endif
