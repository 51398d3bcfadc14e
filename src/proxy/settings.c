/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "proxy/settings.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

#define SHARE_LEAST 4 /* ports of one user */
#define AT(member) offsetof(struct settings, member)

const struct conf_item settings_items[] = {
    { "proxy", "listen", CONF_LISTEN, FRONT_AT(listen), "127.0.0.1:5050", 0, 0, 0,
      "Address at which browsers, or a front end, reach the proxy." },
    { "proxy", "public-url", CONF_STR, FRONT_AT(public_url), NULL, 0, 0, 0,
      "URL of the proxy as browsers know it, https://apps.example.org; none: of 'listen'." },
    { "proxy", "domain", CONF_STR, AT(domain), NULL, 0, 0, 0,
      "Names below it, apps.example.org, each are an app's; none: apps have ports or paths." },
    { "proxy", "ports", CONF_STR, AT(ports), NULL, 0, 0, 0,
      "Ports of TCP apps, and of pages without a domain, 10200-10299; none: paths, and no TCP." },
    { "proxy", "max-ports-per-user", CONF_INT, AT(user_ports_max), "0", 0, UINT16_MAX, 0,
      "Ports of one user's apps at a time; 0: an eighth of all, at least 4, at most half." },
    FRONT_CERTIFICATE_ITEMS("proxy"),
    FRONT_MEMBERSHIP_ITEMS("proxy", "proxy", "main", "its certificate and key"),
    { "proxy", "cookie-lifetime", CONF_DURATION, AT(cookie_usec), "12h", 60 * USEC_PER_SEC,
      INT64_C(30) * 86400 * USEC_PER_SEC, 0, "How long a browser may use an app it was let into." },
    { "proxy", "start-wait", CONF_DURATION, AT(wait_usec), "2s", 0, 600 * USEC_PER_SEC, 0,
      "After this a page that waits for its app's start shows so, and comes again by itself." },
    FRONT_RUNNING_ITEMS("proxy", "browsers", "127.0.0.1:5051"),
    { "runtime", "folder", CONF_PATH, AT(run), "/run/aliquot", 0, 0, 0,
      "As in agent.toml: agents of this machine hand over connections to apps by sockets there." },
    CONF_TABLE_END,
};

static int settings_read_ports(struct settings *s, struct aq_error *err)
{
    unsigned min, max;
    char more;

    if (!s->ports)
        return 0;
    if (sscanf(s->ports, "%5u-%5u%c", &min, &max, &more) != 2 || min == 0 || min > max
        || max > UINT16_MAX || (s->common.listen.port >= min && s->common.listen.port <= max))
        return aq_fail_field(err, EINVAL, "proxy.ports",
                             "'%.40s' is no range of ports without the proxy's own, such as "
                             "10200-10299",
                             s->ports);
    s->port_min = (uint16_t)min;
    s->port_max = (uint16_t)max;
    return 0;
}

/* A single user must not be able to take every port, whatever the range is. */
static int64_t settings_share_of_ports(const struct settings *s)
{
    int64_t count = s->port_max ? s->port_max - s->port_min + 1 : 0;

    return AQ_MIN(AQ_MAX(count / 8, SHARE_LEAST), (count + 1) / 2);
}

int settings_finish(void *settings, struct aq_error *err)
{
    struct settings *s = settings;
    int r;

    front_settings_drop_empty(&s->domain);
    front_settings_drop_empty(&s->ports);
    r = settings_read_ports(s, err);
    if (r == 0 && !s->user_ports_max)
        s->user_ports_max = settings_share_of_ports(s);
    return r;
}
