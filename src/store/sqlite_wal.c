/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's write-ahead log, written in few pieces. */
#include "store/sqlite_wal.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define LAYER "aliquot"
#define JOIN_MAX 65536 /* bytes that are written at once at most */

struct wal_file {
    sqlite3_file file; /* first */
    sqlite3_file *below;
    sqlite3_int64 at; /* where the first of 'len' bytes belongs */
    int len;
    char *bytes; /* JOIN_MAX, or NULL as long as nothing was written */
};

static struct wal_file *sqlite_wal_of(sqlite3_file *file)
{
    return (struct wal_file *)file;
}

static sqlite3_file *sqlite_wal_below(sqlite3_file *file)
{
    return sqlite_wal_of(file)->below;
}

/* What cannot be written is given up: SQLite gives the commit up, too. */
static int sqlite_wal_flush(sqlite3_file *file)
{
    struct wal_file *wal = sqlite_wal_of(file);
    int len = wal->len;

    wal->len = 0;
    return len ? wal->below->pMethods->xWrite(wal->below, wal->bytes, len, wal->at) : SQLITE_OK;
}

static int sqlite_wal_on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct wal_file *wal = sqlite_wal_of(file);
    int r = SQLITE_OK;

    if (at != wal->at + wal->len || len > JOIN_MAX - wal->len)
        r = sqlite_wal_flush(file);
    if (r != SQLITE_OK)
        return r;
    if (!wal->bytes && !(wal->bytes = malloc(JOIN_MAX)))
        return SQLITE_IOERR_NOMEM;
    if (len > JOIN_MAX)
        return wal->below->pMethods->xWrite(wal->below, bytes, len, at);
    if (wal->len == 0)
        wal->at = at;
    memcpy(wal->bytes + wal->len, bytes, (size_t)len);
    wal->len += len;
    return SQLITE_OK;
}

static int sqlite_wal_on_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    int r = sqlite_wal_flush(file);

    return r == SQLITE_OK
               ? sqlite_wal_below(file)->pMethods->xRead(sqlite_wal_below(file), bytes, len, at)
               : r;
}

static int sqlite_wal_on_sync(sqlite3_file *file, int flags)
{
    int r = sqlite_wal_flush(file);

    return r == SQLITE_OK ? sqlite_wal_below(file)->pMethods->xSync(sqlite_wal_below(file), flags)
                          : r;
}

static int sqlite_wal_on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int r = sqlite_wal_flush(file);

    return r == SQLITE_OK
               ? sqlite_wal_below(file)->pMethods->xTruncate(sqlite_wal_below(file), size)
               : r;
}

static int sqlite_wal_on_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    int r = sqlite_wal_flush(file);

    return r == SQLITE_OK ? sqlite_wal_below(file)->pMethods->xFileSize(sqlite_wal_below(file), ret)
                          : r;
}

static int sqlite_wal_on_close(sqlite3_file *file)
{
    int written = sqlite_wal_flush(file),
        r = sqlite_wal_below(file)->pMethods->xClose(sqlite_wal_below(file));

    free(sqlite_wal_of(file)->bytes);
    return written == SQLITE_OK ? r : written;
}

/* ---- passed on; locks are never taken on a log ---- */

static int sqlite_wal_on_lock(sqlite3_file *file, int level)
{
    return sqlite_wal_below(file)->pMethods->xLock(sqlite_wal_below(file), level);
}

static int sqlite_wal_on_unlock(sqlite3_file *file, int level)
{
    return sqlite_wal_below(file)->pMethods->xUnlock(sqlite_wal_below(file), level);
}

static int sqlite_wal_on_check_lock(sqlite3_file *file, int *ret)
{
    return sqlite_wal_below(file)->pMethods->xCheckReservedLock(sqlite_wal_below(file), ret);
}

static int sqlite_wal_on_control(sqlite3_file *file, int what, void *data)
{
    return sqlite_wal_below(file)->pMethods->xFileControl(sqlite_wal_below(file), what, data);
}

static int sqlite_wal_on_sector_size(sqlite3_file *file)
{
    return sqlite_wal_below(file)->pMethods->xSectorSize(sqlite_wal_below(file));
}

static int sqlite_wal_on_characteristics(sqlite3_file *file)
{
    return sqlite_wal_below(file)->pMethods->xDeviceCharacteristics(sqlite_wal_below(file));
}

static const sqlite3_io_methods wal_methods = {
    .iVersion = 1,
    .xClose = sqlite_wal_on_close,
    .xRead = sqlite_wal_on_read,
    .xWrite = sqlite_wal_on_write,
    .xTruncate = sqlite_wal_on_truncate,
    .xSync = sqlite_wal_on_sync,
    .xFileSize = sqlite_wal_on_file_size,
    .xLock = sqlite_wal_on_lock,
    .xUnlock = sqlite_wal_on_unlock,
    .xCheckReservedLock = sqlite_wal_on_check_lock,
    .xFileControl = sqlite_wal_on_control,
    .xSectorSize = sqlite_wal_on_sector_size,
    .xDeviceCharacteristics = sqlite_wal_on_characteristics,
};

/* ---- the layer ---- */

static int sqlite_wal_on_open(sqlite3_vfs *layer, const char *name, sqlite3_file *file, int flags,
                              int *ret_flags)
{
    sqlite3_vfs *usual = layer->pAppData;
    struct wal_file *wal = sqlite_wal_of(file);
    int r;

    if (!(flags & SQLITE_OPEN_WAL))
        return usual->xOpen(usual, name, file, flags, ret_flags);
    *wal = (struct wal_file){ .below = (sqlite3_file *)(void *)(wal + 1) };
    r = usual->xOpen(usual, name, wal->below, flags, ret_flags);
    if (r == SQLITE_OK)
        wal->file.pMethods = &wal_methods;
    return r;
}

static sqlite3_vfs wal_layer;
static int registered = SQLITE_ERROR;

static void sqlite_wal_register_layer(void)
{
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL); /* initialises the library */

    if (!usual)
        return;
    wal_layer = *usual;
    wal_layer.zName = LAYER;
    wal_layer.pNext = NULL;
    wal_layer.pAppData = usual;
    wal_layer.szOsFile += (int)sizeof(struct wal_file);
    wal_layer.xOpen = sqlite_wal_on_open;
    registered = sqlite3_vfs_register(&wal_layer, 0);
}

const char *sqlite_wal_layer(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, sqlite_wal_register_layer);
    return registered == SQLITE_OK ? LAYER : NULL;
}
