/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h - what every command of the command line gets, and how a command is described
 *
 * A command is one struct cli_verb, listed in verbs.def: its words, options and
 * function. Usage, help, completion and the manual's tests come from these
 * rows.
 */
#ifndef AQ_CLI_CLI_H
#define AQ_CLI_CLI_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "cli/config.h"
#include "cli/opt.h"
#include "cli/output/output.h"

/* Exit statuses; cli_exit_statuses[] in exit_status.c describes them. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILURE = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_TIMEOUT = 3,
    CLI_EXIT_INVALID = 4,
    CLI_EXIT_NOT_FOUND = 5,
    CLI_EXIT_DENIED = 6,
    CLI_EXIT_CONFLICT = 7,
    CLI_EXIT_UNREACHABLE = 8,
    CLI_EXIT_UNFIT = 9,
    CLI_EXIT_TIME_LIMIT = 124,
    CLI_EXIT_OWN = 125,
    CLI_EXIT_INTERRUPTED = 130,
    CLI_EXIT_BROKEN_PIPE = 141,
};

struct cli_exit_status {
    enum cli_exit status;
    const char *meaning;
};
extern const struct cli_exit_status cli_exit_statuses[]; /* ends with .meaning = NULL */

/* The exit status for an error. */
enum cli_exit cli_exit_for(const struct aq_error *err);

/* Options that every command takes. */
struct cli_globals {
    int format; /* enum output_format + 1; 0 = not given */
    const char *columns, *sort;
    bool no_header;
    int colour; /* 1 auto, 2 always, 3 never */
    const char *endpoint, *profile;
    const char *owner; /* access key to act for */
    bool quiet, help;
};
extern const struct cli_opt cli_global_opts[];

struct cli_client;
struct cli_verb;

struct cli {
    const struct cli_verb *verb;
    struct cli_globals globals;
    struct cli_config config;
    struct output output;
    struct cli_client *client; /* made by the first request */
    char hint[240];            /* what to do next after the error, or "" */
};

enum {
    CLI_STOP_AT_FIRST = 1u << 0, /* a command of its own follows: options end there */
    CLI_RUNS_PROGRAM = 1u << 1,  /* exits as the program did, and 125 for its own errors */
    CLI_NO_CONFIG = 1u << 2,     /* does not need to know a manager */
    CLI_HIDDEN = 1u << 3,        /* not in help */
    CLI_LOGS_IN = 1u << 4,       /* is for those who are not logged in */
    CLI_OWN_OPTIONS = 1u << 5,   /* another system's command: it has none of the common options,
                                    and exits with 1 on failure; without 'opts' it parses all
                                    words itself */
};

struct cli_verb {
    const char *name;           /* "ps" or "session create" */
    const char *args;           /* "[OPTIONS] SESSION..." as usage shows it, without OPTIONS */
    const char *summary;        /* one line, imperative, no full stop */
    const char *details;        /* paragraphs for help, or NULL */
    const char *examples;       /* lines of commands, or NULL */
    const char *if_empty;       /* what would fill its list when it is empty, or NULL */
    const struct cli_opt *opts; /* NULL = none */
    size_t opts_size;           /* bytes of the struct that 'opts' fills */
    int min_args, max_args;     /* -1 = any number */
    unsigned flags;
    /* Returns an exit status, or -errno with 'err' filled. 'opts' points to
     * the struct that the options filled; argv[0] is the first argument.
     */
    int (*run)(struct cli *cli, void *opts, int argc, char **argv, struct aq_error *err);
};

/* Sorted by what help shows; ends with NULL. */
extern const struct cli_verb *const cli_verbs[];

/* The whole program: parse, run, report. Returns the exit status. */
int cli_main(int argc, char **argv);

/* Say what to do next if this command fails. The last one counts. */
void cli_hint(struct cli *cli, const char *fmt, ...) AQ_PRINTF(2, 3);

/* A note for the user on standard error, unless --quiet. */
void cli_note(const struct cli *cli, const char *fmt, ...) AQ_PRINTF(2, 3);

/* Write to standard output. */
int cli_print(const struct strbuf *text, struct aq_error *err);

/* y/N on the terminal. With 'yes' always true; without a terminal an error of
 * kind usage that asks for --yes. Returns 0 for yes, CLI_EXIT_FAILURE for no, or -errno.
 */
int cli_confirm(bool yes, struct aq_error *err, const char *fmt, ...) AQ_PRINTF(3, 4);

/* Append the whole file to 'out', -EFBIG past 'limit' bytes. "-" is standard input, from where it
 * stands.
 */
int cli_read_file(const char *path, size_t limit, struct strbuf *out, struct aq_error *err);

#define CLI_LINE_MAX 4096 /* as much as a terminal takes */

/* Read a line from standard input, without echo if it is a secret. 'prompt'
 * names it, on a terminal and in errors. One that is longer, or has NUL, is refused (-EINVAL).
 */
int cli_read_line(const char *prompt, bool is_secret, char line[CLI_LINE_MAX],
                  struct aq_error *err);

/* Path of a program of this installation, base/installed.h. The caller frees. */
char *cli_find_program(const char *name, struct aq_error *err);

/* Replace this process by a program of this installation. Returns only on failure. */
int cli_exec_program(const char *name, char *const argv[], struct aq_error *err);

#endif
