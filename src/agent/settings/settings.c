/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - the settings of an agent (agent.toml) */
#include "agent/settings/settings.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "agent/settings/image_registries.h"
#include "agent/net/net.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/memory.h"
#include "conf/tables.h"
#include "http/url.h"
#include "link/identity.h"
#include "model/agent.h"

#define AT(member) offsetof(struct settings, member)
#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)

const struct conf_item settings_items[] = {
    { "", "state", CONF_PATH, AT(state), NULL, 0, 0, 0,
      "Folder of certificates, kernels and logs; $ALIQUOT_STATE_DIR/agent by default" },
    { "", "id", CONF_STR, AT(id), NULL, 0, 0, 0, "Name of this node; the host's name by default" },
    { "", "log-level", CONF_STR, AT(log_level), "info", 0, 0, 0, "error, warning, info or debug" },

    { "manager", "address", CONF_LIST, AT(managers), NULL, 0, 0, 0,
      "Agent links of the cluster's managers, HOST:PORT; those that it joined and learned by "
      "default" },
    { "manager", "heartbeat", CONF_DURATION, AT(heartbeat_usec), NULL, 0, 60 * USEC_PER_SEC, 0,
      "Interval of reports; 0 leaves it to the manager" },

    { "node", "region", CONF_STR, AT(region), NULL, 0, 0, 0, "Shown to administrators" },
    { "node", "topology", CONF_STR, AT(topology), NULL, 0, 0, 0,
      "Where this node is, from the outside in, as zone-a/rack-3/switch-1: kernels of one session "
      "are placed near to each other" },
    { "node", "resource-group", CONF_STR, AT(resource_group), NULL, 0, 0, 0,
      "Resource group that this node belongs to" },
    { "node", "address", CONF_STR, AT(address), NULL, 0, 0, 0, "Address to show for this node" },

    { "resource", "cpus", CONF_INT, AT(cpus), NULL, 0, 4096, 0,
      "Number of cores to offer; 0 offers those that the agent may use" },
    { "resource", "mem", CONF_SIZE, AT(memory_bytes), NULL, 0, 0, 0,
      "Memory to offer; 0 offers what machine and cgroup allow" },
    { "resource", "reserved-cpu", CONF_INT, AT(reserved_cpu), "0", 0, 4096, 0,
      "Cores kept for the node itself" },
    { "resource", "reserved-mem", CONF_SIZE, AT(reserved_memory_bytes), "512m", 0, 0, 0,
      "Memory kept for the node itself" },
    { "resource", "cpu-overcommit-factor", CONF_INT, AT(cpu_factor), "1", 1, 10, 0,
      "How often each core is offered" },
    { "resource", "mem-overcommit-factor", CONF_INT, AT(memory_factor), "1", 1, 10, 0,
      "How often the memory is offered" },
    { "resource", "allocation-mode", CONF_STR, AT(offer_mode), NULL, 0, 0, 0,
      "exclusive (the default): no other agent of this machine offers the same; shared: others may; "
      "auto-split: this is one of several equal parts" },
    { "resource", "part", CONF_STR, AT(offer_part), NULL, 0, 0, 0,
      "K/N: with auto-split, this is the K-th of N agents" },
    { "resource", "cores", CONF_LIST, AT(offer_cores), NULL, 0, 0, 0,
      "Only these cores, as 0-3,8; all by default" },
    { "resource", "devices", CONF_LIST, AT(offer_devices), NULL, 0, 0, 0,
      "Only these accelerators, as cuda/GPU-1, rocm/* or cuda.shares/GPU-2=0.5; all by default" },
    { "resource", "reserved-device-memory", CONF_LIST, AT(offer_reserved), NULL, 0, 0, 0,
      "Memory of devices in shares that is kept for the node, as cuda/GPU-1=2g or cuda/*=512m" },
    { "resource", "allocation-order", CONF_LIST, AT(allocation_order), "cuda rocm tpu cpu mem", 0,
      0, 0, "Kinds of devices in the order in which they are chosen; others come before cpu" },
    { "resource", "affinity-policy", CONF_STR, AT(affinity), "interleaved", 0, 0, 0,
      "interleaved: devices from NUMA nodes in turn; single-node: from one node if it has enough" },

    { "process", "monitor", CONF_PATH, AT(monitor), NULL, 0, 0, 0,
      "The program aliquot-monitor; beside the agent by default" },
    { "process", "shell", CONF_PATH, AT(shell), NULL, 0, 0, 0, "Shell of interactive sessions" },
    { "process", "user", CONF_STR, AT(user), NULL, 0, 0, 0,
      "User of sessions without an image, which are processes of the node; by default the agent's "
      "own, and a root agent runs none" },
    { "process", "max-processes", CONF_INT, AT(processes_max), "0", 0, 0, 0,
      "Limit of processes of that user; 0 = none" },
    { "process", "max-files", CONF_INT, AT(files_max), "0", 0, 0, 0,
      "Limit of open files of each process; 0 = the agent's own" },
    { "process", "log-size", CONF_SIZE, AT(log_bytes), "10m", 64 << 10, INT64_C(1) << 40, 0,
      "The newest output kept of each kernel" },
    { "process", "bootstrap-timeout", CONF_DURATION, AT(bootstrap_usec), "2h", 0, 365 * DAY_USEC, 0,
      "Longest time of a bootstrap script, also in a container; 0 = any" },

    { "image", "registry", CONF_STR, AT(image_registry), "docker.io", 0, 0, 0,
      "Registry of images that are named without one" },
    { "image", "allow", CONF_LIST, AT(image_allow), "*", 0, 0, 0,
      "Which images may run: REGISTRY[/REPOSITORY], rootfs:/PATH, host ...; * = any registry" },
    { "image", "folder", CONF_PATH, AT(image_directory), NULL, 0, 0, 0,
      "Where images are kept; images/ below the state folder by default" },
    { "image", "auth-file", CONF_PATH, AT(image_auth), NULL, 0, 0, 0,
      "Credentials for registries, as of containers-auth.json(5)" },
    { "image", "mirrors", CONF_LIST, AT(image_mirrors), NULL, 0, 0, 0,
      "Mirrors to be tried first, each as REGISTRY=MIRROR" },
    { "image", "insecure", CONF_LIST, AT(image_insecure), NULL, 0, 0, 0,
      "Registries and mirrors that may be without TLS" },
    { "image", "signature-policy", CONF_PATH, AT(image_policy), NULL, 0, 0, 0,
      "Which signatures images need, as of containers-policy.json(5)" },
    { "image", "pull-timeout", CONF_DURATION, AT(image_timeout_usec), "2h", USEC_PER_SEC,
      7 * DAY_USEC, 0, "Longest time of a fetch" },
    { "image", "unpack-jobs", CONF_INT, AT(image_jobs), "2", 1, 64, 0,
      "How many layers are unpacked at a time" },
    { "image", "max-layer-size", CONF_SIZE, AT(image_layer_max), "128g", 1, INT64_MAX, 0,
      "Largest layer when unpacked, holes in files counted" },
    { "image", "max-entries", CONF_INT, AT(image_entries_max), "5000000", 1, INT64_MAX, 0,
      "Most files and folders in a layer" },
    { "image", "keep-free", CONF_SIZE, AT(image_keep_free), "0", 0, 0, 0,
      "Space that images leave on their file system; 0 = what the next scratch space needs" },
    { "image", "keep-age", CONF_DURATION, AT(image_keep_usec), "30d", 0, 3650 * DAY_USEC, 0,
      "How long an unused image is kept; 0 = forever" },
    { "image", "keep-size", CONF_SIZE, AT(image_keep_bytes), "0", 0, 0, 0,
      "Space that unused images may take; 0 = any" },
    { "image", "user-share", CONF_INT, AT(image_user_share), "50", 1, 100, 0,
      "Percent of the space for images that a user may have at the cost of others" },
    { "image", "skopeo", CONF_PATH, AT(image_skopeo), NULL, 0, 0, 0,
      "The program skopeo; from PATH by default" },
    { "image", "unpack", CONF_PATH, AT(image_unpack), NULL, 0, 0, 0,
      "The program aliquot-unpack; beside the agent by default" },
    { "image", "fetch", CONF_PATH, AT(image_fetch), NULL, 0, 0, 0,
      "The program aliquot-fetch; beside the agent by default" },

    { "folders", "volumes", CONF_LIST, AT(volumes), NULL, 0, 0, 0,
      "Volumes of storage hosts whose folders sessions may mount: local:volume1=/srv/folders" },

    ACCEL_SETTINGS_ITEMS(struct settings, accel),

    { "gpu", "library", CONF_PATH, AT(gpu_library), NULL, 0, 0, 0,
      "libaliquot-gpu.so, which holds containers to their part of a GPU; beside the agent by "
      "default" },
    { "gpu", "probe", CONF_PATH, AT(gpu_probe), NULL, 0, 0, 0,
      "The program aliquot-gpu-probe, which tries that in each container; beside the agent by "
      "default" },
    { "gpu", "watch", CONF_PATH, AT(gpu_watch), NULL, 0, 0, 0,
      "The program aliquot-gpu, which asks the driver who uses GPUs past their limits; beside the "
      "agent by default" },
    { "gpu", "misuse", CONF_STR, AT(gpu_misuse), "report", 0, 0, 0,
      "What becomes of a session whose programs use a GPU past its part of it: report or stop" },
    { "gpu", "work-conserving", CONF_BOOL, AT(gpu_conserving), "false", 0, 0, 0,
      "Whether sessions get more than their part of a GPU's time while others want none" },
    { "gpu", "allow-unenforced", CONF_BOOL, AT(gpu_unenforced), "false", 0, 0, 0,
      "Whether images without glibc's loader may have a part of a GPU, which nothing holds them to" },

    { "runtime", "driver", CONF_STR, AT(driver), "auto", 0, 0, 0,
      "auto: sessions of the image 'process' are processes of the node, others are containers; "
      "process or container: all are" },
    { "runtime", "oci", CONF_STR, AT(oci_runtime), "auto", 0, 0, 0,
      "What makes containers: crun, runc or a path; auto takes the first of them that works" },
    { "runtime", "folder", CONF_PATH, AT(run), "/run/aliquot", 0, 0, 0,
      "Folder for what lives as long as containers do" },
    { "runtime", "cgroup-parent", CONF_PATH, AT(cgroup_parent), "/aliquot", 0, 0, 0,
      "Cgroup below which containers have theirs" },
    { "runtime", "seccomp", CONF_PATH, AT(seccomp), "/usr/share/containers/seccomp.json", 0, 0, 0,
      "Profile of the system calls that containers may use" },
    { "runtime", "runner", CONF_PATH, AT(runner), NULL, 0, 0, 0,
      "The program aliquot-runner; beside the agent by default" },

    { "network", "enabled", CONF_BOOL, AT(network), "true", 0, 0, 0,
      "Whether containers have a network; without, they see nothing but themselves" },
    { "network", "pool", CONF_STR, AT(network_pool), NET_POOL, 0, 0, 0,
      "Addresses of containers on this node, as ADDRESS/BITS; agents of one machine share it" },
    { "network", "dns", CONF_LIST, AT(network_dns), NULL, 0, 0, 0,
      "Name servers of containers; those of the node by default" },
    { "network", "deny", CONF_LIST, AT(network_deny), NULL, 0, 0, 0,
      "ADDRESS[/BITS] that containers cannot reach, besides the node, the manager and each other" },
    { "network", "allow", CONF_LIST, AT(network_allow), NULL, 0, 0, 0,
      "ADDRESS[/BITS][:PORT] that they can in spite of that" },
    { "network", "max-connections", CONF_INT, AT(network_connections_max), "16384", 0, 16777216, 0,
      "Connections of a container at a time, to it and from it; 0: no limit" },
    { "network", "ssh", CONF_BOOL, AT(network_ssh), "true", 0, 0, 0,
      "Containers have an SSH server, where Debian's dropbear is installed" },
    { "network", "host", CONF_BOOL, AT(network_host), "false", 0, 0, 0,
      "Whether sessions may use the node's own network; without its packet filter" },
    { "network", "rdma", CONF_LIST, AT(network_rdma), NULL, 0, 0, 0,
      "InfiniBand and RoCE devices that sessions may use, such as mlx5_0; all = every device" },
    { "network", "sftp-idle", CONF_DURATION, AT(sftp_idle_usec), "1h", 0, 7 * DAY_USEC, 0,
      "A system session ends when nobody was connected for this long; 0: never" },
    { "network", "port-min", CONF_INT, AT(port_min), "30000", 1024, 65535, 0,
      "First port of the node to publish ports of containers on" },
    { "network", "port-max", CONF_INT, AT(port_max), "31000", 1024, 65535, 0, "And the last" },
    { "network", "port-rest", CONF_DURATION, AT(port_rest_usec), "60s", 0, 3600 * USEC_PER_SEC, 0,
      "Before a published port is used again" },
    { "network", "cluster", CONF_STR, AT(cluster), "auto", 0, 0, 0,
      "Tunnel between nodes for sessions that have kernels on several: wireguard, wireguard-go, "
      "vxlan (not encrypted) or none; auto: the best that the node has, but not vxlan" },
    { "network", "cluster-port", CONF_INT, AT(cluster_port), "51871", 1024, 65520, 0,
      "Its UDP port; further agents of the machine have the next ones" },
    { "network", "cluster-address", CONF_STR, AT(cluster_address), NULL, 0, 0, 0,
      "Address of this node for other nodes; that by which it reaches the manager by default" },

    { "data", "listen", CONF_STR, AT(data_listen), "auto", 0, 0, 0,
      "Where proxies of other machines reach apps without the manager, ADDRESS:PORT; auto: the "
      "address by which this node reaches the manager, the first free port of 8083 to 8098; off: "
      "nowhere" },
    { "data", "address", CONF_STR, AT(data_address), NULL, 0, 0, 0,
      "HOST:PORT that proxies connect to, if it is not what the agent listens on" },
    { "data", "user", CONF_STR, AT(data_user), "aliquot-proxy", 0, 0, 0,
      "User of the proxy of this machine, which is handed connections by a socket" },

    { "container", "scratch-size", CONF_SIZE, AT(scratch_bytes), "10g", 16 << 20, INT64_C(1) << 44,
      0, "What a container may write, /home/work included" },
    { "container", "scratch-reserve", CONF_BOOL, AT(scratch_reserve), "true", 0, 0, 0,
      "Whether a container starts only if the disk has room for all that containers may write" },
    { "container", "shm-size", CONF_SIZE, AT(shm_bytes), "64m", 4096, INT64_C(1) << 44, 0,
      "Size of /dev/shm unless the session says" },
    { "container", "max-processes", CONF_INT, AT(container_processes_max), "4096", 16, 4194304, 0,
      "Processes and threads of a container" },
    { "container", "max-files", CONF_INT, AT(container_files_max), "1048576", 64, 1048576, 0,
      "Open files of each of its processes" },
    { "container", "namespaces", CONF_BOOL, AT(container_namespaces), "false", 0, 0, 0,
      "Whether programs may make namespaces of their own, as bubblewrap, Apptainer and nested "
      "containers do" },
    { "container", "uid", CONF_INT, AT(container_uid), "1000", 0, 65535, 0,
      "User that programs run as, as the container counts" },
    { "container", "gid", CONF_INT, AT(container_gid), "1000", 0, 65535, 0, "And the group" },
    { "container", "id-start", CONF_INT, AT(id_start), "1879048192", 65536, 4293918720, 0,
      "First user id of the node for users of containers" },
    { "container", "id-ranges", CONF_INT, AT(id_ranges), "4096", 0, 32768, 0,
      "Ranges of 65536 users from there on; 0: no user namespaces" },

    { "statistics", "interval", CONF_DURATION, AT(stat_interval_usec), "5s", 0, 600 * USEC_PER_SEC,
      0, "How often it is measured what sessions, devices and the node use; 0: never" },

    { "metrics", "listen", CONF_STR, AT(metrics_listen), NULL, 0, 0, 0,
      "Address of GET /metrics for Prometheus; off: none. The first free port of 127.0.0.1:6003 to "
      "6018 by default" },
    { "metrics", "tls-cert", CONF_PATH, AT(metrics_tls_cert), NULL, 0, 0, 0,
      "Its certificate chain (PEM); without one it is plain HTTP" },
    { "metrics", "tls-key", CONF_PATH, AT(metrics_tls_key), NULL, 0, 0, 0,
      "And private key (PEM)" },
    { "metrics", "insecure", CONF_BOOL, AT(metrics_insecure), NULL, 0, 0, 0,
      "Allow plain HTTP on an address that others can reach" },

    { "service", "unit", CONF_STR, AT(service_unit), NULL, 0, 0, 0,
      "Unit of systemd that runs the agent, for 'aliquot agent restart' and 'stop'; default: "
      "that in whose cgroup it is" },
    { "service", "systemctl", CONF_PATH, AT(service_systemctl), "/usr/bin/systemctl", 0, 0, 0,
      "Path of systemctl" },

    { "logs", "keep-age", CONF_DURATION, AT(keep_usec), "7d", 0, 3650 * DAY_USEC, 0,
      "How long output is kept after a kernel's end" },
    { "logs", "keep-count", CONF_INT, AT(keep_count), "10000", 0, 1000000, 0,
      "Of how many ended kernels" },
    { "logs", "keep-size", CONF_SIZE, AT(keep_bytes), "1g", 0, 0, 0, "In how much space" },
    CONF_TABLE_END,
};

