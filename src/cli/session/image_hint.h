/* SPDX-License-Identifier: Apache-2.0 */
/* image_hint.h - "run ubuntu bash": the name of an image where a program's is wanted */
#ifndef AQ_CLI_SESSION_IMAGE_HINT_H
#define AQ_CLI_SESSION_IMAGE_HINT_H

#include "cli/cli.h"

/* The session had no program argv[0]: say it if that is an image's name, as far as its form or
 * the manager tells. 'has_terminal': it was typed with -t.
 */
void image_hint_note(struct cli *cli, bool has_terminal, int argc, char *const argv[]);

#endif
