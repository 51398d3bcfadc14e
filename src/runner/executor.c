/* SPDX-License-Identifier: Apache-2.0 */
/* The executor of a container: runs of code, one after the other. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runner/executor.h"

/* Of batches, by the steps' statuses. */
static const char *const executor_usual[] = {
    "if [ -f Makefile ]; then make clean; fi",
    "if [ -f Makefile ]; then make; elif [ -f setup.py ] || [ -f pyproject.toml ]; then"
    " python3 -m pip install -e .; elif ls ./*.c >/dev/null 2>&1; then cc -o main ./*.c -lm; fi",
    "if [ -x ./main ]; then ./main; elif [ -f main.py ]; then python3 main.py;"
    " elif [ -f main.sh ]; then sh main.sh;"
    " else echo 'there is no main, main.py or main.sh to run' >&2; exit 127; fi",
};

int64_t executor_now(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- runs ---- */

struct execution *executor_find(const struct executor *ex, const char *id)
{
    LIST_FOREACH(it, &ex->runs)
        if (strcmp(LIST_ENTRY(it, struct execution, link)->id, id) == 0)
            return LIST_ENTRY(it, struct execution, link);
    return NULL;
}

struct interpreter *executor_choose(struct executor *ex, const char *language)
{
    const struct language *found = language_choose(ex->languages, ex->language_count, language);

    return found ? &ex->interpreters[found - ex->languages] : NULL;
}

void executor_drop_run(struct executor *ex, struct execution *run)
{
    ex->run_count--;
    execution_free(run);
}

/* The command of this step of a batch. */
static const char *executor_command(const struct execution *run)
{
    const char *command = run->code.data;

    for (unsigned i = 0; i < run->step; i++)
        command += strlen(command) + 1;
    return strcmp(command, "*") == 0 ? executor_usual[run->step] : command;
}

static enum execution_status executor_step_status(const struct execution *run)
{
    static const enum execution_status statuses[] = { EXECUTION_CLEAN_FINISHED,
                                                      EXECUTION_BUILD_FINISHED,
                                                      EXECUTION_FINISHED };

    return run->is_batch ? statuses[run->step] : EXECUTION_FINISHED;
}

/* The step of the run has ended. */
static void executor_end_step(struct executor *ex, int exit_code)
{
    struct execution *run = ex->current;

    if (run->is_batch && run->step == 1)
        run->build_code = exit_code;
    execution_add_status(run, executor_step_status(run), exit_code);
    if (run->is_over)
        ex->current = NULL;
    else
        run->step++;
}

static void executor_begin_step(struct executor *ex)
{
    struct execution *run = ex->current;
    const char *command = run->is_batch ? executor_command(run) : NULL;

    if (run->limit_msec && !run->until_msec)
        run->until_msec = executor_now() + run->limit_msec;

    if (command && run->step == 2 && run->build_code != 0)
        executor_end_step(ex, 127); /* what was not built is not run */
    else if (command && !*command)
        executor_end_step(ex, 0);
    else if (command)
        interpreter_run_command(ex->running = &ex->batch, ex->epoll, command);
    else
        interpreter_run(ex->running = run->interpreter, ex->epoll, run->code.data, run->code.len);
}

void executor_advance(struct executor *ex)
{
    bool more = true;

    while (more && !(ex->running && ex->running->is_running)) {
        LIST_FOREACH(it, &ex->runs)
            if (!ex->current && !LIST_ENTRY(it, struct execution, link)->is_over)
                ex->current = LIST_ENTRY(it, struct execution, link);
        more = ex->current != NULL;
        if (more)
            executor_begin_step(ex);
    }
}

/* ---- from the interpreter ---- */

static void executor_on_output(void *data, enum execution_kind kind, const char *bytes, size_t len)
{
    struct executor *ex = data;

    if (ex->current)
        execution_add(ex->current, kind, bytes, len);
}

static void executor_on_waiting(void *data, bool is_password)
{
    struct executor *ex = data;

    if (!ex->current)
        return;
    ex->current->is_waiting = true;
    ex->current->is_password = is_password;
}

static void executor_on_finished(void *data, int exit_code)
{
    struct executor *ex = data;

    if (ex->current)
        executor_end_step(ex, exit_code);
}

static void executor_on_suggestions(void *data, const char *json, size_t len)
{
    executor_clients_suggest(data, json, len);
}

static const struct interpreter_ops executor_ops = { executor_on_output, executor_on_waiting,
                                                     executor_on_finished,
                                                     executor_on_suggestions };

/* ---- the loop ---- */

static void executor_reap(struct executor *ex, pid_t pid, int status)
{
    interpreter_reaped(&ex->batch, pid, status);
    for (size_t i = 0; i < ex->language_count; i++)
        interpreter_reaped(&ex->interpreters[i], pid, status);
    apps_reaped(&ex->apps, pid, status);
}

static void executor_on_signal(struct watch *watch, uint32_t events)
{
    struct executor *ex = watch->owner;
    struct signalfd_siginfo info;
    int status;
    pid_t pid;

    (void)events;
    (void)!read(watch->fd, &info, sizeof(info));
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        executor_reap(ex, pid, status);
}

/* The current run has had its time. */
static void executor_time_out(struct executor *ex)
{
    interpreter_kill(ex->running);
    execution_add_status(ex->current, EXECUTION_TIMEOUT, 0);
    ex->current = NULL;
}

/* Milliseconds until there is more to do; -1 = until something happens. */
static int executor_turn(struct executor *ex)
{
    int64_t now = executor_now(), next = apps_turn(&ex->apps, now), due;
    struct execution *run;
    bool is_full;

    executor_advance(ex);
    while (ex->current && ex->current->until_msec && now >= ex->current->until_msec) {
        executor_time_out(ex);
        executor_advance(ex);
    }
    due = executor_clients_serve(ex, now);
    next = AQ_MIN(next, due);
    run = ex->current;
    is_full = run && execution_is_full(run) && now - run->asked_msec < EXECUTION_LEFT_MSEC;
    if (ex->running) {
        interpreter_pause(ex->running, is_full);
        due = interpreter_end_mute(ex->running, now);
        next = AQ_MIN(next, due);
    }
    if (is_full)
        next = AQ_MIN(next, run->asked_msec + EXECUTION_LEFT_MSEC);
    if (run && run->until_msec)
        next = AQ_MIN(next, run->until_msec);
    return next == INT64_MAX ? -1 : (int)AQ_MAX(next - now, 0);
}

static void executor_find_languages(struct executor *ex, const char *folder)
{
    const struct language once = { .kind = LANGUAGE_ONCE };

    interpreter_init(&ex->batch, &once, folder, &executor_ops, ex);
    ex->language_count = languages_find((const char *const *)environ, ex->languages);
    for (size_t i = 0; i < ex->language_count; i++)
        interpreter_init(&ex->interpreters[i], &ex->languages[i], folder, &executor_ops, ex);
}

static int executor_open(struct executor *ex, int listener, struct aq_error *err)
{
    sigset_t mask;
    int fd;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    ex->epoll = epoll_create1(EPOLL_CLOEXEC);
    fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ex->epoll < 0 || fd < 0)
        return aq_fail_errno(err, "the executor's loop");
    watch_init(&ex->signals, ex->epoll, fd, executor_on_signal, ex);
    watch_want(&ex->signals, EPOLLIN);
    apps_init(&ex->apps, ex->epoll);
    watch_init(&ex->listener, ex->epoll, listener, executor_clients_accept, ex);
    watch_want(&ex->listener, EPOLLIN);
    return 0;
}

int executor_serve(int listener, const char *folder, struct aq_error *err)
{
    struct executor ex = { .epoll = -1 };
    struct epoll_event event;
    int r;

    list_init(&ex.clients);
    list_init(&ex.runs);
    executor_find_languages(&ex, folder);
    r = executor_open(&ex, listener, err);
    while (r == 0)
        if (epoll_wait(ex.epoll, &event, 1, executor_turn(&ex)) == 1) {
            struct watch *watch = event.data.ptr;

            watch->fn(watch, event.events);
        }
    return r;
}
