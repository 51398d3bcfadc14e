#include "agent/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "agent/container.h"
#include "agent/devices.h"
#include "agent/order.h"
#include "agent/prepare.h"
#include "agent/runtime/oci.h"
#include "agent/services.h"
#include "agent/ssh/ssh.h"
#include "agent/stat/kernel_stat.h"
#include "alloc/resource_txt.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "model/session.h"
#include "monitor/protocol.h"

#define TIMEOUT_GRACE_USEC (10 * USEC_PER_SEC)

/* ---- the table ---- */

struct local_kernel *kernel_find(struct agent *agent, const struct uuid *id)
{
    return map_get(&agent->kernels, id->bytes, sizeof(id->bytes));
}

struct local_kernel *kernel_add(struct agent *agent, const struct uuid *id)
{
    struct local_kernel *k = calloc(1, sizeof(*k));

    if (!k || map_set(&agent->kernels, id->bytes, sizeof(id->bytes), k) < 0) {
        free(k);
        return NULL;
    }
    k->agent = agent;
    k->id = *id;
    k->state = MSG_KERNEL_CREATING;
    k->at_usec = clock_realtime_usec();
    return k;
}

void kernel_drop(struct local_kernel *k)
{
    (void)map_remove(&k->agent->kernels, k->id.bytes, sizeof(k->id.bytes));
    kernel_stop_resizing(k);
    devices_release(k);
    prepare_release(k);
    kernel_stat_free(k->stat);
    runtime_release(k->run);
    free(k->image_name);
    free(k->user_id);
    free(k->project_id);
    free(k->hostname);
    free(k->preopen_ports);
    free(k->service_ports);
    slots_done(&k->slots);
    free(k->alloc);
    free(k->slots_text);
    free(k->reason);
    free(k->error_field);
    free(k->error_text);
    free(k->misuse);
    free(k);
}

bool kernel_is_final(const struct local_kernel *k)
{
    return k->state == MSG_KERNEL_TERMINATED || k->state == MSG_KERNEL_ERROR;
}

/* ---- reports ---- */

void kernel_describe(const struct local_kernel *k, struct msg_kernel_status *ret)
{
    *ret = (struct msg_kernel_status){
        .kernel_id = k->id,
        .session_id = k->session_id,
        .attempt = k->attempt,
        .state = k->state,
        .reason = k->reason,
        .has_exit = k->has_exit,
        .exit_code = k->exit_code,
        .alloc = k->alloc,
        .slots = k->slots_text,
        .service_ports = k->service_ports,
        .error_kind = k->error_kind,
        .error_field = k->error_field,
        .error_text = k->error_text,
        .misuse = k->misuse,
        .at_usec = k->at_usec,
    };
}

void kernel_report(const struct local_kernel *k)
{
    struct message msg = { .type = MSG_KERNEL_STATUS };

    kernel_describe(k, &msg.kernel_status);
    agent_send(k->agent, &msg);
}

static void enter(struct local_kernel *k, enum msg_kernel_state state, int64_t at_usec)
{
    k->state = state;
    k->at_usec = at_usec ? at_usec : clock_realtime_usec();
    kernel_report(k);
}

static void set_text(char **place, const char *text)
{
    free(*place);
    *place = text && text[0] ? strdup(text) : NULL; /* for people: absent if memory is short */
}

static void note_error(struct local_kernel *k, const struct aq_error *err)
{
    k->error_kind = err->kind ? err->kind : REASON_FAILED_TO_CREATE;
    set_text(&k->error_field, err->field);
    set_text(&k->error_text, err->text);
    if (!k->reason)
        set_text(&k->reason, REASON_FAILED_TO_CREATE);
}

