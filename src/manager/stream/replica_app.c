/* SPDX-License-Identifier: Apache-2.0 */
/* replica_app.c - see replica_app.h */
#include "manager/stream/replica_app.h"

#include <errno.h>
#include <string.h>

#include "manager/core/services.h"
#include "manager/session/session.h"

const struct kernel *replica_app_find(const struct core *core, const struct uuid *session_id,
                                      const struct uuid *service_id, const char *access_key,
                                      uint16_t *ret_port, struct aq_error *err)
{
    const struct session *session = core_find_session(core, session_id);
    const struct model_service_revision *revision;
    struct core_replica replica;

    if (!session || !core_find_replica(core, session, &replica)) {
        (void)aq_fail_kind(err, ENOENT, "session-ended", "the replica has ended");
        return NULL;
    }
    if (!uuid_equals(&replica.service->id, service_id)
        || strcmp(replica.service->access_key, access_key) != 0) {
        (void)aq_fail_kind(err, EACCES, "generic-forbidden",
                           "the session is a replica of another model service");
        return NULL;
    }
    revision = model_service_find_revision(replica.service, replica.revision);
    if (!revision) {
        (void)aq_fail_kind(err, ENOENT, "session-ended", "revision %lld of '%s' is not kept",
                           (long long)replica.revision, replica.service->name);
        return NULL;
    }
    *ret_port = (uint16_t)revision->spec->port;
    return session_find_kernel(session, NULL, err);
}

struct uuid replica_app_service(const struct core *core, const struct uuid *session_id)
{
    const struct session *session = core_find_session(core, session_id);
    struct core_replica replica;

    return session && core_find_replica(core, session, &replica) ? replica.service->id
                                                                 : (struct uuid){ { 0 } };
}
