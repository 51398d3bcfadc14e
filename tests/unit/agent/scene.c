/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/identity.h"
#include "base/fs.h"
#include "base/strbuf.h"

/* ---- the manager ---- */

static void copy(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text ? text : "");
}

struct seen *scene_find(struct scene *s, const struct uuid *id)
{
    for (size_t i = 0; i < s->seen_count; i++) {
        if (uuid_equals(&s->seen[i].id, id))
            return &s->seen[i];
    }
    assert_true(s->seen_count < SEEN_MAX);
    s->seen[s->seen_count].id = *id;
    return &s->seen[s->seen_count++];
}

bool scene_is_final(struct scene *s, const struct uuid *id)
{
    const struct seen *seen = scene_find(s, id);

    return seen->attempt
           && (seen->state == MSG_KERNEL_TERMINATED || seen->state == MSG_KERNEL_ERROR);
}

static void take(struct scene *s, const struct msg_kernel_status *status)
{
    struct seen *seen = scene_find(s, &status->kernel_id);

    seen->attempt = status->attempt;
    seen->state = status->state;
    seen->was_running = seen->was_running || status->state == MSG_KERNEL_RUNNING;
    seen->has_exit = status->has_exit;
    seen->exit_code = status->exit_code;
    seen->lease_usec = status->lease_usec;
    copy(seen->reason, sizeof(seen->reason), status->reason);
    copy(seen->kind, sizeof(seen->kind), status->error_kind);
    copy(seen->field, sizeof(seen->field), status->error_field);
    copy(seen->text, sizeof(seen->text), status->error_text);
    copy(seen->last_lines, sizeof(seen->last_lines), status->last_lines);
    if (status->alloc)
        copy(seen->alloc, sizeof(seen->alloc), status->alloc);
}

static void take_health(struct scene *s, const struct msg_kernel_health *health)
{
    struct seen *seen = scene_find(s, &health->kernel_id);

    seen->health_count++;
    seen->health_attempt = health->attempt;
    seen->health_usec = health->at_usec;
    copy(seen->health, sizeof(seen->health), health->state);
    copy(seen->health_text, sizeof(seen->health_text), health->text);
    seen->was_starting = seen->was_starting || strcmp(health->state, "starting") == 0;
}

static void answer(struct scene *s, const struct msg_heartbeat *heartbeat)
{
    struct msg_kernel_lease lease = s->lease;
    struct message msg = { .type = MSG_HEARTBEAT_REPLY,
                           .heartbeat_reply = { heartbeat->uptime_usec, &lease,
                                                lease.attempt != 0 } };

    s->lease.attempt = 0;
    scene_send(s, &msg);
}

static void on_message(void *data, const char *agent_id, const struct message *msg)
{
    struct scene *s = data;

    assert_string_equal(agent_id, "node");
    if (msg->type == MSG_KERNEL_STATUS)
        take(s, &msg->kernel_status);
    if (msg->type == MSG_KERNEL_HEALTH)
        take_health(s, &msg->kernel_health);
    if (msg->type != MSG_HEARTBEAT)
        return;
    s->heartbeats++;
    s->inventory = msg->heartbeat.kernel_count;
    for (size_t i = 0; i < msg->heartbeat.kernel_count; i++) {
        take(s, &msg->heartbeat.kernels[i]);
        scene_find(s, &msg->heartbeat.kernels[i].kernel_id)->heartbeat = s->heartbeats;
    }
    if (s->answers)
        answer(s, &msg->heartbeat);
}

static int on_hello(void *data, const struct msg_hello *hello, struct msg_welcome *welcome,
                    int64_t *retry_usec, struct aq_error *err)
{
    struct scene *s = data;

    (void)retry_usec;
    (void)err;
    copy(s->slots, sizeof(s->slots), hello->slots);
    welcome->heartbeat_usec = 20000;
    welcome->has_leases = s->has_leases;
    return 0;
}

static void on_connected(void *data, const char *agent_id, const struct uuid *incarnation)
{
    struct scene *s = data;

    (void)agent_id;
    (void)incarnation;
    s->connects++;
}

