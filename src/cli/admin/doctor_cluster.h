/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_cluster.h - the checks of "aliquot doctor cluster", and the state that they share
 *
 * doctor_cluster.c reaches the manager and checks what this machine and this user need of it,
 * doctor_health.c what the manager says of itself, doctor_nodes.c the agents, services and
 * managers. A check that leaves 'ret' untouched is skipped: the manager was not reached, or this
 * user may not ask.
 */
#ifndef AQ_CLI_ADMIN_DOCTOR_CLUSTER_H
#define AQ_CLI_ADMIN_DOCTOR_CLUSTER_H

#include "check/check.h"
#include "cli/client.h"

struct doctor_cluster {
    struct cli *cli;
    bool is_reached;
    struct aq_error err;               /* if it was not reached */
    struct client_reply reply;         /* to GET /aliquot/v1/health */
    json_t *health;                    /* its body; NULL = not reached, or not JSON */
    int64_t asked_usec, answered_usec; /* wall clock: around the request */
};

/* ---- doctor_health.c; 'data' is a struct doctor_cluster ---- */

void doctor_check_database(void *data, struct finding *ret);
void doctor_check_redis(void *data, struct finding *ret);
void doctor_check_etcd(void *data, struct finding *ret);
void doctor_check_status(void *data, struct finding *ret);
void doctor_check_restore(void *data, struct finding *ret);

/* ---- doctor_nodes.c ---- */

void doctor_check_agents(void *data, struct finding *ret);
void doctor_check_network(void *data, struct finding *ret);
void doctor_check_services(void *data, struct finding *ret);
void doctor_check_managers(void *data, struct finding *ret);

#endif
