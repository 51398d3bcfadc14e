/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/keypair-policies: what one key may use */
#include "manager/account/account.h"
#include "manager/account/account_feature.h"

static void policy_write_row(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    const struct policy_row *row = &page->policies[i];

    account_write_row(list, &keypair_policy_entity, &row->policy, row->created_usec, w);
}

static const struct account_resource policy_resource = {
    .kind = &account_policy,
    .write = policy_write_row,
    .narrow = account_narrow_nothing,
};

ACCOUNT_HANDLERS(policy)
ACCOUNT_REMOVAL_HANDLERS(policy)

static const struct route policy_routes[] = {
    { METHOD_GET, "/aliquot/v1/keypair-policies", API_ADMIN, policy_on_list, account_page_fields,
      "List keypair policies" },
    { METHOD_POST, "/aliquot/v1/keypair-policies", API_SUPERADMIN, policy_on_create,
      keypair_policy_create, "Make a keypair policy", .answer = { 201 } },
    { METHOD_PATCH, "/aliquot/v1/keypair-policies/{key}", API_SUPERADMIN, policy_on_change,
      keypair_policy_change, "Change a keypair policy" },
    ACCOUNT_REMOVAL_ROUTES(policy, "/aliquot/v1/keypair-policies/{key}", "a keypair policy"),
};
API_ROUTES_END(policy);
