/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - well-formed UTF-8 (RFC 3629), nothing else, and how wide a terminal shows it */
#include "base/utf8.h"

#include <string.h>
#include <wchar.h>

size_t utf8_decode(const char *bytes, size_t len, uint32_t *ret_code)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    const unsigned char *b = (const unsigned char *)bytes;
    uint32_t code;
    size_t need;

    if (len == 0)
        return 0;
    if (b[0] < 0x80) {
        *ret_code = b[0];
        return 1;
    }
    if ((b[0] & 0xe0) == 0xc0)
        need = 2;
    else if ((b[0] & 0xf0) == 0xe0)
        need = 3;
    else if ((b[0] & 0xf8) == 0xf0)
        need = 4;
    else
        return 0;
    if (len < need)
        return 0;
    code = b[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (b[i] & 0x3f);
    }
    if (code < least[need] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return 0;
    *ret_code = code;
    return need;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
    uint32_t code;

    for (size_t i = 0; i < len;) {
        size_t step = utf8_decode(bytes + i, len - i, &code);

        if (step == 0)
            return false;
        i += step;
    }
    return true;
}

static bool utf8_continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t utf8_rest(const char *bytes, size_t len)
{
    size_t n = 0;

    while (n < len && n < 3 && utf8_continues(bytes[n]))
        n++;
    return n;
}

/* Bytes at the front that would be a character if more followed; 0 if it is whole, or none. */
static size_t utf8_partial(const char *text)
{
    unsigned char first = (unsigned char)text[0];
    size_t need = first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 ? 3 : 2, n;

    if (first < 0xc2 || first >= 0xf5)
        return 0;
    n = 1 + utf8_rest(text + 1, strnlen(text + 1, need - 1));
    return n < need ? n : 0;
}

void utf8_drop_partial(char *text)
{
    char *out = text;

    while (*text) {
        size_t n = utf8_partial(text);

        if (n == 0)
            *out++ = *text;
        text += n ? n : 1;
    }
    *out = '\0';
}

