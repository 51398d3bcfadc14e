/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h - the bytes that a terminal sends, as keys
 *
 * Text is UTF-8; the keys that move are escape sequences (ECMA-48), with or
 * without modifiers, as xterm, the Linux console and their kin send them. A
 * read may end anywhere: what is not whole is remembered, in a few bytes
 * however long a sequence is. Pure.
 */
#ifndef AQ_BASE_KEYS_H
#define AQ_BASE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

/* Any other key is its character: a code point, or a control character. */
enum {
    KEY_NONE = 0, /* nothing yet */
    KEY_INTERRUPT = 0x03,
    KEY_ENTER = '\n',
    KEY_REDRAW = 0x0c, /* Ctrl-L */
    KEY_ESCAPE = 0x1b,
    KEY_BACKSPACE = 0x7f,
    KEY_UP = 0x110000,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_OTHER, /* one that has no name here: F5, Delete, Alt with a letter */
};

struct key_reader {
    enum { KEYS_TEXT, KEYS_ESCAPE, KEYS_SEQUENCE, KEYS_SINGLE, KEYS_CONSOLE } state;
    unsigned number; /* the first of a sequence; 0 = none */
    bool is_first;   /* we are at it still */
    char character[4];
    size_t len; /* of 'character' */
};
#define KEY_READER_INIT    \
    {                      \
        .state = KEYS_TEXT \
    }

/* Take the next byte. The key that it ends, or KEY_NONE. */
uint32_t key_reader_feed(struct key_reader *k, char byte) AQ_UNTRUSTED;

/* Is there the beginning of a key? Then an Esc may be the key itself. */
bool key_reader_is_amid(const struct key_reader *k);

/* Nothing came after the last byte for so long that nothing will: KEY_ESCAPE
 * if that was it, else KEY_NONE, and what there was is forgotten.
 */
uint32_t key_reader_end(struct key_reader *k);

#endif
