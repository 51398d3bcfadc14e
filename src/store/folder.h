/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - rows of folders, their shares and invitations
 *
 * For functions given to store_read() and store_write(). All that a viewer is shown of a folder
 * says what the viewer may (model/folder.h); what may be done is checked by the caller.
 */
#ifndef AQ_STORE_FOLDER_H
#define AQ_STORE_FOLDER_H

#include "base/arena.h"
#include "model/folder.h"
#include "store/query.h"

/* ---- lists ---- */

/* Which of those that a viewer may see. */
enum folder_scope {
    FOLDERS_VISIBLE, /* own, of projects, shared; of administrators also all of the domain, of
                        superadmins all */
    FOLDERS_USABLE,  /* own, of projects, shared */
    FOLDERS_OWN,
    FOLDERS_INVITED,   /* shared ones of other users */
    FOLDERS_PROJECT,   /* of projects that the viewer is in */
    FOLDERS_AUTOMATIC, /* own and of projects, whose names begin with a dot */
};

struct folder_list {
    struct folder_viewer who;
    enum folder_scope scope;
    bool hides_trash;
    const struct uuid *project; /* of those in the scope its own, and what users own and the viewer
                                   may use; NULL = all */
};

/* Rows are struct folder. query: project_id, user_id (the owner), domain, ids, filter, order,
 * limit, offset, range.
 */
int store_list_folders(struct store_tx *tx, const struct folder_list *list,
                       const struct store_query *query, struct store_page **ret,
                       struct aq_error *err);

/* Rows of these states in all the cluster, the oldest first, for work that goes on. */
int folder_list_unfinished(struct store_tx *tx, struct store_page **ret, struct aq_error *err);

/* Ready ones of all the cluster whose files were never measured. */
int folder_list_unmeasured(struct store_tx *tx, struct store_page **ret, struct aq_error *err);

/* Those that the viewer may see and that are shared with somebody. */
int folder_list_shared(struct store_tx *tx, const struct folder_list *list, struct store_page **ret,
                       struct aq_error *err);

/* ---- owners ---- */

#define FOLDERS_MAX 10000 /* of an owner, with those in the trash */

/* Who owns it, or will. */
struct folder_owner {
    struct uuid user_id, project_id; /* one is nil */
};

struct folder_use {
    int64_t all, folders; /* the latter without those in the trash */
    int64_t bytes;        /* of all, when they were counted last */
};
int folder_read_use(struct store_tx *tx, const struct folder_owner *owner, struct folder_use *ret,
                    struct aq_error *err);

struct folder_host_use {
    int64_t folders, files, bytes; /* as they were counted last */
};
int folder_read_host_use(struct store_tx *tx, const char *host, struct folder_host_use *ret,
                         struct aq_error *err);

/* 1 if the owner sees a folder of this name that is not in the trash and not 'but' (NULL = none).
 */
int folder_is_name_taken(struct store_tx *tx, const struct folder_owner *owner, const char *name,
                         const struct uuid *but, struct aq_error *err);

/* Whether any folder's name begins with a dot. 1 or 0. */
int folder_has_automatic(struct store_tx *tx, struct aq_error *err);

/* ---- changes ---- */

int folder_insert(struct store_tx *tx, const struct folder *folder, struct aq_error *err);
/* Owner, name, usage, permission, cloneable, status and limit as they are in 'folder'. */
int folder_update(struct store_tx *tx, const struct folder *folder, struct aq_error *err);
/* The row, with shares and invitations. */
int folder_remove(struct store_tx *tx, const struct uuid *id, struct aq_error *err);
/* Files, bytes and when they were measured, of the folder with this id, if it is on this host. */
int folder_set_counts(struct store_tx *tx, const struct folder *folder, struct aq_error *err);

/* ---- shares ---- */

struct folder_share {
    struct uuid user_id;
    const char *email;
    enum folder_permission permission;
};

#define FOLDER_SHARES_MAX 1000 /* of a folder, with invitations */

/* By e-mail; in the arena. How many. */
int folder_list_shares(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                       struct folder_share **ret, struct aq_error *err);
/* FOLDER_NONE takes it away. 1, or 0 if nothing changed. */
int folder_set_share(struct store_tx *tx, const struct uuid *id, const struct uuid *user_id,
                     enum folder_permission permission, struct aq_error *err);

/* ---- invitations ---- */

struct folder_invitation {
    struct uuid id, folder_id, inviter_id, user_id;
    const char *inviter, *invitee; /* e-mails */
    const char *folder_name;
    enum folder_permission permission;
    int64_t created_usec;
};

/* 1, or 0 if the user has it or this inviter offered it already. -E2BIG. */
int folder_invite(struct store_tx *tx, const struct folder_invitation *invitation,
                  struct aq_error *err);
/* An invitation whose inviter no longer owns the folder, or is not active, is not found here.
 *
 * Of an invitee, or of the inviter ('by'); the oldest first, in the arena. How many. */
int folder_list_invitations(struct store_tx *tx, const struct uuid *user_id, bool by,
                            struct arena *arena, struct folder_invitation **ret,
                            struct aq_error *err);
/* 1, or 0 without one. */
int folder_find_invitation(struct store_tx *tx, const struct uuid *id, struct arena *arena,
                           struct folder_invitation *ret, struct aq_error *err);
int folder_set_invitation(struct store_tx *tx, const struct uuid *id,
                          enum folder_permission permission, struct aq_error *err);
int folder_remove_invitation(struct store_tx *tx, const struct uuid *id, struct aq_error *err);
/* All of a folder. */
int folder_remove_invitations(struct store_tx *tx, const struct uuid *folder_id,
                              struct aq_error *err);

#endif
