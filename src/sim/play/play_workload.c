/* SPDX-License-Identifier: Apache-2.0 */
/* Users of a run: which sessions they request, and what they do with them. */
#include "sim/play/play_workload.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/slot.h"
#include "sim/play/play.h"
#include "sim/play/play_request.h"

#define ARRAY_ELEMENTS_MAX 8
#define RUN_SECONDS 120    /* of programs, on average */
#define DRAIN_SECONDS 1800 /* between two */

static const char *const workload_keys[] = { "AKIANABBDUSEREXAMPLE", "AKIAIOSFODNN7EXAMPLE" };

int64_t play_random_usec(double mean_seconds)
{
    double u = (double)(1 + simuv_random_below(1u << 30)) / (double)(1u << 30);

    return 1 + (int64_t)(-log(u) * mean_seconds * USEC_PER_SEC);
}

static void workload_ask(struct play *play, enum play_request_kind kind, struct play_session *s,
                         double mean_seconds)
{
    play_request(play, kind, &(struct play_target){ .session = s }, play_random_usec(mean_seconds));
}

void play_workload_plan(struct play *play, struct play_session *s)
{
    uint64_t dice = simuv_random_below(100);
    struct play_target on = { .session = s };

    if (s->program.run_usec < 0 && s->elements == 0)
        workload_ask(play, dice < 15 ? PLAY_FORCE : PLAY_TERMINATE, s, 600);
    else if (dice < 12)
        workload_ask(play, dice < 4 ? PLAY_FORCE : PLAY_TERMINATE, s, 150);
    dice = simuv_random_below(100);
    if (s->elements)
        return;
    if (dice < 12)
        workload_ask(play, PLAY_RESTART, s, 120);
    if (dice >= 12 && dice < 22) {
        on.name = aq_format("%s-b", s->name);
        (void)map_sets(&play->sessions.by_name, on.name, s);
        play_request(play, PLAY_RENAME, &on, play_random_usec(100));
    }
    if (dice >= 22 && dice < 35) {
        on.priority = (int)simuv_random_below(21);
        play_request(play, PLAY_PRIORITY, &on, play_random_usec(30));
    }
}

/* ---- arrivals ---- */

static void workload_choose_program(struct play_session *s)
{
    struct play_command *program = &s->program;
    uint64_t dice = simuv_random_below(100);

    program->run_usec = (1 + play_random_usec(RUN_SECONDS) / USEC_PER_SEC) * USEC_PER_SEC;
    program->code = dice < 10 ? 3 : 0;
    program->is_oom = dice >= 10 && dice < 13;
    program->fails = dice >= 13 && dice < 15;
    program->is_stubborn = dice >= 15 && dice < 20;
    s->command = aq_format("/play run=%" PRId64 " code=%d start=%d%s%s%s",
                           program->run_usec / USEC_PER_SEC, program->code,
                           (int)simuv_random_below(3000), program->is_oom ? " oom" : "",
                           program->fails ? " fails" : "", program->is_stubborn ? " stubborn" : "");
}

/* What becomes of it when its program, its agent or its place is gone. */
static void workload_choose_fate(const struct play *play, struct play_session *s)
{
    static const char *const on_node_loss[] = { NULL, NULL, "end", "restart-all",
                                                "restart-kernel" };

    s->is_preemptible = simuv_chance(0.3);
    s->may_preempt = !s->is_preemptible && simuv_chance(0.2);
    s->on_node_loss = on_node_loss[simuv_random_below(AQ_COUNT(on_node_loss))];
    if (s->kernels > 2 && simuv_chance(0.5))
        s->least_kernels = s->kernels - 1;
    if (s->type != SESSION_BATCH)
        return;
    if (simuv_chance(0.4))
        s->retries = 1 + (int)simuv_random_below(3);
    if (simuv_chance(0.05))
        s->start_usec = simuv_get_wall_usec(play->cluster.manager_host) + play_random_usec(600);
}

/* A session that was requested a short time ago, to wait for. */
static struct play_session *workload_choose_needed(const struct play *play, const char *access_key)
{
    size_t back = 1 + (size_t)simuv_random_below(10);
    struct play_session *s;

