/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed files: what older versions made, what is compressed, and what is not as we write it. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fs.h"
#include "manager/backup/members.h"

#define PIECE ((size_t)64 << 10)
#define PLAIN "aliquot-backup 1\n"
#define COMPRESSED "aliquot-backup 2\n"

static const char passphrase[] = "correct horse";

static int new_file(void)
{
    int fd = memfd_create("sealed", MFD_CLOEXEC);

    assert_true(fd >= 0);
    return fd;
}

static void put(int fd, const void *bytes, size_t len)
{
    assert_int_equal(fs_write_all(fd, bytes, len), 0);
}

/* As a version of 'magic' writes it, of a cost that is low. */
static int seal(const char *magic, const void *bytes, size_t len)
{
    static const uint8_t salt[crypto_pwhash_SALTBYTES], cost[8] = { 1, 0, 1, 0 };
    uint8_t key[crypto_secretstream_xchacha20poly1305_KEYBYTES];
    uint8_t sealed[PIECE + crypto_secretstream_xchacha20poly1305_ABYTES];
    uint8_t stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
    crypto_secretstream_xchacha20poly1305_state state;
    const uint8_t *at = bytes;
    int fd = new_file();
    size_t now;

    assert_int_equal(crypto_pwhash(key, sizeof(key), passphrase, strlen(passphrase), salt, 1,
                                   1 << 20, crypto_pwhash_ALG_ARGON2ID13),
                     0);
    assert_int_equal(crypto_secretstream_xchacha20poly1305_init_push(&state, stream, key), 0);
    put(fd, magic, strlen(magic));
    put(fd, salt, sizeof(salt));
    put(fd, cost, sizeof(cost));
    put(fd, stream, sizeof(stream));
    do {
        unsigned long long size;

        now = AQ_MIN(len, PIECE);
        assert_int_equal(crypto_secretstream_xchacha20poly1305_push(
                             &state, sealed, &size, at, now, NULL, 0,
                             now == PIECE ? crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
                                          : crypto_secretstream_xchacha20poly1305_TAG_FINAL),
                         0);
        put(fd, sealed, (size_t)size);
        at += now;
        len -= now;
    } while (now == PIECE);
    return fd;
}

/* Half of it random, half of it not. */
static uint8_t *make_content(size_t len)
{
    uint8_t *bytes = calloc(1, len + 1);

    assert_non_null(bytes);
    randombytes_buf(bytes, len / 2);
    return bytes;
}

/* Takes the file. */
static struct sealed_file *open_file(int *fd)
{
    struct sealed_file *f = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(lseek(*fd, 0, SEEK_SET), 0);
    if (sealed_file_open(*fd, passphrase, &f, &err) < 0)
        fail_msg("%s", err.text);
    return f;
}

/* In portions of an odd size, up to the end, and no further. */
static void check_content(int fd, const uint8_t *expected, size_t len)
{
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = open_file(&fd);
    uint8_t bytes[7001];

    while (len) {
        size_t now = AQ_MIN(len, sizeof(bytes));

        assert_int_equal(sealed_file_is_at_end(f, NULL), 0);
        assert_int_equal(sealed_file_read(f, bytes, now, NULL), 0);
        assert_memory_equal(bytes, expected, now);
        expected += now;
        len -= now;
    }
    assert_int_equal(sealed_file_is_at_end(f, NULL), 1);
    assert_int_equal(sealed_file_is_at_end(f, NULL), 1);
    assert_int_equal(sealed_file_read(f, bytes, 1, NULL), -EBADMSG);
    (void)close(fd);
}

static const size_t sizes[] = { 0, 1, PIECE - 1, PIECE, PIECE + 1, 4 * PIECE, 5000001 };

static void test_what_is_written_is_read(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < AQ_COUNT(sizes); i++) {
        uint8_t *content = make_content(sizes[i]);
        struct sealed_file *f = NULL;
        struct stat st;
        int fd = new_file();

        assert_int_equal(sealed_file_create(fd, passphrase, &f, NULL), 0);
        assert_int_equal(sealed_file_write(f, content, sizes[i], NULL), 0);
        assert_int_equal(sealed_file_finish(f, NULL), 0);
        sealed_file_free(f);
        assert_int_equal(fstat(fd, &st), 0);
        if (sizes[i] > PIECE)
            assert_in_range(st.st_size, sizes[i] / 2, sizes[i] * 6 / 10);
        check_content(fd, content, sizes[i]);
        free(content);
    }
}

