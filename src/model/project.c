/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a project. */
#include "model/project.h"

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct project, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)

#define NAME(more)                                                                                 \
    { MEMBER(FIELD_TEXT, name), .flags = (more) | FIELD_LINE | FIELD_NAME | FIELD_FILTER,          \
      .min = 1, .max = 64, .title = "NAME", .arg = "NAME", .help = "a new name" }
#define DOMAIN                                                                                     \
    { MEMBER(FIELD_TEXT, domain), .flags = FIELD_REQUIRED | FIELD_FILTER, .min = 1, .max = 64,     \
      .backendai = "domain_name", .title = "DOMAIN", .arg = "DOMAIN",                              \
      .help = "default: the configured one" }

/* Given by requests. */
#define CHANGES                                                                                    \
    { MEMBER(FIELD_TEXT, description),                                                             \
      .flags = FIELD_NULLABLE | FIELD_LINES | FIELD_FILTER | FIELD_SHRINKS, .max = 512,            \
      .title = "DESCRIPTION", .help = "shown in lists" },                                          \
    { MEMBER(FIELD_BOOL, is_active), .flags = FIELD_FILTER, .initial = true, .title = "ACTIVE",    \
      .help = "whether sessions may be made in it" },                                              \
    { MEMBER_AS(FIELD_SLOTS, total_slots, "total_slots|total_resource_slots"),                     \
      .backendai = "total_resource_slots", .doc = "missing slots are unlimited",                   \
      .title = "LIMITS", .help = "all that its sessions may hold at a time" }
/* clang-format on */

const struct field project_create[] = { NAME(FIELD_REQUIRED), DOMAIN, CHANGES, FIELD_END };
const struct field project_change[] = { NAME(0), CHANGES, FIELD_END };
static const struct field fields[] = {
    { MEMBER(FIELD_UUID, id), .flags = FIELD_KEY | FIELD_UNAUDITED | FIELD_FILTER | FIELD_WIDE,
      .title = "ID" },
    NAME(FIELD_REQUIRED),
    DOMAIN,
    CHANGES,
    FIELD_END,
};

const struct entity project_entity = {
    .size = sizeof(struct project),
    .fields = fields,
    .create = project_create,
    .change = project_change,
};
