/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_wal.h - SQLite's write-ahead log, written in few pieces
 *
 * SQLite writes a commit to its log page by page, and each page with its
 * header as two writes: some forty small ones for a handful of rows. This
 * layer between SQLite and the operating system joins writes that follow one
 * another and passes them on before the file is synced, read or closed, which
 * is when anybody else may look at them: other connections read a commit only
 * after it was synced. All other files are left to SQLite's own layer.
 *
 * A log that cannot be made because the file system is full, over a quota, out of inodes or
 * read-only reads as an empty one, and writing fails with SQLITE_FULL: what the database's own
 * file has can be served. Each use tries to make it again.
 */
#ifndef AQ_STORE_SQLITE_WAL_H
#define AQ_STORE_SQLITE_WAL_H

#include <stdbool.h>

/* The name of the layer for sqlite3_open_v2(), registered at the first call;
 * NULL, which is SQLite's own, if memory is short.
 */
const char *sqlite_wal_layer(void);

/* The same above "unix-excl": the index of the log is in this process's memory, and SQLite's lock
 * keeps other processes out of the database for as long as the connection lives. Connections of
 * sqlite_wal_layer() that this process opens meanwhile share the index.
 */
const char *sqlite_wal_exclusive_layer(void);

/* The same above "unix-none", which takes no locks: for a file that nothing can write to. With
 * locking_mode=EXCLUSIVE each connection has an index of its own in memory.
 */
const char *sqlite_wal_frozen_layer(void);

/* Make the file at 'path' unless it is there: false if the file system has no room for it. Any
 * other failure counts as true: opening it says more.
 */
bool sqlite_wal_has_room_for(const char *path);

#endif
