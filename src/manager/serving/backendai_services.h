/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_services.h - what the routes of /services for clients of Backend.AI share */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_SERVICES_H
#define AQ_MANAGER_SERVING_BACKENDAI_SERVICES_H

#include "base/error.h"

/* core_done_fn with the request as 'data': answers {"success": true}, or the error. */
void backendai_services_on_done(void *data, int r, const struct aq_error *err);

#endif
