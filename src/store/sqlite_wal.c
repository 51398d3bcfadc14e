/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's write-ahead log, written in few pieces. */
#include "store/sqlite_wal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fs.h"
#include "base/memory.h"

#define JOIN_MAX 65536 /* bytes that are written at once at most */

struct wal_file {
    sqlite3_file file;   /* first */
    sqlite3_file *below; /* without methods until the file could be created */
    sqlite3_vfs *usual;
    const char *name; /* SQLite's */
    int flags;
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

bool sqlite_wal_has_room_for(const char *path)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    return fd >= 0 || !fs_is_out_of_room(errno);
}

/* False, and 'ret' what to answer, if the log is not there yet. */
static bool sqlite_wal_is_there(sqlite3_file *file, int without, int *ret)
{
    struct wal_file *wal = sqlite_wal_of(file);

    *ret = without;
    if (wal->below->pMethods)
        return true;
    if (!sqlite_wal_has_room_for(wal->name))
        return false;
    *ret = wal->usual->xOpen(wal->usual, wal->name, wal->below, wal->flags, NULL);
    return *ret == SQLITE_OK;
}

/* SQLite reports a quota, and a file system that became read-only, as an I/O error. A commit that
 * fails with one loses its errno, so they become the codes of a full disk and a read-only database.
 */
static int sqlite_wal_judge(sqlite3_file *below, int r)
{
    int cause = 0;

    if ((r & 0xff) == SQLITE_IOERR)
        (void)below->pMethods->xFileControl(below, SQLITE_FCNTL_LAST_ERRNO, &cause);
    return cause == EDQUOT ? SQLITE_FULL : cause == EROFS ? SQLITE_READONLY : r;
}

static int sqlite_wal_write_below(sqlite3_file *below, const void *bytes, int len, sqlite3_int64 at)
{
    return sqlite_wal_judge(below, below->pMethods->xWrite(below, bytes, len, at));
}

/* What cannot be written is given up: SQLite gives the commit up, too. */
static int sqlite_wal_flush(sqlite3_file *file)
{
    struct wal_file *wal = sqlite_wal_of(file);
    int len = wal->len;

    wal->len = 0;
    return len ? sqlite_wal_write_below(wal->below, wal->bytes, len, wal->at) : SQLITE_OK;
}

static int sqlite_wal_on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct wal_file *wal = sqlite_wal_of(file);
    int r;

    if (!sqlite_wal_is_there(file, SQLITE_FULL, &r))
        return r;
    r = SQLITE_OK;
    if (at != wal->at + wal->len || len > JOIN_MAX - wal->len)
        r = sqlite_wal_flush(file);
    if (r != SQLITE_OK)
        return r;
    if (!wal->bytes)
        wal->bytes = aq_alloc(JOIN_MAX);
    if (len > JOIN_MAX)
        return sqlite_wal_write_below(wal->below, bytes, len, at);
    if (wal->len == 0)
        wal->at = at;
    memcpy(wal->bytes + wal->len, bytes, (size_t)len);
    wal->len += len;
    return SQLITE_OK;
}

static int sqlite_wal_on_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    int r;

    if (!sqlite_wal_is_there(file, SQLITE_IOERR_SHORT_READ, &r)) {
        memset(bytes, 0, (size_t)len);
        return r;
    }
    r = sqlite_wal_flush(file);
    return r == SQLITE_OK
               ? sqlite_wal_below(file)->pMethods->xRead(sqlite_wal_below(file), bytes, len, at)
               : r;
}

static int sqlite_wal_on_sync(sqlite3_file *file, int flags)
{
    sqlite3_file *below = sqlite_wal_below(file);
    int r;

    if (!sqlite_wal_is_there(file, SQLITE_OK, &r))
        return r;
    r = sqlite_wal_flush(file);
    return r == SQLITE_OK ? sqlite_wal_judge(below, below->pMethods->xSync(below, flags)) : r;
}

static int sqlite_wal_on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int r;

    if (!sqlite_wal_is_there(file, SQLITE_OK, &r))
        return r;
    r = sqlite_wal_flush(file);
    return r == SQLITE_OK
               ? sqlite_wal_below(file)->pMethods->xTruncate(sqlite_wal_below(file), size)
               : r;
}

