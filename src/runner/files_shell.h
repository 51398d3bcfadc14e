/* SPDX-License-Identifier: Apache-2.0 */
/* files_shell.h - the shell of sessions for files: it starts what moves files, and nothing else
 *
 * The SSH server starts it as the user, as "sh -c COMMAND". COMMAND may be one of
 *
 *   sftp-server
 *   rsync --server ...      not as a daemon
 *   scp -t|-f ...           as OpenSSH's scp -O asks for it
 *
 * With -s rsync reads further arguments from its input, and may become a daemon by them. Whatever a
 * daemon is to start comes here again, as /bin/sh is this shell.
 *
 * whatever path it names: each is the node's own program, by the loader beside it. No variable,
 * wildcard or second command is known here. That users stay within what they may see is not held
 * by this but by the container, which has nothing else.
 */
#ifndef AQ_RUNNER_FILES_SHELL_H
#define AQ_RUNNER_FILES_SHELL_H

#include "base/error.h"

/* As main() is called. Returns only if nothing was started: -EPERM, -ENOENT if the node has no such
 * program, -ENOMEM.
 */
int files_shell_run(int argc, char **argv, struct aq_error *err);

#endif
