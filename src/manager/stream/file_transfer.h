/* SPDX-License-Identifier: Apache-2.0 */
/* file_transfer.h - files into or out of a kernel's container, over a link stream to its agent
 *
 * What is done is runner/files.h's: a verb and paths, bytes out, bytes in. Those in come from a
 * pump, of which it is the kernel's end (command_stream.h). The loop's thread; callbacks never
 * come from within a call, and may free the transfer.
 */
#ifndef AQ_MANAGER_STREAM_FILE_TRANSFER_H
#define AQ_MANAGER_STREAM_FILE_TRANSFER_H

#include "base/pump.h"
#include "manager/call/api.h"

struct file_transfer;

struct file_transfer_ops {
    void (*on_open)(void *data); /* the agent has connected; may be NULL */
    void (*on_output)(void *data, const char *bytes, size_t len); /* may be NULL */
    /* Once, and last; then file_transfer_free(). 'err' NULL = all was done. Else it names the
     * file, and its kind is a slug of problem.h.
     */
    void (*on_end)(void *data, const struct aq_error *err);
};

/* -EINVAL for a kernel that does not run, -ENOTCONN if its agent is away. */
int file_transfer_open(struct api *api, const struct kernel *kernel, const char *verb,
                       const char *const *paths, size_t count, struct pump *pump,
                       const struct file_transfer_ops *ops, void *data, struct file_transfer **ret,
                       struct aq_error *err);

/* What is under way breaks off, and no half file stays. NULL is fine. */
void file_transfer_free(struct file_transfer *transfer);

#endif
