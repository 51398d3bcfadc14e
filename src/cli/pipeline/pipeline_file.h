/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_file.h - pipelines of this machine's files */
#ifndef AQ_CLI_PIPELINE_PIPELINE_FILE_H
#define AQ_CLI_PIPELINE_PIPELINE_FILE_H

#include "cli/cli.h"
#include "pipeline/pipeline.h"

/* Read and check a file ("-": standard input). 'text' gets its text. Errors begin with the name of
 * the file.
 */
int pipeline_file_read(const char *path, struct strbuf *text, struct pipeline **ret,
                       struct aq_error *err);

/* Set "payload" to the text of a file, or "pipeline" to the name of one that is kept. An
 * argument with a dot or slash, or "-", is a file. *ret (may be NULL) is the pipeline of a file,
 * owned by the caller, and NULL of a name.
 */
int pipeline_file_add_source(const char *text, json_t *body, struct pipeline **ret,
                             struct aq_error *err);

#endif
