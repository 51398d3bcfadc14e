/* SPDX-License-Identifier: Apache-2.0 */
/* Percent coding, query strings, absolute URLs and addresses. */
#include "http/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

static int url_hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Decode into 'out', which has room for 'len' bytes; the length or -EINVAL. */
static ssize_t url_decode_bytes(const char *text, size_t len, bool plus, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (c == '%') {
            int high = i + 2 < len ? url_hex_value(text[i + 1]) : -1;
            int low = high >= 0 ? url_hex_value(text[i + 2]) : -1;

            if (low < 0)
                return -EINVAL;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus)
            c = ' ';
        if (!c)
            return -EINVAL;
        out[n++] = c;
    }
    return (ssize_t)n;
}

int url_decode(struct arena *arena, const char *text, size_t len, bool plus, const char **ret,
               struct aq_error *err)
{
    char *out = arena_alloc(arena, len + 1);
    ssize_t n;

    n = url_decode_bytes(text, len, plus, out);
    if (n < 0)
        return aq_fail(err, EINVAL, "the URL has a broken percent escape or a NUL");
    if (!utf8_is_valid(out, (size_t)n))
        return aq_fail(err, EINVAL, "the URL is not UTF-8 once decoded");
    *ret = out;
    return 0;
}

void url_encode(struct strbuf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (isalnum(c) || strchr("-._~", c))
            strbuf_addc(out, (char)c);
        else {
            strbuf_addc(out, '%');
            strbuf_addc(out, digits[c >> 4]);
            strbuf_addc(out, digits[c & 15]);
        }
    }
}

static size_t url_count_char(const char *text, size_t len, char c)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += text[i] == c;
    return n;
}

/* One "name=value" piece. */
static int url_parse_pair(struct arena *arena, const char *text, size_t len, struct url_pair *ret,
                          struct aq_error *err)
{
    const char *equals = memchr(text, '=', len);
    size_t name_len = equals ? (size_t)(equals - text) : len;
    int r;

    r = url_decode(arena, text, name_len, true, &ret->name, err);
    if (r < 0)
        return r;
    ret->value = "";
    if (equals)
        r = url_decode(arena, equals + 1, len - name_len - 1, true, &ret->value, err);
    return r;
}

int url_query_parse(struct arena *arena, const char *text, size_t len, struct url_query *ret,
                    struct aq_error *err)
{
    const char *end = text + len;
    struct url_query query = { .count = 0 };
    size_t most = url_count_char(text, len, '&') + 1;

    if (!len) {
        *ret = query;
        return 0;
    }
    query.pairs = arena_array(arena, AQ_MIN(most, URL_QUERY_MAX), sizeof(*query.pairs));
    while (text < end) {
        const char *amp = memchr(text, '&', (size_t)(end - text));
        size_t piece = (size_t)((amp ? amp : end) - text);

        if (piece) {
            int r;

            if (query.count == URL_QUERY_MAX)
                return aq_fail(err, E2BIG, "the query string has more than %d parameters",
                               URL_QUERY_MAX);
            r = url_parse_pair(arena, text, piece, &query.pairs[query.count], err);
            if (r < 0)
                return r;
            query.count++;
        }
        text += piece + 1;
    }
    *ret = query;
    return 0;
}

const char *url_query_get(const struct url_query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++)
        if (!strcmp(query->pairs[i].name, name))
            return query->pairs[i].value;
    return NULL;
}

/* Decimal 0..65535, the whole text. */
static int url_parse_port(const char *text, uint16_t *ret)
{
    unsigned port = 0;

    if (!*text || strlen(text) > 5)
        return -EINVAL;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        port = port * 10 + (unsigned)(*text - '0');
    }
    if (port > 65535)
        return -EINVAL;
    *ret = (uint16_t)port;
    return 0;
}

