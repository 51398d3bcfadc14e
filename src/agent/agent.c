/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the life of the agent: takes its state directory over, talks with the manager, shuts
 * down
 */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/kernel/devices.h"
#include "agent/identity.h"
#include "agent/kernel/kernel.h"
#include "agent/kernel/lease.h"
#include "agent/kernel/limit_violation.h"
#include "agent/kernel/prerequisites.h"
#include "agent/kernel/metrics_watch.h"
#include "agent/kernel/readiness.h"
#include "agent/kernel/services.h"
#include "agent/settings/image_registries.h"
#include "agent/settings/net_settings.h"
#include "agent/settings/state_room.h"
#include "agent/runtime/oci.h"
#include "agent/ssh/ssh.h"
#include "agent/metrics/stats_collector.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/installed.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/exposition.h"

#define GREETED_DEVICES_MAX (32u << 10)
#define HEARTBEAT_USEC (3 * USEC_PER_SEC)
#define HEARTBEAT_MAX_USEC (60 * USEC_PER_SEC)
#define HEARTBEAT_OUTPUTS_MAX (1u << 20) /* bytes of the values of ended kernels in one */
#define HEARTBEAT_LINES_MAX (256u << 10) /* bytes of the last lines of ended kernels in one */

/* ---- what we tell ---- */

void agent_send(struct agent_daemon *agent, const struct message *msg)
{
    struct aq_error err = { 0 };

    /* what cannot be sent is in the next inventory */
    if (agent->link && link_client_send(agent->link, msg, &err) < 0)
        log_debug("%s", err.text);
}

/* As it is now. */
static const char *agent_describe_slots(struct agent_daemon *agent)
{
    struct aq_error err = { 0 };

    if (resources_describe_slots(&agent->resources, &err) < 0)
        log_warning("%s: what is offered is told as before", err.text);
    return agent->resources.slots_json;
}

/* A full disk refuses starts. A quota shows only in a failed write. */
static const char *agent_find_refusal(struct agent_daemon *agent)
{
    struct disk_job job = { .action = DISK_TRY };

    agent->refusal = (struct aq_error){ 0 };
    if (state_room_is_short(agent->settings->state, &agent->refusal))
        return agent->refusal.text;
    if (!disk_worker_lacks_room(agent->disk))
        return NULL;
    disk_worker_add(agent->disk, &job);
    state_room_explain(agent->settings->state, false, &agent->refusal);
    return agent->refusal.text;
}

/* The end of a kernel comes with its values or not at all: past what a heartbeat carries, it is
 * still running for the manager, until a later one, when those before it are forgotten.
 */
static void agent_bound_outputs(struct msg_kernel_status *kernel, size_t *inout_bytes)
{
    size_t len = kernel->outputs ? strlen(kernel->outputs) : 0;

    if (len == 0)
        return;
    *inout_bytes += len;
    if (*inout_bytes <= HEARTBEAT_OUTPUTS_MAX)
        return;
    kernel->state = MSG_KERNEL_RUNNING;
    kernel->reason = kernel->outputs = NULL;
    kernel->has_exit = false;
}

/* kernel.status has told of these lines once. */
static void agent_bound_last_lines(struct msg_kernel_status *kernel, size_t *inout_bytes)
{
    *inout_bytes += kernel->last_lines ? strlen(kernel->last_lines) : 0;
    if (*inout_bytes > HEARTBEAT_LINES_MAX)
        kernel->last_lines = NULL;
}

