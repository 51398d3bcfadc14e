/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - the ports that a kernel publishes on its node */
#include "agent/kernel/services.h"

#include <errno.h>
#include <string.h>

#include "agent/kernel/container_spec.h"
#include "agent/kernel/host_network.h"
#include "agent/ssh/ssh.h"
#include "base/log.h"
#include "runner/app_own.h"

/* What its session opens. */
static const struct int_list *services_ports(const struct local_kernel *k)
{
    return &kernel_get_spec(k)->session.ports;
}

int services_check(const struct local_kernel *k, struct aq_error *err)
{
    struct services opened = { .count = 0 };
    int r = services_add_preopen(&opened, services_ports(k), err);

    if (r < 0 || !opened.count)
        return r;
    if (!k->is_container)
        return aq_fail_as(err, ENOTSUP, "no-container", "preopen_ports",
                          "a process of the node has the node's own ports; only containers can "
                          "have ports opened: name an image");
    if (!k->agent->net)
        return aq_fail_as(err, ENOTSUP, "no-network", "preopen_ports",
                          "containers of this node have no network, so no port can be opened");
    return 0;
}

static const char *services_image_label(const struct local_kernel *k, const char *key)
{
    return k->image && k->image->config ? image_config_label(k->image->config, key) : NULL;
}

/* Logging in takes a shell. */
bool services_have_ssh(const struct local_kernel *k)
{
    return k->agent->ssh && k->agent->net && kernel_get_spec(k)->ssh_seed
           && (image_is_for_files(k->image) || container_find_shell(k->image));
}

bool services_offer_sftp(const struct agent_daemon *agent)
{
    return agent->ssh && agent->net && ssh_has_sftp(agent->ssh);
}

/* Else nothing could be done in a session for files. */
static int services_check_files(const struct local_kernel *k, struct aq_error *err)
{
    if (services_have_ssh(k) && services_offer_sftp(k->agent))
        return 0;
    return aq_fail_as(err, ENOTSUP, "no-sftp", "image",
                      "this node has no SFTP, which takes networks for containers and the packages "
                      "dropbear-bin and openssh-sftp-server; there, 'aliquot doctor' says more");
}

uint16_t services_ssh_port(const struct local_kernel *k)
{
    return k->host ? host_network_port(k->host, CLUSTER_HOST_SSH) : SSH_PORT;
}

static int services_find_all(const struct local_kernel *k, bool with_ssh, struct services *ret,
                             struct aq_error *err)
{
    const char *label = kernel_is_main(k) ? services_image_label(k, SERVICE_LABEL) : NULL;
    const char *endpoints = services_image_label(k, SERVICE_ENDPOINT_LABEL);
    struct services found = { .count = 0 };
    int r = label ? services_add_label(&found, label, err) : 0;

    if (r == 0 && endpoints)
        services_mark_endpoints(&found, endpoints);
    if (r == 0)
        r = services_add_preopen(&found, services_ports(k), err);
    if (r < 0)
        return r;
    if (with_ssh)
        (void)services_add_own(&found, "sshd", "tcp", services_ssh_port(k));
    *ret = found;
    return 0;
}

static bool services_are_logged_in_to(const struct local_kernel *k)
{
    return (kernel_is_of_type(k, SESSION_INTERACTIVE) || kernel_is_of_type(k, SESSION_SYSTEM))
           && services_have_ssh(k);
}

int services_find(const struct local_kernel *k, struct services *ret, struct aq_error *err)
{
    int r = image_is_for_files(k->image) ? services_check_files(k, err) : 0;

    return r < 0 ? r : services_find_all(k, services_are_logged_in_to(k), ret, err);
}

/* Of a network that may be an earlier agent's. */
static bool services_publishes_ssh(const struct net_info *info)
{
    for (size_t i = 0; i < info->port_count; i++)
        if (info->ports[i].inside == SSH_PORT)
            return true;
    return false;
}

/* The node's port of each; false if the network has not the same ports. */
static bool services_find_outside(const struct services *services, const struct net_info *info,
                                  uint16_t *ret)
{
    if (info->port_count != services->port_count)
        return false;
    for (size_t i = 0; i < services->port_count; i++) {
        if (info->ports[i].inside != services->ports[i])
            return false;
        ret[i] = info->ports[i].outside;
    }
    return true;
}

/* Apps of the runner whose programs the image has, to which no port of the node leads. They ask
 * nobody for a password, so there is none on the loopback of a node.
 */
static void services_add_apps(const struct local_kernel *k, struct services *services)
{
    if (!kernel_is_main(k) || kernel_is_of_type(k, SESSION_SYSTEM) || k->host)
        return;
    for (size_t i = 0; i < app_own_count; i++) {
        const struct app_own *own = &app_own_table[i];

        if (!own->program || container_has_program(k->image, own->program))
            (void)services_add_own(services, own->name, "http", own->port);
    }
}

void services_note(struct local_kernel *k)
{
    _Static_assert(SERVICE_PORTS_MAX <= NET_PORTS_MAX, "a network can publish all of them");
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    const struct net_info *info = k->is_connected ? net_get_info(k->network) : NULL;
    uint16_t outside[SERVICE_PORTS_MAX] = { 0 };
    struct aq_error err = { 0 };
    struct services services;

    if (!k->image)
        return;
    if (services_find_all(
            k, k->host ? services_are_logged_in_to(k) : info && services_publishes_ssh(info),
            &services, &err)
            < 0
        || (info && !services_find_outside(&services, info, outside))) {
        log_warning("the ports of a kernel are not told: %s",
                    err.code ? err.text : "its image has changed");
        return;
    }
    if (k->host) {
        memcpy(outside, services.ports, services.port_count * sizeof(*outside));
        host_network_keep_ports(k->host, &services);
    }
    services_add_apps(k, &services);
    if (!services.count)
        return;
    services_write(&services, outside, &w);
    free(k->service_ports);
    k->service_ports = strbuf_steal(&text);
}

const char *services_opened(const struct local_kernel *k, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct services opened = { .count = 0 };

    if (services_add_preopen(&opened, services_ports(k), NULL) < 0)
        return NULL;
    for (size_t i = 0; i < opened.count; i++)
        strbuf_addf(&text, "%s%s", i ? "," : "", opened.items[i].name);
    return text.len ? arena_strdup(arena, text.data) : NULL;
}

const char *services_label(const struct local_kernel *k, struct arena *arena)
{
    const char *label = services_image_label(k, SERVICE_LABEL);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct services opened = { .count = 0 };

    if (services_add_preopen(&opened, services_ports(k), NULL) < 0)
        return NULL;
    strbuf_adds(&text, label ? label : "");
    for (size_t i = 0; i < opened.count; i++)
        strbuf_addf(&text, "%s%s:preopen:%s", text.len ? "," : "", opened.items[i].name,
                    opened.items[i].name);
    return text.len ? arena_strdup(arena, text.data) : NULL;
}
