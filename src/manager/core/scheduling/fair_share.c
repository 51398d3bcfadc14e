/* SPDX-License-Identifier: Apache-2.0 */
/* fair_share.c - see fair_share.h */
#include "manager/core/scheduling/fair_share.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "manager/core/scheduling/fair_share_settings.h"
#include "sched/fair.h"
#include "store/query.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define REFRESH_USEC (60 * USEC_PER_SEC)
#define AUDIT_DAYS 7
#define FAIR_SLOTS_MAX 64

/* ---- a group's usage ---- */

struct fair_share {
    int64_t since_usec; /* wall: 'past' ends and 'recent' begins */
    struct map past, recent;
    bool is_ready;
    int64_t told_usec;                  /* monotonic; 0 = never */
    struct usage_ledger_holder *owners; /* by number of the group's scheduler; names are ours */
    size_t owner_count, owner_cap, owners_told;
};

void fair_share_free(struct fair_share *u)
{
    if (!u)
        return;
    usage_ledger_done(&u->past);
    usage_ledger_done(&u->recent);
    for (size_t i = 0; i < u->owner_count; i++)
        free((char *)(uintptr_t)u->owners[i].domain);
    free(u->owners);
    free(u);
}

static struct usage_ledger_holder fair_share_holder_of(const struct session_entry *l)
{
    return (struct usage_ledger_holder){ l->resource_group->g.name, l->s.domain ? l->s.domain : "",
                                         l->s.project_id, l->s.user_id };
}

static struct usage_ledger_holder fair_share_holder_of_row(const struct store_usage *row)
{
    return (struct usage_ledger_holder){ row->resource_group, row->domain ? row->domain : "",
                                         row->project, row->user };
}

static void fair_share_add_kernel(struct map *ledger, const struct session_entry *l, size_t rank,
                                  int64_t from_usec, int64_t until_usec)
{
    const struct slots *held = &l->s.kernels[rank].requested;
    struct usage_ledger_holder h = fair_share_holder_of(l);

    for (size_t i = 0; i < held->count; i++)
        if (held->items[i].amount > 0)
            usage_ledger_add(ledger, &h, false, held->items[i].name, held->items[i].amount,
                             from_usec, until_usec);
}

void fair_share_add(struct session_entry *l, size_t rank, int64_t from_usec, int64_t until_usec)
{
    struct fair_share *u = l->resource_group->fair_share;

    if (u)
        fair_share_add_kernel(&u->recent, l, rank, AQ_MAX(from_usec, u->since_usec), until_usec);
}

void fair_share_rename_domain(struct resource_group_entry *g, const char *from, const char *to)
{
    struct fair_share *u = g->fair_share;

    if (!u)
        return;
    usage_ledger_rename_domain(&u->past, from, to);
    usage_ledger_rename_domain(&u->recent, from, to);
}

/* What runs, as if it ended now. */
static void fair_share_add_running(struct core *core, struct resource_group_entry *g,
                                   int64_t now_usec, struct map *ledger)
{
    LIST_FOREACH(link, &core->sessions) {
        const struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        for (size_t k = 0; l->resource_group == g && l->is_in_usage && k < l->s.kernel_count; k++)
            if (!list_is_empty(&l->kernels[k].agent_link))
                fair_share_add_kernel(ledger, l, k,
                                      AQ_MAX(l->kernels[k].held_usec, g->fair_share->since_usec),
                                      now_usec);
    }
}

/* ---- the past ---- */

struct reading {
    struct core *core;
    char *group;
    int64_t until_usec;
    struct map ledger;
};

static int fair_share_take_past(void *data, const struct store_usage *row)
{
    struct reading *r = data;
    struct usage_ledger_holder h = fair_share_holder_of_row(row);
    int64_t until = row->until_usec ? AQ_MIN(row->until_usec, r->until_usec) : r->until_usec;
    int64_t from = AQ_MAX(row->from_usec,
                          r->until_usec - FAIR_LOOKBACK_MAX_DAYS * USAGE_LEDGER_DAY_USEC);

    if (row->resource_group && strcmp(row->resource_group, r->group) == 0)
        usage_ledger_add(&r->ledger, &h, false, row->slot, row->amount, from, until);
    return 0;
}

