/* usage.c - see usage.h */
#include "manager/core/usage.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "sched/fair.h"
#include "store/read.h"

#define DAY_USEC (86400 * USEC_PER_SEC)
#define LOOKBACK_MAX_DAYS 366
#define REFRESH_USEC (60 * USEC_PER_SEC)
#define AUDIT_DAYS 7

/* ---- books: sums by whom, by day, by slot ---- */

struct cell {
    int64_t day;               /* since 1970, UTC */
    const char *slot;          /* interned */
    double amount_sec;
};

struct line {
    enum core_fair_level level;
    char *domain;
    struct uuid project, user;
    struct cell *cells;
    size_t count, cap;
};

struct holder {
    const char *resource_group, *domain;
    struct uuid project, user;
};

#define KEY_MAX 256

/* Of a line within a book; the book of an audit has the groups' names before it. */
static size_t line_key(const struct holder *h, enum core_fair_level level, bool with_group,
                       char key[KEY_MAX])
{
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    size_t len = (size_t)snprintf(key, KEY_MAX, "%s/%d/%s/%s/%s",
                                  with_group ? h->resource_group : "", (int)level,
                                  level == CORE_FAIR_DOMAIN ? h->domain : "",
                                  level >= CORE_FAIR_PROJECT ? uuid_format(&h->project, project) : "",
                                  level == CORE_FAIR_USER ? uuid_format(&h->user, user) : "");

    return AQ_MIN(len, (size_t)KEY_MAX - 1);
}

static void line_free(struct line *line)
{
    if (!line)
        return;
    free(line->domain);
    free(line->cells);
    free(line);
}

static void book_done(struct map *book)
{
    for (size_t i = 0; i < book->count; i++)
        line_free(book->entries[i].value);
    map_done(book);
}

static struct line *book_line(struct map *book, const struct holder *h, enum core_fair_level level,
                              bool with_group)
{
    char key[KEY_MAX];
    size_t len = line_key(h, level, with_group, key);
    struct line *line = map_get(book, key, len);

    if (line)
        return line;
    if (!(line = calloc(1, sizeof(*line))) || !(line->domain = strdup(h->domain)) ||
        map_set(book, key, len, line) < 0) {
        line_free(line);
        return NULL;
    }
    line->level = level;
    line->project = h->project;
    line->user = h->user;
    return line;
}

static int line_add(struct line *line, int64_t day, const char *slot, double amount_sec)
{
    for (size_t i = line->count; i-- > 0;)
        if (line->cells[i].day == day && line->cells[i].slot == slot) {
            line->cells[i].amount_sec += amount_sec;
            return 0;
        }
    if (!vec_grow(&line->cells, &line->cap, line->count + 1, sizeof(*line->cells)))
        return -ENOMEM;
    line->cells[line->count++] = (struct cell){ day, slot, amount_sec };
    return 0;
}

