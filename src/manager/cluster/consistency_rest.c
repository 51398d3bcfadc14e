/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/audit: are ledger, kernels, memory and database of one mind? */
#include <errno.h>
#include <string.h>

#include "manager/cluster/cluster_feature.h"

static void consistency_on_audited(void *data, int r, const struct aq_error *err,
                                   const char *findings)
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

static void consistency_on_show(struct request *req, void *data)
{
    struct api *api = data;

    if (api_has_no_params(req))
        core_audit(api->core, consistency_on_audited, req);
}

static void consistency_on_recalculated(void *data, int r, const struct aq_error *err,
                                        const char *findings)
{
    struct aq_error own = { 0 };

    if (r > 0)
        (void)aq_fail(&own, EUCLEAN, "accounts do not agree, see 'aliquot admin audit': %.200s",
                      findings);
    if (r == 0)
        request_reply(data, 200, "application/json", "{}", 2);
    else
        request_fail(data, r < 0 ? err : &own);
}

/* What is occupied is a sum over kernels, reckoned at every change: there is no counter to be
 * set right, so the sums are compared.
 */
static void consistency_on_recalculate(struct request *req, void *data)
{
    struct api *api = data;

    if (api_has_no_params(req))
        core_audit(api->core, consistency_on_recalculated, req);
}

static const struct route audit_routes[] = {
    { METHOD_POST, "/resource/recalculate-usage", API_SUPERADMIN, consistency_on_recalculate, NULL,
      "Compare what is occupied with what kernels hold" },
    { METHOD_GET, "/aliquot/v1/audit", API_SUPERADMIN, consistency_on_show, NULL,
      "Compare the ledger with the kernels, and memory with the database" },
};
API_ROUTES_END(audit);
