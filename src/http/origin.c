/* SPDX-License-Identifier: Apache-2.0 */
/* Which web pages may use a server. */
#include "http/origin.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "http/server.h"
#include "http/url.h"

static bool origin_is_allowed(const struct origin_rules *rules, const char *origin)
{
    for (size_t i = 0; i < rules->count; i++)
        if (strcmp(rules->allowed[i], "*") == 0 || strcasecmp(rules->allowed[i], origin) == 0)
            return true;
    return false;
}

/* "http://HOST" or "https://HOST": a page of this server. */
static bool origin_is_own(const char *origin, const char *host)
{
    if (strncasecmp(origin, "http", 4) != 0)
        return false;
    origin += 4;
    origin += *origin == 's' || *origin == 'S';
    return host && strncmp(origin, "://", 3) == 0 && strcasecmp(origin + 3, host) == 0;
}

/* A name that leads nowhere but to this machine. Other names may be made to by
 * their owners, after their page was loaded from elsewhere.
 */
static bool origin_host_is_local(const char *host)
{
    struct address address;

    return address_parse(host, 80, &address, NULL) == 0 && !address.is_unix
           && address_is_local(&address);
}

static int origin_fail(struct aq_error *err, const char *what, const char *value)
{
    return aq_fail_kind(err, EACCES, "generic-forbidden",
                        "%s '%.100s' is refused: this server, whose keys are published (--dev), "
                        "is for programs of its own machine",
                        what, value);
}

static int origin_admit_local(const struct request *req, struct aq_error *err)
{
    const char *host = request_get_header(req, "Host");
    const char *origin = request_get_header(req, "Origin");
    const char *site = request_get_header(req, "Sec-Fetch-Site");

    if (host && !origin_host_is_local(host))
        return origin_fail(err, "Host", host);
    if (origin && !origin_is_own(origin, host))
        return origin_fail(err, "Origin", origin);
    if (site && strcasecmp(site, "cross-site") == 0)
        return origin_fail(err, "Sec-Fetch-Site", site);
    return 0;
}

int origin_admit(const struct origin_rules *rules, struct request *req, struct aq_error *err)
{
    const char *origin = request_get_header(req, "Origin");

    if (rules->is_local)
        return origin_admit_local(req, err);
    if (!origin || !origin_is_allowed(rules, origin))
        return 0;
    request_add_header(req, "Access-Control-Allow-Origin", origin);
    request_add_header(req, "Access-Control-Expose-Headers", "*");
    request_add_header(req, "Vary", "Origin");
    return 0;
}
