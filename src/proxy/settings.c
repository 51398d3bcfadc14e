/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "proxy/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/url.h"

#define AT(member) offsetof(struct settings, member)

const struct conf_item settings_items[] = {
    { "proxy", "listen", CONF_LISTEN, AT(listen), "127.0.0.1:5050", 0, 0, 0,
      "Address at which browsers, or a front end, reach the proxy." },
    { "proxy", "public-url", CONF_STR, AT(public_url), NULL, 0, 0, 0,
      "URL of the proxy as browsers know it, https://apps.example.org; none: of 'listen'." },
    { "proxy", "domain", CONF_STR, AT(domain), NULL, 0, 0, 0,
      "Names below it, apps.example.org, each are an app's; none: apps have ports or paths." },
    { "proxy", "ports", CONF_STR, AT(ports), NULL, 0, 0, 0,
      "Ports of TCP apps, and of pages without a domain, 10200-10299; none: paths, and no TCP." },
    { "proxy", "tls-cert", CONF_PATH, AT(tls_cert), NULL, 0, 0, 0,
      "Certificate chain (PEM), read again on SIGHUP; without one it speaks plain HTTP." },
    { "proxy", "tls-key", CONF_PATH, AT(tls_key), NULL, 0, 0, 0, "Its private key (PEM)." },
    { "proxy", "insecure", CONF_BOOL, AT(insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach." },
    { "proxy", "name", CONF_STR, AT(name), "main", 0, 0, 0,
      "Name of this proxy in its cluster; a token to join is made for it." },
    { "proxy", "state", CONF_PATH, AT(state), NULL, 0, 0, 0, "Folder of its certificate and key." },
    { "proxy", "manager", CONF_LISTEN, AT(manager), NULL, 0, 0, 0,
      "The manager's link, HOST:8082; none: the one that was joined." },
    { "proxy", "cookie-lifetime", CONF_DURATION, AT(cookie_usec), "12h", 60 * USEC_PER_SEC,
      INT64_C(30) * 86400 * USEC_PER_SEC, 0, "How long a browser may use an app it was let into." },
    { "proxy", "start-wait", CONF_DURATION, AT(wait_usec), "2s", 0, 600 * USEC_PER_SEC, 0,
      "After this a page that waits for its app's start shows so, and comes again by itself." },
    { "proxy", "max-connections", CONF_INT, AT(connections_max), "10000", 1, 1000000, 0,
      "Connections of browsers at one time; further ones are closed." },
    { "proxy", "log-level", CONF_STR, AT(log_level), "info", 0, 0, 0,
      "error, warning, info or debug." },
    { "metrics", "listen", CONF_STR, AT(metrics_listen), "127.0.0.1:5051", 0, 0, 0,
      "Address of /metrics; off: none." },
    { "metrics", "tls-cert", CONF_PATH, AT(metrics_tls_cert), NULL, 0, 0, 0,
      "Certificate chain of /metrics (PEM)." },
    { "metrics", "tls-key", CONF_PATH, AT(metrics_tls_key), NULL, 0, 0, 0,
      "Its private key (PEM)." },
    { "metrics", "insecure", CONF_BOOL, AT(metrics_insecure), NULL, 0, 0, 0,
      "Allow plain HTTP where others can reach it." },
    CONF_TABLE_END,
};

static char *settings_default_state(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (geteuid() == 0)
        return strdup("/var/lib/aliquot/proxy");
    if (state && state[0] == '/')
        return aq_format("%s/aliquot/proxy", state);
    return aq_format("%s/.local/state/aliquot/proxy", home ? home : "");
}

static int settings_set(char **place, const char *value, struct aq_error *err)
{
    if (!value)
        return 0;
    free(*place);
    *place = strdup(value);
    return *place ? 0 : aq_fail_oom(err);
}

/* A text that is set to nothing, as a variable can be, is not set. */
static void settings_drop_empty(char **place)
{
    if (*place && !**place) {
        free(*place);
        *place = NULL;
    }
}

static int settings_check_url(struct settings *s, struct aq_error *err)
{
    size_t len = s->public_url ? strlen(s->public_url) : 0;
    struct url url;

    if (!s->public_url) {
        s->public_url = aq_format(strchr(s->listen.host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
                                  s->tls_cert ? "https" : "http", s->listen.host,
                                  (unsigned)s->listen.port);
        return s->public_url ? 0 : aq_fail_oom(err);
    }
    if (len && s->public_url[len - 1] == '/')
        s->public_url[len - 1] = '\0';
    if (url_parse(s->public_url, &url, err) < 0 || strcmp(url.target, "/") != 0)
        return aq_fail_field(err, EINVAL, "proxy.public-url",
                             "'%.100s' is no URL without a path, such as https://apps.example.org",
                             s->public_url);
    return 0;
}

static int settings_read_ports(struct settings *s, struct aq_error *err)
{
    unsigned min, max;
    char more;

    if (!s->ports)
        return 0;
    if (sscanf(s->ports, "%5u-%5u%c", &min, &max, &more) != 2 || min == 0 || min > max
        || max > UINT16_MAX || (s->listen.port >= min && s->listen.port <= max))
        return aq_fail_field(err, EINVAL, "proxy.ports",
                             "'%.40s' is no range of ports without the proxy's own, such as "
                             "10200-10299",
                             s->ports);
    s->port_min = (uint16_t)min;
    s->port_max = (uint16_t)max;
    return 0;
}

static int settings_finish(struct settings *s, const char *state, const char *listen,
                           struct aq_error *err)
{
    int r = settings_set(&s->state, state, err);

    settings_drop_empty(&s->public_url);
    settings_drop_empty(&s->domain);
    settings_drop_empty(&s->ports);
    if (r == 0 && !s->state && !(s->state = settings_default_state()))
        r = aq_fail_oom(err);
    if (r == 0 && listen)
        r = conf_set(&settings_items[0], listen, s, err);
    if (r == 0 && !s->tls_cert != !s->tls_key)
        r = aq_fail_field(err, EINVAL, "proxy.tls-cert",
                          "tls-cert and tls-key belong together: set both or neither");
    if (r == 0)
        r = settings_read_ports(s, err);
    return r < 0 ? r : settings_check_url(s, err);
}

int settings_load(const char *file, const char *state, const char *listen, struct settings *ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *usual = file ? NULL : conf_default_file("proxy");
    struct settings got = { .name = NULL };
    int r;

    if (!file && !usual)
        return aq_fail_oom(err);
    r = conf_load(settings_items, file ? file : usual, !file, &got, err);
    if (r == 0 && (r = settings_finish(&got, state, listen, err)) < 0)
        settings_done(&got);
    if (r == 0)
        *ret = got;
    return r;
}

void settings_done(struct settings *settings)
{
    conf_done(settings_items, settings);
}

bool settings_is_https(const struct settings *settings)
{
    return strncmp(settings->public_url, "https:", 6) == 0;
}
