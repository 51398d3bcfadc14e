/* SPDX-License-Identifier: Apache-2.0 */
/* Whom the monitor believes to be a container's process 1. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "monitor/runner_link.h"

#define MYSELF "/proc/self/exe"

/* A process that has the listener, says HELLO and, unless it 'stays', ends; the answer of
 * runner_link_receive().
 */
static int hear(const char *file, bool stays)
{
    const struct runner_hello said = { .type = RUNNER_HELLO, .started_usec = 42 };
    struct runner_link link = { .listener = -1, .report = -1, .log = -1, .connection = -1 };
    struct runner_hello hello = { 0 };
    int status, listener, r;
    pid_t pid;

    assert_int_equal(runner_link_open(&link, file, NULL), 0);
    listener = dup(link.listener);
    runner_link_connect(&link);
    assert_true(link.connection >= 0);
    assert_int_equal(runner_link_receive(&link, &hello), 0);
    pid = fork();
    if (pid == 0) {
        int fd = accept(listener, NULL, NULL);

        _exit(send(fd, &said, sizeof(said), 0) == (ssize_t)sizeof(said) && stays ? pause() : 0);
    }
    if (!stays)
        assert_int_equal(waitpid(pid, &status, 0), pid);
    aq_closep(&listener);
    (void)fcntl(link.connection, F_SETFL, 0);
    do
        r = runner_link_receive(&link, &hello);
    while (r == 0);
    if (stays) {
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
    }
    assert_true(link.is_over == !stays);
    runner_link_close(&link);
    assert_int_equal(hello.started_usec, r > 0 ? 42 : 0);
    return r;
}

static void test_who_is_believed(void **state)
{
    char folder[] = "/tmp/aliquot-link-XXXXXX", self[4096];
    ssize_t len = readlink(MYSELF, self, sizeof(self) - 1);

    (void)state;
    assert_true(len > 0);
    self[len] = '\0';
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(hear(self, true), 1);
    assert_int_equal(hear("/bin/sh", true), -EPERM);
    assert_int_equal(hear(NULL, true), 1); /* an agent of an earlier release named none */
    assert_int_equal(symlink(self, "runner"), 0);
    assert_int_equal(hear("runner", true), 1);
    assert_int_equal(hear(self, false), 1);
    assert_int_equal(chdir("/"), 0);
    (void)fs_remove_tree(AT_FDCWD, folder, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_who_is_believed) };

    return cmocka_run_group_tests_name("monitor/runner_link", tests, NULL, NULL);
}
