#include <errno.h>

#include "sched/pass.h"

static const char *const verdict_names[] = {
    [SCHED_PLACED] = "placed",
    [SCHED_NO_ROOM] = "no-room",
    [SCHED_NO_AGENT] = "no-agent",
    [SCHED_TOO_EARLY] = "too-early",
    [SCHED_DEPENDENCY] = "dependency",
    [SCHED_DOOMED] = "dependency-failed",
    [SCHED_CONCURRENCY] = "concurrency",
    [SCHED_QUOTA] = "quota",
    [SCHED_BEHIND] = "behind",
};

const char *sched_verdict_name(enum sched_verdict verdict)
{
    return verdict_names[verdict];
}

/* Place all requirements or none. */
static int place(struct pass *pass, const struct sched_session *s, const struct requirement *reqs,
                 size_t count, struct sched_outcome *out)
{
    uint32_t *agents = arena_array(pass->arena, s->kernel_count, sizeof(*agents));
    size_t done, seen = 0;
    int r = 0;

    if (!agents)
        return -ENOMEM;
    for (done = 0; done < count; done++) {
        if ((r = pass_select(pass, s, &reqs[done], &agents[done], &seen)) < 0 ||
            agents[done] == UINT32_MAX)
            break;
        pass_hold(pass, agents[done], &reqs[done], 1);
    }
    if (done < count) {
        while (done > 0) {
            done--;
            pass_hold(pass, agents[done], &reqs[done], -1);
        }
        out->verdict = seen ? SCHED_NO_ROOM : SCHED_NO_AGENT;
        return r;
    }
    for (size_t k = count; k < s->kernel_count; k++)
        agents[k] = agents[0]; /* single node */
    pass_charge(pass, s, reqs, count);
    out->agents = agents;
    return 0;
}

static int look(struct pass *pass, uint32_t index, struct sched_outcome *out)
{
    const struct sched_session *s = &pass->snap->sessions[index];
    struct requirement *reqs;
    size_t count;
    int r = pass_require(pass, s, &reqs, &count);

    if (r < 0)
        return r;
    *out = (struct sched_outcome){ .session = index };
    out->verdict = pass_validate(pass, s, reqs, count, &out->account);
    return out->verdict == SCHED_PLACED ? place(pass, s, reqs, count, out) : 0;
}

static size_t count_band(const struct sched_snapshot *snap, size_t from)
{
    size_t to = from;

    while (to < snap->session_count && snap->sessions[to].priority == snap->sessions[from].priority)
        to++;
    return to - from;
}

int sched_run(const struct sched_snapshot *snap, struct arena *arena, struct sched_result *ret,
              struct aq_error *err)
{
    struct pass pass;
    struct sched_result result = { .outcomes = arena_array(arena, snap->session_count,
                                                           sizeof(*result.outcomes)) };
    uint32_t *indexes = arena_array(arena, snap->session_count, sizeof(*indexes));

    if (!result.outcomes || !indexes || pass_init(&pass, snap, arena) < 0)
        return aq_fail(err, ENOMEM, "a scheduling pass");
    for (size_t i = 0; i < snap->session_count; i++)
        indexes[i] = (uint32_t)i;
    for (size_t from = 0, count; from < snap->session_count; from += count) {
        count = count_band(snap, from);
        snap->sequencer->order(snap, &indexes[from], count);
        for (size_t i = from; i < from + count; i++) {
            struct sched_outcome *out = &result.outcomes[result.count];

            if (look(&pass, indexes[i], out) < 0)
                return aq_fail(err, ENOMEM, "a scheduling pass");
            result.count++;
            if (out->verdict == SCHED_NO_ROOM && !snap->sequencer->may_pass(snap, indexes[i])) {
                result.is_blocked = true;
                *ret = result;
                return 0;
            }
        }
    }
    *ret = result;
    return 0;
}
