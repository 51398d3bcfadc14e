/* SPDX-License-Identifier: Apache-2.0 */
/* copy_transfer.c - see copy_transfer.h and copy_run.h */
#include "cli/folder/copy_transfer.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/utf8.h"
#include "cli/folder/copy_run.h"
#include "cli/folder/folder.h"
#include "http/url.h"
#include "transfer/beneath.h"
#include "transfer/name.h"

#define BATCH_BYTES (UINT64_C(4) << 20)
#define BATCH_FILES 500
#define ANSWER_MAX 65536
#define TICK_MSEC 100
#define RETRY_USEC (USEC_PER_SEC / 5)      /* doubled each time, ... */
#define RETRY_MOST_USEC (8 * USEC_PER_SEC) /* ... up to this */
#define GIVE_UP_USEC (300 * USEC_PER_SEC)  /* without a byte */
#define TRIES_MAX 6                        /* of what the storage host cannot do now */
#define PLAIN_USEC (10 * USEC_PER_SEC)     /* between lines if output is not a terminal */

struct copy_item *copy_slot_item(const struct copy_slot *slot)
{
    return &slot->run->t->list->items[slot->at];
}

const char *copy_run_name(const struct copy_run *run, const struct copy_item *item)
{
    size_t len = strlen(run->t->base);

    return run->t->is_upload ? item->to : item->path + len + (len && item->path[len] == '/');
}

static void copy_leave(struct copy_run *run, const struct aq_error *err)
{
    if (run->is_over)
        return;
    run->is_over = true;
    if (!err)
        return;
    run->err = *err;
    run->r = -err->code;
}

void copy_run_fail_item(struct copy_run *run, struct copy_item *item, const char *why)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;

    if (item->has_failed)
        return;
    item->has_failed = true;
    run->t->failed++;
    utf8_write_printable(item->path, strlen(item->path), &clean);
    strbuf_adds(&clean, ": ");
    utf8_write_printable(why, strlen(why), &clean);
    progress_clear(&run->progress);
    cli_note(run->t->cli, "failed: %s", clean.data);
}

/* ---- progress ---- */

static void copy_show(struct copy_run *run)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int64_t now = clock_monotonic_usec(), took = now - run->begun_usec;
    double rate;

    if (!run->progress.is_terminal && now - run->shown_usec < PLAIN_USEC)
        return;
    run->shown_usec = now;
    progress_write_bytes(&run->progress, (int64_t)run->done, (int64_t)run->total, &text);
    if (run->done > run->found
        && progress_write_rate((int64_t)(run->done - run->found), took, &text)) {
        rate = (double)(run->done - run->found) / (double)took;
        strbuf_adds(&text, "  ");
        cell_write_span((int64_t)((double)(run->total - AQ_MIN(run->done, run->total)) / rate),
                        &text);
        strbuf_adds(&text, " left");
    }
    progress_stage(&run->progress, text.data);
    progress_tick(&run->progress);
}

void copy_slot_moved(struct copy_slot *slot, uint64_t bytes)
{
    slot->counted += bytes;
    slot->run->done += bytes;
    slot->run->moved_usec = clock_monotonic_usec();
    slot->run->is_lost = false;
    if (slot->end - slot->at == 1)
        slot->tries = 0;
}

void copy_slot_found(struct copy_slot *slot, uint64_t bytes)
{
    slot->counted += bytes;
    slot->run->done += bytes;
    slot->run->found += slot->has_found ? 0 : bytes;
    slot->has_found = true;
}

/* ---- what a slot does next ---- */

/* Release what either has opened. */
static void copy_slot_close(struct copy_slot *slot)
{
    exchange_cancel(AQ_TAKE(slot->exchange));
    tree_writer_free(AQ_TAKE(slot->writer));
    tar_reader_free(AQ_TAKE(slot->archive));
    aq_closep(&slot->fd);
    aq_closep(&slot->parent);
    slot->fd = slot->parent = -1;
    slot->is_broken = slot->is_sent = false;
    slot->etag[0] = '\0';
    slot->retry_usec = 0;
    strbuf_clear(&slot->answer);
}

/* The items are not through after all. */
static void copy_slot_uncount(struct copy_slot *slot)
{
    slot->run->done -= slot->counted;
    slot->counted = 0;
}