static const struct link_server_ops server_ops = {
    .on_hello = on_hello,
    .on_connected = on_connected,
    .on_message = on_message,
};

static void start_manager(struct scene *s)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/pki", s->folder);
    struct aq_error err = { 0 };

    assert_int_equal(pki_ca_open(path, &s->ca, &err), 0);
    assert_int_equal(pki_issue_server(s->ca, NULL, 0, 10, &cert, &key, &err), 0);
    assert_row(link_server_new(&(struct link_server_conf){ .loop = &s->loop,
                                                           .host = "127.0.0.1",
                                                           .ca = s->ca,
                                                           .cert = cert,
                                                           .key = key,
                                                           .incarnation = uuid_random() },
                               &server_ops, s, &s->server, &err)
                   == 0,
               "%s", err.text);
}

static void write_file(struct scene *s, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = settings_path(&s->settings, name);

    assert_int_equal(fs_write_atomic(AT_FDCWD, path, text, strlen(text), 0600, NULL), 0);
}

static void make_identity(struct scene *s)
{
    AQ_CLEANUP(aq_freep) char *key = NULL;
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    AQ_CLEANUP(aq_freep) char *address = aq_format("127.0.0.1:%u\n", link_server_port(s->server));

    assert_int_equal(fs_mkdirs(s->settings.state, 0700, NULL), 0);
    assert_int_equal(pki_request_new("node", &key, &csr, NULL), 0);
    assert_int_equal(pki_issue_agent(s->ca, csr, "node", 10, &cert, NULL, NULL), 0);
    write_file(s, "agent.key", key);
    write_file(s, "agent.crt", cert);
    write_file(s, "ca.crt", pki_ca_cert(s->ca));
    write_file(s, "manager", address);
}

/* ---- the agent ---- */

static void on_ready(void *data)
{
    (void)data;
}

static void on_refused(void *data, const char *kind, const char *text)
{
    struct scene *s = data;

    (void)text;
    copy(s->rejected, sizeof(s->rejected), kind);
}

void scene_start_agent(struct scene *s)
{
    static const struct agent_events events = { .on_ready = on_ready, .on_rejected = on_refused };
    const char *monitor = getenv("ALIQUOT_MONITOR");
    int connects = s->connects, heartbeats = s->heartbeats;
    struct aq_error err = { 0 };

    assert_non_null(monitor);
    assert_row(runtime_new_process(&s->loop, monitor, &s->runtime, &err) == 0, "%s", err.text);
    assert_row(agent_new(&s->loop, &s->settings, &(struct agent_runtimes){ .process = s->runtime },
                         &events, s, &s->agent, &err)
                   == 0,
               "%s", err.text);
    RUN_UNTIL(s, s->connects > connects && s->heartbeats > heartbeats);
}

void scene_stop_agent(struct scene *s)
{
    agent_free(AQ_TAKE(s->agent));
    runtime_free(AQ_TAKE(s->runtime));
}

