/* SPDX-License-Identifier: Apache-2.0 */
/* service_token.h - tokens that let clients use a model service: what was done with them, expiry
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_TOKEN_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_TOKEN_H

struct core;
struct event;
struct model_service_entry;

/* Propose to write uses that are due, and to remove tokens that have expired. */
void service_token_step(struct core *core, struct model_service_entry *entry);

/* A proposal of the service is back: uses that were not written are kept for the next one. */
void service_token_returned(struct core *core, struct model_service_entry *entry, int result);

/* Change memory by an event of a token. */
void service_token_apply(struct core *core, struct event *e);

/* The manager stops: write all uses. */
void service_token_save(struct core *core);

#endif
