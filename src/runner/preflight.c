/* SPDX-License-Identifier: Apache-2.0 */
/* preflight.c - what has to succeed in the container before its program is started */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "runner/runner.h"

#define CHECK_USEC (30 * USEC_PER_SEC)

/* The last line that was written to standard error, as far as there is room. */
struct last_line {
    char text[RUNNER_TEXT_MAX];
    size_t len;
    bool is_over; /* a newline came: what follows is another line */
};

static void preflight_add(struct last_line *line, const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] == '\n') {
            line->is_over = true;
            continue;
        }
        if (line->is_over)
            line->len = 0;
        line->is_over = false;
        if (line->len < sizeof(line->text) - 1)
            line->text[line->len++] = bytes[i];
    }
    line->text[line->len] = '\0';
}

/* False when both of its outputs are closed, or its time is over. */
static bool preflight_read_more(struct command *command, int64_t end_usec, struct last_line *line)
{
    struct pollfd fds[] = { { .fd = command->output, .events = POLLIN },
                            { .fd = command->errors, .events = POLLIN } };
    int *const owners[] = { &command->output, &command->errors };
    int64_t left = end_usec - clock_monotonic_usec();
    char bytes[1024];

    if ((command->output < 0 && command->errors < 0) || left <= 0)
        return false;
    (void)poll(fds, AQ_COUNT(fds), (int)(left / USEC_PER_MSEC) + 1);
    for (size_t i = 0; i < AQ_COUNT(fds); i++) {
        ssize_t got = fds[i].revents ? read(fds[i].fd, bytes, sizeof(bytes)) : -1;

        if (got > 0 && fds[i].fd == command->errors)
            preflight_add(line, bytes, (size_t)got);
        else if (got <= 0 && fds[i].revents && (got == 0 || (errno != EAGAIN && errno != EINTR)))
            aq_closep(owners[i]);
    }
    return true;
}

/* Until it has ended by itself or by us; the status of waitpid(). */
static int preflight_await(struct command *command, struct last_line *line)
{
    int64_t end_usec = clock_monotonic_usec() + CHECK_USEC;
    int status = 0;

    while (preflight_read_more(command, end_usec, line))
        ;
    if (command->output >= 0 || command->errors >= 0)
        command_signal(command->pid, SIGKILL);
    while (waitpid(command->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

int preflight_run(const struct options *options, char text[RUNNER_TEXT_MAX])
{
    char *argv[] = { (char *)(uintptr_t)options->check, NULL };
    const struct command_spec spec = { .argv = argv, .streams = COMMAND_PIPES_NO_INPUT };
    struct command_failure failure = { 0 };
    struct last_line line = { .text = "" };
    struct aq_error err = { 0 };
    struct command command;
    int status;

    if (command_start(options, &spec, &command, &err) < 0) {
        (void)snprintf(text, RUNNER_TEXT_MAX, "%.*s", RUNNER_TEXT_MAX - 1, err.text);
        return -err.code;
    }
    status = preflight_await(&command, &line);
    (void)command_read_start(&command.start, &failure);
    aq_closep(&command.start);
    aq_closep(&command.output);
    aq_closep(&command.errors);
    if (failure.code) {
        command_failure_text(&failure, text);
        return -failure.code;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    (void)snprintf(text, RUNNER_TEXT_MAX, "%s",
                   line.len ? line.text : "a check that has to come first failed silently");
    return -EPERM;
}