static int fair_share_read_past(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct reading *r = data;

    return store_read_usage(tx, r->until_usec - FAIR_LOOKBACK_MAX_DAYS * USAGE_LEDGER_DAY_USEC,
                            fair_share_take_past, r, err);
}

static void fair_share_on_past(void *data, int result, const struct aq_error *err)
{
    struct reading *r = data;
    struct resource_group_entry *g = resource_group_entry_find(r->core, r->group);

    if (result < 0)
        log_warning("what was used of resource group '%s' cannot be read: %s", r->group, err->text);
    if (g && g->fair_share && !g->fair_share->is_ready
        && g->fair_share->since_usec == r->until_usec) {
        g->fair_share->past = r->ledger;
        r->ledger = (struct map)MAP_INIT;
        g->fair_share->is_ready = true;
        sched_sync_invalidate(g); /* its owners are named from now on */
        queue_capacity_freed(r->core, g);
    }
    usage_ledger_done(&r->ledger);
    free(r->group);
    free(r);
}

static void fair_share_begin(struct core *core, struct resource_group_entry *g)
{
    struct reading *r = aq_alloc(sizeof(*r));

    g->fair_share = aq_alloc(sizeof(*g->fair_share));
    r->group = aq_strdup(g->g.name);
    g->fair_share->since_usec = r->until_usec = clock_realtime_usec();
    r->core = core;
    /* behind every commit that was queued before: nothing is counted twice, or not at all */
    store_write(core->store, fair_share_read_past, fair_share_on_past, r);
}

bool fair_share_is_ready(struct core *core, struct resource_group_entry *g)
{
    if (g->scheduling.options.sequencer != &sched_fair_share) {
        fair_share_free(AQ_TAKE(g->fair_share));
        return true;
    }
    if (!g->fair_share)
        fair_share_begin(core, g);
    return g->fair_share->is_ready;
}

/* ---- factors ---- */

struct fair_share_weighing {
    struct fair_share_settings settings;
    struct map running;
    struct slots capacity;
    int64_t today;
    const struct fair_share *usage;
    struct core_fair_slot used[FAIR_SLOTS_MAX]; /* by whom was weighed last */
};

/* -EOVERFLOW: its agents offer more than can be counted. */
static int fair_share_weighing_begin(struct core *core, struct resource_group_entry *g,
                                     struct fair_share_weighing *j)
{
    int64_t now = clock_realtime_usec();
    int r = 0;

    *j = (struct fair_share_weighing){ .usage = g->fair_share,
                                       .today = now / USAGE_LEDGER_DAY_USEC };
    j->settings = fair_share_settings_read(&g->g);
    fair_share_add_running(core, g, now, &j->running);
    for (size_t i = 0; r == 0 && i < core->agent_count; i++) {
        const struct agent *a = &core->agents_sorted[i]->a;

        if (a->resource_group && strcmp(a->resource_group, g->g.name) == 0)
            r = slots_add(&j->capacity, &a->available);
    }
    return r;
}

static void fair_share_weighing_done(struct fair_share_weighing *j)
{
    fair_share_settings_done(&j->settings);
    usage_ledger_done(&j->running);
    slots_done(&j->capacity);
}

/* Of one slot, over the books. */
static double fair_share_decayed(const struct fair_share_weighing *j,
                                 const struct usage_ledger_line *const *lines, const char *slot)
{
    struct fair_day days[2 * FAIR_LOOKBACK_MAX_DAYS];
    size_t count = 0;

    for (int b = 0; b < 3; b++)
        for (size_t i = 0; lines[b] && i < lines[b]->count; i++) {
            const struct usage_ledger_cell *c = &lines[b]->cells[i];
            int64_t ago = j->today - c->day;

            if (c->slot == slot && (double)ago < j->settings.lookback_days
                && count < AQ_COUNT(days))
                days[count++] = (struct fair_day){ (int)AQ_MAX(ago, 0), c->amount_sec };
        }
    return fair_decayed(days, count, j->settings.half_life_days);
}

