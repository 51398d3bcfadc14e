/* SPDX-License-Identifier: Apache-2.0 */
/* Stay with sessions until they have ended. */
#include "cli/session/follow.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/session/array.h"
#include "cli/session/follow_internal.h"
#include "cli/session/session.h"
#include "model/session.h"

#define TICK_MSEC 100                /* of what moves on a terminal */
#define TICK_PLAIN_MSEC 400          /* without one: each costs many clients together a processor */
#define POLL_USEC (5 * USEC_PER_SEC) /* while events come */
#define POLL_BLIND_USEC (USEC_PER_SEC / 2) /* while none do */
#define POLL_NEW_USEC USEC_PER_SEC         /* what happened to new ones before we listened */
#define LOST_USEC (300 * USEC_PER_SEC)     /* without the manager before giving up */
#define ANSWER_MSEC 10000                  /* a manager that has stopped keeps its connections */

void follow_fail(struct follow *f)
{
    if (f->is_over)
        return;
    f->r = -f->err.code;
    f->is_over = true;
}

void follow_path(const struct followed *item, const char *base, const char *rest,
                 struct strbuf *path)
{
    const char *owner = item->session->owner;

    strbuf_addf(path, "%s%s%s", base, item->session->id, rest);
    cli_path_query(path, "owner_access_key", owner[0] ? owner : NULL);
}

static bool follow_is_done(const struct followed *item)
{
    bool runs = item->status == SESSION_RUNNING || item->status == SESSION_RUNNING_DEGRADED;

    return (item->is_final && follow_log_is_over(item))
           || ((item->all->flags & FOLLOW_START) && runs);
}

/* ---- state ---- */

void follow_check(struct follow *f)
{
    for (size_t i = 0; i < f->count; i++)
        if (!follow_is_done(&f->items[i]))
            return;
    f->is_over = true;
}

/* Of a program that was ended, and exited with 0 all the same; as timeout(1) has it. */
static int follow_failure_status(const char *reason)
{
    return reason && strcmp(reason, REASON_TASK_TIMEOUT) == 0 ? CLI_EXIT_TIME_LIMIT
                                                              : CLI_EXIT_FAILURE;
}

static void follow_read_exit_code(struct followed *item, const json_t *session,
                                  enum session_status status)
{
    const json_t *code = session_exit_code(session);
    const char *result = json_string_value(json_object_get(session, "result"));

    item->names_kernel = json_is_object(json_object_get(session, "failure"));
    item->has_exit = code != NULL;
    if (code)
        item->exit_code = (int)json_integer_value(code) & 255;
    /* A result without exit status: the manager alone knows why. */
    if (!item->has_exit && result
        && (strcmp(result, "SUCCESS") == 0 || (item->names_kernel && status == SESSION_TERMINATED)))
        item->has_exit = true;
    if (item->has_exit && item->exit_code == 0 && result && strcmp(result, "FAILURE") == 0)
        item->exit_code = follow_failure_status(
            json_string_value(json_object_get(session, "reason")));
}

bool follow_is_same_stage(enum session_status a, enum session_status b)
{
    return a == b
           || (a >= SESSION_SCHEDULED && a <= SESSION_CREATING && b >= SESSION_SCHEDULED
               && b <= SESSION_CREATING);
}

/* Has the manager more to say than the reason? Why it waits, why its last start failed, and which of
 * several kernels did.
 */
static bool follow_has_words(const struct followed *item, const char *reason)
{
    return item->status == SESSION_PENDING
           || (reason && follow_is_same_stage(item->status, SESSION_SCHEDULED))
           || (item->status == SESSION_TERMINATING && !item->session->is_single);
}

void follow_set_stage(struct followed *item, enum session_status status, const char *reason)
{
    bool is_same = follow_is_same_stage(item->status, status);

    item->status = status;
    if (status < SESSION_SCHEDULED || status > SESSION_PULLING)
        item->pull[0] = '\0';
    if (!is_same || !follow_has_words(item, reason)) /* else follow_ask_why() has more to say */
        (void)snprintf(item->reason, sizeof(item->reason), "%s",
                       reason && status != SESSION_PENDING ? reason : "");
    if (status == SESSION_PENDING || (!is_same && follow_has_words(item, reason)))
        follow_ask_why(item);
    follow_log_need(item);
    follow_input_need(item);
}

static void follow_update(struct followed *item, const json_t *session)
{
    const char *status = json_string_value(json_object_get(session, "status"));
    const char *reason = json_string_value(json_object_get(session, "reason"));
    enum session_status now;

    if (!status || session_status_parse(status, &now) < 0)
        return;
    if (now == SESSION_RESTARTING && item->status != now) {
        item->log_is_done = false;
        item->log_seen = 0;
    }
    item->is_known = true;
    follow_log_update(item, session);
    item->is_final = session_is_terminal(now);
    if (item->is_final)
        follow_read_exit_code(item, session, now);
    follow_set_stage(item, now, reason);
}

