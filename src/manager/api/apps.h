/* SPDX-License-Identifier: Apache-2.0 */
/* apps.h - what a session's main kernel publishes, as clients read it */
#ifndef AQ_MANAGER_API_APPS_H
#define AQ_MANAGER_API_APPS_H

#include "manager/request/api.h"

/* [{"name","protocol","ports"}], the ports as the container counts; [] of a
 * session that has none (NULL), or publishes nothing.
 */
void apps_write(const struct session *session, struct jsonw *w);

/* The JSON list of model/service_port.h, with the ports of the node; "[]" if there is nothing. */
const char *apps_raw(const struct session *session);

#endif
