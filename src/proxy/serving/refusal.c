/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c - what the proxy itself says to a client of a model service
 *
 * Clients of OpenAI's API read "error"; others read the members of a problem document.
 */
#include "base/jsonw.h"
#include "proxy/serving/service.h"

void served_count_refused(struct served *service, struct token *token)
{
    service->use.refused++;
    service->totals.refused++;
    token->use.refused++;
    served_report(service, false);
}

static const char *refusal_type(int status)
{
    return status == 401   ? "authentication_error"
           : status == 403 ? "permission_error"
           : status == 429 ? "rate_limit_error"
           : status < 500  ? "invalid_request_error"
                           : "server_error";
}

void serving_refuse(struct browser *b, int status, const char *code, unsigned retry_sec,
                    const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, headers = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    jsonw_key(&w, "error");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "message", text);
    jsonw_member_str(&w, "type", refusal_type(status));
    jsonw_member_str(&w, "code", code);
    jsonw_object_end(&w);
    jsonw_member_str(&w, "title", text);
    jsonw_member_int(&w, "status", status);
    jsonw_object_end(&w);
    if (status == 401)
        strbuf_adds(&headers, "WWW-Authenticate: Bearer realm=\"aliquot\"\r\n");
    if (b->turn.is_shared)
        strbuf_adds(&headers, "Access-Control-Allow-Origin: *\r\n"
                              "Access-Control-Expose-Headers: Retry-After\r\n");
    if (retry_sec)
        strbuf_addf(&headers, "Retry-After: %u\r\n", retry_sec);
    b->proxy->counts.refused++;
    browser_reply(b, status, headers.data, "application/problem+json", out.data);
}
