/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the configuration tree in the audit log. */
#include "manager/cluster/config_audit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "model/config_key.h"
#include "store/audit_log.h"

#define CONFIG_AUDIT_KEYS_MAX 100
#define CONFIG_AUDIT_SIZE_MAX 16384 /* bytes after which no more keys are named */
#define CONFIG_AUDIT_VALUE_MAX 4096 /* bytes; longer ones are left out */

/* What is at and below these keys has no secrets. Any other may: an address can have a
 * password in it, and plugins choose their keys themselves.
 */
static const char *const config_audit_open[] = {
    "config/api",
    "config/docker/image",
    "config/idle",
    "config/logs",
    "config/network",
    "config/plugins/scheduler",
    "config/resource_slots",
    "config/session",
    "config/system",
    "manager",
    "volumes/_types",
    "volumes/default_host",
};

void config_audit_done(struct config_audit *audit)
{
    strbuf_done(&audit->keys);
}

/* After the names of a resource group's or node's scope. */
static const char *config_audit_skip_scope(const char *key)
{
    int names = strncmp(key, "sgroup/", 7) == 0          ? 2
                : strncmp(key, "nodes/agents/", 13) == 0 ? 3
                                                         : 0;

    for (; names; names--) {
        const char *slash = strchr(key, '/');

        key = slash ? slash + 1 : "";
    }
    return key;
}

static bool config_audit_is_open(const char *key)
{
    key = config_audit_skip_scope(key);
    for (size_t i = 0; i < AQ_COUNT(config_audit_open); i++)
        if (config_key_is_within(key, config_audit_open[i]))
            return true;
    return false;
}

void config_audit_add(struct config_audit *audit, const char *key, const char *before,
                      const char *after, bool with_values)
{
    struct jsonw w = jsonw_make(&audit->keys);
    size_t longest = AQ_MAX(before ? strlen(before) : 0, after ? strlen(after) : 0);

    if (audit->named == CONFIG_AUDIT_KEYS_MAX || audit->keys.len > CONFIG_AUDIT_SIZE_MAX) {
        audit->more++;
        return;
    }
    w.need_comma = audit->named++ > 0;
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "key", key);
    jsonw_member_str(&w, "change", !before ? "added" : !after ? "removed" : "changed");
    if (with_values && longest <= CONFIG_AUDIT_VALUE_MAX && config_audit_is_open(key)) {
        jsonw_member_str(&w, "before", before);
        jsonw_member_str(&w, "after", after);
    }
    jsonw_object_end(&w);
}

int config_audit_write(struct store_tx *tx, const struct config_audit *audit, const char *action,
                       const char *key, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf detail = STRBUF_INIT;
    /* Without a domain, whose administrators may not see the tree. */
    const struct audit_change change = { .action = action,
                                         .object_kind = "config",
                                         .object_name = key };
    struct audit_entry entry;

    if (!audit->named)
        return 0;
    strbuf_addf(&detail, "{\"keys\":[%s],\"more\":%zu}", audit->keys.data, audit->more);
    entry = audit_entry_make(&audit->by, &change, detail.data, clock_realtime_usec());
    return audit_log_add(tx, &entry, err);
}
