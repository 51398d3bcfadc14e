/* SPDX-License-Identifier: Apache-2.0 */
/* values_file.h - the file that a program writes values by name into (name_values.h)
 *
 * Who starts the program creates the file and keeps it open, and reads that descriptor when the
 * program has ended: what the program puts in its place, such as a link, a FIFO or a device, is
 * never opened.
 */
#ifndef AQ_BASE_VALUES_FILE_H
#define AQ_BASE_VALUES_FILE_H

#include <sys/types.h>

#include "base/name_values.h"

#define VALUES_FILE_READ_MAX \
    (NAME_VALUES_BYTES_MAX + 1) /* the last byte shows that it is too large */

/* Create an empty file that only this user may read and write, in place of what is there; a uid or
 * gid of -1 leaves the caller's. Returns a descriptor, or -errno.
 */
int values_file_create(const char *path, uid_t uid, gid_t gid, struct aq_error *err);

/* Read the file from its beginning: the number of bytes, at most VALUES_FILE_READ_MAX. -ESTALE if
 * 'path' does not name it any more, -errno.
 */
int values_file_read(int fd, const char *path, char bytes[VALUES_FILE_READ_MAX]);

#endif
