/* SPDX-License-Identifier: Apache-2.0 */
/* error_log.h - what went wrong in clients, as they report it themselves
 *
 * Rows go when they are many of one user, or old (store/retention.h). For functions given to
 * store_write() and store_read().
 */
#ifndef AQ_STORE_ERROR_LOG_H
#define AQ_STORE_ERROR_LOG_H

#include "store/query.h"

#define ERROR_LOGS_OF_USER 200

/* Texts that may be NULL: request_url, traceback. */
struct error_log {
    struct uuid id, user_id;
    int64_t at_usec;
    const char *severity, *source, *message, *context_lang;
    const char *context_env; /* JSON */
    const char *request_url, *traceback;
    int64_t request_status; /* 0 = none */
    bool is_read;           /* when it is listed */
};

int error_log_add(struct store_tx *tx, const struct error_log *entry, struct aq_error *err);

/* Rows of struct error_log that are not cleared, the newest first. Narrowed by user_id and by
 * domain (of the user).
 */
int store_list_error_logs(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                          struct aq_error *err);

/* In a store_write(): the page has been shown. */
int error_log_mark_read(struct store_tx *tx, const struct store_page *page, struct aq_error *err);

/* It is listed no more: of this user or domain (NULL = any). How many, 0 or 1. */
int error_log_clear(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                    const char *domain, struct aq_error *err);

#endif
