/* SPDX-License-Identifier: Apache-2.0 */
/* Reading etcd: login, all keys, the check of its history, the watch. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "manager/etcd/etcd_sync.h"

#define WATCHED_MAX (4u << 20) /* bytes read from a watch in a second */
#define MISSED_MAX 2

static void etcd_read_page(struct etcd_sync *sync);

/* ---- the watch ---- */

static int etcd_watch_take(struct etcd_sync *sync, struct etcd_watch_answer *answer,
                           struct aq_error *err)
{
    int r = 0;

    if (answer->header.cluster_id != sync->cluster_id)
        return aq_fail(err, ESTALE, "the endpoint belongs to another etcd cluster now");
    for (size_t i = 0; r == 0 && i < answer->pairs.count; i++) {
        struct etcd_pair *pair = &answer->pairs.items[i];
        const struct etcd_entry *entry;

        r = etcd_view_apply(&sync->view, pair, sync->prefix_len, &entry, err);
        if (r == 0 && entry && entry->problem)
            etcd_sync_ignore(sync, pair->key + sync->prefix_len, pair->key_len - sync->prefix_len,
                             entry->problem);
        sync->view.revision = AQ_MAX(sync->view.revision, pair->mod_revision);
    }
    return r;
}

static void etcd_watch_on_line(void *data, const char *line, size_t len)
{
    struct etcd_sync *sync = data;
    struct etcd_watch_answer answer = { .is_created = false };
    struct aq_error err = { 0 };
    int r = etcd_read_watch(line, len, &answer, &err);

    if (r == 0)
        r = etcd_watch_take(sync, &answer, &err);
    if (r < 0) {
        etcd_sync_fail(sync, &err);
    } else if (answer.is_created && sync->state == ETCD_READING) {
        sync->state = ETCD_FOLLOWING;
        sync->polled_usec = clock_monotonic_usec();
        etcd_carry_soon(sync);
    } else if (answer.pairs.count) {
        etcd_carry_soon(sync);
    }
    etcd_pairs_done(&answer.pairs);
    sync->watched_bytes += len;
    if (sync->watched_bytes > WATCHED_MAX && sync->state == ETCD_FOLLOWING)
        etcd_client_hold_watch(sync->client, true); /* until the next tick */
}

static void etcd_watch_on_end(void *data, const struct aq_error *err)
{
    etcd_sync_fail(data, err);
}

static void etcd_read_watch_begin(struct etcd_sync *sync)
{
    static const struct etcd_watch_ops ops = { etcd_watch_on_line, etcd_watch_on_end };
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };

    etcd_write_watch(&body, sync->prefix, sync->end, sync->view.revision + 1);
    if (etcd_client_watch(sync->client, &body, &ops, sync, &err) < 0)
        etcd_sync_fail(sync, &err);
}

/* ---- the history ---- */

static void etcd_read_judge(struct etcd_sync *sync, bool has_history, const char *why)
{
    sync->has_history = has_history;
    if (!has_history && !sync->needs_proof)
        etcd_sync_warn_of_history(sync, why);
    etcd_read_watch_begin(sync);
}

/* The reply for the witness, a key whose revision the last synchronization recorded. */
static void etcd_read_on_witness(void *data, int status, const char *text, size_t len,
                                 const struct aq_error *failure)
{
    struct etcd_sync *sync = data;
    struct etcd_range_answer answer = { .count = 0 };
    struct aq_error err = *failure;
    int r = err.code ? -err.code : etcd_read_range(status, text, len, &answer, &err);

    sync->needs_proof = r < 0 && err.kind && strcmp(err.kind, ETCD_COMPACTED) == 0;
    if (sync->needs_proof)
        etcd_read_judge(sync, false, NULL);
    else if (r < 0)
        etcd_sync_fail(sync, &err);
    else if (answer.pairs.count == 1
             && answer.pairs.items[0].mod_revision == sync->history.witness_revision)
        etcd_read_judge(sync, true, NULL);
    else
        etcd_read_judge(sync, false, "its keys differ from those that the database recorded");
    etcd_pairs_done(&answer.pairs);
}

static void etcd_read_check_history(struct etcd_sync *sync)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT, key = STRBUF_INIT;
    const struct etcd_history *history = &sync->history;
    const struct etcd_entry *witness;
    struct aq_error err = { 0 };

    if (!history->cluster_id) {
        etcd_read_judge(sync, true, NULL);
        return;
    }
    if (history->cluster_id != sync->cluster_id) {
        etcd_read_judge(sync, false, "it is a different cluster");
        return;
    }
    if (sync->view.revision < history->revision) {
        etcd_read_judge(sync, false, "its revision went back");
        return;
    }
    witness = map_get(&sync->view.entries, history->witness, history->witness_len);
    if (!history->witness_revision
        || (witness && witness->mod_revision == history->witness_revision)) {
        etcd_read_judge(sync, true, NULL);
        return;
    }
    strbuf_adds(&key, sync->prefix);
    strbuf_add(&key, history->witness, history->witness_len);
    etcd_write_range(&body, &(struct etcd_range){ .key = key.data,
                                                  .key_len = key.len,
                                                  .revision = history->revision,
                                                  .keys_only = true });
    if (etcd_client_call(sync->client, "/v3/kv/range", &body, etcd_read_on_witness, sync, &err) < 0)
        etcd_sync_fail(sync, &err);
}

/* ---- all keys ---- */

/* Pages go on, by the order of keys, or a page that comes again would be read without end. */
static int etcd_read_check_order(const struct etcd_sync *sync, const struct etcd_pair *pair,
                                 struct aq_error *err)
{
    const struct strbuf *next = &sync->page_key;
    int order = memcmp(pair->key, next->data, AQ_MIN(pair->key_len, next->len));

