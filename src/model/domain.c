/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a domain. */
#include "model/domain.h"

#include <string.h>

/* clang-format off */
#define MEMBER_AS(type_, member, names_)                                                           \
    .names = names_, .type = (type_), .offset = offsetof(struct domain, member)
#define MEMBER(type_, member) MEMBER_AS(type_, member, #member)

#define NAME(more, doc_)                                                                           \
    { MEMBER(FIELD_TEXT, name), .flags = (more) | FIELD_LINE | FIELD_KEY | FIELD_NAME | FIELD_FILTER, \
      .min = 1, .max = 64, .doc = doc_, .title = "NAME", .arg = "NAME", .help = "a new name" }

/* Given by requests. */
#define CHANGES                                                                                    \
    { MEMBER(FIELD_TEXT, description),                                                             \
      .flags = FIELD_NULLABLE | FIELD_LINES | FIELD_FILTER | FIELD_SHRINKS, .max = 512,            \
      .title = "DESCRIPTION", .help = "shown in lists" },                                          \
    { MEMBER(FIELD_BOOL, is_active), .flags = FIELD_FILTER, .initial = true, .title = "ACTIVE",    \
      .help = "whether sessions may be made in it" },                                              \
    { MEMBER_AS(FIELD_SLOTS, total_slots, "total_slots|total_resource_slots"),                     \
      .backendai = "total_resource_slots", .doc = "missing slots are unlimited",                   \
      .title = "LIMITS", .help = "all that its sessions may hold at a time" },                     \
    { MEMBER_AS(FIELD_OWN, registries, "registries|allowed_docker_registries"),                    \
      .flags = FIELD_OURS | FIELD_UNSHOWN, .backendai = "allowed_docker_registries",               \
      .doc = "list of the registries whose images its sessions may use; [] or [\"any\"] = all",    \
      .title = "REGISTRIES", .arg = "HOST[:PORT]",                                                 \
      .help = "allow images of this registry only; repeatable; any = all" }
/* clang-format on */

const struct field domain_create[] = { NAME(FIELD_REQUIRED, NULL), CHANGES, FIELD_END };
const struct field domain_change[] = { NAME(0, "a new name"), CHANGES, FIELD_END };

const struct entity domain_entity = {
    .size = sizeof(struct domain),
    .fields = domain_create,
    .create = domain_create,
    .change = domain_change,
};

bool domain_allows_registry(const struct domain *d, const char *registry)
{
    size_t len = strlen(registry);

    for (const char *at = d->registries; at; at = strchr(at, ' '), at = at ? at + 1 : NULL)
        if (strncmp(at, registry, len) == 0 && (at[len] == ' ' || !at[len]))
            return true;
    return !d->registries;
}
