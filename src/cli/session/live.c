/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - an answer of the manager that is fetched again and again, on the whole terminal */
#include "cli/session/live.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/table.h"

#define ANSWER_MAX (64 << 20)
#define ANSWER_MSEC 10000 /* a manager that has stopped keeps its connections */
#define COLUMNS_MAX 16
#define COLUMNS_KEPT 4 /* names are cut rather than that one of these is left out */

int live_open(struct live *l, struct cli *cli, const char *path, int64_t interval_usec,
              struct aq_error *err)
{
    int r;

    *l = (struct live){ .cli = cli,
                        .path = STRBUF_INIT,
                        .interval_usec = interval_usec,
                        .next_usec = clock_monotonic_usec() + interval_usec };
    strbuf_adds(&l->path, path);
    r = cli_client_open(cli, &l->loop, NULL, err);
    return r < 0 ? r : screen_open(&l->screen, err);
}

void live_close(struct live *l)
{
    screen_close(&l->screen);
    exchange_cancel(l->asking);
    json_decref(l->answer);
    strbuf_done(&l->path);
}

/* ---- requests ---- */

static void live_on_response(void *data, const struct client_response *response,
                             const struct aq_error *err)
{
    struct live *l = data;
    json_error_t where;

    l->asking = NULL;
    l->is_over = true;
    l->next_usec = clock_monotonic_usec() + l->interval_usec;
    if (!response) {
        l->err = *err;
        (void)cli_fail_connection(l->cli, &l->err);
    } else if (response->head->status != 200) {
        (void)cli_fail_status(l->cli, response->head->status, response->body, response->body_len,
                              &l->err);
    } else {
        json_decref(l->answer);
        l->answer = json_loadb(response->body, response->body_len, 0, &where);
        l->err = (struct aq_error){ .code = 0 };
        if (!l->answer)
            (void)aq_fail(&l->err, EPROTO, "the manager's answer is not JSON (%s)", where.text);
    }
}

static void live_send(struct live *l)
{
    const struct client_request request = { .method = METHOD_GET,
                                            .body_max = ANSWER_MAX,
                                            .answer_msec = ANSWER_MSEC };

    l->is_wanted = false;
    l->next_usec = clock_monotonic_usec() + l->interval_usec;
    uv_update_time(l->loop); /* it stands still while we wait for keys */
    (void)cli_begin_fetch(l->cli, l->path.data, request, live_on_response, l, &l->asking, &l->err);
}

void live_ask(struct live *l, const char *path)
{
    exchange_cancel(l->asking);
    l->asking = NULL;
    strbuf_clear(&l->path);
    strbuf_adds(&l->path, path);
    json_decref(live_take_answer(l));
    l->is_wanted = true;
}

/* The loop knows no more of time than its requests. */
static int64_t live_deadline(const struct live *l)
{
    int64_t now = clock_monotonic_usec();
    int msec;

    if (!l->asking)
        return l->is_paused ? INT64_MAX : l->next_usec;
    msec = uv_backend_timeout(l->loop);
    return msec < 0 ? INT64_MAX : now + msec * USEC_PER_MSEC;
}

uint32_t live_wait(struct live *l)
{
    for (;;) {
        bool is_due = !l->is_paused && clock_monotonic_usec() >= l->next_usec;
        uint32_t key;

        if (!l->asking && (is_due || l->is_wanted)) {
            live_send(l);
            l->is_over = !l->asking;
        }
        (void)uv_run(l->loop, UV_RUN_NOWAIT);
        if (l->is_over) {
            l->is_over = false;
            return KEY_NONE;
        }
        key = screen_wait(&l->screen, uv_backend_fd(l->loop), live_deadline(l));
        if (key)
            return key;
    }
}

json_t *live_take_answer(struct live *l)
{
    return AQ_TAKE(l->answer);
}

/* ---- drawing ---- */

struct output live_output(const struct live *l)
{
    struct output o = l->cli->output;

    o.width = l->screen.columns;
    o.is_screen = true;
    return o;
}

/* On one line, and nothing that steers the terminal. */
static void live_write_failure(const struct live *l, struct strbuf *out)
{
    static const struct column column = { "", "", COLUMN_TEXT, 0 };
    json_t *text = json_string(l->err.text);

    strbuf_adds(out, l->cli->output.colour ? "\033[31m! " : "! ");
    cell_write(&l->cli->output, &column, text, out);
    strbuf_adds(out, l->cli->output.colour ? TABLE_COLOUR_END : "");
    json_decref(text);
}

void live_draw(struct live *l, struct strbuf *text, const char *keys)
{
    int rows = 0;

    for (size_t i = 0; i < text->len; i++)
        if (text->data[i] == '\n' && ++rows == l->screen.rows - 1)
            strbuf_truncate(text, i + 1);
    for (; rows < l->screen.rows - 1; rows++)
        strbuf_addc(text, '\n');
    if (l->err.code)
        live_write_failure(l, text);
    else
        strbuf_adds(text, keys);
    screen_draw(&l->screen, text);
}

static size_t live_widest(const struct strbuf *text)
{
    size_t widest = 0, width;

    for (const char *at = text->data, *end; *at; at = *end ? end + 1 : end) {
        end = strchrnul(at, '\n');
        width = utf8_width(at, (size_t)(end - at));
        widest = AQ_MAX(widest, width);
    }
    return widest;
}

static bool live_fits(const struct output *o, const struct column *const *columns, size_t count,
                      const json_t *rows, int width)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf trial = STRBUF_INIT;
    struct output plain = *o;

    plain.colour = false;
    plain.width = width;
    table_write(&plain, columns, count, rows, &trial);
    return live_widest(&trial) <= (size_t)o->width;
}

void live_write_table(const struct output *o, const struct column *columns, const json_t *rows,
                      struct strbuf *out)
{
    const struct column *chosen[COLUMNS_MAX];
    size_t count = 0;

    for (; count < COLUMNS_MAX && columns[count].title; count++)
        chosen[count] = &columns[count];
    while (count > COLUMNS_KEPT && !live_fits(o, chosen, count, rows, INT_MAX))
        count--;
    while (count > 1 && !live_fits(o, chosen, count, rows, o->width))
        count--;
    table_write(o, chosen, count, rows, out);
}
