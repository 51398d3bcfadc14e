/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a resource group, and the options that requests give one by one. */
#include "model/resource_group.h"

#include "base/clock.h"
#include "model/resource_opts.h"

#define COUNT_MAX 1000000
#define SECONDS_MAX (INT64_C(1) << 30)

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct resource_group, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)
#define OPTION_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct resource_group_request, member)
#define OPTION(type_, member) OPTION_AS(type_, member, #member)

#define NAME                                                                                       \
    { MEMBER(FIELD_TEXT, name), .flags = FIELD_REQUIRED | FIELD_LINE | FIELD_KEY | FIELD_NAME | FIELD_FILTER, \
      .min = 1, .max = 64, .title = "NAME" }
#define DESCRIPTION                                                                                \
    { MEMBER(FIELD_TEXT, description),                                                             \
      .flags = FIELD_NULLABLE | FIELD_LINES | FIELD_FILTER | FIELD_SHRINKS, .max = 512,            \
      .title = "DESCRIPTION", .help = "shown in lists" }
#define IS_ACTIVE                                                                                  \
    { MEMBER(FIELD_BOOL, is_active), .flags = FIELD_FILTER, .initial = true, .title = "ACTIVE",    \
      .help = "whether sessions may be made in it" }
#define SCHEDULER                                                                                  \
    { MEMBER(FIELD_TEXT, scheduler), .flags = FIELD_FILTER, .min = 1, .max = 64,                   \
      .initial_text = "fifo", .doc = "fifo, lifo, drf or fair-share", .title = "SCHEDULER",        \
      .arg = "NAME", .help = "fifo, lifo, drf (who holds least), fair-share (who used least)" }
#define SCHEDULER_OPTS                                                                             \
    { MEMBER(FIELD_JSON_TEXT, scheduler_opts), .flags = FIELD_EXTRA,                  \
      .initial_text = "{}", .title = "OPTIONS",                                                    \
      .help = "more about it, e.g. {\"backfill\": true}" }
/* Imports leave it out: Backend.AI's drivers are not here. */
#define DRIVER_OPTS                                                                                \
    { MEMBER(FIELD_JSON_TEXT, driver_opts), .flags = FIELD_OURS | FIELD_UNAUDITED,                 \
      .initial_text = "{}", .doc = "kept for Backend.AI's clients, and without effect" }
/* The timeout that counts is the one in scheduler_opts, which lists show. */
#define PENDING_TIMEOUT                                                                            \
    { MEMBER_AS(FIELD_USEC, pending_timeout_usec, "pending_timeout_sec"),                          \
      .flags = FIELD_OURS | FIELD_UNSHOWN | FIELD_WIDE, .max = SECONDS_MAX,                        \
      .column = "pending_timeout", .doc = "0 = none", .title = "PENDING-TIMEOUT",                  \
      .help = "cancel what has waited so long; 0 = never" }
#define SELECTION                                                                                  \
    { MEMBER(FIELD_TEXT, selection), .flags = FIELD_OURS | FIELD_UNSHOWN, .min = 1, .max = 64,     \
      .initial_text = "concentrated",                                                              \
      .doc = "concentrated, dispersed, round-robin, legacy, fragmentation, bin-packing or "        \
             "high-performance",                                                                   \
      .title = "SELECTION", .arg = "NAME",                                                         \
      .help = "where to: concentrated, dispersed, round-robin, ..." }
#define AGENT_LOSS                                                                                 \
    { MEMBER(FIELD_TEXT, agent_loss_policy), .flags = FIELD_OURS | FIELD_UNSHOWN,                  \
      .min = 1, .max = 16, .initial_text = "wait", .words = "wait|terminate|requeue",              \
      .doc = "wait, terminate or requeue", .title = "AGENT-LOSS",                                  \
      .help = "what becomes of sessions whose agent is lost" },                                    \
    { MEMBER_AS(FIELD_USEC, agent_loss_grace_usec, "agent_loss_grace_sec"),                        \
      .flags = FIELD_OURS | FIELD_UNSHOWN | FIELD_WIDE, .max = SECONDS_MAX,                        \
      .initial = 300 * USEC_PER_SEC, .column = "agent_loss_grace", .title = "GRACE",               \
      .help = "how long it may be lost before that" }

