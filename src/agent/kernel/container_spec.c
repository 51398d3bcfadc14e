/* SPDX-License-Identifier: Apache-2.0 */
/* container_spec.c - the container of a kernel, from its create command and its image */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accelhost/gpu_variables.h"
#include "agent/kernel/cluster_environ.h"
#include "agent/kernel/container_spec.h"
#include "agent/kernel/dotfiles.h"
#include "agent/kernel/host_network.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/services.h"
#include "agent/ssh/ssh.h"
#include "agent/volume/volumes.h"
#include "model/session.h"
#include "model/slot.h"
#include "transfer/volume_layout.h"

#define LABEL_PREFIX "ai.backend."
#define CLOCK_FILES 2
#define LABEL_CORE_NAMES LABEL_PREFIX "envs.corecount"
#define LABEL_RUNTIME LABEL_PREFIX "runtime-type"
#define LABEL_RUNTIME_PATH LABEL_PREFIX "runtime-path"

/* ---- which way it runs ---- */

int container_is_wanted(const struct agent_daemon *agent, const char *image, bool *ret,
                        struct aq_error *err)
{
    const char *driver = agent->settings->driver;
    bool is_process = !image || strcmp(image, IMAGE_OF_PROCESSES) == 0;

    if (strcmp(driver, "process") == 0 && image && strcmp(image, IMAGE_OF_FILES) == 0)
        return aq_fail_as(err, ENOTSUP, "no-containers", "image",
                          "this node runs no containers, in which sessions for files are");
    if (strcmp(driver, "process") == 0) {
        *ret = false;
        return 0;
    }
    if (is_process && strcmp(driver, "container") == 0)
        return aq_fail_as(err, ENOTSUP, "no-processes", "image",
                          "this node runs containers only; name an image");
    if (is_process && !settings_offer_processes(agent->settings))
        return aq_fail_as(err, ENOTSUP, "no-processes", "image",
                          "this node runs no processes, which would be root on it; name an image, "
                          "or its administrator sets [process] user in agent.toml");
    if (!is_process && !agent->containers)
        return aq_fail_as(err, ENOTSUP, "no-containers", "image",
                          "this node runs no containers: %.200s; there, 'aliquot doctor "
                          "containers' says what to do",
                          agent->no_containers);
    *ret = !is_process;
    return 0;
}

/* ---- what is in the image ---- */

const char *container_find_shell(const struct image *image)
{
    static const char *const shells[][2] = { { "/bin/bash", "/usr/bin/bash" },
                                             { "/bin/sh", "/usr/bin/sh" } };

    for (size_t i = 0; i < AQ_COUNT(shells); i++)
        if (image_has(image, shells[i][0]) || image_has(image, shells[i][1]))
            return shells[i][0];
    return NULL;
}

bool container_has_program(const struct image *image, const char *name)
{
    const char *const *env = image->config ? image->config->env : NULL;
    const char *at = KERNEL_DEFAULT_PATH;
    char path[PATH_MAX];

    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) == 0)
            at = *env + 5;
    for (; *at; at += *at == ':') {
        size_t len = strcspn(at, ":");

        if (*at == '/' && len < sizeof(path)
            && snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, name) < (int)sizeof(path)
            && image_has(image, path))
            return true;
        at += len;
    }
    return false;
}

/* ---- what it gets ---- */

static bool container_is_usable_core(const char *id)
{
    cpu_set_t allowed;
    int core = atoi(id);

    CPU_ZERO(&allowed);
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && core >= 0 && core < CPU_SETSIZE
           && CPU_ISSET(core, &allowed);
}

/* The cores of the grant; NULL if any of them is not a real one, as where an
 * administrator offers more cores than there are.
 */
static const char *container_list_cores(const struct alloc_grant *grant, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    const char *cpu = slot_name_intern("cpu", 3);

    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];

        if (item->slot_name != cpu)
            continue;
        if (!container_is_usable_core(item->device_id))
            return NULL;
        strbuf_addf(&list, "%s%s", list.len ? "," : "", item->device_id);
    }
    return list.len ? arena_strdup(arena, list.data) : NULL;
}

