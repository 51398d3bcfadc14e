/* SPDX-License-Identifier: Apache-2.0 */
/* newer.h - lists as Backend.AI 26 asks for them: 'filter' is an input object, 'orderBy' a list,
 * the part is 'limit' and 'offset', or cursors
 *
 * They are nodes (node.h): what is asked becomes filter and order of the mini language (filter.h)
 * and the same range, so the rows, their fields and who may see them are those of the older list.
 * A root XsV2 is added by
 *  - the schema: the root with these arguments, types XV2, XV2Connection, XV2Edge, and the inputs
 *    XV2Filter and XV2OrderBy, where XV2OrderField has the fields in capitals;
 *  - a struct gql_node of type XV2 over the rows of the older list, in nodes[] of node.c, with the
 *    older node's narrow(); 'newer_words' where a member is called otherwise than our field in
 *    snake_case;
 *  - entries: the root GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE), the id
 *    GQL_GET(gql_node_get_id), NODE_CONNECTION(XV2), GQL_SELF for groups of fields.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_NEWER_H
#define AQ_MANAGER_CALL_GRAPHQL_NEWER_H

#include "manager/call/graphql/node.h"

/* The most that 'limit', 'first' and 'last' may be. */
#define NEWER_MAX 1000

/* Whether the field takes these arguments. */
bool newer_is_asked(const struct gql_field_def *field);

/* What they say; texts in the arena. -EINVAL names what cannot be read. */
int newer_read_part(const struct gql_call *call, const struct gql_node *node,
                    struct gql_node_part *ret, struct aq_error *err);

/* "createdAt" and "CREATED_AT" as "created_at"; "BEFORE_VERIFICATION" as "before-verification".
 * What is too long is cut.
 */
void newer_snake_case(const char *name, char *ret, size_t size);
void newer_lower_word(const char *name, char *ret, size_t size);

#endif
