/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - the commands that show lists and records of the manager
 *
 * Every noun has a table of columns and a path; the rest is here.
 */
#ifndef AQ_CLI_LIST_H
#define AQ_CLI_LIST_H

#include "cli/cli.h"

struct list_opts {
    struct cli_int limit, watch;
    struct cli_list filters;
    const char *order;
};

/* The rows for a struct whose member 'list' is the above. */
/* clang-format off */
#define LIST_OPT_ROWS(type)                                                                        \
    { 'n', "limit", CLI_INT, offsetof(type, list.limit), "N",                                      \
      "at most so many rows; 0 = all; default 1000" },                                        \
    { 0, "filter", CLI_LIST, offsetof(type, list.filters), "EXPR",                                 \
      "only rows that match, e.g. status=running or 'age>2h'; repeatable" },                       \
    { 0, "order", CLI_STR, offsetof(type, list.order), "[-]FIELD",                                 \
      "the manager's order, before --limit cuts" },                                                \
    { 'w', "watch", CLI_DURATION, offsetof(type, list.watch), "TIME",                              \
      "show it again after so long, until Ctrl-C" }
/* clang-format on */

/* Change nested members of a row as it came into what the columns show; may be NULL. */
typedef void list_row_fn(json_t *row);

/* With --quiet show the ids alone, as "docker ps -q" does; names where there are no ids. */
void list_choose_ids(struct cli *cli, const struct column *columns);

/* GET 'path' (with or without a query), show the rows. Without rows a note says
 * what would fill the list: the command's 'if_empty'. --quiet shows ids alone.
 */
int list_show(struct cli *cli, const char *path, const struct list_opts *opts,
              const struct column *columns, struct aq_error *err);

/* The same with each row given to 'adapt' first. */
int list_show_adapted(struct cli *cli, const char *path, const struct list_opts *opts,
                      const struct column *columns, list_row_fn *adapt, struct aq_error *err);

/* Rows that are shown before those of the path: a list, or NULL, in '*ret'. */
typedef int list_more_fn(struct cli *cli, const void *data, json_t **ret, struct aq_error *err);

/* The same of a path that takes 'fields': only those members are asked for that
 * are shown or that rows are filtered or sorted by. 'more' may be NULL.
 */
int list_show_fields(struct cli *cli, const char *path, const struct list_opts *opts,
                     const struct column *columns, list_row_fn *adapt, list_more_fn *more,
                     const void *data, struct aq_error *err);

/* Show rows (an array of objects) that are at hand. */
int list_print(struct cli *cli, const struct column *columns, const json_t *rows,
               struct aq_error *err);

/* GET 'path' and show the rows in the member 'items' of the answer, which is never cut. */
int list_show_whole(struct cli *cli, const char *path, const char *items,
                    const struct column *columns, struct aq_error *err);

/* The first row whose 'member' equals 'text'; borrowed, NULL = none, also for a NULL 'text'. */
json_t *list_find(const json_t *rows, const char *member, const char *text);

/* Print the command's 'if_empty' if there are no rows; true if it was printed. */
bool list_note_empty(const struct cli *cli, const json_t *rows);

/* GET 'path' and show the object; '*ret_row' (may be NULL) gets it. */
int record_show(struct cli *cli, const char *path, const struct column *columns, list_row_fn *adapt,
                json_t **ret_row, struct aq_error *err);

/* Show an object that is at hand. */
int record_print(struct cli *cli, const struct column *columns, const json_t *row,
                 struct aq_error *err);

#endif
