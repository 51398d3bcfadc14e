/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while a manager and an agent talk: what one accepted the other gets, once
 * and in order; a connection may end, and is made again.
 */
#include "testing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "link/link.h"
#include "link/pki.h"
#include "oom.h"

#define BYTES 20000
#define SHORT_USEC (60 * USEC_PER_MSEC) /* then memory is there again, if it still is short */

static struct {
    uv_loop_t loop;
    uv_timer_t tick;
    struct pki_ca *ca;
    struct link_server *server;
    struct link_client *client;
    char *key, *cert;
    struct uuid incarnation;
    int64_t sent_to_server, sent_to_client; /* accepted; the attempt of each counts up */
    int64_t at_server, at_client;
    bool is_memory_back; /* from here on all must come */
    struct link_stream *server_stream, *client_stream;
    size_t server_got, client_got;
    int server_ended, client_ended; /* 1 = the other side finished, -1 = an error */
} scene;

/* ---- the loop ---- */

static int64_t scene_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * USEC_PER_SEC + now.tv_nsec / 1000;
}

static void scene_on_tick(uv_timer_t *timer)
{
    (void)timer;
}

/* False: it did not come, and memory was short. */
static bool scene_wait(bool (*has_come)(void))
{
    int64_t since = scene_now();

    while (!has_come()
           && (scene.is_memory_back || !oom_has_failed() || scene_now() - since <= SHORT_USEC))
        (void)uv_run(&scene.loop, UV_RUN_ONCE);
    return has_come();
}

static void scene_give_memory(void)
{
    oom_end();
    scene.is_memory_back = true;
}

/* It comes, at the latest with all the memory there is: what hangs is ended by alarm(2). */
static void scene_wait_on(bool (*has_come)(void))
{
    if (scene_wait(has_come))
        return;
    scene_give_memory();
    (void)scene_wait(has_come);
}

static void scene_open(const char *dir)
{
    struct aq_error err = { 0 };
    int r;

    memset(&scene, 0, sizeof(scene));
    scene.incarnation = uuid_random();
    (void)alarm(20);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&scene.loop), 0);
    assert_int_equal(uv_timer_init(&scene.loop, &scene.tick), 0);
    assert_int_equal(uv_timer_start(&scene.tick, scene_on_tick, 5, 5), 0);
    oom_begin();
    r = pki_ca_open(dir, &scene.ca, &err);
    oom_check("authority", r, &err);
    if (r < 0) {
        scene_give_memory();
        assert_int_equal(pki_ca_open(dir, &scene.ca, &err), 0);
    }
}

static void scene_close(void)
{
    oom_end();
    link_client_free(scene.client);
    link_server_free(scene.server);
    uv_close((uv_handle_t *)&scene.tick, NULL);
    assert_int_equal(uv_run(&scene.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&scene.loop), 0);
    pki_ca_free(scene.ca);
    free(scene.key);
    free(scene.cert);
    oom_pass();
}

/* ---- streams ---- */

static void stream_on_open(void *data, struct link_stream *stream)
{
    static const char bytes[BYTES];

    (void)data;
    (void)link_stream_write(stream, bytes, sizeof(bytes)); /* a failure ends it */
}

static void stream_on_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    (void)data;
    (void)bytes;
    *(stream == scene.server_stream ? &scene.server_got : &scene.client_got) += len;
}

static void stream_on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    (void)data;
    if (stream == scene.server_stream) {
        scene.server_stream = NULL;
        scene.server_ended = err ? -1 : 1;
    } else {
        assert_ptr_equal(stream, scene.client_stream);
        scene.client_stream = NULL;
        scene.client_ended = err ? -1 : 1;
    }
}

static const struct link_stream_ops stream_ops = { .on_open = stream_on_open,
                                                   .on_data = stream_on_data,
                                                   .on_close = stream_on_close };

/* ---- both ends ---- */

