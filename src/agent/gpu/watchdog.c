/* watchdog.c - looks whether containers use devices past what holds them
 *
 * While there are slices, `aliquot-gpu watch` is asked twice a second who
 * holds how much of which device; one process for each management library
 * that the plugins name (accelerator.h: "nvml_library", "simulated_card"). Where
 * the driver limits memory by cgroup (nvmlDeviceSetMemoryLimits_v1), it is told
 * the limits of each slice first.
 * One that ends or says nothing for SILENT_USEC is killed and started again,
 * later and later. Without slices there is no such process and no timer.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/gpu_private.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "gpuhost/judge.h"

#define LOOK_MSEC 500
#define SILENT_USEC (10 * USEC_PER_SEC)
#define DELAY_MAX_USEC (60 * USEC_PER_SEC)
#define WATCHERS_MAX 4
#define FINDINGS_MAX 8
#define ANSWER_MAX (sizeof(struct gpu_watch_head) + GPU_USES_MAX * sizeof(struct gpu_use))

/* One process. Outlives its place until it is reaped and its pipes are closed. */
struct watcher {
    struct watchdog *dog; /* NULL once it has been given up */
    size_t place;
    uv_process_t process;
    uv_pipe_t in, out;
    int open_handles;
    bool is_running, is_asked;
    struct uuid limiting; /* whose device is being limited; nil = a look is under way */
    int64_t asked_usec;
    size_t len;
    char answer[ANSWER_MAX];
};

struct watchdog {
    struct gpu *gpu;
    uv_timer_t timer; /* its closing frees all this */
    struct {
        struct watcher *watcher; /* NULL = none now */
        char *library;           /* NULL = the place is free */
        int failures;            /* in a row */
        int64_t start_usec;      /* not before */
    } places[WATCHERS_MAX];
};

/* ---- the end of a process ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct watcher *w = handle->data;

    if (--w->open_handles == 0)
        free(w);
}

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
    struct watcher *w = process->data;

    (void)status;
    (void)signal;
    w->is_running = false;
    uv_close((uv_handle_t *)process, on_handle_closed);
}

static void give_up(struct watchdog *dog, size_t place)
{
    struct watcher *w = AQ_TAKE(dog->places[place].watcher);

    if (!w)
        return;
    w->dog = NULL;
    uv_close((uv_handle_t *)&w->in, on_handle_closed);
    uv_close((uv_handle_t *)&w->out, on_handle_closed);
    if (w->is_running)
        (void)uv_process_kill(&w->process, SIGKILL);
}

static void fail(struct watchdog *dog, size_t place, const char *why)
{
    int64_t delay = AQ_MIN(USEC_PER_SEC << AQ_MIN(dog->places[place].failures, 10), DELAY_MAX_USEC);

    if (dog->places[place].failures++ == 0)
        log_warning("nobody watches who uses GPUs past their limits: '%s watch --library %s' %s",
                    dog->gpu->watch_program, dog->places[place].library, why);
    dog->places[place].start_usec = clock_monotonic_usec() + delay;
    give_up(dog, place);
}

static void ask(struct watchdog *dog, size_t place);
static void on_limited(struct gpu *gpu, const struct uuid *whose, int result);

/* ---- what it says ---- */

/* Of which kernel is a process? Its cgroup is named after it. */
struct belonging {
    char kernel[UUID_TEXT_MAX];
};

static bool belongs(pid_t pid, void *data)
{
    const struct belonging *to = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (fs_read(AT_FDCWD, path, 65536, &text, NULL) < 0 || !strstr(text.data, to->kernel))
        return false;
    /* whoever has ended has no slot any more, but may still wait to be reaped */
    strbuf_clear(&text);
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        return false;
    path[0] = strrchr(text.data, ')') ? strrchr(text.data, ')')[2] : 'X';
    return path[0] != 'Z' && path[0] != 'X';
}

static void tell(struct gpu_slice *slice, const struct gpu_finding *finding)
{
    char text[200];

    gpu_finding_write(finding, slice->share, text, sizeof(text));
    slice->gpu->on_misuse(slice->gpu->data, &slice->id, text, gpu_finding_is_breach(finding));
}

/* The kernels that are found out may end, so by their ids. */
static void judge_all(struct gpu *gpu, const struct gpu_use *uses, size_t count)
{
    for (size_t i = gpu->count; i-- > 0;) {
        struct gpu_slice *slice = gpu->slices[i];
        struct gpu_finding findings[FINDINGS_MAX];
        struct belonging to;
        size_t found;

        (void)uuid_format(&slice->id, to.kernel);
        found = gpu_judge_look(&slice->judge, slice->share, uses, count, belongs, &to, findings,
                               FINDINGS_MAX);
        for (size_t k = 0; k < found; k++)
            tell(slice, &findings[k]);
    }
}

