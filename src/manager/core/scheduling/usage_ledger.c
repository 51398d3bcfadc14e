/* SPDX-License-Identifier: Apache-2.0 */
/* usage_ledger.c - see usage_ledger.h */
#include <assert.h>

#include "manager/core/scheduling/usage_ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"

size_t usage_ledger_key(const struct usage_ledger_holder *h, enum core_fair_level level,
                        bool with_group, char key[USAGE_LEDGER_KEY_MAX])
{
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    bool has_project = level >= CORE_FAIR_PROJECT, has_user = level == CORE_FAIR_USER;
    size_t len = (size_t)snprintf(key, USAGE_LEDGER_KEY_MAX, "%s/%d/%s/%s/%s",
                                  with_group ? h->resource_group : "", (int)level,
                                  level == CORE_FAIR_DOMAIN ? h->domain : "",
                                  has_project ? uuid_format(&h->project, project) : "",
                                  has_user ? uuid_format(&h->user, user) : "");

    return AQ_MIN(len, (size_t)USAGE_LEDGER_KEY_MAX - 1);
}

static void usage_ledger_line_free(struct usage_ledger_line *line)
{
    free(line->domain);
    free(line->cells);
    free(line);
}

void usage_ledger_done(struct map *ledger)
{
    for (size_t i = 0; i < ledger->count; i++)
        usage_ledger_line_free(ledger->entries[i].value);
    map_done(ledger);
}

static struct usage_ledger_line *usage_ledger_line(struct map *ledger,
                                                   const struct usage_ledger_holder *h,
                                                   enum core_fair_level level, bool with_group)
{
    char key[USAGE_LEDGER_KEY_MAX];
    size_t len = usage_ledger_key(h, level, with_group, key);
    struct usage_ledger_line *line = map_get(ledger, key, len);

    if (line)
        return line;
    line = aq_alloc(sizeof(*line));
    line->domain = aq_strdup(h->domain);
    map_set(ledger, key, len, line);
    line->level = level;
    if (level >= CORE_FAIR_PROJECT)
        line->project = h->project;
    if (level == CORE_FAIR_USER)
        line->user = h->user;
    return line;
}

static void usage_ledger_line_add(struct usage_ledger_line *line, int64_t day, const char *slot,
                                  double amount_sec)
{
    for (size_t i = line->count; i-- > 0;)
        if (line->cells[i].day == day && line->cells[i].slot == slot) {
            line->cells[i].amount_sec += amount_sec;
            return;
        }
    vec_grow(&line->cells, &line->cap, line->count + 1, sizeof(*line->cells));
    line->cells[line->count++] = (struct usage_ledger_cell){ day, slot, amount_sec };
}

void usage_ledger_add(struct map *ledger, const struct usage_ledger_holder *h, bool with_group,
                      const char *slot, int64_t amount, int64_t from_usec, int64_t until_usec)
{
    assert(amount >= 0);
    for (int level = 0; level < CORE_FAIR_LEVELS && from_usec < until_usec; level++) {
        struct usage_ledger_line *line = usage_ledger_line(ledger, h, (enum core_fair_level)level,
                                                           with_group);

        for (int64_t at = from_usec, next; at < until_usec; at = next) {
            next = AQ_MIN((at / USAGE_LEDGER_DAY_USEC + 1) * USAGE_LEDGER_DAY_USEC, until_usec);
            usage_ledger_line_add(line, at / USAGE_LEDGER_DAY_USEC, slot,
                                  (double)amount * (double)(next - at) / USEC_PER_SEC);
        }
    }
}

void usage_ledger_rename_domain(struct map *ledger, const char *from, const char *to)
{
    char key[USAGE_LEDGER_KEY_MAX];
    size_t len = usage_ledger_key(&(struct usage_ledger_holder){ .domain = from }, CORE_FAIR_DOMAIN,
                                  false, key);
    struct usage_ledger_line *own = map_remove(ledger, key, len);

    if (own) {
        len = usage_ledger_key(&(struct usage_ledger_holder){ .domain = to }, CORE_FAIR_DOMAIN,
                               false, key);
        assert(!map_get(ledger, key, len));
        map_set(ledger, key, len, own);
    }
    for (size_t i = 0; i < ledger->count; i++) {
        struct usage_ledger_line *line = ledger->entries[i].value;

        if (strcmp(line->domain, from) != 0)
            continue;
        free(line->domain);
        line->domain = aq_strdup(to);
    }
}
