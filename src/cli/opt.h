/* SPDX-License-Identifier: Apache-2.0 */
/* opt.h - command-line options as tables
 *
 * A table row says where in the caller's struct a value goes; help text,
 * completion and the manual's tests read the same rows. The grammar is GNU's:
 * "-abc", "-n5", "-n 5", "--name=x", "--name x", "--" ends the options.
 */
#ifndef AQ_CLI_OPT_H
#define AQ_CLI_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum cli_opt_type {
    CLI_FLAG,     /* bool */
    CLI_STR,      /* const char *, borrowed from argv; NULL = not given */
    CLI_INT,      /* struct cli_int; not negative */
    CLI_DURATION, /* struct cli_int in microseconds; "90", "10m", "1.5h" */
    CLI_LIMIT,    /* the same, "none" = 0, and -1 = -1 s, for servers that give it a meaning */
    CLI_LIST,     /* struct cli_list; may be repeated */
    CLI_CHOICE,   /* int: 1 + the index in 'arg', "table|json"; 0 = not given */
};

struct cli_int {
    bool is_set;
    int64_t value;
};

struct cli_list {
    const char **items; /* borrowed from argv */
    size_t count, cap;
};

/* Separate from struct field (model/field.h), because most options are not members of an entity.
 * Options of members of entities are made from their fields (account_tables.h).
 */
struct cli_opt {
    char letter; /* 0 = none */
    const char *name;
    enum cli_opt_type type;
    size_t offset;      /* in the caller's struct */
    const char *arg;    /* what help calls the value; NULL for a flag */
    const char *help;   /* one line, no full stop */
    const char *member; /* of the request that it becomes (request.h); NULL = none by itself */
};

#define CLI_OPT_END  \
    {                \
        .name = NULL \
    }

/* Options and where their values go. */
struct cli_opt_set {
    const struct cli_opt *opts; /* NULL = none */
    void *target;
};

/* Parse argv[0 .. argc). Values go to the targets (zeroed by the caller);
 * what is no option is moved, in order, to the front of argv and counted in
 * *ret_count. With 'stop_at_first' the first argument that is no option ends
 * the options, so that a command of its own may follow. Errors have kind
 * CLI_KIND_USAGE and name the option.
 */
int cli_opts_parse(const struct cli_opt_set *sets, size_t set_count, bool stop_at_first, int argc,
                   char **argv, int *ret_count, struct aq_error *err);

/* Add an item, which is borrowed. */
void cli_list_add(struct cli_list *list, const char *item);

/* Release what parsing allocated in the target of 'opts': the lists. */
void cli_opts_done(const struct cli_opt *opts, void *target);

/* The row whose long name is name[0 .. len), or NULL. */
const struct cli_opt *cli_opt_find(const struct cli_opt *opts, const char *name, size_t len);

/* Word 'index' of "a|b|c": its length, with *ret_word at its start; 0 past the end. */
size_t cli_choice_word(const char *choices, size_t index, const char **ret_word);

/* The kind of an error that is a mistake on the command line (exit status 2). */
#define CLI_KIND_USAGE "usage"

/* And of one in the way to the manager, which was not reached (8). */
#define CLI_KIND_UNREACHABLE "unreachable"

#endif
