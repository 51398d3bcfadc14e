/* SPDX-License-Identifier: Apache-2.0 */
/* service_file.h - the proxy's file "services": the model services that it serves
 *
 * A serving.routes message with all of them, in the state folder, for the proxy's user alone (0600):
 * it has hashes of tokens.
 */
#ifndef AQ_PROXY_SERVICE_FILE_H
#define AQ_PROXY_SERVICE_FILE_H

#include "base/error.h"
#include "link/message.h"

#define SERVICE_FILE "services"
#define SERVICE_FILE_MAX ((size_t)256 << 20)

/* -EINVAL if 'msg' cannot be written; else of fs_write_quick(). */
int service_file_write(const char *state, const struct message *msg, struct aq_error *err);

/* message_done() when done with it. -ENOENT without a file; -EINVAL for one that is damaged. */
int service_file_read(const char *state, struct message *ret, struct aq_error *err);

#endif
