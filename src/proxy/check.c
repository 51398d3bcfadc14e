/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - see proxy/check.h */
#include "proxy/check.h"

#include <stdio.h>
#include <string.h>

#include "front/check.h"
#include "proxy/route_file.h"
#include "proxy/service_file.h"
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

/* The services as the proxy that runs has saved them. */
struct service_counts {
    size_t services, replicas, empty;
    const char *one; /* without a replica that takes requests, though some are wanted */
    const char *why;
};

static void check_count_service(const struct msg_serving_service *service,
                                struct service_counts *counts)
{
    size_t open = 0;

    if (service->is_gone)
        return;
    for (size_t i = 0; i < service->replica_count; i++)
        open += !service->replicas[i].is_draining && service->replicas[i].ratio_ppm > 0;
    counts->services++;
    counts->replicas += open;
    if (open || !service->wanted)
        return;
    counts->empty++;
    counts->one = service->name;
    counts->why = service->problem ? service->problem : "no reason is known";
}

static void check_services(void *data, struct finding *ret)
{
    const struct settings *s = data;
    struct service_counts counts = { 0 };
    struct aq_error err = { 0 };
    struct message msg;

    if (service_file_read(s->common.state, &msg, &err) < 0) {
        finding_say(ret, CHECK_SKIPPED, "no model service was served yet");
        return;
    }
    for (size_t i = 0; i < msg.serving_routes.service_count; i++)
        check_count_service(&msg.serving_routes.services[i], &counts);
    if (counts.empty) {
        finding_say(ret, CHECK_WARNING,
                    "%zu of %zu model services have no ready replica; last '%s': %.100s",
                    counts.empty, counts.services, counts.one, counts.why);
        finding_mean(ret, "their requests wait, and fail after the queue time of the service");
        finding_mend(ret, "run 'aliquot service info NAME'");
    } else {
        finding_say(ret, CHECK_OK, "%zu model service%s, %zu ready replica%s", counts.services,
                    counts.services == 1 ? "" : "s", counts.replicas,
                    counts.replicas == 1 ? "" : "s");
    }
    message_done(&msg);
}

const struct check proxy_checks[] = {
    { "proxy.joined", "proxy", "membership", front_check_joined },
    { "proxy.port", "proxy", "port for browsers", front_check_port },
    { "proxy.certificate", "proxy", "certificate", front_check_certificate },
    { "proxy.path", "proxy", "way to apps", check_path },
    { "proxy.services", "proxy", "model services", check_services },
    { .id = NULL },
};
