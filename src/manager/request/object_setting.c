/* SPDX-License-Identifier: Apache-2.0 */
/* object_setting.c - a setting of the store that is one JSON object */
#include "manager/request/object_setting.h"

#include <errno.h>
#include <stdio.h>

#include "base/json_load.h"
#include "store/token.h"

#define ACTION_MAX 40

int object_setting_read(struct store_tx *tx, const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_auto_t *object = NULL;
    int r = setting_get(tx, name, &text, err);

    if (r < 0 && r != -ENOENT)
        return r;
    object = text.len ? json_load_string(text.data, 0) : NULL;
    *ret = json_is_object(object) ? json_incref(object) : json_object();
    return *ret ? 0 : aq_fail_oom(err);
}

struct object_setting_wanted {
    const char *name;
    json_t **ret;
};

static int object_setting_read_wanted(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct object_setting_wanted *wanted = data;

    return object_setting_read(tx, wanted->name, wanted->ret, err);
}

int object_setting_load(struct store *store, const char *name, json_t **ret, struct aq_error *err)
{
    struct object_setting_wanted wanted = { name, ret };

    return store_call(store, object_setting_read_wanted, &wanted, err);
}

int object_setting_write(struct store_tx *tx, const char *name, const json_t *object,
                         json_t **ret_kept, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *sorted = json_dump_text(object, JSON_COMPACT | JSON_SORT_KEYS);

    if (!sorted || !(*ret_kept = json_load_string(sorted, 0)))
        return aq_fail_oom(err);
    return setting_set(tx, name, sorted, err);
}

int object_setting_audit(struct store_tx *tx, const struct audit_who *by, const char *kind,
                         const char *member, const json_t *before, const json_t *after,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *old = before ? json_dump_text(before, JSON_COMPACT) : NULL;
    AQ_CLEANUP(aq_freep) char *fresh = after ? json_dump_text(after, JSON_COMPACT) : NULL;
    char action[ACTION_MAX];

    if ((before && !old) || (after && !fresh))
        return aq_fail_oom(err);
    (void)snprintf(action, sizeof(action), "%s-%s",
                   !before ? "create"
                   : after ? "modify"
                           : "delete",
                   kind);
    return audit_log_add_change(tx, by,
                                &(struct audit_change){ .action = action,
                                                        .object_kind = kind,
                                                        .object_name = member,
                                                        .before = old,
                                                        .after = fresh },
                                err);
}
