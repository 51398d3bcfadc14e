/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that sessions mount are not removed. */
#include <errno.h>
#include <string.h>

#include "manager/folder/folder_call.h"

/* A folder, and a session that mounts it. */
struct folder_mounted {
    struct uuid folder;
    char session[SESSION_NAME_MAX + 1];
};

const struct folder_mounts *folder_mounts_of(const struct session *s)
{
    static const struct folder_mounts none;

    return s->spec && s->status != SESSION_PENDING && !session_is_terminal(s->status)
               ? &s->spec->mounts
               : &none;
}

void folder_call_write_unused(struct folder_call *call)
{
    const struct core *core = call->api->core;
    struct folder_mounted *ret;
    size_t count = 0;

    for (const struct session *s = NULL; (s = core_next_session(core, s));)
        count += folder_mounts_of(s)->count;
    ret = arena_array(request_get_arena(call->req), count + 1, sizeof(*ret));
    count = 0;
    for (const struct session *s = NULL; (s = core_next_session(core, s));)
        for (size_t i = 0; i < folder_mounts_of(s)->count; i++, count++) {
            ret[count].folder = folder_mounts_of(s)->items[i].folder;
            memcpy(ret[count].session, s->name, sizeof(s->name));
        }
    ret[count] = (struct folder_mounted){ .session = "" };
    call->mounted = ret; /* 'run' is on another thread */
    folder_call_write(call);
}

int folder_check_unused(const struct folder_call *call, struct aq_error *err)
{
    for (const struct folder_mounted *m = call->mounted; m->session[0]; m++)
        if (uuid_equals(&m->folder, &call->folder.id))
            return aq_fail_kind(err, EBUSY, "vfolder-operation-failed",
                                "the folder '%s' is mounted by the session '%s'", call->folder.name,
                                m->session);
    return 0;
}
