/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - see token.h */
#include "storage/token.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "transfer/name.h"

/* {"alg":"HS256","typ":"JWT"}: no other is taken. */
#define TOKEN_HEADER "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
#define TOKEN_TEXT_MAX 16384
#define TOKEN_BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define TOKEN_TAG_SIZE crypto_auth_hmacsha256_BYTES
#define TOKEN_TAG_TEXT 43 /* characters of base64 */

static const char *const token_directions[] = {
    [TOKEN_UPLOAD] = "upload", [TOKEN_DOWNLOAD] = "download", [TOKEN_ARCHIVE] = "archive"
};

int token_load_key(const char *state, unsigned char ret[TOKEN_KEY_SIZE], struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/token.key", state);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    r = fs_read(AT_FDCWD, path, TOKEN_KEY_SIZE, &text, err);
    if (r == -ENOENT) {
        randombytes_buf(ret, TOKEN_KEY_SIZE);
        return fs_write_atomic(AT_FDCWD, path, ret, TOKEN_KEY_SIZE, 0600, err);
    }
    if (r == 0 && text.len != TOKEN_KEY_SIZE)
        r = aq_fail(err, EINVAL, "'%s' is no key of %d bytes; remove it to have another one made",
                    path, TOKEN_KEY_SIZE);
    if (r == 0)
        memcpy(ret, text.data, TOKEN_KEY_SIZE);
    explicit_bzero(text.data, text.len);
    return r;
}

static void token_sign(const unsigned char key[TOKEN_KEY_SIZE], const char *text, size_t len,
                       unsigned char tag[TOKEN_TAG_SIZE])
{
    crypto_auth_hmacsha256_state state;

    (void)crypto_auth_hmacsha256_init(&state, key, TOKEN_KEY_SIZE);
    (void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, len);
    (void)crypto_auth_hmacsha256_final(&state, tag);
    explicit_bzero(&state, sizeof(state));
}

static void token_add_base64(struct strbuf *out, const void *bytes, size_t len)
{
    size_t size = sodium_base64_encoded_len(len, TOKEN_BASE64);

    (void)strbuf_reserve(out, size);
    (void)sodium_bin2base64(out->data + out->len, size, bytes, len, TOKEN_BASE64);
    out->len += size - 1;
}

const struct uuid *token_user(const struct token *token)
{
    return uuid_is_nil(&token->user_id) ? &token->folder_id : &token->user_id;
}

static void token_write_claims(const struct token *token, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct jsonw w = jsonw_make(out);
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "op", token_directions[token->direction]);
    jsonw_member_str(&w, "volume", token->volume);
    jsonw_member_str(&w, "folder", uuid_format(&token->folder_id, id));
    name_write(token->path, &path);
    jsonw_member_str(&w, "path", path.data);
    if (token->is_tree)
        jsonw_member_bool(&w, "tree", true);
    jsonw_member_int(&w, "exp", token->expires_usec / 1000000);
    if (!uuid_is_nil(&token->user_id)) {
        jsonw_member_str(&w, "user", uuid_format(&token->user_id, id));
        jsonw_member_str(&w, "key", token->access_key);
        jsonw_member_int(&w, "issued", token->issued_usec);
    }
    if (token->direction == TOKEN_UPLOAD) {
        if (!token->is_tree)
            jsonw_member_str(&w, "upload", uuid_format(&token->upload_id, id));
        jsonw_member_int(&w, "size", (int64_t)token->size);
        jsonw_member_int(&w, "quota", (int64_t)token->quota_bytes);
    }
    jsonw_object_end(&w);
}

void token_write(const unsigned char key[TOKEN_KEY_SIZE], const struct token *token,
                 struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf claims = STRBUF_INIT;
    unsigned char tag[TOKEN_TAG_SIZE];
    size_t from = out->len;

    token_write_claims(token, &claims);
    strbuf_adds(out, TOKEN_HEADER);
    token_add_base64(out, claims.data, claims.len);
    token_sign(key, out->data + from, out->len - from, tag);
    strbuf_addc(out, '.');
    token_add_base64(out, tag, sizeof(tag));
}

