/* usage.c - see usage.h */
#include "manager/core/usage.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "manager/core/fair_settings.h"
#include "sched/fair.h"
#include "store/read.h"

#define REFRESH_USEC (60 * USEC_PER_SEC)
#define AUDIT_DAYS 7

/* ---- a group's usage ---- */

struct usage {
    int64_t since_usec;        /* wall: 'past' ends and 'recent' begins */
    struct map past, recent;
    bool is_ready;
    int64_t told_usec;         /* monotonic; 0 = never */
    struct usage_holder *owners;     /* by number of the group's scheduler; names are ours */
    size_t owner_count, owner_cap, owners_told;
};

void usage_free(struct usage *u)
{
    if (!u)
        return;
    usage_book_done(&u->past);
    usage_book_done(&u->recent);
    for (size_t i = 0; i < u->owner_count; i++)
        free((char *)(uintptr_t)u->owners[i].domain);
    free(u->owners);
    free(u);
}

static struct usage_holder holder_of(const struct live *l)
{
    return (struct usage_holder){ l->rgroup->g.name, l->s.domain ? l->s.domain : "", l->s.group_id,
        l->s.user_id };
}

static struct usage_holder holder_of_row(const struct store_usage *row)
{
    return (struct usage_holder){ row->resource_group, row->domain ? row->domain : "",
        row->project, row->user };
}

static int add_kernel(struct map *book, const struct live *l, size_t rank, int64_t from_usec,
                      int64_t until_usec)
{
    const struct slots *held = &l->s.kernels[rank].requested;
    struct usage_holder h = holder_of(l);

    for (size_t i = 0; i < held->count; i++)
        if (held->items[i].amount > 0 &&
            usage_book_add(book, &h, false, held->items[i].name, held->items[i].amount, from_usec,
                           until_usec) < 0)
            return -ENOMEM;
    return 0;
}

void usage_add(struct live *l, size_t rank, int64_t from_usec, int64_t until_usec)
{
    struct usage *u = l->rgroup->usage;

    if (u && add_kernel(&u->recent, l, rank, AQ_MAX(from_usec, u->since_usec), until_usec) < 0)
        core_die("what a session used");
}

/* What runs, as if it ended now. */
static int add_running(struct core *core, struct rgroup *g, int64_t now_usec, struct map *book)
{
    LIST_FOREACH(link, &core->sessions) {
        const struct live *l = LIST_ENTRY(link, struct live, all_link);

        for (size_t k = 0; l->rgroup == g && l->is_in_usage && k < l->s.kernel_count; k++)
            if (!list_is_empty(&l->kernels[k].agent_link) &&
                add_kernel(book, l, k, AQ_MAX(l->kernels[k].held_usec, g->usage->since_usec),
                           now_usec) < 0)
                return -ENOMEM;
    }
    return 0;
}

/* ---- the past ---- */

struct reading {
    struct core *core;
    char *group;
    int64_t until_usec;
    struct map book;
};

static int take_past(void *data, const struct store_usage *row)
{
    struct reading *r = data;
    struct usage_holder h = holder_of_row(row);
    int64_t until = row->until_usec ? AQ_MIN(row->until_usec, r->until_usec) : r->until_usec;
    int64_t from = AQ_MAX(row->from_usec, r->until_usec - FAIR_LOOKBACK_MAX_DAYS * USAGE_DAY_USEC);

    if (!row->resource_group || strcmp(row->resource_group, r->group) != 0)
        return 0;
    return usage_book_add(&r->book, &h, false, row->slot, row->amount, from, until);
}

static int read_past(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct reading *r = data;

    return store_read_usage(tx, r->until_usec - FAIR_LOOKBACK_MAX_DAYS * USAGE_DAY_USEC, take_past,
                            r, err);
}

static void on_past(void *data, int result, const struct aq_error *err)
{
    struct reading *r = data;
    struct rgroup *g = rgroup_find(r->core, r->group);

    if (result < 0)
        log_warning("what was used of resource group '%s' cannot be read: %s", r->group, err->text);
    if (g && g->usage && !g->usage->is_ready && g->usage->since_usec == r->until_usec) {
        g->usage->past = r->book;
        r->book = (struct map)MAP_INIT;
        g->usage->is_ready = true;
        kept_spoil(g); /* its owners are named from now on */
        queue_room(r->core, g);
    }
    usage_book_done(&r->book);
    free(r->group);
    free(r);
}

static int begin(struct core *core, struct rgroup *g)
{
    struct reading *r = calloc(1, sizeof(*r));

    if (!(g->usage = calloc(1, sizeof(*g->usage))) || !r || !(r->group = strdup(g->g.name))) {
        free(r);
        usage_free(AQ_TAKE(g->usage));
        return -ENOMEM;
    }
    g->usage->since_usec = r->until_usec = clock_realtime_usec();
    r->core = core;
    /* behind every commit that was queued before: nothing is counted twice, or not at all */
    if (store_write(core->store, read_past, on_past, r) == 0)
        return 0;
    free(r->group);
    free(r);
    usage_free(AQ_TAKE(g->usage));
    return -ENOMEM;
}

