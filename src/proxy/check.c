/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see proxy/check.h */
#include "proxy/check.h"

#include <stdio.h>
#include <string.h>

#include "front/check.h"
#include "proxy/route_file.h"
#include "proxy/settings.h"

/* How agents were reached last, as the proxy that runs has written it. */
struct path_ways {
    size_t direct, relayed;
    char agent[80], why[200]; /* of one that is reached through the manager */
};

static void check_count_way(void *data, const char *agent_id, const char *way, const char *why)
{
    struct path_ways *ways = data;

    if (strcmp(way, "manager") != 0) {
        ways->direct++;
        return;
    }
    ways->relayed++;
    (void)snprintf(ways->agent, sizeof(ways->agent), "%s", agent_id);
    (void)snprintf(ways->why, sizeof(ways->why), "%s", why);
}

static void check_path(void *data, struct finding *ret)
{
    const struct settings *s = data;
    struct path_ways ways = { 0 };
    struct aq_error err = { 0 };

    if (route_file_each_way(s->common.state, check_count_way, &ways, &err) < 0
        || ways.direct + ways.relayed == 0) {
        finding_say(ret, CHECK_SKIPPED, "no app was reached yet");
    } else if (!ways.relayed) {
        finding_say(ret, CHECK_OK, "apps of %zu agent%s are reached without the manager",
                    ways.direct, ways.direct == 1 ? "" : "s");
    } else {
        finding_say(ret, CHECK_WARNING,
                    "apps of %zu of %zu agents are reached through the manager; last '%s': %s",
                    ways.relayed, ways.direct + ways.relayed, ways.agent, ways.why);
        finding_mean(ret, "their bytes pass the manager: apps are slower, and away with it");
        finding_mend(ret, "open the port of [data] listen in agent.toml, by default TCP 8083, to "
                          "this machine; then open an app again");
    }
}

const struct check proxy_checks[] = {
    { "proxy.joined", "proxy", "membership", front_check_joined },
    { "proxy.port", "proxy", "port for browsers", front_check_port },
    { "proxy.certificate", "proxy", "certificate", front_check_certificate },
    { "proxy.path", "proxy", "way to apps", check_path },
    { .id = NULL },
};
