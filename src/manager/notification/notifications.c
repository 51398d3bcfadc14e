/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and rules of notifications, and what they make of sessions that start and end. */
#include "manager/notification/notifications.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "http/problem.h"
#include "manager/core/statistics.h"
#include "model/session_summary.h"
#include "store/config_entries.h"

#define SETTING_NOTIFICATIONS "notifications"
#define SUBJECT_MAX 200 /* bytes */

struct notifications {
    struct core *core;
    struct deliveries *deliveries;
    struct core_subscriber *subscriber;
    json_t *all;
};

static const char *notification_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- the setting ---- */

const json_t *notifications_all(const struct notifications *n)
{
    return n->all;
}

bool notification_is(const json_t *row, enum notification_kind kind)
{
    return json_object_get(row, kind == NOTIFICATION_CHANNEL ? "channel_type" : "rule_type");
}

int notifications_find(const struct notifications *n, enum notification_kind kind, const char *id,
                       const json_t **ret, struct aq_error *err)
{
    *ret = json_object_get(n->all, id);
    if (notification_is(*ret, kind))
        return 0;
    return kind == NOTIFICATION_CHANNEL
               ? problem_no_such(err, "notification channel", "there is no channel '%.64s'", id)
               : problem_no_such(err, "notification rule", "there is no rule '%.64s'", id);
}

json_t *notification_show(const json_t *row)
{
    json_t *shown = json_deep_copy(row), *spec = json_object_get(shown, "spec"), *value;
    const char *name;

    (void)json_object_del(json_object_get(spec, "auth"), "password");
    json_object_foreach(json_object_get(spec, "headers"), name, value)
        json_object_set_new(json_object_get(spec, "headers"), name, json_null());
    return shown;
}

int notifications_seal(const struct notifications *n, const char *field, const char *text,
                       json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *sealed = NULL;
    struct aq_error why = { 0 };

    if (setting_secret_seal(core_store(n->core), text, &sealed, &why) < 0)
        return aq_fail_as(err, EINVAL, "invalid-api-params", field, "%.200s", why.text);
    *ret = json_string(sealed);
    return 0;
}

/* Each rule has its channel. */
static int notifications_check(const json_t *all, const char *member, struct aq_error *err)
{
    const char *id;
    json_t *rule;

    json_object_foreach((json_t *)(uintptr_t)all, id, rule) {
        const char *channel = notification_text(rule, "channel_id");

        if (!channel || notification_is(json_object_get(all, channel), NOTIFICATION_CHANNEL))
            continue;
        if (strcmp(id, member) == 0)
            return aq_fail_as(err, EINVAL, "invalid-api-params", "channel_id",
                              "there is no notification channel '%.64s'", channel);
        return aq_fail_kind(err, EEXIST, "generic-bad-request",
                            "the rule '%.64s' uses the channel; delete it first",
                            notification_text(rule, "name"));
    }
    return 0;
}

void notifications_change(struct notifications *n, enum notification_kind kind,
                          enum object_setting_how how, const char *id, json_t *value,
                          const struct audit_who *by, store_done_fn done, void *data)
{
    static const struct object_setting settings[] = {
        [NOTIFICATION_CHANNEL] = { SETTING_NOTIFICATIONS, "notification-channel",
                                   "notification channel", NOTIFICATIONS_MAX, notifications_check,
                                   notification_show },
        [NOTIFICATION_RULE] = { SETTING_NOTIFICATIONS, "notification-rule", "notification rule",
                                NOTIFICATIONS_MAX, notifications_check, notification_show },
    };

    object_setting_change(core_store(n->core), &settings[kind], &n->all, how, id, value, by, done,
                          data);
}

/* ---- what is sent ---- */

/* Append "Name: value" lines of a channel's own, which are sealed. */
static int notification_add_headers(const struct notifications *n, const json_t *headers,
                                    struct strbuf *out, struct aq_error *err)
{
    const char *name;
    json_t *sealed;

