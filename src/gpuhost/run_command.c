/* SPDX-License-Identifier: Apache-2.0 */
/* run_command.c - "aliquot gpu run": one program and its children on a slice of a GPU
 *
 * Serves the slice itself: makes the region, answers the handshake, checks for
 * processes that go past the library, and ends with the program. Several of
 * them on one machine see each other through their sockets, so that shares
 * of a device's time come out right among them.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/installed.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "gpuhost/violation.h"
#include "gpuhost/discovery.h"
#include "gpuhost/commands.h"
#include "gpuhost/nvml.h"

#define SCAN_NS 100000000
#define SCAN_FIRST_NS 5000000 /* while its first process is younger than SCAN_NS */
#define CHECK_NS 500000000
#define VIOLATIONS_MAX 16

struct gpu_run {
    struct gpu_grant grant;
    const char *device;
    bool conserving, stop;
    struct gpu_nvml *nvml;
    struct gpu_region_host *region;
    char *directory, *name;
    char *link; /* to the library, where its own path cannot be preloaded; or NULL */
    pid_t child;
    struct gpu_peer peers[GPU_PEERS_MAX];
    struct gpu_region_view views[GPU_PEERS_MAX + 1];
    int64_t scanned_ns, checked_ns, first_ns;
    struct gpu_violation_check violations;
    struct gpu_process_memory uses[GPU_PROCESSES_MAX];
};

/* "8g", "512m", "1073741824" */
static int run_read_bytes(const char *text, uint64_t *ret, struct aq_error *err)
{
    static const char units[] = "kmgt";
    const char *unit;
    char *end;
    int shift = 0;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    if (end == text || errno || *text == '-')
        return aq_fail_field(err, EINVAL, "memory", "--memory %s: a size like 8g or 512m is needed",
                             text);
    if (*end && (unit = strchr(units, *end | 0x20))) {
        shift = 10 * (int)(unit - units + 1);
        end++;
        if (*end == 'i' || *end == 'I')
            end++;
        if (*end == 'b' || *end == 'B')
            end++;
    }
    if (*end || *ret > UINT64_MAX >> shift)
        return aq_fail_field(err, EINVAL, "memory", "--memory %s: a size like 8g or 512m is needed",
                             text);
    *ret <<= shift;
    return 0;
}

static int run_read_percent(const char *text, uint32_t *ret, struct aq_error *err)
{
    char *end;
    double percent = strtod(text, &end);

    if (end == text || *end || !(percent >= 0.1 && percent <= 100))
        return aq_fail_field(err, EINVAL, "compute",
                             "--compute %s: a percentage from 0.1 to 100 is needed", text);
    *ret = (uint32_t)(percent * (AQ_GPU_WHOLE / 100) + 0.5);
    return 0;
}

static int run_read_options(struct gpu_run *run, int argc, char **argv, struct aq_error *err)
{
    static const struct option options[] = {
        { "memory", required_argument, NULL, 'm' },
        { "compute", required_argument, NULL, 'c' },
        { "device", required_argument, NULL, 'd' },
        { "work-conserving", no_argument, NULL, 'w' },
        { "host-memory", no_argument, NULL, 'h' },
        { "stop", no_argument, NULL, 's' },
        { NULL, 0, NULL, 0 },
    };
    int option, r = 0;

    run->grant.share = AQ_GPU_WHOLE;
    opterr = 0;
    while (r == 0 && (option = getopt_long(argc, argv, "+", options, NULL)) >= 0) {
        if (option == 'm')
            r = run_read_bytes(optarg, &run->grant.memory_bytes, err);
        else if (option == 'c')
            r = run_read_percent(optarg, &run->grant.share, err);
        else if (option == 'd')
            run->device = optarg;
        else if (option == 'w')
            run->conserving = true;
        else if (option == 'h')
            run->grant.flags |= AQ_GPU_HOST_MEMORY;
        else if (option == 's')
            run->stop = true;
        else
            r = aq_fail(err, EINVAL, "unknown or incomplete option '%s'", argv[optind - 1]);
    }
    if (r == 0 && optind == argc)
        r = aq_fail(err, EINVAL, "no PROGRAM; see 'aliquot gpu run --help'");
    return r;
}

