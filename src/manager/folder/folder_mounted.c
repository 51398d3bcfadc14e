/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that sessions mount, or model services serve, are not removed. */
#include <errno.h>
#include <string.h>

#include "manager/core/services.h"
#include "manager/folder/folder_call.h"

/* A folder, and a session or model service that needs it. */
struct folder_mounted {
    struct uuid folder;
    bool is_of_service;
    char name[SESSION_NAME_MAX + 1]; /* "" ends the list */
};

const struct folder_mounts *folder_mounts_of(const struct session *s)
{
    static const struct folder_mounts none;

    return s->spec && s->status != SESSION_PENDING && !session_is_terminal(s->status)
               ? &s->spec->mounts
               : &none;
}

/* The folder of the model that the service wants; false = it needs none. Replicas that do not run yet
 * need it, too.
 */
static bool folder_is_served(const struct model_service *s, struct uuid *ret)
{
    const struct model_service_revision *goal = model_service_find_revision(s, s->goal);

    return !s->is_ending && goal && goal->spec->model && uuid_parse(goal->spec->model, ret) == 0;
}

void folder_call_write_unused(struct folder_call *call)
{
    const struct core *core = call->api->core;
    struct folder_mounted *ret;
    size_t count = 0;

    for (const struct session *s = NULL; (s = core_next_session(core, s));)
        count += folder_mounts_of(s)->count;
    for (const struct model_service *s = NULL; (s = core_next_service(core, s));)
        count++;
    ret = arena_array(request_get_arena(call->req), count + 1, sizeof(*ret));
    count = 0;
    for (const struct session *s = NULL; (s = core_next_session(core, s));)
        for (size_t i = 0; i < folder_mounts_of(s)->count; i++, count++) {
            ret[count].folder = folder_mounts_of(s)->items[i].folder;
            memcpy(ret[count].name, s->name, sizeof(s->name));
        }
    for (const struct model_service *s = NULL; (s = core_next_service(core, s));)
        if (folder_is_served(s, &ret[count].folder)) {
            ret[count].is_of_service = true;
            memcpy(ret[count++].name, s->name, sizeof(s->name));
        }
    ret[count] = (struct folder_mounted){ .name = "" };
    call->mounted = ret; /* 'run' is on another thread */
    folder_call_write(call);
}

int folder_check_unused(const struct folder_call *call, struct aq_error *err)
{
    for (const struct folder_mounted *m = call->mounted; m->name[0]; m++)
        if (uuid_equals(&m->folder, &call->folder.id))
            return aq_fail_kind(err, EBUSY, "vfolder-operation-failed",
                                m->is_of_service ? "the folder '%s' has the model of the model "
                                                   "service '%s'; end the service first"
                                                 : "the folder '%s' is mounted by the session '%s'",
                                call->folder.name, m->name);
    return 0;
}