bool usage_is_ready(struct core *core, struct rgroup *g)
{
    if (g->scheduling.options.sequencer != &sched_fair_share) {
        usage_free(AQ_TAKE(g->usage));
        return true;
    }
    if (!g->usage && begin(core, g) < 0)
        log_error("out of memory for fair share");
    return g->usage && g->usage->is_ready;
}

/* ---- factors ---- */

struct judging {
    struct fair_settings settings;
    struct map running;
    struct slots capacity;
    int64_t today;
    const struct usage *usage;
};

static int judging_begin(struct core *core, struct rgroup *g, struct judging *j)
{
    int64_t now = clock_realtime_usec();
    int r = 0;

    *j = (struct judging){ .usage = g->usage, .today = now / USAGE_DAY_USEC };
    fair_settings_read(&g->g, &j->settings);
    for (size_t i = 0; r == 0 && i < core->agent_count; i++) {
        const struct agent *a = &core->agents_sorted[i]->a;

        if (a->resource_group && strcmp(a->resource_group, g->g.name) == 0)
            r = slots_add(&j->capacity, &a->available);
    }
    return r < 0 ? r : add_running(core, g, now, &j->running);
}

static void judging_done(struct judging *j)
{
    fair_settings_done(&j->settings);
    usage_book_done(&j->running);
    slots_done(&j->capacity);
}

/* Of one slot, over the books. */
static double decayed(const struct judging *j, const struct usage_line *const *lines,
                      const char *slot)
{
    struct fair_day days[2 * FAIR_LOOKBACK_MAX_DAYS];
    size_t count = 0;

    for (int b = 0; b < 3; b++)
        for (size_t i = 0; lines[b] && i < lines[b]->count; i++) {
            const struct usage_cell *c = &lines[b]->cells[i];
            int64_t ago = j->today - c->day;

            if (c->slot == slot && (double)ago < j->settings.lookback_days &&
                count < AQ_COUNT(days))
                days[count++] = (struct fair_day){ (int)AQ_MAX(ago, 0), c->amount_sec };
        }
    return fair_decayed(days, count, j->settings.half_life_days);
}

/* The factor of a line, and the usage that it follows from. */
static double judge(const struct judging *j, const struct usage_holder *h,
                    enum core_fair_level level, double *ret_usage, double *ret_weight)
{
    char key[USAGE_KEY_MAX];
    size_t len = usage_key(h, level, false, key), count = 0;
    const struct usage_line *lines[3] = { map_get(&j->usage->past, key, len),
        map_get(&j->usage->recent, key, len), map_get(&j->running, key, len) };
    struct fair_slot slots[64];

    for (size_t i = 0; i < j->capacity.count && count < AQ_COUNT(slots); i++) {
        const struct slot *s = &j->capacity.items[i];

        slots[count++] = (struct fair_slot){ decayed(j, lines, s->name), (double)s->amount,
            fair_settings_slot_weight(&j->settings, s->name) };
    }
    *ret_weight = fair_settings_weight(&j->settings, level, h);
    *ret_usage = fair_usage(slots, count, j->settings.lookback_days);
    return fair_factor(*ret_usage, *ret_weight);
}

int usage_name_owner(struct rgroup *g, uint32_t number, const struct live *l)
{
    struct usage *u = g->usage;
    struct usage_holder h = holder_of(l);

    if (!u)
        return 0;
    while (number < u->owner_count) { /* the scheduler was built anew */
        free((char *)(uintptr_t)u->owners[--u->owner_count].domain);
        u->owners_told = 0;
    }
    if (!vec_grow(&u->owners, &u->owner_cap, u->owner_count + 1, sizeof(*u->owners)) ||
        !(h.domain = strdup(h.domain)))
        return -ENOMEM;
    u->owners[u->owner_count++] = h;
    return 0;
}

int usage_tell(struct core *core, struct rgroup *g)
{
    struct usage *u = g->usage;
    int64_t now = clock_monotonic_usec();
    struct judging j;
    int r;

    if (!u || (u->told_usec && u->owners_told == u->owner_count &&
               now - u->told_usec < REFRESH_USEC))
        return 0;
    r = judging_begin(core, g, &j);
    for (size_t i = 0; r == 0 && i < u->owner_count; i++) {
        double factors[CORE_FAIR_LEVELS], usage, weight;

        for (int level = 0; level < CORE_FAIR_LEVELS; level++)
            factors[level] = judge(&j, &u->owners[i], (enum core_fair_level)level, &usage, &weight);
        sched_set_factors(g->sched, (uint32_t)i, factors[CORE_FAIR_DOMAIN],
                          factors[CORE_FAIR_PROJECT], factors[CORE_FAIR_USER]);
    }
    judging_done(&j);
    u->told_usec = now;
    u->owners_told = u->owner_count;
    return r;
}

/* ---- shown ---- */

struct listing {
    const struct judging *j;
    struct map seen;
    core_fair_fn visit;
    void *data;
};

