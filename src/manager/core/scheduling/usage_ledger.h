/* SPDX-License-Identifier: Apache-2.0 */
/* usage_ledger.h - sums of what was held: by whom, by day, by slot
 *
 * A book is a map of lines; a line is a domain, project or user and has a cell
 * for each day (UTC) and slot. Amounts are slot amounts times seconds.
 */
#ifndef AQ_MANAGER_CORE_USAGE_LEDGER_H
#define AQ_MANAGER_CORE_USAGE_LEDGER_H

#include "base/map.h"
#include "manager/core/core.h"

struct usage_ledger_cell {
    int64_t day;      /* since 1970, UTC */
    const char *slot; /* interned */
    double amount_sec;
};

struct usage_ledger_line {
    enum core_fair_level level;
    char *domain;
    struct uuid project, user;
    struct usage_ledger_cell *cells;
    size_t count, cap;
};

/* Who held something; names are borrowed. */
struct usage_ledger_holder {
    const char *resource_group, *domain;
    struct uuid project, user;
};

#define USAGE_LEDGER_DAY_USEC (86400 * USEC_PER_SEC)
#define USAGE_LEDGER_KEY_MAX 256

/* The key of a holder's line in a book, its length returned. A book of several
 * groups has their names in the keys ('with_group').
 */
size_t usage_ledger_key(const struct usage_ledger_holder *h, enum core_fair_level level,
                        bool with_group, char key[USAGE_LEDGER_KEY_MAX]);

/* Add what was held in a time (wall clock) to the holder's lines of all levels,
 * split at midnight (UTC).
 */
void usage_ledger_add(struct map *ledger, const struct usage_ledger_holder *h, bool with_group,
                      const char *slot, int64_t amount, int64_t from_usec, int64_t until_usec);

/* A domain is renamed. 'ledger' is a book of one group, and has no line of the new name. */
void usage_ledger_rename_domain(struct map *ledger, const char *from, const char *to);

/* Contents and map. */
void usage_ledger_done(struct map *ledger);

#endif
