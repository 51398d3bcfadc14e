/* SPDX-License-Identifier: Apache-2.0 */
/* app_definition.h - how an app of a container is started
 *
 * JSON, as images for Backend.AI have it in /etc/backend.ai/service-defs/NAME.json:
 *
 *   prestart           [{"action", "args", "ref"}]: what is done before, one after the other
 *   command            a list of texts, or a line for 'shell' ("bash")
 *   noop               nothing is started: the app runs by itself
 *   env                {NAME: TEXT}
 *   url_template       for clients
 *   allowed_envs       names of variables that clients may set
 *   allowed_arguments  the same of arguments
 *   default_arguments  {ARGUMENT: TEXT, [TEXT...] or null}
 *   start_timeout      seconds until it has to listen, 1 to 600; ours
 *
 * Actions are write_file, write_tempfile, mkdir, run_command and log. Texts of these, of the
 * command and of 'env' may have variables (app_text.h). Other members are passed over.
 */
#ifndef AQ_RUNNER_APP_DEFINITION_H
#define AQ_RUNNER_APP_DEFINITION_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"

#define APP_DEFINITION_FOLDER "/etc/backend.ai/service-defs"
#define APP_DEFINITION_MAX (64 << 10) /* bytes of one */
#define APP_DEFINITION_ITEMS_MAX 256  /* of each of its lists */
#define APP_DEFINITION_SECONDS 30     /* start_timeout if it has none */

/* The definition, whose members have the types above; to be released. -EINVAL with the member as
 * field, -E2BIG, -ENOMEM.
 */
int app_definition_read(const char *text, size_t len, json_t **ret,
                        struct aq_error *err) AQ_UNTRUSTED;

/* Of the app 'name' in this container; NULL with 0 if there is none. -errno of the file, too. */
int app_definition_load(const char *name, json_t **ret, struct aq_error *err);

/* Does its list have the text? */
bool app_definition_allows(const json_t *definition, const char *list, const char *text);

#endif