static int server_on_hello(void *data, const struct msg_hello *hello, struct msg_welcome *welcome,
                           int64_t *retry_usec, struct aq_error *err)
{
    (void)data;
    (void)retry_usec;
    (void)err;
    assert_string_equal(hello->agent_id, "node-1");
    welcome->heartbeat_usec = 7;
    return 0;
}

static void server_on_message(void *data, const char *agent_id, const struct message *msg)
{
    (void)data;
    (void)agent_id;
    if (msg->type != MSG_KERNEL_STATUS)
        return;
    assert_int_equal(msg->kernel_status.attempt, scene.at_server + 1);
    assert_string_equal(msg->kernel_status.slots, "{\"cpu\":\"1\"}");
    scene.at_server++;
}

static void server_on_join(void *data, struct link_join *join, const struct msg_join *msg)
{
    char *cert = NULL;
    struct aq_error err = { 0 };
    int r = pki_issue_agent(scene.ca, msg->csr, msg->agent_id, 10, &cert, NULL, &err);

    (void)data;
    oom_check("issue", r, &err);
    if (r < 0)
        link_join_refuse(join, "refused", err.text);
    else
        link_join_accept(join, cert, NULL);
    free(cert);
}

static void client_on_greet(void *data, struct msg_hello *hello)
{
    (void)data;
    hello->slots = "{\"cpu\":[\"count\",\"4\"]}";
}

static void client_on_stream_open(const struct msg_stream_open *open)
{
    struct message msg = { .type = MSG_STREAM_REFUSED,
                           .stream_refused = { .stream_id = open->stream_id, .text = "no" } };
    struct aq_error err = { 0 };
    int r = scene.client_stream ? -EBUSY
                                : link_client_open_stream(scene.client, open, &stream_ops, NULL,
                                                          &scene.client_stream, &err);

    if (r == 0)
        return;
    if (!scene.client_stream)
        oom_check("open stream", r, &err);
    (void)link_client_send(scene.client, &msg, &err);
}

static void client_on_message(void *data, uint64_t seq, const struct message *msg)
{
    (void)data;
    if (msg->type == MSG_KERNEL_CREATE) {
        assert_int_equal(msg->kernel_create.attempt, scene.at_client + 1);
        assert_int_equal(msg->kernel_create.spec.session.environ.count, 1);
        scene.at_client++;
    }
    if (msg->type == MSG_STREAM_OPEN)
        client_on_stream_open(&msg->stream_open);
    if (seq)
        link_client_ack(scene.client, seq);
}

static void client_on_refused(void *data, const char *kind, const char *text)
{
    (void)data;
    (void)fprintf(stderr, "refused for good: %s: %s\n", kind, text);
    fail();
}

static const struct link_server_ops server_ops = { .on_hello = server_on_hello,
                                                   .on_message = server_on_message,
                                                   .on_join = server_on_join };
static const struct link_client_ops client_ops = { .on_greet = client_on_greet,
                                                   .on_message = client_on_message,
                                                   .on_refused = client_on_refused };

static int server_try(struct aq_error *err)
{
    char *key = NULL, *cert = NULL;
    int r = pki_issue_server(scene.ca, NULL, 0, 30, &cert, &key, err);

    if (r == 0) {
        struct link_server_conf conf = { .loop = &scene.loop,
                                         .host = "127.0.0.1",
                                         .ca = scene.ca,
                                         .cert = cert,
                                         .key = key,
                                         .incarnation = scene.incarnation,
                                         .ping_usec = 200 * USEC_PER_SEC,
                                         .dead_usec = 600 * USEC_PER_SEC };

        r = link_server_new(&conf, &server_ops, NULL, &scene.server, err);
    }
    free(key);
    free(cert);
    return r;
}

static int client_try(struct aq_error *err)
{
    const struct link_client_conf conf = { .loop = &scene.loop,
                                           .host = "127.0.0.1",
                                           .port = link_server_port(scene.server),
                                           .ca = pki_ca_cert(scene.ca),
                                           .cert = scene.cert,
                                           .key = scene.key,
                                           .agent_id = "node-1",
                                           .incarnation = scene.incarnation,
                                           .ping_usec = 200 * USEC_PER_SEC,
                                           .dead_usec = 600 * USEC_PER_SEC,
                                           .retry_min_usec = 2000,
                                           .retry_max_usec = 20000 };

    return link_client_new(&conf, &client_ops, NULL, &scene.client, err);
}

