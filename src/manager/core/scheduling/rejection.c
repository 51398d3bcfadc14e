/* SPDX-License-Identifier: Apache-2.0 */
/* rejection.c - what an agent said when it could not start a kernel
 *
 * It is kept in the session's status_data, as Backend.AI's clients know it:
 * {"error": {"src", "agent_id", "name", "field", "repr"}}. It stays there while
 * the session waits for another attempt, beside the scheduler's explanation.
 */
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "link/message.h"
#include "manager/core/lookup.h"
#include "manager/core/scheduling/rejection.h"

char *rejection_json(const char *agent_id, const struct msg_kernel_status *m)
{
    struct strbuf json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);

    jsonw_object_begin(&w);
    jsonw_key(&w, "error");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "src", agent_id ? "agent" : "manager");
    jsonw_member_str(&w, "agent_id", agent_id);
    jsonw_member_str(&w, "name", m->error_kind);
    jsonw_member_str(&w, "field", m->error_field);
    jsonw_member_str(&w, "repr", m->error_text);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    return strbuf_steal(&json);
}

char *rejection_remark_json(const char *text)
{
    struct strbuf json = STRBUF_INIT;
    struct jsonw w = jsonw_make(&json);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "text", text);
    jsonw_object_end(&w);
    return strbuf_steal(&json);
}

static void rejection_begin_line(struct strbuf *text)
{
    if (text->len > 0)
        strbuf_addc(text, '\n');
}

/* "Agent 'i-001' could not start it: slot 'cuda.shares' is not supported here", or "... start sub1" of
 * one of several kernels
 */
static void rejection_add_sentence(const json_t *data, struct strbuf *text)
{
    const json_t *error = json_object_get(data, "error");
    const char *kernel = json_string_value(json_object_get(data, "kernel"));
    const char *agent = json_string_value(json_object_get(error, "agent_id"));
    const char *name = json_string_value(json_object_get(error, "name"));
    const char *field = json_string_value(json_object_get(error, "field"));
    const char *repr = json_string_value(json_object_get(error, "repr"));
    const char *what = repr ? repr : name ? name : "no reason was given";

    rejection_begin_line(text);
    if (session_reason_is_bootstrap(name) && kernel)
        strbuf_addf(text, "In %s on agent '%s' %s", kernel, agent ? agent : "", what);
    else if (session_reason_is_bootstrap(name))
        strbuf_addf(text, "On agent '%s' %s", agent ? agent : "", what);
    else if (agent)
        strbuf_addf(text, "Agent '%s' could not start %s: %s", agent, kernel ? kernel : "it", what);
    else
        strbuf_addf(text, "%s could not be started: %s", kernel ? kernel : "It", what);
    if (field && !strstr(what, field))
        strbuf_addf(text, " (%s)", field);
}

void core_status_text(const char *status_data, struct strbuf *text)
{
    json_auto_t *data = json_load_string(status_data, 0);
    const json_t *error = json_object_get(data, "error");
    const char *explanation = json_string_value(json_object_get(data, "text"));

    if (explanation) {
        rejection_begin_line(text);
        strbuf_adds(text, explanation);
    }
    if (json_is_object(error))
        rejection_add_sentence(data, text);
}

void rejection_append(const char *status_data, struct strbuf *text, struct strbuf *json)
{
    json_auto_t *data = json_load_string(status_data, 0), *explanation = NULL;
    json_t *error = json_object_get(data, "error");
    char *both;

    if (!json_is_object(error))
        return;
    if (text)
        rejection_add_sentence(data, text);
    if (!json)
        return;
    explanation = json_load_string(json->data, 0);
    json_object_set(explanation, "error", error);
    if (json_object_get(data, "kernel"))
        json_object_set(explanation, "kernel", json_object_get(data, "kernel"));
    both = json_dump_text(explanation, JSON_COMPACT);
    strbuf_truncate(json, 0);
    strbuf_adds(json, both);
    free(both);
}

char *rejection_keep(const char *status_data, uint32_t failed)
{
    json_auto_t *data = json_load_string(status_data, 0), *kept = json_object();
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (failed && json_object_get(data, "error")) {
        strbuf_addf(&text, "Its start has failed %u time%s, most recently:", (unsigned)failed,
                    failed == 1 ? "" : "s");
        (void)json_object_set_new(kept, "text", json_string(text.data));
        (void)json_object_set(kept, "error", json_object_get(data, "error"));
        if (json_object_get(data, "kernel"))
            (void)json_object_set(kept, "kernel", json_object_get(data, "kernel"));
    }
    return json_dump_text(kept, JSON_COMPACT);
}
