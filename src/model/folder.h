/* SPDX-License-Identifier: Apache-2.0 */
/* folder.h - folders of users and projects: their states, and who may do what with them
 *
 * Pure. Backend.AI calls them virtual folders. A folder belongs to one user or one project; its
 * files are on a host, "STORAGE:VOLUME".
 */
#ifndef AQ_MODEL_FOLDER_H
#define AQ_MODEL_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/uuid.h"

#define FOLDER_NAME_MAX 64
#define FOLDER_HOST_MAX 128
#define FOLDER_PATH_MAX 4096 /* of a file in it */

enum folder_permission {
    FOLDER_NONE,        /* of shares: there is none */
    FOLDER_READ_ONLY,   /* "ro" */
    FOLDER_READ_WRITE,  /* "rw": files are made, changed and removed */
    FOLDER_WRITE_DELETE /* "wd": the folder as a whole may be put into the trash, too */
};

enum folder_usage { FOLDER_GENERAL, FOLDER_MODEL, FOLDER_DATA };

enum folder_status {
    FOLDER_READY,
    FOLDER_PERFORMING,     /* it is being made */
    FOLDER_CLONING,        /* files of another one are copied into it */
    FOLDER_DELETE_PENDING, /* in the trash */
    FOLDER_DELETE_ONGOING, /* its files are being removed; the row goes after them */
};

const char *folder_permission_name(enum folder_permission permission);
int folder_permission_parse(const char *text, enum folder_permission *ret);
const char *folder_usage_name(enum folder_usage usage);
int folder_usage_parse(const char *text, enum folder_usage *ret);
const char *folder_status_name(enum folder_status status);
int folder_status_parse(const char *text, enum folder_status *ret);
/* What a folder of this status is, in a sentence: "in the trash". */
const char *folder_status_words(enum folder_status status);

/* A letter or digit, one dot before it at most, then letters, digits, dots, hyphens and
 * underscores; no UUID, not "invitations", which paths of the API have in its place, and not
 * ".ssh", where sessions keep who may log in.
 */
bool folder_name_is_valid(const char *name);

/* Texts are borrowed. */
struct folder {
    struct uuid id;
    const char *name, *host;
    struct uuid user_id, project_id; /* one of them; the other is nil */
    const char *user_email, *project_name;
    const char *domain; /* of the user or project; NULL = none */
    enum folder_usage usage;
    enum folder_permission permission; /* of the project's members, unless it is shared with them */
    bool is_cloneable;
    enum folder_status status;
    const char *creator;             /* e-mail */
    int64_t created_usec, used_usec; /* used 0 = never */
    int64_t files, bytes;            /* as they were measured last */
    int64_t measured_usec;           /* then; 0 = never */
    int64_t bytes_max;               /* 0 = no limit of its own */
    enum folder_permission shared;   /* with who asks */
    bool is_member;                  /* who asks, of its project */
};

/* Who asks. */
struct folder_viewer {
    struct uuid user_id;
    bool is_superadmin;
    const char *admin_of; /* the domain that it administers; NULL = none */
};

enum folder_op {
    FOLDER_SEE,     /* what it is */
    FOLDER_READ,    /* list and read files */
    FOLDER_WRITE,   /* make, change, move and remove files */
    FOLDER_DELETE,  /* into the trash */
    FOLDER_RESTORE, /* out of it */
    FOLDER_PURGE,   /* for good */
    FOLDER_CHANGE,  /* name and options */
    FOLDER_INVITE,  /* offer it to users, who accept or not */
    FOLDER_SHARE,   /* another permission for members of the project */
    FOLDER_CLONE,
    FOLDER_LEAVE, /* a share */
    FOLDER_GIVE,  /* to another owner */
    FOLDER_OPS
};

bool folder_is_owner(const struct folder *folder, const struct folder_viewer *who);

/* What who asks may do to its files: the most of what the roles give. */
enum folder_permission folder_permission_of(const struct folder *folder,
                                            const struct folder_viewer *who);

/* The permission that replies show: that of a share, else the folder's own, which was set when it
 * was created. Owners and administrators see the folder's own as well, although they may do more.
 */
enum folder_permission folder_permission_shown(const struct folder *folder,
                                               const struct folder_viewer *who);

/* The whole of the rights: of its owner, members of its project, those it is shared with, and
 * administrators. Nobody clones what is not cloneable. States are not looked at.
 */
bool folder_may(const struct folder *folder, const struct folder_viewer *who, enum folder_op op);

#endif
