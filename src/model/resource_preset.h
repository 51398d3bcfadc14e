/* SPDX-License-Identifier: Apache-2.0 */
/* resource_preset.h - amounts with a name, for people to choose from */
#ifndef AQ_MODEL_RESOURCE_PRESET_H
#define AQ_MODEL_RESOURCE_PRESET_H

#include "model/entity.h"

struct resource_preset {
    char *name;
    char *resource_slots; /* {"cpu": "2", ...}: a text, as the cluster may lose a slot */
    char *shared_memory;  /* bytes; NULL = not set */
};

extern const struct field resource_preset_create[], resource_preset_change[];
extern const struct entity resource_preset_entity;

#endif
