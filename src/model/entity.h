/* SPDX-License-Identifier: Apache-2.0 */
/* entity.h - structs that are rows of the store, by a table of their members
 *
 * A member of an entity is written once: as a row of entity.fields. What
 * stores, shows, merges, compares or audits the struct goes through the
 * functions below, store/entity.h, and the tables that the manager and the
 * command line make from the same rows. A member with logic of its own is
 * handled by hand where that logic is, and its row says the rest.
 *
 * Texts and slots of a row are on the heap unless the row was read into an
 * arena. Pure.
 */
#ifndef AQ_MODEL_ENTITY_H
#define AQ_MODEL_ENTITY_H

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "model/field.h"
#include "model/slot.h"

#define ENTITY_FIELDS_MAX 32 /* members of one entity */

struct entity {
    size_t size;                /* of the struct */
    const struct field *fields; /* all members, in the order in which they are shown */
    const struct field *create; /* those that a request for a new row has, ... */
    const struct field *change; /* ... and one that changes a row */
    /* What the command line shows, which may be more than members; NULL = the members. */
    const struct field *columns;
};

/* Set every member to its initial value. */
void entity_init(const struct entity *entity, void *ret);

/* Free what the row owns and zero it; no compiler leaves that out where a secret is. */
void entity_done(const struct entity *entity, void *row);

/* '*ret' is overwritten. */
void entity_copy(const struct entity *entity, void *ret, const void *row);

bool entity_equal(const struct entity *entity, const void *a, const void *b);

/* Write each member under its first name into an object that was begun, except those with a flag
 * of 'without', and secrets. 'types' are those of slots, as slots_write_json() takes them.
 */
void entity_write_json(const struct entity *entity, const void *row, unsigned without,
                       const struct slot_types *types, struct jsonw *w);

/* Read members that entity_write_json() has written, with texts in the arena: '*ret' is overwritten
 * and needs no entity_done(). A member that 'object' lacks has its initial value. Left out are slots,
 * which depend on the cluster's types, and texts within the struct.
 */
void entity_read_json(const struct entity *entity, const json_t *object, struct arena *arena,
                      void *ret);

/* The same, where 'write' is asked first: true if it has written what stands for the member. */
typedef bool entity_write_fn(const void *data, const void *row, const struct field *field,
                             struct jsonw *w);
void entity_write_json_as(const struct entity *entity, const void *row, unsigned without,
                          const struct slot_types *types, entity_write_fn *write, const void *data,
                          struct jsonw *w);

/* Replace the members of 'row' that 'given' has. 'decoded' is a struct of the entity into which
 * 'given' was decoded by entity.create or entity.change, or begins with one; slots and JSON are
 * read from 'given', and members of type FIELD_OWN left to the caller.
 * -EINVAL (kind "invalid-api-params") names the slot, as in "total_slots.cpu", or the text that is
 * not one of its words.
 */
int entity_merge(const struct entity *entity, void *row, const void *decoded, const json_t *given,
                 const struct slot_types *types, struct aq_error *err);

#endif
