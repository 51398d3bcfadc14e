/* SPDX-License-Identifier: Apache-2.0 */
/* project.h - groups of users of a domain */
#ifndef AQ_MODEL_PROJECT_H
#define AQ_MODEL_PROJECT_H

#include "base/uuid.h"
#include "model/entity.h"

struct project {
    struct uuid id;
    char *name, *domain, *description;
    bool is_active;
    struct slots total_slots; /* missing = unlimited */
};

extern const struct field project_create[], project_change[];
extern const struct entity project_entity;

#endif