static void agent_send_heartbeat(struct agent_daemon *agent)
{
    size_t outputs = 0, lines = 0; /* bytes */
    struct msg_kernel_status *kernels = aq_alloc_array(agent->kernels.count + 1, sizeof(*kernels));
    struct message msg = {
        .type = MSG_HEARTBEAT,
        .heartbeat = { .incarnation = agent->incarnation,
                       .seq = ++agent->heartbeat_seq,
                       .received_seq = (int64_t)agent->last_seq,
                       .at_usec = clock_realtime_usec(),
                       .uptime_usec = clock_boottime_usec(),
                       .is_draining = agent->is_draining,
                       .refusal = agent_find_refusal(agent),
                       .slots = agent_describe_slots(agent),
                       .devices = agent->has_new_devices ? agent->resources.devices_json : NULL,
                       .plugins = agent->has_new_devices ? agent->resources.plugins_json : NULL,
                       .volumes = agent->has_new_volumes ? volumes_list(agent->volumes) : NULL,
                       .kernels = kernels,
                       .kernel_count = agent->kernels.count },
    };

    for (size_t i = 0; i < agent->kernels.count; i++) {
        const struct local_kernel *k = agent->kernels.entries[i].value;

        kernel_describe(k, &kernels[i]);
        agent_bound_outputs(&kernels[i], &outputs);
        agent_bound_last_lines(&kernels[i], &lines);
        if (kernel_is_final(k))
            kernels[i].alloc = kernels[i].service_ports = NULL; /* nothing is held any more */
    }
    agent_send(agent, &msg);
    agent->has_new_devices = agent->has_new_volumes =
        false; /* a lost message means a new greeting */
    AQ_FAULT("agent.heartbeat.sent");
    free(kernels);
}

/* Once it is known what kernels hold of what is not offered any more; and again
 * when they hold none of it.
 */
static void agent_settle_claim(struct agent_daemon *agent)
{
    struct aq_error err = { 0 };

    agent->has_strays = resources_has_strays(&agent->resources);
    if (resources_claim(&agent->resources, agent->settings, agent->claims, false, &err) < 0)
        log_warning("%s", err.text);
}

static void agent_on_heartbeat(uv_timer_t *timer)
{
    struct agent_daemon *agent = timer->data;

    if (agent->has_strays && !resources_has_strays(&agent->resources))
        agent_settle_claim(agent);
    if (link_client_is_connected(agent->link))
        agent_send_heartbeat(agent);
}

/* ---- devices that come and go ---- */

static int agent_find_resources(struct agent_daemon *agent, bool only_former, struct resources *ret,
                                struct aq_error *err)
{
    struct resources fresh;
    int r = resources_init(&fresh, agent->settings, agent->accel, &agent->resources, only_former,
                           err);

    if (r < 0)
        return r;
    r = devices_apply_all(agent, fresh.map, err);
    if (r == 0)
        r = resources_claim(&fresh, agent->settings, agent->claims, false, err);
    if (r < 0)
        resources_done(&fresh);
    else
        *ret = fresh;
    return r;
}

/* A device that another agent of this machine has is none of ours. */
static int agent_look_again(struct agent_daemon *agent, struct resources *ret, struct aq_error *err)
{
    int r = agent_find_resources(agent, false, ret, err);

    if (r != -EBUSY)
        return r;
    log_warning("what is new here is not offered: %s", err->text);
    return agent_find_resources(agent, true, ret, err);
}

/* A new map of what there is, with what kernels hold. */
static void agent_on_devices_changed(void *data)
{
    struct agent_daemon *agent = data;
    struct resources fresh;
    struct aq_error err = { 0 };
    int r = agent_look_again(agent, &fresh, &err);

    if (r < 0) {
        log_error("the devices of this node have changed, but stay as they were: %s", err.text);
        return;
    }
    resources_done(&agent->resources);
    agent->resources = fresh;
    agent->has_new_devices = true;
    devices_resize_all(agent);
    if (agent->link && link_client_is_connected(agent->link))
        agent_send_heartbeat(agent);
}

/* A session that mounts a folder goes only where its volume is. */
static void agent_on_volumes_changed(void *data)
{
    struct agent_daemon *agent = data;

    agent->has_new_volumes = true;
    if (agent->link && link_client_is_connected(agent->link))
        agent_send_heartbeat(agent);
}

/* ---- receipts: an acknowledgement covers all messages before it ---- */

static void agent_acknowledge(struct agent_daemon *agent)
{
    uint64_t seq = agent->last_seq;

    if (!list_is_empty(&agent->receipts))
        seq = LIST_ENTRY(agent->receipts.next, struct receipt, link)->seq - 1;
    if (agent->link)
        link_client_ack(agent->link, seq);
}

