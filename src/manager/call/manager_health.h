/* SPDX-License-Identifier: Apache-2.0 */
/* manager_health.h - what each of several managers answers a load balancer of itself
 *
 * GET /aliquot/v1/health/manager goes to no other manager: 200 from one that serves clients, be it
 * as a standby by way of the leader, else 503.
 */
#ifndef AQ_MANAGER_CALL_MANAGER_HEALTH_H
#define AQ_MANAGER_CALL_MANAGER_HEALTH_H

#include "http/server.h"
#include "store/leadership.h"

#define MANAGER_HEALTH_PATH "/aliquot/v1/health/manager"

struct manager_health {
    const char *name;                  /* of this manager */
    const char *role;                  /* "leader", "standby", "waiting" */
    const struct leader_claim *leader; /* NULL = it is not known */
    int64_t epoch;                     /* of the leader; 0 = the database is a file */
};

void manager_health_reply(struct request *req, const struct manager_health *health);

#endif
