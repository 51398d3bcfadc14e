/* SPDX-License-Identifier: Apache-2.0 */
/* strbuf.c - a growing string, always NUL-terminated */
#include "base/strbuf.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

char strbuf_empty[1];

void strbuf_init(struct strbuf *sb)
{
    *sb = (struct strbuf)STRBUF_INIT;
}

void strbuf_done(struct strbuf *sb)
{
    if (sb->cap)
        free(sb->data);
    strbuf_init(sb);
}

void strbuf_clear(struct strbuf *sb)
{
    sb->len = 0;
    sb->failed = false;
    if (sb->cap)
        sb->data[0] = '\0';
}

bool strbuf_reserve(struct strbuf *sb, size_t more)
{
    size_t need, cap = sb->cap ? sb->cap : 64;
    char *grown;

    if (sb->failed || more > SIZE_MAX / 4 - sb->len) {
        memory_is_short();
        sb->failed = true;
        return false;
    }
    need = sb->len + more + 1;
    if (need <= sb->cap)
        return true;
    while (cap < need)
        cap *= 2;
    grown = realloc(sb->cap ? sb->data : NULL, cap);
    if (!grown) {
        memory_is_short();
        sb->failed = true;
        return false;
    }
    if (!sb->cap)
        grown[0] = '\0';
    sb->data = grown;
    sb->cap = cap;
    return true;
}

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len)
{
    if (!len || !strbuf_reserve(sb, len))
        return;
    memcpy(sb->data + sb->len, bytes, len);
    sb->len += len;
    sb->data[sb->len] = '\0';
}

void strbuf_addc(struct strbuf *sb, char c)
{
    if (sb->len + 1 < sb->cap && !sb->failed) {
        sb->data[sb->len++] = c;
        sb->data[sb->len] = '\0';
    } else {
        strbuf_add(sb, &c, 1);
    }
}

void strbuf_adds(struct strbuf *sb, const char *text)
{
    strbuf_add(sb, text, strlen(text));
}

void strbuf_add_size(struct strbuf *sb, uint64_t bytes)
{
    bool is_whole = bytes && bytes % (1u << 20) == 0;

    strbuf_addi(sb, (int64_t)(bytes >> (is_whole ? 20 : 10)));
    strbuf_adds(sb, is_whole ? " MiB" : " KiB");
}

void strbuf_addi(struct strbuf *sb, int64_t value)
{
    char digits[24], *at = digits + sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--at = '-';
    strbuf_add(sb, at, (size_t)(digits + sizeof(digits) - at));
}

void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args)
{
    va_list again;
    size_t room;
    int len;

    if (!strbuf_reserve(sb, 1))
        return;
    va_copy(again, args);
    room = sb->cap - sb->len;
    len = vsnprintf(sb->data + sb->len, room, fmt, args);
    if (len >= 0 && (size_t)len >= room && strbuf_reserve(sb, (size_t)len))
        (void)vsnprintf(sb->data + sb->len, (size_t)len + 1, fmt, again);
    va_end(again);
    if (len < 0)
        sb->failed = true;
    if (!sb->failed)
        sb->len += (size_t)len;
    sb->data[sb->len] = '\0'; /* nothing of what did not fit */
}

void strbuf_addf(struct strbuf *sb, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(sb, fmt, args);
    va_end(args);
}

void strbuf_truncate(struct strbuf *sb, size_t len)
{
    sb->len = len;
    if (sb->cap)
        sb->data[len] = '\0';
}

void strbuf_consume(struct strbuf *sb, size_t len)
{
    if (!len)
        return;
    memmove(sb->data, sb->data + len, sb->len - len);
    strbuf_truncate(sb, sb->len - len);
}

char *strbuf_steal(struct strbuf *sb)
{
    char *text;

    if (!strbuf_reserve(sb, 0)) {
        strbuf_done(sb);
        sb->failed = true;
        return NULL;
    }
    text = sb->data;
    strbuf_init(sb);
    return text;
}

char *aq_format(const char *fmt, ...)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sb = STRBUF_INIT;
    va_list args;

    va_start(args, fmt);
    strbuf_vaddf(&sb, fmt, args);
    va_end(args);
    return strbuf_steal(&sb);
}