struct receipt *agent_receipt(struct agent_daemon *agent, uint64_t seq)
{
    struct receipt *receipt = aq_alloc(sizeof(*receipt));

    receipt->seq = seq;
    list_add(&agent->receipts, &receipt->link);
    return receipt;
}

void agent_settle(struct agent_daemon *agent, struct receipt *receipt)
{
    if (!receipt)
        return;
    list_remove(&receipt->link);
    free(receipt);
    agent_acknowledge(agent);
}

/* ---- what we are told ---- */

static void agent_on_greet(void *data, struct msg_hello *hello)
{
    static struct utsname host; /* borrowed until the message is sent */
    struct agent_daemon *agent = data;

    (void)uname(&host);
    hello->started_usec = agent->started_usec;
    hello->architecture = host.machine;
    hello->hostname = host.nodename;
    hello->addr = agent->settings->address;
    hello->region = agent->settings->region;
    hello->topology = agent->settings->topology;
    hello->resource_group = agent->settings->resource_group;
    hello->slots = agent_describe_slots(agent);
    /* a greeting must be short: the first heartbeat tells of thousands of devices */
    agent->has_new_devices = strlen(agent->resources.devices_json)
                                 + strlen(agent->resources.plugins_json)
                             > GREETED_DEVICES_MAX;
    hello->devices = agent->has_new_devices ? NULL : agent->resources.devices_json;
    hello->plugins = agent->has_new_devices ? NULL : agent->resources.plugins_json;
    hello->volumes = agent->volumes ? volumes_list(agent->volumes) : NULL;
    agent->has_new_volumes = false;
    hello->network = agent->cluster ? cluster_get_offer(agent->cluster) : NULL;
    hello->has_sftp = services_offer_sftp(agent);
    hello->data = agent->data_path ? data_path_get_address(agent->data_path) : NULL;
    hello->runtime = agent->containers ? runtime_oci_version(agent->containers)
                                       : agent->runtime->ops->name;
    hello->runtime_notes = agent->notes;
}

static void agent_on_connected(void *data, const struct msg_welcome *welcome)
{
    struct agent_daemon *agent = data;
    int64_t skew = welcome->at_usec ? clock_realtime_usec() - welcome->at_usec : 0;
    int64_t own = agent->settings->heartbeat_usec;
    int64_t wanted = welcome->heartbeat_usec > 0 ? welcome->heartbeat_usec : HEARTBEAT_USEC;

    /* the manager counts an agent as lost that reports less often than it asked for */
    agent->heartbeat_usec = AQ_MIN(own ? AQ_MIN(own, wanted) : wanted, HEARTBEAT_MAX_USEC);
    log_info("connected to the manager at %s (version %s)", link_client_address(agent->link),
             welcome->version ? welcome->version : "unknown");
    if (skew > 5 * USEC_PER_SEC || skew < -5 * USEC_PER_SEC)
        log_warning("this machine's clock and the manager's differ by %lld seconds",
                    (long long)(skew / USEC_PER_SEC));
    if (!welcome->has_leases)
        lease_drop_all(agent);
    agent_send_heartbeat(agent);
    readiness_report_all(agent);
    image_commands_list(agent);
    (void)uv_timer_start(&agent->heartbeat, agent_on_heartbeat,
                         (uint64_t)(agent->heartbeat_usec / USEC_PER_MSEC),
                         (uint64_t)(agent->heartbeat_usec / USEC_PER_MSEC));
    if (!agent->was_ready) {
        agent->was_ready = true;
        agent->events->on_ready(agent->data);
    }
}

