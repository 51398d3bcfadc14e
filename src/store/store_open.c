/* SPDX-License-Identifier: Apache-2.0 */
/* store_open.c - what opening a database takes */
#include "store/store_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/lease_keeper.h"
#include "store/lineage.h"
#include "store/migrate.h"
#include "store/setting.h"

#define WRITER_CACHE_BYTES ((size_t)1 << 20)
/* After an unclean end every page is checked, unless that takes too long. */
#define CHECK_FILE_MAX_BYTES ((off_t)64 << 20)

/* A byte beyond those that SQLite locks. */
#define FILE_LOCK_AT ((off_t)0x40000000 + 65536)
/* One length, so that writing on a full disk needs no block that the file does not have. */
#define LOCK_MARK_MAX 32
#define LOCK_MARK_FORMAT "%-30s\n"
#define LOCK_CLEAN "clean end"

/* ---- locks ----
 *
 * Two locks keep a second manager out, each for as long as this process lives: one on the file
 * PATH.lock, and one on a byte of the database itself, which is all there is if the disk has no
 * room for PATH.lock. Both are always tried, so that it does not matter which of two managers
 * found room. PATH.lock also has the owner's process id, and LOCK_CLEAN after an orderly end:
 * a start that finds anything else, or nothing, checks the database's pages. If the disk is too
 * full to replace LOCK_CLEAN, the file is emptied.
 *
 * A file system that is read-only (as ext4 becomes after an error, with files still open for
 * writing) shows in the first write, to PATH.lock. The database is frozen then: it is read without
 * SQLite's locks and without an index of the log on disk, until the manager opens it again.
 */

static int store_open_mark_lock(int fd, const char *text)
{
    char mark[LOCK_MARK_MAX];
    int len = snprintf(mark, sizeof(mark), LOCK_MARK_FORMAT, text);
    int r = pwrite(fd, mark, (size_t)len, 0) == len ? 0 : -errno;

    return r == 0 || ftruncate(fd, 0) < 0 ? r : 0;
}

void store_open_mark_clean(struct store *st)
{
    if (st->lock_fd >= 0)
        (void)store_open_mark_lock(st->lock_fd, LOCK_CLEAN);
}

static int store_open_fail_taken(const struct store *st, const char *mark, struct aq_error *err)
{
    char owner[64] = "another process";

    if (atol(mark) > 0)
        (void)snprintf(owner, sizeof(owner), "process %ld", atol(mark));
    return aq_fail(err, EBUSY,
                   "%s has the database '%s' open; stop it first, or "
                   "give this one another --state folder",
                   owner, st->where);
}