    json_object_foreach((json_t *)(uintptr_t)headers, name, sealed) {
        AQ_CLEANUP(aq_freep) char *value = NULL;
        int r = setting_secret_reveal(core_store(n->core), json_string_value(sealed), &value, err);

        if (r < 0)
            return r;
        strbuf_addf(out, "%s: %s\r\n", name, value);
        explicit_bzero(value, strlen(value));
    }
    return 0;
}

static int notification_fill_http(const struct notifications *n, const json_t *spec,
                                  const char *text, struct delivery *d, struct aq_error *err)
{
    struct strbuf headers = STRBUF_INIT;
    json_t *status;
    size_t i;
    int r;

    d->method = strcmp(notification_text(spec, "method"), "GET") == 0 ? METHOD_GET : METHOD_POST;
    d->answer_msec = (unsigned)json_integer_value(json_object_get(spec, "timeout")) * 1000;
    json_array_foreach(json_object_get(spec, "success_status_codes"), i, status)
        if (d->status_count < DELIVERY_STATUSES_MAX)
            d->statuses[d->status_count++] = json_integer_value(status);
    strbuf_adds(&headers, "User-Agent: aliquot-manager\r\n");
    if (d->method == METHOD_POST)
        strbuf_addf(&headers, "Content-Type: %s\r\n", notification_text(spec, "content_type"));
    r = notification_add_headers(n, json_object_get(spec, "headers"), &headers, err);
    d->headers = strbuf_steal(&headers);
    d->url = aq_strdup(notification_text(spec, "url"));
    if (d->method == METHOD_POST)
        d->body = aq_strdup(text);
    return r;
}

/* One line of it, the first. */
static char *notification_make_subject(const char *text)
{
    size_t len = AQ_MIN(strcspn(text, "\r\n"), SUBJECT_MAX);
    char *subject = aq_strndup(text, len);

    utf8_drop_partial(subject);
    for (char *p = subject; *p; p++)
        if (iscntrl((unsigned char)*p))
            *p = ' ';
    return subject;
}

static int notification_fill_login(const struct notifications *n, const json_t *auth,
                                   struct smtp_mail *mail, struct aq_error *err)
{
    if (!json_is_object(auth))
        return 0;
    mail->username = aq_strdup(notification_text(auth, "username"));
    return setting_secret_reveal(core_store(n->core), notification_text(auth, "password"),
                                 &mail->password, err);
}

static int notification_fill_mail(const struct notifications *n, const json_t *spec,
                                  const char *subject, const char *text, struct smtp_mail *mail,
                                  struct aq_error *err)
{
    const json_t *smtp = json_object_get(spec, "smtp"), *message = json_object_get(spec, "message");
    const json_t *to = json_object_get(message, "to_emails");
    json_t *one;
    size_t i;

    (void)snprintf(mail->server.host, sizeof(mail->server.host), "%s",
                   notification_text(smtp, "host"));
    mail->server.port = (uint16_t)json_integer_value(json_object_get(smtp, "port"));
    mail->use_tls = json_is_true(json_object_get(smtp, "use_tls"));
    mail->timeout_msec = (unsigned)json_integer_value(json_object_get(smtp, "timeout")) * 1000;
    mail->from = aq_strdup(notification_text(message, "from_email"));
    mail->subject = notification_make_subject(subject);
    mail->text = aq_strdup(text);
    mail->to = aq_alloc_array(json_array_size(to), sizeof(*mail->to));
    json_array_foreach((json_t *)(uintptr_t)to, i, one)
        mail->to[mail->to_count++] = aq_strdup(json_string_value(one));
    return notification_fill_login(n, json_object_get(spec, "auth"), mail, err);
}

/* 'subject' NULL = the first line of the text. */
static int notification_make(const struct notifications *n, const json_t *channel,
                             const char *subject, const char *text, struct delivery **ret,
                             struct aq_error *err)
{
    AQ_CLEANUP(delivery_freep) struct delivery *d = aq_alloc(sizeof(*d));
    const json_t *spec = json_object_get(channel, "spec");
    int r;

