/* SPDX-License-Identifier: Apache-2.0 */
/* screen.h - the whole terminal, for programs that one stays in
 *
 * Between screen_open() and screen_close() the alternate screen is shown, keys
 * come one by one and are not echoed, and signals are taken: SIGWINCH, SIGCONT
 * and SIGTSTP (Ctrl-Z) as described at screen_wait(); SIGTERM, SIGHUP and
 * SIGQUIT restore the terminal and end the process as they would have. One
 * screen in a process.
 */
#ifndef AQ_BASE_SCREEN_H
#define AQ_BASE_SCREEN_H

#include <stdbool.h>
#include <termios.h>

#include "base/error.h"
#include "base/keys.h"
#include "base/strbuf.h"

/* Beside the keys of keys.h. */
enum { SCREEN_CHANGED = 0x120000 }; /* its size, or it was away: draw again */

struct screen {
    int rows, columns;
    bool is_ascii; /* by the locale: no characters beyond */
    bool is_open;
    bool is_entered; /* the terminal is as we need it */
    struct termios saved;
    struct key_reader keys;
    char bytes[64]; /* read, and not yet fed to 'keys' from 'at' on */
    size_t len, at;
    int64_t read_usec; /* monotonic: the last of them came */
};

/* Are standard input and output a terminal that can be drawn on? */
bool screen_is_possible(void);

/* -errno without a terminal; then nothing is changed. */
int screen_open(struct screen *s, struct aq_error *err);

/* The terminal as it was. Nothing if it is not open. */
void screen_close(struct screen *s);

/* Wait until 'until_usec' (monotonic) or until 'fd' (-1 = none) can be read, both
 * KEY_NONE, or for a key. KEY_INTERRUPT is also SIGINT and the end of the input;
 * SCREEN_CHANGED comes after a change of the size, and after the program was
 * stopped and goes on.
 */
uint32_t screen_wait(struct screen *s, int fd, int64_t until_usec);

/* Show lines of text, which may have colours (ESC [ ... m), by one write. */
void screen_draw(struct screen *s, const struct strbuf *text);

/* What screen_draw() writes: the lines cut to the screen, with a mark where, and the rest of it
 * empty. Nothing is erased before it is written again, so nothing flickers.
 */
void screen_write_frame(const struct screen *s, const struct strbuf *text, struct strbuf *out);

#endif