static void agent_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct agent_daemon *agent = data;

    agent->stamp = msg->stamp;
    switch (msg->type) {
    case MSG_HEARTBEAT_REPLY:
        lease_take_reply(agent, &msg->heartbeat_reply);
        break;
    case MSG_KERNEL_CREATE:
        kernel_on_create(agent, seq, &msg->kernel_create);
        break;
    case MSG_KERNEL_DESTROY:
        kernel_on_destroy(agent, &msg->kernel_destroy);
        break;
    case MSG_KERNEL_RESTART:
        kernel_on_restart(agent, seq, &msg->kernel_restart);
        break;
    case MSG_KERNEL_RESIZE:
        kernel_on_resize(agent, &msg->kernel_resize);
        break;
    case MSG_KERNEL_FORGET:
        kernel_on_forget(agent, &msg->kernel_forget);
        break;
    case MSG_KERNEL_RELEASE:
        kernel_on_release(agent, &msg->kernel_release);
        break;
    case MSG_KERNEL_DESCRIBE:
        kernel_on_describe(agent, &msg->kernel_describe);
        break;
    case MSG_SESSION_NETWORK:
        cluster_commands_set_session(agent, &msg->session_network);
        break;
    case MSG_NETWORK_PEERS:
        cluster_commands_set_peers(agent, &msg->network_peers);
        break;
    case MSG_DRAIN:
        AQ_FAULT("agent.drain.received");
        agent->is_draining = msg->drain.on;
        break;
    case MSG_METRICS_WATCH:
        metrics_watch_set(agent->metrics_watch, &msg->metrics_watch);
        break;
    case MSG_IMAGE_LOGINS:
        image_commands_take_logins(agent, msg->image_logins.auths);
        break;
    case MSG_IMAGE_COMMAND:
        image_commands_handle(agent, &msg->image_command);
        break;
    case MSG_SERVICE_COMMAND:
        own_service_handle(agent, &msg->service_command);
        break;
    case MSG_STREAM_OPEN:
        streams_open(agent, &msg->stream_open);
        break;
    case MSG_STREAM_CONTROL:
        streams_control(agent, &msg->stream_control);
        break;
    default:
        break; /* of a newer manager */
    }
    if (seq) {
        agent->last_seq = seq;
        agent_acknowledge(agent);
    }
}

static void agent_on_disconnected(void *data, const char *why)
{
    struct agent_daemon *agent = data;

    (void)uv_timer_stop(&agent->heartbeat);
    log_warning("not connected to the manager: %s", why);
}

static void agent_on_rejected(void *data, const char *kind, const char *text)
{
    struct agent_daemon *agent = data;

    if (agent->shutdown.on_done) {
        log_warning("the manager will not hear of what ends here (%s): %s", kind, text);
        return;
    }
    agent->is_rejected = true; /* nothing is started any more */
    agent->events->on_rejected(agent->data, kind, text);
}

/* Synced before an order of that epoch is taken: an agent that was killed then, or lost its power,
 * still refuses the managers before it.
 */
static int agent_on_epoch(void *data, int64_t epoch)
{
    const struct agent_daemon *agent = data;
    const struct link_identity_place place = identity_place(agent->settings);
    struct aq_error err = { 0 };
    int r = link_identity_keep_epoch(&place, epoch, &err);

    if (r < 0)
        log_error("cannot record epoch %lld, whose manager is not followed: %s", (long long)epoch,
                  err.text);
    else
        log_info("the manager leads epoch %lld", (long long)epoch);
    return r;
}

static void agent_on_managers(void *data, const struct link_manager *list, size_t count)
{
    const struct agent_daemon *agent = data;
    const struct link_identity_place place = identity_place(agent->settings);
    struct aq_error err = { 0 };

    if (link_identity_keep_managers(&place, list, count, &err) < 0)
        log_warning("cannot record the managers of the cluster: %s", err.text);
}

static int agent_connect_link(struct agent_daemon *agent, struct aq_error *err)
{
    static const struct link_client_ops ops = {
        .on_greet = agent_on_greet,
        .on_epoch = agent_on_epoch,
        .on_managers = agent_on_managers,
        .on_connected = agent_on_connected,
        .on_message = agent_on_message,
        .on_disconnected = agent_on_disconnected,
        .on_refused = agent_on_rejected,
    };
    struct link_identity identity;
    int r = identity_load(agent->settings, &identity, err);

    if (r < 0)
        return r;
    r = link_client_new(
        &(struct link_client_conf){ .loop = agent->loop,
                                    .addresses = (const char *const *)identity.addresses.items,
                                    .address_count = identity.addresses.count,
                                    .is_fixed = identity.is_fixed,
                                    .epoch = identity.epoch,
                                    .ca = identity.ca,
                                    .cert = identity.cert,
                                    .key = identity.key,
                                    .agent_id = agent->settings->id,
                                    .incarnation = agent->incarnation,
                                    .ping_usec = agent->settings->ping_usec,
                                    .dead_usec = agent->settings->dead_usec },
        &ops, agent, &agent->link, err);
    link_identity_done(&identity);
    return r;
}

