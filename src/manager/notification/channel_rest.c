/* SPDX-License-Identifier: Apache-2.0 */
/* /notifications/channels: where notifications go, by HTTP or by e-mail. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "manager/notification/notification_rest.h"
#include "manager/notification/notification_feature.h"

#define TIMEOUT_MAX 300 /* seconds */
#define HEADERS_MAX 20
#define HEADER_MAX 4096
#define RECIPIENTS_MAX 50
#define LOGIN_MAX 1024
#define SUBJECT_MAX 256
#define TEST_MAX 5000
#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:"
#define TOKEN_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

struct channel_params {
    struct notification_params shared;
    const char *channel_type;
    const char *url, *method, *content_type;
    struct pair_list headers;
    struct int_list statuses;
    int64_t timeout;
    const char *host;
    int64_t port, smtp_timeout;
    enum maybe use_tls;
    const char *from;
    struct str_list to;
    const char *subject;
    const char *username, *password;
};

#define AT(member) offsetof(struct channel_params, member)

static const struct field channel_smtp_fields[] = {
    { "host", FIELD_STR, FIELD_REQUIRED, AT(host), 1, 255 },
    { "port", FIELD_INT, FIELD_REQUIRED, AT(port), 1, 65535 },
    { "use_tls", FIELD_MAYBE, 0, AT(use_tls),
      .doc = "true by default: STARTTLS, or TLS from the beginning at port 465" },
    { "timeout", FIELD_INT, 0, AT(smtp_timeout), 1, TIMEOUT_MAX, .doc = "seconds; 30 by default" },
    FIELD_END,
};

static const struct field channel_message_fields[] = {
    { "from_email", FIELD_STR, FIELD_REQUIRED, AT(from), 3, SMTP_ADDRESS_MAX },
    { "to_emails", FIELD_STR_LIST, FIELD_REQUIRED, AT(to), .max = RECIPIENTS_MAX },
    { "subject_template", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(subject), 1, SUBJECT_MAX,
      .doc = "as a rule's template; without it the message's first line" },
    FIELD_END,
};

static const struct field channel_auth_fields[] = {
    { "username", FIELD_STR, FIELD_NULLABLE, AT(username), 1, LOGIN_MAX },
    { "password", FIELD_STR, FIELD_NULLABLE | FIELD_SECRET, AT(password), 1, LOGIN_MAX,
      .doc = "it is never shown again" },
    FIELD_END,
};

static const struct field channel_spec_fields[] = {
    { "url", FIELD_STR, 0, AT(url), 1, DELIVERY_URL_MAX },
    { "method", FIELD_STR, 0, AT(method), 1, 8, .doc = "POST (by default) or GET, without a body" },
    { "content_type", FIELD_STR, FIELD_LINE, AT(content_type), 1, 128,
      .doc = "application/json by default" },
    { "headers", FIELD_PAIRS, FIELD_SECRET, AT(headers), .max = HEADERS_MAX,
      .doc = "names to values, which are never shown again" },
    { "timeout", FIELD_INT, 0, AT(timeout), 1, TIMEOUT_MAX, .doc = "seconds; 30 by default" },
    { "success_status_codes", FIELD_PORT_LIST, 0, AT(statuses), 200, 599,
      .doc = "200, 201, 202 and 204 by default" },
    { "smtp", FIELD_STRUCT, 0, .sub = channel_smtp_fields },
    { "message", FIELD_STRUCT, 0, .sub = channel_message_fields },
    { "auth", FIELD_STRUCT, FIELD_NULLABLE, .sub = channel_auth_fields },
    FIELD_END,
};

#define SHARED_FIELDS                                                                 \
    { "description", FIELD_STR, FIELD_NULLABLE | FIELD_LINES, AT(shared.description), \
      .max = NOTIFICATION_DESCRIPTION_MAX },                                          \
    {                                                                                 \
        "enabled", FIELD_MAYBE, FIELD_NULLABLE, AT(shared.enabled)                    \
    }

