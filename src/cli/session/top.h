/* SPDX-License-Identifier: Apache-2.0 */
/* top.h - the parts of "top": rows of sessions, and the view of them on a terminal */
#ifndef AQ_CLI_SESSION_TOP_H
#define AQ_CLI_SESSION_TOP_H

#include <jansson.h>

#include "cli/cli.h"

/* Of the picture that is shown once. */
extern const struct column top_columns[];

/* Add what the columns show to a session as the manager gives it. */
void top_adapt(const struct output *o, json_t *session);

/* Nodes with their devices. */
void top_write_agents(const struct output *o, const json_t *agents, struct strbuf *out);

/* ---- live ---- */

/* By which key, and whether the other way than usual: the highest first, names from A to Z. */
struct top_order {
    char key;
    bool is_reversed;
};

/* c cores, m memory, g accelerators, a age, n name */
bool top_order_is_key(uint32_t key);

/* Of the sessions (adapted) those whose name or user contains 'search', whatever the case, in
 * order; borrowed rows, free() the array.
 */
json_t **top_select(json_t *sessions, const char *search, struct top_order order,
                    size_t *ret_count);

/* A table as wide as o->width, with a mark at the column that orders it. */
void top_write_rows(const struct output *o, json_t *const *rows, size_t count,
                    struct top_order order, struct strbuf *out);

/* Stay on the terminal until a key leaves it. Takes 'answer' over, the first of 'path'. */
int top_view_run(struct cli *cli, const char *path, int64_t interval_usec, json_t *answer,
                 struct aq_error *err);

#endif
