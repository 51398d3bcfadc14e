/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - how far something has come, on standard error
 *
 * On a terminal one line that is redrawn in place, at most ten times a second,
 * and not at all for what takes less than a third of one: the line never
 * flickers from stage to stage. Elsewhere one plain line for each new stage.
 * Nothing with --quiet.
 */
#ifndef AQ_CLI_OUTPUT_PROGRESS_H
#define AQ_CLI_OUTPUT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_quiet, is_terminal, is_ascii;
    bool is_drawn;      /* the line is on the screen */
    char stage[200];    /* what is shown; "" = nothing */
    int64_t begun_usec; /* monotonic: there is something to show */
    int64_t since_usec; /* the stage began */
    int64_t drawn_usec;
    unsigned turn; /* of the spinner */
};

void progress_init(struct progress *p, bool quiet, bool ascii);

/* A new text replaces the old one with the next drawing; the same text changes
 * nothing. "" clears.
 */
void progress_stage(struct progress *p, const char *text);

/* "[######..............]" */
struct strbuf;
void progress_write_bar(const struct progress *p, int64_t done, int64_t total, struct strbuf *out);

/* "12 MiB of 40 MiB  [######..............]"; without a total only the first. */
void progress_write_bytes(const struct progress *p, int64_t done_bytes, int64_t total_bytes,
                          struct strbuf *out);

/* "  3.5 MiB/s"; false and nothing in the first half second, as it is not known then. */
bool progress_write_rate(int64_t bytes, int64_t took_usec, struct strbuf *out);

/* Redraw if it is time: call a few times a second. */
void progress_tick(struct progress *p);

/* Take the line off the screen, before other output. */
void progress_clear(struct progress *p);

#endif
