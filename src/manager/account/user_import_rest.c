/* SPDX-License-Identifier: Apache-2.0 */
/* POST /aliquot/v1/users/import. */
#include "manager/account/user_import.h"

#include "manager/account/account_feature.h"

static void import_on_done(void *data, int r, const struct aq_error *err,
                           const struct user_import_result *result)
{
    struct request *req = data;

    if (r < 0)
        request_fail_data(req, err, result->json ? result->json->data : NULL);
    else
        request_reply_json(req, 200, result->json);
}

static void import_on_request(struct request *req, void *data)
{
    struct aq_error err = { 0 };
    json_t *params;

    if (api_parse(req, &params, &err) < 0)
        request_fail(req, &err);
    else
        user_import_start(data, params, api_who(data, req), import_on_done, req);
}

static const struct route user_import_routes[] = {
    { METHOD_POST, "/aliquot/v1/users/import", API_SUPERADMIN, import_on_request,
      user_import_fields, "Make up to 2000 users with a keypair each, all of them or none",
      .body_max = USER_IMPORT_BODY },
};
API_ROUTES_END(user_import);
