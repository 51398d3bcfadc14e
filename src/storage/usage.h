/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h - what folders hold: counted, and kept up to date with what is written and removed here
 *
 * A folder is counted in a lane of its own (WORK_COUNT). One count at a time: all who want to know
 * wait for the same one. Between counts the size runs along, by usage_take() and usage_give(); a
 * count corrects it by what others did, such as a container that mounts the folder.
 * Loop's thread, but for usage_read(), usage_take() and usage_give().
 */
#ifndef AQ_STORAGE_USAGE_H
#define AQ_STORAGE_USAGE_H

#include <uv.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/uuid.h"
#include "storage/tree.h"

#define USAGE_NOW 0
#define USAGE_FRESH_USEC (60 * USEC_PER_SEC)
#define USAGE_ANY \
    INT64_MAX /* counted at any time; once that is old, it is counted again meanwhile */

struct usage_table;
struct usage_entry;
struct volume;

struct usage_table *usage_table_new(void);
/* Nothing is counted and nobody holds a folder any more. */
void usage_table_free(struct usage_table *table);
bool usage_is_counting(const struct usage_table *table);
/* Since the start: that began; that ended early, as nobody waited for them any more. */
struct usage_counts {
    uint64_t begun, dropped;
};
struct usage_counts usage_get_counts(const struct usage_table *table);

/* While one is held, what its folder holds is known. Zeroed before the first use. */
struct usage_hold {
    struct list link;
    struct usage_entry *entry; /* NULL = nothing is held */
    bool is_waiting;
    void (*ready)(struct usage_hold *hold, const struct aq_error *err);
    void *data; /* the caller's */
};

/* Have the folder counted, for this user, unless that was done less than so long ago. 1 = it is
 * known; 0 = ready() comes later, with 'err' NULL if it is known then, and it is held all the same;
 * -EAGAIN.
 */
int usage_hold(struct usage_table *table, struct volume *volume, const struct uuid *folder,
               const struct uuid *user, int64_t age_usec, struct usage_hold *hold,
               void (*ready)(struct usage_hold *hold, const struct aq_error *err),
               struct aq_error *err);
/* Also while it waits: a count that nobody waits for ends. Nothing held is fine. */
void usage_release(struct usage_table *table, struct usage_hold *hold);

/* Of a folder that is held. False if it is not known. */
bool usage_read(struct usage_table *table, const struct uuid *folder, struct tree_usage *ret);

/* The folder was, or may have been, changed: it is counted soon, for this user, if
 * usage_count_touched() is called from time to time. Loop's thread.
 */
void usage_touch(struct usage_table *table, struct volume *volume, const struct uuid *folder,
                 const struct uuid *user);
/* Begin counts of touched folders, few at a time, and of one folder at a bounded rate. False if
 * none is left to be begun. Loop's thread.
 */
bool usage_count_touched(struct usage_table *table);
/* Counts that are under way end, and none begins any more. */
void usage_table_stop(struct usage_table *table);

/* Bytes are about to be written: -EDQUOT if they do not fit into a quota (0 = none), else they
 * count at once.
 */
int usage_take(struct usage_table *table, const struct uuid *folder, uint64_t quota, uint64_t bytes,
               struct aq_error *err);
/* Bytes have gone, or were not written. */
void usage_give(struct usage_table *table, const struct uuid *folder, uint64_t bytes);

/* Sizes that have changed, and that nobody was told: tell of each. */
bool usage_has_news(struct usage_table *table);
void usage_take_news(struct usage_table *table,
                     void (*tell)(const struct volume *volume, const struct uuid *folder,
                                  const struct tree_usage *usage));

/* -EDQUOT if 'more' bytes do not fit into a quota now; 0 = none. */
int usage_check(struct usage_table *table, const struct uuid *folder, uint64_t quota, uint64_t more,
                struct aq_error *err);

#endif