static int identity_try(struct aq_error *err)
{
    char *csr = NULL;
    int r = pki_request_new("node-1", &scene.key, &csr, err);

    if (r == 0 && (r = pki_issue_agent(scene.ca, csr, "node-1", 10, &scene.cert, NULL, err)) < 0) {
        free(scene.key);
        scene.key = NULL;
    }
    free(csr);
    return r;
}

/* It succeeds, or says that memory is short and succeeds when there is some. */
static void does(const char *what, int (*try)(struct aq_error *err))
{
    struct aq_error err = { 0 };
    int r = try(&err);

    oom_check(what, r, &err);
    if (r < 0) {
        scene_give_memory();
        assert_row(try(&err) == 0, "%s: %s", what, err.text);
    }
}

/* ---- messages ---- */

static void send_messages(int count)
{
    struct text_pair env = { .key = "A", .value = "b" };
    struct message status = { .type = MSG_KERNEL_STATUS,
                              .kernel_status = { .kernel_id = { .bytes = { 1 } },
                                                 .state = MSG_KERNEL_RUNNING,
                                                 .slots = "{\"cpu\":\"1\"}" } };
    struct message create = { .type = MSG_KERNEL_CREATE,
                              .kernel_create = { .kernel_id = { .bytes = { 1 } },
                                                 .session_id = { .bytes = { 2 } },
                                                 .spec = { .slots = "{\"cpu\":\"1\"}",
                                                           .session.environ = { &env, 1 } } } };

    for (int i = 0; i < count; i++) {
        struct aq_error err = { 0 };
        int r;

        status.kernel_status.attempt = scene.sent_to_server + 1;
        r = link_client_send(scene.client, &status, &err);
        oom_check("status", r, &err);
        scene.sent_to_server += r == 0;
        create.kernel_create.attempt = scene.sent_to_client + 1;
        r = link_server_send(scene.server, "node-1", &create, &err);
        oom_check("create", r, &err);
        scene.sent_to_client += r == 0;
    }
}

static bool both_are_connected(void)
{
    return link_client_is_connected(scene.client)
           && link_server_is_connected(scene.server, "node-1");
}

static bool all_has_come(void)
{
    return scene.at_server == scene.sent_to_server && scene.at_client == scene.sent_to_client;
}

static void cut_one(uv_handle_t *handle, void *data)
{
    struct sockaddr_storage peer;
    int fd, len = sizeof(peer);

    (void)data;
    if (handle->type == UV_TCP && !uv_is_closing(handle) && uv_fileno(handle, &fd) == 0
        && uv_tcp_getpeername((uv_tcp_t *)handle, (struct sockaddr *)&peer, &len) == 0)
        (void)shutdown(fd, SHUT_RDWR);
}

/* ---- a stream ---- */

static bool stream_has_carried(void)
{
    return (scene.server_got == BYTES && scene.client_got == BYTES) || scene.server_ended
           || scene.client_ended;
}

static bool stream_has_ended(void)
{
    return !scene.server_stream && !scene.client_stream;
}

/* True: both got all, and both ended well. */
static bool stream_try(void)
{
    struct msg_stream_open open = { .kind = "logs", .kernel_id = { .bytes = { 1 } } };
    struct aq_error err = { 0 };
    int r;

    scene.server_got = scene.client_got = 0;
    scene.server_ended = scene.client_ended = 0;
    r = link_server_open_stream(scene.server, "node-1", &open, &stream_ops, NULL,
                                &scene.server_stream, &err);
    if (r < 0) {
        if (r != -ENOTCONN && r != -EPIPE) /* these: the connection is about to be made again */
            oom_check("open stream", r, &err);
        scene.server_stream = NULL;
        return false;
    }
    (void)scene_wait(stream_has_carried);
    link_stream_close(AQ_TAKE(scene.server_stream)); /* the agent's end hears of it */
    if (!scene_wait(stream_has_ended)) {
        scene_give_memory();
        link_stream_close(AQ_TAKE(scene.client_stream));
    }
    return scene.server_got == BYTES && scene.client_got == BYTES && scene.client_ended == 1;
}