static bool settings_is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(text, words[i]) == 0)
            return true;
    return false;
}

int64_t settings_scratch_need(const struct settings *settings)
{
    return settings->scratch_reserve ? settings->scratch_bytes + SETTINGS_SCRATCH_MARGIN : 0;
}

bool settings_offer_processes(const struct settings *settings)
{
    return settings->user || geteuid() != 0;
}

const char *settings_volume_path(const char *item)
{
    return item + strcspn(item, "=") + 1;
}

static int settings_check_volume(const struct conf_list *volumes, size_t at, struct aq_error *err)
{
    const char *item = volumes->items[at];
    size_t len = strcspn(item, "="), storage = strcspn(item, ":");

    if (storage == 0 || storage + 1 >= len || strcspn(item, " \"\\") < len || item[len] != '='
        || item[len + 1] != '/')
        return aq_fail_field(err, EINVAL, "folders.volumes",
                             "'%.100s' is not STORAGE:VOLUME=PATH, such as "
                             "local:volume1=/srv/folders",
                             item);
    for (size_t i = 0; i < at; i++)
        if (strncmp(volumes->items[i], item, len + 1) == 0)
            return aq_fail_field(err, EINVAL, "folders.volumes", "there are two paths of '%.*s'",
                                 (int)len, item);
    return 0;
}

