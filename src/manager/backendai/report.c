/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what became of the rows, as JSON */
#include "manager/backendai/rows.h"

static const char *const backendai_outcomes[] = {
    [BACKENDAI_TAKEN] = "taken",
    [BACKENDAI_CHANGED] = "changed",
    [BACKENDAI_EXISTS] = "exists",
    [BACKENDAI_LEFT] = "left",
};

static void backendai_count_table(const struct backendai_rows *rows,
                                  size_t ret[AQ_COUNT(backendai_outcomes)])
{
    for (size_t i = 0; i < rows->count; i++)
        ret[rows->items[i].outcome]++;
}

size_t backendai_count_taken(const struct backendai_import *import)
{
    size_t counts[AQ_COUNT(backendai_outcomes)] = { 0 };

    for (size_t i = 0; i < BACKENDAI_TABLE_COUNT; i++)
        backendai_count_table(&import->tables[i], counts);
    return counts[BACKENDAI_TAKEN] + counts[BACKENDAI_CHANGED];
}

static void backendai_write_sums(const struct backendai_import *import, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < BACKENDAI_TABLE_COUNT; i++) {
        size_t counts[AQ_COUNT(backendai_outcomes)] = { 0 };

        if (!import->tables[i].count)
            continue;
        backendai_count_table(&import->tables[i], counts);
        jsonw_object_begin(w);
        jsonw_member_str(w, "table", backendai_kinds[i].table);
        jsonw_member_int(w, "rows", (int64_t)import->tables[i].count);
        for (size_t k = 0; k < AQ_COUNT(backendai_outcomes); k++)
            jsonw_member_int(w, backendai_outcomes[k], (int64_t)counts[k]);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void backendai_write_row(const char *table, const struct backendai_row *row, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "table", table);
    jsonw_member_int(w, "line", row->line);
    jsonw_member_str(w, "name", row->label);
    jsonw_member_str(w, "status", backendai_outcomes[row->outcome]);
    jsonw_member_str(w, "note", row->note);
    jsonw_object_end(w);
}

void backendai_write_report(const struct backendai_import *import, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_bool(w, "dry_run", import->params.dry_run);
    jsonw_key(w, "tables");
    backendai_write_sums(import, w);
    jsonw_key(w, "items");
    jsonw_array_begin(w);
    for (size_t i = 0; i < BACKENDAI_TABLE_COUNT; i++)
        for (size_t k = 0; k < import->tables[i].count; k++)
            backendai_write_row(backendai_kinds[i].table, &import->tables[i].items[k], w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}