static const struct field channel_create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(shared.name), 1, NOTIFICATION_NAME_MAX },
    { "channel_type", FIELD_STR, FIELD_REQUIRED, AT(channel_type), 1, 16,
      .doc = "webhook, with url and what follows it in spec, or email, with smtp, message and "
             "perhaps auth" },
    { "spec", FIELD_STRUCT, FIELD_REQUIRED, .sub = channel_spec_fields },
    SHARED_FIELDS,
    FIELD_END,
};

static const struct field channel_update_fields[] = {
    { "name", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(shared.name), 1, NOTIFICATION_NAME_MAX },
    { "spec", FIELD_STRUCT, FIELD_NULLABLE, .sub = channel_spec_fields,
      .doc = "whole, with secrets; of the type that the channel has" },
    SHARED_FIELDS,
    FIELD_END,
};

/* ---- webhooks ---- */

/* Printable ASCII, as all of a request's head. */
static bool channel_is_printable(const char *text)
{
    while (isprint((unsigned char)*text))
        text++;
    return !*text;
}

static int channel_check_header(const struct text_pair *header, struct aq_error *err)
{
    static const char *const ours[] = { "Host",       "Content-Length", "Transfer-Encoding",
                                        "Connection", "Content-Type",   "Upgrade",
                                        "User-Agent", "Expect" };

    if (!*header->key || header->key[strspn(header->key, TOKEN_CHARS)]
        || !channel_is_printable(header->value) || strlen(header->value) > HEADER_MAX
        || strlen(header->key) > 128)
        return api_fail_param(err, "spec.headers", "'%.64s' is no header, or its value is none",
                              header->key);
    for (size_t i = 0; i < AQ_COUNT(ours); i++)
        if (strcasecmp(ours[i], header->key) == 0)
            return api_fail_param(err, "spec.headers", "'%s' is not set by headers", ours[i]);
    return 0;
}

static int channel_make_headers(const struct api *api, const struct pair_list *given, json_t **ret,
                                struct aq_error *err)
{
    json_auto_t *headers = json_object();

    for (size_t i = 0; i < given->count; i++) {
        json_t *sealed = NULL;

        if (channel_check_header(&given->items[i], err) < 0
            || notifications_seal(api->notification->notifications, "spec.headers",
                                  given->items[i].value, &sealed, err)
                   < 0)
            return -err->code;
        json_object_set_new(headers, given->items[i].key, sealed);
    }
    *ret = json_incref(headers);
    return 0;
}

static int channel_check_webhook(const struct api *api, const struct channel_params *p,
                                 struct aq_error *err)
{
    if (p->host || p->from || p->username || p->password)
        return api_fail_param(err, "spec.smtp", "is of e-mail channels");
    if (!p->url)
        return api_fail_param(err, "spec.url", "is needed");
    if (p->method && strcmp(p->method, "POST") != 0 && strcmp(p->method, "GET") != 0)
        return api_fail_param(err, "spec.method", "is POST or GET");
    if (p->content_type && !channel_is_printable(p->content_type))
        return api_fail_param(err, "spec.content_type", "has characters that no header may have");
    if (p->statuses.count > DELIVERY_STATUSES_MAX)
        return api_fail_param(err, "spec.success_status_codes", "has more than %d codes",
                              DELIVERY_STATUSES_MAX);
    return deliveries_check_url(api->notification->deliveries, "spec.url", p->url, err);
}

static int channel_make_webhook(const struct api *api, const struct channel_params *p, json_t **ret,
                                struct aq_error *err)
{
    static int64_t fine[] = { 200, 201, 202, 204 };
    const struct int_list statuses = p->statuses.count ? p->statuses
                                                       : (struct int_list){ fine, AQ_COUNT(fine) };
    json_t *headers = NULL, *codes;
    int r = channel_check_webhook(api, p, err);

