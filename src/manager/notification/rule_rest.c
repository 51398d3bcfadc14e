/* SPDX-License-Identifier: Apache-2.0 */
/* /notifications/rules: what is told through channels of notifications. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"
#include "manager/notification/notification_rest.h"
#include "manager/notification/notification_feature.h"

#define TEMPLATE_MAX 65536

struct rule_params {
    struct notification_params shared;
    const char *rule_type, *message_template;
    struct uuid channel_id;
};

#define AT(member) offsetof(struct rule_params, member)
#define SHARED_FIELDS                                                                 \
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, AT(shared.description), \
      .max = NOTIFICATION_DESCRIPTION_MAX },                                          \
    {                                                                                 \
        "enabled", FIELD_MAYBE, FIELD_NULLABLE, AT(shared.enabled)                    \
    }

static const struct field rule_create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(shared.name), 1, NOTIFICATION_NAME_MAX },
    { "rule_type", FIELD_STR, FIELD_REQUIRED, AT(rule_type), 1, 64,
      .doc = "one of GET /notifications/rule-types" },
    { "channel_id", FIELD_UUID, FIELD_REQUIRED, AT(channel_id) },
    { "message_template", FIELD_STR, FIELD_REQUIRED, AT(message_template), 1, TEMPLATE_MAX,
      .doc = "text, with fields of the type as {{ session_name }}" },
    SHARED_FIELDS,
    FIELD_END,
};

static const struct field rule_update_fields[] = {
    { "name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(shared.name), 1, NOTIFICATION_NAME_MAX },
    { "message_template", FIELD_STR, FIELD_NULLABLE, AT(message_template), 1, TEMPLATE_MAX },
    SHARED_FIELDS,
    FIELD_END,
};

static int rule_find(const struct api *api, const struct request *req, const json_t **ret,
                     struct aq_error *err)
{
    return notifications_find(api->notification->notifications, NOTIFICATION_RULE,
                              request_get_param(req, "id"), ret, err);
}

static json_t *rule_make(const struct rule_params *params, struct aq_error *err)
{
    const struct notification_type *type;
    char channel[UUID_TEXT_MAX];

    if (notification_type_find(params->rule_type, "rule_type", &type, err) < 0
        || notification_template_check(type, params->message_template, "message_template", err) < 0)
        return NULL;
    return json_pack("{s:s, s:s, s:s}", "rule_type", type->name, "channel_id",
                     uuid_format(&params->channel_id, channel), "message_template",
                     params->message_template);
}

static void rule_on_create(struct request *req, void *data)
{
    struct rule_params params = { 0 };
    struct aq_error err = { 0 };
    json_t *value = NULL;

    if (api_decode(req, &params, NULL, &err) == 0)
        value = rule_make(&params, &err);
    notification_save(data, req, NOTIFICATION_RULE, true, &params.shared, value, &err);
}

static json_t *rule_make_change(const struct api *api, const struct request *req,
                                const struct rule_params *params, struct aq_error *err)
{
    const struct notification_type *type;
    const json_t *rule;

    if (rule_find(api, req, &rule, err) < 0
        || notification_type_find(json_string_value(json_object_get(rule, "rule_type")),
                                  "rule_type", &type, err)
               < 0)
        return NULL;
    if (params->message_template
        && notification_template_check(type, params->message_template, "message_template", err) < 0)
        return NULL;
    return params->message_template
               ? json_pack("{s:s}", "message_template", params->message_template)
               : json_object();
}

static void rule_on_update(struct request *req, void *data)
{
    struct rule_params params = { 0 };
    struct aq_error err = { 0 };
    json_t *value = NULL;

    if (api_decode(req, &params, NULL, &err) == 0)
        value = rule_make_change(data, req, &params, &err);
    notification_save(data, req, NOTIFICATION_RULE, false, &params.shared, value, &err);
}

/* ---- test ---- */

struct rule_test {
    struct request *req;
    struct strbuf text;
};

