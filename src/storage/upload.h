/* SPDX-License-Identifier: Apache-2.0 */
/* upload.h - an upload's file before it is whole
 *
 * Its bytes go to FOLDER_UPLOADS/ID in the folder, or ID.N for a part of it, and are on disk when
 * the offset is told that they end at. When all are there the file gets its name at once: nobody
 * sees half of it, and after a kill at any moment it goes on from the offset of then. ID.done stays
 * for a while, so that a client whose last answer was lost learns that it has ended well.
 * All calls block for the disk.
 */
#ifndef AQ_STORAGE_UPLOAD_H
#define AQ_STORAGE_UPLOAD_H

#include <stdint.h>

#include "storage/token.h"

#define UPLOAD_PARTS_MAX 64
#define UPLOAD_SIZE_MAX (INT64_C(1) << 50)
#define UPLOAD_WHOLE (-1) /* the number of what is no part */

struct upload {
    int fd; /* -1 = it has no file: not begun, or has its name already */
    uint64_t offset;
    uint64_t size;  /* where it ends */
    bool is_done;   /* it has its name */
    uint64_t freed; /* bytes of a file whose name it took */
};

/* How far it has come; 'part' is UPLOAD_WHOLE, or a number below UPLOAD_PARTS_MAX, which ends at
 * 'size'. With 'make' its file is there afterwards, unless it is done. aq_closep(&ret->fd).
 */
int upload_open(int root, const struct token *token, int part, uint64_t size, bool make,
                struct upload *ret, struct aq_error *err);

/* -ENOSPC (also for a quota of the file system), -errno; bytes written before the failure count. */
int upload_write(struct upload *upload, const struct token *token, const char *bytes, size_t len,
                 struct aq_error *err);

/* What has come is on disk afterwards, and if that is all, the whole file has its name. */
int upload_sync(int root, const struct token *token, int part, struct upload *upload,
                struct aq_error *err);

/* A part that nobody has: *ret_part. -EBUSY if there are UPLOAD_PARTS_MAX. */
int upload_add_part(int root, const struct token *token, int *ret_part, struct aq_error *err);

struct usage_table;

/* Put parts together, in this order. -EINVAL unless they are the whole. What is more than the
 * parts, as one of them may come twice, is taken of the quota: -EDQUOT.
 */
int upload_join(int root, const struct token *token, const int *parts, size_t count,
                struct usage_table *usage, struct aq_error *err);

/* Forget it, whether it has been begun or not; not the file that has its name. *freed grows by its
 * bytes.
 */
int upload_remove(int root, const struct token *token, uint64_t *freed, struct aq_error *err);

/* Is anything of it there: bytes, or the mark that it is done? */
bool upload_has_begun(int root, const struct token *token);

/* Can it begin: is its path one of a file? -EISDIR, -ENOTDIR, -EINVAL. */
int upload_check(int root, const struct token *token, struct aq_error *err);

/* In all folders of a volume, remove what nobody has touched since then (wall clock, seconds). */
int upload_sweep(const char *volume, int64_t before_sec, struct aq_error *err);

#endif