static int run_pick_device(struct gpu_run *run, struct aq_error *err)
{
    struct gpu_device_info devices[AQ_GPU_DEVICES_MAX], *picked = NULL;
    int count = gpu_nvml_devices(run->nvml, devices, AQ_COUNT(devices), err);

    if (count < 0)
        return count;
    for (int i = 0; i < count && !picked; i++) {
        char number[16];

        (void)snprintf(number, sizeof(number), "%d", i);
        if (!run->device || strcmp(run->device, number) == 0
            || strcmp(run->device, devices[i].uuid_text) == 0)
            picked = &devices[i];
    }
    if (!picked)
        return aq_fail_field(err, ENODEV, "device",
                             "no GPU '%s' here; there are %d: "
                             "see them with nvidia-smi -L",
                             run->device ? run->device : "0", count);
    memcpy(run->grant.uuid, picked->uuid, sizeof(run->grant.uuid));
    if (!run->grant.memory_bytes)
        run->grant.memory_bytes = picked->memory_bytes;
    if (run->grant.memory_bytes > picked->memory_bytes)
        return aq_fail_field(err, EINVAL, "memory",
                             "%s has %llu MiB, fewer than the %llu asked for", picked->name,
                             (unsigned long long)picked->memory_bytes >> 20,
                             (unsigned long long)run->grant.memory_bytes >> 20);
    return 0;
}

static char *run_find_library(struct aq_error *err)
{
    char *found = installed_find("libaliquot-gpu.so");

    if (!found)
        (void)aq_fail(err, ENOENT,
                      "libaliquot-gpu.so is neither beside this program nor in "
                      "lib/aliquot: install it again");
    return found;
}

/* LD_PRELOAD parts paths by blanks and colons. */
static int run_make_preloadable(struct gpu_run *run, char **library, struct aq_error *err)
{
    if (!strpbrk(*library, " :"))
        return 0;
    run->link = aq_format("%s/%d.so", run->directory, (int)getpid());
    if (unlink(run->link) < 0 && errno != ENOENT)
        return aq_fail_errno(err, "remove '%s'", run->link);
    if (symlink(*library, run->link) < 0)
        return aq_fail_errno(err, "make the link '%s'", run->link);
    free(*library);
    *library = aq_strdup(run->link);
    return 0;
}

/* In the child; other preloaded libraries stay. */
static void run_set_environment(const struct gpu_run *run, const char *library)
{
    const char *old = getenv("LD_PRELOAD");
    AQ_CLEANUP(aq_freep) char *preload = old && *old ? aq_format("%s:%s", library, old)
                                                     : aq_format("%s", library);
    AQ_CLEANUP(aq_freep) char *socket = aq_format("%s/%s", run->directory, run->name);

    if (setenv("LD_PRELOAD", preload, 1) < 0 || setenv("ALIQUOT_GPU_SOCKET", socket, 1) < 0)
        memory_is_short();
}

static int run_start(struct gpu_run *run, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *library = run_find_library(err);
    sigset_t none;

    if (!library)
        return -err->code;
    if (run_make_preloadable(run, &library, err) < 0)
        return -err->code;
    run->child = fork();
    if (run->child < 0)
        return aq_fail_errno(err, "fork");
    if (run->child > 0)
        return 0;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    run_set_environment(run, library);
    (void)execvp(argv[0], argv);
    (void)fprintf(stderr, "aliquot gpu run: start '%s': %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static pid_t run_parent_of(pid_t pid)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32];
    const char *at;
    int parent = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0 && (at = strrchr(text.data, ')')))
        (void)sscanf(at + 1, " %*c %d", &parent);
    return parent;
}

/* A descendant: this process is the subreaper of all of them. */
static bool run_belongs(pid_t pid, void *data)
{
    pid_t self = getpid();

    (void)data;
    for (int depth = 0; pid > 1 && depth < 256; depth++) {
        if (pid == self)
            return true;
        pid = run_parent_of(pid);
    }
    return false;
}

static void run_check_violations(struct gpu_run *run)
{
    struct gpu_violation violations[VIOLATIONS_MAX];
    int count = gpu_nvml_processes(run->nvml, run->uses, AQ_COUNT(run->uses), NULL);
    size_t found = count < 0 ? 0
                             : gpu_violation_check_run(&run->violations, run->region, run->uses,
                                                       (size_t)count, run_belongs, NULL, violations,
                                                       VIOLATIONS_MAX);

    for (size_t i = 0; i < found; i++) {
        bool stops = run->stop && gpu_violation_is_breach(&violations[i]);
        char text[160];

        gpu_violation_format(&violations[i], run->region, text, sizeof(text));
        (void)fprintf(stderr, "aliquot gpu run: %s%s\n", text, stops ? ": stopped" : "");
        if (stops)
            (void)kill(violations[i].pid, SIGKILL);
    }
}

