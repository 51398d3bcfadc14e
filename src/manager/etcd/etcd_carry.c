/* SPDX-License-Identifier: Apache-2.0 */
/* Passes over the tree, and their writes to etcd. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "manager/etcd/etcd_sync.h"

#define SOON_MSEC 50                     /* changes within this time share a pass */
#define PASS_USEC (USEC_PER_SEC / 5)     /* minimum time from one pass to the next ... */
#define PASS_TIMES 5                     /* ... at least this multiple of a pass's duration ... */
#define PASS_MAX_USEC (5 * USEC_PER_SEC) /* ... and at most this */
#define BATCH_KEYS 100                   /* etcd allows 128 changes in a transaction ... */
#define BATCH_BYTES (256u << 10)         /* ... and 1.5 MiB */
#define LOST_NAMED_MAX 20                /* conflicting keys that are logged by name */
#define WHO "etcd"

static void etcd_push_next(struct etcd_sync *sync);

/* ---- writes to etcd ---- */

static void etcd_push_on_answer(void *data, int status, const char *text, size_t len,
                                const struct aq_error *failure)
{
    struct etcd_sync *sync = data;
    struct etcd_header header = { .revision = 0 };
    struct aq_error err = *failure;
    bool is_made = false;
    int r = err.code ? -err.code : etcd_read_txn(status, text, len, &header, &is_made, &err);

    if (r < 0) {
        etcd_sync_fail(sync, &err);
        return;
    }
    AQ_FAULT("etcd.push.answered");
    if (is_made) {
        sync->awaited_revision = header.revision;
        sync->awaited_usec = clock_monotonic_usec();
        sync->given += sync->batch;
        for (size_t i = 0; i < sync->batch; i++)
            sync->pass.pushes.items[sync->pushed + i].made_revision = header.revision;
    } else if (sync->batch > 1) {
        /* One of the keys has changed meanwhile: write them one by one, and leave that key to the
         * next pass.
         */
        sync->is_single = true;
        sync->batch = 0;
    }
    sync->pushed += sync->batch;
    etcd_push_next(sync);
}

static size_t etcd_push_write(struct etcd_sync *sync, struct strbuf *body)
{
    struct etcd_put puts[BATCH_KEYS];
    size_t count = 0, bytes = 0, max = sync->is_single ? 1 : BATCH_KEYS;

    while (count < max && bytes < BATCH_BYTES && sync->pushed + count < sync->pass.pushes.count) {
        const struct etcd_push *push = &sync->pass.pushes.items[sync->pushed + count];
        AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;

        strbuf_adds(&key, sync->prefix);
        strbuf_add(&key, push->raw, push->raw_len);
        bytes += key.len + (push->value ? strlen(push->value) : 0);
        puts[count++] = (struct etcd_put){ .key_len = key.len,
                                           .value = push->value,
                                           .mod_revision = push->mod_revision };
        puts[count - 1].key = strbuf_steal(&key);
    }
    etcd_write_txn(body, puts, count);
    for (size_t i = 0; i < count; i++)
        free((char *)(uintptr_t)puts[i].key);
    return count;
}

static void etcd_push_next(struct etcd_sync *sync)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (sync->pushed >= sync->pass.pushes.count) {
        sync->made = sync->pass.pushes;
        sync->pass.pushes = (struct etcd_pushes){ 0 };
        etcd_pass_done(&sync->pass);
        etcd_carry_soon(sync); /* the pass begins once the watch has delivered the writes */
        return;
    }
    sync->batch = etcd_push_write(sync, &body);
    if (etcd_client_call(sync->client, "/v3/kv/txn", &body, etcd_push_on_answer, sync, &err) < 0)
        etcd_sync_fail(sync, &err);
}

/* ---- passes ---- */

static void etcd_carry_log(struct etcd_sync *sync, const struct etcd_pass *pass)
{
    for (size_t i = 0; i < pass->lost.count && i < LOST_NAMED_MAX; i++)
        log_warning("configuration key '%s' was changed both here and in etcd: %s",
                    pass->lost.items[i].key, pass->lost.items[i].value);
    if (pass->lost.count > LOST_NAMED_MAX)
        log_warning("%zu further configuration keys were changed both here and in etcd",
                    pass->lost.count - LOST_NAMED_MAX);
    for (size_t i = 0; i < pass->refused.count; i++)
        etcd_sync_ignore(sync, pass->refused.items[i].key, strlen(pass->refused.items[i].key),
                         pass->refused.items[i].value);
    sync->lost += pass->lost.count;
    sync->taken += pass->taken;
}

