/* SPDX-License-Identifier: Apache-2.0 */
/* redis_feature.h - the state behind redis.h, for the files of this directory */
#ifndef AQ_MANAGER_REDIS_REDIS_FEATURE_H
#define AQ_MANAGER_REDIS_REDIS_FEATURE_H

#include "http/defer.h"
#include "http/sign.h"
#include "manager/call/feature.h"
#include "redis/redis_client.h"

/* Databases of Backend.AI, counted from the one in the URI. */
enum redis_database {
    REDIS_DB_STATISTICS = 0,
    REDIS_DB_RATES = 1,
    REDIS_DB_LIVE = 2,
    REDIS_DB_STREAM = 4,
};

/* Records of signatures with dates in one minute that are not sent yet. */
struct signature_batch {
    int64_t minute; /* of the Unix time */
    bool is_due;    /* it takes no further ones, and is sent the next time */
    struct strbuf records;
};
#define SIGNATURE_BATCHES 128 /* more than twice the minutes that a signature may be dated in */

struct redis_state {
    struct api *api;
    const struct redis_settings *settings; /* borrowed */
    struct redis_client *client;
    struct defer *tick; /* each second */
    struct core_subscriber *subscriber;
    struct signature_batch batches[SIGNATURE_BATCHES];
    size_t batch_count, batch_bytes;
    uint64_t signatures_dropped;
    struct uuid next_session; /* whose kernels' statistics are written next; nil = the first */
    size_t next_agent;        /* likewise */
    int64_t heartbeats_usec;  /* monotonic: when they were written */
    bool is_replacing;        /* they are written, and not yet in place of the former ones */
};

/* redis_live.c: statistics and heartbeats; a part of them in each second. */
void redis_live_write(struct redis_state *redis);

/* redis_events.c: core_event_fn with the state as data. */
void redis_events_publish(void *data, const struct core_event *event);

/* redis_windows.c: what was counted since the last call, and signatures that were accepted before it,
 * or all of them.
 */
void redis_windows_write(struct redis_state *redis, bool is_last);
/* The server lost the windows: write all of them again. */
void redis_windows_renew(struct redis_state *redis);
void redis_windows_note(const struct api *api, const struct sign_claim *claim);
void redis_windows_done(struct redis_state *redis);

/* Key of the records of a minute. */
#define SIGNATURES_KEY "aliquot:signatures:%lld"
/* Records of bytes[len]: 'fn' is called for each. Returns how many bytes they have; the rest is part of
 * a record. -EINVAL for what is not a record, after those before it.
 */
typedef void signature_record_fn(void *data, const char *access_key, const uint8_t signature[32],
                                 unsigned second);
ssize_t redis_signatures_read(const char *bytes, size_t len, signature_record_fn *fn,
                              void *data) AQ_UNTRUSTED;

/* redis_restore.c: windows and signatures of the last manager, within a second. */
int redis_restore(struct redis_state *redis, struct aq_error *err);

extern const struct feature redis_feature;

#endif
