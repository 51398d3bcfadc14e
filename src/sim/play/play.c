/* SPDX-License-Identifier: Apache-2.0 */
/* A run from its beginning to its report: load and faults, then calm until everything has ended. */
#include "sim/play/play.h"

#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

#define MINUTE (60 * USEC_PER_SEC)
#define BEGIN_USEC (2 * MINUTE) /* all agents are known then */
#define CALM_USEC (20 * MINUTE) /* after the last fault all has been tried again that had failed */
#define END_HOURS_MAX 12        /* the longest programs, one after another, take less */

static volatile sig_atomic_t play_is_interrupted;

void play_interrupt(void)
{
    play_is_interrupted = 1;
}

static void play_on_turn(void *data)
{
    play_check_turn(data);
    if (play_is_interrupted)
        simuv_stop();
}

/* False once an invariant is broken, or the run is interrupted. */
static bool play_run_for(struct play *play, int64_t usec)
{
    int64_t end = simuv_now_usec() + usec;

    while (!play->report.broken && !play_is_interrupted && simuv_now_usec() < end) {
        simuv_run_until(AQ_MIN(end, simuv_now_usec() + MINUTE), play_on_turn, play);
        if (!play->report.broken)
            play_check_sweep(play);
    }
    return !play->report.broken && !play_is_interrupted;
}

/* Until users have all that they asked for. */
static bool play_run_to_end(struct play *play)
{
    int64_t limit = simuv_now_usec() + INT64_C(3600) * END_HOURS_MAX * USEC_PER_SEC;

    while (!list_is_empty(&play->sessions.live) || play->workload.unanswered > 0
           || play->faults.active > 0) {
        const struct play_session *first;

        if (!play_run_for(play, MINUTE))
            return false;
        if (simuv_now_usec() < limit)
            continue;
        first = LIST_ENTRY(play->sessions.live.next, struct play_session, live_link);
        play_break(play, "progress", "%s has not ended %d hours after the last request",
                   list_is_empty(&play->sessions.live) ? "a request" : first->name, END_HOURS_MAX);
    }
    return !play->report.broken;
}

bool play_run(const struct play_options *options, bool json, struct strbuf *out)
{
    struct play play = { .options = *options, .report.text = STRBUF_INIT };
    bool is_well;

    simuv_begin(options->seed);
    play_sessions_begin(&play.sessions);
    play_cluster_begin(&play);
    play_check_begin(&play);
    is_well = play_run_for(&play, BEGIN_USEC);
    play_workload_begin(&play);
    play_faults_begin(&play);
    is_well = is_well && play_run_for(&play, (int64_t)(options->hours * 3600 * USEC_PER_SEC));
    play_faults_stop(&play);
    play_workload_stop(&play);
    if (is_well && play_run_to_end(&play) && play_run_for(&play, CALM_USEC)) {
        play_check_end(&play);
        is_well = play_run_for(&play, MINUTE);
    }
    if (play_is_interrupted)
        log_info("interrupted");
    else if (json)
        play_report_json(&play, out);
    else
        play_report_text(&play, out);
    is_well = !play.report.broken && !play_is_interrupted;
    play_cluster_end(&play);
    simuv_end();
    return is_well;
}
