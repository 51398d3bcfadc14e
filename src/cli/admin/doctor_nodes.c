/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the agents, services and managers of the cluster. */
#include <string.h>

#include "base/clock.h"
#include "cli/admin/doctor_cluster.h"
#include "cli/output/output.h"

/* "heard 12 s ago" */
static void doctor_write_heard(const json_t *item, struct strbuf *out)
{
    const char *text = json_string_value(json_object_get(item, "last_contact"));
    int64_t usec;

    if (!text || clock_parse_date(text, &usec) < 0) {
        strbuf_adds(out, "not heard since the manager started");
        return;
    }
    strbuf_adds(out, "heard ");
    cell_write_span(AQ_MAX(clock_realtime_usec() - usec, 0), out);
    strbuf_adds(out, " ago");
}

/* Agents are away unless they are connected and ALIVE; services have no status. */
static bool doctor_is_away(const json_t *item)
{
    const char *status = json_string_value(json_object_get(item, "status"));

    return !json_is_true(json_object_get(item, "connected"))
           || (status && strcmp(status, "ALIVE") != 0);
}

/* List the agents or services that are away, or all of them if none is. 'noun' is NULL for
 * services, which name their own kind. Returns the number that is away; -1 = this user may not list
 * them.
 */
static int doctor_list_contacts(struct doctor_cluster *c, const char *path, const char *noun,
                                struct strbuf *out, size_t *ret_count)
{
    json_t *answer = NULL, *items;
    const json_t *item;
    int away = 0;
    size_t i;

    if (!c->is_reached || cli_call(c->cli, METHOD_GET, path, NULL, &answer, NULL) < 0)
        return -1;
    items = json_object_get(answer, "items");
    *ret_count = json_array_size(items);
    json_array_foreach(items, i, item)
        away += doctor_is_away(item);
    json_array_foreach(items, i, item) {
        const char *kind = output_text(item, "kind");
        const char *name = output_text(item, noun ? "id" : "name");
        const char *status = json_string_value(json_object_get(item, "status"));

        if ((away && !doctor_is_away(item)) || out->len > 200)
            continue;
        strbuf_addf(out, "%s%s '%s' ", out->len ? ", " : "", noun ? noun : kind, name);
        if (doctor_is_away(item))
            strbuf_addf(out, "(%s) ",
                        status && strcmp(status, "ALIVE") != 0 ? status : "not connected");
        doctor_write_heard(item, out);
    }
    json_decref(answer);
    return away;
}

void doctor_check_agents(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    size_t count = 0;
    int away = doctor_list_contacts(data, "/aliquot/v1/agents?limit=1000", "agent", &list, &count);

    if (away < 0)
        return;
    if (away == 0) {
        finding_say(ret, CHECK_OK, "%zu connected%s%s", count,
                    count ? ": " : "; no agent has joined", count ? list.data : "");
        return;
    }
    finding_say(ret, CHECK_WARNING, "%d of %zu agents lost or not connected: %s", away, count,
                list.data);
    finding_mean(ret, "no session starts there; running sessions continue if the machine does");
    finding_mend(ret, "aliquot agent ls; on the agent's machine: aliquot doctor agent; "
                      "systemctl restart aliquot-agent");
}

/* Write "agent 'a1' does not reach 'a2' (192.0.2.2:51871/udp)" per pair; returns the number. */
static size_t doctor_list_unreached(const json_t *items, struct strbuf *out)
{
    const json_t *item, *id, *other;
    size_t i, k, n, count = 0;

    json_array_foreach(items, i, item) {
        const json_t *network = json_object_get(item, "network");

        json_array_foreach(json_object_get(network, "unreachable"), k, id) {
            const json_t *endpoint = NULL;

            json_array_foreach(items, n, other)
                if (json_equal(json_object_get(other, "id"), id))
                    endpoint = json_object_get(json_object_get(other, "network"), "endpoint");
            count++;
            if (out->len < 200)
                strbuf_addf(out, "%sagent '%s' does not reach '%s'%s%s%s", out->len ? ", " : "",
                            json_string_value(json_object_get(item, "id")), json_string_value(id),
                            endpoint ? " (" : "", endpoint ? json_string_value(endpoint) : "",
                            endpoint ? "/udp)" : "");
        }
    }
    return count;
}

/* Write "agent 'a3': no /dev/net/tun" for each agent without a network between nodes; returns their
 * number.
 */
