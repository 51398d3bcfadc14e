/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that show lists and records of the manager. */
#include "cli/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/client.h"
#include "cli/output/row_filter.h"
#include "cli/output/table.h"

#define LIMIT_DEFAULT 1000

void list_choose_ids(struct cli *cli, const struct column *columns)
{
    const struct column *id = output_find_column(columns, "id", 2);

    if (!cli->globals.quiet || cli->globals.format || cli->globals.columns)
        return;
    cli->output.format = OUTPUT_NAME;
    cli->output.columns = id ? id->key : NULL;
}

/* Keep those that --filter wants, at most 'limit' of them; all that match are *ret_total. */
static int list_filter_rows(struct cli *cli, const struct list_opts *opts,
                            const struct column *columns, size_t limit, json_t *rows,
                            size_t *ret_total, struct aq_error *err)
{
    int r = row_filter_apply(&cli->output, columns, opts->filters.items, opts->filters.count, rows,
                             err);

    *ret_total = json_array_size(rows);
    while (limit && json_array_size(rows) > limit)
        (void)json_array_remove(rows, json_array_size(rows) - 1);
    return r;
}

static void list_note(const struct cli *cli, const struct list_opts *opts, size_t shown,
                      size_t total)
{
    if (shown < total)
        cli_note(cli, "%zu of %zu shown; --limit 0 shows all", shown, total);
    else if (shown == 0 && opts->filters.count)
        cli_note(cli, "nothing matches --filter");
    else if (shown == 0 && cli->verb->if_empty && output_is_human(&cli->output))
        cli_note(cli, "%s", cli->verb->if_empty);
}

static bool list_has_own_filter(const struct list_opts *opts)
{
    for (size_t i = 0; i < opts->filters.count; i++)
        if (row_filter_is_ours(opts->filters.items[i]))
            return true;
    return false;
}

/* What to ask the manager for, as often as it is shown. */
struct list_source {
    struct strbuf path;
    size_t page;
    list_row_fn *adapt;
    list_more_fn *more;
    const void *data; /* of 'more' */
};

static void list_source_done(struct list_source *source)
{
    strbuf_done(&source->path);
}

/* ---- rows as they come ---- */

struct list_stream {
    struct cli *cli;
    struct table *table;
    size_t shown;
    /* of the page that comes */
    size_t at; /* up to here its text is taken */
    size_t rows, total;
    bool is_in_items;
};

enum list_step { LIST_STEP, LIST_END, LIST_CUT, LIST_BAD };

/* A row, from where the array has a bracket or comma. What is cut is looked at again. */
static enum list_step list_take_row(struct list_stream *stream, struct json_scan *scan)
{
    bool is_row = json_scan_item(scan);
    struct json_span row = is_row ? json_scan_value(scan) : (struct json_span){ NULL, 0 };

    if (scan->failed)
        return LIST_CUT;
    stream->is_in_items = is_row;
    stream->rows += is_row;
    return !is_row || table_add_text(stream->table, row) ? LIST_STEP : LIST_BAD;
}

static enum list_step list_take_member(struct list_stream *stream, struct json_scan *scan)
{
    struct json_span key, value;

    if (!json_scan_member(scan, &key))
        return scan->failed ? LIST_CUT : LIST_END;
    if (json_span_is(key, "items")) {
        stream->is_in_items = true;
        return LIST_STEP;
    }
    value = json_scan_value(scan);
    if (scan->failed || scan->at == scan->end)
        return LIST_CUT; /* a number may go on */
    if (json_span_is(key, "total"))
        stream->total = (size_t)strtoull(value.text, NULL, 10);
    return LIST_STEP;
}

static int list_take_page(void *data, const char *text, size_t len, bool is_whole, size_t *ret_rows,
                          size_t *ret_total, struct aq_error *err)
{
    struct list_stream *stream = data;
    enum list_step step = LIST_STEP;

    if (stream->at == 0)
        stream->cli->output.now_usec = clock_realtime_usec();
    while (step == LIST_STEP) {
        struct json_scan scan = json_scan_make(text + stream->at, len - stream->at);

        step = stream->is_in_items ? list_take_row(stream, &scan) : list_take_member(stream, &scan);
        if (step == LIST_STEP)
            stream->at = (size_t)(scan.at - text);
    }
    if (step == LIST_BAD || (is_whole && step == LIST_CUT))
        return cli_fail_answer(stream->cli, "a row", err);
    if (!is_whole)
        return 0;
    *ret_rows = stream->rows;
    *ret_total = stream->total;
    stream->shown += stream->rows;
    stream->at = stream->rows = 0;
    stream->is_in_items = false;
    return 0;
}

