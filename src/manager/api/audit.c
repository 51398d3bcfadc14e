/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/audit: are ledger, kernels, memory and database of one mind? */
#include <string.h>

#include "manager/api/resources.h"

static void audit_on_audited(void *data, int r, const struct aq_error *err, const char *findings)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct request *req = data;

    if (r < 0) {
        request_fail(req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_bool(&w, "clean", r == 0);
    jsonw_key(&w, "findings");
    jsonw_array_begin(&w);
    for (const char *line = findings; line && *line;) {
        size_t len = strcspn(line, "\n");

        if (len)
            jsonw_strn(&w, line, len);
        line += len + (line[len] == '\n');
    }
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void audit_on_show(struct request *req, void *data)
{
    struct api *api = data;

    if (api_has_no_params(req))
        core_audit(api->core, audit_on_audited, req);
}

const struct route audit_routes[] = {
    { METHOD_GET, "/aliquot/v1/audit", API_SUPERADMIN, audit_on_show, NULL,
      "Compare the ledger with the kernels, and memory with the database" },
};
API_ROUTES_END(audit);
