/* SPDX-License-Identifier: Apache-2.0 */
/* Logins in the audit log, however many. */
#include "manager/call/login_audit.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/map.h"
#include "base/memory.h"

#define REPEAT_USEC (60 * USEC_PER_SEC)
#define REST_USEC (300 * USEC_PER_SEC)
#define COUNTS_MAX 4096
/* Entries of good logins, and of the others: so many at once, then one each 20 seconds. */
#define BUDGET_MAX 1000
#define BUDGET_USEC (20 * USEC_PER_SEC)

/* Logins of an account from an address with one outcome. */
struct login_repeats {
    struct list link; /* login_audit.repeats, the oldest first */
    struct strbuf key;
    struct arena arena;
    struct audit_entry entry;
    enum login_outcome outcome;
    int64_t written_usec; /* monotonic */
    int64_t times;        /* since then ... */
    int64_t first_usec;   /* ... beginning at that time of the wall clock */
};

struct login_budget {
    int64_t left;
    int64_t filled_usec;
};

struct login_audit {
    struct audit_trail *trail;
    struct map by_key;
    struct list repeats;
    struct login_budget budgets[2]; /* of good logins, of the others */
    struct {
        int64_t times, first_usec;
    } rest[LOGIN_OUTCOMES]; /* what had no place */
    int64_t rest_usec;      /* when that was written */
};

static const char *login_audit_outcome(enum login_outcome outcome)
{
    static const char *const names[] = {
        [LOGIN_OK] = "ok", [LOGIN_FAILED] = "failed", [LOGIN_BLOCKED] = "blocked"
    };

    return names[outcome];
}

static bool login_audit_spend(struct login_audit *audit, enum login_outcome outcome, int64_t now)
{
    struct login_budget *budget = &audit->budgets[outcome != LOGIN_OK];
    int64_t more = (now - budget->filled_usec) / BUDGET_USEC;

    if (!budget->filled_usec || budget->left + more >= BUDGET_MAX) {
        budget->left = BUDGET_MAX;
        budget->filled_usec = now;
    } else if (more > 0) {
        budget->left += more;
        budget->filled_usec += more * BUDGET_USEC;
    }
    if (!budget->left)
        return false;
    budget->left--;
    return true;
}

/* 'first_usec' is shown if there was more than one. */
static void login_audit_write(struct login_audit *audit, enum login_outcome outcome,
                              const struct audit_entry *entry, int64_t times, int64_t first_usec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf detail = STRBUF_INIT;
    struct jsonw w = jsonw_make(&detail);
    struct audit_entry row = *entry;
    char iso[CLOCK_ISO_MAX];

    row.outcome = login_audit_outcome(outcome);
    row.times = times;
    if (times > 1) {
        jsonw_object_begin(&w);
        jsonw_member_str(&w, "since", clock_format_iso(first_usec, iso));
        jsonw_object_end(&w);
        row.detail = detail.data;
    }
    audit_trail_add(audit->trail, &row);
}

/* One more that nothing else is known of. */
static void login_audit_add_to_rest(struct login_audit *audit, enum login_outcome outcome,
                                    int64_t times, int64_t first_usec)
{
    if (!audit->rest[outcome].times)
        audit->rest[outcome].first_usec = first_usec;
    audit->rest[outcome].times += times;
}

static void login_audit_write_rest(struct login_audit *audit, int64_t now, bool is_end)
{
    const struct audit_entry entry = { .user_name = "", .action = "login" };

    if (!is_end && audit->rest_usec && now - audit->rest_usec < REST_USEC)
        return;
    for (size_t i = 0; i < LOGIN_OUTCOMES; i++) {
        if (!audit->rest[i].times)
            continue;
        login_audit_write(audit, (enum login_outcome)i, &entry, audit->rest[i].times,
                          audit->rest[i].first_usec);
        audit->rest[i].times = 0;
        audit->rest_usec = now;
    }
}

/* ---- repeats ---- */

static void login_audit_forget(struct login_audit *audit, struct login_repeats *repeats)
{
    (void)map_remove(&audit->by_key, repeats->key.data, repeats->key.len);
    list_remove(&repeats->link);
    strbuf_done(&repeats->key);
    arena_done(&repeats->arena);
    free(repeats);
}

