/* SPDX-License-Identifier: Apache-2.0 */
/* model_service_entry.h - a model service that has not ended, in memory, and its replicas that live
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_MODEL_SERVICE_ENTRY_H
#define AQ_MANAGER_CORE_STATE_MODEL_SERVICE_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "manager/core/services.h"
#include "manager/core/state/durable.h"
#include "model/model_service.h"
#include "serving/rollout.h"

struct core;
struct session_entry;

/* What was done with a token and is not written yet. */
struct service_token_use {
    struct uuid token_id;
    int64_t requests, spent;
};

struct model_service_entry {
    struct model_service s; /* first */
    struct durable durable;
    struct list all_link;     /* core.services, by creation */
    struct list changed_link; /* core.changed_services: the listener has not heard of it */
    struct list replicas;     /* replica_entry.link, by row of their sessions */
    int64_t last_replica;     /* highest number of a replica so far */
    size_t creating;          /* requests for sessions under way */
    int64_t small_until_usec; /* monotonic: replicas are created with the least share until then */
    struct {
        unsigned count;     /* in a row */
        int64_t retry_usec; /* monotonic: no replica is created before; 0 = at once */
        int64_t at_usec;    /* wall clock: the last one */
        bool is_trial;      /* one replica at a time, until one is ready */
        char *text;         /* the last one; NULL = none since all were ready */
    } failure;
    uint32_t base_version; /* since which rollouts alone changed the row, and not its goal */
    struct {
        struct rollout settings; /* as the row says, parsed */
        struct rollout_state state;
        struct {
            int64_t to; /* the revision that is new; 0 = all get as many requests */
            int64_t old_ppm, new_ppm;
        } ratios;
    } rollout;     /* serving/service_rollout.c */
    char *problem; /* as core_service_problem() described it last; NULL = there was none */
    struct {
        struct service_token_use *items;
        size_t count, cap;
        struct service_token_use *writing; /* those in a proposal */
        size_t writing_count;
        int64_t due_usec; /* monotonic: to be written then; 0 = there are none */
    } uses;
    size_t tokens_coming; /* that are being written */
};

/* A replica beside its row. */
struct replica_entry {
    struct session_entry *session;
    struct model_service_entry *service;
    struct list link;                /* in replicas of the service */
    enum core_replica_health health; /* as its agent said of 'attempt' */
    int64_t attempt;                 /* of its main kernel; 0 = its agent has not said anything */
    char *health_text;               /* likewise; NULL = nothing to say */
    char *last_lines;                /* of its log, when its program had ended; NULL = none */
    int64_t pending_usec; /* monotonic: since when it waits for resources; 0 = it does not */
    bool is_idle;         /* no proxy has anything under way in it */
    bool is_failing;      /* it stopped answering, which is to be counted */
    struct {
        int64_t goal;       /* what it should have, at the last look; 0 = there was none */
        int64_t aim;        /* what it is resized to: less than the goal where that has no room */
        int64_t refused;    /* what had no room last */
        int64_t retry_usec; /* monotonic: not resized before; 0 = at once */
        unsigned failures;  /* in a row, of the goal */
        bool is_resizing, is_shrinking;
        bool is_held; /* it does not get the goal, for the reason that 'text' says */
        char *text;   /* of the last refusal; NULL = none */
    } share;          /* serving/service_share.c */
    struct core_replica_figures figures; /* of the last minute */
};

struct model_service_entry *model_service_entry_find(const struct core *core,
                                                     const struct uuid *id);

/* That of this name, whatever its case. */
struct model_service_entry *model_service_entry_find_named(const struct core *core,
                                                           const char *name);

/* Take the contents of 's' into memory; another one has no contents then. */
struct model_service_entry *model_service_entry_add(struct core *core, struct model_service *s,
                                                    int64_t last_replica);

/* Other contents of the same id, taken as above; the tokens stay, and what was counted of revisions. */
void model_service_entry_replace(struct model_service_entry *entry, struct model_service *s);

/* The token is taken, and stands in the order of creation. */
void model_service_entry_add_token(struct model_service_entry *entry,
                                   struct model_service_token *token);

/* The listener is to be told of the service, and the service examined. */
void model_service_entry_note_change(struct core *core, struct model_service_entry *entry);

/* Out of every index; freed as a durable object that is retired. It has no replicas any longer. */
void model_service_entry_retire(struct core *core, struct model_service_entry *entry);
void model_service_entry_free(struct model_service_entry *entry);

/* 'l' lives from now on, or does not. Does nothing for a session that is no replica. */
void replica_entry_join(struct core *core, struct session_entry *l);
void replica_entry_leave(struct core *core, struct session_entry *l);

#endif