/* Rows that nothing is done with but to show them are never a tree. */
static int list_write_stream(struct cli *cli, const struct list_source *source, size_t limit,
                             const struct column *columns, struct strbuf *out, size_t *ret_shown,
                             size_t *ret_total, struct aq_error *err)
{
    struct list_stream stream = { .cli = cli };
    int r = output_begin_table(&cli->output, columns, &stream.table, err);

    if (r == 0)
        r = cli_call_pages(cli, source->path.data, source->page, limit, list_take_page, &stream,
                           ret_total, err);
    if (r == 0)
        table_end(stream.table, out);
    table_free(stream.table);
    *ret_shown = stream.shown;
    return r;
}

/* ---- all rows, then what is shown of them ---- */

static int list_write_rows(struct cli *cli, const struct list_source *source,
                           const struct list_opts *opts, size_t limit, const struct column *columns,
                           const json_t *first, struct strbuf *out, size_t *ret_shown,
                           size_t *ret_total, struct aq_error *err)
{
    bool filters = list_has_own_filter(opts);
    json_t *rows = NULL, *row;
    size_t i;
    int r = cli_call_list(cli, source->path.data, source->page, filters ? 0 : limit, &rows,
                          ret_total, err);

    if (r < 0)
        return r;
    cli->output.now_usec = clock_realtime_usec();
    json_array_foreach(rows, i, row)
        if (source->adapt)
            source->adapt(row);
    for (i = json_array_size(first); i-- > 0; ++*ret_total)
        (void)json_array_insert(rows, 0, json_array_get(first, i));
    if (filters)
        r = list_filter_rows(cli, opts, columns, limit, rows, ret_total, err);
    if (r == 0)
        r = output_list(&cli->output, columns, rows, out, err);
    *ret_shown = json_array_size(rows);
    json_decref(rows);
    return r;
}

static int list_show_once(struct cli *cli, const struct list_source *source,
                          const struct list_opts *opts, const struct column *columns,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    size_t limit = opts->limit.is_set ? (size_t)opts->limit.value : LIMIT_DEFAULT;
    size_t shown = 0, total = 0;
    json_t *first = NULL;
    int r = source->more ? source->more(cli, source->data, &first, err) : 0;

    if (r == 0 && output_is_stream(&cli->output) && !source->adapt && !json_array_size(first)
        && !list_has_own_filter(opts))
        r = list_write_stream(cli, source, limit, columns, &out, &shown, &total, err);
    else if (r == 0)
        r = list_write_rows(cli, source, opts, limit, columns, first, &out, &shown, &total, err);
    json_decref(first);
    if (r == 0 && opts->watch.is_set && isatty(STDOUT_FILENO))
        (void)fs_write_all(STDOUT_FILENO, "\033[H\033[2J", 7); /* before: the rows are cleaned */
    if (r == 0)
        r = cli_print(&out, err);
    if (r == 0)
        list_note(cli, opts, shown, total);
    return r;
}

/* ---- what is asked for ---- */

/* What is not ours of --filter, as one expression in the manager's language. */
static void list_write_filter(const struct list_opts *opts, struct strbuf *out)
{
    for (size_t i = 0; i < opts->filters.count; i++)
        if (!row_filter_is_ours(opts->filters.items[i]))
            strbuf_addf(out, "%s(%s)", out->len ? " & " : "", opts->filters.items[i]);
}

static void list_source_init(struct list_source *source, const char *path,
                             const struct list_opts *opts)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf filter = STRBUF_INIT;

    *source = (struct list_source){ .path = STRBUF_INIT, .page = CLI_PAGE };
    list_write_filter(opts, &filter);
    strbuf_adds(&source->path, path);
    cli_path_query(&source->path, "filter", filter.len ? filter.data : NULL);
    cli_path_query(&source->path, "order", opts->order);
}