/* Frameworks that train on several nodes share what they received within a kernel: half of its
 * memory, which is not taken before it is used.
 */
static int container_read_shm(const struct local_kernel *k, int64_t *ret, struct aq_error *err)
{
    const struct session_spec *spec = &kernel_get_spec(k)->session;
    int64_t usual = k->agent->settings->shm_bytes;
    int r = session_spec_shmem(spec, ret, err);

    if (k->cluster || k->host)
        usual = AQ_MAX(usual, slots_get(&k->slots, slot_name_intern("mem", 3)) / 2);
    if (!spec->shmem)
        *ret = usual;
    return r;
}

/* Of an image's labels only those that are meant for us: OCI runtimes obey annotations. */
static bool container_is_passed_on(const char *key, const struct text_pair *own, size_t own_count)
{
    if (strncmp(key, LABEL_PREFIX, strlen(LABEL_PREFIX)) != 0)
        return false;
    for (size_t i = 0; i < own_count; i++)
        if (strcmp(own[i].key, key) == 0)
            return false;
    return true;
}

/* Whose container it is, and what its image says. */
static void container_add_labels(const struct local_kernel *k, const struct image_config *image,
                                 struct arena *arena, struct container_spec *c)
{
    const struct agent_daemon *agent = k->agent;
    const struct kernel_spec *spec = kernel_get_spec(k);
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];
    const struct text_pair own[] = {
        { "ai.backend.kernel-id", arena_strdup(arena, uuid_format(&k->id, kernel)) },
        { "ai.backend.session-id", arena_strdup(arena, uuid_format(&k->session_id, session)) },
        { "ai.backend.agent-id", agent->settings->id },
        { "ai.backend.owner", agent->settings->id },
        { "ai.backend.owner-user-id", spec->user_id },
        { "ai.backend.owner-project-id", spec->group_id },
        { "ai.backend.internal.block-service-ports", "0" },
        { SERVICE_LABEL, services_label(k, arena) },
    };
    size_t given = image ? image->label_count : 0;
    struct text_pair *labels = arena_array(arena, AQ_COUNT(own) + given, sizeof(*labels));

    c->id = own[0].value;
    c->labels = labels;
    for (size_t i = 0; i < AQ_COUNT(own); i++)
        if (own[i].value)
            labels[c->label_count++] = own[i];
    for (size_t i = 0; i < given; i++)
        if (container_is_passed_on(image->labels[i].key, own, AQ_COUNT(own)))
            labels[c->label_count++] = image->labels[i];
}

/* Files of the node that say what time it is where the node is. */
static size_t container_add_clock(struct container_mount *mounts)
{
    static const char *const paths[CLOCK_FILES] = { "/etc/localtime", "/etc/timezone" };
    struct stat st;
    size_t n = 0;

    for (size_t i = 0; i < CLOCK_FILES; i++)
        if (stat(paths[i], &st) == 0 && S_ISREG(st.st_mode))
            mounts[n++] = (struct container_mount){ .source = paths[i], .target = paths[i] };
    return n;
}

struct container_mount *container_mounts(const struct local_kernel *k, const char *config,
                                         size_t more, struct arena *arena, size_t *ret_count)
{
    const struct accel_attachment *attachment = &k->attachment;
    size_t n = 0, most = attachment->mount_count + CLOCK_FILES + 1 + more;
    struct container_mount *mounts = arena_array(arena, most, sizeof(*mounts));

    mounts[n++] = (struct container_mount){ .source = config, .target = CONTAINER_CONFIG };
    n += container_add_clock(mounts + n);
    if (attachment->mount_count)
        memcpy(mounts + n, attachment->mounts, attachment->mount_count * sizeof(*mounts));
    *ret_count = n + attachment->mount_count;
    return mounts;
}