#define OPTIONS                                                                                    \
    { OPTION(FIELD_INT, retries), .flags = FIELD_WIDE, .max = COUNT_MAX,                           \
      .doc = "fifo without backfill: who found no room so often is passed by others; 0 = nobody",  \
      .title = "RETRIES",                                                                          \
      .help = "fifo: who found no room so often is passed by others; 0 = nobody" },                \
    { OPTION(FIELD_MAYBE, backfill), .flags = FIELD_WIDE,                                          \
      .doc = "others may start first if that delays nobody; true for a new group",                 \
      .title = "BACKFILL", .help = "others may start first if that delays nobody" },               \
    { OPTION(FIELD_INT, backfill_reservations), .flags = FIELD_EXTRA, .max = COUNT_MAX,            \
      .doc = "that many get a time to start; 0 = all", .title = "RESERVATIONS",                    \
      .help = "so many of those who wait get a time to start; 0 = all" },                          \
    { OPTION(FIELD_INT, backfill_max_wait_sec), .flags = FIELD_EXTRA | FIELD_SECONDS,              \
      .max = SECONDS_MAX,                                                                          \
      .doc = "resources are kept for a session without a start time that has waited this long; 0 = never", \
      .title = "MAX-WAIT", .help = "keep resources for a session that waits longer; 0 = never" },  \
    { OPTION_AS(FIELD_MAYBE, splitting, RESOURCE_OPTS_SPLITTING), .flags = FIELD_EXTRA,            \
      .doc = "whether amounts of devices may be split, of sessions that do not say it",            \
      .title = "SPLITTING",                                                                        \
      .help = "amounts of devices may be split, unless a session says otherwise" },                \
    { OPTION(FIELD_STR_LIST, allowed_session_types), .flags = FIELD_WIDE, .max = 8,                \
      .doc = "what may be made in it; interactive and batch unless set", .title = "TYPES",         \
      .arg = "TYPE", .help = "interactive, batch or system: what may be made in it; repeatable" }, \
    { OPTION(FIELD_STR_LIST, networks), .flags = FIELD_WIDE, .max = 2,                             \
      .doc = "private, host: networks that its sessions may ask for; private unless set",          \
      .title = "NETWORKS", .arg = "NETWORK,...",                                                   \
      .help = "private, host: networks that its sessions may ask for" },                           \
    { OPTION(FIELD_OBJECT, fair_share),                                                            \
      .doc = "half_life_days, lookback_days, default_weight, and weights: slot:NAME, "             \
             "domain:NAME, project:ID, user:ID or E-MAIL, user:ID/PROJECT-ID; what is not named "  \
             "stays, what is null goes",                                                           \
      .help = "what counts: half_life_days=7, user:E-MAIL=2, ...; repeatable" },                   \
    { OPTION(FIELD_OBJECT, preemption), .flags = FIELD_EXTRA,                                      \
      .doc = "which sessions preempt which: enabled, order, mode, interactive, victim_scope, "     \
             "preemption_min_runtime, preemptible_priority; what is not named stays",              \
      .title = "PREEMPTION",                                                                       \
      .help = "which sessions preempt which: enabled=yes, order=newest, ..." },                    \
    { OPTION(FIELD_OBJECT, handler_options), .flags = FIELD_EXTRA,                                 \
      .doc = "how often a start is tried, and for how long: schedule-sessions, "                   \
             "check-precondition, start-sessions, each with .max_retry_count and .timeout; "       \
             "what is not named stays",                                                            \
      .title = "HANDLER-OPTIONS",                                                                  \
      .help = "start-sessions.max_retry_count=5, check-precondition.timeout=600 ..." }

#define WITHOUT_EFFECT                                                                             \
    { .names = "without_effect", .type = FIELD_STR_LIST, .flags = FIELD_EXTRA,                     \
      .title = "WITHOUT-EFFECT" }

#define CHANGES                                                                                    \
    DESCRIPTION, IS_ACTIVE, SCHEDULER, SCHEDULER_OPTS, DRIVER_OPTS, SELECTION, OPTIONS,            \
    PENDING_TIMEOUT, AGENT_LOSS

const struct field resource_group_create[] = { NAME, CHANGES, FIELD_END };
const struct field resource_group_change[] = { CHANGES, FIELD_END };
static const struct field fields[] = {
    NAME, DESCRIPTION, IS_ACTIVE, SCHEDULER, SCHEDULER_OPTS, DRIVER_OPTS, PENDING_TIMEOUT,
    SELECTION, AGENT_LOSS, FIELD_END,
};
static const struct field columns[] = {
    NAME, IS_ACTIVE, SCHEDULER, SELECTION, OPTIONS, PENDING_TIMEOUT, AGENT_LOSS, SCHEDULER_OPTS,
    WITHOUT_EFFECT, DESCRIPTION, FIELD_END,
};
/* clang-format on */

const struct resource_group_request resource_group_no_request = {
    .group.pending_timeout_usec = RESOURCE_GROUP_UNSET,
    .retries = RESOURCE_GROUP_UNSET,
    .backfill_reservations = RESOURCE_GROUP_UNSET,
    .backfill_max_wait_sec = RESOURCE_GROUP_UNSET,
};

const struct entity resource_group_entity = {
    .size = sizeof(struct resource_group),
    .fields = fields,
    .create = resource_group_create,
    .change = resource_group_change,
    .columns = columns,
};
