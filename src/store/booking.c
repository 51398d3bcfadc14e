/* SPDX-License-Identifier: Apache-2.0 */
/* booking.c - rows of bookings */
#include "store/booking.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "store/transaction.h"

/* ---- writing ---- */

/* sql_refuse_fn: ids are random, so the name exists. */
static int booking_refuse_insert(const void *of, int r, struct aq_error *err)
{
    const struct booking *b = of;

    if (r != -EEXIST)
        return r;
    return aq_fail_field(err, EEXIST, "name",
                         "a reservation is already called '%s'; choose another name or cancel that "
                         "one",
                         b->name);
}

/* sql_refuse_fn */
static int booking_refuse_change(const void *of, int r, struct aq_error *err)
{
    const struct booking *b = of;

    return r == -ENODATA ? aq_fail(err, ESTALE,
                                   "the reservation '%s' has another version than %u; look again",
                                   b->name, (unsigned)b->version - 1)
                         : booking_refuse_insert(of, r, err);
}

/* The columns that change, in the order of both statements. */
static void booking_put(struct sql_stmt *q, const struct booking *b, const char *amounts,
                        const char *details)
{
    sql_put_text(q, b->name);
    sql_put_int(q, b->version);
    sql_put_int(q, b->starts_usec);
    sql_put_int(q, b->ends_usec);
    sql_put_text(q, amounts);
    sql_put_int(q, b->nodes);
    sql_put_int(q, b->release_unused_usec);
    sql_put_int(q, b->ignores_sessions);
    sql_put_text(q, details);
    sql_put_text(q, booking_is_finished(b) ? booking_state_name(b->outcome) : NULL);
    sql_put_time(q, b->finished_usec);
    sql_put_text(q, b->reason);
}

static int booking_write(struct store_tx *tx, const struct booking *b, bool is_new,
                         struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf details = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *amounts = slots_to_column(&b->amounts);
    struct jsonw w = jsonw_make(&details);
    char id[UUID_TEXT_MAX], creator[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        is_new ? "INSERT INTO bookings (name, version, starts_at, ends_at, amounts, nodes,"
                 " release_unused, ignores_sessions, details, outcome, finished_at, reason, id,"
                 " resource_group, creator_id, created_at)"
                 " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
               : "UPDATE bookings SET name = ?, version = ?, starts_at = ?, ends_at = ?,"
                 " amounts = ?, nodes = ?, release_unused = ?, ignores_sessions = ?, details = ?,"
                 " outcome = ?, finished_at = ?, reason = ?"
                 " WHERE id = ? AND version = ? AND finished_at IS NULL",
        &q, err);

    if (r < 0)
        return r;
    booking_write_details(b, &w);
    booking_put(q, b, amounts, details.data);
    sql_put_uuid(q, &b->id, id);
    if (is_new) {
        sql_put_text(q, b->resource_group);
        sql_put_uuid(q, &b->creator_id, creator);
        sql_put_int(q, b->created_usec);
        return sql_change_one(q, booking_refuse_insert, b, err);
    }
    sql_put_int(q, (int64_t)b->version - 1);
    return sql_change_one(q, booking_refuse_change, b, err);
}

int booking_insert(struct store_tx *tx, const struct booking *b, struct aq_error *err)
{
    return booking_write(tx, b, true, err);
}

int booking_change(struct store_tx *tx, const struct booking *b, struct aq_error *err)
{
    return booking_write(tx, b, false, err);
}

/* ---- reading ---- */

void booking_read_row(struct row *row, struct booking *ret)
{
    struct sql_stmt *q = row->q;
    const char *text;

    *ret = (struct booking){ .id = sql_get_uuid(q) };
    row_bounded(row, ret->name, sizeof(ret->name));
    ret->version = (uint32_t)sql_get_int(q);
    ret->resource_group = row_text(row);
    ret->starts_usec = sql_get_int(q);
    ret->ends_usec = sql_get_int(q);
    row_slots(row, &ret->amounts);
    ret->nodes = sql_get_int(q);
    ret->release_unused_usec = sql_get_int(q);
    ret->ignores_sessions = sql_get_int(q) != 0;
    text = sql_get_text(q);
    row->is_damaged |= !text || booking_parse_details(text, ret, NULL) < 0;
    ret->creator_id = sql_get_uuid(q);
    ret->created_usec = sql_get_int(q);
    text = sql_get_text(q);
    row->is_damaged |= text && booking_state_parse(text, &ret->outcome) < 0;
    ret->finished_usec = sql_get_int(q);
    ret->reason = row_text(row);
}

void booking_rows_done(struct booking_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        booking_done(&rows->items[i]);
    free(rows->items);
    *rows = (struct booking_rows){ .items = NULL };
}

int store_read_finished_bookings(struct store_tx *tx, const char *text, struct booking_rows *ret,
                                 struct aq_error *err)
{
    struct sql_stmt *q;
    struct row row = { .q = NULL };
    int r = sql_prepare(tx->db,
                        text ? "SELECT " BOOKING_COLUMNS " FROM bookings b"
                               " WHERE b.finished_at IS NOT NULL AND (b.id = ?1 OR b.name = ?1)"
                               " ORDER BY CASE WHEN b.id = ?1 THEN 0 ELSE 1 END,"
                               " b.finished_at DESC LIMIT 1"
                             : "SELECT " BOOKING_COLUMNS " FROM bookings b"
                               " WHERE b.finished_at IS NOT NULL"
                               " ORDER BY b.finished_at DESC, b.id LIMIT ?1",
                        &q, err);

    if (r < 0)
        return r;
    row.q = q;
    if (text)
        sql_put_text(q, text);
    else
        sql_put_int(q, BOOKING_FINISHED_MAX);
    while ((r = sql_step(q, err)) > 0) {
        vec_grow(&ret->items, &ret->cap, ret->count + 1, sizeof(*ret->items));
        booking_read_row(&row, &ret->items[ret->count++]);
        if ((r = row_check(&row, "bookings", err)) < 0)
            break;
    }
    sql_end(q);
    return r;
}