/* The manager did not answer: it may be restarting. */
static void follow_note_lost(struct follow *f, const struct aq_error *err)
{
    int64_t now = clock_monotonic_usec();

    if (!f->lost_usec) {
        f->lost_usec = now;
        progress_clear(&f->progress);
        cli_note(f->cli, "aliquot: the manager does not answer (%s); waiting for it", err->text);
    }
    if (now - f->lost_usec > LOST_USEC) {
        f->err = *err;
        follow_fail(f);
    }
}

static void follow_on_answer(void *data, const struct client_response *response,
                             const struct aq_error *err)
{
    struct followed *item = data;
    struct follow *f = item->all;
    json_t *session;

    item->asking = NULL;
    if (!response || response->head->status >= 500) {
        struct aq_error busy = { 0 };

        aq_fail(&busy, EAGAIN, "status %d", response ? response->head->status : 0);
        follow_note_lost(f, response ? &busy : err);
        return;
    }
    f->lost_usec = 0;
    if (response->head->status != 200) {
        cli_fail_status(f->cli, response->head->status, response->body, response->body_len,
                        &f->err);
        aq_error_wrap(&f->err, "session '%s'", item->session->name);
        follow_fail(f);
        return;
    }
    session = json_loadb(response->body, response->body_len, 0, NULL);
    follow_update(item, session);
    json_decref(session);
    if (item->ask_again && !item->is_final)
        follow_ask(item);
    follow_check(f);
}

void follow_ask(struct followed *item)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET, .answer_msec = ANSWER_MSEC };
    struct follow *f = item->all;

    item->ask_again = item->asking != NULL;
    if (item->ask_again || f->is_over)
        return;
    follow_path(item, "/aliquot/v1/sessions/", "", &path);
    if (cli_begin_fetch(f->cli, path.data, request, follow_on_answer, item, &item->asking, &f->err)
        < 0)
        follow_fail(f);
}

void follow_ask_all(struct follow *f)
{
    for (size_t i = 0; i < f->count; i++) {
        struct followed *item = &f->items[i];

        if (!item->is_final)
            follow_ask(item);
        else
            follow_log_need(item);
    }
}

static void follow_poll(struct follow *f, int64_t now)
{
    f->poll_usec = now + (f->events ? POLL_USEC : POLL_BLIND_USEC * (1 + f->count / 100));
    if (!f->events)
        follow_listen_to_events(f);
    if (follow_are_new(f))
        f->poll_usec = f->new_until_usec;
    else
        follow_ask_all(f);
    follow_check(f);
}

static void follow_on_tick(uv_timer_t *timer)
{
    struct follow *f = timer->data;
    int64_t now = clock_monotonic_usec();

    if (f->deadline_usec && now >= f->deadline_usec) {
        aq_fail(&f->err, ETIMEDOUT, "the time is over and the session goes on");
        follow_fail(f);
    }
    if (now >= f->poll_usec)
        follow_poll(f, now);
    follow_show(f);
    progress_tick(&f->progress);
}

/* ---- interruption ---- */

static void follow_on_cancelled(void *data, const struct client_response *response,
                                const struct aq_error *err)
{
    (void)data;
    (void)response;
    (void)err;
}

static void follow_cancel(struct followed *item)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_DELETE };
    struct exchange *ex;

    if (item->session->array)
        array_path(item->all->cli, &path, item->session->array, "");
    else
        follow_path(item, "/session/", "", &path);
    (void)cli_begin_fetch(item->all->cli, path.data, request, follow_on_cancelled, NULL, &ex, NULL);
}

static void follow_on_interrupt(uv_signal_t *handle, int signum)
{
    struct follow *f = handle->data;

    progress_clear(&f->progress);
    if (signum == SIGQUIT || ++f->interrupts > 2) {
        aq_fail(&f->err, ECANCELED, "left; '%s' goes on", f->items[0].session->name);
        cli_hint(f->cli, "see it again: aliquot logs -f %s", f->items[0].session->name);
        follow_fail(f);
    } else if (f->interrupts == 1) {
        cli_note(f->cli, "Press Ctrl-C again to cancel; Ctrl-\\ leaves it running.");
    } else {
        for (size_t i = 0; i < f->count; i++)
            if (!f->items[i].is_final)
                follow_cancel(&f->items[i]);
    }
}

/* ---- the whole ---- */

static void follow_on_handle_closed(uv_handle_t *handle)
{
    struct follow *f = handle->data;

    f->handles--;
}

