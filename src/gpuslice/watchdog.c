/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - checks whether containers use devices past their limits
 *
 * While there is something to watch, `aliquot-gpu watch` is asked twice a second who
 * holds how much of which device; one process for each management library
 * that the plugins name (accelerator.h: "nvml_library", "simulated_card"). Where
 * the driver limits memory by cgroup (nvmlDeviceSetMemoryLimits_v1), it is told
 * the limits of each slice first.
 * One that ends or says nothing for SILENT_USEC is killed and started again,
 * later and later. With nothing to watch there is no such process and no timer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "gpuslice/slices_internal.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#define LOOK_MSEC 500
#define SILENT_USEC (10 * USEC_PER_SEC)
#define DELAY_MAX_USEC (60 * USEC_PER_SEC)
#define WATCHERS_MAX 4
#define VIOLATIONS_MAX 8
#define ANSWER_MAX \
    (sizeof(struct gpu_watch_response) + GPU_PROCESSES_MAX * sizeof(struct gpu_process_memory))

/* One process. Outlives its place until it is reaped and its pipes are closed. */
struct watcher {
    struct watchdog *dog; /* NULL once it has been given up */
    size_t place;
    uv_process_t process;
    uv_pipe_t in, out;
    int open_handles;
    bool is_running, is_asked;
    uint64_t limiting; /* number of the slice that is being limited; 0 = a list was asked for */
    int64_t asked_usec;
    size_t len;
    char answer[ANSWER_MAX];
};

struct watchdog {
    struct slices *slices;
    uv_timer_t timer; /* its closing frees all this */
    struct {
        struct watcher *watcher; /* NULL = none now */
        char *library;           /* NULL = the place is free */
        int failures;            /* in a row */
        int64_t start_usec;      /* not before */
    } places[WATCHERS_MAX];
};

/* ---- the end of a process ---- */

static void watchdog_on_handle_closed(uv_handle_t *handle)
{
    struct watcher *w = handle->data;

    if (--w->open_handles == 0)
        free(w);
}

static void watchdog_on_ended(uv_process_t *process, int64_t status, int signal)
{
    struct watcher *w = process->data;

    (void)status;
    (void)signal;
    w->is_running = false;
    uv_close((uv_handle_t *)process, watchdog_on_handle_closed);
}

static void watchdog_give_up(struct watchdog *dog, size_t place)
{
    struct watcher *w = AQ_TAKE(dog->places[place].watcher);

    if (!w)
        return;
    w->dog = NULL;
    uv_close((uv_handle_t *)&w->in, watchdog_on_handle_closed);
    uv_close((uv_handle_t *)&w->out, watchdog_on_handle_closed);
    if (w->is_running)
        (void)uv_process_kill(&w->process, SIGKILL);
}

static void watchdog_fail(struct watchdog *dog, size_t place, const char *why)
{
    int64_t delay = AQ_MIN(USEC_PER_SEC << AQ_MIN(dog->places[place].failures, 10), DELAY_MAX_USEC);

    if (dog->places[place].failures++ == 0)
        log_warning(
            "GPU watchdog stopped: '%s watch --library %s' %s; limits are not checked until it "
            "restarts",
            dog->slices->watch_program, dog->places[place].library, why);
    dog->places[place].start_usec = clock_monotonic_usec() + delay;
    watchdog_give_up(dog, place);
}

static void watchdog_ask(struct watchdog *dog, size_t place);
static void watchdog_on_limited(struct slices *slices, uint64_t number, int result);

/* ---- what it says ---- */

bool slices_is_running(pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32], state = 'X';
    const char *name_end;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0 && (name_end = strrchr(text.data, ')'))
        && name_end[1])
        state = name_end[2];
    return state != 'Z' && state != 'X';
}

struct belonging {
    const struct slices_conf *conf;
    const struct slice *slice;
};

/* A process that has ended has no slot any more, but may still wait to be reaped. */
static bool watchdog_belongs(pid_t pid, void *data)
{
    const struct belonging *to = data;

    return to->conf->owns(to->conf->data, to->slice, pid) && slices_is_running(pid);
}

static void watchdog_report(struct slices *slices, struct slice *slice,
                            const struct gpu_violation *violation)
{
    char text[200];

    gpu_violation_format(violation, slice->region, text, sizeof(text));
    slices->conf.on_violation(slices->conf.data, slice, violation, text);
}

static bool watchdog_has(const struct slices *slices, const struct slice *slice)
{
    for (size_t i = 0; i < slices->count; i++)
        if (slices->items[i] == slice)
            return true;
    return false;
}