int settings_add_volume(struct settings *settings, const char *volume, struct aq_error *err)
{
    struct conf_list *volumes = &settings->volumes;

    for (size_t i = 0; i < volumes->count; i++)
        if (strncmp(volumes->items[i], volume, strcspn(volume, "=") + 1) == 0)
            return 0;
    conf_list_add(volumes, volume, strlen(volume));
    return settings_check_volume(volumes, volumes->count - 1, err);
}

static int settings_check_data(const struct settings *settings, struct aq_error *err)
{
    const char *listen = settings->data_listen;
    struct address address;

    if (strcmp(listen, "auto") != 0 && strcmp(listen, "off") != 0
        && (address_parse(listen, 0, &address, NULL) < 0 || address.is_unix))
        return aq_fail_field(err, EINVAL, "data.listen",
                             "data.listen '%.64s' is not auto, off or ADDRESS:PORT, such as "
                             "10.0.0.7:8083",
                             listen);
    if (settings->data_address
        && (address_parse(settings->data_address, 0, &address, NULL) < 0 || address.is_unix))
        return aq_fail_field(err, EINVAL, "data.address",
                             "data.address '%.64s' is not HOST:PORT, such as node7:8083",
                             settings->data_address);
    return 0;
}

static int settings_check(const struct settings *settings, struct aq_error *err)
{
    static const char *const drivers[] = { "auto", "process", "container" };
    static const char *const misuse_actions[] = { "report", "stop" };
    static const char *const affinities[] = { "interleaved", "single-node" };
    static const char *const tunnels[] = { "auto", "wireguard", "wireguard-go", "vxlan", "none" };
    struct aq_error wrong;

    if (!settings_is_one_of(settings->driver, drivers, AQ_COUNT(drivers)))
        return aq_fail_field(err, EINVAL, "runtime.driver",
                             "runtime.driver '%s' is none of auto, process, container",
                             settings->driver);
    if (strcmp(settings->driver, "process") == 0 && !settings_offer_processes(settings))
        return aq_fail_field(err, EINVAL, "process.user",
                             "with [runtime] driver \"process\" every session would be root on "
                             "this machine; set [process] user, to root if that is meant");
    if (!settings_is_one_of(settings->affinity, affinities, AQ_COUNT(affinities)))
        return aq_fail_field(err, EINVAL, "resource.affinity-policy",
                             "resource.affinity-policy '%s' is neither interleaved nor single-node",
                             settings->affinity);
    if (!settings_is_one_of(settings->gpu_misuse, misuse_actions, AQ_COUNT(misuse_actions)))
        return aq_fail_field(err, EINVAL, "gpu.misuse",
                             "gpu.misuse '%s' is neither report nor stop", settings->gpu_misuse);
    if (!settings_is_one_of(settings->cluster, tunnels, AQ_COUNT(tunnels)))
        return aq_fail_field(err, EINVAL, "network.cluster",
                             "network.cluster '%s' is none of auto, wireguard, wireguard-go, "
                             "vxlan, none",
                             settings->cluster);
    if (strpbrk(settings->cgroup_parent, "=:\\ \n") || strlen(settings->cgroup_parent) < 2)
        return aq_fail_field(err, EINVAL, "runtime.cgroup-parent", "'%s' cannot be a cgroup's path",
                             settings->cgroup_parent);
    if (settings->id_start + settings->id_ranges * 65536 > UINT32_MAX)
        return aq_fail_field(err, EINVAL, "container.id-ranges",
                             "container.id-start and id-ranges go beyond the last user id");
    if (settings->stat_interval_usec && settings->stat_interval_usec < USEC_PER_SEC / 10)
        return aq_fail_field(err, EINVAL, "statistics.interval",
                             "statistics.interval is less than 0.1s; 0 takes none");
    if (settings->topology && topology_check(settings->topology, &wrong) < 0)
        return aq_fail_field(err, EINVAL, "node.topology", "%s", wrong.text);
    if (link_identity_check_addresses("manager.address", &settings->managers, err) < 0)
        return -EINVAL;
    if (image_registries_check(settings, err) < 0)
        return -err->code;
    for (size_t i = 0; i < settings->volumes.count; i++)
        if (settings_check_volume(&settings->volumes, i, err) < 0)
            return -err->code;
    if (settings_check_data(settings, err) < 0)
        return -err->code;
    return agent_id_check(settings->id, err);
}

