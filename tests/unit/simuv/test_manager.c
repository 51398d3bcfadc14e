/* SPDX-License-Identifier: Apache-2.0 */
/* The real store and the real link over simuv: a manager that keeps what an agent tells it, over a
 * bad network and its own crash. Two runs of a seed are the same to the last byte on the wire.
 */
#include "testing.h"

#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "base/fs.h"
#include "base/memory.h"
#include "link/link.h"
#include "simuv/simuv.h"
#include "store/setting.h"

#define MANY 200
#define SEC INT64_C(1000000)
#define DATABASE_MAX (64 << 20)

/* The process of the manager; another one after a crash. */
struct manager {
    uv_loop_t loop;
    uv_async_t wake;
    struct store *store;
    struct link_server *server;
    char folder[64];
    int64_t taken, kept, answered; /* attempts up to these: queued, durable, told to forget */
};

struct teller {
    uv_loop_t loop;
    uv_timer_t timer;
    struct link_client *client;
    char *key, *cert;
    int64_t told, forgotten; /* attempts up to this */
    int welcomes;
};

/* One attempt on its way into the store. */
struct keeping {
    struct manager *manager;
    int64_t attempt;
};

static struct manager managers[2];
static struct teller teller;
static struct pki_ca *authority;
static simuv_host manager_host, agent_host;
static const struct uuid the_kernel = { .bytes = { 1 } };

/* ---- the manager ---- */

static int keep_attempt(struct store_tx *tx, void *data, struct aq_error *err)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%lld", (long long)((struct keeping *)data)->attempt);
    return setting_set(tx, "test.kept", text, err);
}

static int load_attempt(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct strbuf text;
    int r;

    strbuf_init(&text);
    r = setting_get(tx, "test.kept", &text, err);
    *(int64_t *)data = r == 0 ? strtoll(text.data, NULL, 10) : 0;
    strbuf_done(&text);
    return r == -ENOENT ? 0 : r;
}

static void answer(struct manager *m, int64_t attempt)
{
    const struct message forget = {
        .type = MSG_KERNEL_FORGET, .kernel_forget = { .kernel_id = the_kernel, .attempt = attempt }
    };

    assert_int_equal(link_server_send(m->server, "node-1", &forget, NULL), 0);
    m->answered = attempt;
}

static void on_kept(void *data, int result, const struct aq_error *err)
{
    struct keeping *keeping = data;

    (void)err;
    assert_int_equal(result, 0);
    keeping->manager->kept = keeping->attempt;
    answer(keeping->manager, keeping->attempt);
    free(keeping);
}

/* It may be told again, by an agent that has had no answer. */
static void on_server_message(void *data, const char *agent_id, const struct message *msg)
{
    int64_t attempt = msg->type == MSG_KERNEL_STATUS ? msg->kernel_status.attempt : 0;
    struct manager *m = data;
    struct keeping *keeping;

    (void)agent_id;
    if (attempt > m->answered && attempt <= m->kept)
        answer(m, attempt);
    if (attempt <= m->taken)
        return;
    m->taken = attempt;
    keeping = aq_alloc(sizeof(*keeping));
    *keeping = (struct keeping){ m, attempt };
    store_write(m->store, keep_attempt, on_kept, keeping);
}

static void on_wake(uv_async_t *async)
{
    store_dispatch(((struct manager *)async->data)->store);
}

static void wake_manager(void *data)
{
    (void)uv_async_send(&((struct manager *)data)->wake);
}

static void start_link(struct manager *m)
{
    static const struct link_server_ops ops = { .on_message = on_server_message };
    AQ_CLEANUP(aq_freep) char *cert = NULL;
    AQ_CLEANUP(aq_freep) char *key = NULL;
    struct aq_error err = { 0 };
    struct link_server_conf conf;

    assert_int_equal(pki_issue_server(authority, NULL, 0, 30, &cert, &key, &err), 0);
    conf = (struct link_server_conf){ .loop = &m->loop,
                                      .host = "10.0.0.1",
                                      .port = LINK_PORT,
                                      .ca = authority,
                                      .cert = cert,
                                      .key = key,
                                      .incarnation = uuid_random() };
    assert_row(link_server_new(&conf, &ops, m, &m->server, &err) == 0, "%s", err.text);
}

