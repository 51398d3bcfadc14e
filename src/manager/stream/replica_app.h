/* SPDX-License-Identifier: Apache-2.0 */
/* replica_app.h - the port at which a replica of a model service takes requests, for proxies
 *
 * A proxy names it MODEL_SERVICE_APP. The right to it is that the session is a replica of the service,
 * which has not ended: users of the service show tokens to the proxy and have no right to the
 * session.
 */
#ifndef AQ_MANAGER_STREAM_REPLICA_APP_H
#define AQ_MANAGER_STREAM_REPLICA_APP_H

#include "manager/call/api.h"

/* The main kernel of the session, and the port in its container; NULL and 'err' of the kinds that
 * app.refused has. 'access_key' is the service's.
 */
const struct kernel *replica_app_find(const struct core *core, const struct uuid *session_id,
                                      const struct uuid *service_id, const char *access_key,
                                      uint16_t *ret_port, struct aq_error *err);

/* The service whose replica the session is; nil = it is none. */
struct uuid replica_app_service(const struct core *core, const struct uuid *session_id);

#endif