static size_t doctor_list_without_network(const json_t *items, struct strbuf *out)
{
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(items, i, item) {
        const json_t *network = json_object_get(item, "network");
        const char *mode = json_string_value(json_object_get(network, "mode"));
        const char *note = json_string_value(json_object_get(network, "note"));

        if (!mode || strcmp(mode, "none") != 0)
            continue;
        count++;
        if (out->len < 200)
            strbuf_addf(out, "%sagent '%s'%s%s", out->len ? ", " : "",
                        json_string_value(json_object_get(item, "id")), note ? ": " : "",
                        note ? note : "");
    }
    return count;
}

void doctor_check_network(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    struct doctor_cluster *c = data;
    json_auto_t *answer = NULL;
    const json_t *items;
    size_t count;

    if (!c->is_reached
        || cli_call(c->cli, METHOD_GET, "/aliquot/v1/agents?limit=1000", NULL, &answer, NULL) < 0)
        return;
    items = json_object_get(answer, "items");
    if (json_array_size(items) < 2) {
        finding_say(ret, CHECK_OK, "not needed: the cluster has fewer than two agents");
        return;
    }
    if ((count = doctor_list_unreached(items, &list)) != 0) {
        finding_say(ret, CHECK_WARNING, "%zu pairs of agents do not reach each other: %s", count,
                    list.data);
        finding_mean(ret, "no session with several kernels is placed on such a pair");
        finding_mend(ret, "open that UDP port between the nodes; it is cluster-port in agent.toml");
        return;
    }
    if ((count = doctor_list_without_network(items, &list)) != 0) {
        finding_say(ret, CHECK_WARNING, "%zu of %zu agents are without it: %s", count,
                    json_array_size(items), list.data);
        finding_mean(ret, "a session with kernels on several agents does not use these");
        finding_mend(ret, "on the agents' machines: aliquot doctor containers; apt install "
                          "wireguard-tools wireguard-go");
        return;
    }
    finding_say(ret, CHECK_OK, "agents reach each other");
}

void doctor_check_services(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    size_t count = 0;
    int away = doctor_list_contacts(data, "/aliquot/v1/services", NULL, &list, &count);

    if (away < 0)
        return;
    if (away == 0) {
        finding_say(ret, CHECK_OK, "%s",
                    count ? list.data : "no storage host, proxy or web server has connected");
        return;
    }
    finding_say(ret, CHECK_WARNING, "%d of %zu services not connected: %s", away, count, list.data);
    finding_mean(ret, "folders, apps or web pages that they serve cannot be reached");
    finding_mend(ret, "on their machines: systemctl restart aliquot-storage, aliquot-proxy or "
                      "aliquot-web");
}

/* Write the standbys that are not connected, and the managers whose version differs from the
 * leader's; returns their number.
 */
static size_t doctor_list_bad_managers(const json_t *items, struct strbuf *out)
{
    const char *version = NULL;
    const json_t *item;
    size_t i, count = 0;

    json_array_foreach(items, i, item)
        if (strcmp(output_text(item, "role"), "leader") == 0)
            version = json_string_value(json_object_get(item, "version"));
    json_array_foreach(items, i, item) {
        const char *own = json_string_value(json_object_get(item, "version"));
        bool is_away = !json_is_true(json_object_get(item, "connected"));
        bool is_other = version && own && strcmp(version, own) != 0;

        if (!is_away && !is_other)
            continue;
        count++;
        if (out->len > 200)
            continue;
        strbuf_addf(out, "%s'%s' (", out->len ? ", " : "", output_text(item, "name"));
        if (is_away)
            strbuf_adds(out, "not connected");
        if (is_other)
            strbuf_addf(out, "%sof version %s", is_away ? ", " : "", own);
        strbuf_addc(out, ')');
    }
    return count;
}

void doctor_check_managers(void *data, struct finding *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    struct doctor_cluster *c = data;
    json_auto_t *answer = NULL;
    const json_t *items;
    size_t count, bad;

    if (!c->is_reached
        || cli_call(c->cli, METHOD_GET, "/aliquot/v1/managers", NULL, &answer, NULL) < 0)
        return; /* only superadmins may list them */
    items = json_object_get(answer, "items");
    count = json_array_size(items);
    bad = doctor_list_bad_managers(items, &list);
    if (bad == 0) {
        finding_say(ret, CHECK_OK, count > 1 ? "all %zu are connected and of one version" : "%zu",
                    count);
        return;
    }
    finding_say(ret, CHECK_WARNING,
                "%zu of %zu managers are not connected or differ in version: %s", bad, count,
                list.data);
    finding_mean(ret, "a manager that is not connected cannot take over from the leader");
    finding_mend(ret, "on their machines: aliquot doctor manager; systemctl restart "
                      "aliquot-manager, or upgrade it; to remove one: aliquot manager rm NAME");
}