static void alloc_part(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct watcher *w = handle->data;

    (void)suggested;
    *buf = uv_buf_init(w->answer + w->len, (unsigned int)(sizeof(w->answer) - w->len));
}

static void on_part(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct watcher *w = stream->data;
    struct watchdog *dog = w->dog;
    struct gpu_watch_head head;

    (void)buf;
    if (!dog || got == 0)
        return;
    if (got < 0) {
        fail(dog, w->place, "has ended");
        return;
    }
    w->len += (size_t)got;
    if (w->len < sizeof(head))
        return;
    memcpy(&head, w->answer, sizeof(head));
    if (!w->is_asked || head.magic != AQ_GPU_MAGIC || head.count > GPU_USES_MAX) {
        fail(dog, w->place, "says what cannot be");
        return;
    }
    if (w->len < sizeof(head) + head.count * sizeof(struct gpu_use))
        return;
    w->is_asked = false;
    w->len = 0;
    dog->places[w->place].failures = 0;
    if (!uuid_is_nil(&w->limiting)) {
        on_limited(dog->gpu, &w->limiting, head.result);
        ask(dog, w->place);
        return;
    }
    judge_all(dog->gpu, (const struct gpu_use *)(void *)(w->answer + sizeof(head)), head.count);
}

/* ---- limits of the driver ---- */

/* The path of the kernel's cgroup; NULL before it is there, or if there is no version 2. */
static char *find_cgroup(const struct gpu *gpu, const struct gpu_slice *slice)
{
    const struct cgroup_hierarchy *v2 = gpu->cgroups ? cgroup_find_v2(gpu->cgroups) : NULL;
    char name[UUID_TEXT_MAX];
    AQ_CLEANUP(aq_freep) char *path = v2 ? cgroup_path(gpu->cgroups, uuid_format(&slice->id, name))
                                         : NULL;
    AQ_CLEANUP(aq_freep) char *full = path ? aq_format("%s%s", v2->mount, path) : NULL;

    return full && access(full, F_OK) == 0 ? AQ_TAKE(full) : NULL;
}

/* The next device that is to be limited; false = there is none now. The wall of the
 * driver is a little behind the library's, which answers as programs expect it.
 */
static bool next_limit(const struct gpu *gpu, struct gpu_watch_order *order, struct uuid *ret_whose)
{
    for (size_t i = 0; i < gpu->count; i++) {
        const struct gpu_slice *slice = gpu->slices[i];
        const struct aq_gpu_limits *limits = gpu_share_limits(slice->share);
        AQ_CLEANUP(aq_freep) char *cgroup = NULL;

        if (slice->is_unlimited || slice->limited >= limits->device_count
            || !(cgroup = find_cgroup(gpu, slice)) || strlen(cgroup) >= sizeof(order->cgroup))
            continue;
        *order = (struct gpu_watch_order){
            .kind = GPU_ORDER_LIMIT,
            .bytes = limits->devices[slice->limited].memory_bytes + GPU_JUDGE_TOLERANCE,
        };
        memcpy(order->uuid, limits->devices[slice->limited].uuid, sizeof(order->uuid));
        memcpy(order->cgroup, cgroup, strlen(cgroup) + 1);
        *ret_whose = slice->id;
        return true;
    }
    return false;
}

static void on_limited(struct gpu *gpu, const struct uuid *whose, int result)
{
    for (size_t i = 0; i < gpu->count; i++) {
        struct gpu_slice *slice = gpu->slices[i];

        if (!uuid_equals(&slice->id, whose))
            continue;
        slice->limited++;
        slice->is_unlimited = result < 0;
        if (result < 0 && result != -ENOSYS)
            log_warning("the driver does not limit the memory of a kernel kernel=%s: %s",
                        uuid_format(whose, (char[UUID_TEXT_MAX]){ 0 }), strerror(-result));
    }
}

/* ---- starting it ---- */

/* Our environment, and the card to look at if it is simulated. NULL-terminated, caller frees. */
static char **make_environ(char *card)
{
    extern char **environ;
    size_t count = 0, n = 0;
    char **ret;

    while (environ[count])
        count++;
    if (!(ret = calloc(count + 2, sizeof(*ret))))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (!card || strncmp(environ[i], "SIMGPU_DEVICE=", 14) != 0)
            ret[n++] = environ[i];
    if (card)
        ret[n] = card;
    return ret;
}

static int spawn(struct watcher *w, const char *library, const char *card)
{
    struct gpu *gpu = w->dog->gpu;
    AQ_CLEANUP(aq_freep) char *variable = card ? aq_format("SIMGPU_DEVICE=%s", card) : NULL;
    char **env = make_environ(variable);
    char *argv[] = { gpu->watch_program, (char *)"watch", (char *)"--library", (char *)library, NULL };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&w->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&w->out },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    const uv_process_options_t options = { .exit_cb = on_ended, .file = gpu->watch_program,
                                           .args = argv, .env = env, .stdio_count = 3,
                                           .stdio = stdio };
    int r = env ? uv_spawn(gpu->loop, &w->process, &options) : UV_ENOMEM;

    free(env);
    return r;
}