    if (r == 0)
        r = channel_make_headers(api, &p->headers, &headers, err);
    if (r < 0)
        return r;
    codes = json_array();
    for (size_t i = 0; i < statuses.count; i++)
        json_array_append_new(codes, json_integer(statuses.items[i]));
    *ret = json_pack(
        "{s:s, s:s, s:s, s:o, s:I, s:o}", "url", p->url, "method", p->method ? p->method : "POST",
        "content_type", p->content_type ? p->content_type : "application/json", "headers", headers,
        "timeout", (json_int_t)(p->timeout ? p->timeout : 30), "success_status_codes", codes);
    return 0;
}

/* ---- e-mail ---- */

static int channel_check_mail(const struct api *api, const struct channel_params *p,
                              struct aq_error *err)
{
    const struct notification_type *all = &notification_types[NOTIFICATION_TYPES - 1];

    if (p->url)
        return api_fail_param(err, "spec.url", "is of webhook channels");
    if (!p->host)
        return api_fail_param(err, "spec.smtp", "is needed");
    if (p->host[strspn(p->host, HOST_CHARS)])
        return api_fail_param(err, "spec.smtp.host", "is no host");
    if (!p->from)
        return api_fail_param(err, "spec.message", "is needed");
    if (!smtp_address_is_valid(p->from))
        return api_fail_param(err, "spec.message.from_email", "is no address NAME@HOST");
    if (!p->to.count)
        return api_fail_param(err, "spec.message.to_emails", "names nobody");
    for (size_t i = 0; i < p->to.count; i++)
        if (!smtp_address_is_valid(p->to.items[i]))
            return api_fail_param(err, "spec.message.to_emails", "'%.64s' is no address NAME@HOST",
                                  p->to.items[i]);
    if (!p->username != !p->password)
        return api_fail_param(err, p->username ? "spec.auth.password" : "spec.auth.username",
                              "is needed");
    if (p->username && p->use_tls == MAYBE_FALSE)
        return api_fail_param(err, "spec.auth", "needs use_tls: the password would be readable");
    if (p->subject
        && notification_template_check(all, p->subject, "spec.message.subject_template", err) < 0)
        return -err->code;
    return deliveries_check_host(api->notification->deliveries, "spec.smtp.host", p->host, err);
}

static int channel_make_mail(const struct api *api, const struct channel_params *p, json_t **ret,
                             struct aq_error *err)
{
    json_auto_t *to = json_array(), *password = NULL;
    json_t *auth = NULL;
    int r = channel_check_mail(api, p, err);

    if (r == 0 && p->password)
        r = notifications_seal(api->notification->notifications, "spec.auth.password", p->password,
                               &password, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < p->to.count; i++)
        json_array_append_new(to, json_string(p->to.items[i]));
    auth = password ? json_pack("{s:s, s:O}", "username", p->username, "password", password)
                    : json_null();
    *ret = json_pack("{s:{s:s, s:I, s:b, s:I}, s:{s:s, s:O, s:s?}, s:o}", "smtp", "host", p->host,
                     "port", (json_int_t)p->port, "use_tls", p->use_tls != MAYBE_FALSE, "timeout",
                     (json_int_t)(p->smtp_timeout ? p->smtp_timeout : 30), "message", "from_email",
                     p->from, "to_emails", to, "subject_template", p->subject, "auth", auth);
    return 0;
}

/* ---- changes ---- */

static int channel_make_spec(const struct api *api, const struct channel_params *p,
                             const char *type, json_t **ret, struct aq_error *err)
{
    *ret = NULL;
    if (strcasecmp(type, "webhook") == 0)
        return channel_make_webhook(api, p, ret, err);
    if (strcasecmp(type, "email") == 0)
        return channel_make_mail(api, p, ret, err);
    return api_fail_param(err, "channel_type", "is webhook or email");
}

static int channel_find(const struct api *api, const struct request *req, const json_t **ret,
                        struct aq_error *err)
{
    return notifications_find(api->notification->notifications, NOTIFICATION_CHANNEL,
                              request_get_param(req, "id"), ret, err);
}

static json_t *channel_make(const struct api *api, const struct channel_params *p,
                            struct aq_error *err)
{
    json_t *spec;

