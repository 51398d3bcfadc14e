/* SPDX-License-Identifier: Apache-2.0 */
/* array_list.h - lists of arrays, those that ended included */
#ifndef AQ_STORE_ARRAY_LIST_H
#define AQ_STORE_ARRAY_LIST_H

#include "model/session_array.h"
#include "store/query.h"

/* Texts are the page's; counts are those of the row. Those NULL where there is none: image, tag,
 * user_email, project_name.
 */
struct array_row {
    struct session_array array; /* without element, indices and removed */
    const char *indices;        /* text of the set */
    struct uuid user_id;
    const char *access_key, *domain, *resource_group, *image, *tag, *user_email, *project_name;
    enum session_type type;
    int priority;
    const char *depends_on; /* the column; NULL = it waits for nothing, or that is met */
    struct dependency_row *dependencies; /* of it, if the query wants them */
    size_t dependency_count;
};

/* The last one first. 'statuses' of the query: without those of sessions that have ended only
 * arrays that live; without those of such that live only those that have ended; 0 = all.
 */
int store_list_arrays(struct store_tx *tx, const struct store_query *q, struct store_page **ret,
                      struct aq_error *err);

#endif
