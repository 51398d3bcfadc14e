/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fs.h"

char scene_folder[] = "/tmp/aliquot-link-XXXXXX";
struct pki_ca *scene_ca;

struct uuid scene_id_of(int n)
{
    struct uuid id = { .bytes = { 1, (uint8_t)(n >> 8), (uint8_t)n } };

    return id;
}

/* ---- the manager's callbacks ---- */

static int on_hello(void *data, const struct msg_hello *hello, struct msg_welcome *welcome,
                    int64_t *retry_usec, struct aq_error *err)
{
    struct scene *s = data;

    s->hellos++;
    s->hello_commit = hello->commit;
    welcome->heartbeat_usec = 7;
    welcome->epoch = s->welcome_epoch ? s->welcome_epoch : welcome->epoch;
    assert_string_equal(hello->agent_id, "node-1");
    *retry_usec = s->refuse_retry_usec;
    return s->refuse ? aq_fail(err, EACCES, "not today") : 0;
}

static void on_server_connected(void *data, const char *agent_id, const struct uuid *incarnation)
{
    struct scene *s = data;

    assert_string_equal(agent_id, "node-1");
    assert_false(uuid_is_nil(incarnation));
    s->connects++;
}

static void on_server_message(void *data, const char *agent_id, const struct message *msg)
{
    struct scene *s = data;

    (void)agent_id;
    if (msg->type != MSG_KERNEL_STATUS)
        return;
    s->was_disordered = s->was_disordered || msg->kernel_status.attempt != s->at_server + 1;
    s->at_server = msg->kernel_status.attempt;
}

static void on_server_disconnected(void *data, const char *agent_id, const struct uuid *incarnation,
                                   bool orderly, const char *why)
{
    struct scene *s = data;

    (void)agent_id;
    (void)incarnation;
    assert_non_null(why);
    s->disconnects++;
    s->orderly += orderly;
}

static void on_join(void *data, struct link_join *join, const struct msg_join *msg)
{
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    char ca_key[] = "key", seal_key[] = "seal", database[] = "uri";
    const struct link_join_keys keys = { .ca_key = msg->link ? ca_key : NULL,
                                         .seal_key = seal_key,
                                         .database = msg->has_database ? NULL : database };
    struct aq_error err = { 0 };

    (void)data;
    if (strcmp(msg->secret, "right") != 0)
        link_join_refuse(join, "token", "the token is used up");
    else if (!msg->csr) /* of a manager */
        link_join_accept(join, NULL, &keys, NULL);
    else if (pki_issue_agent(scene_ca, msg->csr, msg->agent_id, PKI_AGENT_DAYS, &cert, NULL, &err)
             < 0)
        link_join_refuse(join, "refused", err.text);
    else
        link_join_accept(join, cert, NULL, NULL);
}

static void on_http(void *data, struct stream *stream, struct strbuf *first, const char *peer)
{
    struct scene *s = data;

    (void)snprintf(s->http_peer, sizeof(s->http_peer), "%s", peer);
    (void)snprintf(s->http_first, sizeof(s->http_first), "%s", first->data);
    s->https++;
    stream_close(stream);
}

static const struct link_server_ops server_ops = {
    .on_hello = on_hello,
    .on_connected = on_server_connected,
    .on_message = on_server_message,
    .on_disconnected = on_server_disconnected,
    .on_join = on_join,
    .on_http = on_http,
};

/* ---- streams ---- */

static void on_stream_open(void *data, struct link_stream *stream)
{
    struct scene *s = data;

    (void)stream;
    s->stream_opens++;
}

static void on_stream_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct scene *s = data;

    strbuf_add(stream == s->server_stream ? &s->at_server_bytes : &s->at_client_bytes, bytes, len);
}

static void channel_on_stream_drain(void *data, struct link_stream *stream)
{
    struct scene *s = data;

    (void)stream;
    s->drains++;
}

static void on_stream_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct scene *s = data;

    s->stream_closes++;
    s->stream_error = err ? err->code : 0;
    if (stream == s->server_stream)
        s->server_stream = NULL;
    else
        s->client_stream = NULL;
}

const struct link_stream_ops scene_stream_ops = {
    .on_open = on_stream_open,
    .on_data = on_stream_data,
    .on_drain = channel_on_stream_drain,
    .on_close = on_stream_close,
};

/* ---- the agent's callbacks ---- */

static void on_greet(void *data, struct msg_hello *hello)
{
    (void)data;
    hello->slots = "{\"cpu\":[\"count\",\"4\"]}";
}

static void on_client_message(void *data, uint64_t seq, const struct message *msg)
{
    struct scene *s = data;
    struct aq_error err = { 0 };

    if (msg->type == MSG_KERNEL_FORGET) {
        s->was_disordered = s->was_disordered || msg->kernel_forget.attempt != s->at_client + 1;
        s->at_client = msg->kernel_forget.attempt;
    }
    if (msg->type == MSG_STREAM_OPEN) {
        s->was_opened = true;
        s->opened = msg->stream_open;
        assert_string_equal(s->opened.kind, "logs");
        s->opened.kind = NULL; /* borrowed */
        (void)snprintf(s->opened_key, sizeof(s->opened_key), "%s", msg->stream_open.key);
        s->opened.key = s->opened_key;
        s->opened.reuse = s->opened.reuse && !s->is_old;
        if (s->auto_stream)
            assert_int_equal(link_client_open_stream(s->client, &s->opened, &scene_stream_ops, s,
                                                     &s->client_stream, &err),
                             0);
    }
    s->unknowns += msg->type == MSG_UNKNOWN;
    if (seq && !s->no_ack)
        link_client_ack(s->client, seq);
    s->last_seq = seq ? seq : s->last_seq;
}