    if (channel_make_spec(api, p, p->channel_type, &spec, err) < 0)
        return NULL;
    return json_pack("{s:s, s:o}", "channel_type",
                     strcasecmp(p->channel_type, "email") == 0 ? "email" : "webhook", "spec", spec);
}

static void channel_on_create(struct request *req, void *data)
{
    struct channel_params params = { 0 };
    struct aq_error err = { 0 };
    json_t *value = NULL;

    if (api_decode(req, &params, NULL, &err) == 0)
        value = channel_make(data, &params, &err);
    notification_save(data, req, NOTIFICATION_CHANNEL, true, &params.shared, value, &err);
}

static void channel_on_update(struct request *req, void *data)
{
    struct channel_params params = { 0 };
    json_auto_t *tree = NULL, *spec = NULL;
    struct aq_error err = { 0 };
    const json_t *channel;
    json_t *value = NULL;

    if (api_decode(req, &params, &tree, &err) == 0 && channel_find(data, req, &channel, &err) == 0
        && (!json_is_object(json_object_get(tree, "spec"))
            || channel_make_spec(data, &params,
                                 json_string_value(json_object_get(channel, "channel_type")), &spec,
                                 &err)
                   == 0))
        value = spec ? json_pack("{s:O}", "spec", spec) : json_object();
    notification_save(data, req, NOTIFICATION_CHANNEL, false, &params.shared, value, &err);
}

/* ---- test ---- */

static const struct field channel_test_fields[] = {
    { "test_message", FIELD_STR, FIELD_REQUIRED, 0, 1, TEST_MAX, .doc = "sent as it is" },
    FIELD_END,
};

static void channel_on_tested(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct request *req = data;

    if (err->code) {
        notification_fail_test(req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "channel_id", request_get_param(req, "id"));
    jsonw_member_bool(&w, "success", true);
    jsonw_member_str(&w, "message", "the message has been sent");
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void channel_on_test(struct request *req, void *data)
{
    const struct api *api = data;
    const char *text = NULL;
    struct aq_error err = { 0 };
    const json_t *channel;

    if (api_decode(req, &text, NULL, &err) < 0 || channel_find(api, req, &channel, &err) < 0
        || notifications_test(api->notification->notifications, channel, text, channel_on_tested,
                              req, &err)
               < 0)
        request_fail(req, &err);
}

static void channel_on_search(struct request *req, void *data)
{
    notification_search(data, req, NOTIFICATION_CHANNEL);
}

static void channel_on_list(struct request *req, void *data)
{
    notification_list(data, req, NOTIFICATION_CHANNEL);
}

static void channel_on_get(struct request *req, void *data)
{
    notification_get(data, req, NOTIFICATION_CHANNEL);
}

static void channel_on_delete(struct request *req, void *data)
{
    notification_remove(data, req, NOTIFICATION_CHANNEL);
}

static const struct route notification_channel_routes[] = {
    { METHOD_GET, "/aliquot/v1/notification-channels", API_SUPERADMIN, channel_on_list, NULL,
      "Channels of notifications" },
    { METHOD_POST, "/notifications/channels", API_SUPERADMIN, channel_on_create,
      channel_create_fields, "Make a channel of notifications", .answer = { 201 } },
    { METHOD_POST, "/notifications/channels/search", API_SUPERADMIN, channel_on_search,
      notification_channel_search_fields, "Channels of notifications" },
    { METHOD_GET, "/notifications/channels/{id}", API_SUPERADMIN, channel_on_get, NULL,
      "A channel of notifications" },
    { METHOD_PATCH, "/notifications/channels/{id}", API_SUPERADMIN, channel_on_update,
      channel_update_fields, "Change a channel of notifications" },
    { METHOD_DELETE, "/notifications/channels/{id}", API_SUPERADMIN, channel_on_delete, NULL,
      "Delete a channel of notifications that no rule uses" },
    { METHOD_POST, "/notifications/channels/{id}/validate", API_SUPERADMIN, channel_on_test,
      channel_test_fields, "Send a text through a channel, now" },
};
API_ROUTES_END(notification_channel);
