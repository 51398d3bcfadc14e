/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime whose programs are events of the simulation and outlive the agent. */
#include "sim/play/play_runtime.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agent/runtime/program_file.h"
#include "alloc/resource_txt.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "monitor/protocol.h"

#define PROGRAM_MAX_BYTES (4u << 20)
#define END_USEC (50 * USEC_PER_MSEC) /* from SIGTERM to the end of who heeds it */

enum play_state { PLAY_STARTING, PLAY_RUNNING, PLAY_ENDED };

struct play_work {
    struct list link;
    struct list news_link; /* of its machine; self-linked = its handle has heard all */
    struct play_machine *machine;
    struct play_handle *handle; /* of the agent's process; NULL = nobody watches */
    char *directory;
    struct play_program program;
    enum play_state state;
    int64_t run_usec, start_usec; /* run: -1 = forever */
    int code;
    bool is_stubborn, is_oom, fails;
    int64_t end_usec;                 /* simulated time of an end that was asked for; 0 = none */
    int64_t lease_usec;               /* the same of the lease */
    int64_t started_usec, ended_usec; /* wall clock of the host */
    const char *reason;               /* of monitor/protocol.h */
};

struct play_machine {
    struct list link, works, news;
    struct map by_directory; /* but for works that are gone with their machine */
    simuv_host host;
    const char *agent_id;
    struct play_runtime *runtime; /* NULL = no agent runs */
};

struct play_runtime {
    struct runtime super; /* first */
    struct play_machine *machine;
    uv_async_t changed;
};

struct play_handle {
    struct runtime_kernel super; /* first */
    struct play_work *work;
    const struct runtime_events *events;
    void *data;
    bool told_running;
};

static struct list machines = { &machines, &machines };
static struct {
    void (*fn)(void *data, const struct play_program *p);
    void *data;
} program_listener;

void play_on_program(void (*fn)(void *data, const struct play_program *p), void *data)
{
    program_listener.fn = fn;
    program_listener.data = data;
}

static void play_work_publish(const struct play_work *work)
{
    if (program_listener.fn)
        program_listener.fn(program_listener.data, &work->program);
}

/* ---- the life of a program, outside of the agent's process ---- */

static void play_work_note_news(struct play_work *work)
{
    if (list_is_empty(&work->news_link))
        list_add(&work->machine->news, &work->news_link);
}

static void play_work_announce(struct play_work *work)
{
    struct play_machine *machine = work->machine;

    if (!machine->runtime || !work->handle)
        return;
    play_work_note_news(work);
    simuv_enter(machine->host);
    (void)uv_async_send(&machine->runtime->changed);
    simuv_leave();
}

/* What the monitor of a real program leaves. */
static void play_work_record(const struct play_work *work)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/exit.json", work->directory);
    AQ_CLEANUP(aq_freep) char *code = work->fails ? aq_strdup("null") : aq_format("%d", work->code);
    char id[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "{\"version\":1,\"kernel_id\":\"%s\",\"reason\":\"%s\",\"text\":\"\",\"exit_code\":%s,"
        "\"signal\":null,\"started_at\":%" PRId64 ",\"ended_at\":%" PRId64 "}",
        uuid_format(&work->program.kernel_id, id), work->reason, code, work->started_usec,
        work->ended_usec);
    struct aq_error err = { 0 };

    if (fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, &err) < 0)
        log_warning("%s", err.text);
}

static void play_work_end(struct play_work *work, const char *reason, int code)
{
    if (work->state == PLAY_ENDED)
        return;
    work->state = PLAY_ENDED;
    work->program.is_running = false;
    work->reason = reason;
    work->code = code;
    work->program.reason = reason;
    work->program.code = code;
    work->ended_usec = simuv_get_wall_usec(work->machine->host);
    play_work_record(work);
    play_work_publish(work);
    play_work_announce(work);
}

static void play_work_on_done(void *data)
{
    struct play_work *work = data;

    if (work->is_oom)
        play_work_end(work, MONITOR_OUT_OF_MEMORY, 137);
    else
        play_work_end(work, MONITOR_EXITED, work->code);
}