static void stream_carries(void)
{
    if (stream_try())
        return;
    assert_row(oom_has_failed(), "stream: %zu and %zu bytes, ends %d and %d", scene.server_got,
               scene.client_got, scene.server_ended, scene.client_ended);
    do {
        scene_give_memory();
        scene_wait_on(both_are_connected);
    } while (!stream_try());
}

static void run_talk(const char *dir)
{
    scene_open(dir);
    does("identity", identity_try);
    does("server", server_try);
    does("client", client_try);
    scene_wait_on(both_are_connected);
    send_messages(3);
    scene_wait_on(all_has_come);
    stream_carries();
    stream_carries(); /* over the same connection */
    send_messages(2);
    uv_walk(&scene.loop, cut_one, NULL);
    send_messages(2);
    scene_wait_on(all_has_come);
    scene_wait_on(both_are_connected);
    scene_close();
}

/* ---- joining ---- */

/* A machine that joins, on a thread: the call blocks. */
struct joining {
    uv_async_t done;
    bool is_over;
    char *key, *csr, *cert, *ca;
    int r;
    struct aq_error err;
};

static void *joining_run(void *data)
{
    struct joining *j = data;
    const struct msg_join msg = { .secret = "right", .agent_id = "node-7", .csr = j->csr };
    const struct pki_token token = pki_token_new(scene.ca, 0);

    j->r = link_join_request("127.0.0.1", link_server_port(scene.server), &token, &msg,
                             2 * USEC_PER_SEC, &j->cert, &j->ca, &j->err);
    (void)uv_async_send(&j->done);
    return NULL;
}

static void joining_on_done(uv_async_t *async)
{
    struct joining *j = async->data;

    j->is_over = true;
    uv_close((uv_handle_t *)async, NULL);
}

static void joining_try(struct joining *j)
{
    pthread_t thread;

    *j = (struct joining){ .key = j->key, .csr = j->csr };
    assert_int_equal(uv_async_init(&scene.loop, &j->done, joining_on_done), 0);
    j->done.data = j;
    assert_int_equal(pthread_create(&thread, NULL, joining_run, j), 0);
    while (!j->is_over)
        (void)uv_run(&scene.loop, UV_RUN_ONCE);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)uv_run(&scene.loop, UV_RUN_NOWAIT);
}

static bool joining_memory_is_short(void)
{
    void *memory = malloc(1);

    free(memory);
    return !memory;
}

/* Both sides of a join: where one lacks memory the machine is told, or hung up on, at once;
 * only a manager that has no memory for anyone keeps it waiting.
 */
static void run_join(const char *dir)
{
    struct joining j = { 0 };

    scene_open(dir);
    does("server", server_try);
    oom_pause(true);
    assert_int_equal(pki_request_new("node-7", &j.key, &j.csr, NULL), 0);
    oom_pause(false);
    joining_try(&j);
    if (j.r < 0) {
        assert_row(oom_has_failed(), "join: %s", j.err.text);
        if (j.r == -ETIMEDOUT)
            assert_true(joining_memory_is_short());
        else if (j.r != -ECONNABORTED && j.r != -EACCES)
            oom_check("join", j.r, &j.err);
        scene_give_memory();
        joining_try(&j);
    }
    assert_row(j.r == 0, "join: %s", j.err.text);
    free(j.key);
    free(j.csr);
    free(j.cert);
    free(j.ca);
    scene_close();
}

static void prepare(const char *dir)
{
    assert_int_equal(pki_ca_open(dir, &scene.ca, NULL), 0);
    pki_ca_free(scene.ca);
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "messages, streams, a cut and a reconnect", prepare, run_talk, NULL },
        { "a machine that joins", prepare, run_join, NULL },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
