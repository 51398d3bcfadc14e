/* SPDX-License-Identifier: Apache-2.0 */
/* app_activity.c - see app_activity.h */
#include "http/app_activity.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/map.h"

#define HEAD_MAX (64 * 1024)
#define APP_OF_KEYS "ttyd" /* of terminals: each key is work, though they are few bytes */
#define FRAME_IS_CONTROL 0x08
#define FRAME_IS_MASKED 0x80

void app_activity_begin(struct app_activity *a)
{
    *a = (struct app_activity){ .state = APP_ACTIVITY_HEAD };
    strbuf_init(&a->held);
}

void app_activity_done(struct app_activity *a)
{
    strbuf_done(&a->held);
}

/* ---- requests ---- */

/* "GET " and the like: safe ones say that they change nothing. */
static bool app_activity_is_request(const char *head, size_t len, bool *ret_is_safe)
{
    static const char *const safe[] = { "GET ", "HEAD ", "OPTIONS " };
    static const char *const others[] = { "POST ", "PUT ", "PATCH ", "DELETE " };

    for (size_t i = 0; i < AQ_COUNT(safe); i++)
        if (strncmp(head, safe[i], AQ_MIN(len, strlen(safe[i]))) == 0)
            return *ret_is_safe = true;
    *ret_is_safe = false;
    for (size_t i = 0; i < AQ_COUNT(others); i++)
        if (strncmp(head, others[i], AQ_MIN(len, strlen(others[i]))) == 0)
            return true;
    return false;
}

/* The value of a field, up to the end of its line; NULL if it is not there. */
static const char *app_activity_field(const char *head, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1 + strspn(line + len + 1, " \t");
    }
    return NULL;
}

/* The head is whole; what follows it is said by its fields. */
static void app_activity_take_head(struct app_activity *a, struct app_activity_found *found)
{
    const char *head = a->held.data, *upgrade = app_activity_field(head, "Upgrade");
    const char *length = app_activity_field(head, "Content-Length");
    bool is_safe;

    (void)app_activity_is_request(head, a->held.len, &is_safe);
    if (!is_safe) {
        found->is_work = true;
    } else {
        size_t target = strcspn(head, " ") + 1;

        target += strcspn(head + target, " ?\r\n"); /* polls have the time as their query */
        if (!found->is_repeated(found->data, aq_hash(head, target)))
            found->bytes += (int64_t)a->held.len;
    }
    a->left = length ? strtoull(length, NULL, 10) : 0;
    if (upgrade && strncasecmp(upgrade, "websocket", 9) == 0)
        a->state = APP_ACTIVITY_FRAME;
    else if (app_activity_field(head, "Transfer-Encoding") || upgrade)
        a->state = APP_ACTIVITY_OTHER; /* where it ends is not looked for */
    else if (a->left)
        a->state = APP_ACTIVITY_BODY;
    strbuf_clear(&a->held);
}

/* How many bytes belong to the head. */
static size_t app_activity_read_head(struct app_activity *a, const char *bytes, size_t len,
                                     struct app_activity_found *found)
{
    size_t before = a->held.len;
    const char *end;
    bool is_safe;

    strbuf_add(&a->held, bytes, len);
    if (!app_activity_is_request(a->held.data, a->held.len, &is_safe) || a->held.len > HEAD_MAX) {
        a->state = APP_ACTIVITY_OTHER;
        found->bytes += (int64_t)a->held.len;
        strbuf_clear(&a->held);
        return len;
    }
    if (!(end = strstr(a->held.data, "\r\n\r\n")))
        return len;
    a->held.len = (size_t)(end + 4 - a->held.data);
    a->held.data[a->held.len] = '\0';
    len = a->held.len - before;
    app_activity_take_head(a, found);
    return len;
}

/* ---- WebSockets ---- */

/* How many bytes a frame's head has whose first two are there. */
static size_t app_activity_frame_head(const unsigned char *head)
{
    size_t length = (head[1] & 0x7f) == 127 ? 8 : (head[1] & 0x7f) == 126 ? 2 : 0;

    return 2 + length + (head[1] & FRAME_IS_MASKED ? 4 : 0);
}

static size_t app_activity_read_frame(struct app_activity *a, const char *bytes)
{
    const unsigned char *head;

    strbuf_add(&a->held, bytes, 1);
    head = (const unsigned char *)a->held.data;
    if (a->held.len < 2 || a->held.len < app_activity_frame_head(head))
        return 1;
    a->is_control = head[0] & FRAME_IS_CONTROL;
    a->left = head[1] & 0x7f;
    if (a->left >= 126) {
        size_t count = a->left == 127 ? 8 : 2;

        a->left = 0;
        for (size_t i = 0; i < count; i++)
            a->left = a->left << 8 | head[2 + i];
    }
    a->state = a->left ? APP_ACTIVITY_DATA : APP_ACTIVITY_FRAME;
    strbuf_clear(&a->held);
    return 1;
}

/* ---- all ---- */

/* How many of the bytes are of what it is within: never 0. */
static size_t app_activity_read(struct app_activity *a, const char *bytes, size_t len,
                                struct app_activity_found *found)
{
    size_t part = (size_t)AQ_MIN(a->left, (uint64_t)len);

    switch (a->state) {
    case APP_ACTIVITY_HEAD:
        return app_activity_read_head(a, bytes, len, found);
    case APP_ACTIVITY_FRAME:
        return app_activity_read_frame(a, bytes);
    case APP_ACTIVITY_BODY:
        a->left -= part;
        a->state = a->left ? APP_ACTIVITY_BODY : APP_ACTIVITY_HEAD;
        return part;
    case APP_ACTIVITY_DATA:
        a->left -= part;
        a->state = a->left ? APP_ACTIVITY_DATA : APP_ACTIVITY_FRAME;
        found->bytes += a->is_control ? 0 : (int64_t)part;
        return part;
    case APP_ACTIVITY_OTHER:
        break;
    }
    found->bytes += (int64_t)len;
    return len;
}

void app_activity_take(struct app_activity *a, const char *bytes, size_t len,
                       struct app_activity_found *found)
{
    while (len) {
        size_t part = app_activity_read(a, bytes, len, found);

        bytes += part;
        len -= part;
    }
}

bool app_activity_is_work(const struct app_activity *a, const char *app,
                          const struct app_activity_found *found)
{
    return found->is_work
           || (found->bytes && a->state >= APP_ACTIVITY_FRAME && strcmp(app, APP_OF_KEYS) == 0);
}