static bool copy_take(struct copy_slot *slot)
{
    struct copy_run *run = slot->run;
    const struct copy_list *list = run->t->list;
    uint64_t bytes = 0;

    slot->at = slot->end;
    slot->counted = 0;
    slot->tries = slot->renewals = 0;
    slot->has_found = false;
    if (slot->at < slot->stop) {
        slot->end = slot->at + 1;
        return true;
    }
    slot->at = slot->end = run->next;
    while (slot->end < list->count && slot->end - slot->at < BATCH_FILES
           && bytes + list->items[slot->end].size <= BATCH_BYTES && slot->end >= run->large_count)
        bytes += list->items[slot->end++].size;
    if (slot->end == slot->at && slot->end < list->count)
        slot->end++;
    slot->stop = run->next = slot->end;
    return slot->at < slot->end;
}

static bool copy_is_idle(const struct copy_run *run)
{
    for (size_t i = 0; i < COPY_SLOTS; i++)
        if (run->slots[i].at < run->slots[i].end)
            return false;
    return run->next == run->t->list->count;
}

/* The items are through. As with copy_fail(), true = begin with those that are next. */
static bool copy_next(struct copy_slot *slot)
{
    for (size_t i = slot->at; i < slot->end; i++)
        slot->run->t->files += !slot->run->t->list->items[i].has_failed
                               && slot->run->t->list->items[i].type == COPY_FILE;
    copy_slot_close(slot);
    if (copy_take(slot))
        return true;
    if (copy_is_idle(slot->run))
        copy_leave(slot->run, NULL);
    return false;
}

/* Items that fail together are tried one by one. A disk that is full fails them all. */
static bool copy_fail(struct copy_slot *slot, const struct aq_error *err)
{
    struct aq_error why = *err;

    copy_slot_uncount(slot);
    if (fs_is_full(why.code)) {
        copy_leave(slot->run, &why);
        return false;
    }
    if (slot->end - slot->at > 1) {
        slot->end = slot->at + 1;
        copy_slot_close(slot);
        return true;
    }
    copy_run_fail_item(slot->run, copy_slot_item(slot), why.text);
    return copy_next(slot);
}

static void copy_begin(struct copy_slot *slot, bool is_there)
{
    while (is_there) {
        struct aq_error err = { 0 };
        int r = slot->run->t->is_upload ? copy_send_begin(slot, &err)
                                        : copy_fetch_begin(slot, &err);

        is_there = r > 0 ? copy_next(slot) : r < 0 && copy_fail(slot, &err);
    }
}

static void copy_wait(struct copy_slot *slot)
{
    int64_t wait = RETRY_USEC << AQ_MIN(slot->tries, 5u);

    copy_slot_uncount(slot);
    copy_slot_close(slot);
    slot->tries++;
    slot->retry_usec = clock_monotonic_usec() + AQ_MIN(wait, RETRY_MOST_USEC);
}

static void copy_lost(struct copy_slot *slot, const struct aq_error *err)
{
    struct copy_run *run = slot->run;
    struct aq_error why = *err;

    if (clock_monotonic_usec() - run->moved_usec > GIVE_UP_USEC) {
        (void)aq_fail_kind(&why, ECONNRESET, CLI_KIND_UNREACHABLE,
                           "the storage host cannot be reached: %s", err->text);
        copy_leave(run, &why);
        return;
    }
    if (!run->is_lost) {
        progress_clear(&run->progress);
        cli_note(run->t->cli, "the connection to the storage host was lost (%s); trying again",
                 err->text);
    }
    run->is_lost = true;
    copy_wait(slot);
}

void copy_slot_break(struct copy_slot *slot, const struct aq_error *err)
{
    slot->is_broken = true;
    slot->err = *err;
}

/* ---- requests ---- */

int copy_slot_send(struct copy_slot *slot, enum method method, const char *last, const char *query,
                   const char *headers, const struct strbuf *body, const struct exchange_ops *ops,
                   int (*answered)(struct copy_slot *, struct aq_error *err), struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;
    struct client_request request = { .method = method,
                                      .headers = headers,
                                      .stream_body = method == METHOD_PATCH,
                                      .body_max = UINT64_MAX };

    strbuf_addf(&url, "%s%s?token=", slot->run->url.data, last);
    strbuf_adds(&url, slot->run->token.data);
    strbuf_adds(&url, query);
    request.url = url.data;
    request.body = body ? body->data : NULL;
    request.body_len = body ? body->len : 0;
    slot->status = 0;
    slot->answered = answered;
    return client_send(slot->run->client, &request, ops, slot, &slot->exchange, err);
}