/* The server; and where the image does not say which shells may be logged in to, a list. */
static size_t container_add_ssh(const struct local_kernel *k, const char *config,
                                struct arena *arena, struct container_mount *mounts)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" SSH_SHELLS, config);
    const char *shells = arena_strdup(arena, path);
    size_t n = ssh_mounts(k->agent->ssh, image_is_for_files(k->image), mounts);

    if (!image_has(k->image, "/etc/shells"))
        mounts[n++] = (struct container_mount){ .source = shells, .target = "/etc/shells" };
    return n;
}

/* With the node's network: names of the session's kernels, and the node's servers of names. */
static size_t container_add_names(const char *config, struct arena *arena,
                                  struct container_mount *mounts)
{
    AQ_CLEANUP(aq_freep) char *hosts = aq_format("%s/" HOST_NETWORK_HOSTS, config);
    AQ_CLEANUP(aq_freep) char *resolv = realpath("/etc/resolv.conf", NULL);
    size_t n = 0;

    mounts[n++] = (struct container_mount){ .source = arena_strdup(arena, hosts),
                                            .target = "/etc/hosts" };
    if (resolv)
        mounts[n++] = (struct container_mount){ .source = arena_strdup(arena, resolv),
                                                .target = "/etc/resolv.conf" };
    return n;
}

static void container_add_mounts(const struct local_kernel *k, const struct net_info *network,
                                 const char *config, struct arena *arena, struct container_spec *c)
{
    size_t n;
    struct container_mount *mounts = container_mounts(k, config, 3 + GPU_MOUNTS + SSH_MOUNTS_MAX,
                                                      arena, &n);

    if (network) {
        mounts[n++] = (struct container_mount){ .source = network->hosts_path,
                                                .target = "/etc/hosts" };
        mounts[n++] = (struct container_mount){ .source = network->resolv_path,
                                                .target = "/etc/resolv.conf" };
    }
    if (k->host)
        n += container_add_names(config, arena, mounts + n);
    if (k->slice)
        n += gpu_slice_mounts(k->slice, mounts + n);
    if (services_have_ssh(k))
        n += container_add_ssh(k, config, arena, mounts + n);
    c->mounts = mounts;
    c->mount_count = n;
}

/* ---- the program in it ---- */

/* Whole ones, rounded up: what programs make threads by. */
static int64_t container_count_cores(const struct local_kernel *k)
{
    int64_t micro = slots_get(&k->slots, slot_name_intern("cpu", 3));

    return micro > AMOUNT_ONE ? micro / AMOUNT_ONE + (micro % AMOUNT_ONE != 0) : 1;
}

bool container_add_host_files(const struct local_kernel *k, struct strbuf *hosts,
                              struct strbuf *machines)
{
    size_t devices = gpu_variables_count_devices(&k->attachment);
    int64_t slots = devices ? (int64_t)devices : container_count_cores(k);
    const struct cluster_network *host = k->host ? &k->host->network : NULL;

    if (kernel_get_spec(k)->cluster_size <= 1 || !kernel_get_spec(k)->hosts)
        return false;
    cluster_environ_add_hosts(kernel_get_spec(k), host, slots, hosts);
    cluster_environ_add_machines(kernel_get_spec(k), host, slots, machines);
    return true;
}

/* Adds the RDMA devices for verbs and connections, but not those that manage the fabric. */
static void container_add_devices(const struct local_kernel *k, struct arena *arena,
                                  struct container_spec *c)
{
    const struct accel_attachment *attachment = &k->attachment;
    const struct rdma_devices *rdma = &k->agent->rdma;
    size_t more = kernel_get_spec(k)->session.needs_rdma ? rdma->nodes.count : 0;
    struct container_device *devices = arena_array(arena, attachment->device_count + more + 1,
                                                   sizeof(*devices));

    if (attachment->device_count)
        memcpy(devices, attachment->devices, attachment->device_count * sizeof(*devices));
    c->devices = devices;
    c->device_count = attachment->device_count;
    for (size_t i = 0; i < more; i++)
        devices[c->device_count++] = (struct container_device){ .source = rdma->nodes.items[i],
                                                                .target = rdma->inside.items[i],
                                                                .may_read = true,
                                                                .may_write = true };
}

