/* SPDX-License-Identifier: Apache-2.0 */
/* One reply of a Redis server, read as a whole once it is complete. */
#include "redis/redis_reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define LINE_MAX_BYTES 4096u /* of a status, an error or a number */
#define SHORTEST_ITEM 3u     /* "+\r\n" */

struct redis_reader {
    const char *at, *end;
    struct arena *arena;
    struct aq_error *err;
    size_t items;
};

/* The rest of a line. 1, 0 if more must come, -EPROTO. */
static int redis_read_line(struct redis_reader *reader, const char **ret, size_t *ret_len)
{
    size_t left = (size_t)(reader->end - reader->at);
    const char *end = memchr(reader->at, '\r', AQ_MIN(left, LINE_MAX_BYTES));

    if (!end && left >= LINE_MAX_BYTES)
        return aq_fail(reader->err, EPROTO, "Redis sent a line without an end");
    if (!end || end + 1 == reader->end)
        return 0;
    if (end[1] != '\n')
        return aq_fail(reader->err, EPROTO, "Redis sent a CR without LF");
    *ret = reader->at;
    *ret_len = (size_t)(end - reader->at);
    reader->at = end + 2;
    return 1;
}

static bool redis_parse_number(const char *text, size_t len, int64_t *ret)
{
    char digits[24];
    char *end;

    if (!len || len >= sizeof(digits))
        return false;
    memcpy(digits, text, len);
    digits[len] = '\0';
    if (digits[strspn(digits, "-0123456789")])
        return false;
    errno = 0;
    *ret = strtoll(digits, &end, 10);
    return !errno && !*end;
}

/* The number after the type of a reply. */
static int redis_read_number(struct redis_reader *reader, int64_t *ret)
{
    const char *text = NULL;
    size_t len = 0;
    int r = redis_read_line(reader, &text, &len);

    if (r > 0 && !redis_parse_number(text, len, ret))
        return aq_fail(reader->err, EPROTO, "Redis sent a malformed number");
    return r;
}

static int redis_read_text(struct redis_reader *reader, struct redis_reply *ret)
{
    int64_t len = 0;
    int r = redis_read_number(reader, &len);

    if (r <= 0)
        return r;
    if (len == -1) {
        ret->type = REDIS_NULL;
        return 1;
    }
    if (len < 0 || len > REDIS_REPLY_MAX)
        return aq_fail(reader->err, E2BIG, "Redis announced a text of %lld bytes", (long long)len);
    if (reader->end - reader->at < len + 2)
        return 0;
    if (memcmp(reader->at + len, "\r\n", 2) != 0)
        return aq_fail(reader->err, EPROTO, "Redis sent a text without its end");
    ret->type = REDIS_TEXT;
    ret->len = (size_t)len;
    ret->text = arena_strndup(reader->arena, reader->at, ret->len);
    reader->at += len + 2;
    return 1;
}

static int redis_read_item(struct redis_reader *reader, unsigned depth, struct redis_reply *ret);

static int redis_read_list(struct redis_reader *reader, unsigned depth, struct redis_reply *ret)
{
    int64_t count = 0;
    int r = redis_read_number(reader, &count);

    if (r <= 0)
        return r;
    if (count == -1) {
        ret->type = REDIS_NULL;
        return 1;
    }
    if (depth == REDIS_DEPTH_MAX)
        return aq_fail(reader->err, E2BIG, "Redis sent lists within more than %u lists",
                       REDIS_DEPTH_MAX);
    if (count < 0 || count > (int64_t)(REDIS_ITEMS_MAX - reader->items))
        return aq_fail(reader->err, E2BIG, "Redis announced a list of %lld items",
                       (long long)count);
    if (reader->end - reader->at < count * (int64_t)SHORTEST_ITEM) /* before memory is taken */
        return 0;
    reader->items += (size_t)count;
    ret->type = REDIS_LIST;
    ret->count = (size_t)count;
    ret->items = arena_array(reader->arena, ret->count + 1, sizeof(*ret->items));
    for (size_t i = 0; i < ret->count; i++)
        if ((r = redis_read_item(reader, depth + 1, &ret->items[i])) <= 0)
            return r;
    return 1;
}

static int redis_read_item(struct redis_reader *reader, unsigned depth, struct redis_reply *ret)
{
    const char *line;
    char type;
    int r;

    if (reader->at == reader->end)
        return 0;
    switch (type = *reader->at++) {
    case '$':
        return redis_read_text(reader, ret);
    case '*':
        return redis_read_list(reader, depth, ret);
    case ':':
        ret->type = REDIS_INTEGER;
        return redis_read_number(reader, &ret->number);
    case '+':
    case '-':
        ret->type = type == '+' ? REDIS_STATUS : REDIS_ERROR;
        if ((r = redis_read_line(reader, &line, &ret->len)) > 0)
            ret->text = arena_strndup(reader->arena, line, ret->len);
        return r;
    default:
        return aq_fail(reader->err, EPROTO, "the server does not speak Redis' protocol");
    }
}

ssize_t redis_reply_read(const char *bytes, size_t len, struct arena *arena,
                         struct redis_reply *ret, struct aq_error *err)
{
    struct redis_reader reader = {
        .at = bytes, .end = bytes + AQ_MIN(len, REDIS_REPLY_MAX), .arena = arena, .err = err
    };
    int r;

    *ret = (struct redis_reply){ .type = REDIS_NULL };
    if ((r = redis_read_item(&reader, 0, ret)) < 0)
        return r;
    if (r == 0 && len >= REDIS_REPLY_MAX)
        return aq_fail(err, E2BIG, "Redis sent a reply of more than %u bytes", REDIS_REPLY_MAX);
    return r > 0 ? reader.at - bytes : 0;
}

bool redis_reply_get_number(const struct redis_reply *reply, int64_t min, int64_t max, int64_t *ret)
{
    int64_t number = reply->number;

    if (reply->type != REDIS_INTEGER
        && (reply->type != REDIS_TEXT || !redis_parse_number(reply->text, reply->len, &number)))
        return false;
    if (number < min || number > max)
        return false;
    *ret = number;
    return true;
}