/* ---- reading ---- */

static bool token_take_text(const json_t *claims, const char *key, char *ret, size_t size)
{
    const char *text = json_string_value(json_object_get(claims, key));

    return text && snprintf(ret, size, "%s", text) < (int)size;
}

static bool token_take_path(const json_t *claims, char ret[PATH_MAX])
{
    const char *text = json_string_value(json_object_get(claims, "path"));

    return text && name_read(text, ret, PATH_MAX);
}

static bool token_take_id(const json_t *claims, const char *key, struct uuid *ret)
{
    const char *text = json_string_value(json_object_get(claims, key));

    return text && uuid_parse(text, ret) == 0;
}

static bool token_take_claims(const json_t *claims, bool is_upload, struct token *ret)
{
    const char *op = json_string_value(json_object_get(claims, "op"));
    size_t i = 0;

    while (op && i < AQ_COUNT(token_directions) && strcmp(op, token_directions[i]) != 0)
        i++;
    if (!op || i == AQ_COUNT(token_directions) || (i == TOKEN_UPLOAD) != is_upload)
        return false;
    *ret = (struct token){ .direction = (enum token_direction)i };
    if (json_object_get(claims, "user")) {
        if (!token_take_id(claims, "user", &ret->user_id) || uuid_is_nil(&ret->user_id)
            || !token_take_text(claims, "key", ret->access_key, sizeof(ret->access_key)))
            return false;
        ret->issued_usec = json_integer_value(json_object_get(claims, "issued"));
    }
    ret->expires_usec = json_integer_value(json_object_get(claims, "exp")) * 1000000;
    ret->is_tree = json_is_true(json_object_get(claims, "tree"));
    ret->size = (uint64_t)json_integer_value(json_object_get(claims, "size"));
    ret->quota_bytes = (uint64_t)json_integer_value(json_object_get(claims, "quota"));
    return token_take_text(claims, "volume", ret->volume, sizeof(ret->volume))
           && token_take_path(claims, ret->path) && token_take_id(claims, "folder", &ret->folder_id)
           && (!is_upload || ret->is_tree || token_take_id(claims, "upload", &ret->upload_id));
}

int token_read(const unsigned char key[TOKEN_KEY_SIZE], const char *text, bool is_upload,
               struct token *ret, struct aq_error *err)
{
    const char *body = text + strlen(TOKEN_HEADER), *dot;
    unsigned char tag[TOKEN_TAG_SIZE], given[TOKEN_TAG_SIZE];
    AQ_CLEANUP(aq_freep) unsigned char *claims = NULL;
    size_t len = 0;
    json_t *tree;
    bool is_good = false;

    dot = strnlen(text, TOKEN_TEXT_MAX) < TOKEN_TEXT_MAX ? strrchr(text, '.') : NULL;
    if (dot && dot > body && strncmp(text, TOKEN_HEADER, strlen(TOKEN_HEADER)) == 0
        && strlen(dot + 1) == TOKEN_TAG_TEXT
        && sodium_base642bin(given, sizeof(given), dot + 1, TOKEN_TAG_TEXT, NULL, &len, NULL,
                             TOKEN_BASE64)
               == 0
        && len == sizeof(given)) {
        token_sign(key, text, (size_t)(dot - text), tag);
        is_good = sodium_memcmp(tag, given, sizeof(tag)) == 0;
    }
    if (!is_good)
        return aq_fail(err, EACCES, "the token is not good");
    claims = aq_alloc((size_t)(dot - body));
    if (sodium_base642bin(claims, (size_t)(dot - body), body, (size_t)(dot - body), NULL, &len,
                          NULL, TOKEN_BASE64)
        < 0)
        len = 0;
    tree = json_load_text((const char *)claims, len, 0, NULL);
    is_good = tree && token_take_claims(tree, is_upload, ret);
    json_decref(tree);
    return is_good ? 0 : aq_fail(err, EACCES, "the token is for something else");
}
