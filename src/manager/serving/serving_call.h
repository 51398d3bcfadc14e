/* SPDX-License-Identifier: Apache-2.0 */
/* serving_call.h - what requests on model services share */
#ifndef AQ_MANAGER_SERVING_SERVING_CALL_H
#define AQ_MANAGER_SERVING_SERVING_CALL_H

#include "manager/serving/serving_view.h"

/* The live service that the path names by "{service}", if the caller may see it; NULL with an error. */
const struct model_service *serving_find(const struct api *api, const struct request *req,
                                         struct aq_error *err);

/* The same, answering the request if there is none. */
const struct model_service *serving_find_or_fail(const struct api *api, struct request *req);

/* Answer with the service of this id, which a change is durable of; 404 if it has ended since. */
void serving_reply_by_id(const struct api *api, struct request *req, const struct uuid *id,
                         int status);

#endif
