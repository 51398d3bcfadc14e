/* SPDX-License-Identifier: Apache-2.0 */
/* model_service.h - model services that have ended, and what became of those that live
 *
 * Live services are in the manager's memory.
 */
#ifndef AQ_STORE_MODEL_SERVICE_H
#define AQ_STORE_MODEL_SERVICE_H

#include "model/model_service.h"
#include "store/store.h"

#define MODEL_SERVICE_ENDED_MAX 1000  /* in a list */
#define MODEL_SERVICE_HISTORY_MAX 500 /* entries that are kept of a service */

struct model_service_rows {
    struct model_service *items;
    size_t count, cap;
};

void model_service_rows_done(struct model_service_rows *rows);

static inline void model_service_rows_donep(struct model_service_rows *rows)
{
    model_service_rows_done(rows);
}

/* Which of those that have ended. Services of others are not even looked at: they would take the place
 * of the caller's, in a list as under a name.
 */
struct model_service_ended {
    const char *text;           /* of this id or name; NULL = any */
    const struct uuid *user_id; /* of this user, NULL = of all users */
    const char *domain;         /* beside 'user_id': and of this domain; NULL = of none besides */
    int64_t limit, offset;      /* without 'text'; of the last MODEL_SERVICE_ENDED_MAX */
    size_t bytes_max;           /* of their revisions; 0 = no limit */
    bool leaves_out;            /* what is beyond these bytes, rather than fail */
};

/* Append them, the last one first, without tokens. With 'text' the one of this id, else the last one
 * of this name, whatever its case, with all of its revisions; without it each has its goal alone.
 * -EMSGSIZE with the field "limit".
 */
int store_read_ended_model_services(struct store_tx *tx, const struct model_service_ended *of,
                                    struct model_service_rows *ret, struct aq_error *err);

/* How many there are without limit and offset, up to MODEL_SERVICE_ENDED_MAX. */
int store_count_ended_model_services(struct store_tx *tx, const struct model_service_ended *of,
                                     int64_t *ret, struct aq_error *err);

/* A change of a service: how many replicas of which revision were wanted from then on, and the share
 * of each (0 = as the revision says).
 */
struct model_service_change {
    int64_t version, at_usec, replicas, share_micro, goal;
    char *reason; /* for people: what was changed, by whom, why; NULL = it is not known */
};

struct model_service_changes {
    struct model_service_change *items;
    size_t count, cap;
};

void model_service_changes_done(struct model_service_changes *changes);

/* Append the last 'limit' ones, the last one first. */
int store_read_model_service_changes(struct store_tx *tx, const struct uuid *id, size_t limit,
                                     struct model_service_changes *ret, struct aq_error *err);

/* A replica of this number is made, in the transaction that makes its session; replicas may be made
 * in another order than that of their numbers. -ESTALE if the service has ended or is ending.
 */
int model_service_take_number(struct store_tx *tx, const struct uuid *id, int64_t number,
                              struct aq_error *err);

#endif
