/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser sends: a target and a host, and a Cookie header, by lines; and all of it as the
 * requests of a connection, and as the answers of an app.
 */
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "http/message.h"
#include "proxy/cookie.h"
#include "proxy/head.h"
#include "proxy/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct message_limits limits = {
    .line_max = 4096, .head_max = 1 << 14, .headers_max = 100, .body_max = INT64_MAX
};
/* What is passed on is a little more. */
static const struct message_limits passed_limits = {
    .line_max = 8192, .head_max = 1 << 16, .headers_max = 200, .body_max = INT64_MAX
};
static const unsigned char secret[FRONT_SECRET_SIZE] = "a key that everybody may know";

/* A place that was found is found by what is written of it. */
static void fuzz_place(const char *target, const char *host)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct place place, again;

    if (place_parse(target, host, "apps.example.org", &place, &err) != 1)
        return;
    place.is_host = false;
    place_write_path(&place, &path);
    if (place_parse(path.data, NULL, NULL, &again, &err) != 1
        || !uuid_equals(&again.session_id, &place.session_id) || strcmp(again.app, place.app) != 0
        || strcmp(again.service, place.service) != 0)
        abort();
}

/* Its own page is never foreign; one without a host always is. */
static void fuzz_origin(const char *origin)
{
    const struct message_header headers[] = { { "Host", "apps.example.org:5050" },
                                              { "Origin", origin } };
    const struct message_head head = { .is_upgrade = true, .headers = headers, .header_count = 2 };

    bool is_own = strcasecmp(origin, "https://apps.example.org:5050") == 0;

    if (head_is_foreign(&head, "http://127.0.0.1:5050") ? is_own : !strstr(origin, "://"))
        abort();
}

/* No text is more than an hour. */
static void fuzz_keep(const char *value)
{
    const struct message_header header = { "Keep-Alive", value };
    const struct message_head head = { .headers = &header, .header_count = 1 };
    int64_t usec = head_keep_usec(&head);

    if (usec < -1 || usec > 3600 * USEC_PER_SEC || (usec < 0 && strstr(value, "timeout=")))
        abort();
}

/* Cookies of a name are found one after the other, within the header, and are all removed. */
static void fuzz_names(const char *header, uint16_t port, bool is_host, const char *rest)
{
    char name[COOKIE_NAME_MAX];
    const char *text, *end = header;
    struct cookie got;
    size_t len = 0;

    (void)cookie_name(port, is_host, name);
    for (text = cookie_find(header, name, &len); text; text = cookie_find(end, name, &len)) {
        if (text <= end || text + len > header + strlen(header)
            || cookie_open(secret, text, len, 1, &got, NULL) == 0)
            abort();
        end = text + len;
    }
    if (cookie_find(rest, name, &len))
        abort();
}

/* What was not sealed is never opened; what was, is as it was, whatever stands before it. */
static void fuzz_cookie(const char *header)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT, more = STRBUF_INIT;
    struct cookie cookie = { .app = "web", .access_key = "KEY", .expires_usec = 2 }, got;
    char text[COOKIE_TEXT_MAX], name[COOKIE_NAME_MAX];
    const char *found;
    size_t len = 0;

    cookie_remove(header, &rest);
    for (int i = 0; i < 4; i++)
        fuzz_names(header, i & 1 ? 10200 : 0, i & 2, rest.data ? rest.data : "");
    (void)cookie_seal(secret, &cookie, text);
    if (cookie_open(secret, text, strlen(text), 1, &got, NULL) < 0
        || strcmp(got.access_key, "KEY") != 0
        || cookie_open(secret, text, strlen(text), 2, &got, NULL) == 0)
        abort();
    strbuf_addf(&more, "%s; %s=%s", header, cookie_name(0, true, name), text);
    found = cookie_find(more.data, name, &len);
    while (found && (len != strlen(text) || memcmp(found, text, len) != 0))
        found = cookie_find(found + len, name, &len);
    if (!found)
        abort();
}

/* The server that reads what is passed on sees one message, which ends where it ended for us. */
static void fuzz_passed(bool is_request, const struct strbuf *passed)
{
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    struct message_piece piece = { .event = MESSAGE_BODY };
    struct aq_error err = { 0 };
    size_t at = 0;

    if (!strbuf_ok(passed) || message_parser_new(is_request, &passed_limits, &p, &err) < 0)
        return;
    while (piece.event != MESSAGE_END && piece.event != MESSAGE_MORE) {
        ssize_t used = message_feed(p, passed->data + at, passed->len - at, &piece, &err);

        if (used < 0)
            abort();
        at += (size_t)used;
    }
    if (at != passed->len || (piece.event == MESSAGE_MORE && message_finish(p, &err) < 0))
        abort();
}

/* A replica is asked to leave HTTP for WebSockets alone, whoever wrote the request. */
static void fuzz_upgrade(const struct message_head *head, const struct place *place,
                         const struct strbuf *passed)
{
    if (place->service[0] && !head_is_upgrade(head, place)
        && strcasestr(passed->data, "\r\nUpgrade:"))
        abort();
}

/* The messages of a connection, one after the other, which come or go to this place. */
static void fuzz_messages(bool is_request, const struct place *place, const char *bytes, size_t len)
{
    static const struct head_origin origin = { .address = "192.0.2.1", .is_plain = true };
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf passed = STRBUF_INIT;
    struct message_piece piece = { .event = MESSAGE_BODY };
    struct aq_error err = { 0 };

    if (message_parser_new(is_request, &limits, &p, &err) < 0)
        return;
    while (piece.event != MESSAGE_MORE) {
        ssize_t used = message_feed(p, bytes, len, &piece, &err);
        const struct message_head *head = message_get_head(p);

        if (used < 0 || (piece.event == MESSAGE_HEAD && is_request && head->method == METHOD_OTHER))
            return;
        if (piece.event == MESSAGE_HEAD && is_request) {
            head_write_request(head, place, &origin, &passed);
            fuzz_upgrade(head, place, &passed);
        } else if (piece.event == MESSAGE_HEAD)
            head_write_answer(head, place, true, &passed);
        else
            strbuf_add(&passed, bytes, (size_t)used);
        bytes += used;
        len -= (size_t)used;
        if (piece.event == MESSAGE_END) {
            fuzz_passed(is_request, &passed);
            strbuf_clear(&passed);
            message_reset(p);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct place places[] = { { .app = "web", .rest = "/" },
                                           { .service = "digits", .rest = "/v1" } };
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    char *host = text ? strchr(text, '\n') : NULL;
    char *header = host ? strchr(host + 1, '\n') : NULL;

    for (size_t i = 0; i < AQ_COUNT(places); i++) {
        fuzz_messages(true, &places[i], (const char *)data, size);
        fuzz_messages(false, &places[i], (const char *)data, size);
    }
    if (!header || sodium_init() < 0)
        return 0;
    *host++ = *header++ = '\0';
    fuzz_place(text, host);
    fuzz_origin(host);
    fuzz_keep(header);
    fuzz_cookie(header);
    return 0;
}