/* Returns milliseconds until it is to be called again. */
static int run_tick(struct gpu_run *run)
{
    int64_t now = gpu_monotonic_ns(), next;
    size_t count = 1;

    if (!run->first_ns && gpu_region_host_count(run->region) > 0)
        run->first_ns = now;
    if (now - run->scanned_ns >= (now - run->first_ns < SCAN_NS ? SCAN_FIRST_NS : SCAN_NS)) {
        gpu_discovery_scan(run->directory, run->name, run->peers);
        run->scanned_ns = now;
    }
    gpu_violation_check_sample(&run->violations, run->region);
    if (now - run->checked_ns >= CHECK_NS) {
        run_check_violations(run);
        run->checked_ns = now;
    }
    run->views[0].limits = gpu_region_host_limits(run->region);
    run->views[0].usage = gpu_region_host_usage(run->region);
    for (int i = 0; i < GPU_PEERS_MAX; i++)
        if (run->peers[i].view.limits)
            run->views[count++] = run->peers[i].view;
    next = gpu_time_share_tick(gpu_region_host_limits(run->region), run->views, count, 0,
                               run->conserving, now);
    for (int i = 0, place = 1; i < GPU_PEERS_MAX; i++) /* remember when each wanted time */
        if (run->peers[i].view.limits)
            run->peers[i].view = run->views[place++];
    if (now - run->first_ns < SCAN_NS && next > SCAN_FIRST_NS)
        next = SCAN_FIRST_NS; /* its first launches, and others' */
    return (int)((next + 999999) / 1000000);
}

/* Children that were left behind come to us; only the program's end counts. */
static bool run_reap(const struct gpu_run *run, int *ret_status)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == run->child) {
            *ret_status = status;
            return true;
        }
    return false;
}

/* A key of the terminal reaches the program by itself, which is of the same process group. */
static bool run_is_for_program(const struct signalfd_siginfo *info)
{
    const bool is_key = (info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT)
                        && info->ssi_code > 0;

    return info->ssi_signo != SIGCHLD && !is_key;
}

static int run_serve(struct gpu_run *run, int signals)
{
    struct pollfd fds[] = { { .fd = gpu_region_host_poll_fd(run->region), .events = POLLIN },
                            { .fd = signals, .events = POLLIN } };
    struct signalfd_siginfo info;
    int status;

    for (;;) {
        (void)poll(fds, AQ_COUNT(fds), run_tick(run));
        gpu_region_host_dispatch(run->region);
        while (read(signals, &info, sizeof(info)) == sizeof(info))
            if (run_is_for_program(&info))
                (void)kill(run->child, (int)info.ssi_signo);
        if (run_reap(run, &status))
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* Blocked and not ignored, which the program would be, too. */
static int run_block_signals(struct aq_error *err)
{
    static const int signals[] = { SIGCHLD, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT };
    sigset_t set;
    int fd;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < AQ_COUNT(signals); i++)
        (void)sigaddset(&set, signals[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? aq_fail_errno(err, "signalfd") : fd;
}

static int run_open_region(struct gpu_run *run, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = NULL;
    int r;

    if ((r = gpu_nvml_open(NULL, &run->nvml, err)) < 0 || (r = run_pick_device(run, err)) < 0
        || (r = gpu_region_host_new(&run->grant, 1, &run->region, err)) < 0)
        return r;
    run->directory = gpu_discovery_directory(err);
    if (!run->directory)
        return -err->code;
    run->name = aq_format("%d.sock", (int)getpid());
    path = aq_format("%s/%s", run->directory, run->name);
    return gpu_region_host_listen(run->region, path, err);
}

static void run_close(struct gpu_run *run)
{
    for (int i = 0; i < GPU_PEERS_MAX; i++)
        gpu_peer_close(&run->peers[i]);
    gpu_region_host_free(run->region);
    gpu_nvml_close(run->nvml);
    if (run->link)
        (void)unlink(run->link);
    free(run->link);
    free(run->directory);
    free(run->name);
    free(run);
}

int run_command(int argc, char **argv, struct aq_error *err)
{
    struct gpu_run *run = aq_alloc(sizeof(*run));
    AQ_CLEANUP(aq_closep) int signals = -1;
    int r = run_read_options(run, argc, argv, err);

    if (r == 0)
        r = run_open_region(run, err);
    if (r == 0)
        r = signals = run_block_signals(err);
    if (r >= 0) {
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
        (void)run_tick(run);
        r = run_start(run, argv + optind, err);
    }
    if (r == 0)
        r = run_serve(run, signals);
    run_close(run);
    return r;
}
