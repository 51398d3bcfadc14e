/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics of one owner: a kernel, a device, a node. */
#include "model/measured.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/vec.h"

/* ---- kinds ---- */

static struct metric_kind *measured_new_kind(const struct metric_kind *like)
{
    size_t size = strlen(like->key) + 1;
    struct metric_kind *kind = aq_alloc(sizeof(*kind) + size);

    *kind = *like;
    kind->key = memcpy(kind + 1, like->key, size);
    return kind;
}

const struct metric_kind *metric_kinds_find(const struct metric_kinds *kinds,
                                            const struct metric_kind *like)
{
    for (size_t i = 0; i < kinds->count; i++) {
        const struct metric_kind *kind = kinds->items[i];

        if (kind->unit == like->unit && kind->show == like->show && kind->stats == like->stats
            && strcmp(kind->key, like->key) == 0)
            return kind;
    }
    return NULL;
}

const struct metric_kind *metric_kinds_get(struct metric_kinds *kinds,
                                           const struct metric_kind *like)
{
    const struct metric_kind *found = metric_kinds_find(kinds, like);
    struct metric_kind *kind;

    if (found)
        return found;
    if (!metric_key_is_valid(like->key) || kinds->count == METRIC_KINDS_MAX)
        return NULL;
    vec_grow(&kinds->items, &kinds->cap, kinds->count + 1, sizeof(kind));
    kind = measured_new_kind(like);
    kinds->items[kinds->count++] = kind;
    return kind;
}

void metric_kinds_done(struct metric_kinds *kinds)
{
    for (size_t i = 0; i < kinds->count; i++)
        free(kinds->items[i]);
    free(kinds->items);
    *kinds = (struct metric_kinds){ .items = NULL };
}

/* ---- samples ---- */

void measured_done(struct measured *m)
{
    free(m->items);
    *m = (struct measured){ .items = NULL };
}

/* By key: a later version of an agent may say another unit of the same. */
static struct measured_item *measured_metric_set_find_item(const struct measured *m,
                                                           const char *key)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->items[i].kind->key == key || strcmp(m->items[i].kind->key, key) == 0)
            return &m->items[i];
    return NULL;
}

static struct measured_item *measured_metric_set_get(struct measured *m,
                                                     const struct metric_kind *kind)
{
    struct measured_item *item = measured_metric_set_find_item(m, kind->key);

    if (!item) {
        if (m->count == MEASURED_MAX)
            return NULL;
        vec_grow(&m->items, &m->cap, m->count + 1, sizeof(*m->items));
        item = &m->items[m->count++];
        *item = (struct measured_item){ .kind = kind };
    }
    item->kind = kind;
    return item;
}

int measured_add(struct measured *m, const struct metric_kind *kind, double value, double capacity,
                 int64_t at_usec)
{
    struct measured_item *item = measured_metric_set_get(m, kind);
    uint64_t before;

    if (!item)
        return -ENOSPC;
    before = item->metric.all.count;
    if (!metric_add(&item->metric, kind, value, capacity, at_usec))
        return 0;
    m->at_usec = at_usec;
    if (item->metric.all.count > before)
        metric_sum_add(&item->recent, metric_current(&item->metric, kind));
    if (!m->recent_usec)
        m->recent_usec = at_usec;
    return 0;
}

const struct measured_item *measured_find(const struct measured *m, const char *key)
{
    return measured_metric_set_find_item(m, key);
}

void measured_write(const struct measured *m, struct jsonw *w)
{
    jsonw_object_begin(w);
    for (size_t i = 0; i < m->count; i++) {
        if (!m->items[i].metric.at_usec)
            continue; /* restored, not measured since */
        jsonw_key(w, m->items[i].kind->key);
        metric_write(&m->items[i].metric, m->items[i].kind, w);
    }
    jsonw_object_end(w);
}

/* ---- rows ---- */

void measured_write_row(const struct measured *m, struct jsonw *w)
{
    jsonw_object_begin(w);
    for (size_t i = 0; i < m->count; i++) {
        const struct metric_kind *kind = m->items[i].kind;
        const struct metric_sum *sum = &m->items[i].recent;

        if (sum->count == 0)
            continue;
        jsonw_key(w, kind->key);
        jsonw_array_begin(w);
        jsonw_int(w, kind->unit);
        jsonw_int(w, kind->show);
        jsonw_int(w, kind->stats);
        jsonw_double(w, sum->min);
        jsonw_double(w, sum->max);
        jsonw_double(w, sum->sum);
        jsonw_int(w, (int64_t)sum->count);
        jsonw_array_end(w);
    }
    jsonw_object_end(w);
}

void measured_begin_row(struct measured *m)
{
    for (size_t i = 0; i < m->count; i++)
        m->items[i].recent = (struct metric_sum){ .count = 0 };
    m->recent_usec = 0;
}

static int64_t measured_metric_set_integer_at(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

static bool measured_metric_set_read_item(const char *key, const json_t *list,
                                          struct measured_row_item *ret)
{
    int64_t unit = measured_metric_set_integer_at(list, 0),
            show = measured_metric_set_integer_at(list, 1),
            stats = measured_metric_set_integer_at(list, 2);

    if (json_array_size(list) != 7 || unit < 0 || unit >= METRIC_UNITS || show < 0
        || show >= METRIC_SHOWS || (stats & ~(int64_t)METRIC_STATS_ALL)
        || measured_metric_set_integer_at(list, 6) <= 0)
        return false;
    *ret = (struct measured_row_item){
        .kind = { key, (enum metric_unit)unit, (enum metric_show)show, (unsigned)stats },
        .sum = { json_number_value(json_array_get(list, 3)),
                 json_number_value(json_array_get(list, 4)),
                 json_number_value(json_array_get(list, 5)),
                 (uint64_t)measured_metric_set_integer_at(list, 6) },
    };
    return true;
}

int measured_read_row(const char *text,
                      void (*take)(void *data, const struct measured_row_item *item), void *data)
{
    json_t *row = json_load_string(text, 0), *list;
    struct measured_row_item item;
    const char *key;
    int r = json_is_object(row) ? 0 : -EINVAL;

    json_object_foreach(row, key, list) {
        if (measured_metric_set_read_item(key, list, &item))
            take(data, &item);
        else
            r = -EINVAL;
    }
    json_decref(row);
    return r;
}

void measured_restore(struct measured *m, struct metric_kinds *kinds,
                      const struct measured_row_item *row)
{
    const struct metric_kind *kind = metric_kinds_get(kinds, &row->kind);
    struct measured_item *item = kind ? measured_metric_set_get(m, kind) : NULL;

    if (item)
        metric_sum_merge(&item->metric.all, &row->sum);
}
