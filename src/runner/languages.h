/* SPDX-License-Identifier: Apache-2.0 */
/* languages.h - the languages whose code can be run in this container, by its environment
 *
 * There are always python, shell and c, whether the image has their programs or not. Further
 * ones, or others for these names, are what the variables ALIQUOT_INTERPRETER_NAME say, which the
 * agent makes of the image's labels "aliquot.interpreter.NAME":
 *
 *   COMMAND          read for the shell: reads names of files with code from descriptor 3, each
 *                    ended by a newline, and writes an exit code and a newline there for each
 *   jupyter:KERNEL   the Jupyter kernel of this name, by the image's jupyter_client
 *
 * ALIQUOT_RUNTIME_TYPE is the image's own language, ALIQUOT_RUNTIME_PATH its program.
 */
#ifndef AQ_RUNNER_LANGUAGES_H
#define AQ_RUNNER_LANGUAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "runner/execution.h"

#define LANGUAGES_MAX 16

enum language_kind {
    LANGUAGE_PYTHON,  /* by our driver */
    LANGUAGE_JUPYTER, /* by a Jupyter kernel */
    LANGUAGE_READER,  /* a shell, or a command that reads names of files */
    LANGUAGE_ONCE,    /* a process for each run */
};

struct language {
    char name[EXECUTION_LANGUAGE_MAX + 1];
    enum language_kind kind;
    const char *command; /* borrowed: of READER, NULL = a shell of the image; of JUPYTER the
                            kernel */
};

#define LANGUAGE_ARGUMENTS_MAX 6

/* The command line of its interpreter, NULL-terminated, borrowed; 'file' with the code is for
 * ONCE.
 */
void language_command(const struct language *language, const char *file,
                      const char *ret[LANGUAGE_ARGUMENTS_MAX]);

/* A variable "NAME=VALUE" of the environment, to be kept. False if it makes no language. */
bool language_parse(const char *variable, struct language *ret) AQ_UNTRUSTED;

/* All that 'variables' (NULL-terminated) gives; how many. */
size_t languages_find(const char *const *variables, struct language ret[LANGUAGES_MAX]);

/* The one with this name, "-" = the image's own: what its label says, else Python if the image
 * has it, else a shell. NULL = there is none.
 */
const struct language *language_choose(const struct language *languages, size_t count,
                                       const char *name);

/* Why there is none, and which there are. */
void language_refuse(const struct language *languages, size_t count, const char *name,
                     struct strbuf *out);

#endif
