/* SPDX-License-Identifier: Apache-2.0 */
/* Server and client of gRPC with each other, and with peers that break off or say nothing. */
#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "http/defer.h"
#include "kube/deviceplugin.pb-c.h"
#include "kube/grpc_client.h"
#include "kube/grpc_server.h"

struct scene {
    uv_loop_t loop;
    char folder[64], path[96];
    struct grpc_server *server;
    struct grpc_call *waiting; /* of the method Wait */
    int gone;
    /* of the latest answer */
    bool is_answered;
    size_t devices;
    struct aq_error error;
};

/* ---- the server's methods: Echo, Fail, Wait ---- */

static void on_echo(void *data, struct grpc_call *call, const ProtobufCMessage *request)
{
    (void)data;
    grpc_call_reply(call, request);
}

static void on_fail(void *data, struct grpc_call *call, const ProtobufCMessage *request)
{
    (void)data;
    (void)request;
    grpc_call_fail(call, GRPC_FAILED_PRECONDITION, "no card has 8 free: 100 %");
}

static void on_gone(void *data)
{
    struct scene *s = data;

    s->waiting = NULL;
    s->gone++;
}

static void on_wait(void *data, struct grpc_call *call, const ProtobufCMessage *request)
{
    struct scene *s = data;

    (void)request;
    s->waiting = call;
    grpc_call_on_gone(call, on_gone, s);
}