static void start_manager(struct manager *m)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/aliquot.db", m->folder);
    struct store_conf conf = { .path = path, .wake = wake_manager, .wake_data = m };
    struct aq_error err = { 0 };

    simuv_enter(manager_host);
    assert_int_equal(uv_loop_init(&m->loop), 0);
    assert_int_equal(uv_async_init(&m->loop, &m->wake, on_wake), 0);
    m->wake.data = m;
    assert_row(store_open(&conf, &m->store, &err) == 0, "%s", err.text);
    assert_int_equal(store_call(m->store, load_attempt, &m->kept, &err), 0);
    m->taken = m->kept;
    start_link(m);
    simuv_leave();
}

static void stop_manager(struct manager *m)
{
    simuv_enter(manager_host);
    link_server_free(m->server);
    store_close(m->store);
    uv_close((uv_handle_t *)&m->wake, NULL);
    assert_int_equal(uv_run(&m->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&m->loop), 0);
    simuv_leave();
}

/* ---- the agent ---- */

static void on_client_message(void *data, uint64_t seq, const struct message *msg)
{
    struct teller *a = data;

    if (msg->type == MSG_KERNEL_FORGET) /* a new manager may say again what one before it did */
        a->forgotten = AQ_MAX(a->forgotten, msg->kernel_forget.attempt);
    if (seq)
        link_client_ack(a->client, seq);
}

static void tell(struct teller *a, int64_t attempt)
{
    const struct message msg = { .type = MSG_KERNEL_STATUS,
                                 .kernel_status = { .kernel_id = the_kernel,
                                                    .attempt = attempt,
                                                    .state = MSG_KERNEL_RUNNING } };

    assert_int_equal(link_client_send(a->client, &msg, NULL), 0);
}

/* A new manager may not have heard what the one before it acknowledged. */
static void on_client_connected(void *data, const struct msg_welcome *welcome)
{
    struct teller *a = data;

    (void)welcome;
    a->welcomes++;
    a->told = a->forgotten;
}

static void on_tick(uv_timer_t *timer)
{
    struct teller *a = timer->data;

    if (a->told < MANY && link_client_is_connected(a->client))
        tell(a, ++a->told);
}

static void start_agent(struct teller *a)
{
    static const struct link_client_ops ops = { .on_message = on_client_message,
                                                .on_connected = on_client_connected };
    static const char *const addresses[] = { "10.0.0.1" };
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    struct link_client_conf conf = { .loop = &a->loop,
                                     .addresses = addresses,
                                     .address_count = 1,
                                     .ca = pki_ca_cert(authority),
                                     .agent_id = "node-1" };

    simuv_enter(agent_host);
    assert_int_equal(uv_loop_init(&a->loop), 0);
    assert_int_equal(pki_request_new("node-1", &a->key, &csr, NULL), 0);
    assert_int_equal(pki_issue_agent(authority, csr, "node-1", 10, &a->cert, NULL, NULL), 0);
    conf.cert = a->cert;
    conf.key = a->key;
    conf.incarnation = uuid_random();
    assert_int_equal(link_client_new(&conf, &ops, a, &a->client, NULL), 0);
    assert_int_equal(uv_timer_init(&a->loop, &a->timer), 0);
    a->timer.data = a;
    assert_int_equal(uv_timer_start(&a->timer, on_tick, 100, 200), 0);
    simuv_leave();
}

static void stop_agent(struct teller *a)
{
    simuv_enter(agent_host);
    link_client_free(a->client);
    uv_close((uv_handle_t *)&a->timer, NULL);
    assert_int_equal(uv_run(&a->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&a->loop), 0);
    simuv_leave();
    free(a->key);
    free(a->cert);
}

/* ---- a run ---- */

