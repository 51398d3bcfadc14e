/* SPDX-License-Identifier: Apache-2.0 */
/* A token of a tree, and the file beneath it that a request names in its query. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "storage/folder.h"
#include "storage/storage.h"
#include "storage/tus_head.h"
#include "storage/upload.h"

static int tree_token_number(const struct url_query *query, const char *name, uint64_t most,
                             uint64_t *ret, struct aq_error *err)
{
    const char *text = url_query_get(query, name);

    if (text && tus_read_number(text, strlen(text), ret) && *ret <= most)
        return 0;
    return aq_fail_field(err, EINVAL, name, "%s: must be a number up to %llu", name,
                         (unsigned long long)most);
}

/* Of the client's id, the path and the size: what is begun under one path is never gone on with
 * under another, no matter who knows the id.
 */
static void tree_token_make_id(struct token *token, const struct uuid *given)
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, given->bytes, sizeof(given->bytes),
                                  sizeof(token->upload_id.bytes));
    (void)crypto_generichash_update(&state, (const unsigned char *)&token->size,
                                    sizeof(token->size));
    (void)crypto_generichash_update(&state, (const unsigned char *)token->path,
                                    strlen(token->path));
    (void)crypto_generichash_final(&state, token->upload_id.bytes, sizeof(token->upload_id.bytes));
}

static int tree_token_take_upload(const struct url_query *query, struct token *token,
                                  struct aq_error *err)
{
    const char *id = url_query_get(query, "upload");
    uint64_t modified = 0, mode = 0;
    struct uuid given;
    int r = tree_token_number(query, "size", UPLOAD_SIZE_MAX, &token->size, err);

    if (r == 0)
        r = tree_token_number(query, "modified", INT64_MAX, &modified, err);
    if (r == 0)
        r = tree_token_number(query, "mode", 0777, &mode, err);
    if (r < 0)
        return r;
    if (!id || uuid_parse(id, &given) < 0)
        return aq_fail_field(err, EINVAL, "upload", "upload: must be an id");
    token->modified_usec = (int64_t)modified;
    token->mode = (mode_t)mode;
    tree_token_make_id(token, &given);
    return 0;
}

int storage_enter_tree(const struct url_query *query, struct token *token, struct aq_error *err)
{
    const char *path = url_query_get(query, "path");
    char clean[PATH_MAX], above[PATH_MAX];
    int r;

    if (!token->is_tree)
        return 0;
    if (!path)
        return aq_fail_field(err, EINVAL, "path", "path: missing; the token is that of a tree");
    if ((r = folder_clean("path", path, false, clean, err)) < 0)
        return r;
    memcpy(above, token->path, sizeof(above));
    if (snprintf(token->path, sizeof(token->path), "%s%s%s", above, *above ? "/" : "", clean)
        >= (int)sizeof(token->path))
        return aq_fail_field(err, ENAMETOOLONG, "path", "the path is too long");
    return token->direction == TOKEN_UPLOAD ? tree_token_take_upload(query, token, err) : 0;
}
