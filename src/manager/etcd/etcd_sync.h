/* SPDX-License-Identifier: Apache-2.0 */
/* etcd_sync.h - the state that the files of this directory share
 *
 * Away: etcd is tried again, one endpoint after the other. Reading: log in, read all keys at one
 * revision, see whether this is the etcd of before, watch from that revision on. Following: the watch
 * changes the view; a change on either side is followed by a pass (etcd_decide.h), what that wants
 * of etcd by requests, and these by their coming back on the watch, which ends in a pass that finds
 * nothing to do. So the view is always what etcd was at one revision.
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
    bool has_history; /* of what is read or followed now ... */
    bool needs_proof; /* ... which the next pass finds out */

    /* reading */
    int64_t page_keys;      /* how many are asked for at once */
    struct strbuf page_key; /* where the next page begins */

    /* following */
    size_t watched_bytes;     /* since the last tick */
    int64_t polled_usec;      /* monotonic */
    unsigned missed;          /* polls in a row that had what the watch had not */
    bool is_dirty;            /* a pass is due */
    bool is_deciding;         /* the store has a pass; the view stays as it is */
    struct etcd_pass pass;    /* whose pushes are under way */
    size_t pushed, batch;     /* of the pass: done, and asked for now */
    struct etcd_pushes made;  /* of the pass before, until the next has noted them */
    bool is_single;           /* a key was changed meanwhile: one request a key */
    int64_t awaited_revision; /* of our changes, until the watch has it; 0 = none */
    int64_t awaited_usec;     /* since then; monotonic */
    int64_t passed_usec;      /* when the last pass began; monotonic */
    int64_t pass_usec;        /* how long it took */

    /* away */
    unsigned failures;
    int64_t retry_usec; /* monotonic */
    struct aq_error told;
    struct log_budget budget;
    struct map ignored; /* keys that the log has named */

    uint64_t taken, given, lost; /* keys, since the start */
};

/* ---- etcd_sync.c ---- */

/* Go on with the next endpoint, later each time; 'err' is why. */
void etcd_sync_fail(struct etcd_sync *sync, const struct aq_error *err);
/* Both have the same. */
void etcd_sync_agree(struct etcd_sync *sync);
/* Say once of a key of etcd that it is left alone. */
void etcd_sync_ignore(struct etcd_sync *sync, const char *raw, size_t len, const char *why);

/* Log that etcd does not have the history of before. */
void etcd_sync_warn_of_history(const struct etcd_sync *sync, const char *why);

/* ---- etcd_read.c ---- */

void etcd_read_begin(struct etcd_sync *sync);
/* Does etcd answer, and has the watch brought everything? */
void etcd_poll(struct etcd_sync *sync);

/* ---- etcd_carry.c ---- */

/* A pass is due, soon. */
void etcd_carry_soon(struct etcd_sync *sync);
/* Look whether a pass can begin. */
void etcd_carry_on(struct etcd_sync *sync);

#endif
