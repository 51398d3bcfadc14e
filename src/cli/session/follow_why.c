/* SPDX-License-Identifier: Apache-2.0 */
/* follow_why.c - what a followed session waits for, and how it ended, in a line each */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/prose.h"
#include "cli/session/follow_internal.h"
#include "model/booking.h"
#include "model/idle.h"
#include "model/session.h"

/* ---- waiting ---- */

/* Is it a device's free part that is short, and not the sum? */
static bool follow_is_of_one_device(const json_t *requirement)
{
    const json_t *devices = json_object_get(requirement, "devices");
    const json_t *device = json_array_get(devices, 0);

    return json_object_size(json_object_get(requirement, "missing")) == 1
           && json_array_size(devices) == 1 && !json_is_true(json_object_get(device, "may_split"))
           && json_integer_value(json_object_get(device, "parts")) == 1;
}

/* Could no agent hold it even if it were empty? */
static bool follow_lacks_capacity(const json_t *explanation)
{
    const char *kind = json_string_value(json_object_get(explanation, "kind"));

    return kind && strcmp(kind, "no-capacity") == 0;
}

/* "it needs cpu=1 mem=32 MiB more on node-1": what is short where it is nearest to fit; nothing if
 * the manager does not say.
 */
static void follow_write_missing(const json_t *explanation, struct strbuf *out)
{
    static const struct output plain = { .format = OUTPUT_TABLE };
    static const struct column slots = { "missing", "MISSING", COLUMN_SLOTS, 0 };
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(explanation, "requirements"), i, item) {
        const json_t *missing = json_object_get(item, "missing");
        const char *agent = json_string_value(json_object_get(item, "nearest"));

        if (!json_object_size(missing))
            continue;
        if (follow_lacks_capacity(explanation))
            strbuf_adds(out, "no agent that takes sessions now could hold it: ");
        strbuf_adds(out, "it needs ");
        cell_write(&plain, &slots, missing, out);
        if (agent)
            strbuf_addf(out, " more on %s%s", follow_is_of_one_device(item) ? "one device of " : "",
                        agent);
        return;
    }
}

/* The last line of the explanation says most; those of lists begin with a dash. */
static void follow_write_sentence(const struct follow *f, const char *text, struct strbuf *out)
{
    const char *last = strrchr(text, '\n');

    text = last ? last + 1 : text;
    text += strspn(text, " -");
    if (f->progress
            .is_terminal) /* elsewhere each change is a line, and what is left of a time changes */
        prose_localize(text, clock_realtime_usec(), out);
    else
        strbuf_adds(out, text);
}

static void follow_write_why(const struct followed *item, const json_t *answer, struct strbuf *out)
{
    const json_t *explanation = json_object_get(answer, "explanation");
    const json_t *position = json_object_get(explanation, "position");
    const char *text = json_string_value(json_object_get(explanation, "text"));
    const json_t *error = json_object_get(explanation, "error");
    const char *words = json_string_value(json_object_get(error, "repr"));
    const char *agent = json_string_value(json_object_get(error, "agent_id"));
    const char *kernel = json_string_value(json_object_get(explanation, "kernel"));

    follow_write_missing(explanation, out);
    if (!out->len && text)
        follow_write_sentence(item->all, text, out);
    if (words && kernel) /* of the agent that could not start it */
        strbuf_addf(out, "%s%s on %s: %s", out->len ? " " : "", kernel, agent ? agent : "", words);
    else if (words)
        strbuf_addf(out, "%s%s", out->len ? " " : "", words);
    /* elsewhere than on a terminal each change is a line of its own */
    if (out->len && json_is_integer(position) && item->all->progress.is_terminal)
        strbuf_addf(out, "; number %lld of %lld in the queue",
                    (long long)json_integer_value(position),
                    (long long)json_integer_value(json_object_get(explanation, "queue_length")));
}

static void follow_take_why(struct followed *item, const json_t *answer)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *status = json_string_value(json_object_get(answer, "status"));
    const char *text = json_string_value(json_object_get(answer, "text"));
    enum session_status asked;

    if (!status || session_status_parse(status, &asked) < 0)
        return;
    if (!follow_is_same_stage(asked, item->status)) {
        if (asked == SESSION_PENDING) /* it has a place meanwhile */
            follow_ask_why(item);
        return;
    }
    if (asked != SESSION_TERMINATING)
        follow_write_why(item, answer, &out);
    else if (text)
        strbuf_add(&out, text, strcspn(text, "\n"));
    if (asked != SESSION_PENDING && !out.len)
        return; /* the reason says all */
    (void)snprintf(item->reason, sizeof(item->reason), "%s", out.data);
    utf8_drop_partial(item->reason);
}

static void follow_on_why(void *data, const struct client_response *response,
                          const struct aq_error *err)
{
    struct followed *item = data;
    json_t *answer;

    (void)err;
    item->asking_why = NULL;
    if (!response || response->head->status != 200 || item->is_final)
        return;
    answer = json_loadb(response->body, response->body_len, 0, NULL);
    follow_take_why(item, answer);
    json_decref(answer);
}