static void test_older_ones_are_read(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < AQ_COUNT(sizes); i++) {
        uint8_t *content = make_content(sizes[i]);

        check_content(seal(PLAIN, content, sizes[i]), content, sizes[i]);
        free(content);
    }
}

/* A frame of 'content' with a window of so many bits. */
static size_t make_frame(uint8_t *frame, size_t room, const void *content, size_t len, int window)
{
    ZSTD_CCtx *compress = ZSTD_createCCtx();
    ZSTD_outBuffer out = { frame, room, 0 };
    ZSTD_inBuffer in = { content, len, 0 };

    assert_non_null(compress);
    (void)ZSTD_CCtx_setParameter(compress, ZSTD_c_windowLog, window);
    while (in.pos < in.size) /* whose size is not known before */
        assert_false(ZSTD_isError(ZSTD_compressStream2(compress, &out, &in, ZSTD_e_continue)));
    assert_int_equal(ZSTD_compressStream2(compress, &out, &in, ZSTD_e_end), 0);
    (void)ZSTD_freeCCtx(compress);
    return out.pos;
}

static void check_refused(const uint8_t *frame, size_t len, size_t content, const char *expected)
{
    int fd = seal(COMPRESSED, frame, len);
    struct sealed_file *f = open_file(&fd);
    struct aq_error err = { 0 };
    uint8_t byte;
    int r = 0;

    for (size_t i = 0; r == 0 && i < content; i++)
        r = sealed_file_read(f, &byte, 1, &err);
    if (r == 0)
        r = sealed_file_is_at_end(f, &err);
    assert_int_equal(r, -EBADMSG);
    assert_non_null(strstr(err.text, expected));
    sealed_file_free(f);
    (void)close(fd);
}

static void test_frames_that_are_not_ours(void **unused)
{
    static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0 };
    static uint8_t frame[3 * PIECE];
    static const char content[] = "contents";
    size_t len = make_frame(frame, sizeof(frame), content, sizeof(content), 20);

    (void)unused;
    check_content(seal(COMPRESSED, frame, len), (const uint8_t *)content, sizeof(content));
    check_refused(frame, len - 1, sizeof(content), "cut after 64 KiB");
    check_refused(frame, 3, sizeof(content), "not compressed");
    check_refused(frame, 0, sizeof(content), "not compressed");
    check_refused((const uint8_t *)content, sizeof(content), 1, "not compressed");
    check_refused(skippable, sizeof(skippable), 0, "not compressed");
    memcpy(frame + len, frame, len);
    check_refused(frame, 2 * len, sizeof(content), "goes on after its end");
    memset(frame + len, 0, PIECE);
    check_refused(frame, PIECE, sizeof(content), "goes on after its end");
    check_refused(frame, PIECE + 1, sizeof(content), "goes on after its end");
    len = make_frame(frame, sizeof(frame), content, sizeof(content), 21);
    check_refused(frame, len, sizeof(content), "too much memory");
}

/* What says that it is larger than the disk is refused before it is written. */
static void test_much_that_is_little(void **unused)
{
    static const uint8_t head[] = { 10,  0,   0,   0,   0,   0,   0,   0,   0,   64,
                                    'a', 'l', 'i', 'q', 'u', 'o', 't', '.', 'd', 'b' };
    uint8_t frame[256];
    char folder[] = "/tmp/aq-sealed-XXXXXX";
    int fd = seal(COMPRESSED, frame, make_frame(frame, sizeof(frame), head, sizeof(head), 20));
    AQ_CLEANUP(sealed_file_freep) struct sealed_file *f = open_file(&fd);
    struct aq_error err = { 0 };

    (void)unused;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(members_extract(f, folder, &err), -ENOSPC);
    assert_non_null(
        strstr(err.text, "'aliquot.db' in it has 4398046511104 MiB, there is room for"));
    assert_int_equal(rmdir(folder), 0); /* nothing is in it */
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_older_ones_are_read),
        cmocka_unit_test(test_frames_that_are_not_ours),
        cmocka_unit_test(test_much_that_is_little),
    };

    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
