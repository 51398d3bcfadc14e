/* exit_file.h - reads a monitor's exit record (monitor/protocol.h) */
#ifndef AQ_AGENT_RUNTIME_EXIT_FILE_H
#define AQ_AGENT_RUNTIME_EXIT_FILE_H

#include <jansson.h>

#include "agent/runtime/runtime.h"

struct exit_file {
    struct runtime_exit exit; /* texts belong to 'json' */
    json_t *json;
};

/* Read FOLDER/exit.json. -ENOENT if there is none, -EINVAL if it is damaged. */
int exit_file_read(const char *folder, struct exit_file *ret, struct aq_error *err);
void exit_file_done(struct exit_file *file);

#endif
