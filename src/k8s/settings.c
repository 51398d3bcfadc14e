/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "k8s/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/device_id.h"
#include "k8s/card_policy.h"

#define AT(member) offsetof(struct settings, member)
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define UNIT_MIN (INT64_C(64) << 20) /* smaller ones would be too many ids for the kubelet */

const struct conf_item settings_items[] = {
    { "", "log-level", CONF_STR, AT(log_level), "info", 0, 0, 0, "error, warning, info or debug" },
    { "kubernetes", "url", CONF_STR, AT(url), NULL, 0, 0, 0,
      "Of the API server; in a pod by default as its environment says" },
    { "kubernetes", "token", CONF_STR, AT(token), SERVICE_ACCOUNT "/token", 0, 0, 0,
      "File with what it knows us by; \"\" = nothing" },
    { "kubernetes", "ca", CONF_PATH, AT(ca), SERVICE_ACCOUNT "/ca.crt", 0, 0, 0,
      "File with the authority of its certificate" },
    { "kubernetes", "node", CONF_STR, AT(node), NULL, 0, 0, 0,
      "Name of this node; by default NODE_NAME of the environment" },
    { "kubernetes", "namespace", CONF_STR, AT(space), NULL, 0, 0, 0,
      "Of this program's own objects; by default POD_NAMESPACE of the environment" },
    { "resources", "memory", CONF_STR, AT(memory_name), "alnair/vgpu-memory", 0, 0, 0,
      "Name under which pods ask for memory of a GPU" },
    { "resources", "memory-unit", CONF_SIZE, AT(memory_unit), "1g", UNIT_MIN, INT64_C(1) << 40, 0,
      "Memory of which pods ask for a number" },
    { "resources", "compute", CONF_STR, AT(compute_name), "alnair/vgpu-compute", 0, 0, 0,
      "Name under which pods ask for a GPU's time" },
    { "resources", "compute-units", CONF_INT, AT(compute_units), "100", 1, DEVICE_UNITS_MAX, 0,
      "How many of it are the whole of a GPU" },
    { "kubelet", "folder", CONF_PATH, AT(kubelet), "/var/lib/kubelet/device-plugins", 0, 0, 0,
      "Where the kubelet's socket for device plugins is" },
    { "kubelet", "pod-resources", CONF_PATH, AT(pod_resources),
      "/var/lib/kubelet/pod-resources/kubelet.sock", 0, 0, 0,
      "The kubelet's socket that says which devices containers have" },
    { "plugin", "run", CONF_PATH, AT(run), "/run/aliquot/kubernetes", 0, 0, 0,
      "Folder on the node, by the same path in a pod of ours, of what containers are given" },
    { "gpu", "library", CONF_PATH, AT(gpu_library), NULL, 0, 0, 0,
      "libaliquot-gpu.so, which is copied for containers; beside the program by default" },
    { "gpu", "watch", CONF_PATH, AT(gpu_watch), NULL, 0, 0, 0,
      "aliquot-gpu, which asks the driver who uses GPUs; beside the program by default" },
    { "gpu", "work-conserving", CONF_BOOL, AT(gpu_conserving), "false", 0, 0, 0,
      "Time of a GPU that a container does not want is given to the others" },
    { "limits", "on-violation", CONF_STR, AT(on_violation), "tell", 0, 0, 0,
      "A pod uses a GPU past its part: tell (an Event), or evict, too" },
    { "scheduler", "listen", CONF_STR, AT(scheduler_listen), "127.0.0.1:9090", 0, 0, 0,
      "Where kube-scheduler calls its extender: an address of this machine, or unix:/PATH" },
    { "scheduler", "metrics", CONF_STR, AT(scheduler_metrics), "0.0.0.0:9877", 0, 0, 0,
      "Address of GET /metrics for Prometheus; off: none" },
    { "scheduler", "policy", CONF_STR, AT(scheduler_policy), "bin-packing", 0, 0, 0,
      "For pods that name none: bin-packing, high-performance or fragmentation" },
    { "metrics", "listen", CONF_STR, AT(metrics_listen), "0.0.0.0:9876", 0, 0, 0,
      "Address of the plugin's GET /metrics, for Prometheus, and /health; off: none" },
    ACCEL_SETTINGS_ITEMS(struct settings, accel),
    { "webhook", "listen", CONF_STR, AT(webhook.listen), "0.0.0.0:9443", 0, 0, 0,
      "Where the API server asks about pods, by https; off: nowhere" },
    { "webhook", "scheduler", CONF_STR, AT(webhook.scheduler), "aliquot", 0, 0, 0,
      "Scheduler of pods that ask for a part of a GPU and name none" },
    { "webhook", "default-memory", CONF_INT, AT(webhook.default_memory), "0", 0, DEVICE_UNITS_MAX,
      0, "Units for who asks for compute alone; 0 = that is refused" },
    { "webhook", "card-memory", CONF_INT, AT(webhook.card_memory), "0", 0, DEVICE_UNITS_MAX, 0,
      "Units that the largest card has: more is refused, and percentages are of it; 0 = not known" },
    { "webhook", "hami", CONF_BOOL, AT(webhook.hami), "false", 0, 0, 0,
      "Take HAMi's names of resources, too" },
    { "webhook", "allow-node-name", CONF_BOOL, AT(webhook.allow_node_name), "false", 0, 0, 0,
      "Pods with a part of a GPU may name their node, past the scheduler" },
    { "webhook", "allow-privileged", CONF_BOOL, AT(webhook.allow_privileged), "false", 0, 0, 0,
      "They may have rights of the node, with which they can leave their limits" },
    { "webhook", "allow-capabilities", CONF_LIST, AT(webhook.capabilities), NULL, 0, 0, 0,
      "Capabilities of Linux that they may have besides those that are always allowed" },
    { "webhook", "allow-host-paths", CONF_LIST, AT(webhook.host_paths), NULL, 0, 0, 0,
      "Folders of the node that they may mount by hostPath, with what is below" },
    { "webhook", "days", CONF_INT, AT(webhook.days), "90", 1, 3650, 0,
      "Life of its certificate, which is renewed when a third of that is left" },
    { "webhook", "check", CONF_DURATION, AT(webhook.check_usec), "1m", USEC_PER_SEC / 10,
      INT64_C(86400) * USEC_PER_SEC, 0, "How often to look at the certificate and who trusts it" },
    CONF_TABLE_END,
};

