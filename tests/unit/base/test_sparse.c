/* SPDX-License-Identifier: Apache-2.0 */
/* Writing with holes: the bytes are the same in whatever pieces they come, zeros take no blocks. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define SIZE (256 << 10)

static char image[SIZE], got[SIZE + 1];

/* A file of these bytes, written in pieces of this size; how many of its bytes have blocks. */
static int64_t write_in_pieces(size_t len, size_t piece)
{
    int fd = memfd_create("sparse", MFD_CLOEXEC);
    uint64_t offset = 0;
    struct stat st;

    assert_true(fd >= 0);
    for (size_t at = 0; at < len; at += piece) {
        size_t part = AQ_MIN(piece, len - at);

        assert_int_equal(fs_write_sparse(fd, image + at, part, &offset), 0);
        assert_int_equal(offset, at + part);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, offset); /* a copy that is cut here goes on from here */
    }
    assert_int_equal(pread(fd, got, sizeof(got), 0), len);
    assert_memory_equal(got, image, len);
    (void)close(fd);
    return (int64_t)st.st_blocks * 512;
}

static void test_pieces(void **state)
{
    static const size_t pieces[] = { 1, 511, 4095, 4096, 4097, 65536, 100000, SIZE };

    (void)state;
    memset(image, 0, sizeof(image));
    for (size_t i = 2; i < AQ_COUNT(pieces); i++)
        assert_int_equal(write_in_pieces(SIZE - 7, pieces[i]), 0);
    assert_int_equal(write_in_pieces(9000, 1), 0);
    image[100000] = 'x';
    image[100001] = 'y';
    for (size_t i = 2; i < AQ_COUNT(pieces); i++)
        assert_in_range(write_in_pieces(SIZE, pieces[i]), 1, 8192);
    image[0] = image[SIZE - 1] = 'z';
    for (size_t i = 1; i < AQ_COUNT(pieces); i++)
        assert_in_range(write_in_pieces(SIZE, pieces[i]), 1, 3 * 8192);
    memset(image, 'a', sizeof(image));
    for (size_t at = 0; at < SIZE; at += 1000)
        image[at] = 0;
    for (size_t i = 1; i < AQ_COUNT(pieces); i++)
        (void)write_in_pieces(SIZE, pieces[i]);
}

/* Nothing is written, and nothing is said to be. */
static void test_failures(void **state)
{
    int fd = memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    uint64_t offset = 0;
    struct stat st;

    (void)state;
    memset(image, 0, sizeof(image));
    image[0] = image[8192] = 'x';
    assert_int_equal(fs_write_sparse(fd, image, 4096, &offset), 0);
    assert_int_equal(fs_write_sparse(fd, image, 0, &offset), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    assert_int_equal(fs_write_sparse(fd, image, 1, &offset), -EPERM);
    assert_int_equal(offset, 4096);
    assert_int_equal(fs_write_sparse(fd, image + 4096, 4096, &offset), -EPERM);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 4096);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_failures),
    };

    return cmocka_run_group_tests_name("base/sparse", tests, NULL, NULL);
}
