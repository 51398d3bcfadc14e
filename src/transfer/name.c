/* SPDX-License-Identifier: Apache-2.0 */
/* name.c - see name.h */
#include "transfer/name.h"

#include <string.h>

#include "base/utf8.h"

#define NAME_BASE 0xef00u /* of the characters that stand for bytes from 0x80 on */

static bool name_stands_for_byte(uint32_t code)
{
    return code >= NAME_BASE + 0x80 && code <= NAME_BASE + 0xff;
}

void name_write(const char *raw, struct strbuf *out)
{
    for (size_t left = strlen(raw), len; left; raw += len, left -= len) {
        uint32_t code = 0;
        char text[4];

        len = utf8_decode(raw, left, &code);
        if (len && !name_stands_for_byte(code)) {
            strbuf_add(out, raw, len);
            continue;
        }
        len = 1;
        strbuf_add(out, text, utf8_write(NAME_BASE + (unsigned char)*raw, text));
    }
}

bool name_read(const char *text, char *ret, size_t size)
{
    size_t at = 0;

    for (size_t left = strlen(text), len; left; text += len, left -= len) {
        uint32_t code = 0;
        size_t raw_len;

        len = AQ_MAX(utf8_decode(text, left, &code), (size_t)1);
        raw_len = len > 1 && name_stands_for_byte(code) ? 1 : len;
        if (at + raw_len >= size)
            return false;
        if (raw_len < len)
            ret[at] = (char)(code - NAME_BASE);
        else
            memcpy(ret + at, text, len);
        at += raw_len;
    }
    if (at >= size)
        return false;
    ret[at] = '\0';
    return true;
}
