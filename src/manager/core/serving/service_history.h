/* SPDX-License-Identifier: Apache-2.0 */
/* service_history.h - what was changed of a model service, in words for its history. Pure. */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_HISTORY_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_HISTORY_H

#include "model/model_service.h"

/* "scaled to 4, limits changed by ann@example.com: NOTE". 'was' NULL = it is created; 'event' is what
 * a rollout does by it, NULL = nothing; 'note' NULL or "" = that of a new revision, if there is one,
 * else none. To be freed.
 */
char *service_describe_change(const struct model_service *was, const struct model_service *made,
                              const char *event, const char *note, const char *by);

#endif