/* Split at midnight (UTC). */
static int book_add(struct map *book, const struct holder *h, bool with_group, const char *slot,
                    int64_t amount, int64_t from_usec, int64_t until_usec)
{
    for (int level = 0; level < CORE_FAIR_LEVELS && from_usec < until_usec; level++) {
        struct line *line = book_line(book, h, (enum core_fair_level)level, with_group);

        for (int64_t at = from_usec, next; at < until_usec; at = next) {
            next = AQ_MIN((at / DAY_USEC + 1) * DAY_USEC, until_usec);
            if (!line || line_add(line, at / DAY_USEC, slot,
                                  (double)amount * (double)(next - at) / USEC_PER_SEC) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

/* ---- settings ---- */

int fair_settings_check(json_t *from, struct aq_error *err)
{
    static const char *const prefixes[] = { "slot:", "domain:", "project:", "user:" };
    const char *key;
    json_t *value;

    if (from && !json_is_object(from))
        return aq_fail_field(err, EINVAL, "fair_share", "must be an object");
    json_object_foreach(from, key, value) {
        bool is_days = strcmp(key, "half_life_days") == 0 || strcmp(key, "lookback_days") == 0;
        bool is_known = is_days || strcmp(key, "default_weight") == 0;

        for (size_t i = 0; i < AQ_COUNT(prefixes); i++)
            is_known |= strncmp(key, prefixes[i], strlen(prefixes[i])) == 0;
        if (!is_known)
            return aq_fail_field(err, EINVAL, "fair_share", "fair_share has no '%.40s'; it has "
                                 "half_life_days, lookback_days, default_weight, slot:NAME, "
                                 "domain:NAME, project:ID and user:ID", key);
        if (!json_is_number(value) || !(json_number_value(value) > 0) ||
            json_number_value(value) > (is_days ? LOOKBACK_MAX_DAYS : 1e6))
            return aq_fail_field(err, EINVAL, "fair_share", "fair_share.%.60s must be above 0 and "
                                 "at most %d", key, is_days ? LOOKBACK_MAX_DAYS : 1000000);
    }
    return 0;
}

static double setting(const json_t *all, const char *key, double otherwise)
{
    const json_t *value = json_object_get(all, key);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

void fair_settings_read(const struct resource_group *g, struct fair_settings *ret)
{
    json_t *opts = g->scheduler_opts ? json_loads(g->scheduler_opts, 0, NULL) : NULL;
    json_t *all = json_object_get(opts, "fair_share");

    if (fair_settings_check(all, NULL) < 0)
        all = NULL; /* of a database of another version */
    *ret = (struct fair_settings){
        .half_life_days = setting(all, "half_life_days", 7),
        .lookback_days = setting(all, "lookback_days", 28),
        .default_weight = setting(all, "default_weight", 1),
        .all = json_incref(all),
    };
    json_decref(opts);
}

void fair_settings_done(struct fair_settings *s)
{
    json_decref(s->all);
}

static double slot_weight(const struct fair_settings *s, const char *slot)
{
    char key[80];

    (void)snprintf(key, sizeof(key), "slot:%s", slot);
    return setting(s->all, key, fair_default_weight(slot));
}

static double line_weight(const struct fair_settings *s, enum core_fair_level level,
                          const struct holder *h)
{
    char key[128], id[UUID_TEXT_MAX];

    if (level == CORE_FAIR_DOMAIN)
        (void)snprintf(key, sizeof(key), "domain:%s", h->domain);
    else if (level == CORE_FAIR_PROJECT)
        (void)snprintf(key, sizeof(key), "project:%s", uuid_format(&h->project, id));
    else
        (void)snprintf(key, sizeof(key), "user:%s", uuid_format(&h->user, id));
    return setting(s->all, key, s->default_weight);
}

/* ---- a group's usage ---- */

struct usage {
    int64_t since_usec;        /* wall: 'past' ends and 'recent' begins */
    struct map past, recent;
    bool is_ready;
    int64_t told_usec;         /* monotonic; 0 = never */
    struct holder *owners;     /* by number of the group's scheduler; names are ours */
    size_t owner_count, owner_cap, owners_told;
};

void usage_free(struct usage *u)
{
    if (!u)
        return;
    book_done(&u->past);
    book_done(&u->recent);
    for (size_t i = 0; i < u->owner_count; i++)
        free((char *)(uintptr_t)u->owners[i].domain);
    free(u->owners);
    free(u);
}

static struct holder holder_of(const struct live *l)
{
    return (struct holder){ l->rgroup->g.name, l->s.domain ? l->s.domain : "", l->s.group_id,
        l->s.user_id };
}

static int add_kernel(struct map *book, const struct live *l, size_t rank, int64_t from_usec,
                      int64_t until_usec)
{
    const struct slots *held = &l->s.kernels[rank].requested;
    struct holder h = holder_of(l);

    for (size_t i = 0; i < held->count; i++)
        if (held->items[i].amount > 0 &&
            book_add(book, &h, false, held->items[i].name, held->items[i].amount, from_usec,
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
    struct holder h = { row->resource_group, row->domain ? row->domain : "", row->project,
        row->user };
    int64_t until = row->until_usec ? AQ_MIN(row->until_usec, r->until_usec) : r->until_usec;
    int64_t from = AQ_MAX(row->from_usec, r->until_usec - LOOKBACK_MAX_DAYS * DAY_USEC);

    if (!row->resource_group || strcmp(row->resource_group, r->group) != 0)
        return 0;
    return book_add(&r->book, &h, false, row->slot, row->amount, from, until);
}

static int read_past(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct reading *r = data;

    return store_read_usage(tx, r->until_usec - LOOKBACK_MAX_DAYS * DAY_USEC, take_past, r, err);
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
    book_done(&r->book);
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

    *j = (struct judging){ .usage = g->usage, .today = now / DAY_USEC };
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
    book_done(&j->running);
    slots_done(&j->capacity);
}

/* Of one slot, over the books. */
static double decayed(const struct judging *j, const struct line *const *lines, const char *slot)
{
    struct fair_day days[2 * LOOKBACK_MAX_DAYS];
    size_t count = 0;

    for (int b = 0; b < 3; b++)
        for (size_t i = 0; lines[b] && i < lines[b]->count; i++) {
            const struct cell *c = &lines[b]->cells[i];
            int64_t ago = j->today - c->day;

            if (c->slot == slot && (double)ago < j->settings.lookback_days &&
                count < AQ_COUNT(days))
                days[count++] = (struct fair_day){ (int)AQ_MAX(ago, 0), c->amount_sec };
        }
    return fair_decayed(days, count, j->settings.half_life_days);
}

/* The factor of a line, and the usage that it follows from. */
static double judge(const struct judging *j, const struct holder *h, enum core_fair_level level,
                    double *ret_usage, double *ret_weight)
{
    char key[KEY_MAX];
    size_t len = line_key(h, level, false, key), count = 0;
    const struct line *lines[3] = { map_get(&j->usage->past, key, len),
        map_get(&j->usage->recent, key, len), map_get(&j->running, key, len) };
    struct fair_slot slots[64];

    for (size_t i = 0; i < j->capacity.count && count < AQ_COUNT(slots); i++) {
        const struct slot *s = &j->capacity.items[i];

        slots[count++] = (struct fair_slot){ decayed(j, lines, s->name), (double)s->amount,
            slot_weight(&j->settings, s->name) };
    }
    *ret_weight = line_weight(&j->settings, level, h);
    *ret_usage = fair_usage(slots, count, j->settings.lookback_days);
    return fair_factor(*ret_usage, *ret_weight);
}

int usage_name_owner(struct rgroup *g, uint32_t number, const struct live *l)
{
    struct usage *u = g->usage;
    struct holder h = holder_of(l);

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

    if (!u || (u->told_usec && u->owners_told == u->owner_count && now - u->told_usec < REFRESH_USEC))
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
        const struct line *line = book->entries[i].value;
        struct holder h = { NULL, line->domain, line->project, line->user };
        struct core_fair_row row = { .level = line->level, .domain = line->domain,
            .project = line->project, .user = line->user };
        char key[KEY_MAX];
        size_t len = line_key(&h, line->level, false, key);

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
    struct holder h = { row->resource_group, row->domain ? row->domain : "", row->project,
        row->user };
    int64_t from = AQ_MAX(row->from_usec, (c->until_usec / DAY_USEC - AUDIT_DAYS) * DAY_USEC);

    return row->resource_group
               ? book_add(&c->book, &h, true, row->slot, row->amount, from,
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
    r = store_read_usage(tx, until_usec - (AUDIT_DAYS + 1) * DAY_USEC, take_check, c, err);
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
        book_done(&check->book);
    free(check);
}

/* The undecayed sum since a day, of all slots. */
static double total(const struct line *line, int64_t day)
{
    double sum = 0;

    for (size_t i = 0; line && i < line->count; i++)
        sum += line->cells[i].day >= day ? line->cells[i].amount_sec : 0;
    return sum;
}

static void compare_line(const struct usage_check *c, const struct rgroup *g,
                         const struct map *running, const struct line *line,
                         void (*find)(void *data, const char *text), void *data)
{
    struct holder h = { g->g.name, line->domain, line->project, line->user };
    int64_t day = c->until_usec / DAY_USEC - AUDIT_DAYS;
    char key[KEY_MAX], text[KEY_MAX + 160];
    size_t len = line_key(&h, line->level, false, key);
    double has = total(map_get(&g->usage->past, key, len), day) +
                 total(map_get(&g->usage->recent, key, len), day) +
                 total(map_get(running, key, len), day);
    double wants;

    len = line_key(&h, line->level, true, key);
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
        book_done(&running);
    }
}
