/* SPDX-License-Identifier: Apache-2.0 */
/* booking_params.h - a request that creates or changes a booking */
#ifndef AQ_MANAGER_BOOKING_BOOKING_PARAMS_H
#define AQ_MANAGER_BOOKING_BOOKING_PARAMS_H

#include <jansson.h>

#include "manager/call/api.h"
#include "model/booking.h"

/* Members that were not given are zeroed; start and end are dates, start also a duration from now. */
struct booking_params {
    const char *name, *start, *end, *resource_group;
    int64_t duration_usec, nodes, release_unused_usec;
    const json_t *resources; /* borrowed from the request's JSON */
    struct str_list agents;
    struct str_list members; /* "project:NAME", "user:EMAIL" */
    bool ignore_sessions;
};

extern const struct field booking_create_fields[], booking_change_fields[];

/* Change those members of 'b' that 'given', the request's JSON, has. Of a new one ('b' is zeroed but
 * for the creator) those that are not given have their defaults: it starts now, on one node of the
 * resource group "default". -EINVAL names the field.
 */
int booking_params_apply(const struct api *api, const struct request *req,
                         const struct booking_params *params, const json_t *given,
                         struct booking *b, struct aq_error *err);

#endif
