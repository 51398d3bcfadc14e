/* SPDX-License-Identifier: Apache-2.0 */
/* monitored.c - what all runtimes have in common whose programs run under aliquot-monitor
 *
 * The hot path of a short job: write 'program', spawn the monitor with one
 * end of a socket pair, read HELLO (it runs) and GONE (exit.json is there)
 * from the other end. Everything else is recovery, and one rule covers it:
 * whenever there is no connection and no exit record, the monitor is run once
 * more on the directory. If another one lives it says so, and we connect to its
 * socket; else it brings the directory to exit.json.
 */
#include "agent/runtime/monitored.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/runtime/exit_file.h"
#include "agent/runtime/packets.h"
#include "agent/runtime/runner_client.h"
#include "agent/runtime/spawn.h"
#include "agent/runtime/terminal.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "runner/protocol.h"

#define TRIES_MAX 100
#define RETRY_MSEC 20

struct monitored_kernel {
    struct runtime_kernel super;
    struct monitored_runtime *rt;
    char *directory;
    const struct runtime_events *events;
    void *data;
    const int *kept;         /* for a monitor that we start; NULL = none */
    struct spawned *monitor; /* spawned by us and not reaped yet, or NULL */
    struct packets *packets; /* the connection, or NULL */
    uv_timer_t timer;        /* its closing frees all this */
    int tries;               /* of reaching a monitor in a row */
    bool is_running, is_over, has_tty, is_ended, wants_end;
    bool has_begun; /* on_running() was called */
    pid_t pid;      /* of the program, once it runs */
    int64_t notice_usec, grace_usec;
    struct monitor_lease lease; /* its type is 0 until one is set */
};

static void monitored_launch(struct monitored_kernel *k);

static void monitored_end(struct monitored_kernel *k, const struct runtime_exit *exit)
{
    packets_close(k->packets);
    k->packets = NULL;
    k->is_ended = true;
    k->events->on_ended(k->data, exit);
}

static void monitored_end_without_record(struct monitored_kernel *k, const char *why)
{
    const struct runtime_exit exit = { .reason = MONITOR_LOST, .text = why };

    log_error("%s folder=%s", why, k->directory);
    monitored_end(k, &exit);
}

/* True if the directory has its exit record; the kernel's end was told then. */
static bool monitored_end_by_record(struct monitored_kernel *k)
{
    struct exit_file record;
    struct aq_error err = { 0 };
    int r = exit_file_read(k->directory, &record, &err);

    if (r == -ENOENT)
        return false;
    AQ_FAULT("agent.exit.seen");
    if (r < 0) {
        monitored_end_without_record(k, err.text);
        return true;
    }
    monitored_end(k, &record.exit);
    exit_file_done(&record);
    return true;
}

static void monitored_on_timer(uv_timer_t *timer)
{
    struct monitored_kernel *k = timer->data;

    if (!k->is_ended && !monitored_end_by_record(k))
        monitored_launch(k);
}

/* Not from within a caller's call: by the loop, now or a little later. */
static void monitored_look_again(struct monitored_kernel *k, uint64_t msec)
{
    if (k->tries++ < TRIES_MAX)
        (void)uv_timer_start(&k->timer, monitored_on_timer, msec, 0);
    else
        monitored_end_without_record(k, "no monitor could be started");
}

static void monitored_send_wish(struct monitored_kernel *k)
{
    const struct monitor_terminate command = { .type = MONITOR_TERMINATE,
                                               .grace_usec = k->grace_usec,
                                               .notice_usec = k->notice_usec };

    if (k->packets)
        (void)packets_send(k->packets, &command, sizeof(command));
}

/* After every connection: a lease that a monitor did not take at once was lost. */
static void monitored_send_lease(const struct monitored_kernel *k)
{
    if (k->packets && k->lease.type)
        (void)packets_send(k->packets, &k->lease, sizeof(k->lease));
}

static void monitored_on_hello(struct monitored_kernel *k, const struct monitor_hello *hello)
{
    bool is_bootstrapping = hello->flags & MONITOR_HELLO_BOOTSTRAP, is_first = !k->is_running;

    k->is_running = true;
    k->is_over = hello->flags & MONITOR_HELLO_OVER;
    k->has_tty = hello->tty;
    k->pid = hello->pid;
    k->tries = 0;
    if (k->wants_end)
        monitored_send_wish(k);
    monitored_send_lease(k);
    if (is_bootstrapping) {
        if (is_first && k->events->on_bootstrap)
            k->events->on_bootstrap(k->data);
    } else if (!k->has_begun) {
        k->has_begun = true;
        k->events->on_running(k->data, hello->started_usec);
    }
}

