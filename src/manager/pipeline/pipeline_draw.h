/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_draw.h - what a page needs of a pipeline's file, without reading YAML */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_DRAW_H
#define AQ_MANAGER_PIPELINE_PIPELINE_DRAW_H

#include "base/arena.h"

struct pipeline_drawing {
    const char *graph;      /* JSON of graph_layout_write() */
    const char *parameters; /* JSON: of pipeline_write_parameters() */
    const char *matrix; /* JSON: {"train.3": {name: value}} of tasks with a matrix; "null" if that
                               is more than PIPELINE_BYTES_MAX */
};

/* All are the arena's; "null" if this version of the manager cannot read the file. On threads of
 * the store: a file may take a few hundredths of a second.
 */
void pipeline_draw(const char *text, struct arena *arena, struct pipeline_drawing *ret);

#endif
