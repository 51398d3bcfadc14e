/* SPDX-License-Identifier: Apache-2.0 */
/* config_known.h - the keys of the configuration tree that mean something here
 *
 * Others are kept, and nothing looks at them.
 */
#ifndef AQ_MANAGER_CLUSTER_CONFIG_KNOWN_H
#define AQ_MANAGER_CLUSTER_CONFIG_KNOWN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "model/idle.h"

struct store_tx;

/* What they say; zeroed = nothing. */
struct config_settings {
    bool is_frozen;     /* manager/status */
    char *announcement; /* manager/announcement; NULL = none */
    bool has_origins;   /* config/api/allow-origins: in place of those of manager.toml */
    char **origins;
    size_t origin_count, origin_cap;
    json_t *registries;        /* by name, as registry_tree_read() gives them */
    char *logins;              /* of container registries: registry_logins.h; NULL = none */
    struct idle_settings idle; /* config/idle/... */
    uint32_t fifo_retries;     /* config/plugins/scheduler/fifo/num_retries_to_skip: of resource
                              groups that do not say it */
};

void config_settings_done(struct config_settings *settings);

/* What all of them say, on a thread of the store. A value that cannot be (kept by a program
 * that did not know the key) is logged and counts as none.
 */
int config_known_read(struct store_tx *tx, struct config_settings *ret, struct aq_error *err);

#endif