static void monitored_on_packet(void *data, const char *packet, size_t len)
{
    struct monitored_kernel *k = data;
    struct monitor_hello hello;

    if (len == sizeof(hello) && packet[0] == MONITOR_HELLO) {
        memcpy(&hello, packet, sizeof(hello));
        monitored_on_hello(k, &hello);
    } else if (len == 0 || packet[0] == MONITOR_GONE) {
        packets_close(k->packets);
        k->packets = NULL;
        /* without a record, our own monitor's exit status comes and says more */
        if (!monitored_end_by_record(k) && !k->monitor)
            monitored_look_again(k, 0);
    }
}

/* ---- the monitor process ---- */

static void monitored_on_monitor_exit(void *data, int status, int signum)
{
    struct monitored_kernel *k = data;

    k->monitor = NULL;
    if (k->packets && status != MONITOR_EXIT_BUSY)
        return; /* what it has said comes first, then the connection's end */
    if (k->is_ended || monitored_end_by_record(k))
        return;
    packets_close(k->packets);
    k->packets = NULL;
    if (status == MONITOR_EXIT_BUSY) {
        int fd = packets_connect(k->directory, NULL);

        if (fd >= 0 && packets_new(k->rt->loop, fd, monitored_on_packet, k, &k->packets, NULL) == 0)
            return;
    } else {
        log_warning("monitor ended early status=%d signal=%d folder=%s", status, signum,
                    k->directory);
    }
    monitored_look_again(k, RETRY_MSEC);
}

/* Run the monitor on the directory, connected to us. */
static void monitored_launch(struct monitored_kernel *k)
{
    bool has_program = k->rt->program >= 0;
    char *const args[] = { k->rt->monitor_path, k->directory, (char *)"3",
                           has_program ? (char *)"4" : NULL, NULL };
    struct aq_error err = { 0 };
    int pair[2] = { -1, -1 }, r;

    AQ_FAULT("agent.monitor.before");
    r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0
            ? aq_fail_errno(&err, "socket pair")
            : 0;
    if (r == 0 && k->kept) /* waits in the socket for the monitor, even if we die now */
        r = packets_send_kept(pair[0], k->kept) < 0
                ? aq_fail_errno(&err, "pass descriptors to the monitor")
                : 0;
    if (r == 0 && k->lease.type) /* likewise */
        r = send(pair[0], &k->lease, sizeof(k->lease), MSG_NOSIGNAL) < 0
                ? aq_fail_errno(&err, "pass a lease to the monitor")
                : 0;
    if (r == 0)
        r = spawn(k->rt->loop, args, (const int[SPAWN_FDS]){ pair[1], k->rt->program },
                  monitored_on_monitor_exit, k, &k->monitor, &err);
    aq_closep(&pair[1]);
    AQ_FAULT("agent.monitor.spawned");
    if (r == 0) {
        /* without the connection its exit status still comes */
        (void)packets_new(k->rt->loop, pair[0], monitored_on_packet, k, &k->packets, NULL);
        return;
    }
    aq_closep(&pair[0]);
    log_error("%s", err.text);
    monitored_look_again(k, RETRY_MSEC);
}

/* ---- the vtable ---- */

void monitored_open(struct runtime *runtime, const char *directory, const int *kept,
                    const struct runtime_events *events, void *data, struct runtime_kernel **ret)
{
    struct monitored_runtime *rt = AQ_CONTAINER_OF(runtime, struct monitored_runtime, super);
    struct monitored_kernel *k = aq_alloc(sizeof(*k));

    k->directory = aq_strdup(directory);
    k->super.ops = rt->super.ops;
    k->rt = rt;
    k->kept = kept;
    k->events = events;
    k->data = data;
    (void)uv_timer_init(rt->loop, &k->timer);
    k->timer.data = k;
    monitored_look_again(k, 0);
    *ret = &k->super;
}

int monitored_adopt(struct runtime *runtime, const char *directory,
                    const struct runtime_events *events, void *data, struct runtime_kernel **ret,
                    struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *started = aq_format("%s/started", directory);

    if (access(started, F_OK) < 0)
        return aq_fail_errno(err, "'%s'", started);
    monitored_open(runtime, directory, NULL, events, data, ret);
    return 0;
}

void monitored_terminate(struct runtime_kernel *kernel, int64_t notice_usec, int64_t grace_usec)
{
    struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, struct monitored_kernel, super);

    k->wants_end = true;
    k->notice_usec = notice_usec;
    k->grace_usec = grace_usec;
    if (k->is_running)
        monitored_send_wish(k);
}