static const struct grpc_method methods[] = {
    { "/t.T/Echo", &v1beta1__list_and_watch_response__descriptor, on_echo },
    { "/t.T/Fail", &v1beta1__list_and_watch_response__descriptor, on_fail },
    { "/t.T/Wait", &v1beta1__list_and_watch_response__descriptor, on_wait },
    { .path = NULL },
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    struct grpc_server_conf conf = { .methods = methods, .data = s };

    assert_non_null(s);
    (void)snprintf(s->folder, sizeof(s->folder), "/tmp/aliquot-grpc-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    (void)snprintf(s->path, sizeof(s->path), "%s/socket", s->folder);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    conf.loop = &s->loop;
    conf.path = s->path;
    assert_int_equal(grpc_server_new(&conf, &s->server, NULL), 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    grpc_server_free(s->server);
    (void)uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s);
    return 0;
}

static void on_done(void *data, const ProtobufCMessage *answer, const struct aq_error *err)
{
    struct scene *s = data;

    s->is_answered = true;
    s->error = *err;
    s->devices = answer ? ((const V1beta1__ListAndWatchResponse *)(const void *)answer)->n_devices
                        : 0;
}

/* A list of so many devices to that method. */
static struct grpc_request *send_list(struct scene *s, const char *method, size_t devices,
                                      unsigned msec)
{
    AQ_CLEANUP(aq_freep) V1beta1__Device **list = calloc(devices + 1, sizeof(*list));
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    V1beta1__Device device = V1BETA1__DEVICE__INIT;
    struct grpc_request_conf conf = { .socket = s->path,
                                      .method = method,
                                      .message = &message.base,
                                      .answer = &v1beta1__list_and_watch_response__descriptor,
                                      .msec = msec,
                                      .on_done = on_done,
                                      .data = s };
    struct grpc_request *request;
    char id[] = "GPU-00000000-1111-2222-3333-444444444444_99";

    device.id = id;
    for (size_t i = 0; i < devices; i++)
        list[i] = &device;
    message.devices = list;
    message.n_devices = devices;
    s->is_answered = false;
    assert_int_equal(grpc_request_send(&s->loop, &conf, &request, NULL), 0);
    assert_false(s->is_answered);
    return request;
}

#define RUN_UNTIL(s, condition) \
    while (!(condition))        \
    assert_true(uv_run(&(s)->loop, UV_RUN_ONCE) || (condition))

static void test_a_call_is_answered(void **state)
{
    static const size_t sizes[] = { 0, 1, 1000, 50000 }; /* the last beyond any window */
    struct scene *s = *state;

    for (size_t i = 0; i < AQ_COUNT(sizes); i++) {
        (void)send_list(s, "/t.T/Echo", sizes[i], 60000);
        RUN_UNTIL(s, s->is_answered);
        assert_string_equal(s->error.text, "");
        assert_int_equal(s->devices, sizes[i]);
    }
}

static void test_a_failure_says_why(void **state)
{
    struct scene *s = *state;

    (void)send_list(s, "/t.T/Fail", 1, 60000);
    RUN_UNTIL(s, s->is_answered);
    assert_int_equal(s->error.code, EREMOTEIO);
    assert_string_equal(s->error.text, "status 9: no card has 8 free: 100 %");
    (void)send_list(s, "/t.T/Nothing", 1, 60000);
    RUN_UNTIL(s, s->is_answered);
    assert_string_equal(s->error.text, "status 12: there is no such method");
    (void)send_list(s, "/t.T/Echo", 100000, 60000); /* 4.7 MB */
    RUN_UNTIL(s, s->is_answered);
    assert_int_equal(s->error.code, EREMOTEIO);
    assert_non_null(strstr(s->error.text, "status 8: the request cannot be read: a message of"));
}

static void test_a_deadline_ends_a_call_on_both_sides(void **state)
{
    struct scene *s = *state;

    (void)send_list(s, "/t.T/Wait", 1, 100);
    RUN_UNTIL(s, s->is_answered);
    assert_int_equal(s->error.code, ETIMEDOUT);
    RUN_UNTIL(s, s->gone == 1);
    assert_null(s->waiting);
}

static void test_a_cancelled_call_is_not_heard_of(void **state)
{
    struct scene *s = *state;
    struct grpc_request *request = send_list(s, "/t.T/Wait", 1, 60000);

    RUN_UNTIL(s, s->waiting);
    grpc_request_cancel(request);
    RUN_UNTIL(s, s->gone == 1);
    assert_false(s->is_answered);
}

static void test_an_answer_comes_later(void **state)
{
    V1beta1__ListAndWatchResponse message = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    struct scene *s = *state;

    (void)send_list(s, "/t.T/Wait", 1, 60000);
    RUN_UNTIL(s, s->waiting);
    assert_false(s->is_answered);
    grpc_call_reply(s->waiting, &message.base);
    RUN_UNTIL(s, s->is_answered);
    assert_string_equal(s->error.text, "");
    assert_int_equal(s->gone, 0);
}

static void test_a_server_that_ends_breaks_calls_off(void **state)
{
    struct scene *s = *state;

    (void)send_list(s, "/t.T/Wait", 1, 60000);
    RUN_UNTIL(s, s->waiting);
    grpc_server_free(AQ_TAKE(s->server));
    assert_int_equal(s->gone, 1);
    RUN_UNTIL(s, s->is_answered);
    assert_true(s->error.code == ECONNRESET || s->error.code == EPIPE);
    assert_int_equal(access(s->path, F_OK), -1);
    (void)send_list(s, "/t.T/Wait", 1, 60000);
    RUN_UNTIL(s, s->is_answered);
    assert_int_equal(s->error.code, ENOENT);
}

/* A peer that answers these bytes to whatever it is asked, and closes. */
static void answer_raw(struct scene *s, const char *bytes, size_t len)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

    (void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", s->path);
    assert_int_equal(bind(listening, (const struct sockaddr *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(listening, 1), 0);
    (void)send_list(s, "/t.T/Echo", 1, 60000);
    (void)uv_run(&s->loop, UV_RUN_NOWAIT);
    fd = accept(listening, NULL, NULL);
    assert_int_equal(write(fd, bytes, len), len);
    (void)shutdown(fd, SHUT_WR);
    RUN_UNTIL(s, s->is_answered);
    (void)close(fd);
    (void)close(listening);
    (void)unlink(s->path);
}

static void test_a_server_that_is_none(void **state)
{
    static const char settings[] = "\0\0\0\4\0\0\0\0\0",
                      reset[] = "\0\0\0\4\0\0\0\0\0"
                                "\0\0\4\3\0\0\0\0\1\0\0\0\7",
                      status_404[] = "\0\0\0\4\0\0\0\0\0"
                                     "\0\0\1\1\5\0\0\0\1\x8d",
                      no_status[] = "\0\0\0\4\0\0\0\0\0"
                                    "\0\0\1\1\5\0\0\0\1\x88";
    struct scene *s = *state;

    grpc_server_free(AQ_TAKE(s->server));
    answer_raw(s, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    assert_int_equal(s->error.code, EPROTO);
    answer_raw(s, settings, sizeof(settings) - 1);
    assert_int_equal(s->error.code, ECONNRESET);
    answer_raw(s, reset, sizeof(reset) - 1);
    assert_string_equal(s->error.text, "the peer has reset the call: REFUSED_STREAM");
    answer_raw(s, status_404, sizeof(status_404) - 1);
    assert_string_equal(s->error.text, "HTTP status 404");
    answer_raw(s, no_status, sizeof(no_status) - 1);
    assert_string_equal(s->error.text, "the answer ends early");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_call_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_failure_says_why, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_deadline_ends_a_call_on_both_sides, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_cancelled_call_is_not_heard_of, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_an_answer_comes_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_ends_breaks_calls_off, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_none, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
