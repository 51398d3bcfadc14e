/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a keypair policy. */
#include "model/keypair_policy.h"

#define SECONDS_MAX (INT64_C(1) << 40)
#define COUNT_MAX 1000000
/* As many sessions may wait as one command makes with --count. */
#define PENDING_SESSIONS 100000

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct keypair_policy, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)
#define LIMIT(type_, member, most)                                                                 \
    MEMBER(type_, member), .max = (most), .doc = "0 = no limit"

#define NAME                                                                                       \
    { MEMBER(FIELD_TEXT, name), .flags = FIELD_REQUIRED | FIELD_LINE | FIELD_KEY | FIELD_NAME | FIELD_FILTER, \
      .min = 1, .max = 256, .title = "NAME", .place = 1 }

/* Given by requests. */
#define CHANGES                                                                                    \
    { MEMBER(FIELD_BOOL, unlimited_unspecified), .flags = FIELD_WIDE,                              \
      .backendai = "default_for_unspecified",                                                      \
      .doc = "slots that total_slots does not name are unlimited, else 0",                         \
      .title = "OTHERS-UNLIMITED", .place = 4,                                                     \
      .help = "slots that --total-slots does not name are unlimited, else none" },                 \
    { MEMBER_AS(FIELD_SLOTS, total_slots, "total_slots|total_resource_slots"),                     \
      .backendai = "total_resource_slots", .title = "LIMITS", .place = 3,                          \
      .help = "all that a keypair's sessions may hold at a time" },                                \
    { LIMIT(FIELD_INT, max_session_lifetime_sec, SECONDS_MAX), .flags = FIELD_SECONDS | FIELD_WIDE, \
      .backendai = "max_session_lifetime", .title = "LIFETIME", .place = 12,                       \
      .help = "none = no limit" },                                                                 \
    { MEMBER(FIELD_INT, idle_timeout_sec), .min = -1, .max = SECONDS_MAX,                          \
      .doc = "0 or none = no limit, -1 = as config/idle of the configuration tree says",           \
      .flags = FIELD_SECONDS | FIELD_WIDE | FIELD_FILTER,                                          \
      .backendai = "idle_timeout", .title = "IDLE-TIMEOUT", .place = 11,                           \
      .help = "none = no limit, -1 = the threshold in config/idle" },                              \
    { LIMIT(FIELD_INT, max_idle_extension_sec, SECONDS_MAX),                                       \
      .flags = FIELD_SECONDS | FIELD_WIDE | FIELD_OURS, .title = "IDLE-EXTENSION", .place = 13,    \
      .help = "total extension of an idle session by users, none = no limit" },                      \
    { LIMIT(FIELD_INT32, max_concurrent_sessions, COUNT_MAX), .flags = FIELD_FILTER,               \
      .title = "SESSIONS", .place = 5, .help = "0 = no limit" },                                   \
    { LIMIT(FIELD_INT32, max_concurrent_sftp_sessions, COUNT_MAX), .flags = FIELD_WIDE,            \
      .initial = 1, .title = "SFTP", .place = 6 },                                                 \
    { LIMIT(FIELD_INT32, max_containers_per_session, COUNT_MAX), .flags = FIELD_FILTER,            \
      .title = "KERNELS", .place = 9, .help = "0 = no limit" },                                    \
    { LIMIT(FIELD_INT32, max_pending_sessions, COUNT_MAX), .flags = FIELD_NO_LIMIT,                \
      .initial = PENDING_SESSIONS, .backendai = "max_pending_session_count", .title = "PENDING",   \
      .place = 7, .help = "0 = no limit" },                                                        \
    { MEMBER_AS(FIELD_SLOTS, max_pending_slots,                                                    \
                "max_pending_slots|max_pending_session_resource_slots"),                           \
      .flags = FIELD_WIDE,                                                                         \
      .backendai = "max_pending_session_resource_slots",                                           \
      .doc = "all that sessions which wait may ask for together", .title = "PENDING-LIMITS",       \
      .place = 8, .help = "all that its sessions which wait may ask for together" },               \
    { MEMBER(FIELD_INT32, max_priority), .max = 100, .initial = 100, .title = "PRIORITY",          \
      .place = 10, .help = "0 to 100" },                                                           \
    { MEMBER(FIELD_BOOL, host_network), .flags = FIELD_OURS | FIELD_WIDE,                          \
      .doc = "sessions may use the network and the RDMA devices of their nodes, where the "        \
             "resource group allows it",                                                           \
      .title = "HOST-NETWORK", .place = 13,                                                        \
      .help = "may use network and RDMA devices of nodes, if the group allows it" }
/* clang-format on */

const struct field keypair_policy_create[] = { NAME, CHANGES, FIELD_END };
const struct field keypair_policy_change[] = { CHANGES, FIELD_END };
static const struct field fields[] = {
    NAME,
    { MEMBER(FIELD_BOOL, is_active), .flags = FIELD_OURS | FIELD_FILTER, .initial = true,
      .title = "ACTIVE", .place = 2 },
    CHANGES,
    FIELD_END,
};

const struct entity keypair_policy_entity = {
    .size = sizeof(struct keypair_policy),
    .fields = fields,
    .create = keypair_policy_create,
    .change = keypair_policy_change,
};
