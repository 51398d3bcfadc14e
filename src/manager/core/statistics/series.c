/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - rows of what was used, written a few at a time
 *
 * Every quarter of an hour of the wall clock all that was gathered becomes
 * rows, which wait here; each second a small piece of them goes to the store,
 * one piece at a time, so that commits of sessions hardly notice. What does
 * not go out in time is dropped rather than let it grow.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"
#include "store/series.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"
#include "manager/core/statistics/series.h"

#define ROW_USEC (900 * USEC_PER_SEC)
#define ROWS_AT_A_TIME 200
#define WAITING_MAX 200000

struct series_piece {
    struct core *core;
    struct series_row *rows; /* their data is owned */
    size_t count;
};

static void series_piece_free(struct series_piece *piece)
{
    for (size_t i = 0; i < piece->count; i++)
        free((char *)(uintptr_t)piece->rows[i].data);
    free(piece->rows);
    free(piece);
}

/* ---- gathering ---- */

static void series_add_row(struct core *core, const char *owner, struct measured *m)
{
    struct statistics_keeper *keeper = &core->statistics;
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct series_row *row;

    if (!m->recent_usec)
        return;
    measured_write_row(m, &w);
    if (keeper->waiting_count == WAITING_MAX) {
        strbuf_done(&text);
        keeper->dropped++;
    } else {
        vec_grow(&keeper->waiting, &keeper->waiting_cap, keeper->waiting_count + 1,
                 sizeof(*keeper->waiting));
        row = &keeper->waiting[keeper->waiting_count++];
        *row = (struct series_row){ .at_usec = m->recent_usec,
                                    .until_usec = m->at_usec,
                                    .data = strbuf_steal(&text) };
        (void)snprintf(row->owner, sizeof(row->owner), "%s", owner);
    }
    measured_begin_row(m);
}

void series_end_kernel(struct core *core, const struct kernel *k, struct measured *m)
{
    char id[UUID_TEXT_MAX];

    if (m)
        series_add_row(core, uuid_format(&k->id, id), m);
}

static void series_gather(struct core *core)
{
    char owner[SERIES_OWNER_MAX];

    LIST_FOREACH(link, &core->sessions) {
        struct session_entry *l = LIST_ENTRY(link, struct session_entry, all_link);

        for (size_t i = 0; i < l->s.kernel_count; i++)
            series_end_kernel(core, &l->s.kernels[i], l->kernels[i].measured);
    }
    for (size_t i = 0; i < core->agent_count; i++) {
        struct agent_entry *a = core->agents_sorted[i];

        (void)snprintf(owner, sizeof(owner), "agent:%s", a->a.id);
        if (a->measured)
            series_add_row(core, owner, &a->measured->node);
    }
    if (core->statistics.dropped)
        log_warning("%zu rows of statistics are not kept: the store is too slow for so many",
                    core->statistics.dropped);
    core->statistics.dropped = 0;
}

/* ---- writing ---- */

static int series_write_piece(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct series_piece *piece = data;
    int r = 0;

    for (size_t i = 0; r >= 0 && i < piece->count; i++)
        r = series_add(tx, &piece->rows[i], err);
    return AQ_MIN(r, 0);
}

static void series_on_written(void *data, int r, const struct aq_error *err)
{
    struct series_piece *piece = data;
    struct statistics_keeper *keeper = &piece->core->statistics;

    keeper->is_writing = false;
    if (r < 0)
        log_warning("statistics are not kept: %s", err->text);
    series_piece_free(piece);
}

/* The newest rows first: it is the end of the list that is cheap to take. */
static void series_write_some(struct core *core, size_t max)
{
    struct statistics_keeper *keeper = &core->statistics;
    size_t count = AQ_MIN(keeper->waiting_count, max);
    struct series_piece *piece = aq_alloc(sizeof(*piece));
    struct series_row *rows = aq_alloc_array(count + 1, sizeof(*rows));

    *piece = (struct series_piece){ .core = core, .rows = rows, .count = count };
    keeper->waiting_count -= count;
    memcpy(rows, keeper->waiting + keeper->waiting_count, count * sizeof(*rows));
    keeper->is_writing = true;
    store_write(core->store, series_write_piece, series_on_written, piece);
}

void series_tick(struct core *core)
{
    struct statistics_keeper *keeper = &core->statistics;
    int64_t period = clock_realtime_usec() / ROW_USEC;

    if (keeper->period && period != keeper->period)
        series_gather(core);
    keeper->period = period;
    if (!keeper->is_writing && keeper->waiting_count)
        series_write_some(core, ROWS_AT_A_TIME);
}

void series_stop(struct core *core)
{
    series_gather(core);
    if (core->statistics.waiting_count)
        series_write_some(core, SIZE_MAX);
}

void series_free(struct core *core)
{
    struct statistics_keeper *keeper = &core->statistics;

    for (size_t i = 0; i < keeper->waiting_count; i++)
        free((char *)(uintptr_t)keeper->waiting[i].data);
    free(keeper->waiting);
    metric_kinds_done(&keeper->kinds);
}

/* ---- the beginning ---- */

struct restored {
    struct core *core;
    struct measured *to;
};

static void series_restore_item(void *data, const struct measured_row_item *item)
{
    const struct restored *restored = data;

    measured_restore(restored->to, &restored->core->statistics.kinds, item);
}

/* A row that cannot be read costs only itself. */
static int series_restore_row(void *data, const struct series_row *row)
{
    struct core *core = data;
    const struct kernel *k;
    struct kernel_entry *f;
    struct uuid id;

    if (uuid_parse(row->owner, &id) < 0 || !(k = core_find_kernel(core, &id)) || !row->data)
        return 0;
    f = &session_entry_of(k->session)->kernels[k->rank];
    if (!f->measured)
        f->measured = aq_alloc(sizeof(*f->measured));
    (void)measured_read_row(row->data, series_restore_item,
                            &(struct restored){ .core = core, .to = f->measured });
    return 0;
}

static int core_series_read_live(struct store_tx *tx, void *data, struct aq_error *err)
{
    return series_read_live(tx, series_restore_row, data, err);
}

int series_restore(struct core *core, struct aq_error *err)
{
    return store_call(core->store, core_series_read_live, core, err);
}
