/* SPDX-License-Identifier: Apache-2.0 */
/* notification_rest.h - what the routes of channels and rules share
 *
 * As Backend.AI's clients from 26 on manage them. On the loop's thread.
 */
#ifndef AQ_MANAGER_NOTIFICATION_NOTIFICATION_REST_H
#define AQ_MANAGER_NOTIFICATION_NOTIFICATION_REST_H

#include "manager/call/api.h"
#include "manager/notification/notifications.h"

#define NOTIFICATION_NAME_MAX 256
#define NOTIFICATION_DESCRIPTION_MAX 4096

/* Members that both have, also when they are changed. */
struct notification_params {
    const char *name, *description; /* NULL = not given */
    enum maybe enabled;
};

/* Make one, or change that of the path: 'value', which is taken, has what is its kind's own and
 * given. Answers in any case, also for an 'err' with a code.
 */
void notification_save(struct api *api, struct request *req, enum notification_kind kind,
                       bool is_new, const struct notification_params *params, json_t *value,
                       struct aq_error *err);
void notification_remove(struct api *api, struct request *req, enum notification_kind kind);
void notification_get(struct api *api, struct request *req, enum notification_kind kind);
/* Our own list, of all. */
void notification_list(struct api *api, struct request *req, enum notification_kind kind);
void notification_search(struct api *api, struct request *req, enum notification_kind kind);
extern const struct field notification_channel_search_fields[], notification_rule_search_fields[];

/* The error of a test, as clients are told it. */
void notification_fail_test(struct request *req, const struct aq_error *err);

#endif
