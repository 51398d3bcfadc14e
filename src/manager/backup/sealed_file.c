/* SPDX-License-Identifier: Apache-2.0 */
/* A file that only who knows the passphrase can read. */
#include "manager/backup/sealed_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fs.h"
#include "base/memory.h"

#define PIECE ((size_t)64 << 10)
#define SEALED_PIECE (PIECE + crypto_secretstream_xchacha20poly1305_ABYTES)
/* What reading a stranger's file may cost. */
#define MEMORY_MAX ((uint64_t)1 << 30)
#define PASSES_MAX 16
#define WINDOW_LOG 20 /* of the compression: 1 MiB */
#define LEVEL 1

static const char sealed_file_plain[] = "aliquot-backup 1\n"; /* made by older versions */
static const char sealed_file_compressed[] = "aliquot-backup 2\n";
static const char sealed_file_frame[] = "\x28\xb5\x2f\xfd"; /* how a frame begins */
#define FRAME_BEGIN (sizeof(sealed_file_frame) - 1)

struct header {
    char magic[sizeof(sealed_file_compressed) - 1];
    unsigned char salt[crypto_pwhash_SALTBYTES];
    unsigned char cost[8]; /* passes (16 bits), MiB (16 bits), rest 0; little-endian */
    unsigned char stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
};

struct sealed_file {
    int fd;
    crypto_secretstream_xchacha20poly1305_state state;
    unsigned char piece[PIECE], sealed[SEALED_PIECE];
    size_t len; /* of 'piece' */
    uint64_t pieces;
    bool is_last;
    ZSTD_CCtx *compress;
    /* reading */
    ZSTD_DCtx *expand; /* NULL = nothing is compressed */
    size_t expanded;   /* of 'piece' */
    bool is_whole;     /* the frame has ended */
    unsigned char plain[PIECE];
    const unsigned char *content; /* 'piece' or 'plain' */
    size_t content_len, at;       /* filled, and read */
};

static int sealed_file_new(int fd, struct sealed_file **ret, struct aq_error *err)
{
    if (sodium_init() < 0)
        return aq_fail(err, EINVAL, "libsodium does not start");
    *ret = aq_alloc(sizeof(**ret));
    (*ret)->fd = fd;
    return 0;
}

void sealed_file_free(struct sealed_file *f)
{
    if (f) {
        (void)ZSTD_freeCCtx(f->compress);
        (void)ZSTD_freeDCtx(f->expand);
        sodium_memzero(f, sizeof(*f));
    }
    free(f);
}

static int sealed_file_derive(const struct header *h, const char *passphrase,
                              unsigned char key[crypto_secretstream_xchacha20poly1305_KEYBYTES],
                              struct aq_error *err)
{
    uint64_t passes = (uint64_t)h->cost[0] | (uint64_t)h->cost[1] << 8;
    uint64_t memory = ((uint64_t)h->cost[2] | (uint64_t)h->cost[3] << 8) << 20;

    if (passes < 1 || passes > PASSES_MAX || memory < (1 << 20) || memory > MEMORY_MAX)
        return aq_fail(err, EBADMSG, "the backup's header is damaged");
    if (crypto_pwhash(key, crypto_secretstream_xchacha20poly1305_KEYBYTES, passphrase,
                      strlen(passphrase), h->salt, passes, (size_t)memory,
                      crypto_pwhash_ALG_ARGON2ID13)
        != 0)
        return aq_fail_errno(err, "derive the backup's key from the passphrase");
    return 0;
}

/* ---- writing ---- */

int sealed_file_create(int fd, const char *passphrase, struct sealed_file **ret,
                       struct aq_error *err)
{
    unsigned char key[crypto_secretstream_xchacha20poly1305_KEYBYTES];
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = NULL;
    struct header h = { .cost = { 3, 0, 64, 0 } };
    int r = sealed_file_new(fd, &f, err);

