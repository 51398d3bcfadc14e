/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - starts one process, in a terminal or with pipes
 *
 * The process leads a session and process group of its own. Whether it could
 * be executed comes later, through 'start', so that a slow file system never
 * holds the runner up.
 */
#ifndef AQ_RUNNER_COMMAND_H
#define AQ_RUNNER_COMMAND_H

#include "runner/options.h"
#include "runner/protocol.h"

enum command_streams {
    COMMAND_INHERITS,       /* the runner's own */
    COMMAND_TERMINAL,       /* all three */
    COMMAND_PIPES,          /* input, output and errors */
    COMMAND_PIPES_NO_INPUT, /* standard input is /dev/null */
    COMMAND_SOCKET,         /* input and output are a socket, errors go nowhere */
};

struct command_spec {
    bool is_files; /* 'argv' is for files_run(), which is done in place of a program */
    char **argv;   /* NULL-terminated; empty = a shell */
    char **envp;   /* in addition to the runner's own, but for a choice of devices that the session
                        does not have; NULL = none */
    const char *cwd; /* NULL = as in the options */
    enum command_streams streams;
    uint16_t rows, cols;
    int socket;         /* of COMMAND_SOCKET; stays the caller's */
    bool has_bootstrap; /* it gets options->bootstrap */
};

/* Our ends, not blocking, -1 = none. A terminal is 'input', 'output' a
 * duplicate of it.
 */
struct command {
    pid_t pid;
    int start; /* command_read_start() when it can be read */
    int input, output, errors;
    int bootstrap; /* a byte comes when its bootstrap script has succeeded */
};

/* What a child tells that cannot become the program. */
struct command_failure {
    int code; /* errno; 0 = it was executed */
    char step[64];
};

/* -errno if it could not even be forked; then nothing is left. */
int command_start(const struct options *options, const struct command_spec *spec,
                  struct command *ret, struct aq_error *err);

/* How many accelerators the session has, for device_variable_exceeds(). */
size_t command_count_devices(void);

/* In a child: become the container's user. NULL, or what failed, with errno. */
const char *command_set_identity(const struct options *options);

/* True once it is known; 'start' is closed then. */
bool command_read_start(int *start, struct command_failure *ret);

/* To its process group, or to the process itself while it has none yet. */
void command_signal(pid_t pid, int signum);

/* "step: why" */
void command_failure_text(const struct command_failure *failure, char text[RUNNER_TEXT_MAX]);

#endif
