/* SPDX-License-Identifier: Apache-2.0 */
/* replies.h - replies, whole, for queries over the zoo */
#ifndef AQ_TESTS_UNIT_GRAPHQL_REPLIES_H
#define AQ_TESTS_UNIT_GRAPHQL_REPLIES_H

#include "testing.h"

#include "zoo_data.h"

struct zoo_row {
    const char *query, *variables, *reply;
};

/* Each query gives its reply, also when its document comes from the cache. */
void zoo_check(const struct zoo_row *rows, size_t count);

#endif