static int settings_fill_in(struct settings *settings, const char *state, unsigned flags,
                            struct aq_error *err)
{
    char host[256] = "";

    if (state) {
        free(settings->state);
        settings->state = conf_absolute_path(state);
        if (!settings->state)
            return aq_fail_errno(err, "resolve '%s'", state);
    } else if (!settings->state) {
        AQ_CLEANUP(aq_freep) char *base = fs_state_dir();

        settings->state = aq_format("%s/agent", base);
    }
    if (!settings->id) {
        (void)gethostname(host, sizeof(host) - 1);
        host[strcspn(host, ".")] = '\0';
        settings->id = aq_strdup(host);
    }
    if (!settings->offer_mode)
        settings->offer_mode = aq_strdup(flags & SETTINGS_SHARED ? "shared" : "exclusive");
    if (flags & SETTINGS_DEV && geteuid() == 0 && !settings->user)
        settings->user = aq_strdup("root");
    if (flags & SETTINGS_DEV)
        conf_list_add(&settings->image_allow, "host", strlen("host"));
    return settings_check(settings, err);
}

int settings_load(const char *file, const char *state, unsigned flags, struct settings *ret,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *usual = conf_default_file("agent");
    struct settings got = { .state = NULL };
    int r = conf_load(settings_items, file ? file : usual, !file, &got, err);
    if (r == 0)
        r = settings_fill_in(&got, state, flags, err);
    if (r < 0)
        settings_done(&got);
    else
        *ret = got;
    return r;
}

void settings_done(struct settings *settings)
{
    conf_done(settings_items, settings);
}

char *settings_path(const struct settings *settings, const char *name)
{
    return aq_format("%s/%s", settings->state, name);
}