/* What a crash leaves of the database. SQLite holds the locks of its files within a process. */
static void copy_file(const char *from, const char *to, const char *name)
{
    AQ_CLEANUP(aq_freep) char *source = aq_format("%s/%s", from, name);
    AQ_CLEANUP(aq_freep) char *target = aq_format("%s/%s", to, name);
    struct strbuf bytes;

    strbuf_init(&bytes);
    if (fs_read(AT_FDCWD, source, DATABASE_MAX, &bytes, NULL) == 0)
        assert_int_equal(fs_write_quick(AT_FDCWD, target, bytes.data, bytes.len, 0600, NULL), 0);
    strbuf_done(&bytes);
}

static void crash_manager(void)
{
    int64_t kept = managers[0].kept;

    assert_true(teller.forgotten <= kept);
    simuv_crash(manager_host, simuv_chance(0.5));
    copy_file(managers[0].folder, managers[1].folder, "aliquot.db");
    copy_file(managers[0].folder, managers[1].folder, "aliquot.db-wal");
    copy_file(managers[0].folder, managers[1].folder, "aliquot.db.key");
    simuv_run_until(simuv_now_usec() + 5 * SEC, NULL, NULL);
    simuv_boot(manager_host);
    start_manager(&managers[1]);
    assert_true(managers[1].kept >= kept);
}

static void set_paths(bool is_cut)
{
    const struct simuv_path path = { .latency_min_usec = 200,
                                     .latency_max_usec = 40000,
                                     .stall = 0.02,
                                     .reset = 0.003,
                                     .is_cut = is_cut };

    simuv_set_path(manager_host, agent_host, &path);
    simuv_set_path(agent_host, manager_host, &path);
}

static void play(uint64_t seed, const char *folder)
{
    struct aq_error err = { 0 };

    simuv_begin(seed);
    manager_host = simuv_add_host("10.0.0.1");
    agent_host = simuv_add_host("10.0.0.2");
    set_paths(false);
    assert_int_equal(pki_ca_open(folder, &authority, &err), 0);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(managers[i].folder, sizeof(managers[i].folder), "%s/%d", folder, i);
        assert_int_equal(fs_mkdirs(managers[i].folder, 0700, NULL), 0);
    }
    start_manager(&managers[0]);
    start_agent(&teller);
    simuv_run_until(simuv_now_usec() + 10 * SEC, NULL, NULL);
    set_paths(true);
    simuv_run_until(simuv_now_usec() + 30 * SEC, NULL, NULL);
    set_paths(false);
    simuv_run_until(simuv_now_usec() + 5 * SEC + (int64_t)simuv_random_below(SEC), NULL, NULL);
    crash_manager();
    simuv_run_until(simuv_now_usec() + 600 * SEC, NULL, NULL);
    assert_int_equal(teller.forgotten, MANY);
    assert_int_equal(managers[1].kept, MANY);
    assert_true(teller.welcomes >= 3);
    stop_agent(&teller);
    stop_manager(&managers[1]);
    pki_ca_free(authority);
}

/* The hash of a process that has played. Its folder has the same name each time. */
static uint64_t play_apart(uint64_t seed, const char *folder)
{
    uint64_t hash = 0;
    int ends[2], status;
    pid_t child;

    assert_int_equal(fs_mkdirs(folder, 0700, NULL), 0);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        play(seed, folder);
        hash = simuv_hash();
        simuv_end();
        _exit(write(ends[1], &hash, sizeof(hash)) != sizeof(hash));
    }
    (void)close(ends[1]);
    assert_int_equal(read(ends[0], &hash, sizeof(hash)), sizeof(hash));
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(fs_remove_tree(AT_FDCWD, folder, NULL), 0);
    return hash;
}

static void test_what_is_acknowledged_is_kept(void **state)
{
    char folder[] = "/tmp/aliquot-simuv-XXXXXX";
    AQ_CLEANUP(aq_freep) char *inside = NULL;
    uint64_t first;

    (void)state;
    assert_non_null(mkdtemp(folder));
    inside = aq_format("%s/run", folder);
    first = play_apart(1, inside);
    assert_true(play_apart(1, inside) == first);
    assert_true(play_apart(2, inside) != first);
    for (uint64_t seed = 3; seed < 8; seed++)
        (void)play_apart(seed, inside);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_is_acknowledged_is_kept) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
