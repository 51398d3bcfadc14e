/* SPDX-License-Identifier: Apache-2.0 */
/* notifications.h - channels (webhooks, e-mail), and rules that say what is told through them
 *
 * Both are one setting in the store, by their ids, read at the start; what is changed counts once
 * it is durable. What secret a channel has is sealed, in memory too, until something is sent. A
 * session's start or end is told after it is durable, as deliveries.h says, where the channel is
 * the owner.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_NOTIFICATION_NOTIFICATIONS_H
#define AQ_MANAGER_NOTIFICATION_NOTIFICATIONS_H

#include <jansson.h>

#include "manager/core/core.h"
#include "manager/notification/deliveries.h"
#include "manager/notification/notification_message.h"
#include "manager/call/object_setting.h"

struct notifications;

#define NOTIFICATIONS_MAX 200 /* channels and rules together */
#define NOTIFICATION_TEXT_MAX (128u << 10)

enum notification_kind { NOTIFICATION_CHANNEL, NOTIFICATION_RULE };

/* Reads them and begins; blocks. */
int notifications_new(struct core *core, struct deliveries *deliveries, struct notifications **ret,
                      struct aq_error *err);
/* Hear of no more events; before the core's end. */
void notifications_stop(struct notifications *notifications);
/* After the store has run the callbacks of changes, and before the deliveries' end. NULL is fine.
 */
void notifications_free(struct notifications *notifications);

/* {"ID": {...}}, of both kinds; borrowed until the loop runs again. A channel has "channel_type"
 * and "spec", a rule "rule_type", "channel_id" and "message_template"; both "name", "description",
 * "enabled", "created_by", "created_at" and "updated_at" (microseconds).
 */
const json_t *notifications_all(const struct notifications *notifications);
bool notification_is(const json_t *row, enum notification_kind kind);
/* -ENOENT */
int notifications_find(const struct notifications *notifications, enum notification_kind kind,
                       const char *id, const json_t **ret, struct aq_error *err);

/* A copy without secrets, the caller's. */
json_t *notification_show(const json_t *row);

/* The text sealed, as a spec has secrets. -EINVAL with 'field': it looks sealed already. */
int notifications_seal(const struct notifications *notifications, const char *field,
                       const char *text, json_t **ret, struct aq_error *err);

/* As object_setting_change(); -EINVAL "channel_id" if there is none, -EEXIST while rules use it. */
void notifications_change(struct notifications *notifications, enum notification_kind kind,
                          enum object_setting_how how, const char *id, json_t *value,
                          const struct audit_who *by, store_done_fn done, void *data);

/* Send a text through the channel now, also if it is disabled. */
int notifications_test(struct notifications *notifications, const json_t *channel, const char *text,
                       delivery_done_fn done, void *data, struct aq_error *err);
/* What the rule makes of these values; the text is appended to 'text'. */
int notifications_test_rule(struct notifications *notifications, const json_t *rule,
                            const struct notification_values *values, struct strbuf *text,
                            delivery_done_fn done, void *data, struct aq_error *err);

#endif
