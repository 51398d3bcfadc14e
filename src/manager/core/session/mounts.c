/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - folders that a session mounts: found when it is made, looked at again when it starts
 */
#include "manager/core/session/mounts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/core.h"
#include "manager/rules/folder_mount.h"
#include "model/reference.h"

/* Apart from the core, which other threads do not read. */
struct mounts_owner {
    struct folder_viewer who;
    char domain[]; /* 'who' may point here */
};

struct mounts_draft {
    struct session_mounts wanted;
    struct mounts_owner *owner;
    struct uuid project_id;
    struct arena arena; /* of what is found */
    struct folder_mounts_found found;
};

struct mounts_owner *mounts_owner_new(const struct core *core, const struct session *s)
{
    const struct user *user = core_find_user(core, &s->user_id);
    const char *domain = user && user->role == ROLE_ADMIN ? user->domain : NULL;
    size_t size = domain ? strlen(domain) + 1 : 0;
    struct mounts_owner *owner = aq_alloc(sizeof(*owner) + size);

    owner->who.user_id = s->user_id;
    owner->who.is_superadmin = user && user->role == ROLE_SUPERADMIN;
    if (domain)
        owner->who.admin_of = memcpy(owner->domain, domain, size);
    return owner;
}

int mounts_draft_new(const struct core *core, const struct session *s,
                     const struct session_mounts *wanted, struct mounts_draft **ret,
                     struct aq_error *err)
{
    struct mounts_draft *draft;

    const char *image = s->spec->image;
    bool is_process = image && strcmp(image, IMAGE_OF_PROCESSES) == 0;

    *ret = NULL;
    if (wanted->count && is_process)
        return aq_fail_field(
            err, EINVAL, "mounts",
            "sessions without an image are processes of the node, which mount no folders; name an "
            "image (--image IMAGE)");
    if (is_process || (!wanted->count && !wanted->is_automatic))
        return 0;
    draft = aq_alloc(sizeof(*draft));
    draft->owner = mounts_owner_new(core, s);
    draft->wanted = *wanted;
    draft->project_id = s->project_id;
    draft->arena = (struct arena)ARENA_INIT;
    *ret = draft;
    return 0;
}

void mounts_draft_free(struct mounts_draft *draft)
{
    if (!draft)
        return;
    arena_done(&draft->arena);
    free(draft->owner);
    free(draft);
}

int mounts_draft_read(struct store_tx *tx, struct mounts_draft *draft, struct aq_error *err)
{
    const struct folder_mount_request request = { .named = draft->wanted.named,
                                                  .count = draft->wanted.count,
                                                  .is_automatic = draft->wanted.is_automatic,
                                                  .owner = draft->owner->who,
                                                  .project_id = draft->project_id };

    return folder_mounts_find(tx, &request, &draft->arena, &draft->found, err);
}

/* Those that were not asked for are left out where they may not be mounted. */
static int mounts_check_hosts(struct mounts_draft *draft, const struct session *s,
                              struct aq_error *err)
{
    struct folder_mounts *mounts = &draft->found.mounts;
    size_t kept = 0;

    for (size_t i = 0; i < mounts->count; i++) {
        const struct folder *folder = &draft->found.folders[i];

        if (!draft->wanted.may_mount || draft->wanted.may_mount(draft->wanted.data, s, folder))
            mounts->items[kept++] = mounts->items[i];
        else if (i < draft->wanted.count)
            return aq_fail_kind(err, EPERM, "generic-forbidden",
                                "the folder '%s' cannot be mounted: the session's owner lacks "
                                "'mount-in-session' on the host '%s'",
                                folder->name, folder->host);
    }
    mounts->count = kept;
    return 0;
}

/* A session for files runs nothing of its user's: 'rsync --iconv' loads code from below /usr/lib. */
static int mounts_check_files(const struct folder_mounts *mounts, struct aq_error *err)
{
    const char *home = FOLDER_MOUNT_WORK "/";

    for (size_t i = 0; i < mounts->count; i++)
        if (strncmp(mounts->items[i].target, home, strlen(home)) != 0)
            return aq_fail_field(err, EINVAL, "mounts",
                                 "folder '%.64s' cannot be mounted at '%.200s': a session with the "
                                 "image '" IMAGE_OF_FILES "' has folders below '%s' only",
                                 mounts->items[i].name, mounts->items[i].target, FOLDER_MOUNT_WORK);
    return 0;
}

int mounts_draft_take(struct mounts_draft *draft, struct session *s, struct aq_error *err)
{
    struct session_spec spec = *s->spec, *old = s->spec;
    int r = mounts_check_hosts(draft, s, err);

    if (r < 0)
        return r;
    folder_mounts_sort(&draft->found.mounts);
    if ((r = folder_mounts_check(&draft->found.mounts, err)) < 0)
        return r;
    if (spec.image && strcmp(spec.image, IMAGE_OF_FILES) == 0
        && (r = mounts_check_files(&draft->found.mounts, err)) < 0)
        return r;
    spec.mounts = draft->found.mounts;
    s->spec = session_spec_copy(&spec);
    free(old);
    return 0;
}

int mounts_check_again(struct store_tx *tx, const struct mounts_owner *owner,
                       const struct folder_mounts *mounts, struct aq_error *err)
{
    return folder_mounts_check_again(tx, &owner->who, mounts, err);
}
