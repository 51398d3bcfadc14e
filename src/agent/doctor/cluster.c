/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - has this node a network to other nodes, for sessions that have kernels on several? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accel/protocol.h"
#include "agent/doctor/doctor_internal.h"
#include "agent/net/cluster_tunnel.h"
#include "agent/net/rdma.h"

#define CLUSTER_MSEC 20000
#define TRIAL_TAG "doctor"

/* Creates a device, in a network of this process alone. */
static int doctor_try_wireguard(struct doctor *d, struct aq_error *err)
{
    (void)d;
    return cluster_tunnel_check_mode(CLUSTER_WIREGUARD, TRIAL_TAG, err);
}

static void doctor_say_no_tunnel(const struct aq_error *err, struct finding *ret)
{
    finding_say(ret, CHECK_WARNING, "no tunnel to other nodes: %s", err->text);
    finding_mean(ret, "no kernel of a session that has kernels on several nodes can run here");
    finding_mend(ret, "apt install wireguard-tools wireguard-go");
}

void doctor_check_cluster(void *data, struct finding *ret)
{
    struct doctor *d = data;
    const char *mode = d->settings->cluster;
    struct aq_error kernel = { 0 }, daemon = { 0 };
    int port = (int)d->settings->cluster_port;
    bool is_auto = strcmp(mode, "auto") == 0;

    if (!doctor_can_try(d) || !d->settings->network)
        return;
    if (strcmp(mode, "none") == 0) {
        finding_say(ret, CHECK_OK, "turned off by cluster = \"none\" in [network]");
    } else if (strcmp(mode, "vxlan") == 0) {
        finding_say(ret, CHECK_OK, "VXLAN on UDP port %d; it does not encrypt", port);
    } else if ((is_auto || strcmp(mode, "wireguard") == 0)
               && doctor_run_apart(doctor_try_wireguard, d, CLUSTER_MSEC, &kernel) == 0) {
        finding_say(ret, CHECK_OK, "WireGuard of the Linux kernel on UDP port %d", port);
    } else if (!is_auto && strcmp(mode, "wireguard") == 0) {
        doctor_say_no_tunnel(&kernel, ret);
    } else if (cluster_tunnel_check_mode(CLUSTER_WIREGUARD_GO, TRIAL_TAG, &daemon) == 0) {
        finding_say(ret, CHECK_OK, "wireguard-go on UDP port %d%s%.200s", port, is_auto ? ": " : "",
                    is_auto ? kernel.text : "");
    } else {
        doctor_say_no_tunnel(&daemon, ret);
    }
}

/* Checked only if agent.toml offers RDMA devices. */
void doctor_check_rdma(void *data, struct finding *ret)
{
    struct doctor *d = data;
    const struct conf_list *wanted = &d->settings->network_rdma;
    const char *root = getenv(ACCEL_ROOT_VARIABLE);
    struct rdma_devices devices = { .arena = ARENA_INIT };
    AQ_CLEANUP(strbuf_donep) struct strbuf names = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (!wanted->count)
        return;
    if (rdma_find(root ? root : "", (const char *const *)wanted->items, wanted->count, &devices,
                  &err)
        < 0) {
        finding_say(ret, CHECK_WARNING, "%s", err.text);
        finding_mean(ret, "sessions with --rdma cannot run on this node");
        finding_mend(ret, "ls " RDMA_CLASS "; modprobe -a ib_uverbs rdma_ucm");
        return;
    }
    for (size_t i = 0; i < devices.names.count; i++)
        strbuf_addf(&names, "%s%s", i ? ", " : "", devices.names.items[i]);
    finding_say(ret, CHECK_OK, "%s", names.data);
    rdma_devices_done(&devices);
}
