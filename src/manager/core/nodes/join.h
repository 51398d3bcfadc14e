/* SPDX-License-Identifier: Apache-2.0 */
/* join.h - agents that ask for a certificate */
#ifndef AQ_MANAGER_CORE_NODES_JOIN_H
#define AQ_MANAGER_CORE_NODES_JOIN_H

struct link_join;
struct msg_join;

/* An agent asks for a certificate with a token; answered when that is durable. */
void join_request(void *data, struct link_join *join, const struct msg_join *msg);

#endif