    if (r < 0)
        return r;
    if (!(f->compress = ZSTD_createCCtx()))
        memory_is_short();
    (void)ZSTD_CCtx_setParameter(f->compress, ZSTD_c_compressionLevel, LEVEL);
    (void)ZSTD_CCtx_setParameter(f->compress, ZSTD_c_windowLog, WINDOW_LOG);
    memcpy(h.magic, sealed_file_compressed, sizeof(h.magic));
    randombytes_buf(h.salt, sizeof(h.salt));
    r = sealed_file_derive(&h, passphrase, key, err);
    if (r < 0)
        return r;
    (void)crypto_secretstream_xchacha20poly1305_init_push(&f->state, h.stream, key);
    sodium_memzero(key, sizeof(key));
    if (fs_write_all(fd, &h, sizeof(h)) < 0)
        return aq_fail_errno(err, "write the backup");
    *ret = AQ_TAKE(f);
    return 0;
}

static int sealed_file_push(struct sealed_file *f, unsigned char tag, struct aq_error *err)
{
    unsigned long long len;
    int r;

    (void)crypto_secretstream_xchacha20poly1305_push(&f->state, f->sealed, &len, f->piece, f->len,
                                                     NULL, 0, tag);
    f->len = 0;
    r = fs_write_all(f->fd, f->sealed, (size_t)len);
    return r < 0 ? aq_fail(err, -r, "write the backup: %s", strerror(-r)) : 0;
}

/* The end too, or as far as it goes. */
static int sealed_file_compress(struct sealed_file *f, ZSTD_inBuffer in, ZSTD_EndDirective end,
                                struct aq_error *err)
{
    bool is_done = false;
    int r = 0;

    while (r == 0 && !is_done) {
        ZSTD_outBuffer out = { f->piece, PIECE, f->len };
        size_t left = ZSTD_compressStream2(f->compress, &out, &in, end);

        if (ZSTD_isError(left))
            return aq_fail(err, ENOMEM, "compress the backup: %s", ZSTD_getErrorName(left));
        f->len = out.pos;
        is_done = end == ZSTD_e_end ? left == 0 : in.pos == in.size;
        if (f->len == PIECE)
            r = sealed_file_push(f, crypto_secretstream_xchacha20poly1305_TAG_MESSAGE, err);
    }
    return r;
}

int sealed_file_write(struct sealed_file *f, const void *bytes, size_t len, struct aq_error *err)
{
    return sealed_file_compress(f, (ZSTD_inBuffer){ bytes, len, 0 }, ZSTD_e_continue, err);
}

int sealed_file_finish(struct sealed_file *f, struct aq_error *err)
{
    int r = sealed_file_compress(f, (ZSTD_inBuffer){ NULL, 0, 0 }, ZSTD_e_end, err);

    return r < 0 ? r : sealed_file_push(f, crypto_secretstream_xchacha20poly1305_TAG_FINAL, err);
}

/* ---- reading ---- */