static bool url_is_host(const char *host, bool bracketed)
{
    struct in6_addr six;

    if (bracketed)
        return inet_pton(AF_INET6, host, &six) == 1;
    if (!*host)
        return false;
    for (; *host; host++)
        if (!isalnum((unsigned char)*host) && !strchr("-._", *host))
            return false;
    return true;
}

/* Copy text[len] to a field of 'size' bytes; false if it does not fit. */
static bool url_copy_text(char *out, size_t size, const char *text, size_t len)
{
    if (len >= size)
        return false;
    memcpy(out, text, len);
    out[len] = '\0';
    return true;
}

int address_parse(const char *text, uint16_t default_port, struct address *ret,
                  struct aq_error *err)
{
    struct address address = { .port = default_port };
    bool bracketed = text[0] == '[';
    const char *host = text + bracketed, *host_end, *port;

    if (!strncmp(text, "unix:", 5)) {
        address.is_unix = true;
        if (!text[5]
            || !url_copy_text(address.path, sizeof(address.path), text + 5, strlen(text + 5)))
            return aq_fail(err, EINVAL, "'%s': a Unix socket's path has 1 to %zu bytes", text,
                           sizeof(address.path) - 1);
        *ret = address;
        return 0;
    }
    host_end = bracketed ? strchr(host, ']') : host + strcspn(host, ":");
    if (!host_end
        || !url_copy_text(address.host, sizeof(address.host), host, (size_t)(host_end - host))
        || !url_is_host(address.host, bracketed))
        return aq_fail(err, EINVAL,
                       "'%s' is not an address: give HOST:PORT, [IPV6]:PORT or unix:/PATH", text);
    port = host_end + bracketed;
    if (*port ? *port != ':' || url_parse_port(port + 1, &address.port) < 0 : !default_port)
        return aq_fail(err, EINVAL, "'%s' has no port from 0 to 65535 after its host", text);
    *ret = address;
    return 0;
}

bool address_is_local(const struct address *address)
{
    struct in6_addr six;
    struct in_addr four;

    if (address->is_unix || !strcasecmp(address->host, "localhost"))
        return true;
    if (inet_pton(AF_INET, address->host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, address->host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static const struct {
    const char *prefix;
    bool tls;
    uint16_t port;
} schemes[] = {
    { "http://", false, 80 },
    { "https://", true, 443 },
    { "ws://", false, 80 },
    { "wss://", true, 443 },
};

/* A request target: visible ASCII without '#'. */
static bool url_is_target(const char *text)
{
    for (; *text; text++)
        if (*text <= 0x20 || *text >= 0x7f || *text == '#')
            return false;
    return true;
}

int url_parse(const char *text, struct url *ret, struct aq_error *err)
{
    struct url url = { .target = "/" };
    const char *rest = NULL;
    uint16_t port = 0;
    size_t len;
    int r;

    for (size_t i = 0; i < AQ_COUNT(schemes) && !rest; i++)
        if (!strncasecmp(text, schemes[i].prefix, strlen(schemes[i].prefix))) {
            rest = text + strlen(schemes[i].prefix);
            url.tls = schemes[i].tls;
            port = schemes[i].port;
        }
    if (!rest)
        return aq_fail(err, EINVAL, "'%s' is not an http:// or https:// URL", text);
    len = strcspn(rest, "/?#");
    if (!url_copy_text(url.authority, sizeof(url.authority), rest, len))
        return aq_fail(err, EINVAL, "the URL's host is too long");
    if (!strncmp(url.authority, "unix:", 5))
        return aq_fail(err, EINVAL, "'%s' has no host", text);
    r = address_parse(url.authority, port, &url.address, err);
    if (r < 0)
        return r;
    if (rest[len] == '/')
        url.target = rest + len;
    else if (rest[len])
        return aq_fail(err, EINVAL, "'%s' has no path before '%c'", text, rest[len]);
    if (!url_is_target(url.target))
        return aq_fail(err, EINVAL, "the URL's path has a blank, '#' or a character to escape");
    *ret = url;
    return 0;
}
