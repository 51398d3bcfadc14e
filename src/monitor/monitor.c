/* SPDX-License-Identifier: Apache-2.0 */
/* monitor.c - one program from its start to its exit record */
#include "monitor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "monitor/monitor_internal.h"
#include "monitor/node_mounts.h"
#include "monitor/run_record.h"

#define TYPE_AGAIN_MSEC 50 /* a terminal that discards a line too long has room, and wakes nobody */

void monitor_watch(struct monitor *m, int fd, uint32_t source)
{
    struct epoll_event event = { .events = source == SOURCE_INPUT ? EPOLLOUT : EPOLLIN,
                                 .data.u32 = source };

    (void)epoll_ctl(m->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void monitor_set_timer(struct monitor *m, int64_t usec, enum monitor_step next)
{
    const struct itimerspec when = { .it_value = { .tv_sec = usec / USEC_PER_SEC,
                                                   .tv_nsec = usec % USEC_PER_SEC * 1000 } };

    m->next = next;
    (void)timerfd_settime(m->timer, 0, &when, NULL);
}

/* The smaller of 'usec' and the time left if the timer is already set for this step. Never 0, which
 * would disarm the timer.
 */
static int64_t monitor_at_most(const struct monitor *m, int64_t usec, enum monitor_step step)
{
    struct itimerspec left = { .it_value = { .tv_sec = 0 } };

    if (m->next == step && timerfd_gettime(m->timer, &left) == 0)
        usec = AQ_MIN(usec, left.it_value.tv_sec * USEC_PER_SEC + left.it_value.tv_nsec / 1000);
    return AQ_MAX(usec, INT64_C(1));
}

/* The group's leader of a container is the OCI runtime, which passes on all
 * other signals; what it runs is found by its cgroups.
 */
void monitor_kill_program(const struct monitor *m)
{
    cgroups_kill(&m->program.sandbox);
    (void)kill(-m->child.pid, SIGKILL);
}

/* SIGTERM to the program's group now (an interactive shell minds SIGHUP
 * only), SIGKILL to everything after the grace.
 */
static void monitor_send_term(struct monitor *m, int64_t grace_usec)
{
    m->has_grace = grace_usec > 0;
    if (!m->has_grace) {
        monitor_kill_program(m);
        return;
    }
    (void)kill(-m->child.pid, SIGTERM);
    if (m->child.input >= 0)
        (void)kill(-m->child.pid, SIGHUP);
    monitor_set_timer(m, monitor_at_most(m, grace_usec, MONITOR_STEP_KILL), MONITOR_STEP_KILL);
}

void monitor_end_program(struct monitor *m, const char *reason, int64_t notice_usec,
                         int64_t grace_usec)
{
    int signum = m->program.notice_signal ? m->program.notice_signal : m->program.warn_signal;
    bool has_notice = notice_usec > 0 && grace_usec > 0 && signum && m->has_booted
                      && m->next != MONITOR_STEP_KILL;
    bool is_warned = !m->program.notice_signal && m->next == MONITOR_STEP_LIMIT;

    if (!m->reason && !m->is_ended)
        m->reason = reason;
    if (!has_notice) {
        monitor_send_term(m, grace_usec);
        return;
    }
    if (m->next != MONITOR_STEP_TERM && !is_warned)
        (void)kill(-m->child.pid, signum);
    m->has_grace = true;
    m->grace_usec = grace_usec;
    monitor_set_timer(m, monitor_at_most(m, notice_usec, MONITOR_STEP_TERM), MONITOR_STEP_TERM);
}

/* Starts the timer of the run-time limit, or of the signal before it. */
static void monitor_set_limit(struct monitor *m)
{
    const struct program *p = &m->program;

    if (p->timeout_usec && p->warn_signal)
        monitor_set_timer(m, AQ_MAX(p->timeout_usec - p->warn_usec, INT64_C(1)), MONITOR_STEP_WARN);
    else
        monitor_set_timer(m, p->timeout_usec, MONITOR_STEP_LIMIT);
}

static void monitor_on_timer(struct monitor *m)
{
    uint64_t times;

    if (read(m->timer, &times, sizeof(times)) < 0)
        return;
    switch (m->next) {
    case MONITOR_STEP_WARN:
        (void)kill(-m->child.pid, m->program.warn_signal);
        monitor_set_timer(m, AQ_MIN(m->program.warn_usec, m->program.timeout_usec),
                          MONITOR_STEP_LIMIT);
        break;
    case MONITOR_STEP_LIMIT:
        monitor_end_program(m, m->has_booted ? MONITOR_TIMEOUT : MONITOR_BOOTSTRAP_TIMEOUT,
                            m->program.notice_usec, m->program.grace_usec);
        break;
    case MONITOR_STEP_TERM:
        monitor_send_term(m, m->grace_usec);
        break;
    case MONITOR_STEP_KILL:
        m->has_grace = false;
        monitor_kill_program(m);
        break;
    }
}

/* Read up to a packet: its size, -EAGAIN = nothing now, 0 or another error
 * (EIO from a terminal) = nobody writes any more.
 */
static long monitor_take_output(struct monitor *m)
{
    char bytes[MONITOR_MESSAGE_MAX - 1];
    ssize_t got;

    do
        got = read(m->child.output, bytes, sizeof(bytes));
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 ? -errno : 0;
    log_ring_write(&m->log, bytes, (size_t)got);
    commands_pass_output(m, bytes, (size_t)got);
    return got;
}

static void monitor_on_output(struct monitor *m)
{
    long got = monitor_take_output(m);

    if (got <= 0 && got != -EAGAIN)
        (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, m->child.output, NULL);
}

static void monitor_on_signal(struct monitor *m)
{
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    if (read(m->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return;
    if (info.ssi_signo != SIGCHLD) {
        monitor_end_program(m, MONITOR_TERMINATED, 0, m->program.grace_usec);
        return;
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == m->child.pid) {
            m->status = status;
            m->is_ended = true;
        } else if (command_runner_reaped(&m->commands, pid)) {
            monitor_watch(m, m->commands.listener, SOURCE_COMMAND);
        }
    }
}

/* The runner has the listener from now on. */
static void monitor_on_command(struct monitor *m)
{
    struct aq_error err = { 0 };

    if (command_runner_start(&m->commands, &m->program, &err) < 0)
        log_warning("%s", err.text);
    else
        (void)epoll_ctl(m->epoll, EPOLL_CTL_DEL, m->commands.listener, NULL);
}

/* The program runs, or the bootstrap script before it: connected clients are told. */
static void monitor_begin_running(struct monitor *m, bool has_tty, int64_t started_usec)
{
    m->is_running = true;
    m->has_tty = has_tty;
    m->started_usec = started_usec;
    commands_greet_all(m);
}

/* Times that count from the start of the program itself. */
static void monitor_begin_program(struct monitor *m)
{
    m->has_booted = true;
    input_open(&m->input, AQ_TAKE_FD(m->child.feed), m->program.input_sec);
    if (m->input.timer >= 0)
        monitor_watch(m, m->input.timer, SOURCE_INPUT_TIMER);
    if (!m->reason) /* else the timer is for SIGKILL */
        monitor_set_limit(m);
}

/* End of file without a byte means that the script failed. */
static void monitor_on_bootstrap(struct monitor *m)
{
    char byte;
    bool has_succeeded = read(m->child.bootstrap, &byte, 1) == 1;

    aq_closep(&m->child.bootstrap);
    if (!has_succeeded)
        return;
    monitor_begin_program(m);
    commands_greet_all(m);
}

/* The container is complete: its runtime has nothing left to do with the node's files. */
static void monitor_release_mounts(const struct monitor *m)
{
    struct aq_error err = { 0 };

    if (m->mounts >= 0 && node_mounts_release(m->mounts, m->program.sandbox.stage, &err) < 0)
        log_warning("%s", err.text);
}

static void monitor_on_runner(struct monitor *m)
{
    struct runner_hello hello;
    struct runner_report report;
    int r = runner_link_receive(&m->runner, &hello);

    if (r > 0) {
        if (!m->has_booted && !(hello.flags & RUNNER_HELLO_BOOTSTRAP))
            monitor_begin_program(m);
        monitor_begin_running(m, hello.tty, hello.started_usec);
        monitor_release_mounts(m);
    }
    if (r >= 0)
        return;
    aq_closep(&m->runner.connection);
    if (m->runner.distrust) {
        monitor_kill_program(m);
        return;
    }
    /* it has said how the program ended: nothing that the OCI runtime would tidy up
     * is left when we have done so, and it need not be waited for */
    if (!m->program.sandbox.relays && runner_link_read_report(&m->runner, &report) && !report.code)
        (void)kill(-m->child.pid, SIGKILL);
}

/* The program has ended; but a shell that minds SIGTERM must not cost those
 * whom it started, and who got the signal too, their grace.
 */
static bool monitor_is_over(const struct monitor *m)
{
    return m->is_ended && (!m->has_grace || (kill(-m->child.pid, 0) < 0 && errno == ESRCH));
}

/* Until something is tried again; -1 = nothing is. */
static int monitor_wait_msec(const struct monitor *m)
{
    if (m->is_terminal_full)
        return TYPE_AGAIN_MSEC;
    return m->clients.listener >= 0 ? -1 : LISTEN_MSEC;
}

static void monitor_loop(struct monitor *m)
{
    struct epoll_event events[16];

    while (!monitor_is_over(m)) {
        int count;

        commands_listen_if_needed(m);
        if (m->is_terminal_full)
            commands_type_on(m);
        count = epoll_wait(m->epoll, events, AQ_COUNT(events), monitor_wait_msec(m));

        for (int i = 0; i < count; i++) {
            switch (events[i].data.u32) {
            case SOURCE_SIGNAL:
                monitor_on_signal(m);
                break;
            case SOURCE_OUTPUT:
                monitor_on_output(m);
                break;
            case SOURCE_LISTENER:
                commands_on_connection(m);
                break;
            case SOURCE_TIMER:
                monitor_on_timer(m);
                break;
            case SOURCE_RUNNER:
                monitor_on_runner(m);
                break;
            case SOURCE_COMMAND:
                monitor_on_command(m);
                break;
            case SOURCE_INPUT:
                commands_on_input_room(m);
                break;
            case SOURCE_INPUT_TIMER:
                input_close(&m->input);
                break;
            case SOURCE_LEASE:
                lease_on_timer(m);
                break;
            case SOURCE_BOOTSTRAP:
                monitor_on_bootstrap(m);
                break;
            default:
                commands_on_client(m, (int)(events[i].data.u32 - SOURCE_CLIENT), events[i].events);
            }
        }
    }
}

/* Whatever is left of the container but its scratch space. */
static void monitor_clear_sandbox(const struct sandbox *sandbox)
{
    cgroups_end(sandbox);
    AQ_FAULT("monitor.cgroups.removed");
    for (size_t i = 0; i < sandbox->leftovers.count; i++)
        (void)fs_remove_tree(AT_FDCWD, sandbox->leftovers.items[i], NULL);
}

/* A program that failed anyway keeps its own reason. */
static void monitor_note_bad_output(struct exit_record *record, const struct aq_error *why)
{
    if (strcmp(record->reason, MONITOR_EXITED) != 0 || record->code != 0)
        return;
    record->reason = MONITOR_BAD_OUTPUT;
    record->text = why->text;
}

/* Values may need more room than was reserved. Without it the program has failed: its end is
 * recorded with its values, or says that they are missing.
 */
static int monitor_record(const struct monitor *m, struct exit_record *record, struct aq_error *err)
{
    struct aq_error why = { 0 };
    int r = run_record_write_exit(m->directory, record, record->outputs ? &why : err);

    if (r == 0 || !record->outputs)
        return r;
    (void)aq_error_wrap(&why, "the values of $ALIQUOT_OUTPUT are not recorded");
    record->outputs = NULL;
    monitor_note_bad_output(record, &why);
    return run_record_write_exit(m->directory, record, err);
}

/* The program has ended: end what it left, keep its last words, record. */
static int monitor_finish(struct monitor *m, struct aq_error *err)
{
    const struct sandbox *sandbox = &m->program.sandbox;
    const struct memory_use memory = cgroups_get_memory(sandbox, m->memory);
    struct runner_report got;
    const struct runner_report *report = runner_link_read_report(&m->runner, &got) ? &got : NULL;
    AQ_CLEANUP(aq_freep) char *complaint = exit_reason_find_complaint(m, report, &memory);
    int status = exit_reason_find_status(m, report);
    bool signalled = WIFSIGNALED(status);
    const char *reason = complaint ? MONITOR_NOT_STARTED : exit_reason_find(m, status, &memory);
    AQ_CLEANUP(aq_freep) char *lack = exit_reason_describe_lack(&memory);
    struct exit_record record = {
        .kernel_id = program_kernel_id(&m->program),
        .reason = reason,
        .text = complaint ? complaint
                : lack    ? lack
                          : "",
        .has_code = true,
        .signal = signalled ? WTERMSIG(status) : 0,
        .code = signalled ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
        .memory_peak_bytes = memory.peak_bytes,
        .was_short_of_memory = memory.was_short,
    };
    AQ_CLEANUP(aq_freep) char *outputs = NULL;
    struct aq_error why = { 0 };

    AQ_FAULT("monitor.program.ended");
    child_kill_all();
    AQ_FAULT("monitor.descendants.ended");
    while (monitor_take_output(m) > 0)
        ;
    record.outputs = outputs = outputs_read(m, report, &why);
    outputs_close(m);
    if (why.code)
        monitor_note_bad_output(&record, &why);
    monitor_clear_sandbox(sandbox);
    return monitor_record(m, &record, err);
}

static int monitor_fail_to_start(struct monitor *m, struct aq_error *err)
{
    struct exit_record record = { .kernel_id = program_kernel_id(&m->program),
                                  .reason = MONITOR_NOT_STARTED,
                                  .text = err->text,
                                  .has_code = true,
                                  .code = err->code == ENOENT ? 127 : 126,
                                  .memory_peak_bytes = -1 };
    struct aq_error later;

    monitor_clear_sandbox(&m->program.sandbox);
    return run_record_write_exit(m->directory, &record, &later) < 0
               ? aq_fail(err, later.code, "%s", later.text)
               : 0;
}

static int monitor_open_sources(struct monitor *m, struct aq_error *err)
{
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    (void)sigaddset(&mask, SIGTERM);
    (void)sigaddset(&mask, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN); /* a program may close its input before it has all */
    (void)signal(SIGXFSZ, SIG_IGN); /* a log that may not grow is no reason to end the program */
    m->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    m->epoll = epoll_create1(EPOLL_CLOEXEC);
    m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    m->lease.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (m->signals < 0 || m->epoll < 0 || m->timer < 0 || m->lease.timer < 0
        || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
        return aq_fail_errno(err, "open event sources");
    return 0;
}

/* The agent that gave us a socket. */
static void monitor_watch_first(struct monitor *m)
{
    if (m->clients.slots[0].fd >= 0)
        monitor_watch(m, m->clients.slots[0].fd, SOURCE_CLIENT);
}

/* Without commands the program is as good as any. */
static void monitor_offer_commands(struct monitor *m)
{
    struct aq_error err = { 0 };

    if (command_runner_open(&m->commands, &err) < 0)
        log_warning("%s", err.text);
    else
        monitor_watch(m, m->commands.listener, SOURCE_COMMAND);
}

static void monitor_watch_runner(struct monitor *m)
{
    runner_link_connect(&m->runner);
    if (m->runner.connection >= 0)
        monitor_watch(m, m->runner.connection, SOURCE_RUNNER);
}

/* From here on every outcome is recorded. */
static int monitor_run_program(struct monitor *m, struct aq_error *err)
{
    bool has_runner = m->program.sandbox.has_runner;
    int r;

    run_record_reserve_exit(m->directory);
    r = run_record_mark_started(m->directory, err);
    if (r < 0)
        return r;
    r = monitor_open_sources(m, err);
    if (r == 0)
        r = log_ring_open(&m->log, m->directory, m->program.log_max, err);
    if (r == 0)
        r = cgroups_make(&m->program.sandbox, err);
    if (r == 0 && has_runner)
        r = runner_link_open(&m->runner, m->program.sandbox.runner, err);
    if (r == 0) {
        outputs_open(m);
        m->memory = cgroups_watch_memory(&m->program.sandbox);
        r = child_start(&m->program, m->executable, has_runner ? &m->runner : NULL, &m->child, err);
    }
    AQ_FAULT("monitor.program.started");
    if (r < 0)
        return monitor_fail_to_start(m, err);
    m->mounts = sandbox_is_used(&m->program.sandbox) ? child_open_mounts(&m->child) : -1;
    monitor_watch(m, m->signals, SOURCE_SIGNAL);
    monitor_watch(m, m->child.output, SOURCE_OUTPUT);
    monitor_watch(m, m->timer, SOURCE_TIMER);
    monitor_watch(m, m->lease.timer, SOURCE_LEASE);
    if (!m->program.has_bootstrap)
        monitor_begin_program(m);
    else if (m->program.bootstrap_usec)
        monitor_set_timer(m, m->program.bootstrap_usec, MONITOR_STEP_LIMIT);
    if (m->child.bootstrap >= 0)
        monitor_watch(m, m->child.bootstrap, SOURCE_BOOTSTRAP);
    m->listen_usec = clock_monotonic_usec() + LISTEN_MSEC * USEC_PER_MSEC;
    commands_listen_if_needed(m); /* a client that hears of the start may connect */
    monitor_watch_first(m);
    if (!sandbox_is_used(&m->program.sandbox))
        monitor_offer_commands(m); /* before a client hears of the start */
    if (has_runner)
        monitor_watch_runner(m);
    else
        monitor_begin_running(m, m->child.input >= 0, run_record_get_started(m->directory));
    monitor_loop(m);
    return monitor_finish(m, err);
}

/* A monitor before us was killed between 'started' and 'exit.json'. */
static int monitor_follow_dead_monitor(struct monitor *m, struct aq_error *err)
{
    const struct exit_record record = { .kernel_id = program_kernel_id(&m->program),
                                        .reason = MONITOR_LOST,
                                        .text = "the monitor was killed",
                                        .memory_peak_bytes = -1 };
    const char *marker = program_marker(&m->program);

    if (marker)
        child_kill_marked(marker);
    monitor_clear_sandbox(&m->program.sandbox);
    AQ_FAULT("monitor.leftovers.ended");
    return run_record_write_exit(m->directory, &record, err);
}

static int monitor_take_directory(struct monitor *m, const char *directory, struct aq_error *err)
{
    m->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (m->directory < 0 || fchdir(m->directory) < 0)
        return aq_fail_errno(err, "open '%s'", directory);
    m->lock = openat(m->directory, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    /* The lock says whether another monitor lives, also on a file system that became read-only. */
    if (m->lock < 0 && errno == EROFS)
        m->lock = openat(m->directory, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (m->lock < 0)
        return aq_fail_errno(err, "open '%s/lock'", directory);
    if (flock(m->lock, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? MONITOR_EXIT_BUSY
                                    : aq_fail_errno(err, "lock '%s'", directory);
    return 0;
}

static int monitor_run_in_directory(struct monitor *m, struct aq_error *err)
{
    int r;

    if (run_record_has_exit(m->directory))
        return 0;
    r = program_read(m->directory, &m->program, err);
    if (r < 0)
        return monitor_fail_to_start(m, err);
    return run_record_get_started(m->directory) ? monitor_follow_dead_monitor(m, err)
                                                : monitor_run_program(m, err);
}

int monitor_run(const char *directory, int client, int program, struct aq_error *err)
{
    struct monitor m = { .directory = -1,
                         .lock = -1,
                         .epoll = -1,
                         .signals = -1,
                         .timer = -1,
                         .lease = { .timer = -1 },
                         .memory = -1,
                         .mounts = -1,
                         .output = -1,
                         .child = { .output = -1, .input = -1, .feed = -1, .bootstrap = -1 },
                         .input = { .pipe = -1, .timer = -1, .slot = -1 },
                         .executable = -1,
                         .clients = { .listener = -1 },
                         .log = { .fd = -1, .times.fd = -1 },
                         .kept = { -1, -1 },
                         .program = { .text = STRBUF_INIT },
                         .runner = { .listener = -1, .report = -1, .log = -1, .connection = -1 },
                         .commands = { .listener = -1 } };
    int r;

    for (int i = 0; i < CLIENTS_MAX; i++)
        m.clients.slots[i].fd = -1;
    m.executable = child_raise_program(program);
    if (client >= 0)
        clients_adopt(&m.clients, client);
    r = monitor_take_directory(&m, directory, err);
    if (r == 0) {
        r = monitor_run_in_directory(&m, err);
        /* the directory may be another kernel's as soon as the agent has heard of the end */
        clients_stop_listening(&m.clients);
        aq_closep(&m.lock);
        if (r == 0)
            clients_send_gone(&m.clients);
        AQ_FAULT("monitor.gone.sent");
    }
    clients_close(&m.clients);
    runner_link_close(&m.runner);
    command_runner_close(&m.commands);
    log_ring_close(&m.log);
    for (int i = 0; i < MONITOR_KEPT; i++)
        aq_closep(&m.kept[i]);
    input_close(&m.input);
    aq_closep(&m.child.feed);
    aq_closep(&m.child.output);
    aq_closep(&m.memory);
    aq_closep(&m.mounts);
    outputs_close(&m); /* the program may not have started */
    aq_closep(&m.executable);
    aq_closep(&m.timer);
    aq_closep(&m.lease.timer);
    aq_closep(&m.epoll);
    aq_closep(&m.signals);
    program_done(&m.program);
    aq_closep(&m.lock);
    aq_closep(&m.directory);
    return r;
}