static void start(struct watchdog *dog, size_t place, const char *card)
{
    struct watcher *w = calloc(1, sizeof(*w));
    int r;

    if (!w) {
        fail(dog, place, "needs more memory than there is");
        return;
    }
    w->dog = dog;
    w->place = place;
    (void)uv_pipe_init(dog->gpu->loop, &w->in, 0);
    (void)uv_pipe_init(dog->gpu->loop, &w->out, 0);
    w->process.data = w->in.data = w->out.data = w;
    w->open_handles = 3;
    dog->places[place].watcher = w;
    r = spawn(w, dog->places[place].library, card);
    if (r < 0) {
        uv_close((uv_handle_t *)&w->process, on_handle_closed);
        fail(dog, place, uv_strerror(r));
        return;
    }
    w->is_running = true;
    (void)uv_read_start((uv_stream_t *)&w->out, alloc_part, on_part);
}

/* ---- asking it ---- */

static void ask(struct watchdog *dog, size_t place)
{
    struct watcher *w = dog->places[place].watcher;
    struct gpu_watch_order order = { .kind = GPU_ORDER_LOOK };
    uv_buf_t bytes = uv_buf_init((char *)&order, sizeof(order));

    if (w->is_asked) {
        if (clock_monotonic_usec() - w->asked_usec > SILENT_USEC)
            fail(dog, place, "does not answer");
        return;
    }
    w->is_asked = true;
    w->asked_usec = clock_monotonic_usec();
    w->limiting = (struct uuid){ 0 };
    (void)next_limit(dog->gpu, &order, &w->limiting);
    if (uv_try_write((uv_stream_t *)&w->in, &bytes, 1) != sizeof(order))
        fail(dog, place, "takes no questions");
}

static const char *info_of(const struct accel_plugin *plugin, const char *key)
{
    for (size_t i = 0; i < plugin->info_count; i++)
        if (strcmp(plugin->info[i].key, key) == 0)
            return plugin->info[i].value;
    return NULL;
}

/* The place of a library; a free one if it has none. WATCHERS_MAX = all are taken. */
static size_t place_of(struct watchdog *dog, const char *library)
{
    size_t found = WATCHERS_MAX;

    for (size_t i = WATCHERS_MAX; i-- > 0;) {
        if (!dog->places[i].library)
            found = i;
        else if (strcmp(dog->places[i].library, library) == 0)
            return i;
    }
    if (found < WATCHERS_MAX)
        dog->places[found].library = strdup(library);
    return found;
}

static void look_by(struct watchdog *dog, const struct accel_plugin *plugin)
{
    const char *library = info_of(plugin, "nvml_library");
    size_t place = library ? place_of(dog, library) : WATCHERS_MAX;

    if (place == WATCHERS_MAX || !dog->places[place].library)
        return;
    if (!dog->places[place].watcher && clock_monotonic_usec() >= dog->places[place].start_usec)
        start(dog, place, info_of(plugin, "simulated_card"));
    if (dog->places[place].watcher)
        ask(dog, place);
}

static void rest(struct watchdog *dog)
{
    (void)uv_timer_stop(&dog->timer);
    for (size_t i = 0; i < WATCHERS_MAX; i++)
        give_up(dog, i);
}

static void on_timer(uv_timer_t *timer)
{
    struct watchdog *dog = timer->data;
    const struct accel_plugin *plugin;

    if (!dog->gpu->count) {
        rest(dog);
        return;
    }
    for (size_t i = 0; (plugin = accel_plugin(dog->gpu->accel, i)); i++)
        look_by(dog, plugin);
}

/* ---- life ---- */

void watchdog_wake(struct watchdog *dog)
{
    if (dog->gpu->watch_program && !uv_is_active((const uv_handle_t *)&dog->timer))
        (void)uv_timer_start(&dog->timer, on_timer, LOOK_MSEC, LOOK_MSEC);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct watchdog *dog = handle->data;

    for (size_t i = 0; i < WATCHERS_MAX; i++)
        free(dog->places[i].library);
    free(dog);
}

struct watchdog *watchdog_new(struct gpu *gpu)
{
    struct watchdog *dog = calloc(1, sizeof(*dog));

    if (!dog)
        return NULL;
    dog->gpu = gpu;
    (void)uv_timer_init(gpu->loop, &dog->timer);
    dog->timer.data = dog;
    return dog;
}

void watchdog_free(struct watchdog *dog)
{
    if (!dog)
        return;
    rest(dog);
    uv_close((uv_handle_t *)&dog->timer, on_timer_closed);
}