/* ---- life ---- */

/* A second agent is kept out by locks on the file "lock" and on the folder itself, which is the
 * only one if the disk has no room for the file. Both are always tried, because the other agent may
 * have found room, or not. A network file system may not lock folders; then only the file counts.
 */
static int agent_take_lock(struct agent_daemon *agent, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(agent->settings, "lock");
    const char *state = agent->settings->state;
    int r = fs_mkdirs(state, 0700, err);
    bool is_taken;

    if (r < 0)
        return r;
    agent->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (agent->lock < 0 && errno == EROFS)
        agent->lock = open(path, O_RDONLY | O_CLOEXEC);
    if (agent->lock < 0 && !fs_is_out_of_room(errno) && errno != ENOENT)
        return aq_fail_errno(err, "open '%s'", path);
    agent->folder_lock = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (agent->folder_lock < 0)
        return aq_fail_errno(err, "open '%s'", state);
    is_taken = agent->lock >= 0 && flock(agent->lock, LOCK_EX | LOCK_NB) < 0;
    if (!is_taken && flock(agent->folder_lock, LOCK_EX | LOCK_NB) < 0)
        is_taken = errno == EWOULDBLOCK || agent->lock < 0;
    if (!is_taken)
        return 0;
    aq_closep(&agent->lock);
    aq_closep(&agent->folder_lock);
    return aq_fail(err, EBUSY, "another agent runs on the state folder '%s'", state);
}

/* Programs run in work directories below the state directory: another user must be
 * able to get there, though not to look around.
 */
static int agent_find_user(struct agent_daemon *agent, struct aq_error *err)
{
    const char *name = agent->settings->user;
    const struct passwd *user = name ? getpwnam(name) : NULL;

    if (!name)
        return 0;
    if (!user)
        return aq_fail_field(err, EINVAL, "process.user", "there is no user '%s'", name);
    agent->uid = user->pw_uid;
    agent->gid = user->pw_gid;
    if (agent->uid != geteuid() && chmod(agent->settings->state, 0711) < 0)
        return aq_fail_errno(err, "let user '%s' into '%s'", name, agent->settings->state);
    return 0;
}

/* What administrators should know of this node, once all is found. */
static void agent_take_notes(struct agent_daemon *agent, const char *no_network)
{
    struct strbuf notes = STRBUF_INIT;

    if (!agent->containers && agent->no_containers && agent->no_containers[0])
        strbuf_addf(&notes, "no containers: %s\n", agent->no_containers);
    if (agent->containers)
        oci_host_add_notes(runtime_oci_host(agent->containers), "", "\n", &notes);
    if (agent->containers && agent->settings->gpu_unenforced)
        strbuf_adds(&notes, "images without a loader get parts of GPUs that nothing holds them to "
                            "(gpu.allow-unenforced)\n");
    if (no_network[0])
        strbuf_addf(&notes, "containers have no network: %s\n", no_network);
    if (claims_get_note(agent->claims)[0])
        strbuf_addf(&notes, "%s\n", claims_get_note(agent->claims));
    if (agent->net && net_get_note(agent->net)[0])
        strbuf_addf(&notes, "%s\n", net_get_note(agent->net));
    if (notes.len)
        strbuf_truncate(&notes, notes.len - 1);
    agent->notes = strbuf_steal(&notes);
}

static void agent_on_registry(void *data, const char *host, uint16_t port)
{
    net_admit_registry(data, host, port);
}

/* The user who names an image chooses what the node connects to. A user namespace may lack the
 * group by which the network's rules know those processes.
 */
