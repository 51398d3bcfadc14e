/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - what the commands on folders share */
#ifndef AQ_CLI_FOLDER_FOLDER_H
#define AQ_CLI_FOLDER_FOLDER_H

#include "cli/request.h"

/* "/folders/NAME" and 'rest', e.g. "/rename", of a folder's name or id. */
void folder_path(struct strbuf *path, const char *folder, const char *rest);

/* A request on a folder; 'body' is taken (NULL = none). */
int folder_call(struct cli *cli, enum method method, const char *folder, const char *rest,
                json_t *body, json_t **ret, struct aq_error *err);

/* The same of a request that must have a body: NULL is no UTF-8. */
int folder_send(struct cli *cli, enum method method, const char *folder, const char *rest,
                json_t *body, json_t **ret, struct aq_error *err);

/* ["A", "B"]; NULL = no UTF-8. */
json_t *folder_texts(int argc, char **argv);

#endif
