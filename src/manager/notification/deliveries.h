/* SPDX-License-Identifier: Apache-2.0 */
/* deliveries.h - messages to addresses that others have named, by HTTP and by e-mail
 *
 * Addresses are others' words: only public ones are connected to, and networks that the settings
 * allow; redirects are not followed. A message is tried three times at most and kept in memory; of
 * one owner one is under way and few wait. What is beyond, and what waits when the manager ends, is
 * lost.
 * Loop's thread.
 */
#ifndef AQ_MANAGER_NOTIFICATION_DELIVERIES_H
#define AQ_MANAGER_NOTIFICATION_DELIVERIES_H

#include <uv.h>

#include "base/error.h"
#include "base/list.h"
#include "base/uuid.h"
#include "http/message.h"
#include "http/network.h"
#include "http/smtp.h"
#include "manager/notification/notification.h"

struct deliveries;

#define DELIVERY_STATUSES_MAX 32

/* Zeroed, then filled; its texts are freed with it. */
struct delivery {
    char *title;            /* whom a failure is logged of; NULL = of nobody */
    struct smtp_mail *mail; /* NULL = by HTTP: */
    enum method method;
    char *url, *headers; /* as those of struct client_request */
    char *body;          /* NULL = none */
    unsigned answer_msec;
    int64_t
        statuses[DELIVERY_STATUSES_MAX]; /* by which the server says that it has it; none = 2xx */
    size_t status_count;

    /* deliveries.c's own */
    struct list link;
    unsigned attempts;
    int64_t due_usec; /* monotonic */
};

void delivery_free(struct delivery *delivery);
AQ_DEFINE_CLEANUP(struct delivery, delivery_free)

struct deliveries *deliveries_new(uv_loop_t *loop);
/* Further networks that may be reached; borrowed. */
void deliveries_allow(struct deliveries *deliveries, const struct network *networks, size_t count);
/* Drop what waits, and take nothing more; tries that are under way end with ECANCELED. */
void deliveries_stop(struct deliveries *deliveries);
/* After deliveries_stop(), if the loop has run. NULL is fine. */
void deliveries_free(struct deliveries *deliveries);

/* Could messages be sent there? -EINVAL with 'field': it is no URL of http or https, or has an
 * address that may not be reached. A name is looked up when there is something to say.
 */
int deliveries_check_url(const struct deliveries *deliveries, const char *field, const char *url,
                         struct aq_error *err);
/* The same of a host alone. */
int deliveries_check_host(const struct deliveries *deliveries, const char *field, const char *host,
                          struct aq_error *err);

/* Send it when it is the owner's turn. Takes it. */
void deliveries_add(struct deliveries *deliveries, const struct uuid *owner,
                    struct delivery *delivery);

/* Send it now and once: 'done' says what became of it. Takes it. -EAGAIN. */
typedef void (*delivery_done_fn)(void *data, const struct aq_error *err);
int deliveries_try(struct deliveries *deliveries, struct delivery *delivery, delivery_done_fn done,
                   void *data, struct aq_error *err);

#endif
