/* SPDX-License-Identifier: Apache-2.0 */
/* sealed_file.h - a file that only who knows the passphrase can read
 *
 * "aliquot-backup 2\n", the salt and the cost of the key, then pieces of 64 KiB,
 * each sealed and authenticated (libsodium: argon2id for the key,
 * crypto_secretstream_xchacha20poly1305 for the pieces); the last one is marked,
 * so that a file that was cut is noticed. In the pieces is one zstd frame, of what was
 * written. "aliquot-backup 1\n" is the same without compression, and is read only.
 */
#ifndef AQ_MANAGER_BACKUP_SEALED_FILE_H
#define AQ_MANAGER_BACKUP_SEALED_FILE_H

#include <stddef.h>

#include "base/error.h"

struct sealed_file;

/* Begin to write to the open file, which stays the caller's. */
int sealed_file_create(int fd, const char *passphrase, struct sealed_file **ret,
                       struct aq_error *err);
int sealed_file_write(struct sealed_file *f, const void *bytes, size_t len, struct aq_error *err);
/* The last piece; without it the file cannot be read to its end. */
int sealed_file_finish(struct sealed_file *f, struct aq_error *err);

/* Begin to read. -EBADMSG: no such file. */
int sealed_file_open(int fd, const char *passphrase, struct sealed_file **ret,
                     struct aq_error *err) AQ_UNTRUSTED;
/* Exactly so many bytes; -EBADMSG: the passphrase is wrong, or the file is damaged or cut.
 * However much is asked for, some MiB of memory do.
 */
int sealed_file_read(struct sealed_file *f, void *bytes, size_t len,
                     struct aq_error *err) AQ_UNTRUSTED;
/* Has all been read? 1, or 0; -EBADMSG. */
int sealed_file_is_at_end(struct sealed_file *f, struct aq_error *err);

void sealed_file_free(struct sealed_file *f);
AQ_DEFINE_CLEANUP(struct sealed_file, sealed_file_free)

#endif