static void agent_confine_pulls(struct agent_daemon *agent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf map = STRBUF_INIT;

    if (fs_read(AT_FDCWD, "/proc/self/gid_map", 4096, &map, NULL) < 0
        || !strstr(map.data, "4294967295")) {
        log_warning("images may be fetched from any address that this node reaches: the agent "
                    "runs in a user namespace");
        return;
    }
    image_registries_each(agent->settings, agent_on_registry, agent->net);
    images_set_pull_group(agent->images, net_get_pull_group(agent->net));
}

/* Without one containers still run, each by itself. */
static void agent_find_network(struct agent_daemon *agent)
{
    const struct settings *s = agent->settings;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(aq_freep) char *directory = NULL;
    AQ_CLEANUP(aq_freep) char *identity = NULL;
    struct net_settings settings;
    struct aq_error err = { 0 };

    if (!agent->containers || !s->network) {
        agent_take_notes(agent, "");
        return;
    }
    directory = realpath(s->state, NULL);
    if (directory) {
        identity = aq_format("%s %s", s->id, directory);
        net_settings_fill(&settings, s, identity, &arena);
        (void)net_new(agent->loop, &settings, &agent->net, &err);
    } else {
        (void)aq_fail_errno(&err, "resolve '%s'", s->state);
    }
    if (err.code) {
        agent->net = NULL;
        log_warning("containers have no network: %s", err.text);
    } else if (net_get_note(agent->net)[0]) {
        log_info("network of containers: %s", net_get_note(agent->net));
    }
    if (agent->net)
        agent_confine_pulls(agent);
    agent_take_notes(agent, agent->net ? "" : err.text);
}

/* Sessions run without one, too. */
static void agent_find_ssh(struct agent_daemon *agent)
{
    const char *configured = agent->settings->runner;
    AQ_CLEANUP(aq_freep) char *runner = configured ? aq_strdup(configured)
                                                   : installed_find("aliquot-runner");
    struct aq_error err = { 0 };

    if (!agent->net || !agent->settings->network_ssh || !runner)
        return;
    if (ssh_new(SSH_SERVER, runner, &agent->ssh, &err) == 0)
        log_info("containers of interactive sessions have an SSH server%s",
                 ssh_has_sftp(agent->ssh) ? ""
                                          : "; not for SFTP: install the package "
                                            "openssh-sftp-server");
    else if (err.code == ENOENT)
        log_info("containers have no SSH server: install the package dropbear-bin");
    else
        log_warning("containers have no SSH server: %s", err.text);
}

static void agent_watch_slices(struct agent_daemon *agent)
{
    const struct gpu_conf conf = { .loop = agent->loop,
                                   .settings = agent->settings,
                                   .accel = agent->accel,
                                   .folder = runtime_oci_host(agent->containers)->gpu,
                                   .cgroups = &runtime_oci_host(agent->containers)->cgroups,
                                   .on_violation = limit_violation_handle,
                                   .data = agent };

    agent->gpu = gpu_new(&conf);
}

static void agent_on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void agent_on_heartbeat_closed(uv_handle_t *handle)
{
    struct agent_daemon *agent = handle->data;

    uv_close((uv_handle_t *)&agent->shutdown_poll, agent_on_timer_closed);
}

int agent_new(uv_loop_t *loop, const struct settings *settings,
              const struct agent_runtimes *runtimes, const struct agent_events *events, void *data,
              struct agent_daemon **ret, struct aq_error *err)
{
    AQ_CLEANUP(agent_freep) struct agent_daemon *agent = aq_alloc(sizeof(*agent));
    int r;

