/* SPDX-License-Identifier: Apache-2.0 */
/* head.c - see head.h
 *
 * Headers of an app's answer may reach beyond the app, as the proxy's host, its ports, its cookies
 * and, by paths, its origin are those of other apps, too. For each such header:
 *
 * Service-Worker-Allowed     dropped: a service worker gets the folder of its script, which lies
 *                            beneath the app's path
 * Clear-Site-Data            dropped: it clears cookies of the whole domain, storage of the origin
 * Strict-Transport-Security  dropped: it is for all ports of the host, and names below it; the
 *                            administrator's server says it, if anything
 * Alt-Svc                    dropped: it moves the origin's traffic to another host or port
 * NEL, Report-To             dropped: they have requests of the whole origin, and of names below,
 *                            reported to a server that the app chooses
 * Set-Cookie                 without Domain, Path beneath the app's; dropped if the name is one of
 *                            ours, with and without __Host-
 * Location                   an absolute path is moved beneath the app's; others pass, as a page of
 *                            the app can go anywhere by a link, too
 * Refresh                    passes: as Location, but not moved
 * Access-Control-*, CSP and other policies of a document: pass, as they are for that answer alone
 *
 * Scripts of an app at a path, or at a port as far as cookies go, can do some of this without a
 * header; aliquot-proxy(8) says when to give apps names of their own.
 */
#include "proxy/head.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

#define KEEP_SEC_MAX 3600L

static bool head_is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcasecmp(name, *names) == 0)
            return true;
    return false;
}

/* Of this connection alone: named so by HTTP, or by its Connection header. */
static bool head_is_ours(const struct message_head *head, const char *name)
{
    static const char *const names[] = {
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
        "TE",         NULL
    };
    static const char *const kept[] = { "Upgrade", "Transfer-Encoding", "Content-Length", "Host",
                                        NULL };

    return head_is_one_of(name, names)
           || (!head_is_one_of(name, kept) && message_has_token(head, "Connection", name));
}

/* Servers that make variables of names (CGI, WSGI) take "_" for "-". */
static bool head_begins_with(const char *name, const char *prefix)
{
    for (; *prefix; name++, prefix++)
        if (tolower((unsigned char)(*name == '_' ? '-' : *name)) != *prefix)
            return false;
    return true;
}

/* Only the proxy says where a request came from. */
static bool head_is_of_proxy(const char *name)
{
    static const char real[] = "x-real-ip", forwarded[] = "forwarded";

    return head_begins_with(name, "x-forwarded-")
           || (head_begins_with(name, real) && !name[strlen(real)])
           || (head_begins_with(name, forwarded) && !name[strlen(forwarded)]);
}

static void head_write(struct strbuf *out, const char *name, const char *value)
{
    strbuf_adds(out, name);
    strbuf_adds(out, ": ");
    strbuf_adds(out, value);
    strbuf_adds(out, "\r\n");
}

/* ---- requests ---- */

/* Of "http://HOST:PORT/path" what is between, and its length; 0 of "null" and the like. */
static const char *head_find_host(const char *url, size_t *ret_len)
{
    const char *start = strstr(url, "://");

    *ret_len = start ? strcspn(start + strlen("://"), "/") : 0;
    return start ? start + strlen("://") : url;
}

bool head_is_foreign(const struct message_head *head, const char *url)
{
    const char *origin = message_get_header(head, "Origin");
    const char *site = message_get_header(head, "Sec-Fetch-Site");
    const char *host = message_get_header(head, "Host"), *page, *own;
    bool is_reading = head->method == METHOD_GET || head->method == METHOD_HEAD
                      || head->method == METHOD_OPTIONS;
    size_t page_len, own_len;

    if (!origin || (is_reading && !head->is_upgrade) || (site && strcmp(site, "same-origin") == 0))
        return false;
    page = head_find_host(origin, &page_len);
    own = head_find_host(url, &own_len);
    if (page_len == own_len && strncasecmp(page, own, own_len) == 0)
        return !own_len;
    return !host || strlen(host) != page_len || strncasecmp(page, host, page_len) != 0;
}

static void head_write_cookies(const char *value, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;

    cookie_remove(value, &rest);
    if (rest.len)
        head_write(out, "Cookie", rest.data);
}

static void head_write_origin(const struct message_head *head, const struct place *place,
                              const struct head_origin *origin, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf prefix = STRBUF_INIT;
    const char *host = message_get_header(head, "Host");

    head_write(out, "X-Forwarded-For", origin->address);
    head_write(out, "X-Forwarded-Proto", origin->is_tls ? "https" : "http");
    if (host)
        head_write(out, "X-Forwarded-Host", host);
    place_write_path(place, &prefix);
    if (prefix.len)
        head_write(out, "X-Forwarded-Prefix", prefix.data);
}

bool head_is_upgrade(const struct message_head *head, const struct place *place)
{
    return head->is_upgrade
           && (!place->service[0]
               || strcasecmp(message_get_header(head, "Upgrade"), "websocket") == 0);
}