static void on_refused(void *data, const char *kind, const char *text)
{
    struct scene *s = data;

    (void)snprintf(s->refused_kind, sizeof(s->refused_kind), "%s", kind);
    (void)snprintf(s->refused_text, sizeof(s->refused_text), "%s", text);
}

static int on_epoch(void *data, int64_t epoch)
{
    struct scene *s = data;

    assert_true(epoch > s->epoch);
    if (s->is_epoch_refused)
        return -EIO;
    s->epoch = epoch;
    return 0;
}

static void on_managers(void *data, const struct link_manager *list, size_t count)
{
    struct scene *s = data;

    s->named[0] = '\0';
    for (size_t i = 0; i < count; i++)
        (void)snprintf(s->named + strlen(s->named), sizeof(s->named) - strlen(s->named), "%s ",
                       list[i].link);
}

static void on_client_connected(void *data, const struct msg_welcome *welcome)
{
    struct scene *s = data;

    assert_true(welcome->epoch == 0 || welcome->epoch == s->epoch); /* after on_epoch() */
    s->welcomes++;
}

static void on_client_disconnected(void *data, const char *why)
{
    struct scene *s = data;

    (void)snprintf(s->lost_why, sizeof(s->lost_why), "%s", why);
    s->losses++;
}

const struct link_client_ops scene_client_ops = {
    .on_greet = on_greet,
    .on_epoch = on_epoch,
    .on_managers = on_managers,
    .on_connected = on_client_connected,
    .on_disconnected = on_client_disconnected,
    .on_message = on_client_message,
    .on_refused = on_refused,
};

/* ---- the stage ---- */

void scene_start_server(struct scene *s, uint16_t port)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    struct link_server_conf conf;
    struct aq_error err = { 0 };

    assert_int_equal(pki_issue_server(scene_ca, NULL, 0, 30, &cert, &key, &err), 0);
    conf = (struct link_server_conf){ .loop = &s->loop,
                                      .host = "127.0.0.1",
                                      .port = port,
                                      .ca = scene_ca,
                                      .cert = cert,
                                      .key = key,
                                      .incarnation = uuid_random(),
                                      .epoch = s->server_epoch };
    assert_row(link_server_new(&conf, &server_ops, s, &s->server, &err) == 0, "%s", err.text);
}

struct link_client *scene_start_client(struct scene *s, const char *id,
                                       const struct link_client_ops *ops, void *data)
{
    AQ_CLEANUP(aq_freep) char *address = aq_format("127.0.0.1:%u", link_server_port(s->server));
    const char *const addresses[] = { address };
    const struct link_client_conf conf = { .loop = &s->loop,
                                           .addresses = s->address_count ? s->addresses : addresses,
                                           .address_count = s->address_count ? s->address_count : 1,
                                           .is_fixed = s->is_fixed,
                                           .epoch = s->epoch,
                                           .ca = pki_ca_cert(scene_ca),
                                           .cert = s->cert,
                                           .key = s->key,
                                           .agent_id = id,
                                           .incarnation = s->incarnation,
                                           .retry_min_usec = 2000,
                                           .retry_max_usec = 20000 };
    struct link_client *client = NULL;
    struct aq_error err = { 0 };

    assert_row(link_client_new(&conf, ops, data, &client, &err) == 0, "%s", err.text);
    return client;
}

void scene_make_identity(struct scene *s, struct pki_ca *authority, const char *id, int days)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(pki_request_new(id, &s->key, &csr, &err), 0);
    assert_int_equal(pki_issue_agent(authority, csr, id, days, &s->cert, NULL, &err), 0);
}

void scene_init(struct scene *s)
{
    *s = (struct scene){ .incarnation = uuid_random() };
    strbuf_init(&s->at_server_bytes);
    strbuf_init(&s->at_client_bytes);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    scene_make_identity(s, scene_ca, "node-1", 10);
    scene_start_server(s, 0);
}

void scene_done(struct scene *s)
{
    link_client_free(s->client);
    link_server_free(s->server);
    assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    strbuf_done(&s->at_server_bytes);
    strbuf_done(&s->at_client_bytes);
    free(s->key);
    free(s->cert);
}

void scene_send_forget(struct scene *s, int n)
{
    struct message msg = { .type = MSG_KERNEL_FORGET,
                           .kernel_forget = { .kernel_id = scene_id_of(n), .attempt = n } };
    struct aq_error err = { 0 };

    assert_row(link_server_send(s->server, "node-1", &msg, &err) == 0, "%s", err.text);
}

void scene_send_status(struct scene *s, int n)
{
    struct message msg = {
        .type = MSG_KERNEL_STATUS,
        .kernel_status = { .kernel_id = scene_id_of(n), .attempt = n, .state = MSG_KERNEL_RUNNING }
    };
    struct aq_error err = { 0 };

    assert_row(link_client_send(s->client, &msg, &err) == 0, "%s", err.text);
}

int scene_make_folder(void **state)
{
    (void)state;
    return mkdtemp(scene_folder) ? pki_ca_open(scene_folder, &scene_ca, NULL) : -1;
}

int scene_remove_folder(void **state)
{
    (void)state;
    pki_ca_free(scene_ca);
    return fs_remove_tree(AT_FDCWD, scene_folder, NULL);
}