    if (play->sessions.count <= back)
        return NULL;
    s = play->sessions.all[play->sessions.count - 1 - back];
    return s->is_acknowledged && !s->is_final && !s->elements && s->type == SESSION_BATCH
                   && s->access_key == access_key && !s->asked_name
               ? s
               : NULL;
}

static void workload_request_one(struct play *play, struct play_session *needs)
{
    uint64_t dice = simuv_random_below(100);
    struct play_session *s;

    s = play_sessions_add(&play->sessions, aq_format("s%d", ++play->workload.names));
    s->access_key = needs ? needs->access_key
                          : workload_keys[simuv_random_below(AQ_COUNT(workload_keys))];
    s->type = dice < 15 ? SESSION_INTERACTIVE : SESSION_BATCH;
    s->program.run_usec = -1;
    if (dice >= 80) /* two on an agent always fit */
        s->kernels = AQ_MIN(2 + (int)simuv_random_below(3), 2 * play->options.agents);
    else
        s->kernels = 1;
    s->cpus = 1 + (int64_t)simuv_random_below(s->kernels > 1 ? 4 : 8);
    if (play->options.gpus && simuv_chance(0.5))
        s->shares = AMOUNT_ONE / 4
                    * (int64_t)(1
                                + simuv_random_below((s->kernels > 1 ? 2u : 4u)
                                                     * (unsigned)play->options.gpus));
    if (s->type == SESSION_BATCH)
        workload_choose_program(s);
    workload_choose_fate(play, s);
    if (needs)
        s->needs = needs;
    else if (dice >= 15 && dice < 20)
        s->elements = simuv_chance(0.5) ? 4 : ARRAY_ELEMENTS_MAX;
    else if (dice >= 20 && dice < 35)
        s->needs = workload_choose_needed(play, s->access_key);
    play_request(play, PLAY_CREATE, &(struct play_target){ .session = s }, 0);
}

struct workload_successor {
    struct play *play;
    struct play_session *needs;
};

static void workload_on_successor(void *data)
{
    struct workload_successor *successor = data;

    workload_request_one(successor->play, successor->needs);
    free(successor);
}

void play_workload_on_event(struct play *play, struct play_session *s, const char *event)
{
    struct workload_successor *successor;

    if (!s || s->elements || s->type != SESSION_BATCH || !s->is_acknowledged || s->asked_name
        || play->workload.is_over || strcmp(event, "session_success") != 0 || !simuv_chance(0.1))
        return;
    successor = aq_alloc(sizeof(*successor));
    *successor = (struct workload_successor){ play, s };
    simuv_at(simuv_now_usec(), workload_on_successor, successor);
}

static void workload_on_arrival(void *data)
{
    struct play *play = data;

    if (play->workload.is_over)
        return;
    workload_request_one(play, NULL);
    simuv_at(simuv_now_usec() + play_random_usec(3600 / play->options.sessions_per_hour),
             workload_on_arrival, play);
}

/* An administrator drains an agent for some minutes. */
static void workload_on_drain(void *data)
{
    struct play *play = data;
    struct play_target on = {
        .node = &play->cluster.nodes[simuv_random_below((uint64_t)play->cluster.node_count)]
    };
    int64_t lasts = play_random_usec(600);

    if (play->workload.is_over)
        return;
    play_request(play, simuv_chance(0.3) ? PLAY_DRAIN_END : PLAY_DRAIN, &on, 0);
    play_request(play, PLAY_UNDRAIN, &on, lasts);
    simuv_at(simuv_now_usec() + lasts + play_random_usec(DRAIN_SECONDS), workload_on_drain, play);
}

void play_workload_begin(struct play *play)
{
    simuv_at(simuv_now_usec() + play_random_usec(DRAIN_SECONDS), workload_on_drain, play);
    simuv_at(simuv_now_usec() + USEC_PER_SEC, workload_on_arrival, play);
}

void play_workload_stop(struct play *play)
{
    play->workload.is_over = true;
    LIST_FOREACH(link, &play->sessions.live) {
        struct play_session *s = LIST_ENTRY(link, struct play_session, live_link);

        if (s->program.run_usec < 0 && s->is_acknowledged && !s->is_end_asked)
            workload_ask(play, PLAY_TERMINATE, s, 10);
    }
}
