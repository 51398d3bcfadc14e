/* SPDX-License-Identifier: Apache-2.0 */
/* jsonw.c - append-only JSON writer */
#include "base/jsonw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static void jsonw_before_value(struct jsonw *w)
{
    if (w->need_comma)
        strbuf_addc(w->out, ',');
    w->need_comma = true;
}

static void jsonw_begin(struct jsonw *w, char open)
{
    jsonw_before_value(w);
    strbuf_addc(w->out, open);
    w->need_comma = false;
}

static void jsonw_end(struct jsonw *w, char close)
{
    strbuf_addc(w->out, close);
    w->need_comma = true;
}

void jsonw_object_begin(struct jsonw *w)
{
    jsonw_begin(w, '{');
}

void jsonw_object_end(struct jsonw *w)
{
    jsonw_end(w, '}');
}

void jsonw_array_begin(struct jsonw *w)
{
    jsonw_begin(w, '[');
}

void jsonw_array_end(struct jsonw *w)
{
    jsonw_end(w, ']');
}

/* Whether eight bytes have one below 0x20 or above 0x7f, or a '"' or '\\'. For
 * each: subtracting borrows into the top bit of a byte that is less (or,
 * after the exclusive or, zero).
 */
static bool jsonw_has_special(const char *text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    uint64_t word, quote, slash;

    memcpy(&word, text, sizeof(word));
    quote = word ^ ones * '"';
    slash = word ^ ones * '\\';
    return ((word | (word - ones * 0x20) | (quote - ones) | (slash - ones)) & tops) != 0;
}

/* Bytes that can be copied as they are: printable ASCII but '"' and '\\'. */
static size_t jsonw_plain_run(const char *text, size_t len)
{
    size_t n = 0;

    while (len - n >= 8 && !jsonw_has_special(text + n))
        n += 8;
    while (n < len && (unsigned char)text[n] >= 0x20 && (unsigned char)text[n] < 0x80
           && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

/* Write the one special character at the front; returns its length. */
static size_t jsonw_put_special(struct strbuf *out, const char *text, size_t len)
{
    static const char short_names[] = "\bb\tt\nn\ff\rr\"\"\\\\";
    unsigned char c = (unsigned char)text[0];
    uint32_t code;
    size_t step;

    if (c >= 0x80) {
        step = utf8_decode(text, len, &code);
        if (step)
            strbuf_add(out, text, step);
        else
            strbuf_adds(out, "\xef\xbf\xbd");
        return step ? step : 1;
    }
    for (const char *p = short_names; *p; p += 2) {
        if ((unsigned char)p[0] == c) {
            strbuf_addc(out, '\\');
            strbuf_addc(out, p[1]);
            return 1;
        }
    }
    strbuf_addf(out, "\\u%04x", c);
    return 1;
}

static void jsonw_put_string(struct strbuf *out, const char *text, size_t len)
{
    strbuf_addc(out, '"');
    while (len) {
        size_t run = jsonw_plain_run(text, len);

        strbuf_add(out, text, run);
        text += run;
        len -= run;
        if (len) {
            size_t step = jsonw_put_special(out, text, len);

            text += step;
            len -= step;
        }
    }
    strbuf_addc(out, '"');
}

void jsonw_keyn(struct jsonw *w, const char *key, size_t len)
{
    jsonw_before_value(w);
    jsonw_put_string(w->out, key, len);
    strbuf_addc(w->out, ':');
    w->need_comma = false;
}

void jsonw_key(struct jsonw *w, const char *key)
{
    jsonw_keyn(w, key, strlen(key));
}

void jsonw_null(struct jsonw *w)
{
    jsonw_raw(w, "null", 4);
}

void jsonw_bool(struct jsonw *w, bool value)
{
    if (value)
        jsonw_raw(w, "true", 4);
    else
        jsonw_raw(w, "false", 5);
}

void jsonw_int(struct jsonw *w, int64_t value)
{
    jsonw_before_value(w);
    strbuf_addi(w->out, value);
}

void jsonw_double(struct jsonw *w, double value)
{
    char text[32];

    if (!isfinite(value)) {
        jsonw_null(w);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void)snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    jsonw_raw(w, text, strlen(text));
}

void jsonw_strn(struct jsonw *w, const char *text, size_t len)
{
    jsonw_before_value(w);
    jsonw_put_string(w->out, text, len);
}

void jsonw_str(struct jsonw *w, const char *text)
{
    if (text)
        jsonw_strn(w, text, strlen(text));
    else
        jsonw_null(w);
}

void jsonw_raw(struct jsonw *w, const char *json, size_t len)
{
    jsonw_before_value(w);
    strbuf_add(w->out, json, len);
}

void jsonw_member_str(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key(w, key);
    jsonw_str(w, text);
}

void jsonw_member_int(struct jsonw *w, const char *key, int64_t value)
{
    jsonw_key(w, key);
    jsonw_int(w, value);
}

void jsonw_member_bool(struct jsonw *w, const char *key, bool value)
{
    jsonw_key(w, key);
    jsonw_bool(w, value);
}

void jsonw_member_null(struct jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_null(w);
}