/* An order that leaves no trace here. */
static void refuse(struct agent *agent, const struct msg_kernel_create *order,
                   const struct aq_error *err)
{
    const struct message msg = {
        .type = MSG_KERNEL_STATUS,
        .kernel_status = { .kernel_id = order->kernel_id,
                           .session_id = order->session_id,
                           .attempt = order->attempt,
                           .state = MSG_KERNEL_ERROR,
                           .reason = REASON_FAILED_TO_CREATE,
                           .error_kind = err->kind ? err->kind : REASON_FAILED_TO_CREATE,
                           .error_field = err->field[0] ? err->field : NULL,
                           .error_text = err->text,
                           .at_usec = clock_realtime_usec() },
    };

    agent_send(agent, &msg);
}

/* ---- starting ---- */

int kernel_take_order(struct local_kernel *k, const struct msg_kernel_create *order,
                      struct aq_error *err)
{
    struct slots slots = { .items = NULL };
    int r = order_check(order, err);

    if (r == 0)
        r = slots_from_text(order->slots, strlen(order->slots), NULL, &slots, err);
    if (r < 0)
        return r;
    slots_done(&k->slots);
    k->slots = slots;
    set_text(&k->image_name, order->image);
    set_text(&k->hostname, order->hostname);
    set_text(&k->preopen_ports, order->preopen_ports);
    k->is_main = !order->role || strcmp(order->role, "main") == 0;
    set_text(&k->user_id, order->user_id);
    set_text(&k->project_id, order->group_id);
    k->session_id = order->session_id;
    k->has_ssh_seed = order->ssh_seed != NULL;
    k->is_interactive = order->session_type && strcmp(order->session_type, "interactive") == 0;
    k->is_batch = order->session_type && strcmp(order->session_type, "batch") == 0;
    return 0;
}

static void on_running(void *data, int64_t started_usec)
{
    struct local_kernel *k = data;

    AQ_FAULT("agent.running.seen");
    if (!k->is_attached) /* an agent before us started it */
        prepare_adopt_slice(k);
    if (k->state == MSG_KERNEL_CREATING && k->run_attempt == k->attempt)
        enter(k, MSG_KERNEL_RUNNING, started_usec);
}

static void on_ended(void *data, const struct runtime_exit *exit)
{
    kernel_end(data, exit);
}

static const struct runtime_events run_events = { .on_running = on_running, .on_ended = on_ended };

/* The paths of the kernel's folders; NULL if memory is short. */
struct places {
    char *work, *cwd, *run, *spec, *config, *environ, *scratch;
};

static void places_done(struct places *places)
{
    free(places->work);
    free(places->cwd);
    free(places->run);
    free(places->spec);
    free(places->config);
    free(places->environ);
    free(places->scratch);
}

/* Is there a limit to what containers write? */
static bool has_limited_scratch(const struct agent *agent)
{
    return agent->containers && runtime_oci_host(agent->containers)->scratch_template;
}

static int places_init(struct places *places, const struct local_kernel *k, struct aq_error *err)
{
    const struct agent *agent = k->agent;
    bool is_limited = has_limited_scratch(agent);
    const struct disk *disk = agent->disk;

    *places = (struct places){ .work = disk_kernel_path(disk, &k->id, "work"),
                               .run = disk_run_path(disk, &k->id, k->attempt),
                               .spec = disk_kernel_path(disk, &k->id, "spec.json"),
                               .config = disk_kernel_path(disk, &k->id, "config"),
                               .environ = disk_kernel_path(disk, &k->id, "config/environ.txt"),
                               .scratch = disk_kernel_path(disk, &k->id,
                                                           is_limited ? "scratch.img" : "scratch") };
    return places->work && places->run && places->spec && places->config && places->environ
                   && places->scratch ? 0 : aq_fail(err, ENOMEM, "kernel");
}

/* What a process of the node is to be; borrows from all its arguments. */
static int specify(const struct local_kernel *k, const struct msg_kernel_create *order,
                   struct places *places, struct arena *arena, struct runtime_spec *ret,
                   struct aq_error *err)
{
    const struct agent *agent = k->agent;
    const struct settings *settings = agent->settings;
    const struct order_place place = order_place_on_node(settings, places->work,
                                                         &k->attachment);

