/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is short while machines get tokens, join and are shut out: a certificate that was
 * revoked is accepted by nobody.
 */
#include "oom_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "link/link.h"
#include "link/pki.h"
#include "store/token.h"

static void remove_agent(const char *id)
{
    struct answer a = { 0 };
    bool is_known = core_find_agent(world.core, id) != NULL;

    core_remove_agent(world.core, id, NULL, on_answer, &a);
    settle();
    if (is_known || a.r != -ENOENT)
        oom_says("remove", &a);
    if (a.r == 0)
        assert_null(core_find_agent(world.core, id));
}

/* ---- tokens and certificates ---- */

struct made_token {
    struct answer answer;
    char text[PKI_TOKEN_MAX];
};

static void on_token(void *data, int r, const struct aq_error *err, const char *token)
{
    struct made_token *t = data;

    on_answer(&t->answer, r, err);
    assert_int_equal(token != NULL, r == 0);
    (void)snprintf(t->text, sizeof(t->text), "%s", token ? token : "");
}

static int issue(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct agent_cert cert = { .serial = "0a", .agent_id = "i-001", .issued_usec = world_wall };

    (void)data;
    cert.expires_usec = world_wall + 3600 * USEC_PER_SEC;
    return cert_save(tx, &cert, err);
}

static void run_revocation(const char *dir)
{
    struct made_token t = { .text = "" };
    struct answer revoked = { 0 };

    world.conf.link_host = "127.0.0.1";
    oom_world_open(dir);
    oom_pause(true);
    assert_int_equal(store_call(core_store(world.core), issue, NULL, NULL), 0);
    oom_pause(false);
    oom_begin();
    core_make_token(world.core, "i-001", USEC_PER_SEC, NULL, on_token, &t);
    settle();
    oom_says("token", &t.answer);
    oom_comes("i-001", FOUR_CPUS);
    core_revoke_agent(world.core, "i-001", NULL, on_answer, &revoked);
    settle();
    oom_says("revoke", &revoked);
    if (revoked.r == 0)
        assert_true(pki_is_revoked(world.core->ca, "0a"));
    remove_agent("i-001");
    oom_end();
    remove_agent("i-001");
    assert_null(core_find_agent(world.core, "i-001"));
    oom_world_pass();
}

/* ---- a machine that takes the place of another ---- */

/* The call blocks: it has a thread. */
struct machine {
    atomic_bool is_over;
    char *csr, *cert, *ca;
    const char *token;
    int r;
    struct aq_error err;
};

static void *machine_joins(void *data)
{
    struct machine *m = data;
    struct pki_token token;
    char secret[PKI_SECRET_TEXT_MAX];
    struct msg_join msg = { .agent_id = "i-001", .csr = m->csr };

    assert_int_equal(pki_token_parse(m->token, &token, NULL), 0);
    msg.secret = pki_token_secret(&token, secret);
    m->r = link_join_request("127.0.0.1", core_link_port(world.core), &token, &msg,
                             2 * USEC_PER_SEC, &m->cert, &m->ca, &m->err);
    atomic_store(&m->is_over, true);
    return NULL;
}

/* A token for this name, and the machine uses it; false: one of both failed. */
static bool machine_tries(struct machine *m)
{
    struct made_token t = { .text = "" };
    pthread_t thread;

    core_make_token(world.core, "i-001", 60 * USEC_PER_SEC, NULL, on_token, &t);
    settle();
    oom_says("token", &t.answer);
    if (t.answer.r < 0)
        return false;
    *m = (struct machine){ .csr = m->csr, .token = t.text };
    assert_int_equal(pthread_create(&thread, NULL, machine_joins, m), 0);
    while (!atomic_load(&m->is_over)) {
        (void)usleep(500);
        store_flush(core_store(world.core));
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    settle();
    if (m->r < 0 && m->r != -ETIMEDOUT && m->r != -ECONNABORTED && m->r != -EACCES)
        oom_check("join", m->r, &m->err);
    return m->r == 0;
}

static void run_place(const char *dir)
{
    struct machine m = { .r = 0 };
    char *key = NULL;

    world.conf.link_host = "127.0.0.1";
    oom_world_open(dir);
    assert_int_equal(store_call(core_store(world.core), issue, NULL, NULL), 0);
    oom_comes("i-001", FOUR_CPUS);
    assert_int_equal(pki_request_new("i-001", &key, &m.csr, NULL), 0);
    oom_begin();
    if (!machine_tries(&m)) {
        assert_row(oom_has_failed(), "join: %s", m.err.text);
        oom_end();
        assert_row(machine_tries(&m), "join: %s", m.err.text);
    }
    assert_true(pki_is_revoked(world.core->ca, "0a"));
    free(m.cert);
    free(m.ca);
    free(m.csr);
    free(key);
    oom_world_pass();
}

static void recover_place(const char *dir)
{
    world.conf.link_host = "127.0.0.1";
    oom_world_open(dir);
    assert_true(pki_is_revoked(world.core->ca, "0a"));
    assert_clean();
    oom_world_close();
}

int main(void)
{
    static const struct oom_scenario scenarios[] = {
        { "tokens and certificates", oom_world_prepare, run_revocation, oom_world_recover },
        { "a machine takes the place of another", oom_world_prepare, run_place, recover_place },
    };

    return oom_main(scenarios, (int)AQ_COUNT(scenarios));
}
