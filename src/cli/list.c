#include "cli/list.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client.h"

#define LIMIT_DEFAULT 1000

static int adapt_all(json_t *rows, list_row_fn *adapt, struct aq_error *err)
{
    json_t *row;
    size_t i;

    json_array_foreach(rows, i, row)
        if (adapt && adapt(row) < 0)
            return aq_fail(err, ENOMEM, "list");
    return 0;
}

static int show_once(struct cli *cli, const char *path, const struct list_opts *opts,
                     const struct column *columns, list_row_fn *adapt, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    size_t limit = opts->limit.is_set ? (size_t)opts->limit.value : LIMIT_DEFAULT, total = 0;
    bool redraw = opts->watch.is_set && isatty(STDOUT_FILENO);
    json_t *rows = NULL;
    int r = cli_call_list(cli, path, limit, &rows, &total, err);

    if (r < 0)
        return r;
    cli->output.now_usec = clock_realtime_usec();
    if (redraw)
        strbuf_adds(&out, "\033[H\033[2J");
    r = adapt_all(rows, adapt, err);
    if (r == 0)
        r = output_list(&cli->output, columns, rows, &out, err);
    if (r == 0)
        r = cli_print(&out, err);
    if (r == 0 && json_array_size(rows) < total)
        cli_note(cli, "%zu of %zu shown; --limit 0 shows all", json_array_size(rows), total);
    json_decref(rows);
    return r;
}

int list_show(struct cli *cli, const char *path, const struct list_opts *opts,
              const struct column *columns, list_row_fn *adapt, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf full = STRBUF_INIT;
    struct timespec pause = { opts->watch.value / USEC_PER_SEC,
                              (long)(opts->watch.value % USEC_PER_SEC) * 1000 };
    int r;

    strbuf_adds(&full, path);
    cli_path_query(&full, "filter", opts->filter);
    cli_path_query(&full, "order", opts->order);
    for (;;) {
        r = show_once(cli, full.data, opts, columns, adapt, err);
        if (r < 0 || !opts->watch.is_set)
            return r;
        (void)nanosleep(&pause, NULL);
    }
}

int record_print(struct cli *cli, const struct column *columns, const json_t *row,
                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = output_record(&cli->output, columns, row, &out, err);

    return r < 0 ? r : cli_print(&out, err);
}

int record_show(struct cli *cli, const char *path, const struct column *columns,
                list_row_fn *adapt, json_t **ret_row, struct aq_error *err)
{
    json_t *row = NULL;
    int r = cli_call(cli, METHOD_GET, path, NULL, &row, err);

    if (r < 0)
        return r;
    if (adapt && adapt(row) < 0)
        r = aq_fail(err, ENOMEM, "record");
    if (r == 0)
        r = record_print(cli, columns, row, err);
    if (r == 0 && ret_row)
        *ret_row = json_incref(row);
    json_decref(row);
    return r;
}