    places->cwd = aq_format("%s%s%s", places->work, order->cwd ? "/" : "",
                            order->cwd ? order->cwd : "");
    *ret = (struct runtime_spec){
        .envp = order_environ(order, &place, arena),
        .cwd = places->cwd,
        .tty = order->command == NULL,
        .has_ids = agent->uid != (uid_t)-1,
        .uid = agent->uid,
        .gid = agent->gid,
        .processes_max = (uint64_t)settings->processes_max,
        .files_max = (uint64_t)settings->files_max,
    };
    return ret->envp && ret->cwd ? order_argv(order, &place, arena, &ret->argv, err)
                                 : aq_fail(err, ENOMEM, "kernel");
}

/* What is the same for all. */
static void specify_limits(const struct local_kernel *k, const struct msg_kernel_create *order,
                           const struct places *places, struct runtime_spec *spec)
{
    spec->folder = places->run;
    spec->timeout_usec = order->batch_timeout_usec;
    spec->grace_usec = TIMEOUT_GRACE_USEC;
    spec->log_max = (uint64_t)k->agent->settings->log_bytes;
    spec->memory_bytes = (uint64_t)slots_get(&k->slots, slot_name_intern("mem", 3));
}

static int write_ssh(const struct local_kernel *k, const struct msg_kernel_create *order,
                     const char *config, struct aq_error *err)
{
    const struct ssh_files files = { .config = config, .seed = order->ssh_seed,
                                     .hostname = k->hostname ? k->hostname : "main1",
                                     .hosts = order->hosts };

    return ssh_write_files(&files, err);
}

/* The image is here: write down what its program is told, and start it. */
static int start_container(struct local_kernel *k, const struct msg_kernel_create *order,
                           struct places *places, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct container_spec container;
    struct runtime_spec spec = { .folder = NULL };
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r = container_specify(k, order, k->image, places->scratch, places->config, &arena,
                              &container, &spec, err);

    if (r < 0)
        return r;
    specify_limits(k, order, places, &spec);
    text = order_write_environ(spec.envp);
    r = text ? fs_overwrite(AT_FDCWD, places->environ, text, strlen(text), 0644, err)
             : aq_fail(err, ENOMEM, "environ.txt");
    if (r == 0 && container.ssh)
        r = write_ssh(k, order, places->config, err);
    return r < 0 ? r : runtime_start(k->agent->containers, &spec, &run_events, k, &k->run, err);
}

static int start_process(struct local_kernel *k, const struct msg_kernel_create *order,
                         struct places *places, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct runtime_spec spec;
    int r = specify(k, order, places, &arena, &spec, err);

    if (r < 0)
        return r;
    specify_limits(k, order, places, &spec);
    return runtime_start(k->agent->runtime, &spec, &run_events, k, &k->run, err);
}

/* Start what spec.json says. */
static int start_order(struct local_kernel *k, struct places *places, struct aq_error *err)
{
    struct message msg;
    int r = order_read(places->spec, &msg, err);

    if (r < 0)
        return r;
    r = k->is_container ? start_container(k, &msg.kernel_create, places, err)
                        : start_process(k, &msg.kernel_create, places, err);
    message_done(&msg);
    return r;
}

/* The order is durable, and it has its devices or gets them now. */
static int launch(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(places_done) struct places places = { .work = NULL };
    struct runtime_spec spec = { .is_described = true };
    int r = places_init(&places, k, err);

    if (r < 0)
        return r;
    AQ_FAULT("agent.start.before");
    spec.folder = places.run;
    r = k->is_described
            ? runtime_start(k->agent->runtime, &spec, &run_events, k, &k->run, err)
            : start_order(k, &places, err);
    if (r == 0)
        k->run_attempt = k->attempt;
    AQ_FAULT("agent.start.done");
    return r;
}

/* ---- ending ---- */

