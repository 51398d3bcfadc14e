/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.h - domains, projects, users, keypairs, policies, resource groups
 *
 * What the scheduler and the lifecycle need stays
 * in memory; the rest of a row is read by SQL.
 */
#ifndef AQ_MODEL_ACCOUNTS_H
#define AQ_MODEL_ACCOUNTS_H

#include "base/uuid.h"
#include "model/domain.h"
#include "model/keypair.h"
#include "model/keypair_policy.h"
#include "model/project.h"
#include "model/resource_group.h"
#include "model/session.h"
#include "model/slot.h"

enum user_role { ROLE_SUPERADMIN, ROLE_ADMIN, ROLE_USER, ROLE_MONITOR };
enum user_status { USER_ACTIVE, USER_INACTIVE, USER_DELETED, USER_BEFORE_VERIFICATION };

const char *user_role_name(enum user_role r);
int user_role_parse(const char *text, enum user_role *ret);
const char *user_status_name(enum user_status s);
int user_status_parse(const char *text, enum user_status *ret);

struct user {
    struct uuid id;
    char *username, *email, *full_name, *description, *domain;
    enum user_role role;
    enum user_status status;
    struct uuid *project_ids; /* memberships */
    size_t project_count, project_cap;
    struct slots total_slots;    /* of all their keypairs; missing = unlimited */
    int max_concurrent_sessions; /* <= 0 = no limit */
    char *allowed_client_ip;     /* "10.0.0.0/8,::1": networks; NULL = from anywhere */
    bool need_password_change;   /* before the next login with it */
};

void user_done(struct user *u);

#endif