/* NULL if there are too many. */
static struct login_repeats *login_audit_remember(struct login_audit *audit,
                                                  enum login_outcome outcome,
                                                  const struct audit_entry *entry,
                                                  const struct strbuf *key)
{
    const char **texts[AUDIT_ENTRY_TEXTS];
    struct login_repeats *repeats;

    if (audit->by_key.count >= COUNTS_MAX)
        return NULL;
    repeats = aq_alloc(sizeof(*repeats));
    strbuf_init(&repeats->key);
    strbuf_add(&repeats->key, key->data, key->len);
    repeats->outcome = outcome;
    repeats->entry = *entry;
    audit_entry_texts(&repeats->entry, texts);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (*texts[i])
            *texts[i] = arena_strdup(&repeats->arena, *texts[i]);
    map_set(&audit->by_key, key->data, key->len, repeats);
    list_add(&audit->repeats, &repeats->link);
    return repeats;
}

void login_audit_add(struct login_audit *audit, enum login_outcome outcome,
                     const struct audit_entry *entry, int64_t now_usec)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;
    int64_t at = clock_realtime_usec();
    struct login_repeats *repeats;

    strbuf_addf(&key, "%d\n%s\n%s\n%s", (int)outcome, entry->action, entry->address,
                entry->user_name);
    repeats = map_get(&audit->by_key, key.data, key.len);
    if (repeats) {
        repeats->first_usec = repeats->times ? repeats->first_usec : at;
        repeats->times++;
        return;
    }
    repeats = login_audit_remember(audit, outcome, entry, &key);
    if (!repeats || !login_audit_spend(audit, outcome, now_usec)) {
        login_audit_add_to_rest(audit, outcome, 1, at);
        if (repeats)
            login_audit_forget(audit, repeats);
        return;
    }
    repeats->written_usec = now_usec;
    login_audit_write(audit, outcome, entry, 1, at);
}

/* What came since the last entry; false if there is no more to be said of these. */
static bool login_audit_repeat(struct login_audit *audit, struct login_repeats *repeats,
                               int64_t now_usec)
{
    if (!repeats->times)
        return false;
    if (!login_audit_spend(audit, repeats->outcome, now_usec)) {
        login_audit_add_to_rest(audit, repeats->outcome, repeats->times, repeats->first_usec);
        return false;
    }
    login_audit_write(audit, repeats->outcome, &repeats->entry, repeats->times,
                      repeats->first_usec);
    repeats->times = 0;
    repeats->written_usec = now_usec;
    list_remove(&repeats->link);
    list_add(&audit->repeats, &repeats->link);
    return true;
}

/* Those that were written longest ago are first. */
void login_audit_tick(struct login_audit *audit, int64_t now_usec)
{
    while (!list_is_empty(&audit->repeats)) {
        struct login_repeats *repeats = LIST_ENTRY(audit->repeats.next, struct login_repeats, link);

        if (now_usec - repeats->written_usec < REPEAT_USEC)
            break;
        if (!login_audit_repeat(audit, repeats, now_usec))
            login_audit_forget(audit, repeats);
    }
    login_audit_write_rest(audit, now_usec, false);
}

void login_audit_finish(struct login_audit *audit)
{
    LIST_FOREACH(link, &audit->repeats) {
        struct login_repeats *repeats = LIST_ENTRY(link, struct login_repeats, link);

        if (repeats->times)
            login_audit_write(audit, repeats->outcome, &repeats->entry, repeats->times,
                              repeats->first_usec);
        login_audit_forget(audit, repeats);
    }
    login_audit_write_rest(audit, 0, true);
}

bool login_audit_is_idle(const struct login_audit *audit)
{
    for (size_t i = 0; i < LOGIN_OUTCOMES; i++)
        if (audit->rest[i].times)
            return false;
    return list_is_empty(&audit->repeats);
}

struct login_audit *login_audit_new(struct audit_trail *trail)
{
    struct login_audit *audit = aq_alloc(sizeof(*audit));

    audit->trail = trail;
    list_init(&audit->repeats);
    return audit;
}

void login_audit_free(struct login_audit *audit)
{
    if (!audit)
        return;
    while (!list_is_empty(&audit->repeats))
        login_audit_forget(audit, LIST_ENTRY(audit->repeats.next, struct login_repeats, link));
    map_done(&audit->by_key);
    free(audit);
}
