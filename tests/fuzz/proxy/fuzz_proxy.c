/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser sends beside its HTTP: a target and a host, and a Cookie header, by lines. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proxy/head.h"
#include "proxy/place.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret[COOKIE_SECRET_SIZE] = "a key that everybody may know";

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
        || !uuid_equals(&again.session_id, &place.session_id) || strcmp(again.app, place.app) != 0)
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

/* What was not sealed is never opened; what was, is as it was. */
static void fuzz_cookie(const char *header)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    struct cookie cookie = { .app = "web", .access_key = "KEY", .expires_usec = 2 }, got;
    char text[COOKIE_TEXT_MAX];
    size_t len = 0;
    const char *value = cookie_find(header, 0, &len);

    cookie_remove(header, &rest);
    if (cookie_find(rest.data, 0, &len) || cookie_find(rest.data, 10200, &len))
        abort();
    if (value && cookie_open(secret, value, strcspn(value, "; \t"), 1, &got, NULL) == 0)
        abort();
    (void)cookie_seal(secret, &cookie, text);
    if (cookie_open(secret, text, strlen(text), 1, &got, NULL) < 0
        || strcmp(got.access_key, "KEY") != 0
        || cookie_open(secret, text, strlen(text), 2, &got, NULL) == 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    char *host = text ? strchr(text, '\n') : NULL;
    char *header = host ? strchr(host + 1, '\n') : NULL;

    if (!header || cookie_init(NULL) < 0)
        return 0;
    *host++ = *header++ = '\0';
    fuzz_place(text, host);
    fuzz_origin(host);
    fuzz_cookie(header);
    return 0;
}
