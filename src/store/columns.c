/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - from columns to members and back */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "store/transaction.h"

char *slots_to_column(const struct slots *s)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    for (size_t i = 0; i < s->count; i++)
        jsonw_member_int(&w, s->items[i].name, s->items[i].amount);
    jsonw_object_end(&w);
    return strbuf_steal(&out);
}

static void columns_add_slot(struct row *row, struct slots *s, const char *name,
                             const json_t *amount)
{
    const char *interned = slot_name_intern(name, strlen(name));

    row->is_damaged |= !interned || !json_is_integer(amount)
                       || slots_set(s, interned, json_integer_value(amount)) < 0;
}

static void columns_move_to_arena(struct row *row, struct slots *s)
{
    struct slot *items = arena_array(row->arena, s->count, sizeof(*items));

    memcpy(items, s->items, s->count * sizeof(*items));
    free(AQ_TAKE(s->items));
    s->items = items;
    s->cap = s->count;
}

/* For this row and those that follow. */
static void columns_share(struct row *row, const char *text, struct slots *s)
{
    columns_move_to_arena(row, s);
    row->slots_text = arena_strdup(row->arena, text);
    row->slots = *s;
}

void row_slots(struct row *row, struct slots *ret)
{
    const char *text = sql_get_text(row->q), *name;
    struct slots s = { 0 };
    json_t *object, *amount;

    *ret = s;
    if (!text || strcmp(text, "{}") == 0)
        return;
    if (row->slots_text && strcmp(text, row->slots_text) == 0) {
        *ret = row->slots;
        return;
    }
    object = json_load_string(text, 0);
    row->is_damaged |= !json_is_object(object);
    json_object_foreach(object, name, amount)
        columns_add_slot(row, &s, name, amount);
    json_decref(object);
    if (row->arena && s.count)
        columns_share(row, text, &s);
    *ret = s;
}

char *row_text(struct row *row)
{
    const char *text = sql_get_text(row->q);

    return text && row->arena ? arena_strdup(row->arena, text) : aq_strdup(text);
}

static struct session_spec *columns_keep_spec(const struct row *row,
                                              const struct session_spec *spec, bool *ret_is_short)
{
    struct session_spec *kept;

    *ret_is_short = row->cuts_specs && session_spec_is_long(spec);
    if (*ret_is_short)
        return session_spec_copy_short(spec);
    if (!row->arena)
        return session_spec_copy(spec);
    kept = arena_alloc(row->arena, sizeof(*kept));
    *kept = *spec;
    return kept;
}

struct session_spec *row_spec(struct row *row, bool *ret_is_short)
{
    const char *text = sql_get_text(row->q);
    AQ_CLEANUP(arena_donep) struct arena scratch = ARENA_INIT;
    struct session_spec spec;

    if (!text)
        return NULL;
    if (session_spec_parse(text, row->arena ? row->arena : &scratch, &spec, NULL) < 0) {
        row->is_damaged = true;
        return NULL;
    }
    return columns_keep_spec(row, &spec, ret_is_short);
}

void row_bounded(struct row *row, char *ret, size_t size)
{
    const char *text = sql_get_text(row->q);
    size_t len = text ? strnlen(text, size) : 0;

    row->is_damaged |= len == size;
    len = AQ_MIN(len, size - 1);
    memcpy(ret, text ? text : "", len);
    ret[len] = '\0';
}

int row_check(const struct row *row, const char *what, struct aq_error *err)
{
    if (row->is_damaged)
        return aq_fail(err, EUCLEAN,
                       "the database has a row of %s that this program did not "
                       "write; was it changed by hand?",
                       what);
    return 0;
}
