/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the commands of aliquot-gpu; each parses its own arguments */
#ifndef AQ_GPUHOST_COMMANDS_H
#define AQ_GPUHOST_COMMANDS_H

#include "base/error.h"

/* Exit code, or -errno with 'err'. argv[0] is the command's name. */
int run_command(int argc, char **argv, struct aq_error *err);
int top_command(int argc, char **argv, struct aq_error *err);
int watch_command(int argc, char **argv, struct aq_error *err);

#endif