static void follow_open_handles(struct follow *f)
{
    uv_handle_t *const handles[] = { (uv_handle_t *)&f->tick, (uv_handle_t *)&f->interrupt,
                                     (uv_handle_t *)&f->quit };

    (void)uv_timer_init(f->loop, &f->tick);
    (void)uv_signal_init(f->loop, &f->interrupt);
    (void)uv_signal_init(f->loop, &f->quit);
    f->handles = AQ_COUNT(handles);
    for (size_t i = 0; i < AQ_COUNT(handles); i++)
        handles[i]->data = f;
    if (f->flags & FOLLOW_CANCEL) {
        (void)uv_signal_start(&f->interrupt, follow_on_interrupt, SIGINT);
        (void)uv_signal_start(&f->quit, follow_on_interrupt, SIGQUIT);
    }
    (void)uv_timer_start(&f->tick, follow_on_tick, 0,
                         f->progress.is_terminal ? TICK_MSEC : TICK_PLAIN_MSEC);
}

static void follow_close_all(struct follow *f)
{
    progress_stage(&f->progress, "");
    exchange_cancel(f->events);
    sse_reader_free(f->reader);
    for (size_t i = 0; i < f->count; i++) {
        exchange_cancel(f->items[i].asking);
        exchange_cancel(f->items[i].asking_why);
        follow_input_done(&f->items[i]);
        follow_log_done(&f->items[i]);
    }
    uv_close((uv_handle_t *)&f->tick, follow_on_handle_closed);
    uv_close((uv_handle_t *)&f->interrupt, follow_on_handle_closed);
    uv_close((uv_handle_t *)&f->quit, follow_on_handle_closed);
    while (f->handles)
        (void)uv_run(f->loop, UV_RUN_ONCE);
}

/* The exit status of all, in their order. */
static int follow_conclude(struct follow *f, int *ret_exit)
{
    *ret_exit = 0;
    for (size_t i = 0; i < f->count && !(f->flags & FOLLOW_END); i++) {
        const struct followed *item = &f->items[i];
        const struct follow_end end = { item->status, item->reason, item->has_exit,
                                        item->exit_code };

        if (f->interrupts > 1)
            return aq_fail(&f->err, ECANCELED, "cancelled");
        if (!item->is_final)
            continue; /* FOLLOW_START */
        if (!item->has_exit && (f->flags & FOLLOW_HIGHEST)) {
            *ret_exit = AQ_MAX(*ret_exit, CLI_EXIT_FAILURE);
            continue;
        }
        if (!item->has_exit || (f->flags & FOLLOW_START))
            return follow_fail_ended(f->cli, item->session, &end, &f->err);
        follow_note_end(f->cli, item->session, item->reason, item->names_kernel);
        if (item->is_input_cut && item->exit_code == 0)
            return aq_fail(&f->err, ECONNABORTED, "session '%s' did not get all of its input",
                           item->session->name);
        if (*ret_exit == 0 || (f->flags & FOLLOW_HIGHEST))
            *ret_exit = AQ_MAX(*ret_exit, item->exit_code);
    }
    return 0;
}

int follow_sessions(struct cli *cli, const struct follow_session *sessions, size_t count,
                    unsigned flags, int64_t timeout_usec, int *ret_exit, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct followed *items = aq_alloc_array(count + 1, sizeof(*items));
    struct follow f = { .cli = cli,
                        .flags = flags,
                        .items = items,
                        .count = count,
                        .new_until_usec = count && sessions[0].is_new
                                              ? clock_monotonic_usec() + POLL_NEW_USEC
                                              : 0 };

    f.r = cli_client_open(cli, &f.loop, &f.client, err);
    if (f.r < 0)
        return f.r;
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct followed){ .all = &f,
                                      .session = &sessions[i],
                                      .status = SESSION_PENDING,
                                      .is_known = sessions[i].is_new,
                                      .log_is_known = sessions[i].is_single };
        strbuf_init(&items[i].line);
    }
    if (timeout_usec)
        f.deadline_usec = clock_monotonic_usec() + timeout_usec;
    progress_init(&f.progress, cli->globals.quiet, cli->output.ascii);
    follow_open_handles(&f);
    for (size_t i = 0; i < count; i++) {
        follow_log_need(&items[i]);
        if ((flags & FOLLOW_LOGS) && !items[i].log_is_known)
            follow_ask(&items[i]);
    }
    while (!f.is_over)
        (void)uv_run(f.loop, UV_RUN_ONCE);
    follow_close_all(&f);
    if (f.r == 0)
        f.r = follow_conclude(&f, ret_exit);
    if (f.r < 0 && err)
        *err = f.err;
    return f.r;
}
