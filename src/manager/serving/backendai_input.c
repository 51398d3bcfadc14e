/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_input.c - see backendai_input.h */
#include "manager/serving/backendai_input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "graphql/relay.h"
#include "manager/call/graphql/mutation.h"
#include "manager/serving/serving_view.h"

void backendai_payload_done(struct gql_call *call, const struct backendai_payload *payload,
                            const struct aq_error *err)
{
    struct backendai_payload *kept = arena_alloc(call->arena, sizeof(*kept));

    if (err) {
        (void)mutation_fail(call, err);
    } else {
        *kept = *payload;
        call->results[0] = gql_object(kept);
    }
    gql_call_done(call);
}

/* ---- JSON ---- */

static json_t *input_value(const struct gql_type *type, struct gql_value value)
{
    json_t *made;

    switch ((enum gql_kind)value.kind) {
    case GQL_BOOL:
        return json_boolean(value.boolean);
    case GQL_INT:
        return json_integer(value.integer);
    case GQL_FLOAT:
        return json_real(value.real);
    case GQL_STRING:
        return json_stringn(value.text, value.count);
    case GQL_ENUM:
        return json_string(type->values[value.integer].name);
    case GQL_LIST:
        made = json_array();
        for (uint32_t i = 0; i < value.count; i++)
            (void)json_array_append_new(made, input_value(type, value.items[i]));
        return made;
    case GQL_INPUT:
        made = json_object();
        for (uint32_t i = 0; i < type->input_count; i++)
            if (value.items[i].kind != GQL_ABSENT)
                (void)json_object_set_new(made, type->inputs[i].name,
                                          input_value(type->inputs[i].type.type, value.items[i]));
        return made;
    case GQL_MAP:
        made = json_object();
        for (uint32_t i = 0; i < value.count; i++)
            (void)json_object_set_new(made, value.members[i].name,
                                      input_value(type, value.members[i].value));
        return made;
    default:
        return json_null();
    }
}

json_t *backendai_input_read(const struct gql_call *call)
{
    return input_value(call->field->args[0].type.type, call->args[0]);
}

const char *backendai_input_text(const json_t *input, const char *member)
{
    return json_string_value(json_object_get(input, member));
}

int backendai_input_uuid(const struct gql_call *call, const json_t *input, const char *member,
                         struct uuid *ret, struct aq_error *err)
{
    const char *text = backendai_input_text(input, member), *type;

    if (!text || uuid_parse(relay_global_id_parse(call->arena, text, &type), ret) < 0)
        return api_fail_param(err, member, "'%.64s' is not a UUID or global id", text ? text : "");
    return 0;
}

/* ---- services ---- */

const struct model_service *backendai_input_service(const struct gql_call *call,
                                                    const json_t *input, const char *member,
                                                    struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const struct model_service *s;
    struct uuid id;

    if (backendai_input_uuid(call, input, member, &id, err) < 0)
        return NULL;
    s = core_find_service_by_id(context->api->core, &id);
    if (s && serving_view_may(context->req, s))
        return s;
    (void)serving_view_set_unknown(backendai_input_text(input, member), err);
    return NULL;
}

void backendai_input_rename(const char *const names[][2], size_t count, struct aq_error *err)
{
    char field[sizeof(err->field)];

    (void)snprintf(field, sizeof(field), "%s", err->field);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(names[i][0]);

        if (strncmp(field, names[i][0], len) == 0 && strchr(".", field[len]))
            (void)snprintf(err->field, sizeof(err->field), "%.48s%.30s", names[i][1], field + len);
    }
}

int backendai_input_check_frozen(const struct gql_call *call, struct aq_error *err)
{
    return mutation_api(call)->is_frozen ? aq_fail_kind(
               err, EBUSY, "conflict", "the manager is frozen by an administrator; try later")
                                         : 0;
}
