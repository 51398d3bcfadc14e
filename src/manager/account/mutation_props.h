/* SPDX-License-Identifier: Apache-2.0 */
/* mutation_props.h - mutations of accounts: input objects as what REST is given, and saving */
#ifndef AQ_MANAGER_ACCOUNT_MUTATION_PROPS_H
#define AQ_MANAGER_ACCOUNT_MUTATION_PROPS_H

#include "manager/account/account.h"
#include "manager/call/graphql/mutation.h"

/* account_change_save() of who asks. */
int mutation_save_account(const struct gql_call *call, struct account_change *change,
                          core_done_fn done, void *data, struct aq_error *err);

/* The argument 'props', its members by REST's names; json_decref. 'kept' is the domain
 * that the row has, or is, and cannot change; NULL for a new one. -EINVAL names a member that
 * cannot be what was given.
 */
int mutation_props(const struct gql_call *call, const struct account_kind *kind, const char *kept,
                   json_t **ret, struct aq_error *err);
/* The same of any input object, whose members may be in camelCase. */
int mutation_props_of(const struct gql_type *type, struct gql_value object,
                      const struct account_kind *kind, const char *kept, json_t **ret,
                      struct aq_error *err);
/* The field of an error of the account's row, REST's, becomes the schema's; of a new row
 * REST's 'key' is the first argument.
 */
void mutation_name_field(const struct gql_call *call, const struct account_kind *kind,
                         const char *key, struct aq_error *err);

#endif
