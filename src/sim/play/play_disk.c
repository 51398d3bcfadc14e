/* SPDX-License-Identifier: Apache-2.0 */
/* play_disk.c - the VFS: names, locks and shared memory of the files of play_disk_file.h */
#include "sim/play/play_disk.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/vec.h"
#include "sim/play/play_disk_file.h"

#define NAME_MAX_BYTES 512
#define REGIONS_MAX 256

/* SQLite's locks of all connections to one file, and its index of the log. */
struct play_disk_shared {
    int readers, reserved, pending, exclusive; /* holders of SQLITE_LOCK_* or more */
    int shm_shared[SQLITE_SHM_NLOCK], shm_exclusive[SQLITE_SHM_NLOCK];
    void *regions[REGIONS_MAX];
    int users; /* of the regions */
};

struct play_disk_node {
    struct play_disk_node *next;
    simuv_host host;
    char *name;
    bool is_removed;
    int opens;
    struct play_disk_file file;
    struct play_disk_shared shared;
};

struct play_disk_handle {
    sqlite3_file file; /* first */
    struct play_disk_node *node;
    bool is_temporary, has_shm;
    int level; /* SQLITE_LOCK_* */
    uint16_t shm_shared, shm_exclusive;
    int last_errno;
};

struct play_disk {
    struct play_disk_node *nodes;
    double eio, enospc; /* chances */
};

static struct play_disk *disks; /* by host */
static size_t disk_count, disk_cap;

static struct play_disk *play_disk_of(simuv_host host)
{
    if (host >= disk_count) {
        vec_grow(&disks, &disk_cap, host + 1, sizeof(*disks));
        memset(&disks[disk_count], 0, (host + 1 - disk_count) * sizeof(*disks));
        disk_count = host + 1;
    }
    return &disks[host];
}

static struct play_disk_handle *play_disk_handle_of(sqlite3_file *file)
{
    return (struct play_disk_handle *)file;
}

static bool play_disk_fails(struct play_disk_handle *handle, bool writes)
{
    const struct play_disk *disk = play_disk_of(handle->node->host);

    handle->last_errno = 0;
    if (disk->eio > 0 && simuv_chance(disk->eio))
        handle->last_errno = EIO;
    else if (writes && disk->enospc > 0 && simuv_chance(disk->enospc))
        handle->last_errno = ENOSPC;
    return handle->last_errno != 0;
}

static void play_disk_drop(struct play_disk_node *node)
{
    struct play_disk_node **at = &play_disk_of(node->host)->nodes;

    while (*at != node)
        at = &(*at)->next;
    *at = node->next;
    for (int i = 0; i < REGIONS_MAX; i++)
        free(node->shared.regions[i]);
    play_disk_file_done(&node->file);
    free(node->name);
    free(node);
}

/* ---- bytes ---- */

static int play_disk_on_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    const struct play_disk_bytes *now = &handle->node->file.now;
    size_t wanted = (size_t)len, from = (size_t)at;
    size_t there = from < now->len ? AQ_MIN(wanted, now->len - from) : 0;

    if (play_disk_fails(handle, false))
        return SQLITE_IOERR_READ;
    if (there)
        memcpy(bytes, now->data + from, there);
    memset((char *)bytes + there, 0, wanted - there);
    return there == wanted ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int play_disk_on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);

    if (play_disk_fails(handle, true))
        return handle->last_errno == ENOSPC ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    play_disk_file_write(&handle->node->file, bytes, (size_t)len, (size_t)at);
    return SQLITE_OK;
}

static int play_disk_on_truncate(sqlite3_file *file, sqlite3_int64 len)
{
    play_disk_file_truncate(&play_disk_handle_of(file)->node->file, (size_t)len);
    return SQLITE_OK;
}

static int play_disk_on_sync(sqlite3_file *file, int flags)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);

    (void)flags;
    simuv_wait_for_sync();
    if (play_disk_fails(handle, false))
        return SQLITE_IOERR_FSYNC;
    play_disk_file_sync(&handle->node->file);
    simuv_wait_for_sync(); /* before the caller knows */
    return SQLITE_OK;
}

static int play_disk_on_file_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)play_disk_handle_of(file)->node->file.now.len;
    return SQLITE_OK;
}

/* ---- locks: as of sqlite.org/lockingv3.html ---- */

static void play_disk_count_level(struct play_disk_shared *shared, int level, int by)
{
    shared->readers += level >= SQLITE_LOCK_SHARED ? by : 0;
    shared->reserved += level >= SQLITE_LOCK_RESERVED ? by : 0;
    shared->pending += level >= SQLITE_LOCK_PENDING ? by : 0;
    shared->exclusive += level >= SQLITE_LOCK_EXCLUSIVE ? by : 0;
}