    if (order > 0 || (order == 0 && pair->key_len >= next->len))
        return 0;
    return aq_fail(err, EPROTO, "etcd sends keys again that it has sent, or in another order");
}

static int etcd_read_take_page(struct etcd_sync *sync, struct etcd_range_answer *answer,
                               struct aq_error *err)
{
    int r = 0;

    if (!sync->view.revision) { /* all further pages are read at the revision of the first */
        sync->view.revision = answer->header.revision;
        sync->cluster_id = answer->header.cluster_id;
    }
    if (!sync->cluster_id || !sync->view.revision)
        return aq_fail(err, EPROTO, "the answer of etcd has no cluster id or no revision");
    if (sync->cluster_id != answer->header.cluster_id)
        return aq_fail(err, ESTALE, "the endpoint belongs to another etcd cluster now");
    for (size_t i = 0; r == 0 && i < answer->pairs.count; i++) {
        struct etcd_pair *pair = &answer->pairs.items[i];
        const struct etcd_entry *entry;

        if ((r = etcd_read_check_order(sync, pair, err)) < 0)
            break;
        strbuf_clear(&sync->page_key); /* the key with its NUL is the first possible key after it */
        strbuf_add(&sync->page_key, pair->key, pair->key_len + 1);
        r = etcd_view_apply(&sync->view, pair, sync->prefix_len, &entry, err);
        if (r == 0 && entry->problem)
            etcd_sync_ignore(sync, pair->key + sync->prefix_len, pair->key_len - sync->prefix_len,
                             entry->problem);
    }
    return r;
}

static void etcd_read_on_page(void *data, int status, const char *text, size_t len,
                              const struct aq_error *failure)
{
    struct etcd_sync *sync = data;
    struct etcd_range_answer answer = { .count = 0 };
    struct aq_error err = *failure;
    int r = err.code ? -err.code : etcd_read_range(status, text, len, &answer, &err);

    if (r == -EFBIG && sync->page_keys > 1) { /* large values: read fewer keys at once */
        sync->page_keys = AQ_MAX(sync->page_keys / 10, 1);
        etcd_read_page(sync);
        return;
    }
    if (r == 0)
        r = etcd_read_take_page(sync, &answer, &err);
    if (r < 0)
        etcd_sync_fail(sync, &err);
    else if (answer.has_more && answer.pairs.count)
        etcd_read_page(sync);
    else
        etcd_read_check_history(sync);
    etcd_pairs_done(&answer.pairs);
}

static void etcd_read_page(struct etcd_sync *sync)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };

    etcd_write_range(&body, &(struct etcd_range){ .key = sync->page_key.data,
                                                  .key_len = sync->page_key.len,
                                                  .end = sync->end,
                                                  .limit = sync->page_keys,
                                                  .revision = sync->view.revision });
    if (etcd_client_call(sync->client, "/v3/kv/range", &body, etcd_read_on_page, sync, &err) < 0)
        etcd_sync_fail(sync, &err);
}

static void etcd_read_on_login(void *data, const struct aq_error *err)
{
    struct etcd_sync *sync = data;

    if (err->code)
        etcd_sync_fail(sync, err);
    else
        etcd_read_page(sync);
}

void etcd_read_begin(struct etcd_sync *sync)
{
    struct aq_error err = { 0 };
    int r;

    sync->state = ETCD_READING;
    sync->page_keys = ETCD_PAGE_KEYS;
    sync->missed = 0;
    sync->needs_proof = false;
    sync->awaited_revision = 0;
    etcd_view_done(&sync->view);
    strbuf_clear(&sync->page_key);
    strbuf_adds(&sync->page_key, sync->prefix);
    r = etcd_client_login(sync->client, etcd_read_on_login, sync, &err);
    if (r == -ENODATA)
        etcd_read_page(sync);
    else if (r < 0)
        etcd_sync_fail(sync, &err);
}

/* ---- while following ---- */

static void etcd_poll_on_answer(void *data, int status, const char *text, size_t len,
                                const struct aq_error *failure)
{
    struct etcd_sync *sync = data;
    struct etcd_range_answer answer = { .count = 0 };
    struct aq_error err = *failure;
    int r = err.code ? -err.code : etcd_read_range(status, text, len, &answer, &err);

    if (r == 0 && answer.header.cluster_id != sync->cluster_id)
        r = aq_fail(&err, ESTALE, "the endpoint belongs to another etcd cluster now");
    if (r == 0 && answer.header.revision < sync->view.revision)
        r = aq_fail(&err, ESTALE, "the revision of etcd went back");
    if (r == 0) {
        bool is_missing = answer.count != (int64_t)sync->view.entries.count
                          || (answer.pairs.count
                              && answer.pairs.items[0].mod_revision > sync->view.revision);

        sync->missed = is_missing ? sync->missed + 1 : 0;
        if (sync->missed >= MISSED_MAX)
            r = aq_fail(&err, ESTALE, "the watch does not deliver all changes");
    }
    etcd_pairs_done(&answer.pairs);
    if (r < 0)
        etcd_sync_fail(sync, &err);
    else
        etcd_carry_on(sync);
}

void etcd_poll(struct etcd_sync *sync)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    struct aq_error err = { 0 };

    sync->polled_usec = clock_monotonic_usec();
    etcd_write_range(&body, &(struct etcd_range){ .key = sync->prefix,
                                                  .key_len = sync->prefix_len,
                                                  .end = sync->end,
                                                  .limit = 1,
                                                  .newer = sync->view.revision + 1,
                                                  .keys_only = true });
    if (etcd_client_call(sync->client, "/v3/kv/range", &body, etcd_poll_on_answer, sync, &err) < 0)
        etcd_sync_fail(sync, &err);
}
