/* SPDX-License-Identifier: Apache-2.0 */
/* user.h - people, and what their sessions may hold */
#ifndef AQ_MODEL_USER_H
#define AQ_MODEL_USER_H

#include "base/lists.h"
#include "base/uuid.h"
#include "model/entity.h"

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
    int64_t created_usec; /* monotonic, in the manager's memory only: rows have 'created_at' */
};

/* A decoded request: the members, and what becomes members only after a check. */
struct user_request {
    struct user user;
    const char *role, *status, *password; /* NULL = not given */
    struct str_list groups, networks;     /* .items NULL = not given */
};

extern const struct field user_create[], user_change[];
/* Columns of a file of users that are imported; field.csv has their names. */
extern const struct field user_csv_columns[];
extern const struct entity user_entity;

#endif
