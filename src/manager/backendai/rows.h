/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - inside manager/backendai: an import on its way, and its rows */
#ifndef AQ_MANAGER_BACKENDAI_ROWS_H
#define AQ_MANAGER_BACKENDAI_ROWS_H

#include "base/map.h"
#include "manager/backendai/import.h"
#include "store/dotfile.h"
#include "store/resource_group_access.h"

/* In the order in which they are taken: what a row names comes before it. */
enum backendai_table {
    BACKENDAI_DOMAINS,
    BACKENDAI_POLICIES,
    BACKENDAI_RESOURCE_GROUPS,
    BACKENDAI_PROJECTS,
    BACKENDAI_USERS,
    BACKENDAI_MEMBERS,
    BACKENDAI_KEYPAIRS,
    BACKENDAI_DOMAIN_GRANTS,
    BACKENDAI_PROJECT_GRANTS,
    BACKENDAI_KEYPAIR_GRANTS,
    BACKENDAI_PRESETS,
    BACKENDAI_ALIASES,
    BACKENDAI_TABLE_COUNT
};

/* CHANGED: taken, but not as it was. */
enum backendai_outcome { BACKENDAI_TAKEN, BACKENDAI_CHANGED, BACKENDAI_EXISTS, BACKENDAI_LEFT };

#define BACKENDAI_UNSET INT64_MIN

/* A column that becomes a member of an entity as it is. */
union backendai_value {
    const char *text;
    const json_t *object; /* borrowed */
    enum maybe yes;
    int64_t number;
};

/* What a table has no column for is not given. */
struct backendai_row {
    int64_t line; /* of the source */
    const char *id, *name, *domain, *email, *full_name, *role, *status, *password;
    const char *user, *project, *access_key, *secret_key, *policy, *ssh_public_key, *script;
    const char *resource_group, *scheduler, *unspecified, *shared_memory, *image;
    const json_t *slots, *options, *dotfiles; /* borrowed */
    const union backendai_value *values; /* by their places in entity.fields; NULL = no entity */

    bool was_allowed; /* a grant: found in the store */
    const char *hash; /* of a plain password; NULL = not hashed yet */
    bool needs_hash;
    /* what became of it */
    const char *label; /* its name for people */
    enum backendai_outcome outcome;
    const char *note; /* why it was changed or left; NULL = nothing to say */
};

struct backendai_rows {
    struct backendai_row *items;
    size_t count;
};

/* Whom an id of the source is here. */
struct backendai_user {
    struct uuid id;
    const char *email, *domain;
    const struct user *existing; /* NULL = new */
    size_t event;                /* that saves it; SIZE_MAX = none yet */
};

struct backendai_project {
    struct uuid id;
    const char *name, *domain;
};

struct backendai_grant {
    enum allow_kind kind;
    const char *resource_group, *whom;
    struct backendai_row *row;
};

struct backendai_file { /* or a bootstrap script, which has no path */
    struct dotfile_owner owner;
    struct dotfile file;
};

/* What has no event: written beside those of the batch. */
struct backendai_attached {
    struct backendai_grant *grants;
    size_t grant_count, grant_cap;
    struct backendai_file *files;
    size_t file_count, file_cap;
    json_t *presets, *aliases;         /* to be added */
    json_t *all_presets, *all_aliases; /* afterwards */
    const struct audit_who *by; /* of the entry in the audit log that says how much that is */
};

struct backendai_params {
    const json_t *tables;
    bool plain_passwords, dry_run;
};

struct backendai_import {
    struct api *api;
    struct arena arena;
    const char *text; /* the request's */
    size_t text_len;
    json_t *tree;
    struct backendai_params params;
    struct audit_who by;
    struct backendai_rows tables[BACKENDAI_TABLE_COUNT];
    size_t hashed; /* users whose passwords were looked at */

    /* of the last check */
    struct account_change *change;
    struct map domains, policies, resource_groups; /* new ones by name -> row */
    struct map projects, project_names;            /* id of the source; "DOMAIN/NAME" -> row */
    struct map users, emails, usernames;           /* id of the source; -> row */
    struct map keypairs;                           /* -> row */
    struct backendai_attached attached;
    json_t *errors;
    size_t error_count;

