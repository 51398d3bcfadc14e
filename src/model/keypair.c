/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a keypair. */
#include "model/keypair.h"

#define RATE_LIMIT_MAX 1000000000

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct keypair, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)

/* REST shows the user's e-mail address behind it. */
#define ACCESS_KEY                                                                                 \
    { MEMBER(FIELD_CHARS, access_key),                                                             \
      .flags = FIELD_KEY | FIELD_NAME | FIELD_UNSHOWN | FIELD_UNAUDITED | FIELD_FILTER,            \
      .max = ACCESS_KEY_MAX - 1, .title = "ACCESS-KEY" }
#define SECRET_KEY                                                                                 \
    { MEMBER(FIELD_SEALED, secret_key), .flags = FIELD_SECRET | FIELD_EXTRA,                       \
      .max = SECRET_KEY_MAX - 1, .column = "secret", .title = "SECRET-KEY" }
#define USER                                                                                       \
    { .names = "user", .type = FIELD_STR, .offset = offsetof(struct keypair_request, user),        \
      .flags = FIELD_REQUIRED, .min = 1, .max = 255, .doc = "e-mail address or id",                \
      .title = "USER" }
#define USER_ID                                                                                    \
    { MEMBER(FIELD_UUID, user_id), .flags = FIELD_UNAUDITED | FIELD_FILTER | FIELD_EXTRA,          \
      .backendai = "user", .title = "USER-ID" }
#define STATES                                                                                     \
    { MEMBER(FIELD_BOOL, is_active), .flags = FIELD_FILTER, .initial = true, .title = "ACTIVE",    \
      .help = "whether it is accepted" },                                                          \
    { MEMBER(FIELD_BOOL, is_admin), .flags = FIELD_FILTER, .title = "ADMIN",                       \
      .help = "whether it has the powers of an administrator's role" }
#define POLICY                                                                                     \
    { MEMBER_AS(FIELD_TEXT, policy, "policy|resource_policy"), .flags = FIELD_FILTER,              \
      .min = 1, .max = 256, .initial_text = "default", .backendai = "resource_policy",             \
      .title = "POLICY", .arg = "POLICY", .help = "what it may use" }
#define RATE_LIMIT                                                                                 \
    { MEMBER(FIELD_INT32, rate_limit), .flags = FIELD_FILTER | FIELD_WIDE, .max = RATE_LIMIT_MAX,  \
      .initial = 10000, .doc = "requests in 15 minutes; 0 = no limit", .title = "RATE-LIMIT",      \
      .help = "requests in 15 minutes; 0 = no limit" }
/* Entries of the audit log have its fingerprint. */
#define SSH_PUBLIC_KEY                                                                             \
    { MEMBER(FIELD_TEXT, ssh_public_key), .flags = FIELD_UNAUDITED }
/* clang-format on */

const struct field keypair_create[] = { USER, POLICY, STATES, RATE_LIMIT, FIELD_END };
const struct field keypair_change[] = { POLICY, STATES, RATE_LIMIT, FIELD_END };
static const struct field fields[] = {
    ACCESS_KEY, SECRET_KEY, USER_ID, STATES, POLICY, RATE_LIMIT, SSH_PUBLIC_KEY, FIELD_END,
};
static const struct field columns[] = {
    ACCESS_KEY, SECRET_KEY,
    USER,       USER_ID,
    STATES,     POLICY,
    RATE_LIMIT, { .names = "created_at", .type = FIELD_TIME, .title = "AGE" },
    FIELD_END,
};

const struct entity keypair_entity = {
    .size = sizeof(struct keypair),
    .fields = fields,
    .create = keypair_create,
    .change = keypair_change,
    .columns = columns,
};
