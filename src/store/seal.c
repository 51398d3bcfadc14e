/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets at rest: AES-256-GCM under a key file. */
#include "store/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"
#include "base/memory.h"

#define KEY_SIZE 32
#define VERSION 1
#define CHECK_AT 1
#define CHECK_SIZE 4
#define NONCE_AT (CHECK_AT + CHECK_SIZE)
#define NONCE_SIZE 12
#define TEXT_AT (NONCE_AT + NONCE_SIZE)
#define TAG_SIZE 16

_Static_assert(SEAL_OVERHEAD == TEXT_AT + TAG_SIZE && SEAL_KEY_TEXT == 2 * KEY_SIZE + 1,
               "the header says the same");

struct seal {
    unsigned char key[KEY_SIZE];
    unsigned char check[CHECK_SIZE];
    char *path;
};

static int seal_create_key(const char *path, struct aq_error *err)
{
    unsigned char key[KEY_SIZE];
    int r;

    if (RAND_bytes(key, sizeof(key)) != 1)
        return aq_fail(err, EIO, "no random bytes for the key file '%s'", path);
    r = fs_write_atomic(AT_FDCWD, path, key, sizeof(key), 0600, err);
    explicit_bzero(key, sizeof(key));
    AQ_FAULT("store.key.created");
    return r;
}

static int seal_read_key(struct seal *seal, int fd, struct aq_error *err)
{
    unsigned char hash[SHA256_DIGEST_LENGTH], more;
    struct stat st;
    ssize_t got;

    if (fstat(fd, &st) < 0)
        return aq_fail_errno(err, "key file '%s'", seal->path);
    if (st.st_mode & 077)
        return aq_fail(err, EACCES,
                       "the key file '%s' can be read by others (mode %03o): "
                       "chmod 600 it, and give everybody new keys if that may have happened",
                       seal->path, (unsigned)(st.st_mode & 0777));
    got = read(fd, seal->key, KEY_SIZE);
    if (got != KEY_SIZE || read(fd, &more, 1) != 0)
        return aq_fail(err, EKEYREJECTED,
                       "the key file '%s' is not %d bytes long; restore it "
                       "from a backup",
                       seal->path, KEY_SIZE);
    (void)SHA256(seal->key, KEY_SIZE, hash);
    memcpy(seal->check, hash, CHECK_SIZE);
    return 0;
}

int seal_open(const char *path, bool may_create, struct seal **ret, struct aq_error *err)
{
    AQ_CLEANUP(seal_freep) struct seal *seal = aq_alloc(sizeof(*seal));
    AQ_CLEANUP(aq_closep) int fd = -1;
    int r;

    seal->path = aq_strdup(path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && may_create) {
        r = seal_create_key(path, err);
        if (r < 0)
            return r;
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0 && errno == ENOENT)
        return aq_fail(err, EKEYREJECTED,
                       "the key file '%s' is missing: the secrets in the "
                       "database cannot be read without it; restore it from a backup",
                       path);
    if (fd < 0)
        return aq_fail_errno(err, "open the key file '%s'", path);
    r = seal_read_key(seal, fd, err);
    if (r == 0)
        *ret = AQ_TAKE(seal);
    return r;
}

int seal_export(const char *path, char ret[SEAL_KEY_TEXT], struct aq_error *err)
{
    AQ_CLEANUP(seal_freep) struct seal *seal = NULL;
    int r = seal_open(path, false, &seal, err);

    for (size_t i = 0; r == 0 && i < KEY_SIZE; i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", seal->key[i]);
    return r;
}

int seal_import(const char *path, const char *text, struct aq_error *err)
{
    unsigned char key[KEY_SIZE];
    unsigned byte;
    int r;

    if (strlen(text) != SEAL_KEY_TEXT - 1 || text[strspn(text, "0123456789abcdef")])
        return aq_fail(err, EINVAL, "the sealing key is not %d hexadecimal digits",
                       SEAL_KEY_TEXT - 1);
    for (size_t i = 0; i < KEY_SIZE; i++) {
        (void)sscanf(text + 2 * i, "%2x", &byte);
        key[i] = (unsigned char)byte;
    }
    r = fs_write_atomic(AT_FDCWD, path, key, sizeof(key), 0600, err);
    explicit_bzero(key, sizeof(key));
    return r;
}

void seal_free(struct seal *seal)
{
    if (!seal)
        return;
    explicit_bzero(seal->key, sizeof(seal->key));
    free(seal->path);
    free(seal);
}

int seal_close(const struct seal *seal, const char *row, const void *text, size_t len,
               unsigned char *out, struct aq_error *err)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n, ok;

    out[0] = VERSION;
    memcpy(out + CHECK_AT, seal->check, CHECK_SIZE);
    ok = ctx && len <= INT_MAX && RAND_bytes(out + NONCE_AT, NONCE_SIZE) == 1
         && EVP_EncryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->key, out + NONCE_AT) == 1
         && EVP_EncryptUpdate(ctx, NULL, &n, (const void *)row, (int)strlen(row)) == 1
         && EVP_EncryptUpdate(ctx, out + TEXT_AT, &n, text, (int)len) == 1
         && EVP_EncryptFinal_ex(ctx, out + TEXT_AT + n, &n) == 1
         && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, out + TEXT_AT + len) == 1;
    EVP_CIPHER_CTX_free(ctx);
    return ok ? 0 : aq_fail(err, EIO, "sealing '%s' failed in the crypto library", row);
}

int seal_reveal(const struct seal *seal, const char *row, const unsigned char *sealed, size_t len,
                char *out, struct aq_error *err)
{
    unsigned char tag[TAG_SIZE];
    EVP_CIPHER_CTX *ctx;
    int n, ok, text_len;

    if (len < SEAL_OVERHEAD || len > INT_MAX || sealed[0] != VERSION)
        return aq_fail(err, EUCLEAN, "the sealed value of '%s' is damaged", row);
    if (memcmp(sealed + CHECK_AT, seal->check, CHECK_SIZE) != 0)
        return aq_fail(err, EKEYREJECTED,
                       "the key file '%s' is not the one that sealed '%s'; "
                       "restore the one that belongs to this database",
                       seal->path, row);
    text_len = (int)(len - SEAL_OVERHEAD);
    memcpy(tag, sealed + len - TAG_SIZE, TAG_SIZE);
    ctx = EVP_CIPHER_CTX_new();
    ok = ctx && EVP_DecryptInit_ex(ctx, EVP_aes_256_gcm(), NULL, seal->key, sealed + NONCE_AT) == 1
         && EVP_DecryptUpdate(ctx, NULL, &n, (const void *)row, (int)strlen(row)) == 1
         && EVP_DecryptUpdate(ctx, (void *)out, &n, sealed + TEXT_AT, text_len) == 1
         && EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag) == 1
         && EVP_DecryptFinal_ex(ctx, (unsigned char *)out + n, &n) == 1;
    EVP_CIPHER_CTX_free(ctx);
    if (ok)
        return 0;
    explicit_bzero(out, (size_t)text_len);
    return aq_fail(err, EUCLEAN, "the sealed value of '%s' was changed by hand", row);
}

int seal_derive(const struct seal *seal, const char *purpose, unsigned char ret[SEAL_DERIVED],
                struct aq_error *err)
{
    unsigned int len = SEAL_DERIVED;

    if (!HMAC(EVP_sha256(), seal->key, KEY_SIZE, (const unsigned char *)purpose, strlen(purpose),
              ret, &len))
        return aq_fail(err, EIO, "deriving '%s' failed in the crypto library", purpose);
    return 0;
}
