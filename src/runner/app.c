/* SPDX-License-Identifier: Apache-2.0 */
/* One app of a container, from its start to its end. */
#include "runner/app.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "runner/app_definition.h"
#include "runner/app_launch.h"
#include "runner/app_own.h"

struct app *app_new(const char *name, const char *protocol, const uint16_t *ports, size_t count)
{
    struct app *app = calloc(1, sizeof(*app));

    if (!app)
        return NULL;
    list_init(&app->link);
    (void)snprintf(app->name, sizeof(app->name), "%s", name);
    app->protocol = protocol;
    memcpy(app->ports, ports, count * sizeof(*ports));
    app->port_count = count;
    app->output = (struct watch)WATCH_CLOSED;
    return app;
}

int app_load_definition(const struct app *app, json_t **ret, struct aq_error *err)
{
    const struct app_own *own;
    int r = app_definition_load(app->name, ret, err);

    if (r < 0 || *ret || !(own = app_own_find(app->name)))
        return r;
    return app_definition_read(own->definition, strlen(own->definition), ret, err);
}

bool app_listens(const struct app *app, const struct app_ports *listened)
{
    for (size_t i = 0; i < app->port_count; i++)
        if (app_ports_has(listened, app->ports[i]))
            return true;
    return false;
}

bool app_lives(const struct app *app)
{
    return app->pid || app_processes_signal(app->name, 0);
}

/* Before it has its mark a process is found by its group. */
static void app_signal(const struct app *app, int signum)
{
    if (app->pid)
        (void)kill(-app->pid, signum);
    (void)app_processes_signal(app->name, signum);
}

/* ---- what it writes ---- */

static void app_keep(struct app *app, const char *bytes, size_t len)
{
    size_t drop;

    if (len > APP_TAIL_MAX) {
        bytes += len - APP_TAIL_MAX;
        len = APP_TAIL_MAX;
    }
    drop = app->tail_len + len > APP_TAIL_MAX ? app->tail_len + len - APP_TAIL_MAX : 0;
    memmove(app->tail, app->tail + drop, app->tail_len - drop);
    app->tail_len -= drop;
    memcpy(app->tail + app->tail_len, bytes, len);
    app->tail_len += len;
}

static bool app_read(struct app *app)
{
    char bytes[16384];
    ssize_t got = read(app->output.fd, bytes, sizeof(bytes));

    if (got > 0)
        app_keep(app, bytes, (size_t)got);
    else if (got == 0)
        watch_close(&app->output);
    return got > 0;
}

static void app_on_output(struct watch *watch, uint32_t events)
{
    (void)events;
    (void)app_read(watch->owner);
}

/* ---- why it failed ---- */

static void app_fail(struct app *app, const char *what)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf last = STRBUF_INIT;
    int len;

    for (int i = 0; i < 64 && app->output.fd >= 0 && app_read(app); i++)
        ;
    len = snprintf(app->why, sizeof(app->why), "the app '%s' %s", app->name, what);
    utf8_write_text(app->tail, app->tail_len, &last);
    if (last.len > APP_TAIL_MAX) {
        strbuf_consume(&last, last.len - APP_TAIL_MAX);
        strbuf_consume(&last, utf8_rest(last.data, last.len));
    }
    if (last.len)
        (void)snprintf(app->why + len, sizeof(app->why) - (size_t)len, "; it wrote last: %s",
                       last.data);
    app->state = APP_FAILED;
}

static void app_fail_ended(struct app *app, int status)
{
    char text[160];

    if (WIFSIGNALED(status))
        (void)snprintf(text, sizeof(text), "was ended by signal %d", WTERMSIG(status));
    else
        (void)snprintf(text, sizeof(text), "has ended with exit status %d", WEXITSTATUS(status));
    if (app->state == APP_STARTING)
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text),
                       " and does not listen on port %u", app->ports[0]);
    app_fail(app, text);
}

static void app_fail_late(struct app *app)
{
    char text[160];

    (void)snprintf(text, sizeof(text), "does not listen on port %u of 127.0.0.1 after %d seconds",
                   app->ports[0], app->seconds);
    app_fail(app, text);
    app_signal(app, SIGKILL); /* so that the next start is a whole one */
}

void app_reaped(struct app *app, pid_t pid, int status, const struct app_ports *listened)
{
    if (!app->pid || pid != app->pid)
        return;
    app->pid = 0;
    if ((app->state == APP_STARTING || app->state == APP_RUNNING) && !app_lives(app)
        && !app_listens(app, listened))
        app_fail_ended(app, status);
}

/* ---- its start and end ---- */

__attribute__((noreturn)) static void app_become(const struct app_launch *launch, int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct aq_error err = { 0 };
    sigset_t none;

    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)signal(SIGHUP, SIG_DFL);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0
        && dup2(output, STDERR_FILENO) >= 0) {
        (void)app_launch(launch, &err);
        (void)dprintf(STDERR_FILENO, "%s\n", err.text);
    }
    _exit(127);
}

static json_t *app_make_ports(const struct app *app)
{
    json_t *list = json_array();

    for (size_t i = 0; i < app->port_count; i++)
        if (json_array_append_new(list, json_integer(app->ports[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int app_fork(struct app *app, int epoll, const struct app_launch *launch,
                    struct aq_error *err)
{
    int output[2];
    pid_t pid;

    if (pipe2(output, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    pid = fork();
    if (pid == 0)
        app_become(launch, output[1]);
    aq_closep(&output[1]);
    if (pid < 0) {
        aq_closep(&output[0]);
        return aq_fail_errno(err, "the container has no room for another process");
    }
    (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
    watch_init(&app->output, epoll, output[0], app_on_output, app);
    watch_want(&app->output, EPOLLIN);
    app->pid = pid;
    return 0;
}

int app_start(struct app *app, int epoll, const json_t *definition, const json_t *envs,
              const json_t *arguments, int64_t now_msec, struct aq_error *err)
{
    const json_t *seconds = json_object_get(definition, "start_timeout");
    json_auto_t *ports = app_make_ports(app);
    const struct app_launch launch = { .name = app->name,
                                       .definition = definition,
                                       .ports = ports,
                                       .envs = envs,
                                       .arguments = arguments };
    int r;

    if (!ports)
        return aq_fail_oom(err);
    watch_close(&app->output);
    app->tail_len = 0;
    app->why[0] = '\0';
    r = app_fork(app, epoll, &launch, err);
    if (r < 0)
        return r;
    app->seconds = json_is_integer(seconds) ? (int)json_integer_value(seconds)
                                            : APP_DEFINITION_SECONDS;
    app->until_msec = now_msec + app->seconds * INT64_C(1000);
    app->state = APP_STARTING;
    app->is_fresh = true;
    return 0;
}

void app_end(struct app *app, int64_t now_msec)
{
    app_signal(app, SIGTERM);
    app->until_msec = now_msec + APP_KILL_MSEC;
    app->state = APP_ENDING;
}

void app_look(struct app *app, const struct app_ports *listened, int64_t now_msec)
{
    if (app->state == APP_STARTING && app_listens(app, listened)) {
        app->state = APP_RUNNING;
    } else if (app->state == APP_STARTING && now_msec >= app->until_msec) {
        app_fail_late(app);
    } else if (app->state == APP_ENDING && !app_lives(app)) {
        app->state = APP_NOT_STARTED;
        watch_close(&app->output);
    } else if (app->state == APP_ENDING && now_msec >= app->until_msec) {
        app_signal(app, SIGKILL);
    }
}
