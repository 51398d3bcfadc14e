/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of files with holes. */
#include "testing.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "storage/copy.h"

#define MIB (INT64_C(1) << 20)

static void check(int fd, int64_t at, char wanted)
{
    char c = '?';

    assert_int_equal(pread(fd, &c, 1, at), 1);
    assert_int_equal(c, wanted);
}

static int64_t blocks_of(int fd, int64_t size)
{
    struct stat st;

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, size);
    return (int64_t)st.st_blocks * 512;
}

/* Both ways: by copy_file_range(2) on one file system, by hand between two. */
static void test_holes(void **state)
{
    static char folder[] = "/tmp/aq-copy-XXXXXX";
    int from = memfd_create("from", MFD_CLOEXEC), at, to[2];

    (void)state;
    assert_non_null(mkdtemp(folder));
    at = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    to[0] = memfd_create("to", MFD_CLOEXEC);
    to[1] = openat(at, "to", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_int_equal(pwrite(from, "a", 1, 3 * MIB), 1);
    assert_int_equal(pwrite(from, "b", 1, 5000 * MIB + 7), 1);
    assert_int_equal(ftruncate(from, 9000 * MIB + 3), 0);
    for (size_t i = 0; i < AQ_COUNT(to); i++) {
        _Atomic uint64_t done = 0;

        for (int64_t copies = 1; copies <= 2; copies++) { /* it is appended */
            int64_t base = (copies - 1) * (9000 * MIB + 3);

            assert_int_equal(lseek(from, 0, SEEK_SET), 0);
            assert_int_equal(copy_bytes(from, to[i], &done), 0);
            assert_int_equal(done, copies * (9000 * MIB + 3));
            assert_true(blocks_of(to[i], copies * (9000 * MIB + 3)) < MIB);
            check(to[i], base + 3 * MIB, 'a');
            check(to[i], base + 3 * MIB - 1, 0);
            check(to[i], base + 5000 * MIB + 7, 'b');
            check(to[i], base + 9000 * MIB + 2, 0);
        }
        (void)close(to[i]);
    }
    (void)close(from);
    (void)close(at);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
}

static void test_without_holes(void **state)
{
    int from = memfd_create("from", MFD_CLOEXEC), to = memfd_create("to", MFD_CLOEXEC);

    (void)state;
    assert_int_equal(copy_bytes(from, to, NULL), 0);
    (void)blocks_of(to, 0);
    assert_int_equal(write(from, "hello", 5), 5);
    assert_int_equal(lseek(from, 1, SEEK_SET), 1);
    assert_int_equal(copy_bytes(from, to, NULL), 0);
    assert_int_equal(copy_bytes(from, to, NULL), 0);
    (void)blocks_of(to, 4);
    check(to, 3, 'o');
    (void)close(from);
    (void)close(to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_without_holes),
    };

    return cmocka_run_group_tests_name("storage/copy", tests, NULL, NULL);
}