static int list_source_add_fields(const struct cli *cli, const struct list_opts *opts,
                                  const struct column *columns, struct list_source *source,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf fields = STRBUF_INIT;
    const struct column *column;
    bool is_short = true, is_nested = false;
    uint64_t needs;
    int r = output_list_needs(&cli->output, columns, &needs, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < opts->filters.count; i++)
        if ((column = row_filter_column(columns, opts->filters.items[i])))
            needs |= UINT64_C(1) << (column - columns);
    for (size_t i = 0; columns[i].title; i++) {
        if (!(needs >> i & 1))
            continue;
        strbuf_addf(&fields, "%s%s", fields.len ? "," : "", columns[i].key);
        is_short = is_short && !(columns[i].flags & COLUMN_IS_LONG);
        is_nested = is_nested || columns[i].flags & COLUMN_IS_NESTED;
    }
    cli_path_query(&source->path, "fields", fields.data);
    if (!is_nested)
        source->adapt = NULL;
    source->page = is_short ? CLI_PAGE_OF_SHORT_ROWS : CLI_PAGE;
    return 0;
}

static int list_run(struct cli *cli, const struct list_source *source, const struct list_opts *opts,
                    const struct column *columns, struct aq_error *err)
{
    struct timespec pause = { opts->watch.value / USEC_PER_SEC,
                              (long)(opts->watch.value % USEC_PER_SEC) * 1000 };
    int r;

    for (;;) {
        r = list_show_once(cli, source, opts, columns, err);
        if (r < 0 || !opts->watch.is_set)
            return r;
        (void)nanosleep(&pause, NULL);
    }
}

int list_show_adapted(struct cli *cli, const char *path, const struct list_opts *opts,
                      const struct column *columns, list_row_fn *adapt, struct aq_error *err)
{
    AQ_CLEANUP(list_source_done) struct list_source source;

    list_source_init(&source, path, opts);
    source.adapt = adapt;
    list_choose_ids(cli, columns);
    return list_run(cli, &source, opts, columns, err);
}

int list_show(struct cli *cli, const char *path, const struct list_opts *opts,
              const struct column *columns, struct aq_error *err)
{
    return list_show_adapted(cli, path, opts, columns, NULL, err);
}

int list_show_fields(struct cli *cli, const char *path, const struct list_opts *opts,
                     const struct column *columns, list_row_fn *adapt, list_more_fn *more,
                     const void *data, struct aq_error *err)
{
    AQ_CLEANUP(list_source_done) struct list_source source;
    int r;

    list_source_init(&source, path, opts);
    source.adapt = adapt;
    source.more = more;
    source.data = data;
    list_choose_ids(cli, columns);
    r = list_source_add_fields(cli, opts, columns, &source, err);
    return r < 0 ? r : list_run(cli, &source, opts, columns, err);
}

int list_print(struct cli *cli, const struct column *columns, const json_t *rows,
               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = output_list(&cli->output, columns, rows, &out, err);

    return r < 0 ? r : cli_print(&out, err);
}

int list_show_whole(struct cli *cli, const char *path, const char *items,
                    const struct column *columns, struct aq_error *err)
{
    json_auto_t *answer = NULL;
    int r = cli_call(cli, METHOD_GET, path, NULL, &answer, err);

    return r < 0 ? r : list_print(cli, columns, json_object_get(answer, items), err);
}

json_t *list_find(const json_t *rows, const char *member, const char *text)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        const char *known = json_string_value(json_object_get(row, member));

        if (known && text && strcmp(known, text) == 0)
            return row;
    }
    return NULL;
}

bool list_note_empty(const struct cli *cli, const json_t *rows)
{
    if (json_array_size(rows) || !output_is_human(&cli->output))
        return false;
    cli_note(cli, "%s", cli->verb->if_empty);
    return true;
}

int record_print(struct cli *cli, const struct column *columns, const json_t *row,
                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = output_record(&cli->output, columns, row, &out, err);

    return r < 0 ? r : cli_print(&out, err);
}

int record_show(struct cli *cli, const char *path, const struct column *columns, list_row_fn *adapt,
                json_t **ret_row, struct aq_error *err)
{
    json_t *row = NULL;
    int r = cli_call(cli, METHOD_GET, path, NULL, &row, err);

    if (r < 0)
        return r;
    if (adapt)
        adapt(row);
    r = record_print(cli, columns, row, err);
    if (r == 0 && ret_row)
        *ret_row = json_incref(row);
    json_decref(row);
    return r;
}
