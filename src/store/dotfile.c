/* SPDX-License-Identifier: Apache-2.0 */
/* dotfile.c - files for the home directories of sessions, and bootstrap scripts */
#include "store/dotfile.h"

#include <errno.h>
#include <string.h>

#include "store/query.h"
#include "store/store_internal.h"

static const char *const dotfile_kinds[] = {
    [DOTFILE_KEYPAIR] = "keypair",
    [DOTFILE_PROJECT] = "project",
    [DOTFILE_DOMAIN] = "domain",
    [DOTFILE_BOOTSTRAP] = "bootstrap",
};

bool store_has_dotfiles(struct store *store)
{
    return store->has_dotfiles;
}

int dotfile_look(struct store_tx *tx, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT 1 FROM dotfiles LIMIT 1", &q, err);

    if (r < 0 || (r = sql_step(q, err)) < 0)
        return r;
    *tx->has_dotfiles = r > 0;
    return 0;
}

static int dotfile_prepare(struct store_tx *tx, const char *text, const struct dotfile_owner *owner,
                           struct sql_stmt **ret, struct aq_error *err)
{
    int r = sql_prepare(tx->db, text, ret, err);

    if (r < 0)
        return r;
    sql_put_text(*ret, dotfile_kinds[owner->kind]);
    sql_put_text(*ret, owner->name);
    return 0;
}

int dotfile_list(struct store_tx *tx, const struct dotfile_owner *owner, struct arena *arena,
                 struct dotfile **ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct dotfile *files = arena_array(arena, DOTFILES_MAX, sizeof(*files));
    struct row row = { .arena = arena };
    int r = dotfile_prepare(tx,
                            "SELECT path, permission, data FROM dotfiles"
                            " WHERE kind = ? AND owner = ? ORDER BY path",
                            owner, &q, err);
    int count = 0;

    row.q = q;
    while (r >= 0 && count < DOTFILES_MAX && (r = sql_step(q, err)) > 0) {
        files[count].path = row_text(&row);
        files[count].permission = row_text(&row);
        files[count++].data = row_text(&row);
    }
    if (r >= 0)
        r = row_check(&row, "dotfiles", err);
    if (r < 0)
        return r;
    *ret = files;
    return count;
}

static int dotfile_check_room(struct store_tx *tx, const struct dotfile_owner *owner,
                              const struct dotfile *file, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct dotfile *files = NULL;
    int count = dotfile_list(tx, owner, &arena, &files, err), others = 0;
    size_t bytes = 0;

    for (int i = 0; i < count; i++)
        if (strcmp(files[i].path, file->path) != 0) {
            bytes += strlen(files[i].data);
            others++;
        }
    if (count < 0)
        return count;
    if (others >= DOTFILES_MAX)
        return aq_fail(err, E2BIG, "there are %d dotfiles already; remove one", DOTFILES_MAX);
    if (bytes + strlen(file->data) > DOTFILES_BYTES_MAX)
        return aq_fail(err, E2BIG, "dotfiles have %d bytes together at most, and %zu are left",
                       DOTFILES_BYTES_MAX, DOTFILES_BYTES_MAX - bytes);
    return 0;
}

int dotfile_create(struct store_tx *tx, const struct dotfile_owner *owner,
                   const struct dotfile *file, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = owner->kind == DOTFILE_DOMAIN ? store_check_domain(tx, owner->name, err) : 0;

    if (r == 0)
        r = dotfile_check_room(tx, owner, file, err);
    if (r < 0
        || (r = dotfile_prepare(tx,
                                "INSERT INTO dotfiles (kind, owner, path, permission, data)"
                                " VALUES (?,?,?,?,?) ON CONFLICT DO NOTHING",
                                owner, &q, err))
               < 0)
        return r;
    sql_put_text(q, file->path);
    sql_put_text(q, file->permission);
    sql_put_text(q, file->data);
    *tx->has_dotfiles = true;
    r = sql_change(q, err);
    return r == 0 ? aq_fail(err, EEXIST, "there is a dotfile '%.200s' already", file->path)
                  : AQ_MIN(r, 0);
}

static int dotfile_fail_unknown(const char *path, struct aq_error *err)
{
    return aq_fail(err, ENOENT, "there is no dotfile '%.200s'", path);
}

int dotfile_change(struct store_tx *tx, const struct dotfile_owner *owner,
                   const struct dotfile *file, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = dotfile_check_room(tx, owner, file, err);

    if (r < 0
        || (r = sql_prepare(tx->db,
                            "UPDATE dotfiles SET permission = ?, data = ?"
                            " WHERE kind = ? AND owner = ? AND path = ?",
                            &q, err))
               < 0)
        return r;
    sql_put_text(q, file->permission);
    sql_put_text(q, file->data);
    sql_put_text(q, dotfile_kinds[owner->kind]);
    sql_put_text(q, owner->name);
    sql_put_text(q, file->path);
    r = sql_change(q, err);
    return r == 0 ? dotfile_fail_unknown(file->path, err) : AQ_MIN(r, 0);
}

int dotfile_remove(struct store_tx *tx, const struct dotfile_owner *owner, const char *path,
                   struct aq_error *err)
{
    struct sql_stmt *q;
    int r = dotfile_prepare(tx, "DELETE FROM dotfiles WHERE kind = ? AND owner = ? AND path = ?",
                            owner, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, path);
    r = sql_change(q, err);
    return r == 0 ? dotfile_fail_unknown(path, err) : AQ_MIN(r, 0);
}

int dotfile_set_script(struct store_tx *tx, const char *access_key, const char *script,
                       struct aq_error *err)
{
    const struct dotfile_owner owner = { DOTFILE_BOOTSTRAP, access_key };
    struct sql_stmt *q;
    int r = dotfile_prepare(tx, "DELETE FROM dotfiles WHERE kind = ? AND owner = ?", &owner, &q,
                            err);

    if (r < 0 || (r = sql_run(q, err)) < 0 || !*script)
        return r;
    return dotfile_create(tx, &owner,
                          &(struct dotfile){ .path = "", .permission = "", .data = script }, err);
}
