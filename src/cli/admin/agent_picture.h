/* SPDX-License-Identifier: Apache-2.0 */
/* agent_picture.h - a node as a picture: its devices as bars, cut into shares */
#ifndef AQ_CLI_ADMIN_AGENT_PICTURE_H
#define AQ_CLI_ADMIN_AGENT_PICTURE_H

#include "cli/output/output.h"

/* Append the picture of an agent as the API shows it; nothing without devices. */
void agent_picture_write(const struct output *o, const json_t *agent, struct strbuf *out);

#endif
