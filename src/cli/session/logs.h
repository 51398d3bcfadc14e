/* SPDX-License-Identifier: Apache-2.0 */
/* logs.h - what a session's program has printed, for the commands that show it */
#ifndef AQ_CLI_SESSION_LOGS_H
#define AQ_CLI_SESSION_LOGS_H

#include "cli/cli.h"

struct logs_opts {
    bool follow, timestamps, no_prefix;
    struct cli_int tail, attempt;
    const char *kernel, *grep, *since;
};

/* The rows for a struct whose member 'logs' is the above; without 'attempt'. */
/* clang-format off */
#define LOGS_OPT_ROWS(type)                                                                        \
    { 'f', "follow", CLI_FLAG, offsetof(type, logs.follow), NULL,                                  \
      "go on until the session ends", "follow" },                                                  \
    { 0, "tail", CLI_INT, offsetof(type, logs.tail), "N",                                          \
      "only the last N lines, up to 1000000; 0 = only new ones", "tail" },                         \
    { 0, "kernel", CLI_STR, offsetof(type, logs.kernel), "HOSTNAME",                               \
      "of this kernel alone, such as sub1; default all", "kernel" },                               \
    { 0, "no-prefix", CLI_FLAG, offsetof(type, logs.no_prefix), NULL,                              \
      "lines of several kernels without the name before them" },                                   \
    { 0, "grep", CLI_STR, offsetof(type, logs.grep), "PATTERN",                                    \
      "only lines that match this extended regular expression" },                                  \
    { 0, "since", CLI_STR, offsetof(type, logs.since), "TIME",                                     \
      "only lines since then: a local date, Unix time, or how long ago" },                         \
    { 't', "timestamps", CLI_FLAG, offsetof(type, logs.timestamps), NULL,                          \
      "before each line when it was printed, in UTC", "timestamps" }
/* clang-format on */

/* Print the log of a session, by name or id, as the options say. Errors as those of cli_stream(). */
int logs_show(struct cli *cli, const struct logs_opts *opts, const char *session,
              struct aq_error *err);

#endif