/* The factor of a line, and the usage that it follows from, into its row. */
static void fair_share_weigh(struct fair_share_weighing *j, struct core_fair_row *row)
{
    const struct usage_ledger_holder h = { NULL, row->domain, row->project, row->user };
    char key[USAGE_LEDGER_KEY_MAX];
    size_t len = usage_ledger_key(&h, row->level, false, key), count = 0;
    const struct usage_ledger_line *lines[3] = { map_get(&j->usage->past, key, len),
                                                 map_get(&j->usage->recent, key, len),
                                                 map_get(&j->running, key, len) };
    struct fair_slot slots[FAIR_SLOTS_MAX];

    for (; count < j->capacity.count && count < FAIR_SLOTS_MAX; count++) {
        const struct slot *s = &j->capacity.items[count];

        j->used[count] = (struct core_fair_slot){ s->name, fair_share_decayed(j, lines, s->name) };
        slots[count] = (struct fair_slot){ j->used[count].used, (double)s->amount,
                                           fair_share_settings_slot_weight(&j->settings, s->name) };
    }
    row->slots = j->used;
    row->slot_count = count;
    row->weight = fair_share_settings_weight(&j->settings, row->level, &h);
    row->usage = fair_usage(slots, count, j->settings.lookback_days);
    row->factor = fair_factor(row->usage, row->weight);
}

void fair_share_name_owner(struct resource_group_entry *g, uint32_t number,
                           const struct session_entry *l)
{
    struct fair_share *u = g->fair_share;
    struct usage_ledger_holder h = fair_share_holder_of(l);

    if (!u)
        return;
    while (number < u->owner_count) { /* the scheduler was rebuilt */
        free((char *)(uintptr_t)u->owners[--u->owner_count].domain);
        u->owners_told = 0;
    }
    vec_grow(&u->owners, &u->owner_cap, u->owner_count + 1, sizeof(*u->owners));
    h.domain = aq_strdup(h.domain);
    u->owners[u->owner_count++] = h;
}

int fair_share_push(struct core *core, struct resource_group_entry *g)
{
    struct fair_share *u = g->fair_share;
    int64_t now = clock_monotonic_usec();
    struct fair_share_weighing j;
    int r;

    if (!u
        || (u->told_usec && u->owners_told == u->owner_count && now - u->told_usec < REFRESH_USEC))
        return 0;
    r = fair_share_weighing_begin(core, g, &j);
    for (size_t i = 0; r == 0 && i < u->owner_count; i++) {
        const struct usage_ledger_holder *owner = &u->owners[i];
        struct core_fair_row rows[CORE_FAIR_LEVELS];

        for (int level = 0; level < CORE_FAIR_LEVELS; level++) {
            rows[level] = (struct core_fair_row){ .level = (enum core_fair_level)level,
                                                  .domain = owner->domain,
                                                  .project = owner->project,
                                                  .user = owner->user };
            fair_share_weigh(&j, &rows[level]);
        }
        sched_set_factors(g->sched, (uint32_t)i, rows[CORE_FAIR_DOMAIN].factor,
                          rows[CORE_FAIR_PROJECT].factor, rows[CORE_FAIR_USER].factor);
    }
    fair_share_weighing_done(&j);
    u->told_usec = now;
    u->owners_told = u->owner_count;
    return r;
}

/* ---- shown ---- */

struct fair_share_listing {
    struct core *core;
    struct fair_share_weighing *j;
    struct map seen;
    core_fair_fn visit;
    void *data;
};

