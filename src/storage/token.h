/* SPDX-License-Identifier: Apache-2.0 */
/* token.h - what a client shows to reach one path of one folder, in one direction
 *
 * A JSON Web Token (RFC 7519) of HMAC-SHA256 with a key of this storage's own. Its holder may
 * do what it says until it expires or the user's right ends; nobody else can make one. That of a
 * tree is for all paths beneath its own, as a directory of 10,000 files would take so many tokens.
 */
#ifndef AQ_STORAGE_TOKEN_H
#define AQ_STORAGE_TOKEN_H

#include <limits.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"

#define TOKEN_KEY_SIZE 32
#define TOKEN_VOLUME_MAX 64
#define TOKEN_ACCESS_KEY_MAX 63

enum token_direction {
    TOKEN_UPLOAD,
    TOKEN_DOWNLOAD, /* a file */
    TOKEN_ARCHIVE,  /* a file or folder as tar */
};

struct token {
    enum token_direction direction;
    char volume[TOKEN_VOLUME_MAX + 1];
    struct uuid folder_id;
    bool is_tree;         /* all beneath the path is meant, and a request says which file */
    char path[PATH_MAX];  /* of beneath_clean() */
    int64_t expires_usec; /* wall clock */
    /* For whom the manager had it made, whose right is checked at each use (rights.h); nil in
     * tokens of earlier releases.
     */
    struct uuid user_id;
    char access_key[TOKEN_ACCESS_KEY_MAX + 1];
    int64_t issued_usec; /* wall clock */
    /* Of an upload: */
    struct uuid upload_id;
    uint64_t size;        /* of the whole file */
    uint64_t quota_bytes; /* of the folder; 0 = none */
    /* Of an upload beneath a tree, by its request: */
    int64_t modified_usec;
    mode_t mode;
};

/* The key of a state directory, made if there is none. -EINVAL if it is none. */
int token_load_key(const char *state, unsigned char ret[TOKEN_KEY_SIZE], struct aq_error *err);

/* For whom it counts: its user, or where that is not said, its folder. Borrowed. */
const struct uuid *token_user(const struct token *token);

void token_write(const unsigned char key[TOKEN_KEY_SIZE], const struct token *token,
                 struct strbuf *out);

/* -EACCES for what was not made with this key, or for another direction than a TOKEN_UPLOAD where
 * 'is_upload' is set, or the other way round. Whether it has expired the caller looks.
 */
int token_read(const unsigned char key[TOKEN_KEY_SIZE], const char *text, bool is_upload,
               struct token *ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
