/* SPDX-License-Identifier: Apache-2.0 */
/* apps.h - what a session's main kernel publishes, as clients read it */
#ifndef AQ_MANAGER_SESSION_APPS_H
#define AQ_MANAGER_SESSION_APPS_H

#include "manager/call/api.h"

/* [{"name","protocol","ports"}], the ports as the container counts; [] of a
 * session that has none (NULL), or publishes nothing.
 */
void apps_write(const struct session *session, struct jsonw *w);

/* The JSON list of model/service_port.h, with the ports of the node; "[]" if there is nothing. */
const char *apps_raw(const struct session *session);

/* The port within the container of an app that is only connected to: this one of its ports, or
 * with 0 its first; 0 if it has none such, or is started.
 */
uint16_t apps_find_port(const struct session *session, const char *app, int64_t port);

/* [{"name","protocol","ports","state","why",...}]: what is published (as apps_raw() has it), with
 * what the container's executor says of its apps; NULL = it could not be asked.
 */
void apps_write_states(const json_t *published, const json_t *answer, struct jsonw *w);

/* Is it a name that apps have? Such a one is a word of the executor's protocol. */
int apps_check_name(const char *app, struct aq_error *err);

#endif