/* Where the image has no ssh, and the node a client. */
static bool container_needs_remote_shell(const struct local_kernel *k, const struct image *image)
{
    return services_have_ssh(k) && ssh_has_client(k->agent->ssh)
           && !container_has_program(image, "ssh");
}

static int container_specify_program(const struct local_kernel *k, const struct image *image,
                                     struct arena *arena, struct runtime_spec *ret,
                                     struct aq_error *err)
{
    static const char *const none[] = { NULL };
    const struct kernel_spec *spec = kernel_get_spec(k);
    const struct kernel_program_context place = {
        .settings = k->agent->settings,
        .attachment = &k->attachment,
        .output = kernel_has_output(k) ? CONTAINER_OUTPUT : NULL,
        .work = CONTAINER_WORK,
        .shell = container_find_shell(image),
        .environ = image->config && image->config->env ? image->config->env : none,
        .own = kernel_program_find_own(spec, image->config, arena),
        .core_names = image->config ? image_config_label(image->config, LABEL_CORE_NAMES) : NULL,
        .cores = container_count_cores(k),
        .runtime_type = image->config ? image_config_label(image->config, LABEL_RUNTIME) : NULL,
        .runtime_path = image->config ? image_config_label(image->config, LABEL_RUNTIME_PATH)
                                      : NULL,
        .labels = image->config,
        .service_ports = image->config ? image_config_label(image->config, SERVICE_LABEL) : NULL,
        .preopen_ports = services_opened(k, arena),
        .interface = k->host           ? k->host->interface
                     : !k->is_connected ? NULL
                     : k->cluster      ? CLUSTER_INTERFACE
                                       : NET_INTERFACE,
        .host = k->host,
        .rdma = spec->session.needs_rdma ? &k->agent->rdma : NULL,
        .host_file = CONTAINER_CONFIG "/" CONTAINER_HOST_FILE,
        .machine_file = CONTAINER_CONFIG "/" CONTAINER_MACHINE_FILE,
        .remote_shell = container_needs_remote_shell(k, image) ? SSH_REMOTE_SHELL : NULL,
    };
    AQ_CLEANUP(aq_freep) char *cwd = aq_format("%s%s%s", CONTAINER_WORK, spec->cwd ? "/" : "",
                                               spec->cwd ? spec->cwd : "");
    int r = kernel_program_argv(&spec->session, &place, arena, &ret->argv, err);

    if (r < 0)
        return r;
    ret->envp = kernel_environ_make(&k->command.kernel_create, &place, arena);
    ret->cwd = place.own && image->config && image->config->working_dir ? image->config->working_dir
                                                                        : arena_strdup(arena, cwd);
    ret->output = place.output;
    ret->tty = !place.own && kernel_program_has_terminal(&spec->session) && ret->argv[0] != NULL;
    ret->input = kernel_program_has_input(&spec->session);
    return 0;
}

/* ---- folders of users ---- */

static bool container_folder_is_below(const char *path, const char *above)
{
    size_t len = strlen(above);

    return strncmp(path, above, len) == 0 && (path[len] == '/' || !path[len]);
}

/* Nothing of the node may end up in a folder, nor a folder in what is the node's. */
static int container_folder_check_target(const struct volume_mount *folder, const char *target,
                                         struct aq_error *err)
{
    return container_folder_is_below(folder->target, target)
                   || container_folder_is_below(target, folder->target)
               ? aq_fail_field(err, EINVAL, "mounts",
                               "folder '%s' cannot be mounted at '%s': this node needs '%s'",
                               folder->name, folder->target, target)
               : 0;
}

static int container_check_folder(const struct volume_mount *folder, const struct container_spec *c,
                                  struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < c->mount_count; i++)
        r = container_folder_check_target(folder, c->mounts[i].target, err);
    for (size_t i = 0; r == 0 && i < c->device_count; i++)
        r = container_folder_check_target(folder, c->devices[i].target, err);
    return r;
}

static int container_specify_folder(const struct local_kernel *k, const struct folder_mount *mount,
                                    struct arena *arena, struct volume_mount *ret,
                                    struct aq_error *err)
{
    char path[VOLUME_FOLDER_MAX];

