/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of directories, clocks, limits, certificates and ports. */
#include "unit/testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "check/machine.h"
#include "check/port.h"

#define DAY (INT64_C(86400) * USEC_PER_SEC)

static char folder[PATH_MAX];

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof(folder), "/tmp/check-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return fs_remove_tree(AT_FDCWD, folder, NULL);
}

static const char *below(const char *name)
{
    static char path[PATH_MAX + 64];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *bytes, size_t len)
{
    assert_int_equal(fs_write_quick(AT_FDCWD, below(name), bytes, len, 0644, NULL), 0);
}

static void test_folder_that_is_not_there_yet(void **state)
{
    struct finding found;

    (void)state;
    machine_check_folder(below("one/two"), "aliquot-agent", &found);
    assert_true(found.level == CHECK_OK || strstr(found.text, "free"));
    assert_int_equal(access(below("one"), F_OK), -1); /* and is not left there */
    machine_check_folder(folder, "aliquot-agent", &found);
    assert_int_equal(access(folder, F_OK), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing in it */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void test_folder_that_cannot_be(void **state)
{
    struct finding found;

    (void)state;
    put("file", "", 0);
    machine_check_folder(below("file/state"), "aliquot-agent", &found);
    assert_int_equal(found.level, CHECK_MISSING);
    assert_non_null(strstr(found.text, "cannot be written"));
    assert_non_null(strstr(found.meaning, "aliquot-agent does not start"));
    assert_non_null(strstr(found.remedy, "--state FOLDER"));
}

static void test_folder_of_everybody(void **state)
{
    struct finding found;

    (void)state;
    assert_int_equal(mkdir(below("open"), 0777), 0);
    assert_int_equal(chmod(below("open"), 0777), 0);
    machine_check_folder(below("open"), "aliquot-agent", &found);
    assert_int_equal(found.level, CHECK_WARNING);
    assert_non_null(strstr(found.remedy, "chmod go-w"));
}

static void test_space(void **state)
{
    static const struct {
        unsigned long blocks, inodes, inodes_free;
        enum check_level level;
        const char *text;
    } rows[] = {
        { 1 << 20, 1000000, 500000, CHECK_OK, "4.0 GiB are free (ext4)" },
        { 100, 1000000, 500000, CHECK_WARNING, "only 0.4 MiB" },
        { 1 << 20, 1000000, 12, CHECK_WARNING, "only 12 files" },
        { 1 << 20, 0, 0, CHECK_OK, "free" }, /* as btrfs, which does not count them */
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct statvfs fs = { .f_frsize = 4096,
                                    .f_bavail = rows[i].blocks,
                                    .f_files = rows[i].inodes,
                                    .f_favail = rows[i].inodes_free };
        struct finding found;

        machine_judge_space("/s", &fs, "ext4", &found);
        assert_row(found.level == rows[i].level, "%zu", i);
        assert_row(strstr(found.text, rows[i].text), "%zu: %s", i, found.text);
        assert_row((found.remedy[0] != '\0') == (found.level != CHECK_OK), "%zu", i);
    }
}

static void test_clock(void **state)
{
    static const struct {
        int result, status;
        enum check_level level;
    } rows[] = {
        { TIME_OK, 0, CHECK_OK },
        { TIME_INS, 0, CHECK_OK },
        { TIME_OK, STA_UNSYNC, CHECK_WARNING },
        { TIME_ERROR, 0, CHECK_WARNING },
        { -1, 0, CHECK_WARNING },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct timex clock = { .status = rows[i].status, .maxerror = 16000 };
        struct finding found;

        machine_judge_clock(&clock, rows[i].result, &found);
        assert_row(found.level == rows[i].level, "%zu", i);
        assert_row(!found.remedy[0] || strcmp(found.remedy, "apt install chrony") == 0, "%zu", i);
    }
}

static void test_files(void **state)
{
    struct finding found;

    (void)state;
    machine_judge_files(1024, &found);
    assert_int_equal(found.level, CHECK_WARNING);
    assert_non_null(strstr(found.remedy, "LimitNOFILE"));
    machine_judge_files(1048576, &found);
    assert_int_equal(found.level, CHECK_OK);
    machine_judge_files(RLIM_INFINITY, &found);
    assert_int_equal(found.level, CHECK_OK);
}

static void test_certificates(void **state)
{
    static const struct {
        int64_t left;
        enum check_level level;
        const char *text;
    } rows[] = {
        { 400 * DAY, CHECK_OK, "valid until 2027-12-27" },
        { 29 * DAY, CHECK_WARNING, "expires in 29 days" },
        { 0, CHECK_MISSING, "expired on 2026-11-22" },
        { -DAY, CHECK_MISSING, "expired on 2026-11-21" },
    };
    int64_t now;

    (void)state;
    assert_int_equal(clock_parse_date("2026-11-22T12:00:00Z", &now), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct finding found;

        machine_judge_certificate("a.crt", now + rows[i].left, now, "join again", &found);
        assert_row(found.level == rows[i].level, "%zu", i);
        assert_row(strstr(found.text, rows[i].text), "%zu: %s", i, found.text);
        assert_row((found.level == CHECK_OK) == !found.remedy[0], "%zu", i);
    }
}

static void test_containers_around_us(void **state)
{
    static const char marked[] = "HOME=/\0container=lxc\0TERM=linux";

    (void)state;
    assert_null(machine_find_container(folder));
    assert_int_equal(fs_mkdirs(below("proc/1"), 0755, NULL), 0);
    put("proc/1/environ", "HOME=/\0TERM=container=no", 24);
    assert_null(machine_find_container(folder));
    put("proc/1/environ", marked, sizeof(marked));
    assert_non_null(strstr(machine_find_container(folder), "process 1"));
    put(".dockerenv", "", 0);
    assert_string_equal(machine_find_container(folder), "/.dockerenv");
}

/* A socket that listens on a free port of 127.0.0.1. */
static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void test_ports(void **state)
{
    struct finding found;
    uint16_t port;
    int fd = listen_anywhere(&port);
    char name[32];
    pid_t pid;

    (void)state;
    assert_int_equal(port_find_owner(port, &pid, name), 0);
    assert_int_equal(pid, getpid());
    port_check("127.0.0.1", port, name, "--listen", &found);
    assert_int_equal(found.level, CHECK_OK);
    assert_non_null(strstr(found.text, "is served by"));
    port_check("127.0.0.1", port, "aliquot-manager", "aliquot-manager --listen A", &found);
    assert_int_equal(found.level, CHECK_MISSING);
    assert_non_null(strstr(found.text, name));
    assert_non_null(strstr(found.remedy, "ss -ltnp"));
    assert_non_null(strstr(found.remedy, "aliquot-manager --listen A"));
    (void)close(fd);
    assert_int_equal(port_find_owner(port, &pid, name), -ENOENT);
    port_check("127.0.0.1", port, "aliquot-manager", "", &found);
    assert_int_equal(found.level, CHECK_OK);
    port_check("192.0.2.1", port, "aliquot-manager", "", &found); /* no address of ours */
    assert_int_equal(found.level, CHECK_MISSING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_folder_that_is_not_there_yet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_that_cannot_be, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_folder_of_everybody, set_up, tear_down),
        cmocka_unit_test(test_space),
        cmocka_unit_test(test_clock),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_certificates),
        cmocka_unit_test_setup_teardown(test_containers_around_us, set_up, tear_down),
        cmocka_unit_test(test_ports),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
