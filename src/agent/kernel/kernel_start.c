/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_start.c - what a kernel's program is to be, as its command, devices and image decide,
 * and its start
 */
#include <errno.h>
#include <string.h>

#include "agent/kernel/container_spec.h"
#include "agent/kernel/dotfiles.h"
#include "agent/kernel/host_network.h"
#include "agent/kernel/kernel_command.h"
#include "agent/kernel/kernel_internal.h"
#include "agent/kernel/kernel_program.h"
#include "agent/kernel/lease.h"
#include "agent/kernel/prerequisites.h"
#include "agent/runtime/oci.h"
#include "agent/ssh/ssh.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "model/end_signal.h"

#define TIMEOUT_GRACE_USEC (10 * USEC_PER_SEC)

/* The paths of the kernel's directories. */
struct places {
    char *work, *cwd, *run, *config, *environ, *scratch, *output;
};

static void places_done(struct places *places)
{
    free(places->work);
    free(places->cwd);
    free(places->run);
    free(places->config);
    free(places->environ);
    free(places->scratch);
    free(places->output);
}

static void places_init(struct places *places, const struct local_kernel *k)
{
    const struct agent_daemon *agent = k->agent;
    bool is_limited = prerequisites_limit_scratch(agent);
    const struct disk_worker *disk = agent->disk;

    *places = (struct places){
        .work = disk_worker_kernel_path(disk, &k->id, "work"),
        .run = disk_worker_run_path(disk, &k->id, k->attempt),
        .config = disk_worker_kernel_path(disk, &k->id, "config"),
        .environ = disk_worker_kernel_path(disk, &k->id, "config/environ.txt"),
        .scratch = disk_worker_kernel_path(disk, &k->id, is_limited ? "scratch.img" : "scratch"),
        .output = disk_worker_kernel_path(disk, &k->id, "output"),
    };
}

/* What a process of the node is to be; borrows from all its arguments. */
static int kernel_start_specify(const struct local_kernel *k, struct places *places,
                                struct arena *arena, struct runtime_spec *ret, struct aq_error *err)
{
    const struct agent_daemon *agent = k->agent;
    const struct settings *settings = agent->settings;
    const struct kernel_spec *spec = kernel_get_spec(k);
    struct kernel_program_context place = kernel_program_host_context(settings, places->work,
                                                                      &k->attachment);

    place.output = kernel_has_output(k) ? places->output : NULL;
    place.own = kernel_program_find_own(spec, NULL, arena);
    places->cwd = aq_format("%s%s%s", places->work, spec->cwd ? "/" : "",
                            spec->cwd ? spec->cwd : "");
    *ret = (struct runtime_spec){
        .envp = kernel_environ_make(&k->command.kernel_create, &place, arena),
        .cwd = places->cwd,
        .output = place.output,
        .tty = !place.own && kernel_program_has_terminal(&spec->session),
        .input = kernel_program_has_input(&spec->session),
        .has_ids = agent->uid != (uid_t)-1,
        .uid = agent->uid,
        .gid = agent->gid,
        .processes_max = (uint64_t)settings->processes_max,
        .files_max = (uint64_t)settings->files_max,
    };
    return kernel_program_argv(&spec->session, &place, arena, &ret->argv, err);
}

/* What is the same for all. */
static void kernel_start_specify_limits(const struct local_kernel *k, const struct places *places,
                                        struct runtime_spec *spec)
{
    const struct session_spec *session = &kernel_get_spec(k)->session;

    spec->directory = places->run;
    spec->timeout_usec = session->batch_timeout_usec;
    spec->grace_usec = end_signal_grace_usec(session, INT64_MAX, TIMEOUT_GRACE_USEC);
    (void)end_signal_parse(session->signal, &spec->warn_signal, &spec->warn_usec, NULL);
    if (session->checkpoint_signal) {
        spec->notice_signal = AQ_MAX(
            end_signal_number(session->checkpoint_signal, strlen(session->checkpoint_signal)), 0);
        spec->notice_usec = end_signal_notice_usec(session, INT64_MAX);
    }
    spec->has_bootstrap = session->bootstrap != NULL;
    spec->bootstrap_usec = k->agent->settings->bootstrap_usec;
    spec->log_max = (uint64_t)k->agent->settings->log_bytes;
    spec->memory_bytes = (uint64_t)slots_get(&k->slots, slot_name_intern("mem", 3));
}

static int kernel_start_write_ssh(const struct local_kernel *k, const char *config,
                                  struct aq_error *err)
{
    const struct kernel_spec *spec = kernel_get_spec(k);
    const struct ssh_files files = { .config = config,
                                     .seed = spec->ssh_seed,
                                     .hostname = kernel_hostname_of(k),
                                     .hosts = spec->hosts,
                                     .own = spec->ssh_public_key,
                                     .network = k->host ? &k->host->network : NULL,
                                     .for_files = image_is_for_files(k->image) };

    return ssh_write_files(&files, err);
}

