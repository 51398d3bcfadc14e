/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - an answer of the manager that is fetched again and again, on the whole terminal
 *
 * Requests run beside the keys, so that a slow manager, or none, never makes
 * the screen deaf. A request that fails is noted and tried again; what was
 * shown stays.
 */
#ifndef AQ_CLI_SESSION_LIVE_H
#define AQ_CLI_SESSION_LIVE_H

#include "base/screen.h"
#include "cli/client.h"

struct live {
    struct cli *cli;
    struct screen screen;
    uv_loop_t *loop;
    struct exchange *asking;
    struct strbuf path;
    int64_t interval_usec, next_usec; /* monotonic */
    bool is_paused;
    bool is_wanted;      /* the next answer also while it is paused */
    bool is_over;        /* a request has ended: live_wait() says so */
    json_t *answer;      /* that came; NULL = none */
    struct aq_error err; /* of the last request; code 0 = it succeeded */
};

/* The first request is sent after an interval: the caller has an answer already. */
int live_open(struct live *l, struct cli *cli, const char *path, int64_t interval_usec,
              struct aq_error *err);
void live_close(struct live *l);

/* Ask for another path from now on, at once. */
void live_ask(struct live *l, const char *path);

/* A key of screen_wait(), or KEY_NONE: a request has ended, or its time is due. */
uint32_t live_wait(struct live *l);

/* The answer that came since the last call, the caller's; NULL if none did. */
json_t *live_take_answer(struct live *l);

/* Show the text with a last line on the bottom row: what failed, else 'keys'. */
void live_draw(struct live *l, struct strbuf *text, const char *keys);

/* How wide and how coloured what is drawn may be. */
struct output live_output(const struct live *l);

/* Rows as a table of the first of 'columns' that fit o->width side by side. */
void live_write_table(const struct output *o, const struct column *columns, const json_t *rows,
                      struct strbuf *out);

#endif
