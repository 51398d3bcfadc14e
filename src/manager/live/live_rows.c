/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that many readers follow: see live_rows.h. */
#include "manager/live/live_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/jsonw.h"
#include "base/memory.h"

void live_rows_init(struct live_rows *rows)
{
    *rows = (struct live_rows){ .by_key = MAP_INIT };
    list_init(&rows->order);
    strbuf_init(&rows->text);
}

static void live_rows_free_row(struct live_row *row)
{
    free(row->fixed);
    free(row->measured);
    free(row);
}

void live_rows_done(struct live_rows *rows)
{
    for (size_t i = 0; i < rows->by_key.count; i++)
        live_rows_free_row(rows->by_key.entries[i].value);
    map_done(&rows->by_key);
    strbuf_done(&rows->text);
}

const struct live_row *live_rows_get(const struct live_rows *rows, size_t i)
{
    return i < rows->by_key.count ? rows->by_key.entries[i].value : NULL;
}

/* ---- changes ---- */

static struct live_row *live_rows_add(struct live_rows *rows, const char *key)
{
    struct live_row *row = aq_alloc(sizeof(*row) + strlen(key) + 1);

    memcpy(row->key, key, strlen(key) + 1);
    map_sets(&rows->by_key, key, row);
    list_add(&rows->order, &row->link);
    rows->gone_count++; /* until it has its texts */
    return row;
}

static void live_rows_touch(struct live_rows *rows, struct live_row *row)
{
    row->version = ++rows->version;
    list_remove(&row->link);
    list_add(&rows->order, &row->link);
}

void live_rows_set(struct live_rows *rows, const char *key, const struct strbuf *fixed,
                   const struct strbuf *measured)
{
    struct live_row *row = map_gets(&rows->by_key, key);
    bool is_same = row && row->fixed && strcmp(row->fixed, fixed->data) == 0;

    if (is_same && strcmp(row->measured, measured->data) == 0)
        return;
    if (!row)
        row = live_rows_add(rows, key);
    live_rows_touch(rows, row);
    free(row->measured);
    row->measured = aq_strdup(measured->data);
    if (is_same)
        return;
    rows->gone_count -= !row->fixed;
    free(row->fixed);
    row->fixed = aq_strdup(fixed->data);
    row->fixed_version = row->version;
}

void live_rows_remove(struct live_rows *rows, const char *key)
{
    struct live_row *row = map_gets(&rows->by_key, key);

    if (!row || !row->fixed)
        return;
    free(AQ_TAKE(row->fixed));
    free(AQ_TAKE(row->measured));
    live_rows_touch(rows, row);
    rows->gone_count++;
}

void live_rows_forget(struct live_rows *rows)
{
    if (rows->gone_count <= LIVE_GONE_MAX)
        return;
    LIST_FOREACH(it, &rows->order) {
        struct live_row *row = LIST_ENTRY(it, struct live_row, link);

        if (row->fixed)
            continue;
        rows->forgotten = row->version;
        list_remove(&row->link);
        (void)map_removes(&rows->by_key, row->key);
        live_rows_free_row(row);
        if (--rows->gone_count <= LIVE_GONE_MAX / 2)
            break;
    }
}

/* ---- messages ---- */

/* The first row after 'seen', or the list's head. Looked for from the end: readers have most. */
static struct list *live_rows_find_after(struct live_rows *rows, uint64_t seen)
{
    struct list *first = &rows->order;

    while (first->prev != &rows->order
           && LIST_ENTRY(first->prev, struct live_row, link)->version > seen)
        first = first->prev;
    return first;
}

static void live_rows_write_set(const struct live_row *row, bool is_whole, struct jsonw *w)
{
    jsonw_key(w, row->key);
    jsonw_raw(w, "{", 1);
    if (is_whole)
        strbuf_adds(w->out, row->fixed);
    if (is_whole && row->fixed[0] && row->measured[0])
        strbuf_addc(w->out, ',');
    strbuf_adds(w->out, row->measured);
    strbuf_addc(w->out, '}');
}

/* Rows from 'first' on while there is room, one at least; returns where it ended. */
static struct list *live_rows_write_rows(struct live_rows *rows, struct list *first,
                                         size_t size_max, const struct live_place *place,
                                         struct jsonw *w)
{
    size_t begin = w->out->len;
    struct list *it = first;

    jsonw_key(w, "set");
    jsonw_object_begin(w);
    for (; it != &rows->order && (it == first || w->out->len - begin < size_max); it = it->next) {
        const struct live_row *row = LIST_ENTRY(it, struct live_row, link);

        if (row->fixed)
            live_rows_write_set(row, place->is_behind || row->fixed_version > place->seen, w);
    }
    jsonw_object_end(w);
    return it;
}

static void live_rows_write_gone(const struct list *first, const struct list *end, struct jsonw *w)
{
    jsonw_key(w, "gone");
    jsonw_array_begin(w);
    for (const struct list *it = first; it != end; it = it->next) {
        const struct live_row *row = LIST_ENTRY(it, const struct live_row, link);

        if (!row->fixed)
            jsonw_str(w, row->key);
    }
    jsonw_array_end(w);
}

static void live_rows_write_message(struct live_rows *rows, const char *topic, size_t size_max,
                                    struct live_place *place, struct strbuf *out)
{
    bool is_snapshot = !place->has_begun
                       || (place->seen < rows->forgotten && place->forgotten != rows->forgotten);
    struct jsonw w = jsonw_make(out);
    struct list *first, *end;

    if (is_snapshot)
        *place = (struct live_place){ .has_begun = true, .forgotten = rows->forgotten };
    first = live_rows_find_after(rows, place->seen);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", is_snapshot ? "snapshot" : "change");
    jsonw_member_str(&w, "topic", topic);
    end = live_rows_write_rows(rows, first, size_max, place, &w);
    if (!is_snapshot)
        live_rows_write_gone(first, end, &w);
    place->is_behind = end != &rows->order;
    place->seen = place->is_behind ? LIST_ENTRY(end->prev, struct live_row, link)->version
                                   : rows->version;
    jsonw_member_bool(&w, "more", place->is_behind);
    jsonw_object_end(&w);
}

static bool live_place_equals(const struct live_place *a, const struct live_place *b)
{
    return a->seen == b->seen && a->forgotten == b->forgotten && a->has_begun == b->has_begun
           && a->is_behind == b->is_behind;
}

const struct strbuf *live_rows_write(struct live_rows *rows, const char *topic, size_t size_max,
                                     struct live_place *place)
{
    if (place->has_begun && place->seen == rows->version)
        return NULL;
    if (rows->text_version != rows->version + 1 || !live_place_equals(place, &rows->text_from)) {
        rows->text_from = rows->text_to = *place;
        rows->text_version = rows->version + 1; /* of no rows, too, it is not 0 */
        strbuf_clear(&rows->text);
        live_rows_write_message(rows, topic, size_max, &rows->text_to, &rows->text);
    }
    *place = rows->text_to;
    return &rows->text;
}