static void fair_share_list_one(struct fair_share_listing *l, const struct core_fair_row *whom)
{
    struct usage_ledger_holder h = { NULL, whom->domain, whom->project, whom->user };
    struct core_fair_row row = *whom;
    char key[USAGE_LEDGER_KEY_MAX];
    size_t len = usage_ledger_key(&h, row.level, false, key);

    if (map_get(&l->seen, key, len))
        return;
    map_set(&l->seen, key, len, l);
    fair_share_weigh(l->j, &row);
    l->visit(l->data, &row);
}

static void fair_share_list_ledger(struct fair_share_listing *l, const struct map *ledger)
{
    for (size_t i = 0; i < ledger->count; i++) {
        const struct usage_ledger_line *line = ledger->entries[i].value;

        fair_share_list_one(l, &(const struct core_fair_row){ .level = line->level,
                                                              .domain = line->domain,
                                                              .project = line->project,
                                                              .user = line->user });
    }
}

/* Of those that there still are. */
static void fair_share_list_weighted(void *data, const struct core_fair_row *whom)
{
    struct fair_share_listing *l = data;
    struct core_fair_row row = *whom;
    const struct project *project = core_find_project(l->core, &whom->project);

    if (row.level != CORE_FAIR_DOMAIN)
        row.domain = project ? project->domain : NULL;
    if (row.domain && core_find_domain(l->core, row.domain)
        && (row.level != CORE_FAIR_USER || core_find_user(l->core, &row.user)))
        fair_share_list_one(l, &row);
}

static struct resource_group_entry *fair_share_find(struct core *core, const char *name,
                                                    struct aq_error *err)
{
    struct resource_group_entry *g = resource_group_entry_find(core, name);

    if (!g || !g->is_known)
        aq_fail(err, ENOENT, "there is no resource group '%s'", name);
    else if (g->scheduling.options.sequencer != &sched_fair_share)
        aq_fail_field(err, EINVAL, "scheduler",
                      "resource group '%s' does not schedule by "
                      "fair share; set its scheduler to fair-share",
                      name);
    else
        return g;
    return NULL;
}

int core_check_fair_share(struct core *core, const char *name, struct aq_error *err)
{
    return fair_share_find(core, name, err) ? 0 : -err->code;
}

/* A group whose use is known; 'ret' is to be done with then. */
static int fair_share_open(struct core *core, const char *name, struct resource_group_entry **ret_g,
                           struct fair_share_weighing *ret, struct aq_error *err)
{
    struct resource_group_entry *g = fair_share_find(core, name, err);

    if (!g)
        return -err->code;
    if (!fair_share_is_ready(core, g))
        return aq_fail(err, EAGAIN, "what was used of '%s' is still being read; ask again", name);
    *ret_g = g;
    if (fair_share_weighing_begin(core, g, ret) == 0)
        return 0;
    fair_share_weighing_done(ret);
    return aq_fail(err, EOVERFLOW,
                   "the agents of resource group '%s' offer more than can be counted", name);
}

int core_list_fair_share(struct core *core, const char *name, core_fair_fn visit, void *data,
                         struct aq_error *err)
{
    struct fair_share_weighing j;
    struct fair_share_listing l = { .core = core, .j = &j, .visit = visit, .data = data };
    struct resource_group_entry *g;
    int r = fair_share_open(core, name, &g, &j, err);

    if (r < 0)
        return r;
    fair_share_list_ledger(&l, &j.running);
    fair_share_list_ledger(&l, &g->fair_share->recent);
    fair_share_list_ledger(&l, &g->fair_share->past);
    fair_share_settings_each(&j.settings, fair_share_list_weighted, &l);
    map_done(&l.seen);
    fair_share_weighing_done(&j);
    return 0;
}

int core_show_fair_share(struct core *core, const char *name, const struct core_fair_row *whom,
                         core_fair_fn visit, void *data, struct aq_error *err)
{
    struct core_fair_row row = *whom;
    struct fair_share_weighing j;
    struct resource_group_entry *g;
    int r = fair_share_open(core, name, &g, &j, err);

    if (r < 0)
        return r;
    fair_share_weigh(&j, &row);
    visit(data, &row);
    fair_share_weighing_done(&j);
    return 0;
}

