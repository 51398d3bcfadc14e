/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a resource preset. */
#include "model/resource_preset.h"

#define MEMBER(type_, member) \
    .names = #member, .type = (type_), .offset = offsetof(struct resource_preset, member)

/* clang-format off */
#define SLOTS                                                                                      \
    MEMBER(FIELD_JSON_TEXT, resource_slots), .doc = "e.g. {\"cpu\": \"2\", \"mem\": \"4g\"}",        \
    .title = "RESOURCES", .option = "r|resource", .arg = "SLOT=AMOUNT",                            \
    .help = "an amount: cpu=2, mem=4g, cuda.shares=0.25; repeatable"
#define CHANGES                                                                                    \
    { MEMBER(FIELD_SIZE, shared_memory), .flags = FIELD_NULLABLE | FIELD_UNSHOWN, .min = 1,        \
      .max = 32, .doc = "e.g. 64m", .title = "SHARED-MEMORY", .help = "of /dev/shm, e.g. 1g" }
/* clang-format on */

const struct field resource_preset_create[] = {
    { SLOTS, .flags = FIELD_REQUIRED },
    CHANGES,
    FIELD_END,
};
const struct field resource_preset_change[] = { { SLOTS }, CHANGES, FIELD_END };
static const struct field fields[] = {
    { MEMBER(FIELD_TEXT, name), .flags = FIELD_KEY | FIELD_NAME, .title = "NAME" },
    { SLOTS },
    CHANGES,
    FIELD_END,
};

const struct entity resource_preset_entity = {
    .size = sizeof(struct resource_preset),
    .fields = fields,
    .create = resource_preset_create,
    .change = resource_preset_change,
};
