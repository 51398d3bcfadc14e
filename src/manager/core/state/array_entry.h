/* SPDX-License-Identifier: Apache-2.0 */
/* array_entry.h - an array that lives, in memory, with its elements that live
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_ARRAY_ENTRY_H
#define AQ_MANAGER_CORE_STATE_ARRAY_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "manager/core/state/durable.h"
#include "model/session_array.h"

struct account;
struct core;
struct session_entry;

struct array_entry {
    struct session_array a; /* first: as of struct session_entry */
    struct durable durable;
    struct list all_link; /* core.arrays, by row */
    struct list living;   /* session_entry.array_link */
    int64_t living_count;
    int64_t waiting_count;  /* of these PENDING */
    int64_t begun_count;    /* of these have been RUNNING */
    int64_t admitted_count; /* have left PENDING, or may be placed: up to the array's limit */
    int64_t held_count;     /* PENDING, and may not be placed for that limit */
    struct account *user;
    int64_t bytes;      /* its part of the user's session_bytes */
    bool is_making;     /* elements are on their way to the store */
    bool is_failing;    /* it cannot go on: what it depends on has failed, or its owner is gone */
    bool is_answering;  /* the proposal under way is of the first of 'waiters' */
    bool has_told_run;  /* those that wait for all elements know that these have run, ... */
    bool has_told_fail; /* ... or that one has failed */
    char *stop_text;    /* why the last ones were not made; NULL = they were */
    int64_t again_usec; /* monotonic: then the next ones are tried */
    int64_t pause_usec; /* from the last trial until then, of several in vain; 0 = it succeeded */
    int64_t
        ending_usec; /* monotonic: when the end of its living elements was last requested; 0 = not yet */
    struct list waiters; /* struct array_waiter: commands that cancel; session/array.c */
};

struct array_entry *array_entry_find(const struct core *core, const struct uuid *id);

/* That of this user with exactly this name. */
struct array_entry *array_entry_find_named(const struct core *core, const struct uuid *user_id,
                                           const char *name);

/* Take the contents of 'a' into memory; another one has no contents then. */
struct array_entry *array_entry_add(struct core *core, struct session_array *a);

/* Count its bytes again. */
void array_entry_measure(struct core *core, struct array_entry *entry);

/* What an array takes beside what session_bytes_of() says of its element. */
int64_t array_bytes_of(const struct array_set *indices);

/* Out of every index; freed as a durable object that is retired. It has no elements. */
void array_entry_retire(struct core *core, struct array_entry *entry);
void array_entry_free(struct array_entry *entry);

/* The element of this index that lives; NULL = none. */
struct session_entry *array_entry_find_element(const struct core *core,
                                               const struct array_entry *entry, int64_t index);

/* May 'l', which is PENDING, be placed? Else it is held, until array_entry_release(). True also if
 * it is not an element, or its array has no limit.
 */
bool array_entry_admit(const struct core *core, struct session_entry *l);
void array_entry_release(struct session_entry *l);
/* It waits for something other than a place: another element may be placed instead. */
void array_entry_dismiss(struct core *core, struct session_entry *l);

/* 'l' lives from now on, has another status, or does not live. Does nothing if it is not an element. */
void array_entry_join(struct core *core, struct session_entry *l);
void array_entry_follow(struct session_entry *l);
void array_entry_leave(struct core *core, struct session_entry *l);

#endif
