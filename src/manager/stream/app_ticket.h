/* SPDX-License-Identifier: Apache-2.0 */
/* app_ticket.h - the right of a proxy to reach an app without the manager
 *
 * A proxy that asks for it gets a ticket (link/ticket.h), with which it connects to the app's agent
 * itself. The manager looks at all that it gave out twice a second: when the session has ended or
 * its user may use it no more, the proxy is told, and cuts what goes by the ticket. A proxy that
 * was away says which tickets it has; what the manager does not know after a restart it learns so.
 *
 * The proxy says what went by each ticket, so that idle checks and statistics see it as if it had
 * passed the manager. Loop's thread only.
 */
#ifndef AQ_MANAGER_STREAM_APP_TICKET_H
#define AQ_MANAGER_STREAM_APP_TICKET_H

#include "manager/call/api.h"

struct app_tickets;

struct app_tickets *app_tickets_new(struct api *api);
/* No more is looked at. Tickets stay good until they expire. */
void app_tickets_free(struct app_tickets *tickets);

/* How long a ticket is good, and so for how long apps can be reached without the manager. */
void app_tickets_set_lifetime(struct app_tickets *tickets, int64_t usec);

/* Can the kernel's agent take tickets for it? */
bool app_tickets_are_for(const struct app_tickets *tickets, const struct kernel *kernel);

/* Answer app.connect by a ticket for this port of the kernel. */
int app_tickets_give(struct app_tickets *tickets, const char *proxy, const struct kernel *kernel,
                     const struct msg_app_connect *want, uint16_t port, struct aq_error *err);

/* app.check with 'watch': the proxy has this ticket. If it shows it, too, it gets another one in its
 * place. The caller has looked at the right, which is for 'kernel'.
 */
void app_tickets_keep(struct app_tickets *tickets, const char *proxy, const struct kernel *kernel,
                      const struct msg_app_connect *have);

/* What went by a ticket. */
void app_tickets_count(struct app_tickets *tickets, const char *proxy,
                       const struct msg_app_use *use);

/* The proxy has gone; what it has open is told again when it comes back. */
void app_tickets_lose(struct app_tickets *tickets, const char *proxy);

#endif