int scene_init(void **state)
{
    struct scene *s = calloc(1, sizeof(*s));
    static const char rest[] = "id = \"node\"\n[resource]\ncpus = 4\nmem = \"1g\"\n"
                               "reserved-mem = 0\nallocation-mode = \"shared\"\n"
                               "[process]\nshell = \"/bin/sh\"\n[logs]\nkeep-count = 3\n"
                               "[metrics]\nlisten = \"off\"\n"
                               "[runtime]\ndriver = \"process\"\n";
    AQ_CLEANUP(aq_freep) char *conf = NULL;
    AQ_CLEANUP(aq_freep) char *path = NULL;
    AQ_CLEANUP(aq_freep) char *file = NULL;
    struct aq_error err = { 0 };

    (void)signal(SIGPIPE, SIG_IGN);
    *state = s;
    strbuf_init(&s->bytes);
    strcpy(s->folder, "/tmp/aliquot-agent-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_int_equal(uv_loop_init(&s->loop), 0);
    start_manager(s);
    conf = aq_format("%sfolder = \"%s/run\"\n", rest, s->folder);
    path = aq_format("%s/state", s->folder);
    file = aq_format("%s/agent.toml", s->folder);
    assert_int_equal(fs_write_atomic(AT_FDCWD, file, conf, strlen(conf), 0600, NULL), 0);
    assert_row(settings_load(file, path, SETTINGS_DEV, &s->settings, &err) == 0, "%s", err.text);
    make_identity(s);
    scene_start_agent(s);
    return 0;
}

static void wait_for(uv_handle_t *handle, void *data)
{
    (void)data;
    uv_ref(handle);
}

int scene_done(void **state)
{
    struct scene *s = *state;

    link_stream_close(s->stream);
    scene_stop_agent(s);
    link_server_free(s->server);
    assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
    /* monitors that have told their end and are not reaped yet */
    uv_walk(&s->loop, wait_for, NULL);
    assert_int_equal(uv_run(&s->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    pki_ca_free(s->ca);
    settings_done(&s->settings);
    strbuf_done(&s->bytes);
    assert_int_equal(fs_remove_tree(AT_FDCWD, s->folder, NULL), 0);
    free(s);
    return 0;
}

/* ---- orders ---- */

struct msg_kernel_create scene_order(const char *command)
{
    return (struct msg_kernel_create){
        .kernel_id = uuid_random(),
        .session_id = uuid_random(),
        .attempt = 1,
        .spec = { .session_name = "test",
                  .session_type = command ? "batch" : "interactive",
                  .role = "main",
                  .index = 1,
                  .hostname = "main1",
                  .slots = "{\"cpu\":\"1\",\"mem\":\"67108864\"}",
                  .session.command = command },
    };
}

void scene_send(struct scene *s, const struct message *msg)
{
    struct aq_error err = { 0 };

    assert_row(link_server_send(s->server, "node", msg, &err) == 0, "%s", err.text);
}

void scene_create(struct scene *s, const struct msg_kernel_create *create)
{
    struct message msg = { .type = MSG_KERNEL_CREATE, .kernel_create = *create };

    scene_send(s, &msg);
}

void scene_destroy(struct scene *s, const struct uuid *id, int64_t grace_usec)
{
    struct message msg = {
        .type = MSG_KERNEL_DESTROY,
        .kernel_destroy = { .kernel_id = *id, .grace_usec = grace_usec, .reason = "user-requested" }
    };

    scene_send(s, &msg);
}

void scene_forget(struct scene *s, const struct uuid *id, int64_t attempt)
{
    struct message msg = { .type = MSG_KERNEL_FORGET,
                           .kernel_forget = { .kernel_id = *id, .attempt = attempt } };

    scene_send(s, &msg);
}

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

    (void)stream;
    strbuf_add(&s->bytes, bytes, len);
}

static void on_stream_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct scene *s = data;

    (void)stream;
    s->stream = NULL;
    s->stream_closes++;
    s->stream_error = err ? err->code : 0;
}

void scene_stream(struct scene *s, const struct uuid *id, const char *kind, bool follow,
                  int64_t tail_lines)
{
    static const struct link_stream_ops ops = {
        .on_open = on_stream_open,
        .on_data = on_stream_data,
        .on_close = on_stream_close,
    };
    struct msg_stream_open open = { .kind = kind,
                                    .kernel_id = *id,
                                    .follow = follow,
                                    .tail_lines = tail_lines,
                                    .rows = 30,
                                    .cols = 100 };
    struct aq_error err = { 0 };

    strbuf_clear(&s->bytes);
    s->stream_opens = s->stream_closes = s->stream_error = 0;
    assert_row(link_server_open_stream(s->server, "node", &open, &ops, s, &s->stream, &err) == 0,
               "%s", err.text);
}

/* ---- files ---- */

char *scene_read(struct scene *s, const char *path)
{
    AQ_CLEANUP(aq_freep) char *full = settings_path(&s->settings, path);
    struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, full, 1 << 20, &text, NULL) < 0) {
        strbuf_done(&text);
        return NULL;
    }
    return strbuf_steal(&text);
}

bool scene_exists(struct scene *s, const char *path)
{
    AQ_CLEANUP(aq_freep) char *full = settings_path(&s->settings, path);

    return access(full, F_OK) == 0;
}