/* As much as there is, up to 'size'; or -errno. */
static ssize_t sealed_file_take(int fd, void *bytes, size_t size)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n = read(fd, (char *)bytes + got, size - got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

/* What was compressed needs a window of the size that we write at most. */
static int sealed_file_begin(struct sealed_file *f, const struct header *h, struct aq_error *err)
{
    f->content = f->piece;
    if (memcmp(h->magic, sealed_file_plain, sizeof(h->magic)) == 0)
        return 0;
    if (memcmp(h->magic, sealed_file_compressed, sizeof(h->magic)) != 0)
        return aq_fail(err, EBADMSG, "this is no backup of Aliquot, or of a later version");
    f->content = f->plain;
    if (!(f->expand = ZSTD_createDCtx()))
        memory_is_short();
    (void)ZSTD_DCtx_setParameter(f->expand, ZSTD_d_windowLogMax, WINDOW_LOG);
    return 0;
}

int sealed_file_open(int fd, const char *passphrase, struct sealed_file **ret, struct aq_error *err)
{
    unsigned char key[crypto_secretstream_xchacha20poly1305_KEYBYTES];
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = NULL;
    struct header h;
    int r = sealed_file_new(fd, &f, err);

    if (r < 0)
        return r;
    if (sealed_file_take(fd, &h, sizeof(h)) != (ssize_t)sizeof(h))
        return aq_fail(err, EBADMSG, "this is no backup of Aliquot");
    r = sealed_file_begin(f, &h, err);
    if (r == 0)
        r = sealed_file_derive(&h, passphrase, key, err);
    if (r == 0 && crypto_secretstream_xchacha20poly1305_init_pull(&f->state, h.stream, key) != 0)
        r = aq_fail(err, EBADMSG, "the backup's header is damaged");
    sodium_memzero(key, sizeof(key));
    if (r == 0)
        *ret = AQ_TAKE(f);
    return r;
}

static int sealed_file_fail(const struct sealed_file *f, const char *how, struct aq_error *err)
{
    return aq_fail(err, EBADMSG, "the backup is %s after %llu KiB", how,
                   (unsigned long long)(f->pieces * (PIECE >> 10)));
}

/* The next piece. */
static int sealed_file_pull(struct sealed_file *f, struct aq_error *err)
{
    ssize_t got = f->is_last ? 0 : sealed_file_take(f->fd, f->sealed, SEALED_PIECE);
    unsigned long long len;
    unsigned char tag;

    if (got < 0)
        return aq_fail(err, (int)-got, "read the backup: %s", strerror((int)-got));
    if (got == 0)
        return sealed_file_fail(f, "cut", err);
    if (crypto_secretstream_xchacha20poly1305_pull(&f->state, f->piece, &len, &tag, f->sealed,
                                                   (unsigned long long)got, NULL, 0)
        != 0)
        return f->pieces
                   ? sealed_file_fail(f, "damaged", err)
                   : aq_fail(err, EBADMSG, "the passphrase is wrong, or the backup is damaged");
    f->pieces++;
    f->len = (size_t)len;
    f->expanded = 0;
    f->is_last = tag == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
    return 0;
}

/* Until there is something to read, or the frame has ended. */
static int sealed_file_expand(struct sealed_file *f, struct aq_error *err)
{
    ZSTD_outBuffer out = { f->plain, PIECE, 0 };
    int r = 0;

    while (r == 0 && out.pos == 0 && !f->is_whole) {
        ZSTD_inBuffer in = { f->piece, f->len, f->expanded };
        size_t left = f->pieces ? ZSTD_decompressStream(f->expand, &out, &in) : 1;

        if (ZSTD_isError(left))
            return aq_fail(err, EBADMSG, "the backup is not compressed as it should be: %s",
                           ZSTD_getErrorName(left));
        f->expanded = in.pos;
        f->is_whole = left == 0;
        if (out.pos == 0 && !f->is_whole && in.pos == in.size)
            r = sealed_file_pull(f, err);
        if (r == 0 && f->pieces == 1 && memcmp(f->piece, sealed_file_frame, FRAME_BEGIN) != 0)
            r = aq_fail(err, EBADMSG, "the backup is not compressed as it should be");
    }
    f->content_len = out.pos;
    return r;
}

/* Nothing is behind the frame. */
static int sealed_file_check_end(struct sealed_file *f, struct aq_error *err)
{
    int r = f->expanded < f->len || f->is_last ? 0 : sealed_file_pull(f, err);

    return r < 0 || (f->is_last && f->expanded == f->len)
               ? r
               : aq_fail(err, EBADMSG, "the backup goes on after its end");
}

/* The next content; none = the end. */
static int sealed_file_fill(struct sealed_file *f, struct aq_error *err)
{
    int r = 0;

    f->at = f->content_len = 0;
    if (f->expand)
        return f->is_whole ? sealed_file_check_end(f, err) : sealed_file_expand(f, err);
    while (r == 0 && f->content_len == 0 && !f->is_last) {
        r = sealed_file_pull(f, err);
        f->content_len = r < 0 ? 0 : f->len;
    }
    return r;
}

int sealed_file_read(struct sealed_file *f, void *bytes, size_t len, struct aq_error *err)
{
    unsigned char *to = bytes;

    while (len) {
        size_t now = AQ_MIN(len, f->content_len - f->at);
        int r = now ? 0 : sealed_file_fill(f, err);

        if (r < 0)
            return r;
        if (f->content_len == 0)
            return sealed_file_fail(f, "cut", err);
        memcpy(to, f->content + f->at, now);
        f->at += now;
        to += now;
        len -= now;
    }
    return 0;
}

int sealed_file_is_at_end(struct sealed_file *f, struct aq_error *err)
{
    int r = f->at < f->content_len ? 0 : sealed_file_fill(f, err);

    return r < 0 ? r : f->at == f->content_len;
}