/* Slices that are found out may be removed meanwhile. */
static void watchdog_check_all(struct slices *slices, const struct gpu_process_memory *uses,
                               size_t count)
{
    if (slices->conf.on_processes)
        slices->conf.on_processes(slices->conf.data, uses, count);
    for (size_t i = slices->count; i-- > 0;) {
        struct slice *slice = slices->items[i];
        struct belonging to = { &slices->conf, slice };
        struct gpu_violation violations[VIOLATIONS_MAX];
        size_t found = gpu_violation_check_run(&slice->violations, slice->region, uses, count,
                                               watchdog_belongs, &to, violations, VIOLATIONS_MAX);

        for (size_t k = 0; k < found && watchdog_has(slices, slice); k++)
            watchdog_report(slices, slice, &violations[k]);
        i = AQ_MIN(i, slices->count);
    }
}

static void watchdog_alloc_part(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct watcher *w = handle->data;

    (void)suggested;
    *buf = uv_buf_init(w->answer + w->len, (unsigned int)(sizeof(w->answer) - w->len));
}

static void watchdog_on_part(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct watcher *w = stream->data;
    struct watchdog *dog = w->dog;
    struct gpu_watch_response response;

    (void)buf;
    if (!dog || got == 0)
        return;
    if (got < 0) {
        watchdog_fail(dog, w->place, "has ended");
        return;
    }
    w->len += (size_t)got;
    if (w->len < sizeof(response))
        return;
    memcpy(&response, w->answer, sizeof(response));
    if (!w->is_asked || response.magic != AQ_GPU_MAGIC || response.count > GPU_PROCESSES_MAX) {
        watchdog_fail(dog, w->place, "says what cannot be");
        return;
    }
    if (w->len < sizeof(response) + response.count * sizeof(struct gpu_process_memory))
        return;
    w->is_asked = false;
    w->len = 0;
    dog->places[w->place].failures = 0;
    if (w->limiting) {
        watchdog_on_limited(dog->slices, w->limiting, response.result);
        watchdog_ask(dog, w->place);
        return;
    }
    watchdog_check_all(dog->slices,
                       (const struct gpu_process_memory *)(void *)(w->answer + sizeof(response)),
                       response.count);
}

/* ---- limits of the driver ---- */

/* The number of the slice whose next device is to be limited; 0 = there is none now. The limit of
 * the driver is a little behind the library's, which answers as programs expect it.
 */
static uint64_t watchdog_next_limit(const struct slices *slices, struct gpu_watch_request *request)
{
    for (size_t i = 0; i < slices->count; i++) {
        const struct slice *slice = slices->items[i];
        const struct aq_gpu_limits *limits = gpu_region_host_limits(slice->region);
        AQ_CLEANUP(aq_freep) char *cgroup = NULL;

        if (slice->is_unlimited || slice->limited >= limits->device_count
            || !(cgroup = slices->conf.find_cgroup(slices->conf.data, slice))
            || strlen(cgroup) >= sizeof(request->cgroup))
            continue;
        *request = (struct gpu_watch_request){
            .kind = GPU_WATCH_LIMIT,
            .bytes = limits->devices[slice->limited].memory_bytes + GPU_VIOLATION_TOLERANCE,
        };
        memcpy(request->uuid, limits->devices[slice->limited].uuid, sizeof(request->uuid));
        memcpy(request->cgroup, cgroup, strlen(cgroup) + 1);
        return slice->number;
    }
    return 0;
}

static void watchdog_on_limited(struct slices *slices, uint64_t number, int result)
{
    for (size_t i = 0; i < slices->count; i++) {
        struct slice *slice = slices->items[i];

        if (slice->number != number)
            continue;
        slice->limited++;
        slice->is_unlimited = result < 0;
        if (result < 0 && result != -ENOSYS) {
            AQ_CLEANUP(aq_freep) char *cgroup = slices->conf.find_cgroup(slices->conf.data, slice);

            log_warning("the driver does not limit the memory of a container cgroup=%s: %s",
                        cgroup ? cgroup : "-", strerror(-result));
        }
    }
}

/* ---- starting it ---- */

/* Our environment, and the card to observe if it is simulated. NULL-terminated, caller frees. */
static char **watchdog_make_environ(char *card)
{
    extern char **environ;
    size_t count = 0, n = 0;
    char **ret;

    while (environ[count])
        count++;
    ret = aq_alloc_array(count + 2, sizeof(*ret));
    for (size_t i = 0; i < count; i++)
        if (!card || strncmp(environ[i], "SIMGPU_DEVICE=", 14) != 0)
            ret[n++] = environ[i];
    if (card)
        ret[n] = card;
    return ret;
}

static int watchdog_spawn(struct watcher *w, const char *library, const char *card)
{
    struct slices *slices = w->dog->slices;
    AQ_CLEANUP(aq_freep) char *variable = card ? aq_format("SIMGPU_DEVICE=%s", card) : NULL;
    char **env = watchdog_make_environ(variable);
    char *argv[] = { slices->watch_program, (char *)"watch", (char *)"--library", (char *)library,
                     NULL };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&w->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&w->out },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    const uv_process_options_t options = { .exit_cb = watchdog_on_ended,
                                           .file = slices->watch_program,
                                           .args = argv,
                                           .env = env,
                                           .stdio_count = 3,
                                           .stdio = stdio };
    int r = uv_spawn(slices->conf.loop, &w->process, &options);

    free(env);
    return r;
}

