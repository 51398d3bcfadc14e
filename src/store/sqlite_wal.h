/* SPDX-License-Identifier: Apache-2.0 */
/* sqlite_wal.h - SQLite's write-ahead log, written in few pieces
 *
 * SQLite writes a commit to its log page by page, and each page with its
 * header as two writes: some forty small ones for a handful of rows. This
 * layer between SQLite and the operating system joins writes that follow one
 * another and passes them on before the file is synced, read or closed, which
 * is when anybody else may look at them: other connections read a commit only
 * after it was synced. All other files are left to SQLite's own layer.
 */
#ifndef AQ_STORE_SQLITE_WAL_H
#define AQ_STORE_SQLITE_WAL_H

/* The name of the layer for sqlite3_open_v2(), registered at the first call;
 * NULL, which is SQLite's own, if memory is short.
 */
const char *sqlite_wal_layer(void);

#endif