/* A model service gets neither the client's token nor Trailer, as trailers are dropped. */
static bool head_is_kept_from_service(const char *name, const struct head_origin *origin)
{
    return strcasecmp(name, "Authorization") == 0 || strcasecmp(name, "Trailer") == 0
           || (origin->is_plain && strcasecmp(name, "Accept-Encoding") == 0);
}

void head_write_request(const struct message_head *head, const struct place *place,
                        const struct head_origin *origin, struct strbuf *out)
{
    bool is_upgrade = head_is_upgrade(head, place);

    strbuf_addf(out, "%s %s HTTP/1.%d\r\n", method_name(head->method), place->rest,
                head->is_http10 ? 0 : 1); /* who speaks 1.0 takes no chunks */
    for (size_t i = 0; i < head->header_count; i++) {
        const struct message_header *h = &head->headers[i];

        if (head_is_ours(head, h->name) || head_is_of_proxy(h->name)
            || (place->service[0] && head_is_kept_from_service(h->name, origin))
            || (!is_upgrade && strcasecmp(h->name, "Upgrade") == 0))
            continue;
        if (strcasecmp(h->name, "Cookie") == 0)
            head_write_cookies(h->value, out);
        else
            head_write(out, h->name, h->value);
    }
    head_write_origin(head, place, origin, out);
    if (is_upgrade)
        head_write(out, "Connection", "Upgrade");
    strbuf_adds(out, "\r\n");
}

/* ---- answers ---- */

/* It is for more than the app: see above. */
static bool head_reaches_beyond(const char *name)
{
    static const char *const names[] = { "Service-Worker-Allowed",
                                         "Clear-Site-Data",
                                         "Strict-Transport-Security",
                                         "Alt-Svc",
                                         "NEL",
                                         "Report-To",
                                         NULL };

    return head_is_one_of(name, names);
}

/* Is the attribute that begins here the one of this name, with blanks around it as browsers take
 * them? *ret_value is then what follows "=" and blanks.
 */
static bool head_is_attribute(const char *part, const char *name, const char **ret_value)
{
    const char *word = part + strspn(part, " \t"), *end = word + strlen(name);

    if (strncasecmp(word, name, strlen(name)) != 0)
        return false;
    end += strspn(end, " \t");
    if (*end != '=')
        return false;
    *ret_value = end + 1 + strspn(end + 1, " \t");
    return true;
}

/* "name=value; Path=/x; HttpOnly" with the path beneath the app's, and for no domain. */
static void head_write_set_cookie(const char *value, const struct place *place, struct strbuf *out)
{
    size_t len = strcspn(value, ";");
    const char *path, *attribute;

    if (cookie_is_ours(value))
        return;
    strbuf_adds(out, "Set-Cookie: ");
    strbuf_add(out, value, len);
    while (value[len]) {
        const char *part = value + len + 1;
        size_t n = strcspn(part, ";");

        if (head_is_attribute(part, "path", &path) && *path == '/') {
            strbuf_adds(out, "; Path=");
            place_write_path(place, out);
            strbuf_add(out, path, n - (size_t)(path - part));
        } else if (!head_is_attribute(part, "path", &attribute)
                   && !head_is_attribute(part, "domain", &attribute)) {
            strbuf_addc(out, ';');
            strbuf_add(out, part, n);
        }
        len += 1 + n;
    }
    strbuf_adds(out, "\r\n");
}

static void head_write_location(const char *value, const struct place *place, struct strbuf *out)
{
    strbuf_adds(out, "Location: ");
    if (value[0] == '/' && value[1] != '/')
        place_write_path(place, out);
    strbuf_addf(out, "%s\r\n", value);
}

void head_write_answer(const struct message_head *head, const struct place *place, bool is_kept,
                       struct strbuf *out)
{
    bool has_length = head->status >= 200 && head->status != 204;

    strbuf_addf(out, "HTTP/1.1 %d %s\r\n", head->status, status_text(head->status));
    for (size_t i = 0; i < head->header_count; i++) {
        const struct message_header *h = &head->headers[i];

        if (head_is_ours(head, h->name) || head_reaches_beyond(h->name)
            || (!has_length
                && (strcasecmp(h->name, "Transfer-Encoding") == 0
                    || strcasecmp(h->name, "Content-Length") == 0)))
            continue;
        if (strcasecmp(h->name, "Set-Cookie") == 0)
            head_write_set_cookie(h->value, place, out);
        else if (strcasecmp(h->name, "Location") == 0)
            head_write_location(h->value, place, out);
        else if (head->status == 101 || strcasecmp(h->name, "Upgrade") != 0)
            head_write(out, h->name, h->value);
    }
    if (head->status >= 200 && !is_kept)
        head_write(out, "Connection", "close");
    else if (head->status == 101)
        head_write(out, "Connection", "Upgrade");
    strbuf_adds(out, "\r\n");
}

int64_t head_keep_usec(const struct message_head *head)
{
    const char *value = message_get_header(head, "Keep-Alive");
    const char *timeout = value ? strcasestr(value, "timeout=") : NULL;
    long sec = timeout ? strtol(timeout + strlen("timeout="), NULL, 10) : 0;

    return timeout ? AQ_MAX(AQ_MIN(sec, KEEP_SEC_MAX), 0L) * USEC_PER_SEC : -1;
}
