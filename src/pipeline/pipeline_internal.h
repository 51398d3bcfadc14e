/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_internal.h - reading a pipeline's file: what the files of this directory share */
#ifndef AQ_PIPELINE_PIPELINE_INTERNAL_H
#define AQ_PIPELINE_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

struct pipeline_reader {
    const char *text; /* the file */
    size_t len;
    struct pipeline *p;
    struct aq_error *err;
};

/* -EINVAL with the member's place; 'path' is "tasks.train.needs.0". */
int pipeline_refuse(const struct pipeline_reader *in, const char *path, const char *fmt, ...)
    AQ_PRINTF(3, 4);

/* "path.name", of the arena. */
const char *pipeline_path(const struct pipeline_reader *in, const char *path, const char *name);

/* Keys of 'object' that are not in the list, which ends with NULL, are refused. 'object' may be
 * NULL; -EINVAL, too, if it is not a mapping.
 */
int pipeline_check_keys(const struct pipeline_reader *in, const json_t *object, const char *path,
                        const char *const *known);

/* A text or number, as text of the arena; NULL if it is a mapping or list. */
const char *pipeline_scalar(struct arena *arena, const json_t *value);

/* Letters, digits, '_' and '-' inside. */
int pipeline_check_name(const struct pipeline_reader *in, const char *path, const char *name,
                        size_t max);

/* Members of a task that are known beside those of the graph: form and bounds. */
int pipeline_read_task(const struct pipeline_reader *in, const json_t *object, const char *path,
                       struct pipeline_task *ret);
/* Those of "defaults". */
int pipeline_check_defaults(const struct pipeline_reader *in);

/* Triggers, whose parameters must be complete. */
int pipeline_read_triggers(const struct pipeline_reader *in);

/* All ${{ ... }} of a task refer to something. */
int pipeline_check_expressions(const struct pipeline_reader *in, struct pipeline_task *task);

/* needs as places, the order of tasks, layers and nodes. */
int pipeline_expand(const struct pipeline_reader *in);

#endif