static void play_work_on_killed(void *data)
{
    struct play_work *work = data;

    if (work->end_usec && simuv_now_usec() >= work->end_usec)
        play_work_end(work, MONITOR_TERMINATED, work->is_stubborn ? 137 : 143);
}

static void play_work_on_lease_over(void *data)
{
    struct play_work *work = data;

    if (work->lease_usec && simuv_now_usec() >= work->lease_usec)
        play_work_end(work, MONITOR_LEASE_OVER, 143);
}

static void play_work_on_started(void *data)
{
    struct play_work *work = data;

    if (work->state != PLAY_STARTING)
        return;
    if (work->fails) {
        play_work_end(work, MONITOR_NOT_STARTED, 127);
        return;
    }
    work->state = PLAY_RUNNING;
    work->started_usec = simuv_get_wall_usec(work->machine->host);
    work->program.starts++;
    work->program.is_running = true;
    work->program.started_usec = simuv_now_usec();
    play_work_publish(work);
    if (work->run_usec >= 0)
        simuv_at(simuv_now_usec() + work->run_usec, play_work_on_done, work);
    play_work_announce(work);
}

static void play_work_take_word(struct play_work *work, const char *word)
{
    if (strncmp(word, "run=", 4) == 0)
        work->run_usec = (int64_t)(strtod(word + 4, NULL) * USEC_PER_SEC);
    else if (strncmp(word, "code=", 5) == 0)
        work->code = atoi(word + 5);
    else if (strncmp(word, "start=", 6) == 0)
        work->start_usec = strtoll(word + 6, NULL, 10) * USEC_PER_MSEC;
    work->is_stubborn = work->is_stubborn || strcmp(word, "stubborn") == 0;
    work->is_oom = work->is_oom || strcmp(word, "oom") == 0;
    work->fails = work->fails || strcmp(word, "fails") == 0;
}

/* A shell may have got the command line as one argument. */
static void play_work_take_argument(struct play_work *work, char *argument)
{
    char *rest = NULL;

    for (char *word = strtok_r(argument, " '\"", &rest); word; word = strtok_r(NULL, " '\"", &rest))
        play_work_take_word(work, word);
}

static int play_work_read(struct play_work *work, struct aq_error *err)
{
    static const char arg[] = "arg=", id[] = "env=ALIQUOT_KERNEL_ID=";
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/program", work->directory);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, PROGRAM_MAX_BYTES, &text, err);
    size_t len;

    for (char *at = text.data; r == 0 && at < text.data + text.len; at += len + 1) {
        len = strlen(at);
        if (strncmp(at, id, strlen(id)) == 0)
            r = uuid_parse(at + strlen(id), &work->program.kernel_id);
        else if (strncmp(at, arg, strlen(arg)) == 0)
            play_work_take_argument(work, at + strlen(arg));
    }
    return r;
}

/* Beside the directory of the attempt: kernels/ID/config, kernels/ID/run/ATTEMPT. */
static int play_work_read_holds(struct play_work *work, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep)
    char *path = aq_format("%s/../../config/resource.txt", work->directory);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct resource_txt file = { .scratch_bytes = 0 };
    int r = fs_read(AT_FDCWD, path, RESOURCE_TXT_MAX, &text, err);

    if (r == 0)
        r = resource_txt_read(text.data, text.len, NULL, &file, err);
    if (r == 0)
        alloc_grant_copy(&work->program.holds, &file.grant);
    resource_txt_done(&file);
    return r;
}

/* ---- the agent's side ---- */

static void play_handle_tell_end(struct play_handle *handle)
{
    const struct play_work *work = handle->work;
    struct runtime_exit exit = { .reason = work->reason,
                                 .text = "",
                                 .was_short_of_memory = work->is_oom,
                                 .has_code = !work->fails,
                                 .code = work->code,
                                 .ended_usec = work->ended_usec };

    handle->work->handle = NULL;
    handle->work = NULL;
    handle->events->on_ended(handle->data, &exit); /* may free the handle */
}

/* False if it has heard all. */
static bool play_handle_tell(struct play_handle *handle)
{
    const struct play_work *work = handle->work;

    if (!handle->told_running && work->program.starts) {
        handle->told_running = true;
        handle->events->on_running(handle->data, work->started_usec);
        return true;
    }
    if (work->state != PLAY_ENDED)
        return false;
    play_handle_tell_end(handle);
    return true;
}

