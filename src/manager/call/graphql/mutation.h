/* SPDX-License-Identifier: Apache-2.0 */
/* mutation.h - what mutations share: each answers {ok msg}, and what fails is ok: false
 * with the reason, not an error
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_MUTATION_H
#define AQ_MANAGER_CALL_GRAPHQL_MUTATION_H

#include "manager/call/graphql/resolve.h"

struct mutation_result {
    bool ok;
    const char *msg;
    const char *task_id; /* NULL = nothing goes on */
    const void *object;  /* what was made or changed; NULL = it was not asked for */
};

/* Fill in the result; returns GQL_DONE. Texts are copied. */
int mutation_finish(struct gql_call *call, bool ok, const char *msg, const struct uuid *task_id);
int mutation_succeed(struct gql_call *call, const void *object);
/* In the words of the REST route. */
#define MUTATION_REASON_MAX sizeof(struct aq_error)
void mutation_write_reason(const struct aq_error *err, char *ret, size_t size);
int mutation_refuse(struct gql_call *call, const struct aq_error *err);
/* The same where the result has no 'ok': the call fails. */
int mutation_fail(struct gql_call *call, const struct aq_error *err);
/* core_done_fn with the call as data. */
void mutation_on_done(void *call, int r, const struct aq_error *err);

/* False after the call has been answered: only superadmins may. */
bool mutation_may(struct gql_call *call);

/* The same for a mutation whose result has no 'ok': the call fails. */
bool mutation_may_or_fails(struct gql_call *call);

struct api *mutation_api(const struct gql_call *call);
/* Who asks, for the audit log. */
const struct audit_who *mutation_who(const struct gql_call *call);

/* The members 'ok' and 'msg' of a result's type, as entries. */
/* clang-format off */
#define MUTATION_RESULT(type)                                                                      \
    { SCHEMA_FIELD_##type##_ok, GQL_BOOL_AT(struct mutation_result, ok) },                         \
    { SCHEMA_FIELD_##type##_msg, GQL_TEXT_AT(struct mutation_result, msg) }
/* clang-format on */

/* A member of the argument 'props', which is the second; null if it was not given. */
struct gql_value mutation_prop(const struct gql_call *call, const char *name);

/* Those that a request which changes a row of the entity may have, as its members: '*ret' is the
 * caller's (json_decref). -EINVAL names the one that is no JSON.
 */
int mutation_members(const struct gql_call *call, const struct entity *entity, json_t **ret,
                     struct aq_error *err);

#endif
