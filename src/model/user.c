/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a user. */
#include "model/user.h"

#include <assert.h>
#include <errno.h>
#include <strings.h>

static const char *const role_names[] = { "superadmin", "admin", "user", "monitor", NULL };
static const char *const status_names[] = { "active", "inactive", "deleted", "before-verification",
                                            NULL };

static_assert(offsetof(struct user, project_count)
                      == offsetof(struct user, project_ids) + offsetof(struct uuid_list, count)
                  && offsetof(struct user, project_cap)
                         == offsetof(struct user, project_ids) + offsetof(struct uuid_list, cap),
              "memberships are laid out as struct uuid_list");

static int user_find_name(const char *const *names, const char *text)
{
    for (int i = 0; names[i]; i++)
        if (strcasecmp(names[i], text) == 0)
            return i;
    return -EINVAL;
}

const char *user_role_name(enum user_role r)
{
    return role_names[r];
}

int user_role_parse(const char *text, enum user_role *ret)
{
    int i = user_find_name(role_names, text);

    if (i < 0)
        return i;
    *ret = (enum user_role)i;
    return 0;
}

const char *user_status_name(enum user_status s)
{
    return status_names[s];
}

int user_status_parse(const char *text, enum user_status *ret)
{
    int i = user_find_name(status_names, text);

    if (i < 0)
        return i;
    *ret = (enum user_status)i;
    return 0;
}

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct user, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)
#define OPTION_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct user_request, member)
#define OPTION(type_, member) OPTION_AS(type_, member, #member)

#define ID                                                                                         \
    { MEMBER(FIELD_UUID, id), .flags = FIELD_KEY | FIELD_UNAUDITED | FIELD_FILTER | FIELD_WIDE,    \
      .backendai = "uuid", .title = "ID" }
#define EMAIL                                                                                      \
    { MEMBER(FIELD_TEXT, email), .flags = FIELD_REQUIRED | FIELD_LINE | FIELD_NAME | FIELD_FILTER, \
      .min = 3, .max = 255, .title = "E-MAIL",                                                     \
      .csv = "email|e_mail|mail|email_address|e_mail_address" }
#define USERNAME(more, doc_)                                                                       \
    { MEMBER(FIELD_TEXT, username), .flags = (more) | FIELD_LINE | FIELD_FILTER | FIELD_WIDE,      \
      .min = 1, .max = 64, .doc = (doc_), .title = "USERNAME", .arg = "NAME", .place = 2,          \
      .help = "default: the e-mail address", .csv = "username|user_name|user|login" }
#define FULL_NAME                                                                                  \
    { MEMBER(FIELD_TEXT, full_name),                                                               \
      .flags = FIELD_NULLABLE | FIELD_LINE | FIELD_FILTER | FIELD_SHRINKS, .max = 128,             \
      .title = "FULL NAME", .arg = "NAME", .place = 3, .help = "shown in lists",                   \
      .csv = "full_name|name|fullname" }
#define DESCRIPTION                                                                                \
    { MEMBER(FIELD_TEXT, description), .flags = FIELD_NULLABLE | FIELD_LINES | FIELD_OURS,         \
      .max = 500 }
#define DOMAIN                                                                                     \
    { MEMBER(FIELD_TEXT, domain), .flags = FIELD_REQUIRED | FIELD_FILTER, .min = 1, .max = 64,     \
      .backendai = "domain_name", .title = "DOMAIN", .arg = "DOMAIN", .place = 1,                  \
      .help = "default: the configured one", .csv = "domain" }
#define ROLE                                                                                       \
    { OPTION(FIELD_STR, role), .min = 1, .max = 16, .doc = "superadmin, admin, user or monitor",   \
      .title = "ROLE", .arg = "ROLE", .place = 4, .help = "superadmin, admin, user or monitor",    \
      .csv = "role" }
#define STATUS                                                                                     \
    { OPTION(FIELD_STR, status), .flags = FIELD_STATUS, .min = 1, .max = 32,                       \
      .doc = "active, inactive, deleted or before-verification", .title = "STATUS",                \
      .arg = "STATUS", .place = 5,                                                                 \
      .help = "active, inactive, deleted or before-verification", .csv = "status" }
#define PASSWORD                                                                                   \
    { OPTION(FIELD_STR, password), .flags = FIELD_SECRET, .min = 8, .max = 1024, .place = 11,      \
      .help = "read a password from standard input", .csv = "password" }
