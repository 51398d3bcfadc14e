/* SPDX-License-Identifier: Apache-2.0 */
/* object_setting.h - a setting of the store that is one JSON object, by names of what it holds
 *
 * Image aliases, image limits, resource presets and notifications are kept so. Their owners have a copy in
 * memory, which they replace once a change is durable.
 */
#ifndef AQ_MANAGER_CALL_OBJECT_SETTING_H
#define AQ_MANAGER_CALL_OBJECT_SETTING_H

#include <jansson.h>

#include "base/error.h"
#include "model/entity.h"
#include "store/audit_log.h"
#include "store/store.h"

/* The object, the caller's (json_decref); an empty one if nothing is set, or what is set is
 * damaged. The errors are those of setting_get(). On the store's thread.
 */
int object_setting_read(struct store_tx *tx, const char *name, json_t **ret, struct aq_error *err);

/* The same for the loop's thread, which waits for it: at the start only. */
int object_setting_load(struct store *store, const char *name, json_t **ret, struct aq_error *err);

/* '*ret_kept', the caller's, is the object as it is kept: sorted by name. */
int object_setting_write(struct store_tx *tx, const char *name, const json_t *object,
                         json_t **ret_kept, struct aq_error *err);

/* The entry of the audit log for one member, of action create-KIND, modify-KIND or delete-KIND.
 * 'before' or 'after' is NULL where there is none.
 */
int object_setting_audit(struct store_tx *tx, const struct audit_who *by, const char *kind,
                         const char *member, const json_t *before, const json_t *after,
                         struct aq_error *err);

/* ---- a change of one member ---- */

struct object_setting {
    const char *name;
    const char *kind;  /* of the audit log, "preset" */
    const char *title; /* what is missing, "resource preset" */
    size_t max;        /* members */
    /* May all be so once 'member' has changed? NULL = yes. On the store's thread. */
    int (*check)(const json_t *all, const char *member, struct aq_error *err);
    /* What the audit log shows of a member, the caller's; NULL = all. */
    json_t *(*show)(const json_t *value);
};

enum object_setting_how {
    OBJECT_SETTING_PUT,    /* whatever there was */
    OBJECT_SETTING_CREATE, /* -EEXIST "name" if there is one */
    OBJECT_SETTING_MODIFY, /* members of 'value' over those that there are; -ENOENT */
    OBJECT_SETTING_MERGE,  /* the same, or a new one */
    OBJECT_SETTING_REMOVE, /* 'value' is NULL; -ENOENT */
};

/* Change the member of the owner's copy '*copy' to 'value', which is taken. What there was is what
 * every change before has left. 'done' comes when it is durable: -E2BIG for one too many, or as
 * 'how' has it.
 */
void object_setting_change(struct store *store, const struct object_setting *setting, json_t **copy,
                           enum object_setting_how how, const char *member, json_t *value,
                           const struct audit_who *by, store_done_fn done, void *data);

/* ---- members that are rows of an entity ---- */

/* A row is kept as the object of its members; the setting's name for it is the member with
 * FIELD_KEY. Texts of rows that are read are in the arena.
 */
void object_setting_read_row(const struct entity *entity, const char *name, const json_t *kept,
                             struct arena *arena, void *ret);

/* All rows of the owner's copy, in its order. */
void *object_setting_read_rows(const struct entity *entity, const json_t *copy, struct arena *arena,
                               size_t *ret_count);

/* The 'value' of object_setting_change(): all members of the row, or those that 'given', the
 * members of a request, has; NULL = all.
 */
json_t *object_setting_make_value(const struct entity *entity, const void *row,
                                  const json_t *given);

#endif
