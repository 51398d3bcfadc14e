/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_trigger.h - triggers in the file of a pipeline */
#ifndef AQ_CLI_PIPELINE_PIPELINE_TRIGGER_H
#define AQ_CLI_PIPELINE_PIPELINE_TRIGGER_H

#include "cli/cli.h"
#include "pipeline/pipeline.h"

/* Append one line with all triggers and the policies for overlaps and missed times; nothing for a
 * file without triggers.
 */
void pipeline_triggers_write(const struct pipeline *p, struct strbuf *out);

/* Append when each schedule is due next, in its time zone. */
void pipeline_triggers_write_next(const struct pipeline *p, struct strbuf *out);

/* Note that the triggers of a file that was run are off, unless the manager has them enabled. */
void pipeline_triggers_note_off(struct cli *cli, const struct pipeline *p);

/* [{"trigger", "next": [times]}] */
json_t *pipeline_triggers_describe(const struct pipeline *p);

#endif
