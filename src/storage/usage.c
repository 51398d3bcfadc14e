/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - see usage.h */
#include "storage/usage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "storage/storage.h"

#define FOLDERS_MAX 10000 /* that are remembered, besides those that are held */
#define PAUSE_FACTOR 20   /* a folder is counted in the background for 1/20 of the time at most */
#define PAUSE_USEC (5 * USEC_PER_SEC) /* between two counts of a folder that is written to */
#define COUNTING_MAX 8                /* at a time, while touched folders begin to be counted */

struct usage_entry {
    struct uuid folder;
    struct tree_usage counted;        /* by the last count */
    int64_t bytes, least, most;       /* now; since the count under way began */
    int64_t counted_usec, spent_usec; /* monotonic; what the last count took */
    bool is_known, is_news;
    bool is_touched; /* since the last count began, for the user toucher */
    struct uuid toucher;
    size_t holds;
    /* the count: */
    struct usage_table *table;
    struct volume *volume;
    struct work work;
    struct list waiting; /* struct usage_hold */
    bool is_counting, is_background;
    _Atomic bool stop;
    struct tree_usage found;
    struct aq_error err;
};

struct usage_table {
    uv_mutex_t lock;    /* of the entries' sizes, and of the map */
    struct map folders; /* id -> struct usage_entry */
    bool has_news;      /* one of the entries is */
    bool is_stopped;
    size_t counting;
    struct usage_counts counts;
};

struct usage_table *usage_table_new(void)
{
    struct usage_table *table = aq_alloc(sizeof(*table));

    (void)uv_mutex_init(&table->lock);
    return table;
}

/* All but those that somebody holds, or that are being counted or to be counted. */
static void usage_forget(struct usage_table *table)
{
    for (size_t i = table->folders.count; i-- > 0;) {
        struct usage_entry *entry = table->folders.entries[i].value;

        if (entry->holds || entry->is_counting || (entry->is_touched && !table->is_stopped))
            continue;
        (void)map_remove(&table->folders, entry->folder.bytes, sizeof(entry->folder.bytes));
        free(entry);
    }
}

void usage_table_free(struct usage_table *table)
{
    if (!table)
        return;
    table->is_stopped = true;
    usage_forget(table);
    map_done(&table->folders);
    uv_mutex_destroy(&table->lock);
    free(table);
}

bool usage_is_counting(const struct usage_table *table)
{
    return table->counting;
}

struct usage_counts usage_get_counts(const struct usage_table *table)
{
    return table->counts;
}

/* ---- sizes; with the lock ---- */

static struct usage_entry *usage_find(const struct usage_table *table, const struct uuid *folder)
{
    return map_get(&table->folders, folder->bytes, sizeof(folder->bytes));
}

static void usage_move(struct usage_entry *entry, int64_t bytes)
{
    entry->bytes += bytes;
    entry->least = AQ_MIN(entry->least, entry->bytes);
    entry->most = AQ_MAX(entry->most, entry->bytes);
    entry->is_news = entry->table->has_news = true;
}

/* What was found is what the folder held at some moment of the count: what lies outside of all that
 * it should have held meanwhile, others have written or removed.
 */
static void usage_correct(struct usage_entry *entry)
{
    int64_t found = (int64_t)entry->found.bytes;

    if (!entry->is_known || found < entry->least)
        entry->bytes += found - entry->least;
    else if (found > entry->most)
        entry->bytes += found - entry->most;
    entry->bytes = AQ_MAX(entry->bytes, 0);
    entry->counted = entry->found;
    entry->is_known = true;
    entry->is_news = entry->table->has_news = true;
}

bool usage_has_news(struct usage_table *table)
{
    bool has_news;

    uv_mutex_lock(&table->lock);
    has_news = table->has_news;
    uv_mutex_unlock(&table->lock);
    return has_news;
}

void usage_take_news(struct usage_table *table,
                     void (*tell)(const struct volume *volume, const struct uuid *folder,
                                  const struct tree_usage *usage))
{
    uv_mutex_lock(&table->lock);
    table->has_news = false;
    for (size_t i = 0; i < table->folders.count; i++) {
        struct usage_entry *entry = table->folders.entries[i].value;
        const struct tree_usage usage = { .files = entry->counted.files,
                                          .bytes = (uint64_t)AQ_MAX(entry->bytes, 0) };

        if (entry->is_news && entry->is_known)
            tell(entry->volume, &entry->folder, &usage);
        entry->is_news = false;
    }
    uv_mutex_unlock(&table->lock);
}