static int list_book(struct listing *l, const struct map *book)
{
    for (size_t i = 0; i < book->count; i++) {
        const struct usage_line *line = book->entries[i].value;
        struct usage_holder h = { NULL, line->domain, line->project, line->user };
        struct core_fair_row row = { .level = line->level, .domain = line->domain,
            .project = line->project, .user = line->user };
        char key[USAGE_KEY_MAX];
        size_t len = usage_key(&h, line->level, false, key);

        if (map_get(&l->seen, key, len))
            continue;
        if (map_set(&l->seen, key, len, l) < 0)
            return -ENOMEM;
        row.factor = judge(l->j, &h, line->level, &row.usage, &row.weight);
        l->visit(l->data, &row);
    }
    return 0;
}

int core_list_fair_share(struct core *core, const char *name, core_fair_fn visit, void *data,
                         struct aq_error *err)
{
    struct rgroup *g = rgroup_find(core, name);
    struct listing l = { .visit = visit, .data = data };
    struct judging j;
    int r;

    if (!g || !g->is_known)
        return aq_fail(err, ENOENT, "there is no resource group '%s'", name);
    if (g->scheduling.options.sequencer != &sched_fair_share)
        return aq_fail_field(err, EINVAL, "scheduler", "resource group '%s' does not schedule by "
                             "fair share; set its scheduler to fair-share", name);
    if (!usage_is_ready(core, g))
        return aq_fail(err, EAGAIN, "what was used of '%s' is still being read; ask again", name);
    l.j = &j;
    r = judging_begin(core, g, &j);
    if (r == 0 && (r = list_book(&l, &j.running)) == 0 &&
        (r = list_book(&l, &g->usage->recent)) == 0)
        r = list_book(&l, &g->usage->past);
    map_done(&l.seen);
    judging_done(&j);
    return r < 0 ? aq_fail(err, ENOMEM, "fair share") : 0;
}

/* ---- audit ---- */

struct usage_check {
    int64_t until_usec;
    struct map book;
};

static int take_check(void *data, const struct store_usage *row)
{
    struct usage_check *c = data;
    struct usage_holder h = holder_of_row(row);
    int64_t first_day = c->until_usec / USAGE_DAY_USEC - AUDIT_DAYS;
    int64_t from = AQ_MAX(row->from_usec, first_day * USAGE_DAY_USEC);

    return row->resource_group
               ? usage_book_add(&c->book, &h, true, row->slot, row->amount, from,
                                row->until_usec ? row->until_usec : c->until_usec)
               : 0;
}

int usage_check_read(struct store_tx *tx, int64_t until_usec, struct usage_check **ret,
                     struct aq_error *err)
{
    struct usage_check *c = calloc(1, sizeof(*c));
    int r;

    if (!c)
        return aq_fail(err, ENOMEM, "an audit");
    c->until_usec = until_usec;
    r = store_read_usage(tx, until_usec - (AUDIT_DAYS + 1) * USAGE_DAY_USEC, take_check, c, err);
    if (r < 0) {
        usage_check_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void usage_check_free(struct usage_check *check)
{
    if (check)
        usage_book_done(&check->book);
    free(check);
}

/* The undecayed sum since a day, of all slots. */
static double total(const struct usage_line *line, int64_t day)
{
    double sum = 0;

    for (size_t i = 0; line && i < line->count; i++)
        sum += line->cells[i].day >= day ? line->cells[i].amount_sec : 0;
    return sum;
}

static void compare_line(const struct usage_check *c, const struct rgroup *g,
                         const struct map *running, const struct usage_line *line,
                         void (*find)(void *data, const char *text), void *data)
{
    struct usage_holder h = { g->g.name, line->domain, line->project, line->user };
    int64_t day = c->until_usec / USAGE_DAY_USEC - AUDIT_DAYS;
    char key[USAGE_KEY_MAX], text[USAGE_KEY_MAX + 160];
    size_t len = usage_key(&h, line->level, false, key);
    double has = total(map_get(&g->usage->past, key, len), day) +
                 total(map_get(&g->usage->recent, key, len), day) +
                 total(map_get(running, key, len), day);
    double wants;

    len = usage_key(&h, line->level, true, key);
    wants = total(map_get(&c->book, key, len), day);
    if (fabs(has - wants) <= 1e-6 * fmax(has, wants) + 1)
        return;
    (void)snprintf(text, sizeof(text), "usage %s: %.0f in memory, %.0f by the ledger", key, has,
                   wants);
    find(data, text);
}

void usage_check_compare(struct core *core, struct usage_check *check,
                         void (*find)(void *data, const char *text), void *data)
{
    for (size_t i = 0; i < core->rgroups.count; i++) {
        struct rgroup *g = core->rgroups.entries[i].value;
        struct map running = MAP_INIT;
        const struct map *books[3];

        if (!g->usage || !g->usage->is_ready ||
            add_running(core, g, check->until_usec, &running) < 0)
            continue;
        books[0] = &running;
        books[1] = &g->usage->recent;
        books[2] = &g->usage->past;
        for (int b = 0; b < 3; b++)
            for (size_t n = 0; n < books[b]->count; n++)
                compare_line(check, g, &running, books[b]->entries[n].value, find, data);
        usage_book_done(&running);
    }
}
