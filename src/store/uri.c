/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the URI of a database server. */
#include "store/uri.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static int uri_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c | 0x20) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* "%41" as "A"; free() it. */
static char *uri_decode(const char *text, size_t len)
{
    char *decoded = aq_alloc(len + 1), *to = decoded;

    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && i + 2 < len ? uri_digit(text[i + 1]) : -1;
        int low = high < 0 ? -1 : uri_digit(text[i + 2]);

        if (low >= 0)
            i += 2;
        *to++ = low >= 0 ? (char)(high << 4 | low) : text[i];
    }
    return decoded;
}

static void uri_set_decoded(const char *text, size_t len, char **ret)
{
    char *value = uri_decode(text, len);

    free(*ret);
    *ret = value;
}

static char *uri_authority(char *uri)
{
    char *mark = strstr(uri, "://");

    return mark ? mark + 3 : strchr(uri, '\0');
}

/* The '@' behind user and password, or NULL. */
static char *uri_credentials_end(char *uri)
{
    char *end = uri_authority(uri);

    end += strcspn(end, "@/");
    return *end == '@' ? end : NULL;
}

static bool uri_has_key(const char *parameter, size_t len, const char *key)
{
    AQ_CLEANUP(aq_freep) char *name = uri_decode(parameter, len);

    return strcmp(name, key) == 0;
}

void uri_take_parameter(char *uri, const char *key, char **ret)
{
    char *begin = uri_credentials_end(uri), *at;

    begin = strchr(begin ? begin : uri, '?');
    for (at = begin ? begin + 1 : NULL; at && *at;) {
        size_t len = strcspn(at, "&"), name = strcspn(at, "=&"), whole = len + (at[len] == '&');
        size_t value = AQ_MIN(name + 1, len);

        if (uri_has_key(at, name, key)) {
            uri_set_decoded(at + value, len - value, ret);
            memmove(at, at + whole, strlen(at + whole) + 1);
        } else {
            at += whole;
        }
    }
    if (at && !*at && strchr("?&", at[-1])) /* the last one went */
        at[-1] = '\0';
}

void uri_take_password(char *uri, char **ret)
{
    char *end = uri_credentials_end(uri);
    char *colon = end ? memchr(uri_authority(uri), ':', (size_t)(end - uri_authority(uri))) : NULL;

    if (colon) {
        uri_set_decoded(colon + 1, (size_t)(end - colon - 1), ret);
        memmove(colon, end, strlen(end) + 1);
    }
    uri_take_parameter(uri, "password", ret);
}

/* "[::1]:5432" and "10.0.0.1" without port and brackets; a socket's folder is encoded or not. */
static bool uri_is_local_host(const char *text, size_t len)
{
    size_t from = len > 0 && text[0] == '[';
    AQ_CLEANUP(aq_freep) char *host = uri_decode(text + from, len - from);

    if (from)
        host[strcspn(host, "]")] = '\0';
    else if (host[0] != '/' && strchr(host, ':') == strrchr(host, ':'))
        host[strcspn(host, ":")] = '\0';
    return host[0] == '\0' || host[0] == '/' || host[0] == '@' || strcmp(host, "localhost") == 0
           || (strncmp(host, "127.", 4) == 0 && !host[strspn(host, "0123456789.")])
           || strcmp(host, "::1") == 0;
}

static bool uri_are_local_hosts(const char *list)
{
    do {
        size_t len = strcspn(list, ",");

        if (!uri_is_local_host(list, len))
            return false;
        list += len;
    } while (*list++ == ',');
    return true;
}

bool uri_is_local(const char *uri)
{
    AQ_CLEANUP(aq_freep) char *copy = aq_strdup(uri), *host = NULL, *address = NULL;
    char *end;

    uri_take_parameter(copy, "host", &host); /* goes before the authority, and hostaddr before it */
    uri_take_parameter(copy, "hostaddr", &address);
    if (address || host)
        return uri_are_local_hosts(address ? address : host);
    end = uri_credentials_end(copy);
    host = aq_strdup(end ? end + 1 : uri_authority(copy));
    host[strcspn(host, "/?")] = '\0';
    return uri_are_local_hosts(host);
}
