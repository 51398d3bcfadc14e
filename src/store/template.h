/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - rows of templates of sessions and clusters
 *
 * For functions given to store_read() and store_write(). Who may change what was found is checked
 * by the caller.
 */
#ifndef AQ_STORE_TEMPLATE_H
#define AQ_STORE_TEMPLATE_H

#include "base/arena.h"
#include "model/folder.h"
#include "store/query.h"

#define TEMPLATES_MAX 1000 /* of a user */

enum template_kind { TEMPLATE_SESSION, TEMPLATE_CLUSTER, TEMPLATE_ANY };

struct template_row {
    struct uuid id;
    enum template_kind kind;
    const char *name;
    struct uuid user_id, project_id; /* the latter nil = it is the user's alone */
    const char *domain;
    const char *text, *parsed; /* as it was given; JSON */
    int64_t created_usec, modified_usec;
    const char *user_email, *project_name; /* as read */
};

/* Those of this kind, or any, that the viewer may use: own, and of projects that the viewer is in;
 * with 'all' also what an administrator may see. Rows are struct template_row. query: user_id (the
 * owner), project_id, domain, filter, order, limit, offset.
 */
int store_list_templates(struct store_tx *tx, const struct folder_viewer *who,
                         enum template_kind kind, bool all, const struct store_query *query,
                         struct store_page **ret, struct aq_error *err);

/* -EEXIST: the user has one of this name; -E2BIG. */
int template_insert(struct store_tx *tx, const struct template_row *row, struct aq_error *err);
/* Name, texts and when. -EEXIST. */
int template_update(struct store_tx *tx, const struct template_row *row, struct aq_error *err);
int template_remove(struct store_tx *tx, const struct uuid *id, struct aq_error *err);

const char *template_kind_name(enum template_kind kind);

#endif