void copy_on_head(struct exchange *exchange, const struct message_head *head, void *data)
{
    struct copy_slot *slot = data;

    (void)exchange;
    slot->status = head->status;
}

void copy_on_body(struct exchange *exchange, const char *bytes, size_t len, void *data)
{
    struct copy_slot *slot = data;

    (void)exchange;
    if (slot->status >= 300 && slot->answer.len < ANSWER_MAX)
        strbuf_add(&slot->answer, bytes, AQ_MIN(len, ANSWER_MAX - slot->answer.len));
}

static bool copy_may_pass(int status)
{
    return status == 409 || status == 416 || status == 429 || status == 500 || status >= 502;
}

static void copy_refused(struct copy_slot *slot)
{
    struct copy_run *run = slot->run;
    struct aq_error err = { 0 };

    (void)cli_fail_status(run->t->cli, slot->status, slot->answer.data, slot->answer.len, &err);
    err.code = slot->status == 507 ? ENOSPC : slot->status == 413 ? EDQUOT : err.code;
    if (slot->status == 403 && slot->renewals == 0) { /* it may have expired */
        run->needs_token = true;
        copy_wait(slot);
        slot->renewals = 1;
    } else if (slot->status != 507 && copy_may_pass(slot->status) && slot->tries < TRIES_MAX) {
        copy_wait(slot);
    } else {
        copy_begin(slot, copy_fail(slot, &err));
    }
}

void copy_on_end(struct exchange *exchange, const struct aq_error *err, void *data)
{
    struct copy_slot *slot = data;
    struct aq_error own = { 0 };
    int r;

    (void)exchange;
    slot->exchange = NULL;
    if (slot->run->is_over || slot->is_broken)
        return;
    if (slot->status >= 300) {
        copy_refused(slot);
    } else if (err->code) {
        copy_lost(slot, err);
    } else if ((r = slot->answered(slot, &own)) < 0) {
        copy_begin(slot, copy_fail(slot, &own));
    } else if (r > 0) {
        copy_begin(slot, copy_next(slot));
    }
}

/* ---- the token ---- */

static int copy_get_token(struct copy_run *run, struct aq_error *err)
{
    struct copy_transfer *t = run->t;
    AQ_CLEANUP(strbuf_donep) struct strbuf base = STRBUF_INIT;
    json_auto_t *answer = NULL;
    const char *url, *token, *slash;
    int r;

    name_write(*t->base ? t->base : ".", &base);
    r = folder_send(
        t->cli, METHOD_POST, t->folder, t->is_upload ? "/request-upload" : "/request-download",
        t->is_upload
            ? json_pack("{s:s, s:I, s:b}", "path", base.data, "size",
                        (json_int_t)(run->total - AQ_MIN(run->done, run->total)), "tree", true)
            : json_pack("{s:s, s:b}", "path", base.data, "tree", true),
        &answer, err);
    if (r < 0)
        return r;
    url = json_string_value(json_object_get(answer, "url"));
    token = json_string_value(json_object_get(answer, "token"));
    if (!url || !token || !(slash = strrchr(url, '/')))
        return cli_fail_answer(t->cli, "no token", err);
    strbuf_clear(&run->url);
    strbuf_add(&run->url, url, (size_t)(slash + 1 - url));
    strbuf_clear(&run->token);
    strbuf_adds(&run->token, token);
    return 0;
}

/* Outside of callbacks, as this waits for the answer with the same loop. A manager that is away is
 * asked again at the next tick.
 */
static void copy_renew_token(struct copy_run *run)
{
    struct aq_error err = { 0 };

    run->needs_token = false;
    if (copy_get_token(run, &err) == 0)
        run->lost_usec = 0;
    else if (cli_awaits_manager(run->t->cli, &err, true, &run->lost_usec))
        run->needs_token = true;
    else
        copy_leave(run, &err);
}

/* ---- the loop ---- */

static void copy_on_tick(uv_timer_t *timer)
{
    struct copy_run *run = timer->data;
    int64_t now = clock_monotonic_usec();

    for (size_t i = 0; i < COPY_SLOTS && !run->is_over; i++) {
        struct copy_slot *slot = &run->slots[i];

        if (slot->retry_usec && slot->retry_usec <= now && !run->needs_token) {
            slot->retry_usec = 0;
            copy_begin(slot, true);
        }
    }
    copy_show(run);
}

