/* SPDX-License-Identifier: Apache-2.0 */
/* notification.h - what the commands of channels and rules share */
#ifndef AQ_CLI_ADMIN_NOTIFICATION_H
#define AQ_CLI_ADMIN_NOTIFICATION_H

#include "cli/list.h"

#define NOTIFICATION_CHANNELS "channel"
#define NOTIFICATION_RULES "rule"

/* 'kind' is one of these. */
int notification_ls(struct cli *cli, const char *kind, const struct column *columns,
                    struct aq_error *err);

/* Show the one with this id or name. */
int notification_info(struct cli *cli, const char *kind, const char *name,
                      const struct column *columns, struct aq_error *err);

/* Append the path of the one with this id or name. -ENOENT, -EINVAL for a name of several. */
int notification_path(struct cli *cli, const char *kind, const char *name, struct strbuf *path,
                      struct aq_error *err);
/* Its id alone. */
int notification_id(struct cli *cli, const char *kind, const char *name, struct strbuf *id,
                    struct aq_error *err);

/* Options of create and set: the first member of what the command's options fill. */
struct notification_opts {
    const char *description;
    bool disabled;
    const char *name;
    int enabled; /* 1 = yes, 2 = no, 0 = not given */
};

/* clang-format off */
#define NOTIFICATION_CREATE_ROWS(type)                                                       \
    { 0, "description", CLI_STR, offsetof(type, shared.description), "TEXT", "what it is for",   \
      "description" },                                                                       \
    { 0, "disabled", CLI_FLAG, offsetof(type, shared.disabled), NULL, "send nothing yet" }
#define NOTIFICATION_SET_ROWS(type)                                                          \
    { 0, "name", CLI_STR, offsetof(type, shared.name), "NAME", "another name", "name" },     \
    { 0, "description", CLI_STR, offsetof(type, shared.description), "TEXT", "what it is for",   \
      "description" },                                                                       \
    { 0, "enabled", CLI_CHOICE, offsetof(type, shared.enabled), "yes|no", "whether it sends",      \
      "enabled" }
/* clang-format on */

/* Make one of 'body', which is taken, with these options: its id is noted. */
int notification_create(struct cli *cli, const char *kind, const char *name,
                        const struct notification_opts *opts, json_t *body, struct aq_error *err);
int notification_set(struct cli *cli, const char *kind, const char *name,
                     const struct notification_opts *opts, json_t *body, struct aq_error *err);
int notification_rm(struct cli *cli, const char *kind, int argc, char **argv, struct aq_error *err);

#endif
