/* SPDX-License-Identifier: Apache-2.0 */
/* announcement.h - the administrators' announcement, which everyone is shown */
#ifndef AQ_CLI_ANNOUNCEMENT_H
#define AQ_CLI_ANNOUNCEMENT_H

#include "cli/cli.h"

/* Show it to people as a note on standard error, if there is one: a request to the manager. That
 * it cannot be asked for is no error.
 */
void announcement_note(struct cli *cli);

#endif
