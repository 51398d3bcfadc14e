/* SPDX-License-Identifier: Apache-2.0 */
/* migrations.h - what the tests of migration share: who agreed, and what a pass said */
#ifndef AQ_TESTS_UNIT_SCHED_MIGRATIONS_H
#define AQ_TESTS_UNIT_SCHED_MIGRATIONS_H

#include "world.h"

#define UNUSED __attribute__((unused))

#include <errno.h>

static UNUSED struct sched_session *movable(const char *agent_id, const char *request,
                                            int64_t started, int job_priority)
{
    struct sched_session *s = runs(agent_id, request, started, 0);

    s->is_movable = true;
    s->job_priority = job_priority;
    return s;
}

static UNUSED void moving(void)
{
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.preemption.moves = true;
}

/* "b,c": the agents of each of the session's kernels. */
static UNUSED void write_agents(char *to, size_t size, const uint32_t *agents, size_t count)
{
    for (size_t k = 0, len = 0; k < count && len < size; k++)
        len += (size_t)snprintf(to + len, size - len, "%s%s", k ? "," : "",
                                world.agents[agents[k]].id);
}

/* "1>b 3>c": who is moved where, by number. */
static UNUSED const char *migrations_of(size_t n)
{
    static char text[256];
    const struct sched_outcome *o = outcome_of(n);
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; o && o->targets && i < o->victim_count; i++) {
        char agents[64];

        write_agents(agents, sizeof(agents), o->targets[i],
                     world.running_sessions[o->victims[i]].kernel_count);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u>%s", i ? " " : "",
                                o->victims[i] + 1, agents);
    }
    return text;
}

/* ---- a state that is kept ---- */

static UNUSED struct sched *kept;
static UNUSED uint32_t running_handles[RUNNING_MAX], waiting_handles[16];
static UNUSED const struct sched_session *waiting[16];

static UNUSED void wait_as(size_t number, const struct sched_session *session)
{
    waiting[number] = session;
    assert_int_equal(sched_add(kept, session, &waiting_handles[number], NULL), 0);
}

static UNUSED void keep_all(void)
{
    memset(waiting_handles, 0xff, sizeof(waiting_handles));
    kept = sched_new(world.types, &world.snap.options);
    for (size_t i = 0; i < world.snap.agent_count; i++)
        assert_int_equal(sched_set_agent(kept, &world.agents[i], NULL), 0);
    for (size_t i = 0; i < world.snap.running_count; i++)
        assert_int_equal(sched_add_running(kept, &world.running[i], &running_handles[i], NULL), 0);
    for (size_t i = 0; i < world.snap.session_count; i++)
        wait_as(i, &world.sessions[i]);
}

static UNUSED size_t number_of(const uint32_t *handles, uint32_t handle)
{
    size_t number = 0;

    while (handles[number] != handle)
        number++;
    return number;
}

/* "1:moving@b (2>c) 3:moving@b (3) 4:no-room,1100 ": verdicts by number of the session, with who
 * is preempted for it, or the time that it was told.
 */
static UNUSED const char *pass_at(int64_t sec)
{
    static char text[512];
    struct sched_result result;
    size_t len = 0;

    text[0] = '\0';
    sched_pass(kept, sec * USEC_PER_SEC, &world.arena, &result);
    for (size_t i = 0; i < result.count; i++) {
        const struct sched_outcome *o = &result.outcomes[i];
        size_t number = number_of(waiting_handles, o->session);
        char more[64] = "";

        if (o->agents)
            write_agents(more, sizeof(more), o->agents, waiting[number]->kernel_count);
        else if (o->starts_usec)
            (void)snprintf(more, sizeof(more), "%lld", (long long)(o->starts_usec / USEC_PER_SEC));
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%zu:%s%s%s ", number + 1,
                                o->verdict == SCHED_PREEMPTING ? "moving"
                                                               : sched_verdict_name(o->verdict),
                                o->agents ? "@"
                                : *more   ? ","
                                          : "",
                                more);
        for (size_t v = 0; v < o->victim_count; v++) {
            size_t who = number_of(running_handles, o->victims[v]);

            if (o->targets)
                write_agents(more, sizeof(more), o->targets[v],
                             world.running_sessions[who].kernel_count);
            len += (size_t)snprintf(text + len, sizeof(text) - len,
                                    o->targets ? "(%zu>%s) " : "(%zu) ", who + 1, more);
        }
    }
    return text;
}

/* A running one has stopped, and waits again under number 'as'. */
static UNUSED void comes_back(size_t n, size_t as)
{
    sched_drop(kept, running_handles[n]);
    wait_as(as, &world.running_sessions[n]);
}

static UNUSED int reserve(const struct sched_session *session, const char *agent_id)
{
    return sched_reserve(kept, session, &agent_id);
}

#endif