/* What the manager calls it. */
static const char *reason_of(const struct local_kernel *k, const struct runtime_exit *exit)
{
    if (strcmp(exit->reason, MONITOR_TERMINATED) == 0)
        return k->reason ? k->reason : REASON_USER_REQUESTED;
    if (strcmp(exit->reason, MONITOR_TIMEOUT) == 0)
        return REASON_TASK_TIMEOUT;
    if (strcmp(exit->reason, MONITOR_OUT_OF_MEMORY) == 0)
        return REASON_OUT_OF_MEMORY;
    if (strcmp(exit->reason, MONITOR_LOST) == 0)
        return REASON_MONITOR_LOST;
    if (strcmp(exit->reason, MONITOR_NOT_STARTED) == 0)
        return REASON_FAILED_TO_START;
    if (!k->is_batch)
        return REASON_SELF_TERMINATED;
    return exit->has_code && exit->code == 0 ? REASON_TASK_FINISHED : REASON_TASK_FAILED;
}

/* A program that failed, or was ended by a signal, after its slice of a GPU was full. */
static bool was_gpu_full(const struct local_kernel *k, const struct runtime_exit *exit,
                         struct strbuf *why)
{
    bool has_failed = strcmp(exit->reason, MONITOR_SIGNALLED) == 0
                      || (strcmp(exit->reason, MONITOR_EXITED) == 0 && exit->code != 0);

    return has_failed && k->slice && gpu_slice_was_full(k->slice, why);
}

static void conclude(struct local_kernel *k, const struct runtime_exit *exit)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf why = STRBUF_INIT;
    bool never_ran = strcmp(exit->reason, MONITOR_NOT_STARTED) == 0;
    const char *reason = was_gpu_full(k, exit, &why) ? REASON_GPU_OUT_OF_MEMORY
                                                     : reason_of(k, exit);

    if (reason != k->reason)
        set_text(&k->reason, reason);
    k->has_exit = exit->has_code;
    k->exit_code = exit->code;
    if (never_ran && !k->error_kind)
        k->error_kind = REASON_FAILED_TO_START;
    if (!k->error_text)
        set_text(&k->error_text, why.len ? why.data : exit->text);
    devices_release(k);
    prepare_release(k);
    kernel_stat_free(AQ_TAKE(k->stat));
    enter(k, never_ran || k->is_unreadable ? MSG_KERNEL_ERROR : MSG_KERNEL_TERMINATED,
          exit->ended_usec);
    AQ_FAULT("agent.exit.reported");
}

void kernel_end(struct local_kernel *k, const struct runtime_exit *exit)
{
    bool was_older = k->run && k->run_attempt < k->attempt;

    streams_kernel_ended(k->agent, &k->id);
    if (!was_older)
        conclude(k, exit);
    runtime_release(AQ_TAKE(k->run));
    k->run_attempt = 0;
    if (was_older && k->state == MSG_KERNEL_RESTARTING)
        enter(k, MSG_KERNEL_CREATING, 0);
    if (was_older)
        kernel_step(k);
}

static void on_concluded(void *data, const struct disk_job *job, const struct aq_error *err)
{
    const struct runtime_exit exit = { .reason = job->reason, .text = job->text };
    struct local_kernel *k = kernel_find(data, &job->id);

    if (!k || !k->is_concluding)
        return;
    k->is_concluding = false;
    if (err->code)
        log_error("the end of a kernel is not recorded: %s", err->text);
    kernel_end(k, &exit);
}

/* It ends and was never started: say so in its folder first, so that no later
 * process of the agent starts it. 'reason' is static.
 */
static void end_unstarted(struct local_kernel *k, const char *reason, const char *text)
{
    struct disk_job job = { .action = DISK_CONCLUDE, .id = k->id, .attempt = k->attempt,
                            .reason = reason, .text = strdup(text),
                            .on_done = on_concluded, .data = k->agent };
    struct aq_error err = { 0 };

    if (k->is_concluding) {
        free(job.text);
        return;
    }
    k->is_concluding = job.text && disk_add(k->agent->disk, &job, &err) == 0;
    if (!k->is_concluding)
        log_error("memory is short: the end of a kernel waits");
}

void kernel_fail(struct local_kernel *k, const struct aq_error *err)
{
    note_error(k, err);
    end_unstarted(k, MONITOR_NOT_STARTED, err->text);
}

