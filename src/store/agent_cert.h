/* SPDX-License-Identifier: Apache-2.0 */
/* agent_cert.h - certificates of agents, and which are revoked */
#ifndef AQ_STORE_AGENT_CERT_H
#define AQ_STORE_AGENT_CERT_H

#include "model/agent.h"
#include "store/store.h"

#define CERT_SERIAL_MAX 64 /* lower-case hex and NUL */

struct agent_cert {
    char serial[CERT_SERIAL_MAX];
    char agent_id[AGENT_ID_MAX + 1];
    int64_t issued_usec, expires_usec;
    int64_t revoked_usec; /* 0 = not revoked */
};

int cert_save(struct store_tx *tx, const struct agent_cert *cert, struct aq_error *err);

/* All certificates of the agent that are not revoked yet; returns how many. */
int cert_revoke_agent(struct store_tx *tx, const char *agent_id, int64_t now_usec,
                      struct aq_error *err);

/* Calls 'visit' for each revoked certificate that has not expired at 'now_usec'. */
int cert_list_revoked(struct store_tx *tx, int64_t now_usec,
                      int (*visit)(void *data, const struct agent_cert *cert), void *data,
                      struct aq_error *err);

#endif
