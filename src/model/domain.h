/* SPDX-License-Identifier: Apache-2.0 */
/* domain.h - parts of a cluster that have users and projects of their own */
#ifndef AQ_MODEL_DOMAIN_H
#define AQ_MODEL_DOMAIN_H

#include "model/entity.h"

struct domain {
    char *name, *description;
    bool is_active;
    struct slots total_slots; /* missing = unlimited */
    char *registries;         /* whose images it may use, separated by spaces; NULL = all */
};

extern const struct field domain_create[], domain_change[];
extern const struct entity domain_entity;

/* May its sessions use images of the registry, HOST[:PORT]? */
bool domain_allows_registry(const struct domain *d, const char *registry);

#endif