static int sqlite_wal_on_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    int r;

    *ret = 0;
    if (!sqlite_wal_is_there(file, SQLITE_OK, &r))
        return r;
    r = sqlite_wal_flush(file);
    return r == SQLITE_OK ? sqlite_wal_below(file)->pMethods->xFileSize(sqlite_wal_below(file), ret)
                          : r;
}

static int sqlite_wal_on_close(sqlite3_file *file)
{
    sqlite3_file *below = sqlite_wal_below(file);
    int written = sqlite_wal_flush(file),
        r = below->pMethods ? below->pMethods->xClose(below) : SQLITE_OK;

    free(sqlite_wal_of(file)->bytes);
    return written == SQLITE_OK ? r : written;
}

/* ---- passed on; locks are never taken on a log ---- */

static int sqlite_wal_on_lock(sqlite3_file *file, int level)
{
    (void)file;
    (void)level;
    return SQLITE_OK;
}

static int sqlite_wal_on_check_lock(sqlite3_file *file, int *ret)
{
    (void)file;
    *ret = 0;
    return SQLITE_OK;
}

static int sqlite_wal_on_control(sqlite3_file *file, int what, void *data)
{
    sqlite3_file *below = sqlite_wal_below(file);

    return below->pMethods ? below->pMethods->xFileControl(below, what, data) : SQLITE_NOTFOUND;
}

static int sqlite_wal_on_sector_size(sqlite3_file *file)
{
    sqlite3_file *below = sqlite_wal_below(file);

    return below->pMethods ? below->pMethods->xSectorSize(below) : 0;
}

static int sqlite_wal_on_characteristics(sqlite3_file *file)
{
    sqlite3_file *below = sqlite_wal_below(file);

    return below->pMethods ? below->pMethods->xDeviceCharacteristics(below) : 0;
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
    .xUnlock = sqlite_wal_on_lock,
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
    *wal = (struct wal_file){
        .below = (sqlite3_file *)(void *)(wal + 1), .usual = usual, .name = name, .flags = flags
    };
    r = usual->xOpen(usual, name, wal->below, flags, ret_flags);
    if (r != SQLITE_OK && !sqlite_wal_has_room_for(name)) {
        wal->below->pMethods = NULL;
        r = SQLITE_OK;
    }
    if (r == SQLITE_OK)
        wal->file.pMethods = &wal_methods;
    return r;
}

static struct wal_layer {
    const char *name, *above; /* NULL = SQLite's default */
    sqlite3_vfs layer;
    int registered;
} wal_layers[] = { { .name = "aliquot", .registered = SQLITE_ERROR },
                   { .name = "aliquot-excl", .above = "unix-excl", .registered = SQLITE_ERROR },
                   { .name = "aliquot-none", .above = "unix-none", .registered = SQLITE_ERROR } };

static void sqlite_wal_register_layers(void)
{
    for (size_t i = 0; i < AQ_COUNT(wal_layers); i++) {
        struct wal_layer *wal = &wal_layers[i];
        sqlite3_vfs *usual = sqlite3_vfs_find(wal->above); /* initialises the library */

        if (!usual)
            continue;
        wal->layer = *usual;
        wal->layer.zName = wal->name;
        wal->layer.pNext = NULL;
        wal->layer.pAppData = usual;
        wal->layer.szOsFile += (int)sizeof(struct wal_file);
        wal->layer.xOpen = sqlite_wal_on_open;
        wal->registered = sqlite3_vfs_register(&wal->layer, 0);
    }
}

static const char *sqlite_wal_find_layer(size_t i)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, sqlite_wal_register_layers);
    return wal_layers[i].registered == SQLITE_OK ? wal_layers[i].name : NULL;
}

const char *sqlite_wal_layer(void)
{
    return sqlite_wal_find_layer(0);
}

const char *sqlite_wal_exclusive_layer(void)
{
    return sqlite_wal_find_layer(1);
}

const char *sqlite_wal_frozen_layer(void)
{
    return sqlite_wal_find_layer(2);
}
