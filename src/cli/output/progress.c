/* SPDX-License-Identifier: Apache-2.0 */
/* How far something has come, on standard error. */
#include "cli/output/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "cli/output/output.h"
#include "model/slot.h"

#define REDRAW_USEC (100 * USEC_PER_MSEC)
#define RATE_AFTER_USEC (USEC_PER_SEC / 2)
#define QUIET_USEC (300 * USEC_PER_MSEC) /* what is over by then is not worth a line */
#define BAR_WIDTH 24

void progress_init(struct progress *p, bool quiet, bool ascii)
{
    const char *term = getenv("TERM");

    *p = (struct progress){
        .is_quiet = quiet,
        .is_terminal = isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0,
        .is_ascii = ascii,
    };
}

static void progress_draw(struct progress *p)
{
    static const char *const round[] = { "\xe2\xa0\x8b", "\xe2\xa0\x99", "\xe2\xa0\xb8",
                                         "\xe2\xa0\xb4", "\xe2\xa0\xa6", "\xe2\xa0\x87" };
    static const char *const plain[] = { "|", "/", "-", "\\" };
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    int64_t now = clock_monotonic_usec();
    size_t fits, width;
    bool is_cut;
    struct winsize size;

    strbuf_addf(&line, "%s %s",
                p->is_ascii ? plain[p->turn % AQ_COUNT(plain)] : round[p->turn % AQ_COUNT(round)],
                p->stage);
    if (now - p->since_usec >= 2 * USEC_PER_SEC) {
        strbuf_adds(&line, "  ");
        cell_write_span(now - p->since_usec, &line);
    }
    width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79;
    is_cut = utf8_width(line.data, line.len) > width;
    fits = utf8_fit(line.data, line.len, is_cut ? width - 1 : width);
    (void)fprintf(stderr, "\r%.*s%s\033[K", (int)fits, line.data,
                  !is_cut       ? ""
                  : p->is_ascii ? "~"
                                : "\xe2\x80\xa6");
    (void)fflush(stderr);
    p->is_drawn = true;
    p->drawn_usec = now;
    p->turn++;
}

void progress_stage(struct progress *p, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    int64_t now = clock_monotonic_usec();

    utf8_write_printable(text, strlen(text), &clean);
    if (p->is_quiet || strncmp(p->stage, clean.data, sizeof(p->stage) - 1) == 0)
        return;
    if (!p->stage[0])
        p->begun_usec = now;
    (void)snprintf(p->stage, sizeof(p->stage), "%s", clean.data);
    p->since_usec = now;
    if (!text[0])
        progress_clear(p);
    else if (p->is_terminal)
        progress_tick(p);
    else
        (void)fprintf(stderr, "%s\n", p->stage);
}

void progress_write_bar(const struct progress *p, int64_t done, int64_t total, struct strbuf *out)
{
    int64_t filled = total > 0 ? (int64_t)((double)AQ_MIN(done, total) * BAR_WIDTH / (double)total)
                               : 0;

    strbuf_addc(out, '[');
    for (int64_t i = 0; i < BAR_WIDTH; i++)
        strbuf_adds(out, i >= filled ? "." : p->is_ascii ? "#" : "\xe2\x96\x88");
    strbuf_addc(out, ']');
}

void progress_write_bytes(const struct progress *p, int64_t done_bytes, int64_t total_bytes,
                          struct strbuf *out)
{
    char amount[AMOUNT_TEXT_MAX];

    strbuf_adds(out, slot_amount_humanize(done_bytes, SLOT_BYTES, amount));
    if (total_bytes > 0) {
        strbuf_addf(out, " of %s  ", slot_amount_humanize(total_bytes, SLOT_BYTES, amount));
        progress_write_bar(p, done_bytes, total_bytes, out);
    }
}

bool progress_write_rate(int64_t bytes, int64_t took_usec, struct strbuf *out)
{
    char amount[AMOUNT_TEXT_MAX];

    if (took_usec <= RATE_AFTER_USEC)
        return false;
    strbuf_addf(out, "  %s/s",
                slot_amount_humanize((int64_t)((double)bytes / (double)took_usec * USEC_PER_SEC),
                                     SLOT_BYTES, amount));
    return true;
}

void progress_tick(struct progress *p)
{
    int64_t now = clock_monotonic_usec();

    if (p->is_terminal && p->stage[0] && now - p->begun_usec >= QUIET_USEC
        && now - p->drawn_usec >= REDRAW_USEC)
        progress_draw(p);
}

void progress_clear(struct progress *p)
{
    if (p->is_drawn)
        (void)fputs("\r\033[K", stderr);
    (void)fflush(stderr);
    p->is_drawn = false;
}