    *ret = (struct volume_mount){ .folder = arena_strdup(arena,
                                                         volume_layout_path(&mount->folder, path)),
                                  .path = mount->path ? mount->path : "",
                                  .name = mount->name,
                                  .target = mount->target,
                                  .may_write = !mount->is_read_only };
    return volumes_find(k->agent->volumes, mount->host, &ret->volume, err);
}

/* Those of its command; texts are borrowed from the kernel, or are in the arena. Whether they are there
 * is found at its start (monitor/volume_mounts.h). After the container's other mounts and devices:
 * -EINVAL for a target that gets in their way, -errno if a volume is not there.
 */
static int container_add_folders(const struct local_kernel *k, struct arena *arena,
                                 struct container_spec *c, struct aq_error *err)
{
    const struct folder_mounts *mounts = &kernel_get_spec(k)->session.mounts;
    struct volume_mount *folders = arena_array(arena, mounts->count + 1, sizeof(*folders));
    int r = folder_mounts_check(mounts, err);

    for (size_t i = 0; r == 0 && i < mounts->count; i++) {
        r = container_specify_folder(k, &mounts->items[i], arena, &folders[i], err);
        if (r == 0)
            r = container_check_folder(&folders[i], c, err);
    }
    c->folders = folders;
    c->folder_count = mounts->count;
    return r;
}

/* ---- all of it ---- */

int container_specify(const struct local_kernel *k, const struct image *image, const char *scratch,
                      const char *config, struct arena *arena, struct container_spec *c,
                      struct runtime_spec *ret, struct aq_error *err)
{
    const struct net_info *network = k->is_connected ? net_get_info(k->network) : NULL;
    const struct settings *settings = k->agent->settings;
    const struct kernel_spec *spec = kernel_get_spec(k);
    int r;

    *c = (struct container_spec){
        .hostname = kernel_hostname_of(k),
        .layers = image->lowers,
        .layer_count = image->lower_count,
        .hidden = image->hidden,
        .is_node = image->hidden[0] != NULL,
        .scratch = scratch,
        .uses_host_network = k->host != NULL,
        .network = network ? network->namespace_path : NULL,
        .sysfs = network ? network->sys_path : NULL,
        .cpus = container_list_cores(&k->grant, arena),
        .cpu_micro = slots_get(&k->slots, slot_name_intern("cpu", 3)),
        .check = k->slice ? GPU_PROBE_INSIDE : NULL,
        .home_from = services_have_ssh(k) ? CONTAINER_CONFIG "/home" : NULL,
        .dotfiles = spec->dotfiles ? CONTAINER_CONFIG "/" DOTFILES_FOLDER : NULL,
        .ssh = services_have_ssh(k) ? SSH_INSIDE : NULL,
        .ssh_port = services_ssh_port(k),
        .is_for_files = image_is_for_files(image),
        .ssh_idle_sec = kernel_is_of_type(k, SESSION_SYSTEM)
                            ? settings->sftp_idle_usec / USEC_PER_SEC
                            : 0,
        .uid = (uid_t)settings->container_uid,
        .gid = (gid_t)settings->container_gid,
        .groups = k->attachment.groups,
        .group_count = k->attachment.group_count,
        .hooks = k->attachment.hooks,
        .hook_count = k->attachment.hook_count,
    };
    r = container_specify_program(k, image, arena, ret, err);
    if (r == 0)
        r = container_read_shm(k, &c->shm_bytes, err);
    if (r < 0)
        return r;
    container_add_labels(k, image->config, arena, c);
    container_add_devices(k, arena, c);
    container_add_mounts(k, network, config, arena, c);
    r = container_add_folders(k, arena, c, err);
    if (r < 0)
        return r;
    ret->processes_max = (uint64_t)settings->container_processes_max;
    ret->files_max = (uint64_t)settings->container_files_max;
    ret->container = c;
    ret->kept = k->slice ? gpu_slice_kept(k->slice) : NULL;
    return 0;
}
