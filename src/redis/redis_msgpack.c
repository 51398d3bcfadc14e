/* SPDX-License-Identifier: Apache-2.0 */
/* MessagePack of JSON values, and of lists that callers fill. */
#include "redis/redis_msgpack.h"

#include <string.h>

/* A type byte, then 'size' bytes of the value, the highest first. */
static void msgpack_put(struct strbuf *out, unsigned char type, uint64_t value, size_t size)
{
    strbuf_addc(out, (char)type);
    while (size-- > 0)
        strbuf_addc(out, (char)(value >> (8 * size)));
}

/* A count: within the type byte up to 'small', else in 16 or 32 bits after it. */
static void msgpack_put_count(struct strbuf *out, unsigned char within, size_t small,
                              unsigned char type16, size_t count)
{
    if (count <= small)
        strbuf_addc(out, (char)(within | count));
    else if (count <= UINT16_MAX)
        msgpack_put(out, type16, count, 2);
    else
        msgpack_put(out, type16 + 1, count, 4);
}

void redis_msgpack_list(struct strbuf *out, size_t count)
{
    msgpack_put_count(out, 0x90, 15, 0xdc, count);
}

void redis_msgpack_map(struct strbuf *out, size_t count)
{
    msgpack_put_count(out, 0x80, 15, 0xde, count);
}

void redis_msgpack_text(struct strbuf *out, const char *text, size_t len)
{
    if (len > 31 && len <= UINT8_MAX)
        msgpack_put(out, 0xd9, len, 1);
    else
        msgpack_put_count(out, 0xa0, 31, 0xda, len);
    strbuf_add(out, text, len);
}

void redis_msgpack_int(struct strbuf *out, int64_t value)
{
    if (value >= -32 && value <= INT8_MAX)
        strbuf_addc(out, (char)value);
    else if (value >= INT32_MIN && value <= INT32_MAX)
        msgpack_put(out, 0xd2, (uint64_t)value, 4);
    else
        msgpack_put(out, 0xd3, (uint64_t)value, 8);
}

static void msgpack_real(struct strbuf *out, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    msgpack_put(out, 0xcb, bits, 8);
}

void redis_msgpack_json(struct strbuf *out, const json_t *value)
{
    const char *key;
    json_t *item;
    size_t i;

    switch (json_typeof(value)) {
    case JSON_OBJECT:
        redis_msgpack_map(out, json_object_size(value));
        json_object_foreach((json_t *)(uintptr_t)value, key, item) {
            redis_msgpack_text(out, key, strlen(key));
            redis_msgpack_json(out, item);
        }
        return;
    case JSON_ARRAY:
        redis_msgpack_list(out, json_array_size(value));
        json_array_foreach(value, i, item)
            redis_msgpack_json(out, item);
        return;
    case JSON_STRING:
        redis_msgpack_text(out, json_string_value(value), json_string_length(value));
        return;
    case JSON_INTEGER:
        redis_msgpack_int(out, json_integer_value(value));
        return;
    case JSON_REAL:
        msgpack_real(out, json_real_value(value));
        return;
    case JSON_TRUE:
    case JSON_FALSE:
        strbuf_addc(out, (char)(json_is_true(value) ? 0xc3 : 0xc2));
        return;
    case JSON_NULL:
        strbuf_addc(out, (char)0xc0);
        return;
    }
}
