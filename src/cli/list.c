/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that show lists and records of the manager. */
#include "cli/list.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/output/row_filter.h"

#define LIMIT_DEFAULT 1000

static int list_adapt_rows(json_t *rows, list_row_fn *adapt, struct aq_error *err)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
        if (adapt && adapt(row) < 0)
            return aq_fail_oom(err);
    return 0;
}

/* The ids alone, as "docker ps -q" has them; names where there are no ids. */
static void list_choose_ids(struct cli *cli, const struct column *columns)
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
};

static void list_source_done(struct list_source *source)
{
    strbuf_done(&source->path);
}

static int list_show_once(struct cli *cli, const struct list_source *source,
                          const struct list_opts *opts, const struct column *columns,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    size_t limit = opts->limit.is_set ? (size_t)opts->limit.value : LIMIT_DEFAULT, total = 0;
    bool redraw = opts->watch.is_set && isatty(STDOUT_FILENO), filters = list_has_own_filter(opts);
    json_t *rows = NULL;
    int r = cli_call_list(cli, source->path.data, source->page, filters ? 0 : limit, &rows, &total,
                          err);

    if (r < 0)
        return r;
    cli->output.now_usec = clock_realtime_usec();
    if (redraw)
        strbuf_adds(&out, "\033[H\033[2J");
    r = list_adapt_rows(rows, source->adapt, err);
    if (r == 0 && filters)
        r = list_filter_rows(cli, opts, columns, limit, rows, &total, err);
    if (r == 0)
        r = output_list(&cli->output, columns, rows, &out, err);
    if (r == 0)
        r = cli_print(&out, err);
    if (r == 0)
        list_note(cli, opts, json_array_size(rows), total);
    json_decref(rows);
    return r;
}

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
    bool is_short = true;
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
    }
    if (!strbuf_ok(&fields))
        return aq_fail_oom(err);
    cli_path_query(&source->path, "fields", fields.data);
    source->page = is_short ? CLI_PAGE_OF_SHORT_ROWS : CLI_PAGE;
    return 0;
}

static int list_run(struct cli *cli, const struct list_source *source, const struct list_opts *opts,
                    const struct column *columns, struct aq_error *err)
{
    struct timespec pause = { opts->watch.value / USEC_PER_SEC,
                              (long)(opts->watch.value % USEC_PER_SEC) * 1000 };
    int r;

    if (!strbuf_ok(&source->path))
        return aq_fail_oom(err);
    for (;;) {
        r = list_show_once(cli, source, opts, columns, err);
        if (r < 0 || !opts->watch.is_set)
            return r;
        (void)nanosleep(&pause, NULL);
    }
}

int list_show(struct cli *cli, const char *path, const struct list_opts *opts,
              const struct column *columns, struct aq_error *err)
{
    AQ_CLEANUP(list_source_done) struct list_source source;

    list_source_init(&source, path, opts);
    list_choose_ids(cli, columns);
    return list_run(cli, &source, opts, columns, err);
}

int list_show_fields(struct cli *cli, const char *path, const struct list_opts *opts,
                     const struct column *columns, list_row_fn *adapt, struct aq_error *err)
{
    AQ_CLEANUP(list_source_done) struct list_source source;
    int r;

    list_source_init(&source, path, opts);
    source.adapt = adapt;
    list_choose_ids(cli, columns);
    r = list_source_add_fields(cli, opts, columns, &source, err);
    return r < 0 ? r : list_run(cli, &source, opts, columns, err);
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
    if (adapt && adapt(row) < 0)
        r = aq_fail_oom(err);
    if (r == 0)
        r = record_print(cli, columns, row, err);
    if (r == 0 && ret_row)
        *ret_row = json_incref(row);
    json_decref(row);
    return r;
}
