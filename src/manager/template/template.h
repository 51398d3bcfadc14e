/* SPDX-License-Identifier: Apache-2.0 */
/* template.h - what templates of sessions and clusters may say, and what they ask for
 *
 * A template is a YAML or JSON text of Backend.AI's form. It is checked whole, and becomes members
 * of POST /session, over which those of a request are laid. Pure.
 */
#ifndef AQ_MANAGER_TEMPLATE_TEMPLATE_H
#define AQ_MANAGER_TEMPLATE_TEMPLATE_H

#include <jansson.h>

#include "manager/call/decode.h"
#include "store/template.h"

#define TEMPLATE_BYTES_MAX (64 << 10)
#define TEMPLATE_NAME_MAX 128
#define TEMPLATE_NODES_MAX 64 /* of a cluster's template */

#define TEMPLATE_LIST_MAX 100 /* templates of one payload */

/* A template of a payload. Texts are of the arena, or the payload itself. */
struct template_parsed {
    json_t *json; /* the same members, for template_parsed_free() */
    enum template_kind kind;
    const char *name, *text;
    const char *group_id, *user_uuid; /* of an entry of a list; NULL = unsaid */
};

/* The text, checked whole; 'kind' is what it has to be. Of TEMPLATE_SESSION, also a list as
 * Backend.AI's clients send it: [{"template": {...}, "name", "group_id", "user_uuid"}, ...], or the
 * same as the member "session_templates"; without one, *ret_count is 1. -EINVAL
 * (invalid-api-params) with the field "payload" and a text such as "line 7, column 5: unknown key
 * 'imge'; did you mean 'image'?".
 */
int template_parse(enum template_kind kind, const char *text, size_t len, struct arena *arena,
                   struct template_parsed **ret, size_t *ret_count,
                   struct aq_error *err) AQ_UNTRUSTED;
void template_parsed_free(struct template_parsed *all, size_t count);

/* Make an error about a member, such as "spec.nodes.1.role", one about its place in the text. */
void template_place(const char *text, size_t len, struct aq_error *err);

/* What a session's template asks for, as members of POST /session by their first names; the
 * commands that clone its repository come before the bootstrap script, that of the template or
 * another one: in *ret_clone, appended. NULL with -EINVAL if it was not checked.
 */
json_t *template_request(const json_t *parsed, struct strbuf *ret_clone, struct aq_error *err);

/* Hide the passwords in a template from those who only use it: what they see as its text then,
 * free(), or NULL as it has none.
 */
char *template_hide(json_t *parsed);

/* A role of a cluster's template; texts are of the arena. */
struct template_node {
    const char *role, *session_template; /* the latter an id or a name */
    int64_t replicas;
    size_t index; /* in the text */
};

struct template_cluster {
    const char *name, *tag;
    bool is_multi_node;
    json_t *environ;                                /* texts, of all roles; the caller's */
    json_t *mounts;                                 /* {name: path or ""}; the caller's */
    struct template_node nodes[TEMPLATE_NODES_MAX]; /* "main" is the first */
    size_t count;
};

int template_read_cluster(const json_t *parsed, struct arena *arena, struct template_cluster *ret,
                          struct aq_error *err);
void template_cluster_done(struct template_cluster *cluster);

/* Lay 'over' on 'base', members of 'table' by any of their names: what it has counts, objects
 * member by member. An empty object takes the base's away; null says nothing, and so does an empty
 * list of mounts unless there is a mount_map, too.
 */
void template_overlay(const struct field *table, json_t *base, const json_t *over);

/* {name: path} as the members config.mounts and config.mount_map. */
void template_add_mounts(json_t *config, const json_t *mounts);

/* ---- dotfiles ---- */

/* -EINVAL, field "path", if it is not below the home directory, or reserved. */
int dotfile_check_path(const char *path, struct aq_error *err);

/* -EINVAL, field "permission", if it is not such as "644". */
int dotfile_check_permission(const char *permission, struct aq_error *err);

#endif