static int kernel_start_write_hosts(const struct local_kernel *k, const char *config,
                                    struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf slots = STRBUF_INIT, machines = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf hosts = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *slots_path = aq_format("%s/" CONTAINER_HOST_FILE, config);
    AQ_CLEANUP(aq_freep) char *machines_path = aq_format("%s/" CONTAINER_MACHINE_FILE, config);
    AQ_CLEANUP(aq_freep) char *hosts_path = aq_format("%s/" HOST_NETWORK_HOSTS, config);
    int r = 0;

    if (container_add_host_files(k, &slots, &machines)) {
        r = fs_overwrite(AT_FDCWD, slots_path, slots.data, slots.len, 0644, err);
        if (r == 0)
            r = fs_overwrite(AT_FDCWD, machines_path, machines.data, machines.len, 0644, err);
    }
    if (r < 0 || !k->host)
        return r;
    host_network_add_hosts(k->host, &hosts);
    return fs_overwrite(AT_FDCWD, hosts_path, hosts.data, hosts.len, 0644, err);
}

/* The image is here: write down what its program is told, and start it. */
static int start_container(struct local_kernel *k, struct places *places, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct container_spec container;
    struct runtime_spec spec = { .directory = NULL };
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r = container_specify(k, k->image, places->scratch, places->config, &arena, &container,
                              &spec, err);

    if (r < 0)
        return r;
    kernel_start_specify_limits(k, places, &spec);
    text = kernel_environ_write(spec.envp);
    r = fs_overwrite(AT_FDCWD, places->environ, text, strlen(text), 0644, err);
    if (r == 0)
        r = kernel_start_write_hosts(k, places->config, err);
    if (r == 0 && container.ssh)
        r = kernel_start_write_ssh(k, places->config, err);
    if (r == 0 && container.dotfiles)
        r = dotfiles_store(places->config, kernel_get_spec(k)->dotfiles, err);
    return r < 0 ? r
                 : runtime_start(k->agent->containers, &spec, &kernel_run_events, k, &k->run, err);
}

/* Containers have theirs from the runner. */
static int kernel_start_place_dotfiles(const struct local_kernel *k, const struct places *places,
                                       struct aq_error *err)
{
    const struct dotfiles_owner owner = { k->agent->uid, k->agent->gid };
    const char *dotfiles = kernel_get_spec(k)->dotfiles;

    if (!dotfiles || k->is_container)
        return 0;
    return dotfiles_place(places->work, dotfiles, owner.uid == (uid_t)-1 ? NULL : &owner, err);
}

static int kernel_start_process(struct local_kernel *k, struct places *places, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct runtime_spec spec;
    int r = kernel_start_specify(k, places, &arena, &spec, err);

    if (r < 0)
        return r;
    kernel_start_specify_limits(k, places, &spec);
    return runtime_start(k->agent->runtime, &spec, &kernel_run_events, k, &k->run, err);
}

/* The command is durable, and it has its devices or gets them now. */
int kernel_launch(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(places_done) struct places places = { .work = NULL };
    struct runtime_spec spec = { .is_described = true };
    int r;

    AQ_FAULT("agent.start.before");
    places_init(&places, k);
    spec.directory = places.run;
    if ((r = kernel_start_place_dotfiles(k, &places, err)) < 0)
        return r;
    if (k->is_described)
        r = runtime_start(k->agent->runtime, &spec, &kernel_run_events, k, &k->run, err);
    else
        r = k->is_container ? start_container(k, &places, err)
                            : kernel_start_process(k, &places, err);
    if (r == 0) {
        k->run_attempt = k->attempt;
        k->lease_until_usec = 0;
        lease_pass_on(k);
    }
    AQ_FAULT("agent.start.done");
    return r;
}

/* ---- its files ---- */

static int kernel_start_write_resource(const struct local_kernel *k, const char *config, char **ret,
                                       struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct agent_daemon *agent = k->agent;
    char id[UUID_TEXT_MAX];
    struct kernel_program_resources held = {
        .slots = &k->slots,
        .grant = &k->grant,
        .attachment = &k->attachment,
        .container_id = k->is_container ? uuid_format(&k->id, id) : NULL,
        .scratch_bytes = k->is_container && prerequisites_limit_scratch(agent)
                             ? agent->settings->scratch_bytes
                             : 0,
    };

    if (k->is_container)
        held.mounts = container_mounts(k, config, 0, &arena, &held.mount_count);
    return kernel_program_write_resource(&held, agent->resources.types, ret, err);
}

/* The files of a kernel's directory, as far as the command decides them. */
int kernel_describe_config(struct local_kernel *k, struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(places_done) struct places places = { .work = NULL };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct runtime_spec spec;
    int r = 0;

    places_init(&places, k);
    if (!k->is_container)
        r = kernel_start_specify(k, &places, &arena, &spec, err);
    if (r == 0 && job->action != DISK_DESCRIBE && job->action != DISK_INTEND)
        r = kernel_command_write(&k->command, k->attempt, &job->spec, err);
    if (r == 0 && k->grant.count)
        r = kernel_start_write_resource(k, places.config, &job->resource, err);
    if (r < 0 || k->is_container)
        return r; /* the rest depends on the image */
    kernel_start_specify_limits(k, &places, &spec);
    job->environ = kernel_environ_write(spec.envp);
    return job->action == DISK_CREATE && k->is_attached
               ? runtime_describe(k->agent->runtime, &spec, &job->program, err)
               : 0;
}
