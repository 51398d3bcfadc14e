/* SPDX-License-Identifier: Apache-2.0 */
/* What a run says: while it is traced, when an invariant breaks, and at its end. */
#include "sim/play/play_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "sim/play/play.h"

#define TIME_MAX 32
#define BEGIN_USEC (3600 * USEC_PER_SEC) /* simuv's first moment */

/* "02:13:44.123" since the beginning of the run. */
static char *report_time(int64_t usec, char buf[TIME_MAX])
{
    int64_t msec = (usec - BEGIN_USEC) / USEC_PER_MSEC;

    (void)snprintf(buf, TIME_MAX, "%02d:%02d:%02d.%03d", (int)(msec / 3600000),
                   (int)(msec / 60000 % 60), (int)(msec / 1000 % 60), (int)(msec % 1000));
    return buf;
}

void play_break(struct play *play, const char *invariant, const char *fmt, ...)
{
    struct play_report *r = &play->report;
    va_list args;

    if (r->broken)
        return;
    r->broken = invariant;
    r->broken_usec = simuv_now_usec();
    va_start(args, fmt);
    strbuf_vaddf(&r->text, fmt, args);
    va_end(args);
    play_trace(play, "broken: %s: %s", invariant, r->text.data);
    simuv_stop();
}

void play_trace(const struct play *play, const char *fmt, ...)
{
    char time[TIME_MAX];
    va_list args;

    if (!play->options.trace)
        return;
    (void)fprintf(stderr, "%s ", report_time(simuv_now_usec(), time));
    va_start(args, fmt);
    (void)vfprintf(stderr, fmt, args);
    va_end(args);
    (void)fputc('\n', stderr);
}

static void report_write_faults(const struct play_options *o, struct strbuf *out)
{
    const char *between = "";

    if (!o->faults)
        strbuf_addf(out, "none");
    else if (o->faults == (1u << PLAY_FAULT_COUNT) - 1)
        strbuf_addf(out, "%s", o->fault_scale > 1 ? "many" : "some");
    else
        for (int i = 0; i < PLAY_FAULT_COUNT; i++)
            if (o->faults & 1u << i) {
                strbuf_addf(out, "%s%s", between, play_fault_names[i]);
                between = ",";
            }
}

/* The command that runs it again. */
static void report_write_command(const struct play_options *o, struct strbuf *out)
{
    strbuf_addf(out,
                "aliquot sim --play %" PRIu64
                " --agents %d --gpus %d --hours %g --sessions %g --faults ",
                o->seed, o->agents, o->gpus, o->hours, o->sessions_per_hour);
    report_write_faults(o, out);
}

void play_report_text(const struct play *play, struct strbuf *out)
{
    const struct play_report *r = &play->report;
    const struct play_options *o = &play->options;
    char time[TIME_MAX];

    strbuf_addf(out, "seed %" PRIu64 ": %d agents, %g hours, faults: ", o->seed, o->agents,
                o->hours);
    report_write_faults(o, out);
    strbuf_addf(out,
                "\n  sessions  %" PRId64 " made: %" PRId64 " succeeded, %" PRId64
                " failed, %" PRId64 " ended by users, %" PRId64 " cancelled, %" PRId64 " in error\n"
                "  requests  %" PRId64 ", %" PRId64 " of them sent again\n"
                "  programs  %" PRId64 " started\n",
                r->made, r->succeeded, r->failed, r->ended, r->cancelled, r->errors, r->requests,
                r->sent_again, r->programs);
    strbuf_addf(out,
                "  crashes   %" PRId64 " of the manager, %" PRId64 " of agents, %" PRId64
                " of machines\n"
                "  networks  %" PRId64 " cut, %" PRId64 " slow; %" PRId64
                " faults of the disk, %" PRId64 " jumps of clocks\n"
                "  checks    %" PRId64 " turns, %" PRId64 " sweeps, %" PRId64 " audits\n"
                "  events    %016" PRIx64 "\n",
                r->manager_crashes, r->agent_crashes, r->machine_crashes, r->partitions, r->stalls,
                r->disk_faults, r->clock_jumps, r->turns, r->sweeps, r->audits, simuv_hash());
    if (!r->broken) {
        strbuf_addf(out, "  no invariant was broken\n");
        return;
    }
    strbuf_addf(out, "  broken at %s: %s: %s\n  again: ", report_time(r->broken_usec, time),
                r->broken, r->text.data);
    report_write_command(o, out);
    strbuf_addf(out, " --trace\n");
}

void play_report_json(const struct play *play, struct strbuf *out)
{
    const struct play_report *r = &play->report;
    const struct play_options *o = &play->options;
    AQ_CLEANUP(strbuf_donep) struct strbuf command = STRBUF_INIT;
    struct jsonw w = jsonw_make(out);
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        { "sessions", r->made },
        { "succeeded", r->succeeded },
        { "failed", r->failed },
        { "ended", r->ended },
        { "cancelled", r->cancelled },
        { "errors", r->errors },
        { "requests", r->requests },
        { "sent_again", r->sent_again },
        { "programs", r->programs },
        { "manager_crashes", r->manager_crashes },
        { "agent_crashes", r->agent_crashes },
        { "machine_crashes", r->machine_crashes },
        { "partitions", r->partitions },
        { "stalls", r->stalls },
        { "disk_faults", r->disk_faults },
        { "clock_jumps", r->clock_jumps },
        { "turns", r->turns },
        { "sweeps", r->sweeps },
        { "audits", r->audits },
    };
    char text[32];

    report_write_command(o, &command);
    jsonw_object_begin(&w);
    (void)snprintf(text, sizeof(text), "%" PRIu64, o->seed);
    jsonw_member_str(&w, "seed", text);
    jsonw_member_str(&w, "command", command.data);
    for (size_t i = 0; i < AQ_COUNT(figures); i++)
        jsonw_member_int(&w, figures[i].name, figures[i].value);
    (void)snprintf(text, sizeof(text), "%016" PRIx64, simuv_hash());
    jsonw_member_str(&w, "events", text);
    jsonw_member_str(&w, "broken", r->broken);
    jsonw_member_str(&w, "broken_text", r->broken ? r->text.data : NULL);
    jsonw_object_end(&w);
}