static int store_open_take_lock(struct store *st, bool *ret_was_unclean, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s.lock", st->where);
    char mark[LOCK_MARK_MAX] = "", pid[24];
    int r;

    *ret_was_unclean = true;
    st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (st->lock_fd < 0 && errno == EROFS) {
        st->is_frozen = true;
        st->lock_fd = open(path, O_RDONLY | O_CLOEXEC);
        errno = EROFS;
    }
    if (st->lock_fd < 0 && fs_is_out_of_room(errno))
        return 0; /* store_open_lock_file() keeps others out */
    if (st->lock_fd < 0)
        return aq_fail_errno(err, "open '%s'", path);
    (void)!pread(st->lock_fd, mark, sizeof(mark) - 1, 0);
    if (flock(st->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return store_open_fail_taken(st, mark, err);
    *ret_was_unclean = strncmp(mark, LOCK_CLEAN, strlen(LOCK_CLEAN)) != 0;
    (void)snprintf(pid, sizeof(pid), "%ld", (long)getpid());
    r = st->is_frozen ? 0 : store_open_mark_lock(st->lock_fd, pid);
    st->is_frozen |= r == -EROFS;
    return r == 0 || fs_is_out_of_room(-r) ? 0
                                           : aq_fail(err, -r, "write '%s': %s", path, strerror(-r));
}

static int store_open_make_folder(const char *path, struct aq_error *err)
{
    const char *slash = strrchr(path, '/');
    AQ_CLEANUP(aq_freep) char *folder = slash && slash > path
                                            ? aq_strndup(path, (size_t)(slash - path))
                                            : aq_strdup(".");

    return fs_mkdirs(folder, 0700, err);
}

/* Make the file, so that it is nobody else's to read, lock it, and tell how large it is. It
 * stays open until SQLite has closed it: closing it sooner would drop SQLite's own locks.
 */
static int store_open_lock_file(struct store *st, off_t *ret_size, struct aq_error *err)
{
    struct flock lock = { .l_type = st->is_frozen ? F_RDLCK : F_WRLCK,
                          .l_start = FILE_LOCK_AT,
                          .l_len = 1 };
    struct stat file;

    st->file_lock_fd = open(
        st->where, st->is_frozen ? O_RDONLY | O_CLOEXEC : O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (st->file_lock_fd < 0 && st->is_frozen)
        return aq_fail(err, EROFS,
                       "the database '%s' cannot be made on a file system that is mounted "
                       "read-only; remount it writable",
                       st->where);
    if (st->file_lock_fd < 0 || fstat(st->file_lock_fd, &file) < 0)
        return aq_fail_errno(err, "open the database '%s'", st->where);
    *ret_size = file.st_size;
    if (fcntl(st->file_lock_fd, F_OFD_SETLK, &lock) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES ? store_open_fail_taken(st, "", err)
                                              : aq_fail_errno(err, "lock '%s'", st->where);
}

static int store_open_check_file(struct store *st, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    int r = st->tx.db->ops->audit(st->tx.db, &findings, err);

    if (r <= 0)
        return r;
    return aq_fail(err, EUCLEAN,
                   "the database '%s' is damaged: %.160s: restore a backup, or "
                   "salvage it with sqlite3's .recover",
                   st->where, findings.data);
}

/* A sealed constant in the database tells at once whether the key fits. */
static const char store_open_key_word[] = "aliquot";
#define STORE_OPEN_SEALED_SIZE (sizeof(store_open_key_word) + SEAL_OVERHEAD)

static int store_open_note_key(struct store_tx *tx, struct aq_error *err)
{
    unsigned char sealed[STORE_OPEN_SEALED_SIZE];
    char hex[2 * sizeof(sealed) + 1];
    int r = seal_close(tx->seal, "seal.check", store_open_key_word, sizeof(store_open_key_word),
                       sealed, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(sealed); i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", sealed[i]);
    return setting_set(tx, "seal.check", hex, err);
}

int store_open_check_key(struct store_tx *tx, void *data, struct aq_error *err)
{
    int r = store_open_compare_key(tx, err);

    (void)data;
    return r == -ENOENT ? store_open_note_key(tx, err) : r;
}

int store_open_compare_key(struct store_tx *tx, struct aq_error *err)
{
    unsigned char sealed[STORE_OPEN_SEALED_SIZE];
    char text[sizeof(store_open_key_word)];
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    int r = setting_get(tx, "seal.check", &known, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(sealed); i++)
        if (known.len != 2 * sizeof(sealed) || sscanf(known.data + 2 * i, "%2hhx", &sealed[i]) != 1)
            return aq_fail(err, EUCLEAN, "setting 'seal.check' is damaged");
    return seal_reveal(tx->seal, "seal.check", sealed, sizeof(sealed), text, err);
}

static int store_open_read_next(struct store *st, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(
        st->tx.db,
        "SELECT (SELECT MAX(seq) FROM (SELECT MAX(seq) AS seq FROM sessions UNION ALL"
        " SELECT MAX(seq) FROM arrays) n),"
        " (SELECT MAX(number) FROM session_events)",
        &q, err);

    if (r == 0)
        r = sql_step(q, err);
    if (r < 0)
        return r;
    st->next_seq = sql_get_int(q) + 1;
    st->next_event = sql_get_int(q) + 1;
    return 0;
}

/* ---- a file ---- */

static int store_open_file(struct store *st, const char *key_path, struct aq_error *err)
{
    struct sql_conf sql = { .where = st->where, .cache_bytes = WRITER_CACHE_BYTES };
    AQ_CLEANUP(aq_freep) char *own_key_path = key_path ? NULL : aq_format("%s.key", st->where);
    bool was_unclean = false;
    off_t size = 0;
    int r;

    st->reserve_path = aq_format("%s.reserve", st->where);
    if ((r = store_open_make_folder(st->where, err)) < 0
        || (r = store_open_take_lock(st, &was_unclean, err)) < 0
        || (r = store_open_lock_file(st, &size, err)) < 0
        || (r = seal_open(key_path ? key_path : own_key_path, size == 0, &st->seal, err)) < 0)
        return r;
    sql.is_frozen = st->is_frozen;
    if ((r = sql_open(st->engine, &sql, &st->tx.db, err)) < 0)
        return r;
    if (st->is_frozen)
        log_warning("the file system of the database '%s' is mounted read-only; stored data is "
                    "served, but nothing can be changed; remount it writable",
                    st->where);
    if (was_unclean && size && size <= CHECK_FILE_MAX_BYTES)
        r = store_open_check_file(st, err);
    if (r == 0)
        reserve_fill(&st->reserve, st->reserve_path);
    return r;
}

/* ---- a server ---- */

/* Another program may just make or change the schema, or die with the lock. */
#define LOCK_TRIES 50
#define LOCK_PAUSE_USEC (100 * USEC_PER_MSEC)

static int store_open_lock_server(struct sql *db, struct aq_error *err)
{
    int r = lease_lock(db, err);

    for (int i = 1; r == -EBUSY && i < LOCK_TRIES; i++) {
        (void)usleep(LOCK_PAUSE_USEC);
        r = lease_lock(db, err);
    }
    return r;
}

/* A holder is alive if it beats, or if it has had sessions for so long: a process that was killed
 * has them until the server sees it. Without sessions it may be a manager whose connections are
 * cut, so it has time to come back; not if it is a tool, or one of our own name, which is not
 * started twice.
 */
#define HOLDER_LOOK_USEC (100 * USEC_PER_MSEC)
#define HOLDER_ALIVE_USEC (2 * USEC_PER_SEC)
#define HOLDER_DEAD_USEC (5 * USEC_PER_SEC)
#define HOLDER_GONE_USEC (700 * USEC_PER_MSEC)

static int store_open_await_row(struct store *st, const struct leader_claim *self,
                                struct lease_row *row, struct aq_error *err)
{
    int64_t changed = clock_monotonic_usec();
    int r = lease_read(st->tx.db, row, err);
    const struct leader_view first = row->view;
    bool had_sessions = first.has_sessions;
    bool is_brief = !first.holder.name[0] || strcmp(first.holder.name, self->name) == 0;

    while (r == 0 && row->view.is_held) {
        int64_t now = clock_monotonic_usec();

        if (row->view.has_sessions != had_sessions)
            changed = now;
        had_sessions = row->view.has_sessions;
        if (row->view.epoch != first.epoch || row->view.beat != first.beat
            || (had_sessions && now - changed >= HOLDER_ALIVE_USEC))
            return lease_fail_held(row->address, err);
        if (!had_sessions && now - changed >= (is_brief ? HOLDER_GONE_USEC : HOLDER_DEAD_USEC))
            return 0;
        (void)usleep(HOLDER_LOOK_USEC);
        r = lease_read(st->tx.db, row, err);
    }
    return r;
}

/* Without an epoch that was taken before. */
static int store_open_take_row(struct store *st, const struct store_conf *conf,
                               struct aq_error *err)
{
    struct leader_claim self = conf->claim ? *conf->claim : (struct leader_claim){ 0 };
    char host[128] = "", address[192];
    struct lease_row row = { .address = "" };
    int r;

    (void)snprintf(self.incarnation, sizeof(self.incarnation), "%s", st->lease.incarnation);
    (void)snprintf(self.version, sizeof(self.version), "%.32s", ALIQUOT_VERSION);
    (void)gethostname(host, sizeof(host) - 1);
    (void)snprintf(address, sizeof(address), "%s, process %ld", host, (long)getpid());
    r = store_open_await_row(st, &self, &row, err);
    if (r == 0)
        r = lease_take(st->tx.db, &row.view, &self, conf->address ? conf->address : address,
                       conf->epoch_floor, &st->lease.epoch, err);
    return r == -ESTALE ? lease_fail_held(row.address, err) : r;
}

static int store_open_warn_of_risks(struct store *st, struct aq_error *err)
{
    int r = st->engine->list_risks(st->tx.db, &st->risks, err);

    for (const char *line = store_get_risks(st); r == 0 && *line;) {
        size_t len = strcspn(line, "\n");

        log_warning("database server: %.*s", (int)len, line);
        line += len + (line[len] == '\n');
    }
    return r;
}

static void store_open_name_process(struct store *st, const struct store_conf *conf)
{
    struct uuid id = uuid_random();

    if (conf->claim && conf->claim->incarnation[0])
        (void)snprintf(st->lease.incarnation, sizeof(st->lease.incarnation), "%s",
                       conf->claim->incarnation);
    else
        (void)uuid_format(&id, st->lease.incarnation);
}

static int store_open_server(struct store *st, const struct store_conf *conf, struct aq_error *err)
{
    char session[LEASE_SESSION_MAX];
    struct sql_conf sql = { .where = st->where, .session = session };
    int is_new, r;

    if (!conf->key_path)
        return aq_fail(err, EINVAL, "a database on a server needs the path of a key file");
    store_open_name_process(st, conf);
    (void)lease_session_name(st->lease.incarnation, LEASE_WRITER, session);
    if ((r = sql_open(st->engine, &sql, &st->tx.db, err)) < 0
        || (r = st->engine->check_pooler(st->tx.db, err)) < 0
        || (r = is_new = st->engine->is_empty(st->tx.db, err)) < 0)
        return r;
    /* The row is taken before the lock, so that waiting for a dead holder blocks nobody, and only
     * by a program that can read the schema.
     */
    st->lease.epoch = conf->epoch;
    if (!is_new)
        r = migrate_count_due(st->tx.db, store_migrations, store_migration_count, err);
    if (r >= 0 && !is_new && !conf->epoch && (r = store_open_take_row(st, conf, err)) == -ENODATA)
        r = 0; /* store_open_lead() does it once there are tables */
    if (r < 0 || (r = store_open_lock_server(st->tx.db, err)) < 0
        || (r = store_open_warn_of_risks(st, err)) < 0
        || (r = store_open_make_folder(conf->key_path, err)) < 0)
        return r;
    return seal_open(conf->key_path, is_new, &st->seal, err);
}

/* Standbys see beats meanwhile, if they were to see them before. */
static int store_open_migrate(struct store *st, struct aq_error *err)
{
    struct lease_keeper *keeper = NULL;
    struct aq_error keeper_err = { 0 };
    int kept, r = 0;

    if (st->lease.epoch)
        r = migrate_count_due(st->tx.db, store_migrations, store_migration_count, err);
    if (r > 0)
        r = lease_keeper_start(st->engine, st->where, st->lease.incarnation, st->lease.epoch,
                               &keeper, err);
    if (r == 0)
        r = migrate(st->tx.db, store_migrations, store_migration_count, err);
    kept = lease_keeper_stop(keeper, &keeper_err);
    if (r < 0 || kept == 0)
        return r;
    if (err)
        *err = keeper_err;
    return kept;
}

/* store_tx_fn: the first transaction in our epoch, which its commit checks */
static int store_open_lease(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct store *st = data;
    int r = lease_begin(tx, st->lease.epoch, &st->lease, err);

    if (r == 0)
        tx->lease = &st->lease;
    if (r == 0)
        r = lineage_begin_epoch(tx, st->lease.epoch, st->lease.beat, err);
    return r;
}

/* Once the schema is that of this version. */
static int store_open_lead(struct store *st, const struct store_conf *conf, struct aq_error *err)
{
    int r = st->lease.epoch ? 0 : store_open_take_row(st, conf, err);

    if (r == 0)
        r = store_call(st, store_open_lease, st, err);
    st->beats_itself = r == 0;
    return r;
}

/* store_tx_fn */
static int store_open_release_row(struct store_tx *tx, void *data, struct aq_error *err)
{
    return lease_release(tx, data, err);
}

void store_open_release(struct store *st)
{
    struct aq_error err = { 0 };

    if (!st->lease.epoch || st->lease.is_lost || st->lease.is_unsettled
        || st->engine->is_lost(st->tx.db))
        return;
    st->tx.lease = &st->lease;
    if (store_call(st, store_open_release_row, st->successor, &err) < 0 && !st->lease.is_lost)
        log_warning("cannot give the lead up: %s", err.text);
}

static int store_open_check_copy(struct store *st, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(st->tx.db, "SELECT 1 FROM manager_lease WHERE epoch < 0", &q, err);

    if (r == 0)
        r = sql_step(q, err);
    return r <= 0 ? r
                  : aq_fail(err, EUCLEAN,
                            "the database is an unfinished copy; finish 'db migrate --to', or "
                            "begin with an empty one");
}

int store_open_database(struct store *st, const struct store_conf *conf, struct aq_error *err)
{
    int r = sql_find_engine(st->where, &st->engine, err);

    if (r == 0)
        r = st->engine->is_server ? store_open_server(st, conf, err)
                                  : store_open_file(st, conf->key_path, err);
    if (r < 0)
        return r;
    st->tx.seal = st->seal;
    st->tx.reserve = &st->reserve;
    st->tx.next_seq = &st->next_seq;
    st->tx.next_event = &st->next_event;
    st->tx.has_dotfiles = &st->has_dotfiles;
    AQ_FAULT("store.open.locked");
    r = store_open_migrate(st, err);
    if (r == 0 && st->engine->is_server)
        r = store_open_lead(st, conf, err);
    if (r == 0)
        r = store_open_check_copy(st, err);
    if (r == 0)
        r = store_call(st, store_open_check_key, NULL, err);
    if (r == 0)
        r = store_open_read_next(st, err);
    if (r == 0 && st->engine->is_server)
        r = st->engine->unlock(st->tx.db, err);
    return r;
}

bool store_is_server(const char *path)
{
    return sql_is_uri(path);
}

int store_take_over(const char *path, struct aq_error *err)
{
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct sql_conf conf = { .where = path, .cache_bytes = WRITER_CACHE_BYTES };
    const struct sql_ops *engine;
    int r = sql_find_engine(path, &engine, err);

    if (r == 0 && engine->is_server)
        r = sql_open(engine, &conf, &db, err);
    if (r < 0)
        return r;
    return db ? lease_take_over(db, err)
              : aq_fail(err, EINVAL,
                        "a database in a file is held by its manager alone: end "
                        "that process");
}
