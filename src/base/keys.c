/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - the bytes that a terminal sends, as keys */
#include "base/keys.h"

#include "base/utf8.h"

#define NUMBER_MAX 99 /* no key has more */

static uint32_t keys_take_key(struct key_reader *k, uint32_t key)
{
    *k = (struct key_reader)KEY_READER_INIT;
    return key;
}

/* ESC [ A and ESC O A; ESC [ 5 ~ */
static uint32_t keys_name(char last, unsigned number)
{
    static const uint32_t numbered[] = { [1] = KEY_HOME,      [4] = KEY_END,  [5] = KEY_PAGE_UP,
                                         [6] = KEY_PAGE_DOWN, [7] = KEY_HOME, [8] = KEY_END };

    switch (last) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'C':
        return KEY_RIGHT;
    case 'D':
        return KEY_LEFT;
    case 'H':
        return KEY_HOME;
    case 'F':
        return KEY_END;
    case 'M':
        return KEY_ENTER; /* of the block of digits */
    case '~':
        return number < AQ_COUNT(numbered) && numbered[number] ? numbered[number] : KEY_OTHER;
    default:
        return KEY_OTHER;
    }
}

static uint32_t keys_feed_text(struct key_reader *k, char byte)
{
    unsigned char b = (unsigned char)byte;
    uint32_t code;

    if (k->len && (b & 0xc0) != 0x80)
        *k = (struct key_reader)KEY_READER_INIT; /* the character before was cut off */
    if (b == KEY_ESCAPE) {
        k->state = KEYS_ESCAPE;
        return KEY_NONE;
    }
    if (b == '\r')
        return KEY_ENTER;
    if (b == '\b')
        return KEY_BACKSPACE;
    if (b < 0x80)
        return b;
    k->character[k->len++] = byte;
    if (utf8_decode(k->character, k->len, &code))
        return keys_take_key(k, code);
    return k->len == sizeof(k->character) || k->character[0] < '\xc0' ? keys_take_key(k, KEY_NONE)
                                                                      : KEY_NONE;
}

static uint32_t keys_feed_escape(struct key_reader *k, char byte)
{
    if (byte == KEY_ESCAPE)
        return KEY_ESCAPE; /* pressed twice; the second may begin a sequence */
    if (byte != '[' && byte != 'O')
        return keys_take_key(k, KEY_OTHER); /* with Alt */
    *k = (struct key_reader){ .state = byte == '[' ? KEYS_SEQUENCE : KEYS_SINGLE,
                              .is_first = true };
    return KEY_NONE;
}

/* Parameters are passed over but for the first number; modifiers are the second. */
static uint32_t keys_feed_sequence(struct key_reader *k, char byte)
{
    if (byte == '[' && k->is_first && !k->number) {
        k->state = KEYS_CONSOLE;
        return KEY_NONE;
    }
    if (byte >= '@' && byte <= '~')
        return keys_take_key(k, keys_name(byte, k->number));
    if (byte < ' ' || byte > '~') /* broken off, or no sequence at all */
        return keys_take_key(k, KEY_NONE);
    if (k->is_first && byte >= '0' && byte <= '9' && k->number <= NUMBER_MAX)
        k->number = k->number * 10 + (unsigned)(byte - '0');
    else
        k->is_first = false;
    return KEY_NONE;
}

uint32_t key_reader_feed(struct key_reader *k, char byte)
{
    if (byte == KEY_ESCAPE && k->state != KEYS_TEXT && k->state != KEYS_ESCAPE) {
        *k = (struct key_reader){ .state = KEYS_ESCAPE };
        return KEY_NONE;
    }
    switch (k->state) {
    case KEYS_ESCAPE:
        return keys_feed_escape(k, byte);
    case KEYS_SEQUENCE:
        return keys_feed_sequence(k, byte);
    case KEYS_SINGLE:
        return keys_take_key(k, keys_name(byte, 0));
    case KEYS_CONSOLE: /* F1 of the Linux console: ESC [ [ A */
        return keys_take_key(k, KEY_OTHER);
    default:
        return keys_feed_text(k, byte);
    }
}

bool key_reader_is_amid(const struct key_reader *k)
{
    return k->state != KEYS_TEXT || k->len;
}

uint32_t key_reader_end(struct key_reader *k)
{
    return keys_take_key(k, k->state == KEYS_ESCAPE ? KEY_ESCAPE : KEY_NONE);
}