/* "vendor-domain/name", as the kubelet wants names of extended resources. */
static bool settings_is_resource(const char *name)
{
    const char *slash = strchr(name, '/');

    if (!slash || slash == name || !slash[1] || strlen(slash + 1) > 63 || slash - name > 253)
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.' && c != slash
            && (*c != '_' || c < slash))
            return false;
    return isalnum((unsigned char)name[0]) && isalnum((unsigned char)slash[1])
           && isalnum((unsigned char)name[strlen(name) - 1]);
}

static int settings_check(const struct settings *s, struct aq_error *err)
{
    if (!settings_is_resource(s->memory_name))
        return aq_fail_field(err, EINVAL, "resources.memory",
                             "'%.100s' is no name of a resource, such as alnair/vgpu-memory",
                             s->memory_name);
    if (!settings_is_resource(s->compute_name))
        return aq_fail_field(err, EINVAL, "resources.compute",
                             "'%.100s' is no name of a resource, such as alnair/vgpu-compute",
                             s->compute_name);
    if (strcmp(s->memory_name, s->compute_name) == 0)
        return aq_fail_field(err, EINVAL, "resources.compute",
                             "memory and compute cannot both be '%.100s'", s->memory_name);
    if (strcmp(s->on_violation, "tell") != 0 && strcmp(s->on_violation, "evict") != 0)
        return aq_fail_field(err, EINVAL, "limits.on-violation",
                             "'%.100s' is neither tell nor evict", s->on_violation);
    if (card_policy_find(s->scheduler_policy) < 0)
        return aq_fail_field(
            err, EINVAL, "scheduler.policy",
            "scheduler.policy '%.100s' is none of bin-packing, high-performance, fragmentation",
            s->scheduler_policy);
    for (size_t i = 0; i < s->webhook.host_paths.count; i++)
        if (s->webhook.host_paths.items[i][0] != '/')
            return aq_fail_field(
                err, EINVAL, "webhook.allow-host-paths",
                "webhook.allow-host-paths has '%.100s', which is not an absolute path",
                s->webhook.host_paths.items[i]);
    if (s->accel.hooks)
        return aq_fail_field(err, EINVAL, "accelerators.cdi-hooks",
                             "the kubelet runs no hooks for a device plugin");
    return 0;
}

int settings_load(const char *file, struct settings *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *usual = file ? NULL : conf_default_file("k8s");
    struct settings got = { .kubelet = NULL };
    int r = conf_load(settings_items, file ? file : usual, !file, &got, err);
    if (r == 0 && (r = settings_check(&got, err)) < 0)
        settings_done(&got);
    if (r == 0)
        *ret = got;
    return r;
}

void settings_done(struct settings *settings)
{
    conf_done(settings_items, settings);
}
