/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - see place.h */
#include "proxy/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PREFIX "/app/"
#define SERVICE_PREFIX "/serve/"
#define SERVICE_LABEL "--serve"

static bool place_take_app(const char *text, size_t len, struct place *ret)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (len == 0 || len > COOKIE_APP_MAX || strspn(text, letters) < len)
        return false;
    memcpy(ret->app, text, len);
    ret->app[len] = '\0';
    return true;
}

static bool place_take_service(const char *text, size_t len, struct place *ret)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (len == 0 || len > PLACE_SERVICE_MAX || strspn(text, letters) < len)
        return false;
    memcpy(ret->service, text, len);
    ret->service[len] = '\0';
    return true;
}

static bool place_take_session(const char *text, size_t len, struct place *ret)
{
    char id[UUID_TEXT_MAX];

    if (len >= sizeof(id))
        return false;
    memcpy(id, text, len);
    id[len] = '\0';
    return uuid_parse(id, &ret->session_id) == 0;
}

static int place_parse_path(const char *target, struct place *ret, struct aq_error *err)
{
    const char *session = target + strlen(PREFIX);
    size_t len = strcspn(session, "/?");
    const char *app = session + len + 1;
    size_t app_len = session[len] == '/' ? strcspn(app, "/?") : 0;

    if (!app_len || !place_take_session(session, len, ret) || !place_take_app(app, app_len, ret))
        return aq_fail_kind(err, EINVAL, "url-not-found",
                            "apps are at " PREFIX "SESSION/APP/, with the session's id");
    ret->rest = app[app_len] == '/' ? app + app_len : NULL;
    return 1;
}

static int place_parse_service_path(const char *target, struct place *ret, struct aq_error *err)
{
    const char *name = target + strlen(SERVICE_PREFIX);
    size_t len = strcspn(name, "/?");

    if (!place_take_service(name, len, ret))
        return aq_fail_kind(err, EINVAL, "url-not-found",
                            "model services are at " SERVICE_PREFIX "NAME/");
    ret->rest = name[len] == '/' ? name + len : NULL;
    return 1;
}

/* "digits--serve" */
static bool place_parse_service_label(const char *label, size_t len, struct place *ret)
{
    size_t end = strlen(SERVICE_LABEL);

    return len > end && strncasecmp(label + len - end, SERVICE_LABEL, end) == 0
           && place_take_service(label, len - end, ret);
}

/* "jupyter--0123456789abcdef0123456789abcdef"; whose dashes are put back. */
static bool place_parse_label(const char *label, size_t len, struct place *ret)
{
    char id[UUID_TEXT_MAX];
    const char *hex = label + len - 32;

    if (len < 32 + 3 || hex[-1] != '-' || hex[-2] != '-')
        return false;
    (void)snprintf(id, sizeof(id), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
                   hex + 20);
    return place_take_session(id, strlen(id), ret) && place_take_app(label, len - 34, ret);
}

int place_parse(const char *target, const char *host, const char *domain, struct place *ret,
                struct aq_error *err)
{
    size_t host_len = host ? strcspn(host, ":") : 0;
    size_t domain_len = domain ? strlen(domain) : 0;

    *ret = (struct place){ .rest = target };
    if (domain_len && host_len > domain_len + 1 && host[host_len - domain_len - 1] == '.'
        && strncasecmp(host + host_len - domain_len, domain, domain_len) == 0) {
        ret->is_host = true;
        if (place_parse_service_label(host, host_len - domain_len - 1, ret)
            || place_parse_label(host, host_len - domain_len - 1, ret))
            return 1;
        return aq_fail_kind(err, EINVAL, "url-not-found",
                            "apps are at APP--SESSION.%s, model services at NAME--serve.%s", domain,
                            domain);
    }
    if (strncmp(target, SERVICE_PREFIX, strlen(SERVICE_PREFIX)) == 0)
        return place_parse_service_path(target, ret, err);
    return strncmp(target, PREFIX, strlen(PREFIX)) == 0 ? place_parse_path(target, ret, err) : 0;
}

void place_of_port(const struct cookie *of, const char *target, struct place *ret)
{
    *ret = (struct place){ .session_id = of->session_id, .rest = target, .is_host = true };
    memcpy(ret->app, of->app, sizeof(ret->app));
}

void place_write_path(const struct place *place, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    if (place->is_host)
        return;
    if (place->service[0])
        strbuf_addf(out, SERVICE_PREFIX "%s", place->service);
    else
        strbuf_addf(out, PREFIX "%s/%s", uuid_format(&place->session_id, id), place->app);
}

static void place_write_label(const struct place *place, struct strbuf *out)
{
    if (place->service[0]) {
        strbuf_addf(out, "%s" SERVICE_LABEL, place->service);
        return;
    }
    strbuf_addf(out, "%s--", place->app);
    for (size_t i = 0; i < sizeof(place->session_id.bytes); i++)
        strbuf_addf(out, "%02x", place->session_id.bytes[i]);
}

static const char *place_find_host(const char *url)
{
    return strstr(url, "://") + 3;
}

/* ":443", or "" without a port. */
static const char *place_find_port(const char *url)
{
    const char *host = place_find_host(url);
    const char *port = strrchr(host, ':'), *bracket = strchr(host, ']');

    return port && (!bracket || bracket < port) ? port : "";
}

void place_write_url(const struct place *place, const char *url, const char *domain,
                     struct strbuf *out)
{
    if (!domain) {
        strbuf_adds(out, url);
        place_write_path(place, out);
        return;
    }
    strbuf_add(out, url, (size_t)(place_find_host(url) - url));
    place_write_label(place, out);
    strbuf_addf(out, ".%s%s", domain, place_find_port(url));
}

void place_write_domain(const char *url, const char *domain, struct strbuf *out)
{
    strbuf_add(out, url, (size_t)(place_find_host(url) - url));
    strbuf_addf(out, "%s%s", domain, place_find_port(url));
}
