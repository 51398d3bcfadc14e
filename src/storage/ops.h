/* SPDX-License-Identifier: Apache-2.0 */
/* ops.h - what the manager asks of a storage host: storage.ask of link/message_storage.h
 *
 * | op       | arguments beside "id", a folder's        | answer
 * | create   |                                          | {}
 * | purge    |                                          | {}; space is freed afterwards
 * | mkdir    | path, parents, exist_ok                  | {}
 * | list     | path, after, limit, missing_ok           | as folder_list()
 * | read     | path                                     | {"text"}: of a small file, folder_read()
 * | move     | src, dst                                 | {}
 * | rename   | path, new_name                           | {}
 * | delete   | files: list of paths, recursive          | {}
 * | clone    | to: id of a folder that is made, quota_bytes | {}, when all is there
 * | usage    |                                          | {"files","bytes"}
 * | recount  |                                          | {}; measured soon, and told (storage.size)
 * | upload   | path, size, quota_bytes, tree            | {"token","url"}
 * | download | path, archive, tree                      | {"token","url"}
 *
 * quota_bytes is what the folder may hold in all; 0, or none, is no limit. With all comes "user",
 * the id of who asks, for whom it counts. Errors are those of folder.h and volume.h; -EINVAL for
 * arguments, with their names.
 */
#ifndef AQ_STORAGE_OPS_H
#define AQ_STORAGE_OPS_H

#include <jansson.h>

#include "storage/storage.h"

/* How far one is, for other threads; total is 0 while nothing is known. */
struct op_progress {
    _Atomic uint64_t done, total; /* bytes */
};

/* Do it, and append the answer. Blocks for the disk. -EOPNOTSUPP for an op that there is not. */
int op_run(struct volume *volume, const char *op, const json_t *args, struct op_progress *progress,
           struct strbuf *out, struct aq_error *err) AQ_UNTRUSTED;

/* Which lane it is for. */
enum work_lane_kind op_lane(const char *op, const json_t *args);

/* The folder whose files it may change, or that is to be measured; false = none. */
bool op_touches(const char *op, const json_t *args, struct uuid *ret);

/* How old a count of the folder may be that it needs (usage.h); -1 = it needs none. The folder is
 * held while it runs.
 */
int64_t op_count_age(const char *op, const json_t *args);

#endif
