/* SPDX-License-Identifier: Apache-2.0 */
/* folder_find.c - which folder a client means, and whether it may have a name */
#include "manager/rules/folder_find.h"

#include <errno.h>

#define SAME_NAME_MAX 100

/* Of several with one name: own ones before those of projects, and these before shared ones;
 * whatever is in the trash comes last.
 */
static int folder_rank(const struct folder *folder, const struct folder_viewer *who)
{
    int rank = folder_is_owner(folder, who) ? 0 : !uuid_is_nil(&folder->project_id) ? 1 : 2;

    return folder->status >= FOLDER_DELETE_PENDING ? rank + 3 : rank;
}

/* NULL without any. */
static int folder_choose(const struct store_page *page, const struct folder_viewer *who,
                         const char *text, const struct folder **ret, struct aq_error *err)
{
    const struct folder *rows = page->rows;
    int best = 6;

    *ret = NULL;
    for (size_t i = 0; i < page->count; i++) {
        int rank = folder_rank(&rows[i], who);

        if (rank == best && rank < 3)
            return aq_fail_kind(err, EEXIST, "too-many-vfolders",
                                "there are several folders '%.64s': name it by its id", text);
        if (rank < best) {
            *ret = &rows[i];
            best = rank;
        }
    }
    return 0;
}

/* Texts in the arena. */
static void folder_copy(const struct folder *folder, struct arena *arena, struct folder *ret)
{
    const char **texts[] = { &ret->name,         &ret->host,   &ret->user_email,
                             &ret->project_name, &ret->domain, &ret->creator };

    *ret = *folder;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (*texts[i])
            *texts[i] = arena_strdup(arena, *texts[i]);
}

int folder_find(struct store_tx *tx, const struct folder_viewer *who, const char *text,
                struct arena *arena, struct folder *ret, struct aq_error *err)
{
    struct folder_list list = { .who = *who, .hides_trash = true };
    struct store_query query = { .limit = SAME_NAME_MAX };
    const struct folder *found = NULL;
    struct uuid id;
    int r = 0;

    if (uuid_parse(text, &id) == 0) {
        query.ids = &id;
        query.id_count = 1;
        list.hides_trash = false;
    } else {
        query.name = text;
        list.scope = FOLDERS_USABLE;
    }
    for (;;) {
        AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;

        if ((r = store_list_folders(tx, &list, &query, &page, err)) < 0
            || (r = folder_choose(page, who, text, &found, err)) < 0)
            return r;
        if (found) {
            folder_copy(found, arena, ret);
            return 0;
        }
        if (!list.hides_trash)
            return aq_fail_as(err, ENOENT, "object-not-found", "virtual folder",
                              "there is no folder '%.64s'", text);
        list.hides_trash = false;
    }
}

int folder_check_name(struct store_tx *tx, const struct folder_owner *owner, const char *name,
                      const struct uuid *but, struct aq_error *err)
{
    int r = folder_is_name_taken(tx, owner, name, but, err);

    return r > 0 ? aq_fail_kind(err, EEXIST, "vfolder-already-exists",
                                "there is a folder '%s' already", name)
                 : r;
}
