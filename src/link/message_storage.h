/* SPDX-License-Identifier: Apache-2.0 */
/* message_storage.h - messages about folders of users, which lie on storage hosts
 *
 * A storage host connects as an agent does, by an id that begins with LINK_STORAGE_PREFIX. It sends
 * storage.* alone. Its hello's 'addr' is the URL at which clients reach it. See message.h for the
 * form of a message.
 */
#ifndef AQ_LINK_MESSAGE_STORAGE_H
#define AQ_LINK_MESSAGE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define LINK_STORAGE_PREFIX "storage:"

struct msg_storage_hello {
    /* JSON list [{"name":"volume1","backend":"vfs","capabilities":[...],"used_bytes":N,
     * "capacity_bytes":N}], again when that changes; 0 = not known yet
     */
    const char *volumes;
};

struct msg_storage_ask {
    struct uuid request_id;
    const char *volume; /* by its name */
    const char *op;     /* "list", "mkdir" ...: src/storage/ops.c */
    const char *args;   /* JSON object */
};

struct msg_storage_answer {
    struct uuid request_id;
    const char *result;     /* JSON object; NULL = it failed: */
    const char *error_code; /* "ENOENT": errno(3) */
    const char *error_kind; /* as that of struct aq_error; NULL = of the code */
    const char *error_field, *error_text;
};

/* Of what takes long. */
struct msg_storage_progress {
    struct uuid request_id;
    int64_t done, total; /* bytes */
};

/* Which rights to folders have ended? Asked again and again while clients use them. */
struct msg_storage_check {
    struct uuid request_id;
    const char *rights; /* JSON list [{"user":ID,"key":ACCESS_KEY,"folder":ID,"write":BOOL}] */
};

struct msg_storage_checked {
    struct uuid request_id;
    const char *ended; /* JSON list of indices into 'rights' */
};

/* A folder whose size is known has changed. */
struct msg_storage_size {
    const char *volume; /* by its name */
    struct uuid folder;
    int64_t files, bytes; /* files as they were counted last */
};

/* Nobody waits for the answer any more. */
struct msg_storage_cancel {
    struct uuid request_id;
};

#endif
