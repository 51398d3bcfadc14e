/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter.h - the process that runs code, and what it says
 *
 * Python and shells live on between runs and keep their state; any other language, and each
 * command of a batch, is a process of its own run. Output comes through pipes. Python says more
 * over a socket of packets, its descriptor 3: a type byte and the rest, of at most
 * INTERPRETER_PACKET_MAX bytes. Types in capital letters: the rest follows in further packets.
 *
 *   to it:   'r' code, 'i' an answer, 'c' JSON of what to complete
 *   from it: 'o' 'e' output, 'm' media, 'h' HTML, 'w' it waits ("1" = for a password),
 *            'f' the run has ended (exit code), 's' JSON of suggestions
 *
 * A shell, and what the image names instead, reads names of files with code from its descriptor
 * 3, and writes exit codes there (languages.h).
 */
#ifndef AQ_RUNNER_INTERPRETER_H
#define AQ_RUNNER_INTERPRETER_H

#include <sys/types.h>

#include "base/error.h"
#include "runner/execution.h"
#include "runner/languages.h"
#include "runner/watch.h"

#define INTERPRETER_PACKET_MAX 32768

struct interpreter_ops {
    void (*on_output)(void *data, enum execution_kind kind, const char *bytes, size_t len);
    void (*on_waiting)(void *data, bool is_password);
    void (*on_finished)(void *data, int exit_code);
    void (*on_suggestions)(void *data, const char *json, size_t len);
};

struct interpreter {
    struct language language;
    pid_t pid; /* 0 = there is none */
    bool is_running, is_paused;
    int status; /* of waitpid(), once it has ended */
    bool has_ended;
    int64_t mute_msec; /* monotonic: since when it cannot tell the end of a run; 0 = it can */
    struct watch control, output, errors;
    struct strbuf part;   /* of media or HTML that follows */
    struct strbuf unsent; /* to a Python that does not read */
    const char *folder;   /* for code that a shell or a compiler reads */
    const struct interpreter_ops *ops;
    void *data;
};

/* 'folder' is borrowed, as are 'ops' and 'data'. */
void interpreter_init(struct interpreter *in, const struct language *language, const char *folder,
                      const struct interpreter_ops *ops, void *data);

/* Run code, in the process of before if it lives on. Never fails: what it cannot do it says as
 * output and an exit code, later or at once.
 */
void interpreter_run(struct interpreter *in, int epoll, const char *code, size_t len);

/* A command of a batch, by a shell of its own: of LANGUAGE_ONCE. */
void interpreter_run_command(struct interpreter *in, int epoll, const char *command);

void interpreter_answer(struct interpreter *in, const char *text, size_t len);
/* False if nobody could complete it. */
bool interpreter_complete(struct interpreter *in, const char *json, size_t len);
void interpreter_interrupt(struct interpreter *in);
/* With its children that have no session of their own; the run has ended, and is not told so. */
void interpreter_kill(struct interpreter *in);

/* Kill it if it has not been able to tell the end of a run for a while. When this is to be asked
 * again, monotonic; INT64_MAX = when something happens.
 */
int64_t interpreter_end_mute(struct interpreter *in, int64_t now_msec);

/* Stop reading its output, or go on. */
void interpreter_pause(struct interpreter *in, bool paused);

/* 'pid' has ended; perhaps it was this one. */
void interpreter_reaped(struct interpreter *in, pid_t pid, int status);

#endif
