/* SPDX-License-Identifier: Apache-2.0 */
/* test_region.c - the handshake from the library's side: what it accepts and what it rejects */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gpu/fork.h"
#include "gpu/region.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* How an answer differs from a good one. */
struct answer {
    const char *why;
    bool taken;
    int limits_unsealed, usage_unsealed;
    int64_t limits_more, usage_more;              /* bytes than the files should have */
    uint32_t magic, version, size, devices, slot; /* more than it should be */
    int32_t error;
    bool is_dumb, is_short, has_one_file;
};

static const struct answer answers[] = {
    { .why = "a region", .taken = true },
    { .why = "longer files", .taken = true, .limits_more = 4096, .usage_more = 4096 },
    { .why = "limits that may shrink", .limits_unsealed = F_SEAL_SHRINK },
    { .why = "usage without seals", .usage_unsealed = SEALS },
    { .why = "truncated limits", .limits_more = -1 },
    { .why = "truncated usage", .usage_more = -(int64_t)sizeof(struct aq_gpu_usage) },
    { .why = "a region of another version", .version = 1 },
    { .why = "something else", .magic = 1 },
    { .why = "another size", .size = 1 },
    { .why = "too many devices", .devices = AQ_GPU_DEVICES_MAX },
    { .why = "a full region", .error = EAGAIN },
    { .why = "the agent's slot", .slot = UINT32_MAX },
    { .why = "a slot past the end", .slot = AQ_GPU_SLOTS_MAX },
    { .why = "a peer that hangs up", .is_dumb = true },
    { .why = "half an answer", .is_short = true },
    { .why = "one file of two", .has_one_file = true },
};

/* The rest of the library is not here, and no test forks. */
void gpu_fork_watch(void)
{
}

static int make_file(size_t size, int64_t more, int seals, const void *head, size_t len)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)((int64_t)size + more)), 0);
    if ((int64_t)size + more >= (int64_t)len)
        assert_int_equal(pwrite(fd, head, len, 0), (ssize_t)len);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void send_files(int client, const struct answer *answer, const int fds[2])
{
    const struct aq_gpu_welcome welcome = { .magic = AQ_GPU_MAGIC,
                                            .version = AQ_GPU_VERSION,
                                            .error = answer->error,
                                            .slot = 1 + answer->slot };
    size_t len = (answer->has_one_file ? 1 : 2) * sizeof(int);
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {
        .align = { .cmsg_len = CMSG_LEN(len), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
    };
    struct iovec part = { (void *)&welcome, sizeof(welcome) / (answer->is_short ? 2 : 1) };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = CMSG_SPACE(len) };

    memcpy(CMSG_DATA(&control.align), fds, len);
    assert_true(sendmsg(client, &message, MSG_NOSIGNAL) > 0);
}

struct server {
    int listener;
    const struct answer *answer;
};

static void *serve(void *data)
{
    const struct server *server = data;
    const struct answer *answer = server->answer;
    const struct aq_gpu_limits limits = { .magic = AQ_GPU_MAGIC + answer->magic,
                                          .version = AQ_GPU_VERSION + answer->version,
                                          .size = sizeof(limits) + answer->size,
                                          .device_count = 1 + answer->devices };
    struct aq_gpu_hello hello;
    int client = accept(server->listener, NULL, NULL);
    int fds[2] = {
        make_file(sizeof(limits), answer->limits_more, SEALS & ~answer->limits_unsealed, &limits,
                  offsetof(struct aq_gpu_limits, devices)),
        make_file(sizeof(struct aq_gpu_usage), answer->usage_more, SEALS & ~answer->usage_unsealed,
                  "", 1),
    };

    assert_int_equal(recv(client, &hello, sizeof(hello), 0), sizeof(hello));
    assert_int_equal(hello.own_pid, getpid());
    if (!answer->is_dumb)
        send_files(client, answer, fds);
    (void)close(fds[0]);
    (void)close(fds[1]);
    (void)close(client);
    return NULL;
}

static void check(const struct answer *answer, int listener)
{
    struct server server = { listener, answer };
    pthread_t thread;
    int before = dup(listener), after;

    (void)close(before);
    assert_int_equal(pthread_create(&thread, NULL, serve, &server), 0);
    errno = EXDEV;
    assert_row(gpu_region_attach() == answer->taken, "%s", answer->why);
    assert_row(errno == EXDEV, "%s: errno is kept", answer->why);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_row(gpu_region_is_attached() == answer->taken, "%s", answer->why);
    assert_row((gpu_region.usage != NULL) == answer->taken, "%s", answer->why);
    after = dup(listener);
    assert_row(after == before, "%s: no descriptor is kept", answer->why);
    (void)close(after);
    if (answer->taken) {
        (void)munmap((void *)gpu_region.limits, sizeof(struct aq_gpu_limits));
        (void)munmap(gpu_region.usage, sizeof(struct aq_gpu_usage));
    }
    gpu_region_after_fork();
}

static void test_answers(void **state)
{
    char folder[] = "/tmp/aliquot-region-XXXXXX";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(setenv("ALIQUOT_GPU_SOCKET", address.sun_path, 1), 0);
    for (size_t i = 0; i < AQ_COUNT(answers); i++)
        check(&answers[i], listener);
    (void)close(listener);
    (void)unlink(address.sun_path);
    (void)rmdir(folder);
}

static void test_nobody(void **state)
{
    (void)state;
    assert_int_equal(setenv("ALIQUOT_GPU_SOCKET", "/nonexistent/socket", 1), 0);
    assert_false(gpu_region_attach());
    assert_false(gpu_region_attach()); /* at once: not even tried */
    gpu_region_after_fork();
    assert_int_equal(unsetenv("ALIQUOT_GPU_SOCKET"), 0);
    assert_false(gpu_region_attach());
    gpu_region_renew();
    gpu_region_count_unknown();
    gpu_region_after_fork();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