static const struct field rule_test_fields[] = {
    { "notification_data", FIELD_OBJECT, FIELD_NULLABLE, 0,
      .doc = "texts of the type's fields; those that are not given have an example" },
    FIELD_END,
};

static void rule_on_tested(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct rule_test *test = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = test->text; /* the test goes with its request */
    struct jsonw w = jsonw_make(&out);

    if (err->code) {
        notification_fail_test(test->req, err);
    } else {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "message", text.data);
        jsonw_object_end(&w);
        request_reply_json(test->req, 200, &out);
    }
}

static int rule_read_values(const json_t *rule, const json_t *given,
                            struct notification_values *ret, struct aq_error *err)
{
    const struct notification_type *type;
    const char *key;
    json_t *value;
    int r = notification_type_find(json_string_value(json_object_get(rule, "rule_type")),
                                   "rule_type", &type, err);

    for (enum notification_field i = 0; r == 0 && i < type->field_end; i++)
        ret->of[i] = notification_field_sample(i);
    json_object_foreach((json_t *)(uintptr_t)given, key, value) {
        enum notification_field which = r < 0 ? NOTIFICATION_FIELDS
                                              : notification_field_find(type, key, strlen(key));

        if (r == 0
            && (which == NOTIFICATION_FIELDS || !(json_is_string(value) || json_is_null(value))))
            r = api_fail_param(err, "notification_data", "'%.64s' is no text of a field of %s", key,
                               type->name);
        else if (r == 0)
            ret->of[which] = json_string_value(value);
    }
    return r;
}

static void rule_on_test(struct request *req, void *data)
{
    struct rule_test *test = arena_alloc(request_get_arena(req), sizeof(*test));
    struct notification_values values = { 0 };
    const struct api *api = data;
    const json_t *given = NULL, *rule;
    json_auto_t *tree = NULL;
    struct aq_error err = { 0 };

    *test = (struct rule_test){ .req = req };
    strbuf_init(&test->text);
    if (api_decode(req, &given, &tree, &err) == 0 && rule_find(api, req, &rule, &err) == 0
        && rule_read_values(rule, given, &values, &err) == 0
        && notifications_test_rule(api->notification->notifications, rule, &values, &test->text,
                                   rule_on_tested, test, &err)
               == 0)
        return;
    strbuf_done(&test->text);
    request_fail(req, &err);
}

static void rule_on_search(struct request *req, void *data)
{
    notification_search(data, req, NOTIFICATION_RULE);
}

static void rule_on_list(struct request *req, void *data)
{
    notification_list(data, req, NOTIFICATION_RULE);
}

static void rule_on_get(struct request *req, void *data)
{
    notification_get(data, req, NOTIFICATION_RULE);
}

static void rule_on_delete(struct request *req, void *data)
{
    notification_remove(data, req, NOTIFICATION_RULE);
}

static const struct route notification_rule_routes[] = {
    { METHOD_GET, "/aliquot/v1/notification-rules", API_SUPERADMIN, rule_on_list, NULL,
      "Rules of notifications" },
    { METHOD_POST, "/notifications/rules", API_SUPERADMIN, rule_on_create, rule_create_fields,
      "Make a rule of notifications", .answer = { 201 } },
    { METHOD_POST, "/notifications/rules/search", API_SUPERADMIN, rule_on_search,
      notification_rule_search_fields, "Rules of notifications" },
    { METHOD_GET, "/notifications/rules/{id}", API_SUPERADMIN, rule_on_get, NULL,
      "A rule of notifications" },
    { METHOD_PATCH, "/notifications/rules/{id}", API_SUPERADMIN, rule_on_update, rule_update_fields,
      "Change a rule of notifications" },
    { METHOD_DELETE, "/notifications/rules/{id}", API_SUPERADMIN, rule_on_delete, NULL,
      "Delete a rule of notifications" },
    { METHOD_POST, "/notifications/rules/{id}/validate", API_SUPERADMIN, rule_on_test,
      rule_test_fields, "Send what a rule makes of test data, now" },
};
API_ROUTES_END(notification_rule);
