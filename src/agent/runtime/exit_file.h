/* SPDX-License-Identifier: Apache-2.0 */
/* exit_file.h - reads a monitor's exit record, or writes one in its place */
#ifndef AQ_AGENT_RUNTIME_EXIT_FILE_H
#define AQ_AGENT_RUNTIME_EXIT_FILE_H

#include <jansson.h>

#include "agent/runtime/runtime.h"
#include "base/strbuf.h"
#include "base/uuid.h"

struct exit_file {
    struct runtime_exit exit; /* texts belong to 'json' and 'outputs' */
    json_t *json;
    char *outputs;
};

/* Read FOLDER/exit.json. -ENOENT if there is none, -EINVAL if it is damaged. */
int exit_file_read(const char *directory, struct exit_file *ret, struct aq_error *err);
void exit_file_done(struct exit_file *file);

/* True if FOLDER/exit.json is there, whole, and says that it is of this kernel. */
bool exit_file_is_of(const char *directory, const struct uuid *id);

/* Append to 'out' what a monitor would have written of a program that it did
 * not start, or that nobody knows the end of.
 */
void exit_file_write(const struct uuid *id, const char *reason, const char *text,
                     struct strbuf *out);

#endif