bool usage_read(struct usage_table *table, const struct uuid *folder, struct tree_usage *ret)
{
    const struct usage_entry *entry;

    uv_mutex_lock(&table->lock);
    entry = usage_find(table, folder);
    if (entry && entry->is_known)
        *ret = (struct tree_usage){ .files = entry->counted.files,
                                    .bytes = (uint64_t)AQ_MAX(entry->bytes, 0) };
    uv_mutex_unlock(&table->lock);
    return entry && entry->is_known;
}

static void usage_write_bytes(struct strbuf *out, uint64_t bytes)
{
    if (bytes < 1u << 20)
        strbuf_addf(out, "%llu bytes", (unsigned long long)bytes);
    else
        strbuf_add_size(out, bytes);
}

static int usage_fail_quota(uint64_t has, uint64_t quota, uint64_t more, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "the folder holds ");
    usage_write_bytes(&text, has);
    strbuf_adds(&text, " of its ");
    usage_write_bytes(&text, quota);
    strbuf_adds(&text, "; ");
    usage_write_bytes(&text, more);
    strbuf_adds(&text, " more do not fit");
    return aq_fail(err, EDQUOT, "%s", text.data);
}

/* With 'is_taken' they count if they fit. */
static int usage_fit(struct usage_table *table, const struct uuid *folder, uint64_t quota,
                     uint64_t more, bool is_taken, struct aq_error *err)
{
    struct usage_entry *entry;
    bool is_known, fits = true;
    uint64_t has = 0;

    uv_mutex_lock(&table->lock);
    entry = usage_find(table, folder);
    is_known = entry && entry->is_known;
    has = is_known ? (uint64_t)AQ_MAX(entry->bytes, 0) : 0;
    if (quota)
        fits = is_known && has <= quota && more <= quota - has;
    if (entry && fits && is_taken)
        usage_move(entry, (int64_t)more);
    uv_mutex_unlock(&table->lock);
    if (fits)
        return 0;
    return is_known ? usage_fail_quota(has, quota, more, err)
                    : aq_fail(err, EAGAIN, "the folder has not been counted yet; try again");
}

int usage_take(struct usage_table *table, const struct uuid *folder, uint64_t quota, uint64_t bytes,
               struct aq_error *err)
{
    return bytes ? usage_fit(table, folder, quota, bytes, true, err) : 0;
}

int usage_check(struct usage_table *table, const struct uuid *folder, uint64_t quota, uint64_t more,
                struct aq_error *err)
{
    return usage_fit(table, folder, quota, more, false, err);
}

void usage_give(struct usage_table *table, const struct uuid *folder, uint64_t bytes)
{
    struct usage_entry *entry;

    uv_mutex_lock(&table->lock);
    entry = usage_find(table, folder);
    if (entry && bytes)
        usage_move(entry, -(int64_t)bytes);
    uv_mutex_unlock(&table->lock);
}

/* ---- counting ---- */

static void usage_run(struct work *work)
{
    struct usage_entry *entry = AQ_CONTAINER_OF(work, struct usage_entry, work);
    int64_t begun_usec = clock_monotonic_usec();
    AQ_CLEANUP(aq_closep) int root = volume_open_folder(&entry->volume->dir, &entry->folder,
                                                        &entry->err);

    if (root >= 0)
        (void)tree_count(root, &entry->stop, &entry->found, &entry->err);
    entry->spent_usec = clock_monotonic_usec() - begun_usec;
}

static void usage_on_counted(struct work *work);

static int usage_begin(struct usage_entry *entry, const struct uuid *user, struct aq_error *err)
{
    int r;

    uv_mutex_lock(&entry->table->lock);
    entry->least = entry->most = entry->bytes;
    uv_mutex_unlock(&entry->table->lock);
    entry->stop = entry->table->is_stopped;
    entry->err = (struct aq_error){ 0 };
    r = work_submit(&entry->volume->lanes[WORK_COUNT], &entry->work, user, usage_run,
                    usage_on_counted, err);
    if (r < 0)
        return r;
    entry->is_counting = true;
    entry->is_background = entry->is_touched;
    entry->is_touched = false;
    entry->table->counting++;
    entry->table->counts.begun++;
    return 0;
}

static void usage_end(struct usage_entry *entry)
{
    entry->is_counting = entry->is_background = false;
    entry->table->counting--;
}

/* Those who wait are told; each may release what it holds, and hold more. */
static void usage_tell(struct usage_entry *entry, const struct aq_error *err)
{
    struct list told, *link;

    list_init(&told);
    list_move(&entry->waiting, &told);
    while ((link = list_take(&told))) {
        struct usage_hold *hold = LIST_ENTRY(link, struct usage_hold, link);

        hold->is_waiting = false;
        hold->ready(hold, err);
    }
}

