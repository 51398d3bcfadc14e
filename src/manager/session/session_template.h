/* SPDX-License-Identifier: Apache-2.0 */
/* session_template.h - requests for sessions that name a template
 *
 * The member "template" (or "template_id") of a session that is asked for names one by id or name.
 * Its members become those of the request where that does not say them itself.
 */
#ifndef AQ_MANAGER_SESSION_SESSION_TEMPLATE_H
#define AQ_MANAGER_SESSION_SESSION_TEMPLATE_H

#include "manager/call/api.h"

/* 'tree' is the parameters, in which nothing names a template any more, and is the callee's to
 * release; NULL with 'err'. Comes at once where no template is named.
 */
typedef void session_template_fn(struct request *req, void *data, json_t *tree,
                                 const struct aq_error *err);

/* The parameters of a request for a session or a list of them. */
void session_template_expand(struct api *api, struct request *req, session_template_fn *done,
                             void *data);

#endif
