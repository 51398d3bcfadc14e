/* SPDX-License-Identifier: Apache-2.0 */
/* How often a batch session was run, and how often it may be. */
#include "manager/session/session_attempts.h"

#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/call/api.h"
#include "manager/core/statistics.h"
#include "model/rerun.h"
#include "model/session_summary.h"

static void session_attempts_write_seconds(const char *key, int64_t usec, struct jsonw *w)
{
    if (usec % USEC_PER_SEC) {
        jsonw_key(w, key);
        jsonw_double(w, (double)usec / (double)USEC_PER_SEC);
    } else {
        jsonw_member_int(w, key, usec / USEC_PER_SEC);
    }
}

void session_attempts_write_retry(const struct session *session, struct jsonw *w)
{
    const struct session_spec *spec = session->spec;
    const struct rerun_record *record = session->rerun;
    bool is_delayed;

    if (!spec || !spec->retry) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    jsonw_member_int(w, "limit", spec->retry);
    jsonw_member_str(w, "on", spec->retry_on ? spec->retry_on : RERUN_ON_DEFAULT);
    session_attempts_write_seconds("delay_sec", rerun_delay_usec(spec, 1), w);
    jsonw_member_int(w, "factor", spec->retry_factor ? spec->retry_factor : RERUN_FACTOR_DEFAULT);
    jsonw_member_int(w, "used", record ? record->retries : 0);
    is_delayed = record && session->status == SESSION_PENDING
                 && record->next_usec > clock_realtime_usec();
    api_write_time(w, "next_at", is_delayed ? record->next_usec : 0);
    jsonw_object_end(w);
}

static void session_attempts_write_one(const struct run_row *run, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_int(w, "attempt", run->number);
    api_write_time(w, "started_at", run->started_usec);
    api_write_time(w, "ended_at", run->ended_usec);
    jsonw_member_str(w, "reason", run->reason);
    if (run->has_exit)
        jsonw_member_int(w, "exit_code", run->exit_code);
    else
        jsonw_member_null(w, "exit_code");
    jsonw_member_str(w, "agent", run->agent_id);
    jsonw_member_str(w, "text", run->text);
    api_write_raw(w, "used", run->usage);
    jsonw_object_end(w);
}

/* The one that is in the rows of the session and its kernels. False if there is none: it waits. */
static bool session_attempts_find_last(const struct session_row *row, struct run_row *ret)
{
    const struct session *s = &row->session;
    const struct kernel *main = row->kernel_count && row->kernels ? &row->kernels[0].kernel : NULL;
    uint32_t before = s->rerun ? s->rerun->attempts : 0;
    int64_t started = session_started_usec(s);

    if (!main || s->status == SESSION_PENDING || s->status == SESSION_PREEMPTED
        || s->status == SESSION_RESCHEDULING || (!started && s->status == SESSION_CANCELLED))
        return false;
    *ret = (struct run_row){ .number = before + 1,
                             .started_usec = started,
                             .ended_usec = row->terminated_usec,
                             .reason = session_is_terminal(s->status) ? s->reason : NULL,
                             .has_exit = main->has_exit,
                             .exit_code = main->exit_code,
                             .agent_id = main->agent_id };
    return true;
}

void session_attempts_write_summary(const struct core *core, const struct session_row *row,
                                    struct jsonw *w)
{
    const struct session *s = &row->session;
    int64_t until = row->terminated_usec ? row->terminated_usec : clock_realtime_usec();
    struct session_summary summary = {
        .wall_usec = AQ_MAX(until - s->running_usec, INT64_C(0)),
        .was_oom = s->reason && strcmp(s->reason, REASON_OUT_OF_MEMORY) == 0,
    };
    struct run_row last;

    if (s->type != SESSION_BATCH || !session_attempts_find_last(row, &last) || !last.started_usec) {
        if (row->run_count && row->runs[row->run_count - 1].usage)
            jsonw_raw(w, row->runs[row->run_count - 1].usage,
                      strlen(row->runs[row->run_count - 1].usage));
        else
            jsonw_null(w);
        return;
    }
    for (size_t i = 0; i < row->kernel_count; i++) {
        const struct kernel *kernel = &row->kernels[i].kernel;

        if (row->kernels[i].last_stat)
            session_summary_add(&summary, row->kernels[i].last_stat, &kernel->requested);
        else
            session_summary_add_measured(&summary, core_kernel_measured(core, &kernel->id),
                                         &kernel->requested);
    }
    session_summary_write(&summary, w);
}

struct session_suggestion session_attempts_suggest(const struct core *core,
                                                   const struct session_row *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    json_auto_t *summary = NULL;
    const json_t *suggested;

    session_attempts_write_summary(core, row, &w);
    summary = json_load_string(text.data, 0);
    suggested = json_object_get(summary, "suggested");
    return (struct session_suggestion){
        .cpu = json_integer_value(json_object_get(suggested, "cpu")),
        .mem_bytes = json_integer_value(json_object_get(suggested, "mem")),
    };
}

void session_attempts_write(const struct session_row *row, struct jsonw *w)
{
    struct run_row last;

    jsonw_array_begin(w);
    for (size_t i = 0; row->session.type == SESSION_BATCH && i < row->run_count; i++)
        session_attempts_write_one(&row->runs[i], w);
    if (row->session.type == SESSION_BATCH && session_attempts_find_last(row, &last))
        session_attempts_write_one(&last, w);
    jsonw_array_end(w);
}