static int play_disk_on_lock(sqlite3_file *file, int level)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    struct play_disk_shared *shared = &handle->node->shared;
    bool is_refused;

    if (level <= handle->level)
        return SQLITE_OK;
    play_disk_count_level(shared, handle->level, -1);
    is_refused = shared->pending > 0 || (level >= SQLITE_LOCK_RESERVED && shared->reserved > 0);
    if (!is_refused) {
        bool has_readers = level == SQLITE_LOCK_EXCLUSIVE && shared->readers > 0;

        handle->level = has_readers ? SQLITE_LOCK_PENDING : level;
        is_refused = has_readers;
    }
    play_disk_count_level(shared, handle->level, 1);
    return is_refused ? SQLITE_BUSY : SQLITE_OK;
}

static int play_disk_on_unlock(sqlite3_file *file, int level)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);

    play_disk_count_level(&handle->node->shared, handle->level, -1);
    handle->level = AQ_MIN(level, handle->level);
    play_disk_count_level(&handle->node->shared, handle->level, 1);
    return SQLITE_OK;
}

static int play_disk_on_check_lock(sqlite3_file *file, int *ret)
{
    *ret = play_disk_handle_of(file)->node->shared.reserved > 0;
    return SQLITE_OK;
}

/* ---- the index of the log ---- */

static int play_disk_on_shm_map(sqlite3_file *file, int at, int size, int may_extend,
                                void volatile **ret)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    struct play_disk_shared *shared = &handle->node->shared;

    *ret = NULL;
    if (at >= REGIONS_MAX)
        return SQLITE_IOERR_SHMMAP;
    shared->users += !handle->has_shm;
    handle->has_shm = true;
    if (!shared->regions[at] && may_extend)
        shared->regions[at] = aq_alloc((size_t)size); /* zeroes */
    *ret = shared->regions[at];
    return SQLITE_OK;
}

static bool play_disk_may_lock_shm(const struct play_disk_handle *handle, int at, bool is_exclusive)
{
    const struct play_disk_shared *shared = &handle->node->shared;
    uint16_t bit = (uint16_t)(1u << at);
    int others = shared->shm_exclusive[at] - !!(handle->shm_exclusive & bit);

    if (is_exclusive)
        others += shared->shm_shared[at] - !!(handle->shm_shared & bit);
    return others == 0;
}

static void play_disk_set_shm(struct play_disk_handle *handle, int at, bool is_exclusive, bool on)
{
    struct play_disk_shared *shared = &handle->node->shared;
    int *count = is_exclusive ? &shared->shm_exclusive[at] : &shared->shm_shared[at];
    uint16_t *mine = is_exclusive ? &handle->shm_exclusive : &handle->shm_shared;
    uint16_t bit = (uint16_t)(1u << at);

    if (on == !!(*mine & bit))
        return;
    *mine ^= bit;
    *count += on ? 1 : -1;
}

static int play_disk_on_shm_lock(sqlite3_file *file, int at, int count, int flags)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    bool is_exclusive = flags & SQLITE_SHM_EXCLUSIVE, on = flags & SQLITE_SHM_LOCK;

    for (int i = at; on && i < at + count; i++)
        if (!play_disk_may_lock_shm(handle, i, is_exclusive))
            return SQLITE_BUSY;
    for (int i = at; i < at + count; i++)
        play_disk_set_shm(handle, i, is_exclusive, on);
    return SQLITE_OK;
}

static void play_disk_on_shm_barrier(sqlite3_file *file)
{
    (void)file; /* one thread runs at a time */
}

static int play_disk_on_shm_unmap(sqlite3_file *file, int removes)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    struct play_disk_shared *shared = &handle->node->shared;

    if (!handle->has_shm)
        return SQLITE_OK;
    for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
        play_disk_set_shm(handle, i, false, false);
        play_disk_set_shm(handle, i, true, false);
    }
    handle->has_shm = false;
    shared->users--;
    for (int i = 0; removes && shared->users == 0 && i < REGIONS_MAX; i++) {
        free(shared->regions[i]);
        shared->regions[i] = NULL;
    }
    return SQLITE_OK;
}

/* ---- the rest of a file ---- */

static int play_disk_on_close(sqlite3_file *file)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    struct play_disk_node *node = handle->node;

    (void)play_disk_on_shm_unmap(file, 0);
    (void)play_disk_on_unlock(file, SQLITE_LOCK_NONE);
    node->opens--;
    if (node->opens == 0 && (node->is_removed || handle->is_temporary))
        play_disk_drop(node);
    return SQLITE_OK;
}

static int play_disk_on_control(sqlite3_file *file, int what, void *data)
{
    if (what != SQLITE_FCNTL_LAST_ERRNO)
        return SQLITE_NOTFOUND;
    *(int *)data = play_disk_handle_of(file)->last_errno;
    return SQLITE_OK;
}

static int play_disk_on_sector_size(sqlite3_file *file)
{
    (void)file;
    return 512;
}