static void watchdog_start(struct watchdog *dog, size_t place, const char *card)
{
    struct watcher *w = aq_alloc(sizeof(*w));
    int r;

    w->dog = dog;
    w->place = place;
    (void)uv_pipe_init(dog->slices->conf.loop, &w->in, 0);
    (void)uv_pipe_init(dog->slices->conf.loop, &w->out, 0);
    w->process.data = w->in.data = w->out.data = w;
    w->open_handles = 3;
    dog->places[place].watcher = w;
    r = watchdog_spawn(w, dog->places[place].library, card);
    if (r < 0) {
        uv_close((uv_handle_t *)&w->process, watchdog_on_handle_closed);
        watchdog_fail(dog, place, uv_strerror(r));
        return;
    }
    w->is_running = true;
    (void)uv_read_start((uv_stream_t *)&w->out, watchdog_alloc_part, watchdog_on_part);
}

/* ---- asking it ---- */

static void watchdog_ask(struct watchdog *dog, size_t place)
{
    struct watcher *w = dog->places[place].watcher;
    struct gpu_watch_request request = { .kind = GPU_WATCH_LIST };
    uv_buf_t bytes = uv_buf_init((char *)&request, sizeof(request));

    if (w->is_asked) {
        if (clock_monotonic_usec() - w->asked_usec > SILENT_USEC)
            watchdog_fail(dog, place, "does not answer");
        return;
    }
    w->is_asked = true;
    w->asked_usec = clock_monotonic_usec();
    w->limiting = watchdog_next_limit(dog->slices, &request);
    if (uv_try_write((uv_stream_t *)&w->in, &bytes, 1) != sizeof(request))
        watchdog_fail(dog, place, "takes no questions");
}

static const char *watchdog_plugin_info(const struct accel_plugin *plugin, const char *key)
{
    for (size_t i = 0; i < plugin->info_count; i++)
        if (strcmp(plugin->info[i].key, key) == 0)
            return plugin->info[i].value;
    return NULL;
}

/* The place of a library; a free one if it has none. WATCHERS_MAX = all are taken. */
static size_t watchdog_place_of(struct watchdog *dog, const char *library)
{
    size_t found = WATCHERS_MAX;

    for (size_t i = WATCHERS_MAX; i-- > 0;) {
        if (!dog->places[i].library)
            found = i;
        else if (strcmp(dog->places[i].library, library) == 0)
            return i;
    }
    if (found < WATCHERS_MAX)
        dog->places[found].library = aq_strdup(library);
    return found;
}

static void watchdog_check_plugin(struct watchdog *dog, const struct accel_plugin *plugin)
{
    const char *library = watchdog_plugin_info(plugin, "nvml_library");
    size_t place = library ? watchdog_place_of(dog, library) : WATCHERS_MAX;

    if (place == WATCHERS_MAX)
        return;
    if (!dog->places[place].watcher && clock_monotonic_usec() >= dog->places[place].start_usec)
        watchdog_start(dog, place, watchdog_plugin_info(plugin, "simulated_card"));
    if (dog->places[place].watcher)
        watchdog_ask(dog, place);
}

static void watchdog_stop(struct watchdog *dog)
{
    (void)uv_timer_stop(&dog->timer);
    for (size_t i = 0; i < WATCHERS_MAX; i++)
        watchdog_give_up(dog, i);
}

static void watchdog_on_timer(uv_timer_t *timer)
{
    struct watchdog *dog = timer->data;
    const struct accel_plugin *plugin;

    if (!dog->slices->count && !dog->slices->is_watched) {
        watchdog_stop(dog);
        return;
    }
    for (size_t i = 0; (plugin = accel_plugin(dog->slices->conf.accel, i)); i++)
        watchdog_check_plugin(dog, plugin);
}

/* ---- life ---- */

void watchdog_wake(struct watchdog *dog)
{
    if (dog->slices->watch_program && !uv_is_active((const uv_handle_t *)&dog->timer))
        (void)uv_timer_start(&dog->timer, watchdog_on_timer, LOOK_MSEC, LOOK_MSEC);
}

static void watchdog_on_timer_closed(uv_handle_t *handle)
{
    struct watchdog *dog = handle->data;

    for (size_t i = 0; i < WATCHERS_MAX; i++)
        free(dog->places[i].library);
    free(dog);
}

struct watchdog *watchdog_new(struct slices *slices)
{
    struct watchdog *dog = aq_alloc(sizeof(*dog));

    dog->slices = slices;
    (void)uv_timer_init(slices->conf.loop, &dog->timer);
    dog->timer.data = dog;
    return dog;
}

void watchdog_free(struct watchdog *dog)
{
    if (!dog)
        return;
    watchdog_stop(dog);
    uv_close((uv_handle_t *)&dog->timer, watchdog_on_timer_closed);
}
