/* SPDX-License-Identifier: Apache-2.0 */
/* What bounds the answers that are kept for requests sent again. */
#include "manager/call/kept_answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "model/accounts.h"
#include "store/request_answer.h"

#define LATELY 16384 /* keys; 128 KiB once they are used */
#define KEPT_USEC (86400 * USEC_PER_SEC)
#define KEPT_EACH 100000 /* of a keypair */
#define TRIM_AFTER 10000 /* more of it */
#define AT_A_TIME 1000   /* rows that are removed */
#define PRUNE_USEC (600 * USEC_PER_SEC)

#define REPEATED 4096  /* signatures that were seen again lately */
#define REPEATS_MAX 10 /* of each */

struct kept_answers {
    struct store *store;
    struct map counts;  /* access key -> how many since its last trim, as a pointer */
    int64_t prune_usec; /* monotonic: when to look again; 0 = at once */
    bool is_removing;
    char trim[ACCESS_KEY_MAX]; /* the keypair of the piece under way; "" = rows of all, by age */
    struct {
        uint32_t mark, count;
    } repeated[REPEATED];    /* each at its place */
    uint64_t lately[LATELY]; /* fingerprints of keys, each at its place */
};

struct kept_answers *kept_answers_new(struct store *store)
{
    struct kept_answers *kept = aq_alloc(sizeof(*kept));

    kept->store = store;
    return kept;
}

void kept_answers_free(struct kept_answers *kept)
{
    if (!kept)
        return;
    map_done(&kept->counts);
    free(kept);
}

static uint64_t kept_answers_hash(const char *access_key, const char *request_key)
{
    uint64_t hash = aq_hash(access_key, strlen(access_key));

    return (hash * 31 + aq_hash(request_key, strlen(request_key))) | 1; /* 0 = a free place */
}

bool kept_answers_know(const struct kept_answers *kept, const char *access_key,
                       const char *request_key)
{
    uint64_t hash = kept_answers_hash(access_key, request_key);

    return kept->lately[(hash >> 32) % LATELY] == hash;
}

void kept_answers_add(struct kept_answers *kept, const char *access_key, const char *request_key)
{
    uint64_t hash = kept_answers_hash(access_key, request_key);
    uintptr_t count = (uintptr_t)map_gets(&kept->counts, access_key);

    kept->lately[(hash >> 32) % LATELY] = hash;
    map_sets(&kept->counts, access_key, (void *)(count + 1));
}

bool kept_answers_may_repeat(struct kept_answers *kept, const uint8_t signature[32])
{
    uint64_t hash = aq_hash(signature, 32);
    size_t at = (hash >> 32) % REPEATED;

    if (kept->repeated[at].mark != (uint32_t)hash) {
        kept->repeated[at].mark = (uint32_t)hash;
        kept->repeated[at].count = 0;
    }
    return kept->repeated[at].count < REPEATS_MAX && ++kept->repeated[at].count;
}

/* ---- removal ---- */

/* store_tx_fn */
static int kept_answers_remove(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct kept_answers *kept = data;

    return kept->trim[0]
               ? request_answers_trim(tx, kept->trim, KEPT_EACH, AT_A_TIME, err)
               : request_answers_prune(tx, clock_realtime_usec() - KEPT_USEC, AT_A_TIME, err);
}

/* store_done_fn */
static void kept_answers_on_removed(void *data, int r, const struct aq_error *err)
{
    struct kept_answers *kept = data;

    kept->is_removing = false;
    if (r < 0)
        log_warning("old answers to requests were not removed: %s", err->text);
    if (r == AT_A_TIME)
        return; /* there is more: at the next tick */
    if (kept->trim[0])
        (void)map_removes(&kept->counts, kept->trim);
    else
        kept->prune_usec = clock_monotonic_usec() + PRUNE_USEC;
}

void kept_answers_tick(struct kept_answers *kept, int64_t now_usec)
{
    if (kept->is_removing)
        return;
    kept->trim[0] = '\0';
    for (size_t i = 0; i < kept->counts.count && !kept->trim[0]; i++)
        if ((uintptr_t)kept->counts.entries[i].value >= TRIM_AFTER)
            memcpy(kept->trim, kept->counts.entries[i].key, kept->counts.entries[i].key_len + 1);
    if (!kept->trim[0] && now_usec < kept->prune_usec)
        return;
    kept->is_removing = true;
    store_write(kept->store, kept_answers_remove, kept_answers_on_removed, kept);
}
