/* SPDX-License-Identifier: Apache-2.0 */
/* Identifiers: made, compared, printed and read. */
/* uuid.c - identifiers */
#include "base/uuid.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

struct uuid uuid_random(void)
{
    static __thread uint8_t pool[512];
    static __thread size_t left;
    struct uuid id;

    if (left < sizeof(id)) {
        while (getrandom(pool, sizeof(pool), 0) != (ssize_t)sizeof(pool))
            ;
        left = sizeof(pool);
    }
    left -= sizeof(id);
    memcpy(id.bytes, pool + left, sizeof(id));
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x40);
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

struct uuid uuid_ordered(void)
{
    struct uuid id = uuid_random();
    uint64_t msec = (uint64_t)clock_realtime_usec() / 1000;

    for (int i = 5; i >= 0; i--, msec >>= 8)
        id.bytes[i] = (uint8_t)msec;
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x70);
    return id;
}

struct uuid uuid_of_text(const char *text)
{
    uint64_t halves[2] = { UINT64_C(0xcbf29ce484222325),
                           UINT64_C(0x84222325cbf29ce4) }; /* FNV-1a */
    struct uuid id;

    for (; *text; text++)
        for (int i = 0; i < 2; i++)
            halves[i] = (halves[i] ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    for (int i = 0; i < 16; i++)
        id.bytes[i] = (uint8_t)(halves[i / 8] >> (i % 8 * 8));
    id.bytes[6] = (uint8_t)((id.bytes[6] & 0x0f) | 0x80); /* RFC 9562 version 8 */
    id.bytes[8] = (uint8_t)((id.bytes[8] & 0x3f) | 0x80);
    return id;
}

bool uuid_is_nil(const struct uuid *id)
{
    static const struct uuid nil;

    return uuid_equals(id, &nil);
}

bool uuid_equals(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

int uuid_compare(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a, b, sizeof(*a));
}

static bool uuid_dash_before(int byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

char *uuid_format(const struct uuid *id, char buf[UUID_TEXT_MAX])
{
    static const char hex[] = "0123456789abcdef";
    char *at = buf;

    for (int i = 0; i < 16; i++) {
        if (uuid_dash_before(i))
            *at++ = '-';
        *at++ = hex[id->bytes[i] >> 4];
        *at++ = hex[id->bytes[i] & 15];
    }
    *at = '\0';
    return buf;
}

static int uuid_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int uuid_parse(const char *text, struct uuid *ret)
{
    bool dashed = strlen(text) == 36;
    struct uuid id;

    if (!dashed && strlen(text) != 32)
        return -EINVAL;
    for (int i = 0; i < 16; i++) {
        int high, low;

        if (dashed && uuid_dash_before(i) && *text++ != '-')
            return -EINVAL;
        high = uuid_hex_value(*text++);
        low = uuid_hex_value(*text++);
        if (high < 0 || low < 0)
            return -EINVAL;
        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    *ret = id;
    return 0;
}
