/* SPDX-License-Identifier: Apache-2.0 */
/* POST /aliquot/v1/import/backendai. */
#include "manager/backendai/import.h"

#include "manager/backendai/backendai_feature.h"

static void backendai_import_on_done(void *data, int r, const struct aq_error *err,
                                     const struct backendai_result *result)
{
    struct request *req = data;

    if (r < 0)
        request_fail_data(req, err, result->json ? result->json->data : NULL);
    else
        request_reply_json(req, 200, result->json);
}

static void backendai_import_on_request(struct request *req, void *data)
{
    struct aq_error err = { 0 };
    const char *body;
    size_t len;

    body = request_get_body(req, &len);
    if (len) {
        backendai_import_start(data, body, len, api_who(data, req), backendai_import_on_done, req);
    } else {
        api_fail_param(&err, "tables", "is required");
        request_fail(req, &err);
    }
}

static const struct route backendai_import_routes[] = {
    { METHOD_POST, "/aliquot/v1/import/backendai", API_SUPERADMIN, backendai_import_on_request,
      backendai_import_fields,
      "Take over people and limits of a Backend.AI cluster, all or nothing",
      .body_max = BACKENDAI_BODY },
};
API_ROUTES_END(backendai_import);