size_t utf8_write(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

/* Of the character at the front; *ret_size gets its bytes. */
static size_t utf8_width_of_first(const char *text, size_t len, size_t *ret_size)
{
    uint32_t code = 0;
    size_t size = utf8_decode(text, len, &code);
    int width = code < 0x80 ? 1 : wcwidth((wchar_t)code);

    *ret_size = AQ_MAX(size, (size_t)1);
    return width < 0 ? 1 : (size_t)width;
}

size_t utf8_width(const char *text, size_t len)
{
    size_t width = 0;

    for (size_t i = 0, size; i < len; i += size)
        width += utf8_width_of_first(text + i, len - i, &size);
    return width;
}

size_t utf8_fit(const char *text, size_t len, size_t width)
{
    size_t at = 0, size, taken;

    while (at < len && (taken = utf8_width_of_first(text + at, len - at, &size)) <= width) {
        width -= taken;
        at += size;
    }
    return at;
}

/* ---- what is not shown as it is ---- */

/* Characters that move the cursor, turn the text around or take no room, which are Unicode's
 * Default_Ignorable_Code_Point and a few more: from, to. Two names that differ in these alone look
 * the same.
 */
static const uint32_t utf8_hidden[][2] = {
    { 0x00, 0x1f },       /* C0 */
    { 0x7f, 0x9f },       /* DEL, C1 */
    { 0xad, 0xad },       /* soft hyphen */
    { 0x34f, 0x34f },     /* combining grapheme joiner */
    { 0x61c, 0x61c },     /* Arabic letter mark */
    { 0x115f, 0x1160 },   /* Hangul fillers */
    { 0x17b4, 0x17b5 },   /* Khmer inherent vowels */
    { 0x180b, 0x180f },   /* Mongolian variation selectors and vowel separator */
    { 0x200b, 0x200f },   /* zero-width space, joiners, direction marks */
    { 0x2028, 0x202e },   /* line and paragraph separators, embeddings, overrides */
    { 0x2060, 0x206f },   /* word joiner, invisible operators, isolates */
    { 0x3164, 0x3164 },   /* Hangul filler */
    { 0xfe00, 0xfe0f },   /* variation selectors */
    { 0xfeff, 0xfeff },   /* byte order mark */
    { 0xffa0, 0xffa0 },   /* halfwidth Hangul filler */
    { 0xfff0, 0xfffb },   /* unassigned, interlinear annotations */
    { 0x1bca0, 0x1bca3 }, /* shorthand format controls */
    { 0x1d173, 0x1d17a }, /* musical format controls */
    { 0xe0000, 0xe0fff }  /* tags, variation selectors */
};

static bool utf8_is_joiner(const char *text, size_t len)
{
    return len >= 3
           && (memcmp(text, "\xe2\x80\x8c", 3) == 0 || memcmp(text, "\xe2\x80\x8d", 3) == 0);
}

/* Persian words and emoji hold joiners: between two other characters beyond ASCII they change how
 * these look.
 */
static bool utf8_joins(const char *text, size_t len, size_t at)
{
    return at > 0 && utf8_is_joiner(text + at, len - at) && at + 3 < len
           && ((unsigned char)text[at - 1] & (unsigned char)text[at + 3]) >= 0x80
           && !utf8_is_joiner(text + at + 3, len - at - 3);
}

static bool utf8_is_selector(const char *text, size_t len)
{
    return len >= 3
           && (memcmp(text, "\xef\xb8\x8e", 3) == 0 || memcmp(text, "\xef\xb8\x8f", 3) == 0);
}

/* A character beyond ASCII may have one selector (U+FE0E, U+FE0F), which makes it text or emoji. */
static bool utf8_selects(const char *text, size_t len, size_t at)
{
    return at > 0 && utf8_is_selector(text + at, len - at) && (unsigned char)text[at - 1] >= 0x80
           && !(at >= 3 && utf8_is_selector(text + at - 3, 3));
}

size_t utf8_next(const char *text, size_t len, size_t at, uint32_t *ret_code, bool *ret_is_shown)
{
    size_t size = utf8_decode(text + at, len - at, ret_code);

    *ret_is_shown = size > 0;
    for (size_t i = 0; size && i < AQ_COUNT(utf8_hidden); i++)
        if (*ret_code >= utf8_hidden[i][0] && *ret_code <= utf8_hidden[i][1])
            *ret_is_shown = utf8_joins(text, len, at) || utf8_selects(text, len, at);
    return AQ_MAX(size, (size_t)1);
}

bool utf8_is_shown(const char *text, size_t len, uint32_t *ret_code)
{
    bool is_shown = true;

    for (size_t at = 0; is_shown && at < len;) {
        uint32_t code = (unsigned char)text[at];

        at += utf8_next(text, len, at, &code, &is_shown);
        *ret_code = code;
    }
    return is_shown;
}

void utf8_write_printable(const char *text, size_t len, struct strbuf *out)
{
    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code = 0;
        bool is_shown;

        size = utf8_next(text, len, at, &code, &is_shown);
        if (is_shown || text[at] == '\n' || text[at] == '\t')
            strbuf_add(out, text + at, size);
        else
            strbuf_addc(out, '?');
    }
}

void utf8_make_printable(char *text)
{
    size_t len = strlen(text), to = 0;

    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code = 0;
        bool is_shown;

        size = utf8_next(text, len, at, &code, &is_shown);
        if (is_shown)
            memmove(text + to, text + at, size);
        else
            text[to] = '?';
        to += is_shown ? size : 1;
    }
    text[to] = '\0';
}

void utf8_write_text(const char *bytes, size_t len, struct strbuf *out)
{
    for (size_t at = 0, size; at < len; at += AQ_MAX(size, (size_t)1)) {
        uint32_t code = 0;

        size = utf8_decode(bytes + at, len - at, &code);
        if (code)
            strbuf_add(out, bytes + at, size);
        else
            strbuf_adds(out, "\xef\xbf\xbd");
    }
}

void utf8_write_json(const char *json, size_t len, struct strbuf *out)
{
    for (size_t at = 0, size; at < len; at += size) {
        uint32_t code = 0;
        bool is_shown;

        size = utf8_next(json, len, at, &code, &is_shown);
        if (is_shown || code < 0x20)
            strbuf_add(out, json + at, size);
        else if (code < 0x10000)
            strbuf_addf(out, "\\u%04x", (unsigned)code);
        else
            strbuf_addf(out, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((code - 0x10000) >> 10)),
                        (unsigned)(0xdc00 + (code & 0x3ff)));
    }
}