static void copy_on_signal(void *data, int signum)
{
    struct copy_run *run = data;
    struct aq_error err = { 0 };

    (void)aq_fail(&err, ECANCELED, "ended by signal %d", signum);
    copy_leave(run, &err);
}

static void copy_on_closed(uv_handle_t *handle)
{
    struct copy_run *run = handle->data;

    run->is_ticking = false;
}

static void copy_open(struct copy_run *run)
{
    static const int signums[] = { SIGINT, SIGTERM, SIGHUP, 0 };

    (void)uv_timer_init(run->loop, &run->tick);
    run->tick.data = run;
    (void)uv_timer_start(&run->tick, copy_on_tick, TICK_MSEC, TICK_MSEC);
    run->is_ticking = true;
    cli_signals_open(&run->signals, run->loop, signums, copy_on_signal, run);
}

static void copy_close(struct copy_run *run)
{
    for (size_t i = 0; i < COPY_SLOTS; i++) {
        copy_slot_close(&run->slots[i]);
        strbuf_done(&run->slots[i].answer);
    }
    uv_close((uv_handle_t *)&run->tick, copy_on_closed);
    while (run->is_ticking)
        (void)uv_run(run->loop, UV_RUN_ONCE);
    cli_signals_close(&run->signals);
    progress_stage(&run->progress, "");
    strbuf_done(&run->url);
    strbuf_done(&run->token);
}

/* What broke off here is ended outside of the callbacks of its request. */
static void copy_mend(struct copy_run *run)
{
    for (size_t i = 0; i < COPY_SLOTS && !run->is_over; i++) {
        struct copy_slot *slot = &run->slots[i];
        struct aq_error err = slot->err;

        if (!slot->is_broken)
            continue;
        copy_slot_close(slot);
        copy_begin(slot, copy_fail(slot, &err));
    }
    if (run->needs_token && !run->is_over)
        copy_renew_token(run);
}

/* The large files first: they take longest. Directories of a download are made. */
static int copy_sort_out(struct copy_run *run, struct aq_error *err)
{
    struct copy_list *list = run->t->list;

    for (size_t i = 0; i < list->count; i++) {
        run->total += list->items[i].size;
        if (list->items[i].size > COPY_SMALL) {
            AQ_SWAP(list->items[i], list->items[run->large_count]);
            run->large_count++;
        }
    }
    for (size_t i = 0; !run->t->is_upload && i < list->count;) {
        int fd;

        if (list->items[i].type != COPY_FOLDER) {
            i++;
            continue;
        }
        if ((fd = beneath_make(run->t->root, list->items[i].to, true)) < 0)
            return beneath_fail(err, -fd, list->items[i].to);
        aq_closep(&fd);
        copy_list_drop(list, i);
    }
    return 0;
}

int copy_transfer_run(struct copy_transfer *t, struct aq_error *err)
{
    struct copy_run run = { .t = t, .begun_usec = clock_monotonic_usec() };
    int r = copy_sort_out(&run, err);

    if (r < 0 || !t->list->count)
        return r;
    run.moved_usec = run.shown_usec = run.begun_usec;
    strbuf_init(&run.url);
    strbuf_init(&run.token);
    progress_init(&run.progress, t->cli->globals.quiet, t->cli->output.ascii);
    if ((r = cli_client_open(t->cli, &run.loop, &run.client, err)) < 0)
        return r;
    copy_open(&run);
    for (size_t i = 0; i < COPY_SLOTS; i++) {
        run.slots[i] = (struct copy_slot){ .run = &run, .fd = -1, .parent = -1 };
        strbuf_init(&run.slots[i].answer);
    }
    r = copy_get_token(&run, err);
    for (size_t i = 0; r == 0 && i < COPY_SLOTS && !run.is_over; i++)
        copy_begin(&run.slots[i], copy_next(&run.slots[i]));
    while (r == 0 && !run.is_over) {
        (void)uv_run(run.loop, UV_RUN_ONCE);
        copy_mend(&run);
    }
    copy_close(&run);
    t->bytes = run.done - run.found;
    if (r == 0 && run.r < 0)
        *err = run.err;
    if (run.r == -ECANCELED || run.r == -ECONNRESET)
        cli_hint(t->cli, "what has come stays; the same command goes on from there");
    return r < 0 ? r : run.r;
}
