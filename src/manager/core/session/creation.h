/* SPDX-License-Identifier: Apache-2.0 */
/* creation.h - what create.c and create_array.c share: sessions on their way to the store
 *
 * Loop's thread only, but for what the steps of create.c read.
 */
#ifndef AQ_MANAGER_CORE_SESSION_CREATION_H
#define AQ_MANAGER_CORE_SESSION_CREATION_H

#include "manager/core/core.h"
#include "manager/core/session/admission.h"
#include "manager/core/session/dependency.h"
#include "model/array_range.h"
#include "model/audit.h"

struct allowed;
struct array_entry;
struct mounts_draft;

/* One of the sessions, until it is an event of the batch. */
struct create_draft {
    struct session s;
    bool is_met; /* a live session will do: nothing to make */
    bool reuse;
    char *resource_group;       /* asked for, NULL = any */
    struct admission_hold hold; /* from its admission until the answer */
    struct dependency_missing missing;
    struct mounts_draft *mounts; /* NULL = it mounts none */
    struct allowed *allowed;     /* as read, until it is kept */
    bool wants_allowed;
    int64_t position;         /* of an element among its array's indices */
    struct session_rows rows; /* written in the same transaction; .write NULL = none */
};

struct creation {
    struct core *core;
    struct event_batch *batch;
    struct core_created *created; /* one per draft */
    struct aq_error err;
    size_t at; /* the draft that 'err' is about */
    core_create_fn done;
    core_dry_run_fn dry_run_done;         /* instead: nothing is to be made */
    struct strbuf text, json;             /* of the trial */
    size_t started;                       /* likewise */
    const struct core_answered *answered; /* NULL = the answer is not kept */
    struct audit_by by;
    void *data;
    struct array_set indices;  /* of an array to be made; empty = none is */
    int64_t limit;             /* likewise */
    struct array_entry *entry; /* whose elements these are; NULL = of none */
    size_t count;
    struct create_draft drafts[];
};

/* 'count' empty drafts. */
struct creation *creation_new(struct core *core, size_t count, void *data);

/* From step 1 on; requests[i * stride] is the request of draft i. */
void create_start(struct creation *c, const struct session_request *const *requests, size_t stride);

/* From step 2 on: the drafts are made. */
void create_go_on(struct creation *c);

/* All drafts from the one on are left out. */
void create_drop_drafts(struct creation *c, size_t from);

void create_set_created(struct core_created *created, const struct session *s, bool is_new);

/* Add to the batch the array that the draft becomes. -EINVAL, field "name". */
int create_add_array(struct creation *c);

/* Add to the batch, whose first event is an element, how far their array is then. */
void create_add_progress(struct creation *c);

#endif