#define NEED_PASSWORD_CHANGE                                                                       \
    { MEMBER(FIELD_BOOL, need_password_change), .flags = FIELD_UNAUDITED | FIELD_WIDE,             \
      .doc = "whether the user must change the password before logging in with it",                \
      .title = "MUST-CHANGE", .place = 10,                                                         \
      .help = "whether the user must change the password before logging in with it" }
#define GROUPS                                                                                     \
    { OPTION(FIELD_STR_LIST, groups), .max = 256,                                                  \
      .doc = "ids or names of projects of the domain: all that the user is in; a new user is in"   \
             " 'default' by default",                                                              \
      .arg = "PROJECT", .place = 6,                                                                \
      .help = "the projects that the user is in; repeatable; a new one: default",                  \
      .csv = "projects|project|groups|group" }
#define NETWORKS                                                                                   \
    { OPTION_AS(FIELD_STR_LIST, networks, "allowed_client_ip"), .max = 64,                         \
      .doc = "networks such as 10.0.0.0/8, or addresses, from which alone the user is let in;"     \
             " [] or any = from anywhere",                                                         \
      .arg = "NETWORK", .place = 7,                                                                \
      .help = "let the user in from there alone; repeatable; any: from anywhere" }
#define LIMITS                                                                                     \
    { MEMBER_AS(FIELD_SLOTS, total_slots, "total_slots|total_resource_slots"),                     \
      .flags = FIELD_OURS | FIELD_WIDE, .backendai = "total_resource_slots",                       \
      .doc = "all that the user's sessions may hold at a time", .title = "LIMITS", .place = 8,     \
      .help = "all that the user's sessions may hold at a time" },                                 \
    { MEMBER(FIELD_INT32, max_concurrent_sessions), .flags = FIELD_OURS | FIELD_WIDE,              \
      .max = 1000000, .doc = "0 = no limit", .title = "SESSIONS", .place = 9,                      \
      .help = "0 = no limit" }

#define CHANGES                                                                                    \
    FULL_NAME, DESCRIPTION, ROLE, STATUS, PASSWORD, NEED_PASSWORD_CHANGE, GROUPS, NETWORKS, LIMITS
/* clang-format on */

const struct field user_create[] = {
    EMAIL, USERNAME(FIELD_NULLABLE, "default: the e-mail address"), DOMAIN, CHANGES, FIELD_END,
};
const struct field user_change[] = { USERNAME(0, NULL), CHANGES, FIELD_END };
const struct field user_csv_columns[] = {
    EMAIL,
    USERNAME(0, NULL),
    FULL_NAME,
    DOMAIN,
    GROUPS,
    ROLE,
    STATUS,
    { .names = "policy", .min = 1, .max = 256, .csv = "policy|keypair_policy|resource_policy" },
    PASSWORD,
    FIELD_END,
};

/* Networks are an array to clients, and a text in the audit log. */
static const struct field fields[] = {
    ID,
    EMAIL,
    USERNAME(0, NULL),
    FULL_NAME,
    DESCRIPTION,
    DOMAIN,
    { MEMBER(FIELD_ENUM, role), .flags = FIELD_FILTER | FIELD_OURS, .initial = ROLE_USER,
      .values = role_names },
    { MEMBER(FIELD_ENUM, status), .flags = FIELD_FILTER | FIELD_OURS, .initial = USER_ACTIVE,
      .values = status_names },
    { MEMBER_AS(FIELD_UUIDS, project_ids, "groups"), .flags = FIELD_OURS },
    { MEMBER(FIELD_OWN, allowed_client_ip), .flags = FIELD_UNAUDITED | FIELD_OURS },
    NEED_PASSWORD_CHANGE,
    LIMITS,
    FIELD_END,
};
static const struct field columns[] = {
    ID,
    EMAIL,
    USERNAME(0, NULL),
    FULL_NAME,
    ROLE,
    STATUS,
    DOMAIN,
    { .names = "projects", .type = FIELD_STR_LIST, .flags = FIELD_SHRINKS, .title = "PROJECTS" },
    NEED_PASSWORD_CHANGE,
    { .names = "allowed_client_ip",
      .type = FIELD_STR_LIST,
      .flags = FIELD_EXTRA,
      .title = "ALLOWED-FROM" },
    LIMITS,
    { .names = "created_at", .type = FIELD_TIME, .title = "AGE" },
    FIELD_END,
};

const struct entity user_entity = {
    .size = sizeof(struct user),
    .fields = fields,
    .create = user_create,
    .change = user_change,
    .columns = columns,
};