static int play_disk_on_characteristics(sqlite3_file *file)
{
    (void)file;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods play_disk_methods = {
    .iVersion = 2,
    .xClose = play_disk_on_close,
    .xRead = play_disk_on_read,
    .xWrite = play_disk_on_write,
    .xTruncate = play_disk_on_truncate,
    .xSync = play_disk_on_sync,
    .xFileSize = play_disk_on_file_size,
    .xLock = play_disk_on_lock,
    .xUnlock = play_disk_on_unlock,
    .xCheckReservedLock = play_disk_on_check_lock,
    .xFileControl = play_disk_on_control,
    .xSectorSize = play_disk_on_sector_size,
    .xDeviceCharacteristics = play_disk_on_characteristics,
    .xShmMap = play_disk_on_shm_map,
    .xShmLock = play_disk_on_shm_lock,
    .xShmBarrier = play_disk_on_shm_barrier,
    .xShmUnmap = play_disk_on_shm_unmap,
};

/* ---- names ---- */

static struct play_disk_node *play_disk_find(const char *name)
{
    struct play_disk_node *node = play_disk_of(simuv_current_host())->nodes;

    for (; node && name; node = node->next)
        if (!node->is_removed && strcmp(node->name, name) == 0)
            return node;
    return NULL;
}

static int play_disk_on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                             int *ret_flags)
{
    struct play_disk_handle *handle = play_disk_handle_of(file);
    struct play_disk_node *node = play_disk_find(name);

    (void)vfs;
    *handle = (struct play_disk_handle){ .is_temporary = !name };
    if (!node && name && !(flags & SQLITE_OPEN_CREATE))
        return SQLITE_CANTOPEN;
    if (!node) {
        struct play_disk *disk = play_disk_of(simuv_current_host());

        node = aq_alloc(sizeof(*node));
        *node = (struct play_disk_node){ .next = disk->nodes,
                                         .host = simuv_current_host(),
                                         .name = aq_strdup(name ? name : "") };
        disk->nodes = node;
    }
    node->opens++;
    handle->node = node;
    handle->file.pMethods = &play_disk_methods;
    if (ret_flags)
        *ret_flags = flags;
    return SQLITE_OK;
}

static int play_disk_on_delete(sqlite3_vfs *vfs, const char *name, int syncs)
{
    struct play_disk_node *node = play_disk_find(name);

    (void)vfs;
    (void)syncs;
    if (!node)
        return SQLITE_IOERR_DELETE_NOENT;
    node->is_removed = true;
    if (node->opens == 0)
        play_disk_drop(node);
    return SQLITE_OK;
}

static int play_disk_on_access(sqlite3_vfs *vfs, const char *name, int flags, int *ret)
{
    const struct play_disk_node *node = play_disk_find(name);

    (void)vfs;
    *ret = node && (flags != SQLITE_ACCESS_EXISTS || node->file.now.len > 0);
    return SQLITE_OK;
}

static int play_disk_on_full_name(sqlite3_vfs *vfs, const char *name, int size, char *ret)
{
    (void)vfs;
    return snprintf(ret, (size_t)size, "%s", name) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

/* Salts of logs and names of temporary files: different, but the same in each run. */
static int play_disk_on_randomness(sqlite3_vfs *vfs, int len, char *ret)
{
    static uint64_t state = 1;

    (void)vfs;
    for (int i = 0; i < len; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ret[i] = (char)(state >> 56);
    }
    return len;
}

/* Others run meanwhile. */
static int play_disk_on_sleep(sqlite3_vfs *vfs, int usec)
{
    (void)vfs;
    (void)usleep((useconds_t)usec);
    return usec;
}

void play_disk_register(void)
{
    static sqlite3_vfs vfs;
    const sqlite3_vfs *usual = sqlite3_vfs_find(NULL); /* initialises the library */

    vfs = *usual;
    vfs.pNext = NULL;
    vfs.zName = "play";
    vfs.szOsFile = (int)sizeof(struct play_disk_handle);
    vfs.mxPathname = NAME_MAX_BYTES;
    vfs.xOpen = play_disk_on_open;
    vfs.xDelete = play_disk_on_delete;
    vfs.xAccess = play_disk_on_access;
    vfs.xFullPathname = play_disk_on_full_name;
    vfs.xRandomness = play_disk_on_randomness;
    vfs.xSleep = play_disk_on_sleep;
    (void)sqlite3_vfs_register(&vfs, 1);
}

void play_disk_crash(simuv_host host)
{
    struct play_disk_node *next;

    for (struct play_disk_node *node = play_disk_of(host)->nodes; node; node = next) {
        next = node->next;
        node->opens = 0;
        if (node->is_removed || node->name[0] == '\0') {
            play_disk_drop(node);
            continue;
        }
        play_disk_file_crash(&node->file);
        for (int i = 0; i < REGIONS_MAX; i++)
            free(node->shared.regions[i]);
        node->shared = (struct play_disk_shared){ .users = 0 };
    }
}

void play_disk_set_faults(simuv_host host, double eio, double enospc)
{
    struct play_disk *disk = play_disk_of(host);

    disk->eio = eio;
    disk->enospc = enospc;
}