static void usage_on_counted(struct work *work)
{
    struct usage_entry *entry = AQ_CONTAINER_OF(work, struct usage_entry, work);
    struct storage *storage = entry->volume->storage;
    struct aq_error err = entry->err;
    const struct uuid user = work->user;

    usage_end(entry);
    entry->table->counts.dropped += err.code == ECANCELED;
    entry->holds++; /* while others are told */
    if (!err.code) {
        uv_mutex_lock(&entry->table->lock);
        usage_correct(entry);
        uv_mutex_unlock(&entry->table->lock);
        entry->counted_usec = clock_monotonic_usec();
    }
    /* somebody came after those for whom it was stopped had gone */
    if (err.code != ECANCELED || entry->table->is_stopped || list_is_empty(&entry->waiting)
        || usage_begin(entry, &user, &err) < 0)
        usage_tell(entry, err.code ? &err : NULL);
    entry->holds--;
    storage_settle(storage);
}

/* ---- holding ---- */

static struct usage_entry *usage_get_entry(struct usage_table *table, const struct uuid *folder)
{
    struct usage_entry *entry;

    uv_mutex_lock(&table->lock);
    entry = usage_find(table, folder);
    if (!entry && table->folders.count >= FOLDERS_MAX)
        usage_forget(table);
    if (!entry) {
        entry = aq_alloc(sizeof(*entry));
        entry->folder = *folder;
        entry->table = table;
        list_init(&entry->waiting);
        (void)map_set(&table->folders, folder->bytes, sizeof(folder->bytes), entry);
    }
    uv_mutex_unlock(&table->lock);
    return entry;
}

/* What a container writes is found, at a bounded rate. */
static void usage_count_again(struct usage_entry *entry, const struct uuid *user)
{
    int64_t pause = AQ_MAX(USAGE_FRESH_USEC, PAUSE_FACTOR * entry->spent_usec);

    if (!entry->is_counting && clock_monotonic_usec() - entry->counted_usec > pause)
        entry->is_background = usage_begin(entry, user, NULL) == 0;
}

int usage_hold(struct usage_table *table, struct volume *volume, const struct uuid *folder,
               const struct uuid *user, int64_t age_usec, struct usage_hold *hold,
               void (*ready)(struct usage_hold *hold, const struct aq_error *err),
               struct aq_error *err)
{
    struct usage_entry *entry = usage_get_entry(table, folder);
    int r = 0;

    hold->entry = entry;
    hold->ready = ready;
    hold->is_waiting = false;
    list_init(&hold->link);
    entry->volume = volume;
    entry->holds++;
    if (entry->is_known && age_usec > USAGE_NOW
        && clock_monotonic_usec() - entry->counted_usec <= age_usec) {
        if (age_usec == USAGE_ANY)
            usage_count_again(entry, user);
        return 1;
    }
    if (!entry->is_counting)
        r = usage_begin(entry, user, err);
    if (r < 0) {
        usage_release(table, hold);
        return r;
    }
    hold->is_waiting = true;
    list_add(&entry->waiting, &hold->link);
    return 0;
}

void usage_release(struct usage_table *table, struct usage_hold *hold)
{
    struct usage_entry *entry = AQ_TAKE(hold->entry);

    if (!entry)
        return;
    entry->holds--;
    if (!hold->is_waiting)
        return;
    list_remove(&hold->link);
    hold->is_waiting = false;
    if (!list_is_empty(&entry->waiting) || !entry->is_counting || entry->is_background)
        return;
    entry->stop = !work_withdraw(&entry->work);
    if (entry->stop)
        return; /* it looks at that between two files */
    usage_end(entry);
    table->counts.dropped++;
}

/* ---- folders that were touched ---- */

void usage_touch(struct usage_table *table, struct volume *volume, const struct uuid *folder,
                 const struct uuid *user)
{
    struct usage_entry *entry = usage_get_entry(table, folder);

    entry->volume = volume;
    entry->is_touched = true;
    entry->toucher = *user;
}

static bool usage_is_due(const struct usage_entry *entry)
{
    int64_t pause = AQ_MAX(PAUSE_USEC, PAUSE_FACTOR * entry->spent_usec);

    return !entry->is_counting
           && (!entry->is_known || clock_monotonic_usec() - entry->counted_usec > pause);
}

bool usage_count_touched(struct usage_table *table)
{
    bool is_left = false;

    for (size_t i = 0; i < table->folders.count && !table->is_stopped; i++) {
        struct usage_entry *entry = table->folders.entries[i].value;

        if (entry->is_touched && table->counting < COUNTING_MAX && usage_is_due(entry))
            entry->is_background = usage_begin(entry, &entry->toucher, NULL) == 0;
        is_left |= entry->is_touched;
    }
    return is_left;
}

void usage_table_stop(struct usage_table *table)
{
    table->is_stopped = true;
    for (size_t i = 0; i < table->folders.count; i++)
        ((struct usage_entry *)table->folders.entries[i].value)->stop = true;
}
