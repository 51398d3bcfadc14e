/* validate.c - what can speak against a session even where there is room */
#include "sched/pass.h"

/* SCHED_PLACED if it has nothing to say. */
typedef enum sched_verdict (*validator_fn)(const struct pass *pass, const struct sched_session *s,
                                           const struct requirement *reqs, size_t count,
                                           uint32_t *ret_account);

static enum sched_verdict check_start(const struct pass *pass, const struct sched_session *s,
                                      const struct requirement *reqs, size_t count,
                                      uint32_t *ret_account)
{
    (void)reqs;
    (void)count;
    (void)ret_account;
    return s->type == SESSION_BATCH && pass->snap->now_usec < s->starts_usec ? SCHED_TOO_EARLY
                                                                             : SCHED_PLACED;
}

static enum sched_verdict check_dependencies(const struct pass *pass,
                                             const struct sched_session *s,
                                             const struct requirement *reqs, size_t count,
                                             uint32_t *ret_account)
{
    enum sched_verdict verdict = SCHED_PLACED;

    (void)pass;
    (void)reqs;
    (void)count;
    (void)ret_account;
    for (size_t i = 0; i < s->dependency_count; i++) {
        if (!s->dependencies[i].ended)
            verdict = SCHED_DEPENDENCY;
        else if (s->dependencies[i].result != RESULT_SUCCESS)
            return SCHED_DOOMED;
    }
    return verdict;
}

static enum sched_verdict check_concurrency(const struct pass *pass, const struct sched_session *s,
                                            const struct requirement *reqs, size_t count,
                                            uint32_t *ret_account)
{
    (void)reqs;
    (void)count;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        uint32_t account = s->accounts[kind];
        int64_t limit;

        if (account == SCHED_NO_ACCOUNT)
            continue;
        limit = pass->snap->accounts[account].max_sessions;
        if (limit > 0 && pass->sessions[account] >= limit) {
            *ret_account = account;
            return SCHED_CONCURRENCY;
        }
    }
    return SCHED_PLACED;
}

int64_t account_limit(const struct pass *pass, uint32_t account, size_t column)
{
    const struct sched_account *a = &pass->snap->accounts[account];

    for (size_t i = 0; a->limits && i < a->limits->count; i++)
        if (a->limits->items[i].name == pass->names[column])
            return a->limits->items[i].amount;
    return a->missing_is_zero ? 0 : AMOUNT_INFINITE;
}

/* Would 'reqs' go over a limit of the account? Only slots that are wanted count. */
static bool is_over(const struct pass *pass, uint32_t account, const struct requirement *reqs,
                    size_t count)
{
    for (size_t c = 0; c < pass->columns; c++) {
        int64_t total = 0;

        for (size_t i = 0; i < count; i++)
            if (__builtin_add_overflow(total, reqs[i].amounts[c], &total))
                return true;
        if (total > 0) {
            int64_t limit = account_limit(pass, account, c);

            if (limit != AMOUNT_INFINITE &&
                (total > limit || pass->used[account * pass->columns + c] > limit - total))
                return true;
        }
    }
    return false;
}

static enum sched_verdict check_quota(const struct pass *pass, const struct sched_session *s,
                                      const struct requirement *reqs, size_t count,
                                      uint32_t *ret_account)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++)
        if (s->accounts[kind] != SCHED_NO_ACCOUNT &&
            is_over(pass, s->accounts[kind], reqs, count)) {
            *ret_account = s->accounts[kind];
            return SCHED_QUOTA;
        }
    return SCHED_PLACED;
}

static const validator_fn validators[] = { check_start, check_dependencies, check_concurrency,
    check_quota };

enum sched_verdict pass_validate(const struct pass *pass, const struct sched_session *s,
                                 const struct requirement *reqs, size_t count,
                                 uint32_t *ret_account)
{
    *ret_account = SCHED_NO_ACCOUNT;
    for (size_t i = 0; i < AQ_COUNT(validators); i++) {
        enum sched_verdict verdict = validators[i](pass, s, reqs, count, ret_account);

        if (verdict != SCHED_PLACED)
            return verdict;
    }
    return SCHED_PLACED;
}
