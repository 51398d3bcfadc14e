/* SPDX-License-Identifier: Apache-2.0 */
/* job_command.h - a script as a line for the shell of the image
 *
 * The line writes the script, byte for byte, into the session's own directory and becomes its
 * interpreter. It is UTF-8 whatever the script is.
 */
#ifndef AQ_CLI_SUBMIT_JOB_COMMAND_H
#define AQ_CLI_SUBMIT_JOB_COMMAND_H

#include "base/strbuf.h"
#include "cli/submit/batch_script.h"

struct job_command {
    const char *name; /* of the script's file there, UTF-8 */
    const char *text; /* the script, without NUL */
    const struct batch_script *script;
    int argc; /* the script's arguments, UTF-8 */
    char **argv;
};

void job_command_write(const struct job_command *job, struct strbuf *out);

#endif