void follow_ask_why(struct followed *item)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct client_request request = { .method = METHOD_GET };
    struct follow *f = item->all;

    if (item->asking_why || f->count != 1 || f->is_over)
        return;
    follow_path(item, "/aliquot/v1/sessions/", "/why", &path);
    (void)cli_begin_fetch(f->cli, path.data, request, follow_on_why, item, &item->asking_why, NULL);
}

/* ---- ended ---- */

/* Ends that are not the program's own. */
static const struct {
    const char *reason, *text;
} follow_ends[] = {
    { REASON_TASK_TIMEOUT, "its --timeout was over" },
    { REASON_BOOTSTRAP_FAILED, "its bootstrap script failed" },
    { REASON_BOOTSTRAP_TIMEOUT, "its bootstrap script took too long" },
    { REASON_EXEC_TIMEOUT, "code that it ran took longer than its cluster allows" },
    { REASON_IDLE_TIMEOUT,
      "it was idle for longer than its keypair policy or resource group allows" },
    { REASON_IDLE_UTILIZATION, "it used too little of its resources" },
    { REASON_IDLE_LIFETIME, "it reached its maximum lifetime" },
    { REASON_BAD_OUTPUT, "the values that it handed on break a rule" },
    { REASON_OUT_OF_MEMORY, "its memory was used up" },
    { REASON_GPU_OUT_OF_MEMORY, "the memory of its GPU slice was used up" },
    { REASON_GPU_MISUSE, "it used a GPU past its slice" },
    { REASON_USER_REQUESTED, "it was asked to end" },
    { REASON_FORCE_TERMINATED, "it was ended by force" },
    { REASON_PENDING_TIMEOUT, "it waited for too long" },
    { REASON_FAILED_TO_CREATE, "it could not be created" },
    { REASON_FAILED_TO_START, "it could not be started" },
    { REASON_HANG_TIMEOUT, "it hung" },
    { REASON_RESTART_TIMEOUT, "its restart took too long" },
    { REASON_PREEMPTED, "a more important session needed its room" },
    { REASON_AGENT_LOST, "its agent was lost" },
    { REASON_AGENT_DRAINED, "its agent was drained" },
    { REASON_AGENT_REMOVED, "its agent was removed" },
    { REASON_CONTAINER_NOT_FOUND, "its container has disappeared" },
    { REASON_MONITOR_LOST, "the process that watched it was killed" },
    { REASON_DEPENDENCY_FAILED, "a session or array that it waited for did not end as required" },
    { REASON_BOOKING_ENDED, "its reservation has ended" },
    { REASON_BOOKING_RELEASED, "its reservation was released, as it was unused" },
    { REASON_BOOKING_CANCELED, "its reservation was canceled" },
};

const char *follow_end_text(const char *reason)
{
    for (size_t i = 0; i < AQ_COUNT(follow_ends); i++)
        if (strcmp(follow_ends[i].reason, reason) == 0)
            return follow_ends[i].text;
    return NULL;
}

/* The first line of "session why", or "": mostly the words of an agent. */
static void follow_write_words(struct cli *cli, const struct follow_session *session,
                               struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *answer = NULL;
    const char *text;

    strbuf_addf(&path, "/aliquot/v1/sessions/%s/why", session->id);
    cli_path_query(&path, "owner_access_key", session->owner[0] ? session->owner : NULL);
    (void)cli_call(cli, METHOD_GET, path.data, NULL, &answer, NULL);
    text = json_string_value(json_object_get(answer, "text"));
    if (text)
        strbuf_add(out, text, strcspn(text, "\n"));
    json_decref(answer);
}

int follow_fail_ended(struct cli *cli, const struct follow_session *session,
                      const struct follow_end *end, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf words = STRBUF_INIT;
    const char *reason = end->reason && end->reason[0] ? end->reason : NULL;
    const char *text = reason ? follow_end_text(reason) : NULL;

    if (!end->has_exit || (text && !end->exit_code))
        follow_write_words(cli, session, &words);
    if (!words.len)
        strbuf_adds(&words, text ? text : reason ? reason : "no reason was given");
    if (end->has_exit)
        (void)aq_fail(err, ECHILD, "session '%s' has ended, with exit status %d: %s", session->name,
                      end->exit_code, words.data);
    else
        (void)aq_fail(err, ECHILD, "session '%s' is %s without having run: %s", session->name,
                      session_status_name(end->status), words.data);
    cli_hint(cli, "see more: aliquot session why %s", session->name);
    return -ECHILD;
}

void follow_note_end(struct cli *cli, const struct follow_session *session, const char *reason,
                     bool names_kernel)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf words = STRBUF_INIT;
    const char *text = follow_end_text(reason);

    if (!text && !names_kernel)
        return;
    if (strcmp(reason, REASON_TASK_TIMEOUT) == 0 && session->timeout_usec) {
        strbuf_adds(&words, "its --timeout of ");
        if (session->timeout_usec % USEC_PER_SEC)
            strbuf_addf(&words, "%.10g s", (double)session->timeout_usec / (double)USEC_PER_SEC);
        else
            cell_write_span(session->timeout_usec, &words);
        strbuf_adds(&words, " was over");
    } else if (strcmp(reason, REASON_TASK_TIMEOUT) != 0) {
        follow_write_words(cli, session, &words);
    }
    cli_note(cli, "aliquot: session '%s' was ended: %s", session->name,
             words.len ? words.data
             : text    ? text
                       : reason);
}
