/* SPDX-License-Identifier: Apache-2.0 */
/* template_internal.h - what template.c, template_list.c and template_request.c share */
#ifndef AQ_MANAGER_TEMPLATE_TEMPLATE_INTERNAL_H
#define AQ_MANAGER_TEMPLATE_TEMPLATE_INTERNAL_H

#include "manager/template/template.h"
#include "manager/template/template_git.h"

/* A session's template; texts are of the arena, values borrowed. */
struct template_session {
    const char *kind, *name, *tag, *type;
    const char *image, *architecture, *bootstrap, *startup;
    struct template_git git;
    const char *scaling_group, *cluster_mode;
    const json_t *environ, *mounts, *resources, *resource_opts;
    struct str_list agents;
    struct int_list ports;
    int64_t cluster_size, priority;
};

int template_read_session(const json_t *parsed, struct arena *arena, struct template_session *ret,
                          struct aq_error *err);

/* The members as texts: those of an environment, or paths, where null is "". */
int template_texts(const json_t *object, const char *path, bool is_null_empty, json_t **ret,
                   struct aq_error *err);

/* Names that the table does not have are refused, with "path.name" as the error's field. */
int template_check_names(const struct field *table, const json_t *object, const char *path,
                         struct aq_error *err);

/* All of a template; the error's field is the member. *ret_name is of the arena. */
int template_check_all(enum template_kind kind, const json_t *parsed, struct arena *arena,
                       const char **ret_name, struct aq_error *err);

/* The list of a payload of Backend.AI's form; NULL = it is another. */
const json_t *template_list_of(const json_t *parsed);
/* Its templates, for template_parsed_free(); the error's field is the member. */
int template_list_read(const json_t *parsed, struct arena *arena, struct template_parsed **ret,
                       size_t *ret_count, struct aq_error *err);

#endif