    *agent = (struct agent_daemon){ .loop = loop,
                                    .settings = settings,
                                    .runtime = runtimes->process,
                                    .containers = runtimes->containers,
                                    .no_containers = runtimes->no_containers,
                                    .events = events,
                                    .data = data,
                                    .lock = -1,
                                    .folder_lock = -1,
                                    .uid = (uid_t)-1,
                                    .gid = (gid_t)-1,
                                    .incarnation = uuid_random(),
                                    .started_usec = clock_realtime_usec() };
    list_init(&agent->receipts);
    list_init(&agent->image_jobs);
    list_init(&agent->streams);
    agent->heartbeat.data = agent->shutdown_poll.data = agent;
    (void)uv_timer_init(loop, &agent->heartbeat);
    (void)uv_timer_init(loop, &agent->shutdown_poll);
    log_turns_init(&agent->log_turns, loop);
    agent->probes = probes_new(loop);
    agent->metrics_watch = metrics_watch_new(agent);
    r = agent_take_lock(agent, err);
    if (r == 0 && agent->containers) /* an agent that just stopped may have removed them */
        r = oci_host_make_directories(runtime_oci_host(agent->containers), err);
    if (r == 0)
        r = agent_find_user(agent, err);
    if (r == 0)
        r = accel_new(loop, &settings->accel, agent_on_devices_changed, agent, &agent->accel, err);
    if (r == 0)
        r = resources_init(&agent->resources, settings, agent->accel, NULL, false, err);
    if (r == 0)
        r = claims_new(settings->run, settings->id, settings->state, &agent->claims, err);
    if (r == 0)
        r = resources_claim(&agent->resources, settings, agent->claims, true, err);
    if (r == 0)
        r = disk_worker_new(loop, settings->state, &agent->disk, err);
    if (r == 0)
        r = images_new(loop, settings, &agent->images, err);
    if (r == 0)
        images_set_promised(agent->images, prerequisites_scratch_kept, agent);
    if (r == 0 && agent->containers)
        agent_watch_slices(agent);
    if (r == 0 && agent->containers)
        agent->volumes = volumes_new(loop, settings, runtime_oci_monitor(agent->containers),
                                     agent_on_volumes_changed, agent);
    if (r == 0)
        agent_find_network(agent);
    if (r == 0)
        cluster_commands_start(agent);
    if (r == 0)
        agent_find_ssh(agent);
    if (r == 0)
        image_commands_start(agent);
    if (r == 0)
        r = log_retention_load(agent, err);
    if (r == 0)
        r = recover_all(agent, err);
    if (r == 0)
        agent_settle_claim(agent);
    if (r == 0)
        agent->stats = stats_collector_new(agent);
    if (r == 0)
        r = exposition_serve(agent, err);
    if (r == 0)
        agent_open_data_path(agent);
    if (r == 0)
        r = agent_connect_link(agent, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(agent);
    return 0;
}

void agent_free(struct agent_daemon *agent)
{
    if (!agent)
        return;
    data_path_free(AQ_TAKE(agent->data_path));
    streams_free(agent);
    log_turns_done(&agent->log_turns);
    metrics_close(AQ_TAKE(agent->metrics));
    stats_collector_free(AQ_TAKE(agent->stats));
    link_client_free(AQ_TAKE(agent->link));
    metrics_watch_free(AQ_TAKE(agent->metrics_watch));
    agent->is_closing = true;
    while (agent->kernels.count)
        kernel_drop(agent->kernels.entries[0].value);
    map_done(&agent->kernels);
    probes_free(AQ_TAKE(agent->probes));
    image_commands_free(agent);
    own_service_free(agent);
    images_free(agent->images);
    cluster_free(AQ_TAKE(agent->cluster));
    rdma_devices_done(&agent->rdma);
    net_free(agent->net);
    ssh_free(AQ_TAKE(agent->ssh));
    gpu_free(AQ_TAKE(agent->gpu));
    volumes_free(AQ_TAKE(agent->volumes));
    free(agent->notes);
    agent->notes = NULL;
    disk_worker_free(agent->disk);
    LIST_FOREACH(it, &agent->receipts) {
        list_remove(it);
        free(LIST_ENTRY(it, struct receipt, link));
    }
    log_retention_done(&agent->retained_logs);
    accel_free(AQ_TAKE(agent->accel));
    claims_free(AQ_TAKE(agent->claims));
    resources_done(&agent->resources);
    if (agent->containers && agent->folder_lock >= 0)
        oci_host_remove_directories(runtime_oci_host(agent->containers));
    aq_closep(&agent->lock);
    aq_closep(&agent->folder_lock);
    (void)uv_timer_stop(&agent->shutdown_poll);
    uv_close((uv_handle_t *)&agent->heartbeat, agent_on_heartbeat_closed);
}
