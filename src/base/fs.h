/* SPDX-License-Identifier: Apache-2.0 */
/* fs.h - files and directories: whole reads with a limit, writes that survive a crash */
#ifndef AQ_BASE_FS_H
#define AQ_BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

/* Append the whole file at 'path' below 'dirfd' (AT_FDCWD = the working
 * directory) to 'out'. -EFBIG past 'limit' bytes, -ENOENT etc. from open(2).
 */
int fs_read(int dirfd, const char *path, size_t limit, struct strbuf *out, struct aq_error *err);

/* The same of what is left of an open file, socket or pipe; errors call it 'name'. */
int fs_read_fd(int fd, const char *name, size_t limit, struct strbuf *out, struct aq_error *err);

/* The umask of this process, which is only read: umask(2) would change it for all threads
 * meanwhile. 022 where /proc is not mounted. Any thread.
 */
mode_t fs_umask(void);

/* Bytes that are freed when 'name' in the directory 'folder' is removed or replaced: those of a
 * regular file without another hard link, else 0. Any thread.
 */
uint64_t fs_size_freed(int folder, const char *name);

/* Is 'code', a positive errno, that of a file system that takes no more: full, over a quota or
 * read-only? What fails with it may succeed later without a change of settings.
 */
bool fs_is_out_of_room(int code);

/* The same without read-only: ENOSPC or EDQUOT. */
bool fs_is_full(int code);

/* strerror(), or for fs_is_out_of_room() the state of the file system and the remedy. Any thread.
 */
const char *fs_explain(int code);

/* Replace the file: temporary file, fsync, rename, fsync of the directory.
 * After success the new contents survive a power failure; after failure the
 * old ones are untouched.
 */
int fs_write_atomic(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                    struct aq_error *err);

/* The same without waiting for the disk: every reader sees the old or the new
 * contents, whichever process dies; after a power failure they may be gone.
 */
int fs_write_quick(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                   struct aq_error *err);

/* Overwrite a file that nobody reads meanwhile, or make it. It keeps its inode
 * and blocks, which some file systems are slow to release and allocate again; a process
 * that dies in between leaves half of it.
 */
int fs_overwrite(int dirfd, const char *path, const void *bytes, size_t len, mode_t mode,
                 struct aq_error *err);

/* Wait until the name of a file that was made, renamed or removed is on disk. */
int fs_sync_parent(int dirfd, const char *path, struct aq_error *err);

/* mkdir -p with 'mode' for what is new. */
int fs_mkdirs(const char *path, mode_t mode, struct aq_error *err);

/* Remove a file or a whole tree; nothing there is fine. Never follows a
 * symbolic link, never leaves the tree.
 */
int fs_remove_tree(int dirfd, const char *path, struct aq_error *err);

/* The deepest directory of an absolute path that exists. Caller frees; NULL = no memory. */
char *fs_find_existing(const char *path);

/* Remove the empty directories from 'path' upwards, down to below 'kept' (of
 * fs_find_existing() before they were made).
 */
void fs_remove_folders(const char *path, const char *kept);

/* All of it or -errno, EINTR and short writes handled. */
int fs_write_all(int fd, const void *bytes, size_t len);

/* Write at *offset, from where on the file has no data yet, and leave blocks of zeros out: they
 * stay holes, and the file ends behind them all the same. *offset grows by what the file has then,
 * after a failure, too. 0 or -errno. Any thread.
 */
int fs_write_sparse(int fd, const void *bytes, size_t len, uint64_t *offset);

/* Give an open file to a user if that is possible; a file from outside of the
 * user namespace keeps its owner.
 */
void fs_try_chown(int fd, uid_t uid);

/* $ALIQUOT_STATE_DIR, or /var/lib/aliquot for root, or
 * $XDG_STATE_HOME/aliquot (~/.local/state/aliquot; without HOME, the home of the user
 * database). Caller frees.
 */
char *fs_state_dir(void);

/* $XDG_CONFIG_HOME/aliquot (~/.config/aliquot). Caller frees. */
char *fs_user_config_dir(void);

/* $XDG_CACHE_HOME/aliquot (~/.cache/aliquot). Caller frees. */
char *fs_user_cache_dir(void);

/* $HOME/NAME, without HOME as the user database has it. Caller frees. */
char *fs_user_file(const char *name);

/* The directory of the running program, from /proc/self/exe. Caller frees. */
char *fs_program_dir(void);

#endif