/* What spec.json says becomes what is wanted. */
static int take_saved_order(struct local_kernel *k, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = disk_kernel_path(k->agent->disk, &k->id, "spec.json");
    struct message msg;
    int r = path ? order_read(path, &msg, err) : aq_fail(err, ENOMEM, "kernel");

    if (r < 0)
        return r;
    r = kernel_take_order(k, &msg.kernel_create, err);
    message_done(&msg);
    return r < 0 ? r : devices_ensure(k, err);
}

/* Its devices first, then the program. */
static void begin(struct local_kernel *k)
{
    struct aq_error err = { 0 };
    bool is_new = !k->is_described && !k->is_attached && !k->attaching && !k->is_describing;
    int r = is_new ? take_saved_order(k, &err) : 0;

    if (r == 0 && !k->is_described)
        r = devices_prepare(k, &err);
    if (r == 0 && !k->is_described)
        r = prepare_container(k, &err);
    if (r == -EINPROGRESS)
        return;
    if (r == 0)
        r = launch(k, &err);
    if (r < 0)
        kernel_fail(k, &err);
}

void kernel_step(struct local_kernel *k)
{
    if (kernel_is_final(k) || k->agent->is_refused)
        return;
    if (k->run && (k->wants_end || k->run_attempt < k->attempt))
        runtime_terminate(k->run, k->grace_usec);
    else if (k->run || !k->is_saved)
        return;
    else if (k->wants_end)
        end_unstarted(k, MONITOR_TERMINATED, "ended before it was started");
    else if (!k->is_concluding)
        begin(k);
}

int kernel_adopt(struct local_kernel *k, int64_t attempt, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = disk_run_path(k->agent->disk, &k->id, attempt);
    int r;

    if (!folder)
        return aq_fail(err, ENOMEM, "kernel");
    r = runtime_adopt(k->is_container ? k->agent->containers : k->agent->runtime, folder, &run_events, k, &k->run, err);
    if (r == 0)
        k->run_attempt = attempt;
    return r;
}

/* ---- orders of the manager ---- */

static void on_unsaved(struct local_kernel *k, const struct disk_job *job, const struct aq_error *err)
{
    log_error("an order cannot be saved: %s", err->text);
    note_error(k, err);
    devices_release(k);
    enter(k, MSG_KERNEL_ERROR, 0);
    if (k->run)
        runtime_terminate(k->run, 0);
    if (job->action == DISK_CREATE)
        kernel_drop(k); /* there is no folder */
}

static void on_saved(void *data, const struct disk_job *job, const struct aq_error *err)
{
    struct agent *agent = data;
    struct local_kernel *k = kernel_find(agent, &job->id);
    struct receipt *receipt;

    if (!k || k->attempt != job->attempt)
        return; /* a newer order has come meanwhile */
    receipt = AQ_TAKE(k->receipt);
    AQ_FAULT("agent.create.durable");
    if (err->code) {
        on_unsaved(k, job, err);
    } else {
        k->is_saved = true;
        kernel_step(k);
    }
    agent_settle(agent, receipt);
    AQ_FAULT("agent.create.acknowledged");
}

static int write_resource(const struct local_kernel *k, const char *config, char **ret,
                          struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct agent *agent = k->agent;
    char id[UUID_TEXT_MAX];
    struct order_held held = {
        .slots = &k->slots,
        .grant = &k->grant,
        .attachment = &k->attachment,
        .container_id = k->is_container ? uuid_format(&k->id, id) : NULL,
        .scratch_bytes = k->is_container && has_limited_scratch(agent)
                             ? agent->settings->scratch_bytes : 0,
    };

    if (k->is_container
        && !(held.mounts = container_mounts(k, config, 0, &arena, &held.mount_count)))
        return aq_fail(err, ENOMEM, "resource.txt");
    return order_write_resource(&held, agent->resources.types, ret, err);
}

