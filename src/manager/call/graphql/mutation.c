/* SPDX-License-Identifier: Apache-2.0 */
/* Who may send mutations, and what they answer. */
#include "manager/call/graphql/mutation.h"

#include <stdio.h>
#include <string.h>

static int mutation_answer(struct gql_call *call, const struct mutation_result *result)
{
    struct mutation_result *kept = arena_alloc(call->arena, sizeof(*kept));

    *kept = *result;
    kept->msg = arena_strdup(call->arena, result->msg);
    call->results[0] = gql_object(kept);
    return GQL_DONE;
}

int mutation_finish(struct gql_call *call, bool ok, const char *msg, const struct uuid *task_id)
{
    struct mutation_result result = { .ok = ok, .msg = msg };
    char text[UUID_TEXT_MAX];

    if (task_id)
        result.task_id = arena_strdup(call->arena, uuid_format(task_id, text));
    return mutation_answer(call, &result);
}

int mutation_succeed(struct gql_call *call, const void *object)
{
    return mutation_answer(
        call, &(struct mutation_result){ .ok = true, .msg = "success", .object = object });
}

void mutation_write_reason(const struct aq_error *err, char *ret, size_t size)
{
    const struct problem_type *type = problem_of(err);

    if (type->status == 500)
        (void)snprintf(ret, size, "%s", type->title);
    else if (err->field[0] && strcmp(type->slug, "invalid-api-params") == 0)
        (void)snprintf(ret, size, "%s: %s", err->field, err->text);
    else
        (void)snprintf(ret, size, "%s", err->text);
}

int mutation_refuse(struct gql_call *call, const struct aq_error *err)
{
    char msg[MUTATION_REASON_MAX];

    mutation_write_reason(err, msg, sizeof(msg));
    return mutation_answer(call, &(struct mutation_result){ .msg = msg });
}

int mutation_fail(struct gql_call *call, const struct aq_error *err)
{
    char msg[MUTATION_REASON_MAX];

    mutation_write_reason(err, msg, sizeof(msg));
    return gql_call_fail(call, "%s", msg);
}

void mutation_on_done(void *data, int r, const struct aq_error *err)
{
    struct gql_call *call = data;

    (void)(r < 0 ? mutation_refuse(call, err) : mutation_succeed(call, NULL));
    gql_call_done(call);
}

struct api *mutation_api(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api;
}

const struct audit_who *mutation_who(const struct gql_call *call)
{
    const struct gql_context *context = call->context;

    return api_who(context->api, context->req);
}

/* False: 'ret' is what is said. */
static bool mutation_is_allowed(const struct gql_call *call, char ret[128])
{
    const struct gql_context *context = call->context;

    if (principal_is_superadmin(context->who))
        return true;
    api_note_denied(context->api, context->req, "mutation", call->field->name);
    (void)snprintf(ret, 128, "no permission to execute %s", call->field->name);
    return false;
}

bool mutation_may(struct gql_call *call)
{
    char msg[128];

    if (mutation_is_allowed(call, msg))
        return true;
    (void)mutation_finish(call, false, msg, NULL);
    return false;
}

bool mutation_may_or_fails(struct gql_call *call)
{
    char msg[128];

    if (mutation_is_allowed(call, msg))
        return true;
    (void)gql_call_fail(call, "%s", msg);
    return false;
}

struct gql_value mutation_prop(const struct gql_call *call, const char *name)
{
    return gql_arg_member(call, call->field->args[1].name, name);
}

static json_t *mutation_member(const struct field *field, const struct gql_value *value)
{
    struct aq_error ignored = { 0 };
    json_t *parsed = NULL;

    switch (field->type) {
    case FIELD_BOOL:
        return json_boolean(value->boolean);
    case FIELD_INT32:
    case FIELD_INT:
    case FIELD_USEC:
        return json_integer(value->integer);
    case FIELD_JSON_TEXT:
    case FIELD_SLOTS:
        (void)decode_json(value->text, strlen(value->text), &parsed, &ignored);
        return parsed;
    default:
        return json_string(value->text);
    }
}

int mutation_members(const struct gql_call *call, const struct entity *entity, json_t **ret,
                     struct aq_error *err)
{
    json_auto_t *members = json_object();

    for (const struct field *field = entity->change; field->names; field++) {
        char own[FIELD_NAME_MAX], name[FIELD_NAME_MAX];
        struct gql_value value = mutation_prop(call, field_backendai_name(field, name));
        json_t *member = gql_is_given(value) ? mutation_member(field, &value) : NULL;

        if (gql_is_given(value) && !member)
            return api_fail_param(err, field_backendai_name(field, name), "is no JSON object");
        if (member)
            (void)json_object_set_new(members, field_name(field, own), member);
    }
    *ret = json_incref(members);
    return 0;
}
