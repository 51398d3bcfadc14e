/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into the audit log: a queue before the store. */
#include "manager/call/audit_trail.h"

#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/memory.h"

#define WAITING_MAX 10000
#define ENTRIES_AT_A_TIME 100
#define TICK_MSEC 1000

struct audit_trail {
    struct store *store;
    uv_timer_t timer;
    struct list waiting; /* struct audit_item */
    size_t waiting_count;
    bool has_gap; /* entries were dropped, and none was taken since */
    bool is_writing;
    void (*tick)(void *data);
    void *tick_data;
    int uses; /* the owner, the timer, the piece under way */
};

struct audit_item {
    struct list link;
    struct arena arena;
    struct audit_entry entry;
};

struct audit_piece {
    struct audit_trail *trail;
    struct list items;
};

/* ---- entries ---- */

static void audit_trail_free_item(struct audit_item *item)
{
    arena_done(&item->arena);
    free(item);
}

static void audit_trail_free_items(struct list *items)
{
    LIST_FOREACH(link, items)
        audit_trail_free_item(LIST_ENTRY(link, struct audit_item, link));
    list_init(items);
}

static struct audit_item *audit_trail_copy(const struct audit_entry *entry)
{
    struct audit_item *item = aq_alloc(sizeof(*item));
    const char **texts[AUDIT_ENTRY_TEXTS];

    item->entry = *entry;
    audit_entry_texts(&item->entry, texts);
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (*texts[i])
            *texts[i] = arena_strdup(&item->arena, *texts[i]);
    return item;
}

/* ---- writing ---- */

static void audit_trail_release(struct audit_trail *trail)
{
    if (--trail->uses == 0)
        free(trail);
}

static void audit_trail_write(struct audit_trail *trail, size_t max);

/* store_tx_fn */
static int audit_trail_write_piece(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct audit_piece *piece = data;

    LIST_FOREACH(link, &piece->items) {
        int r = audit_log_add(tx, &LIST_ENTRY(link, struct audit_item, link)->entry, err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* store_done_fn */
static void audit_trail_on_written(void *data, int r, const struct aq_error *err)
{
    struct audit_piece *piece = data;
    struct audit_trail *trail = piece->trail;

    if (r < 0)
        log_warning("the audit log was not written: %s", err->text);
    trail->is_writing = false;
    audit_trail_free_items(&piece->items);
    free(piece);
    if (trail->waiting_count)
        audit_trail_write(trail, ENTRIES_AT_A_TIME);
    audit_trail_release(trail);
}

static void audit_trail_write(struct audit_trail *trail, size_t max)
{
    struct audit_piece *piece = aq_alloc(sizeof(*piece));

    piece->trail = trail;
    list_init(&piece->items);
    for (size_t i = 0; i < max && !list_is_empty(&trail->waiting); i++) {
        struct list *first = trail->waiting.next;

        list_remove(first);
        list_add(&piece->items, first);
        trail->waiting_count--;
    }
    trail->is_writing = true;
    trail->uses++;
    store_write(trail->store, audit_trail_write_piece, audit_trail_on_written, piece);
}

void audit_trail_add(struct audit_trail *trail, const struct audit_entry *entry)
{
    struct audit_item *item;

    if (trail->waiting_count >= WAITING_MAX) {
        if (!trail->has_gap)
            log_warning("the audit log has gaps: the store is too slow");
        trail->has_gap = true;
        return;
    }
    trail->has_gap = false;
    item = audit_trail_copy(entry);
    item->entry.at_usec = clock_realtime_usec();
    list_add(&trail->waiting, &item->link);
    trail->waiting_count++;
    if (!trail->is_writing)
        audit_trail_write(trail, ENTRIES_AT_A_TIME);
}

static void audit_trail_on_tick(uv_timer_t *timer)
{
    struct audit_trail *trail = timer->data;

    if (trail->tick)
        trail->tick(trail->tick_data);
    if (!trail->is_writing && trail->waiting_count)
        audit_trail_write(trail, ENTRIES_AT_A_TIME);
}

/* ---- beginning and end ---- */

struct audit_trail *audit_trail_new(uv_loop_t *loop, struct store *store)
{
    struct audit_trail *trail = aq_alloc(sizeof(*trail));

    trail->store = store;
    trail->uses = 2;
    list_init(&trail->waiting);
    (void)uv_timer_init(loop, &trail->timer);
    trail->timer.data = trail;
    uv_unref((uv_handle_t *)&trail->timer);
    (void)uv_timer_start(&trail->timer, audit_trail_on_tick, TICK_MSEC, TICK_MSEC);
    return trail;
}

void audit_trail_set_tick(struct audit_trail *trail, void (*tick)(void *data), void *data)
{
    trail->tick = tick;
    trail->tick_data = data;
}

void audit_trail_stop(struct audit_trail *trail)
{
    (void)uv_timer_stop(&trail->timer);
    trail->tick = NULL;
    if (trail->waiting_count)
        audit_trail_write(trail, SIZE_MAX);
}

static void audit_trail_on_closed(uv_handle_t *handle)
{
    audit_trail_release(handle->data);
}

void audit_trail_free(struct audit_trail *trail)
{
    if (!trail)
        return;
    audit_trail_free_items(&trail->waiting);
    trail->waiting_count = 0;
    uv_close((uv_handle_t *)&trail->timer, audit_trail_on_closed);
    audit_trail_release(trail);
}