static void etcd_carry_on_decided(void *data, const struct config_result *result, int r,
                                  const struct aq_error *err)
{
    struct etcd_sync *sync = data;
    struct etcd_pass *pass = &sync->pass;

    (void)result;
    sync->is_deciding = false;
    sync->pass_usec = clock_monotonic_usec() - sync->passed_usec;
    if (r < 0) {
        log_limited(&sync->budget, LOG_LEVEL_WARNING,
                    "cannot compare the configuration tree with etcd: %s", err->text);
        sync->is_dirty = true; /* the next poll starts it */
    } else {
        etcd_pushes_done(&sync->made);
        etcd_carry_log(sync, pass);
        if (sync->needs_proof && !pass->has_history && sync->client)
            etcd_sync_warn_of_history(sync,
                                      "it is compacted, and no key has its recorded revision");
        sync->needs_proof = false;
        sync->has_history = pass->has_history;
        if (pass->agreed.cluster_id) {
            etcd_history_done(&sync->history);
            sync->history = pass->agreed;
            pass->agreed = (struct etcd_history){ .cluster_id = 0 };
            sync->has_history = true;
        }
    }
    if (r < 0 || !sync->client || sync->state != ETCD_FOLLOWING) {
        etcd_pass_done(pass);
        return;
    }
    etcd_client_hold_watch(sync->client, false);
    AQ_FAULT("etcd.push.decided");
    if (sync->state == ETCD_FOLLOWING && pass->pushes.count) { /* unless a held line ended it */
        etcd_push_next(sync);
        return;
    }
    if (sync->state == ETCD_FOLLOWING)
        etcd_sync_agree(sync);
    etcd_pass_done(pass);
}

static void etcd_carry_pass(struct etcd_sync *sync)
{
    struct audit_who who = { .user_name = WHO };
    struct config_change *change = config_change_new_by(sync->api, &who);

    sync->is_dirty = false;
    sync->is_deciding = true;
    sync->passed_usec = clock_monotonic_usec();
    sync->pushed = 0;
    sync->is_single = false;
    sync->pass = (struct etcd_pass){ .namespace = sync->settings->namespace,
                                     .view = &sync->view,
                                     .cluster_id = sync->cluster_id,
                                     .has_history = sync->has_history,
                                     .needs_proof = sync->needs_proof,
                                     .history = &sync->history,
                                     .made = &sync->made };
    etcd_client_hold_watch(sync->client, true); /* the store reads the view while it decides */
    change->decide = etcd_decide;
    change->decide_data = &sync->pass;
    change->action = "sync-config";
    config_change_start(change, etcd_carry_on_decided, sync);
}

static void etcd_carry_on_timer(uv_timer_t *timer)
{
    etcd_carry_on(timer->data);
}

void etcd_carry_on(struct etcd_sync *sync)
{
    int64_t since = clock_monotonic_usec() - sync->passed_usec;
    int64_t pause = AQ_MIN(AQ_MAX(PASS_USEC, PASS_TIMES * sync->pass_usec), PASS_MAX_USEC);

    if (!sync->client || sync->state != ETCD_FOLLOWING || !sync->is_dirty || sync->is_deciding
        || etcd_client_is_calling(sync->client))
        return; /* its end calls this again */
    if (sync->awaited_revision > sync->view.revision)
        return; /* the watch calls this again */
    sync->awaited_revision = 0;
    if (since < pause)
        (void)uv_timer_start(&sync->soon, etcd_carry_on_timer,
                             (uint64_t)((pause - since) / USEC_PER_MSEC + 1), 0);
    else
        etcd_carry_pass(sync);
}

void etcd_carry_soon(struct etcd_sync *sync)
{
    sync->is_dirty = true;
    if (!uv_is_active((uv_handle_t *)&sync->soon))
        (void)uv_timer_start(&sync->soon, etcd_carry_on_timer, SOON_MSEC, 0);
}