    d->title = aq_format("notification channel '%s'", notification_text(channel, "name"));
    if (strlen(text) > NOTIFICATION_TEXT_MAX)
        return aq_fail(err, E2BIG, "the message has more than %u bytes", NOTIFICATION_TEXT_MAX);
    if (strcmp(notification_text(channel, "channel_type"), "webhook") == 0) {
        r = notification_fill_http(n, spec, text, d, err);
    } else {
        d->mail = aq_alloc(sizeof(*d->mail));
        r = notification_fill_mail(n, spec, subject ? subject : text, text, d->mail, err);
    }
    if (r == 0)
        *ret = AQ_TAKE(d);
    return r;
}

/* What a rule says of the values; its text is appended to 'text'. */
static int notification_make_of_rule(const struct notifications *n, const json_t *rule,
                                     const struct notification_values *values, struct strbuf *text,
                                     struct delivery **ret, struct aq_error *err)
{
    const json_t *channel = json_object_get(n->all, notification_text(rule, "channel_id"));
    const json_t *spec = json_object_get(channel, "spec");
    const char *type = notification_text(spec, "content_type");
    const char *title = notification_text(json_object_get(spec, "message"), "subject_template");
    AQ_CLEANUP(strbuf_donep) struct strbuf subject = STRBUF_INIT;

    notification_template_render(notification_text(rule, "message_template"), values,
                                 type && strstr(type, "json"), text);
    if (title)
        notification_template_render(title, values, false, &subject);
    return notification_make(n, channel, title ? subject.data : NULL, text->data, ret, err);
}

int notifications_test(struct notifications *n, const json_t *channel, const char *text,
                       delivery_done_fn done, void *data, struct aq_error *err)
{
    struct delivery *delivery;
    int r = notification_make(n, channel, NULL, text, &delivery, err);

    return r < 0 ? r : deliveries_try(n->deliveries, delivery, done, data, err);
}

int notifications_test_rule(struct notifications *n, const json_t *rule,
                            const struct notification_values *values, struct strbuf *text,
                            delivery_done_fn done, void *data, struct aq_error *err)
{
    struct delivery *delivery;
    int r = notification_make_of_rule(n, rule, values, text, &delivery, err);

    return r < 0 ? r : deliveries_try(n->deliveries, delivery, done, data, err);
}

/* ---- events ---- */

/* NULL = no rule is of it. */
static const char *notification_type_of(const struct core_event *event)
{
    if (event->kernel)
        return NULL;
    if (strcmp(event->name, "session_started") == 0)
        return "session.started";
    if (strcmp(event->name, SESSION_EVENT_IDLE_WARNING) == 0)
        return "session.idle_warning";
    return strcmp(event->name, "session_terminated") == 0
                   || strcmp(event->name, "session_cancelled") == 0
               ? "session.terminated"
               : NULL;
}

static void notifications_tell(const struct notifications *n, const json_t *rule,
                               const struct notification_values *values)
{
    const char *channel_id = notification_text(rule, "channel_id");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct delivery *delivery;
    struct aq_error err = { 0 };
    struct uuid owner;

    if (!json_is_true(json_object_get(json_object_get(n->all, channel_id), "enabled"))
        || uuid_parse(channel_id, &owner) < 0)
        return;
    if (notification_make_of_rule(n, rule, values, &text, &delivery, &err) == 0)
        deliveries_add(n->deliveries, &owner, delivery);
    else
        log_warning("notification rule '%s' told nobody: %s", notification_text(rule, "name"),
                    err.text);
}

#define NUMBER_MAX 24

static void notification_set_number(struct notification_values *values,
                                    enum notification_field field, double value,
                                    char text[NUMBER_MAX])
{
    (void)snprintf(text, NUMBER_MAX, "%.0f", value);
    values->of[field] = text;
}

/* True if the last attempt of a batch session ran. */
static bool notification_has_usage(const struct session *s)
{
    return s->type == SESSION_BATCH && session_is_terminal(s->status)
           && s->status != SESSION_CANCELLED && session_started_usec(s) != 0;
}

