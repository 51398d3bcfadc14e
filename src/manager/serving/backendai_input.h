/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_input.h - what mutations of newer clients of Backend.AI share */
#ifndef AQ_MANAGER_SERVING_BACKENDAI_INPUT_H
#define AQ_MANAGER_SERVING_BACKENDAI_INPUT_H

#include <jansson.h>

#include "manager/call/graphql/resolve.h"
#include "model/model_service.h"

/* Payloads with one object, and ids beside it; a member that the type does not have is NULL. */
struct backendai_payload {
    const void *object;
    const char *id, *previous_id, *activated_id;
};

/* End a call that waited: with the payload, or failed by the error. */
void backendai_payload_done(struct gql_call *call, const struct backendai_payload *payload,
                            const struct aq_error *err);

/* The argument 'input' as JSON: enums are texts, members that were not given are left out. The caller's
 * (json_decref).
 */
json_t *backendai_input_read(const struct gql_call *call);

/* A text of it; NULL = absent or null. Borrowed. */
const char *backendai_input_text(const json_t *input, const char *member);
/* The id of that member, global or not. -EINVAL names it. */
int backendai_input_uuid(const struct gql_call *call, const json_t *input, const char *member,
                         struct uuid *ret, struct aq_error *err);

/* The service that a member names, which lives and which the caller may see; NULL with an error. */
const struct model_service *backendai_input_service(const struct gql_call *call,
                                                    const json_t *input, const char *member,
                                                    struct aq_error *err);

/* The error's field is called as the input has it: 'names' are pairs of ours and theirs. */
void backendai_input_rename(const char *const names[][2], size_t count, struct aq_error *err);

/* -EBUSY: nothing is changed while the manager is frozen. */
int backendai_input_check_frozen(const struct gql_call *call, struct aq_error *err);

#endif
