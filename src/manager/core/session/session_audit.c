/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the audit log about sessions. */
#include <errno.h>
#include <string.h>

#include "base/jsonw.h"
#include "manager/core/session/session_audit.h"
#include "manager/core/state/state.h"
#include "model/event.h"
#include "model/status.h"

struct audit_change session_audit_change(const struct session *s, const char *action,
                                         char id[UUID_TEXT_MAX])
{
    return (struct audit_change){ .action = action,
                                  .object_kind = "session",
                                  .object_id = uuid_format(&s->id, id),
                                  .object_name = s->name,
                                  .object_domain = s->domain };
}

void session_audit_write_slots(const struct core *core, const struct slots *slots,
                               struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "resources");
    slots_write_json(slots, core->types, &w);
    jsonw_object_end(&w);
}

/* Whose it is, if somebody else makes it. */
static void session_audit_write_owner(const struct session *s, const struct audit_who *by,
                                      struct jsonw *w)
{
    if (strcmp(s->access_key, by->access_key) != 0)
        jsonw_member_str(w, "access_key", s->access_key);
}

void session_audit_created(const struct core *core, struct event_batch *batch,
                           const struct session *s, const char *action, const struct audit_who *by)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf after = STRBUF_INIT;
    struct jsonw w = jsonw_make(&after);
    char id[UUID_TEXT_MAX];
    struct audit_change change;

    if (!by)
        return;
    change = session_audit_change(s, action, id);
    jsonw_object_begin(&w);
    session_audit_write_owner(s, by, &w);
    jsonw_member_str(&w, "image", s->image);
    jsonw_member_str(&w, "type", session_type_name(s->type));
    jsonw_member_str(&w, "resource_group", s->resource_group);
    if (s->kernel_count > 1)
        jsonw_member_int(&w, "cluster_size", (int64_t)s->kernel_count);
    jsonw_key(&w, "resources");
    slots_write_json(&s->kernels[0].requested, core->types, &w);
    jsonw_object_end(&w);
    change.after = after.data;
    event_batch_audit(batch, by, &change);
}