void monitored_set_lease(struct runtime_kernel *kernel, int64_t until_usec, int64_t grace_usec)
{
    struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, struct monitored_kernel, super);

    k->lease = (struct monitor_lease){ .type = MONITOR_LEASE,
                                       .until_usec = until_usec,
                                       .grace_usec = grace_usec };
    monitored_send_lease(k);
}

pid_t monitored_pid(const struct runtime_kernel *kernel)
{
    const struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, struct monitored_kernel, super);

    return k->is_running && !k->is_ended ? k->pid : 0;
}

void monitored_signal(struct runtime_kernel *kernel, int signum)
{
    struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, struct monitored_kernel, super);
    const struct monitor_signal packet = { .type = MONITOR_SIGNAL, .signal = signum };

    if (k->packets)
        (void)packets_send(k->packets, &packet, sizeof(packet));
}

/* Its directory, borrowed. -ENOTCONN unless the program runs, -ENOTTY unless it
 * has the terminal that is wanted.
 */
static int monitored_check_running(const struct runtime_kernel *kernel, bool wants_terminal,
                                   const char **ret_directory, struct aq_error *err)
{
    const struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, const struct monitored_kernel,
                                                       super);

    if (!k->is_running || k->is_over || k->is_ended)
        return aq_fail(err, ENOTCONN, "the program does not run");
    if (wants_terminal && !k->has_tty)
        return aq_fail_kind(err, ENOTTY, "no-terminal",
                            "the program has no terminal; read its logs instead");
    *ret_directory = k->directory;
    return 0;
}

static uv_loop_t *monitored_loop(const struct runtime_kernel *kernel)
{
    return AQ_CONTAINER_OF(kernel, const struct monitored_kernel, super)->rt->loop;
}

/* The parent of a container's process 1; 0 for what is none. */
static pid_t monitored_keeper(const struct runtime_kernel *kernel)
{
    const struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, const struct monitored_kernel,
                                                       super);

    return k->rt->has_containers ? k->pid : 0;
}

int monitored_attach(struct runtime_kernel *kernel, const struct runtime_terminal_ops *ops,
                     void *data, struct runtime_terminal **ret, struct aq_error *err)
{
    const struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, const struct monitored_kernel,
                                                       super);
    const char *socket = k->rt->has_containers ? RUNNER_SOCKET : MONITOR_SOCKET;
    size_t piece_max = k->rt->has_containers ? RUNNER_OUTPUT_MAX : MONITOR_INPUT_MAX;
    const char *directory = NULL;
    int r = monitored_check_running(kernel, true, &directory, err);

    return r < 0 ? r
                 : terminal_open(k->rt->loop, directory, socket, monitored_keeper(kernel),
                                 piece_max, ops, data, ret, err);
}

int monitored_exec(struct runtime_kernel *kernel, const struct runner_command_spec *spec,
                   const struct runner_command_ops *ops, void *data, struct runner_command **ret,
                   struct aq_error *err)
{
    const char *directory = NULL;
    int r = monitored_check_running(kernel, false, &directory, err);

    return r < 0 ? r
                 : runner_command_new(monitored_loop(kernel), directory, monitored_keeper(kernel),
                                      spec, ops, data, ret, err);
}

int monitored_feed(struct runtime_kernel *kernel, const struct runner_command_ops *ops, void *data,
                   struct runner_command **ret, struct aq_error *err)
{
    const char *directory = NULL;
    int r = monitored_check_running(kernel, false, &directory, err);

    return r < 0 ? r : runner_feed_new(monitored_loop(kernel), directory, ops, data, ret, err);
}

static void monitored_on_timer_closed(uv_handle_t *handle)
{
    struct monitored_kernel *k = handle->data;

    free(k->directory);
    free(k);
}

void monitored_release(struct runtime_kernel *kernel)
{
    struct monitored_kernel *k = AQ_CONTAINER_OF(kernel, struct monitored_kernel, super);

    packets_close(k->packets);
    k->packets = NULL;
    spawned_forget(k->monitor); /* it may go on for days */
    uv_close((uv_handle_t *)&k->timer, monitored_on_timer_closed);
}

int monitored_init(struct monitored_runtime *rt, uv_loop_t *loop, const char *monitor_path,
                   struct aq_error *err)
{
    if (access(monitor_path, X_OK) < 0)
        return aq_fail_errno(err, "the monitor '%s' cannot be executed", monitor_path);
    rt->monitor_path = aq_strdup(monitor_path);
    rt->loop = loop;
    rt->program = -1;
    return 0;
}

void monitored_done(struct monitored_runtime *rt)
{
    free(rt->monitor_path);
}