/* Adds the usage of a batch session; 'numbers' holds the texts. */
static void notification_summarize(const struct core *core, const struct session *session,
                                   char numbers[NOTIFICATION_FIELDS][NUMBER_MAX],
                                   struct notification_values *values)
{
    struct session_summary s = { .wall_usec = clock_realtime_usec() - session->running_usec };
    double wall = (double)s.wall_usec / (double)USEC_PER_SEC;

    for (size_t i = 0; i < session->kernel_count; i++)
        session_summary_add_measured(&s, core_kernel_measured(core, &session->kernels[i].id),
                                     &session->kernels[i].requested);
    notification_set_number(values, NOTIFICATION_WALL_SEC, wall, numbers[NOTIFICATION_WALL_SEC]);
    if (s.has_cpu)
        notification_set_number(values, NOTIFICATION_CPU_SEC, s.cpu_sec,
                                numbers[NOTIFICATION_CPU_SEC]);
    if (s.has_cpu && wall > 0 && s.cpu_asked > 0)
        notification_set_number(values, NOTIFICATION_CPU_EFFICIENCY,
                                100 * s.cpu_sec / (wall * s.cpu_asked),
                                numbers[NOTIFICATION_CPU_EFFICIENCY]);
    if (s.has_mem)
        notification_set_number(values, NOTIFICATION_MEM_PEAK, (double)s.mem_peak / (1 << 20),
                                numbers[NOTIFICATION_MEM_PEAK]);
    if (s.mem_asked)
        notification_set_number(values, NOTIFICATION_MEM_ASKED, (double)s.mem_asked / (1 << 20),
                                numbers[NOTIFICATION_MEM_ASKED]);
}

static void notifications_on_event(void *data, const struct core_event *event)
{
    const char *type = notification_type_of(event), *id;
    const struct notifications *n = data;
    char session_id[UUID_TEXT_MAX], status[32] = "";
    char numbers[NOTIFICATION_FIELDS][NUMBER_MAX];
    struct notification_values values;
    json_t *rule;

    if (!type || json_object_size(n->all) == 0)
        return;
    (void)snprintf(status, sizeof(status), "%s", session_status_name(event->session->status));
    for (char *p = status; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    values = (struct notification_values){ {
        [NOTIFICATION_SESSION_ID] = uuid_format(&event->session->id, session_id),
        [NOTIFICATION_SESSION_NAME] = event->session->name,
        [NOTIFICATION_SESSION_TYPE] = session_type_name(event->session->type),
        [NOTIFICATION_CLUSTER_MODE] = cluster_mode_name(event->session->is_multi_node),
        [NOTIFICATION_STATUS] = status,
        [NOTIFICATION_TERMINATION_REASON] = event->reason,
    } };
    if (notification_has_usage(event->session))
        notification_summarize(n->core, event->session, numbers, &values);
    json_object_foreach(n->all, id, rule)
        if (notification_is(rule, NOTIFICATION_RULE)
            && strcmp(notification_text(rule, "rule_type"), type) == 0
            && json_is_true(json_object_get(rule, "enabled")))
            notifications_tell(n, rule, &values);
}

/* ---- beginning and end ---- */

int notifications_new(struct core *core, struct deliveries *deliveries, struct notifications **ret,
                      struct aq_error *err)
{
    struct notifications *n = aq_alloc(sizeof(*n));
    int r;

    n->core = core;
    n->deliveries = deliveries;
    r = object_setting_load(core_store(core), SETTING_NOTIFICATIONS, &n->all, err);
    if (r < 0) {
        notifications_free(n);
        return r;
    }
    n->subscriber = core_subscribe(core, NULL, notifications_on_event, n);
    *ret = n;
    return 0;
}

void notifications_stop(struct notifications *n)
{
    if (n->subscriber)
        core_unsubscribe(n->core, AQ_TAKE(n->subscriber));
}

void notifications_free(struct notifications *n)
{
    if (!n)
        return;
    notifications_stop(n);
    json_decref(n->all);
    free(n);
}