/* ---- audit ---- */

struct fair_share_check {
    int64_t until_usec;
    struct map ledger;
};

static int fair_share_take_check(void *data, const struct store_usage *row)
{
    struct fair_share_check *c = data;
    struct usage_ledger_holder h = fair_share_holder_of_row(row);
    int64_t first_day = c->until_usec / USAGE_LEDGER_DAY_USEC - AUDIT_DAYS;
    int64_t from = AQ_MAX(row->from_usec, first_day * USAGE_LEDGER_DAY_USEC);

    if (row->resource_group)
        usage_ledger_add(&c->ledger, &h, true, row->slot, row->amount, from,
                         row->until_usec ? row->until_usec : c->until_usec);
    return 0;
}

int fair_share_check_read(struct store_tx *tx, int64_t until_usec, struct fair_share_check **ret,
                          struct aq_error *err)
{
    struct fair_share_check *c = aq_alloc(sizeof(*c));
    int r;

    c->until_usec = until_usec;
    r = store_read_usage(tx, until_usec - (AUDIT_DAYS + 1) * USAGE_LEDGER_DAY_USEC,
                         fair_share_take_check, c, err);
    if (r < 0) {
        fair_share_check_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void fair_share_check_free(struct fair_share_check *check)
{
    if (check)
        usage_ledger_done(&check->ledger);
    free(check);
}

/* The undecayed sum since a day, of all slots. */
static double fair_share_total(const struct usage_ledger_line *line, int64_t day)
{
    double sum = 0;

    for (size_t i = 0; line && i < line->count; i++)
        sum += line->cells[i].day >= day ? line->cells[i].amount_sec : 0;
    return sum;
}

static void fair_share_compare_line(const struct fair_share_check *c,
                                    const struct resource_group_entry *g, const struct map *running,
                                    const struct usage_ledger_line *line,
                                    void (*find)(void *data, const char *text), void *data)
{
    struct usage_ledger_holder h = { g->g.name, line->domain, line->project, line->user };
    int64_t day = c->until_usec / USAGE_LEDGER_DAY_USEC - AUDIT_DAYS;
    char key[USAGE_LEDGER_KEY_MAX], text[USAGE_LEDGER_KEY_MAX + 160];
    size_t len = usage_ledger_key(&h, line->level, false, key);
    double has = fair_share_total(map_get(&g->fair_share->past, key, len), day)
                 + fair_share_total(map_get(&g->fair_share->recent, key, len), day)
                 + fair_share_total(map_get(running, key, len), day);
    double wants;

    len = usage_ledger_key(&h, line->level, true, key);
    wants = fair_share_total(map_get(&c->ledger, key, len), day);
    if (fabs(has - wants) <= 1e-6 * fmax(has, wants) + 1)
        return;
    (void)snprintf(text, sizeof(text), "usage %s: %.0f in memory, %.0f by the ledger", key, has,
                   wants);
    find(data, text);
}

void fair_share_check_compare(struct core *core, struct fair_share_check *check,
                              void (*find)(void *data, const char *text), void *data)
{
    for (size_t i = 0; i < core->resource_groups.count; i++) {
        struct resource_group_entry *g = core->resource_groups.entries[i].value;
        struct map running = MAP_INIT;
        const struct map *books[3];

        if (!g->fair_share || !g->fair_share->is_ready)
            continue;
        fair_share_add_running(core, g, check->until_usec, &running);
        books[0] = &running;
        books[1] = &g->fair_share->recent;
        books[2] = &g->fair_share->past;
        for (int b = 0; b < 3; b++)
            for (size_t n = 0; n < books[b]->count; n++)
                fair_share_compare_line(check, g, &running, books[b]->entries[n].value, find, data);
        usage_ledger_done(&running);
    }
}