/* The files of a kernel's folder, as far as the order decides them. */
static int write_job(struct local_kernel *k, const struct msg_kernel_create *order,
                     struct disk_job *job, struct aq_error *err)
{
    AQ_CLEANUP(places_done) struct places places = { .work = NULL };
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct runtime_spec spec;
    int r = places_init(&places, k, err);

    if (r == 0 && !k->is_container)
        r = specify(k, order, &places, &arena, &spec, err);
    if (r == 0 && job->action != DISK_DESCRIBE)
        r = order_write(order, k->attempt, &job->spec, err);
    if (r == 0 && k->grant.count)
        r = write_resource(k, places.config, &job->resource, err);
    if (r < 0 || k->is_container)
        return r; /* the rest depends on the image */
    specify_limits(k, order, &places, &spec);
    if (!(job->environ = order_write_environ(spec.envp)))
        return aq_fail(err, ENOMEM, "kernel");
    return job->action == DISK_CREATE && k->is_attached
               ? runtime_describe(k->agent->runtime, &spec, &job->program, err) : 0;
}

int kernel_describe_config(struct local_kernel *k, const struct msg_kernel_create *order,
                           struct disk_job *job, struct aq_error *err)
{
    return write_job(k, order, job, err);
}

/* Queue the order for the disk; the message is acknowledged when it is there. */
static int save(struct local_kernel *k, enum disk_action action, uint64_t seq,
                const struct msg_kernel_create *order, struct aq_error *err)
{
    struct disk_job job = { .action = action, .id = k->id, .attempt = k->attempt,
                            .program = STRBUF_INIT,
                            .uid = k->agent->uid, .gid = k->agent->gid,
                            .on_done = on_saved, .data = k->agent };
    int r = write_job(k, order, &job, err);

    if (r < 0) {
        disk_job_done(&job);
        return r;
    }
    r = disk_add(k->agent->disk, &job, err);
    if (r < 0)
        return r;
    k->is_saved = false;
    k->is_described = action == DISK_CREATE && k->is_attached && !k->is_container;
    agent_settle(k->agent, AQ_TAKE(k->receipt)); /* of an order that this one replaces */
    k->receipt = agent_receipt(k->agent, seq);
    return 0;
}

static int check_room(const struct agent *agent, struct aq_error *err)
{
    if (agent->is_draining)
        return aq_fail_kind(err, EAGAIN, "draining", "this agent is drained");
    if (agent->is_refused)
        return aq_fail_kind(err, EAGAIN, "draining", "this agent is about to stop");
    if (agent->kernels.count >= KERNELS_MAX)
        return aq_fail_kind(err, EAGAIN, "busy", "this agent has %d kernels already", KERNELS_MAX);
    return 0;
}

static void create_new(struct agent *agent, uint64_t seq, const struct msg_kernel_create *order)
{
    struct aq_error err = { 0 };
    struct local_kernel *k = NULL;
    int r = check_room(agent, &err);

    if (r == 0 && !(k = kernel_add(agent, &order->kernel_id)))
        r = aq_fail(&err, ENOMEM, "kernel");
    if (r == 0) {
        k->attempt = order->attempt;
        r = kernel_take_order(k, order, &err);
    }
    if (r == 0)
        r = container_is_wanted(agent, order->image, &k->is_container, &err);
    if (r == 0)
        r = services_check_order(k, &err);
    if (r == 0)
        r = devices_allocate(k, &err);
    /* plugins are asked once the order is safe */
    if (r == 0 && !accel_is_needed(&k->grant))
        r = devices_prepare(k, &err);
    if (r == 0)
        r = save(k, DISK_CREATE, seq, order, &err);
    if (r == 0) {
        kernel_report(k);
        return;
    }
    refuse(agent, order, &err);
    if (k)
        kernel_drop(k);
}