/* A callback may start, release and end others. */
static void play_runtime_on_changed(uv_async_t *async)
{
    const struct play_runtime *rt = async->data;
    struct list *news = &rt->machine->news;

    while (!list_is_empty(news)) {
        const struct play_work *work = LIST_ENTRY(news->next, struct play_work, news_link);

        if (!work->handle || !play_handle_tell(work->handle))
            list_remove(news->next);
    }
}

static int play_runtime_describe(struct runtime *runtime, const struct runtime_spec *spec,
                                 struct strbuf *out, struct aq_error *err)
{
    (void)runtime;
    (void)err;
    program_file_text(spec, out);
    return 0;
}

static void play_runtime_watch(struct play_runtime *rt, struct play_work *work,
                               const struct runtime_events *events, void *data,
                               struct runtime_kernel **ret)
{
    struct play_handle *handle = aq_alloc(sizeof(*handle));

    *handle = (struct play_handle){
        .super.ops = rt->super.ops, .work = work, .events = events, .data = data
    };
    work->handle = handle;
    play_work_note_news(work); /* what happened before */
    *ret = &handle->super;
    (void)uv_async_send(&rt->changed);
}

static int play_runtime_start(struct runtime *runtime, const struct runtime_spec *spec,
                              const struct runtime_events *events, void *data,
                              struct runtime_kernel **ret, struct aq_error *err)
{
    struct play_runtime *rt = AQ_CONTAINER_OF(runtime, struct play_runtime, super);
    struct play_work *work = aq_alloc(sizeof(*work));
    int r = spec->is_described ? 0 : program_file_write(spec, err);

    *work = (struct play_work){ .machine = rt->machine,
                                .directory = aq_strdup(spec->directory),
                                .program.agent_id = rt->machine->agent_id,
                                .run_usec = -1 };
    if (r == 0)
        r = play_work_read(work, err);
    if (r == 0)
        r = play_work_read_holds(work, err);
    if (r < 0) {
        free(work->directory);
        free(work);
        return r;
    }
    list_add(&rt->machine->works, &work->link);
    list_init(&work->news_link);
    (void)map_sets(&rt->machine->by_directory, work->directory, work);
    simuv_at(simuv_now_usec() + work->start_usec, play_work_on_started, work);
    play_runtime_watch(rt, work, events, data, ret);
    return 0;
}

static int play_runtime_adopt(struct runtime *runtime, const char *directory,
                              const struct runtime_events *events, void *data,
                              struct runtime_kernel **ret, struct aq_error *err)
{
    struct play_runtime *rt = AQ_CONTAINER_OF(runtime, struct play_runtime, super);
    struct play_work *work = map_gets(&rt->machine->by_directory, directory);

    if (!work)
        return aq_fail(err, ENOENT, "no program was started in '%s'", directory);
    play_runtime_watch(rt, work, events, data, ret);
    return 0;
}

static struct play_work *play_work_of(struct runtime_kernel *kernel)
{
    return AQ_CONTAINER_OF(kernel, struct play_handle, super)->work;
}

static void play_runtime_terminate(struct runtime_kernel *kernel, int64_t notice_usec,
                                   int64_t grace_usec)
{
    struct play_work *work = play_work_of(kernel);
    int64_t wait = work && work->is_stubborn ? notice_usec + grace_usec
                                             : AQ_MIN(END_USEC, notice_usec + grace_usec);
    int64_t at = simuv_now_usec() + wait;

    if (!work || (work->end_usec && work->end_usec <= at))
        return;
    work->end_usec = at;
    simuv_at(at, play_work_on_killed, work);
}

static void play_runtime_set_lease(struct runtime_kernel *kernel, int64_t until_usec,
                                   int64_t grace_usec)
{
    struct play_work *work = play_work_of(kernel);
    int64_t wait = until_usec - clock_boottime_usec();

    if (!work)
        return;
    wait = AQ_MAX(wait, 0) + (work->is_stubborn ? grace_usec : AQ_MIN(END_USEC, grace_usec));
    work->lease_usec = until_usec ? simuv_now_usec() + wait : 0;
    if (until_usec)
        simuv_at(work->lease_usec, play_work_on_lease_over, work);
}

