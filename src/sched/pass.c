#include "sched/pass.h"

#include <errno.h>
#include <string.h>

/* Columns are few: a scan over interned pointers beats a hash. */
static size_t find_column(const struct pass *pass, const char *name)
{
    for (size_t i = 0; i < pass->columns; i++)
        if (pass->names[i] == name)
            return i;
    return SIZE_MAX;
}

static void fill_row(const struct pass *pass, const struct slots *slots, int64_t absent,
                     int64_t *row)
{
    for (size_t c = 0; c < pass->columns; c++)
        row[c] = absent;
    for (size_t i = 0; i < slots->count; i++) {
        size_t c = find_column(pass, slots->items[i].name);

        if (c != SIZE_MAX)
            row[c] = slots->items[i].amount;
    }
}

static int init_agents(struct pass *pass)
{
    const struct sched_snapshot *snap = pass->snap;

    pass->free = arena_array(pass->arena, snap->agent_count * pass->columns, sizeof(*pass->free));
    pass->kernels = arena_array(pass->arena, snap->agent_count, sizeof(*pass->kernels));
    if (!pass->free || !pass->kernels)
        return -ENOMEM;
    for (size_t a = 0; a < snap->agent_count; a++) {
        int64_t *row = &pass->free[a * pass->columns];

        fill_row(pass, snap->agents[a].free, SCHED_ABSENT, row);
        pass->kernels[a] = snap->agents[a].kernels;
    }
    return 0;
}

static int init_accounts(struct pass *pass)
{
    const struct sched_snapshot *snap = pass->snap;

    pass->used = arena_array(pass->arena, snap->account_count * pass->columns,
                             sizeof(*pass->used));
    pass->sessions = arena_array(pass->arena, snap->account_count, sizeof(*pass->sessions));
    if (!pass->used || !pass->sessions)
        return -ENOMEM;
    for (size_t i = 0; i < snap->account_count; i++) {
        fill_row(pass, snap->accounts[i].used, 0, &pass->used[i * pass->columns]);
        pass->sessions[i] = snap->accounts[i].sessions;
    }
    return 0;
}

int pass_init(struct pass *pass, const struct sched_snapshot *snap, struct arena *arena)
{
    *pass = (struct pass){ .snap = snap, .arena = arena };
    pass->columns = slot_types_count(snap->types);
    pass->names = arena_array(arena, pass->columns, sizeof(*pass->names));
    if (!pass->names)
        return -ENOMEM;
    for (size_t c = 0; c < pass->columns; c++)
        pass->names[c] = slot_types_name(snap->types, c, NULL);
    if (init_agents(pass) < 0 || init_accounts(pass) < 0)
        return -ENOMEM;
    return 0;
}

static void add_kernel(const struct pass *pass, struct requirement *req, const struct slots *slots)
{
    req->kernels++;
    for (size_t i = 0; i < slots->count; i++) {
        size_t c = find_column(pass, slots->items[i].name);

        if (c == SIZE_MAX) {
            if (slots->items[i].amount > 0)
                req->unknown = slots->items[i].name;
            continue;
        }
        req->named[c] = true;
        if (__builtin_add_overflow(req->amounts[c], slots->items[i].amount, &req->amounts[c]))
            req->amounts[c] = AMOUNT_INFINITE;
    }
}

int pass_require(const struct pass *pass, const struct sched_session *s, struct requirement **ret,
                 size_t *ret_count)
{
    size_t count = s->single_node ? 1 : s->kernel_count;
    struct requirement *reqs = arena_array(pass->arena, count, sizeof(*reqs));

    if (!reqs)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        reqs[i].amounts = arena_array(pass->arena, pass->columns, sizeof(*reqs[i].amounts));
        reqs[i].named = arena_array(pass->arena, pass->columns, sizeof(*reqs[i].named));
        if (!reqs[i].amounts || !reqs[i].named)
            return -ENOMEM;
    }
    for (size_t k = 0; k < s->kernel_count; k++)
        add_kernel(pass, &reqs[s->single_node ? 0 : k], s->kernels[k]);
    *ret = reqs;
    *ret_count = count;
    return 0;
}

void pass_hold(struct pass *pass, uint32_t agent, const struct requirement *req, int sign)
{
    int64_t *row = &pass->free[agent * pass->columns];

    for (size_t c = 0; c < pass->columns; c++)
        if (row[c] != SCHED_ABSENT && row[c] != AMOUNT_INFINITE)
            row[c] -= sign * req->amounts[c];
    if (sign > 0)
        pass->kernels[agent] += req->kernels;
    else
        pass->kernels[agent] -= req->kernels;
}

void pass_charge(struct pass *pass, const struct sched_session *s, const struct requirement *reqs,
                 size_t count)
{
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        uint32_t account = s->accounts[kind];

        if (account == SCHED_NO_ACCOUNT)
            continue;
        pass->sessions[account]++;
        for (size_t i = 0; i < count; i++)
            for (size_t c = 0; c < pass->columns; c++)
                pass->used[account * pass->columns + c] += reqs[i].amounts[c];
    }
}