/* A later attempt of a kernel that is here, with this order. */
static void begin_attempt(struct local_kernel *k, uint64_t seq, int64_t attempt, int64_t grace_usec,
                          const struct msg_kernel_create *order)
{
    int64_t former = k->attempt;
    struct aq_error err = { 0 };

    k->attempt = attempt;
    devices_detach(k);
    if (save(k, DISK_REPLACE, seq, order, &err) < 0) {
        k->attempt = former;
        refuse(k->agent, order, &err);
        return;
    }
    k->wants_end = k->has_exit = false;
    k->exit_code = 0;
    k->error_kind = NULL;
    k->grace_usec = grace_usec;
    set_text(&k->reason, NULL);
    set_text(&k->error_field, NULL);
    set_text(&k->error_text, NULL);
    set_text(&k->misuse, NULL);
    enter(k, k->run ? MSG_KERNEL_RESTARTING : MSG_KERNEL_CREATING, 0);
}

void kernel_on_create(struct agent *agent, uint64_t seq, const struct msg_kernel_create *order)
{
    struct local_kernel *k = kernel_find(agent, &order->kernel_id);
    struct aq_error err = { 0 };

    AQ_FAULT("agent.create.received");
    if (!k)
        create_new(agent, seq, order);
    else if (order->attempt <= k->attempt)
        kernel_report(k); /* it has come before */
    else if (check_room(agent, &err) < 0 || order_check(order, &err) < 0)
        refuse(agent, order, &err);
    else
        begin_attempt(k, seq, order->attempt, 0, order);
}

void kernel_on_restart(struct agent *agent, uint64_t seq, const struct msg_kernel_restart *order)
{
    struct local_kernel *k = kernel_find(agent, &order->kernel_id);
    AQ_CLEANUP(aq_freep) char *path = NULL;
    struct aq_error err = { 0 };
    struct message msg;

    AQ_FAULT("agent.restart.received");
    if (!k || order->attempt <= k->attempt) {
        if (k)
            kernel_report(k);
        return;
    }
    path = disk_kernel_path(agent->disk, &k->id, "spec.json");
    if (!path || order_read(path, &msg, &err) < 0) {
        log_error("a kernel cannot be restarted: %s", path ? err.text : "memory is short");
        return;
    }
    msg.kernel_create.attempt = order->attempt;
    begin_attempt(k, seq, order->attempt, order->grace_usec, &msg.kernel_create);
    message_done(&msg);
}

void kernel_on_destroy(struct agent *agent, const struct msg_kernel_destroy *order)
{
    struct local_kernel *k = kernel_find(agent, &order->kernel_id);

    AQ_FAULT("agent.destroy.received");
    if (!k || (order->attempt && order->attempt < k->attempt))
        return; /* the inventory says what is here */
    if (kernel_is_final(k)) {
        kernel_report(k);
        return;
    }
    if (!k->wants_end || order->grace_usec < k->grace_usec)
        k->grace_usec = order->grace_usec;
    k->wants_end = true;
    if (!k->reason)
        set_text(&k->reason, order->reason);
    if (k->state != MSG_KERNEL_TERMINATING)
        enter(k, MSG_KERNEL_TERMINATING, 0);
    kernel_step(k);
    AQ_FAULT("agent.destroy.passed-on");
}

static void on_forgotten(void *data, const struct disk_job *job, const struct aq_error *err)
{
    if (err->code)
        log_warning("the folder of a forgotten kernel remains: %s", err->text);
    if (job->kept_bytes)
        kept_add(data, &job->id, job->kept_bytes);
}

void kernel_on_forget(struct agent *agent, const struct msg_kernel_forget *order)
{
    struct local_kernel *k = kernel_find(agent, &order->kernel_id);
    struct disk_job job = { .action = DISK_FORGET, .id = order->kernel_id,
                            .on_done = on_forgotten, .data = agent };
    struct aq_error err = { 0 };

    AQ_FAULT("agent.forget.received");
    if (!k || !kernel_is_final(k) || (order->attempt && order->attempt < k->attempt))
        return;
    job.attempt = k->attempt;
    if (disk_add(agent->disk, &job, &err) < 0)
        log_warning("a kernel's folder remains: %s", err.text);
    else
        kernel_drop(k);
}