static void play_runtime_signal(struct runtime_kernel *kernel, int number)
{
    (void)kernel;
    (void)number; /* programs of the simulation heed none */
}

static void play_runtime_release(struct runtime_kernel *kernel)
{
    struct play_handle *handle = AQ_CONTAINER_OF(kernel, struct play_handle, super);

    if (handle->work)
        handle->work->handle = NULL;
    free(handle);
}

static int play_runtime_attach(struct runtime_kernel *kernel,
                               const struct runtime_terminal_ops *ops, void *data,
                               struct runtime_terminal **ret, struct aq_error *err)
{
    (void)kernel;
    (void)ops;
    (void)data;
    (void)ret;
    return aq_fail(err, ENOTTY, "simulated programs have no terminal");
}

static int play_runtime_exec(struct runtime_kernel *kernel, const struct runner_command_spec *spec,
                             const struct runner_command_ops *ops, void *data,
                             struct runner_command **ret, struct aq_error *err)
{
    (void)kernel;
    (void)spec;
    (void)ops;
    (void)data;
    (void)ret;
    return aq_fail(err, ENOTCONN, "nothing runs beside simulated programs");
}

static pid_t play_runtime_pid(const struct runtime_kernel *kernel)
{
    (void)kernel;
    return 0;
}

static void play_runtime_on_closed(uv_handle_t *async)
{
    free(async->data);
}

static void play_runtime_free(struct runtime *runtime)
{
    struct play_runtime *rt = AQ_CONTAINER_OF(runtime, struct play_runtime, super);

    rt->machine->runtime = NULL;
    uv_close((uv_handle_t *)&rt->changed, play_runtime_on_closed);
}

static const struct runtime_ops play_runtime_ops = {
    .name = "process",
    .describe = play_runtime_describe,
    .start = play_runtime_start,
    .adopt = play_runtime_adopt,
    .terminate = play_runtime_terminate,
    .set_lease = play_runtime_set_lease,
    .signal = play_runtime_signal,
    .release = play_runtime_release,
    .attach = play_runtime_attach,
    .exec = play_runtime_exec,
    .pid = play_runtime_pid,
    .free = play_runtime_free,
};

struct runtime *play_runtime_new(struct play_machine *machine, uv_loop_t *loop)
{
    struct play_runtime *rt = aq_alloc(sizeof(*rt));

    rt->super.ops = &play_runtime_ops;
    rt->machine = machine;
    (void)uv_async_init(loop, &rt->changed, play_runtime_on_changed);
    rt->changed.data = rt;
    machine->runtime = rt;
    return &rt->super;
}

/* ---- machines ---- */

struct play_machine *play_machine_new(simuv_host host, const char *agent_id)
{
    struct play_machine *machine = aq_alloc(sizeof(*machine));

    *machine = (struct play_machine){ .host = host, .agent_id = agent_id };
    list_init(&machine->works);
    list_init(&machine->news);
    list_add(&machines, &machine->link);
    return machine;
}

void play_machine_abandon(struct play_machine *machine)
{
    machine->runtime = NULL;
    LIST_FOREACH(it, &machine->works)
        LIST_ENTRY(it, struct play_work, link)->handle = NULL;
}

void play_machine_crash(struct play_machine *machine)
{
    play_machine_abandon(machine);
    LIST_FOREACH(it, &machine->works) {
        struct play_work *work = LIST_ENTRY(it, struct play_work, link);

        if (work->state == PLAY_ENDED)
            continue;
        (void)map_removes(&machine->by_directory, work->directory);
        work->state = PLAY_ENDED;
        work->program.is_running = false;
        play_work_publish(work);
    }
}

void play_each_program(void (*fn)(void *data, const struct play_program *p), void *data)
{
    LIST_FOREACH(machine, &machines) {
        LIST_FOREACH(it, &LIST_ENTRY(machine, struct play_machine, link)->works)
            fn(data, &LIST_ENTRY(it, struct play_work, link)->program);
    }
}
