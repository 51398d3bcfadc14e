/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - where an app or a model service is found: by a path of the proxy, or by a name below its
 * domain
 *
 * "/app/SESSION/APP/..." is that app's "/..."; with a domain, "APP--SESSION.DOMAIN" is an app's
 * own host, with SESSION's 32 digits without the dashes. Its pages then have an origin of their
 * own, and absolute links work. A model service is at "/serve/NAME/..." and "NAME--serve.DOMAIN".
 */
#ifndef AQ_PROXY_PLACE_H
#define AQ_PROXY_PLACE_H

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"
#include "proxy/cookie.h"

#define PLACE_SERVICE_MAX 24

struct place {
    char service[PLACE_SERVICE_MAX + 1]; /* "" = an app, by the two below */
    struct uuid session_id;
    char app[COOKIE_APP_MAX + 1];
    const char *rest; /* of the target: the app's own, begins with "/"; NULL: "/" is missing */
    bool is_host;     /* found by the host's name or a port: all paths are the app's */
};

/* 1 if the request is for an app or a service, 0 if it is for the proxy itself, -EINVAL for a place that is
 * none. 'host' may be NULL; 'domain' NULL = there is none.
 */
int place_parse(const char *target, const char *host, const char *domain, struct place *ret,
                struct aq_error *err) AQ_UNTRUSTED;

/* By a port, which is this cookie's app's. */
void place_of_port(const struct cookie *of, const char *target, struct place *ret);

/* The address at which browsers find it, without "/" at the end: 'url' is the proxy's, of which
 * a domain takes the host's place.
 */
void place_write_url(const struct place *place, const char *url, const char *domain,
                     struct strbuf *out);
/* "https://DOMAIN:PORT", with scheme and port of 'url'. */
void place_write_domain(const char *url, const char *domain, struct strbuf *out);
/* "/app/SESSION/APP" or "/serve/NAME", or "" by the host. */
void place_write_path(const struct place *place, struct strbuf *out);

#endif