    struct backendai_result result;
    backendai_done_fn *done;
    void *data;
};

/* A row becomes events, or is left. -EINVAL: the import cannot be, 'err' says why of this row. */
typedef int backendai_take_fn(struct backendai_import *import, struct backendai_row *row,
                              struct aq_error *err);

struct backendai_kind {
    const char *table; /* as Backend.AI calls it */
    const struct field *fields;
    backendai_take_fn *take;
    const struct entity *entity; /* its other members are columns, too; NULL = none */
};
extern const struct backendai_kind backendai_kinds[BACKENDAI_TABLE_COUNT];

/* ---- rows.c ---- */

/* All rows of the request. -EINVAL names the table and row. */
int backendai_read_rows(struct backendai_import *import, struct aq_error *err);

/* Say why a row is not taken as it was; it is then changed ... */
void backendai_note(struct backendai_import *import, struct backendai_row *row, const char *fmt,
                    ...) AQ_PRINTF(3, 4);
/* ... or left, as a mistake of the source or because it has no place here; returns 0. */
int backendai_leave(struct backendai_import *import, struct backendai_row *row, const char *fmt,
                    ...) AQ_PRINTF(3, 4);
/* It is there already, as 'found' unless 'kind' is NULL; returns 0. */
int backendai_exists(struct backendai_import *import, struct backendai_row *row,
                     const struct account_kind *kind, const void *found);

/* No other row of the source is called so. -EINVAL names the field, and the other's line. */
int backendai_claim(struct map *map, const void *key, size_t len, const char *field,
                    struct backendai_row *row, struct aq_error *err);

/* A text in the arena. */
const char *backendai_format(struct backendai_import *import, const char *fmt, ...) AQ_PRINTF(2, 3);

/* The row's slots that this cluster has; the caller's (json_decref). Others are noted. */
json_t *backendai_slots(struct backendai_import *import, struct backendai_row *row,
                        const json_t *given, bool missing_is_unlimited);

/* The columns of the row that become members of the entity as they are, as a request for a new
 * row names them, into 'ret': what does not fit is cut or lowered, and noted.
 */
void backendai_copy_columns(struct backendai_import *import, struct backendai_row *row,
                            const struct backendai_kind *kind, json_t *ret);

/* Number or text as it fits; noted as the column's if it was changed. NULL, which is left out, if
 * it is not set. Less than nothing is Backend.AI's "not set", too.
 */
json_t *backendai_number(struct backendai_import *import, struct backendai_row *row,
                         const char *column, int64_t value, int64_t most);

/* ---- accounts.c, users.c, attached.c ---- */

backendai_take_fn backendai_take_domain, backendai_take_policy, backendai_take_resource_group,
    backendai_take_project, backendai_take_user, backendai_take_member, backendai_take_keypair,
    backendai_take_domain_grant, backendai_take_project_grant, backendai_take_keypair_grant,
    backendai_take_preset, backendai_take_alias;

bool backendai_has_domain(const struct backendai_import *import, const char *name);
bool backendai_has_policy(const struct backendai_import *import, const char *name);
bool backendai_has_resource_group(const struct backendai_import *import, const char *name);

/* What an id of the source is; false if it is nothing, there or here. */
bool backendai_find_project(const struct backendai_import *import, const char *id,
                            struct backendai_project *ret);

/* Dotfiles of a new owner; those that cannot be had are noted. */
int backendai_attach_dotfiles(struct backendai_import *import, struct backendai_row *row,
                              enum dotfile_kind kind, const char *owner, struct aq_error *err);
void backendai_attach_script(struct backendai_import *import, struct backendai_row *row);

/* Forget what was attached, for the next check. */
void backendai_attached_clear(struct backendai_attached *attached);

/* On a thread of the store: which grants are there already. */
int backendai_look_up_grants(struct store_tx *tx, struct backendai_import *import,
                             struct aq_error *err);
/* An event that writes all this, and an entry in the audit log. */
void backendai_add_attached(struct backendai_import *import);
/* It is durable. */
void backendai_apply_attached(struct backendai_import *import);

/* ---- report.c ---- */

void backendai_write_report(const struct backendai_import *import, struct jsonw *w);
size_t backendai_count_taken(const struct backendai_import *import);

#endif
