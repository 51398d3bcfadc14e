/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_sync.h - the state that the files of this directory share
 *
 * ETCD_AWAY: the endpoints are tried one after the other. ETCD_READING: log in, read all keys at
 * one revision, check that this etcd has the history that the database recorded, watch from that
 * revision on. ETCD_FOLLOWING: the watch updates the view. A change on either side starts a pass
 * (etcd_decide.h); its writes go to etcd as requests and come back on the watch, which starts
 * another pass, until one has nothing to write. So the view always equals etcd at one revision.
 */
#ifndef AQ_MANAGER_ETCD_ETCD_SYNC_H
#define AQ_MANAGER_ETCD_ETCD_SYNC_H

#include <uv.h>

#include "base/clock.h"
#include "base/log_budget.h"
#include "manager/call/api.h"
#include "manager/etcd/etcd_client.h"
#include "manager/etcd/etcd_decide.h"

#define ETCD_PAGE_KEYS 100

enum etcd_state { ETCD_AWAY, ETCD_READING, ETCD_FOLLOWING };

struct etcd_sync {
    struct api *api;
    const struct etcd_settings *settings;
    struct etcd_client *client; /* NULL = stopped */
    char *prefix, *end;         /* of the keys in etcd */
    size_t prefix_len;
    uv_timer_t tick, soon; /* every second; the next pass */
    unsigned open_timers;
    enum etcd_state state;

    struct etcd_history history; /* as in the database */
    struct etcd_view view;
    uint64_t cluster_id;
    bool has_history; /* this etcd continues 'history' ... */
    bool needs_proof; /* ... or may: the next pass decides */

    /* reading */
    int64_t page_keys;      /* how many are asked for at once */
    struct strbuf page_key; /* where the next page begins */

    /* following */
    size_t watched_bytes;     /* since the last tick */
    int64_t polled_usec;      /* monotonic */
    unsigned missed;          /* consecutive polls that found a change which the watch lacks */
    bool is_dirty;            /* a pass is due */
    bool is_deciding;         /* the store decides a pass; the view must not change */
    struct etcd_pass pass;    /* whose pushes are in progress */
    size_t pushed, batch;     /* pushes of the pass: done, and in the current request */
    struct etcd_pushes made;  /* of the previous pass, until the next one records them */
    bool is_single;           /* one key a request, as a key of a batch had changed */
    int64_t awaited_revision; /* of our last write, until the watch delivers it; 0 = none */
    int64_t awaited_usec;     /* monotonic: of that write */
    int64_t passed_usec;      /* monotonic: start of the last pass */
    int64_t pass_usec;        /* its duration */

    /* away */
    unsigned failures;
    int64_t retry_usec;     /* monotonic */
    struct aq_error logged; /* the last failure */
    struct log_budget budget;
    struct map ignored; /* keys that were logged */

    uint64_t taken, given, lost; /* keys, since the start */
};

/* ---- etcd_sync.c ---- */

/* Leave the endpoint because of 'err', and try the next one after a delay that grows. */
void etcd_sync_fail(struct etcd_sync *sync, const struct aq_error *err);
/* etcd and the tree are in sync. */
void etcd_sync_agree(struct etcd_sync *sync);
/* Log, once for each key, that a key of etcd is ignored because of 'why'. */
void etcd_sync_ignore(struct etcd_sync *sync, const char *raw, size_t len, const char *why);

/* Log that this etcd lacks the history that the database recorded. */
void etcd_sync_warn_of_history(const struct etcd_sync *sync, const char *why);

/* ---- etcd_read.c ---- */

void etcd_read_begin(struct etcd_sync *sync);
/* Ask etcd for changes that the watch has not delivered; a failure ends ETCD_FOLLOWING. */
void etcd_poll(struct etcd_sync *sync);

/* ---- etcd_carry.c ---- */

/* Request a pass; changes within 50 ms share it. */
void etcd_carry_soon(struct etcd_sync *sync);
/* Start the requested pass unless a request or the watch must finish first. */
void etcd_carry_on(struct etcd_sync *sync);

#endif
