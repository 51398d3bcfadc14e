/* SPDX-License-Identifier: Apache-2.0 */
/* Model services: replicas are created, become ready, are drained and replaced; failures, tokens,
 * the end; and the manager that starts again in between.
 */
#include "world.h"

#include "manager/core/serving/service_health.h"
#include "manager/core/services.h"
#include "manager/core/state/model_service_entry.h"
#include "store/model_service.h"

#define MINUTE (60 * USEC_PER_SEC)

static char changed[4096]; /* a '*' for each call of the listener */

static void on_change(void *data, const struct uuid *service_id)
{
    size_t len = strlen(changed);

    (void)data;
    (void)service_id;
    if (len + 1 < sizeof(changed)) {
        changed[len] = '*';
        changed[len + 1] = '\0';
    }
}

static struct model_service_spec spec_of(const char *command)
{
    static struct text_pair slots[] = { { "cpu", "1" }, { "mem", "64m" } };
    static struct text_pair variables[] = { { "MODE", "fast" }, { "ALIQUOT_REPLICA", "stolen" } };

    return (struct model_service_spec){
        .session = { .image = "sh",
                     .command = command,
                     .environ = { variables, AQ_COUNT(variables) } },
        .resources = { slots, AQ_COUNT(slots) },
        .runtime = "custom",
        .port = 8000,
        .health_path = "/health",
    };
}

static struct model_service wish(const char *name, int64_t replicas)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct user *u = core_find_user(world.core, &k->user_id);
    struct model_service s = {
        .replicas = replicas, .replicas_min = 0, .replicas_max = 8, .project_id = u->project_ids[0]
    };
    struct model_service_spec spec = spec_of("serve");

    (void)snprintf(s.name, sizeof(s.name), "%s", name);
    (void)snprintf(s.access_key, sizeof(s.access_key), "%s", USER_KEY);
    s.domain = strdup("default");
    s.revisions = calloc(1, sizeof(*s.revisions));
    s.revisions[0].spec = model_service_spec_copy(&spec);
    s.revision_count = 1;
    return s;
}

static struct answer try_create(struct model_service *s)
{
    struct answer a = { 0 };

    core_create_service(world.core, s, NULL, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

static const struct model_service *serve(const char *name, int64_t replicas)
{
    struct model_service s = wish(name, replicas);
    struct answer a = try_create(&s);

    if (a.r < 0)
        fail_msg("%s: %s", a.err.field, a.err.text);
    return core_find_service(world.core, name);
}

static struct core_replica find(const struct session *s)
{
    struct core_replica replica;

    assert_non_null(s);
    assert_true(core_find_replica(world.core, s, &replica));
    return replica;
}

/* Its n-th replica that lives. */
static const struct session *replica_of(const struct model_service *s, size_t n)
{
    const struct session *session = core_next_replica(world.core, s, NULL);

    while (session && n--)
        session = core_next_replica(world.core, s, session);
    return session;
}

static size_t count_replicas(const struct model_service *s)
{
    size_t count = 0;

    for (const struct session *r = NULL; (r = core_next_replica(world.core, s, r));)
        count++;
    return count;
}

static struct sent order_of(const struct session *session)
{
    for (size_t i = world.sent_count; i-- > 0;)
        if (world.sent[i].type == MSG_KERNEL_CREATE
            && uuid_equals(&world.sent[i].session_id, &session->id))
            return world.sent[i];
    fail_msg("session %s was not started", session->name);
    return (struct sent){ .attempt = 0 };
}

static void says_health(const struct session *session, const char *state, const char *text)
{
    const struct msg_kernel_health health = { .kernel_id = session->kernels[0].id,
                                              .attempt = session->kernels[0].attempt,
                                              .state = state,
                                              .text = text };

    service_note_health(world.core, session->kernels[0].agent_id, &health);
    settle();
}

/* It runs, and is ready. */
static void becomes_ready(const struct session *session)
{
    struct sent order = order_of(session);

    agent_reports(&order, MSG_KERNEL_RUNNING);
    says_health(session, "ready", NULL);
    assert_int_equal(find(session).health, CORE_REPLICA_READY);
}

static void created_and_ready(void **state)
{
    const struct model_service *s;
    const struct session *session;
    struct sent order;

    (void)state;
    core_on_service_change(world.core, on_change, NULL);
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 2);
    assert_ptr_equal(core_find_service(world.core, "DIGITS"), s);
    assert_ptr_equal(core_next_service(world.core, NULL), s);
    assert_null(core_next_service(world.core, s));
    assert_int_equal(count_replicas(s), 2);
    session = replica_of(s, 0);
    assert_string_equal(session->name, "digits.r1.1");
    assert_string_equal(replica_of(s, 1)->name, "digits.r1.2");
    assert_int_equal(session->type, SESSION_INFERENCE);
    order = order_of(session);
    assert_int_equal(order.probe_port, 8000);
    assert_string_equal(order.probe_path, "/health");
    assert_string_equal(order.environ,
                        "ALIQUOT_SERVICE=digits ALIQUOT_SERVICE_REVISION=1 ALIQUOT_REPLICA=1 "
                        "BACKEND_MODEL_PATH=/models MODE=fast ");
    assert_int_equal(find(session).health, CORE_REPLICA_STARTING);
    agent_reports(&order, MSG_KERNEL_RUNNING);
    says_health(session, "starting", "connection refused");
    assert_int_equal(find(session).health, CORE_REPLICA_STARTING);
    assert_string_equal(find(session).health_text, "connection refused");
    changed[0] = '\0';
    becomes_ready(session);
    assert_true(strlen(changed) >= 1);
    assert_int_equal(find(session).ready_usec, world_wall);
    says_health(session, "unhealthy", "status 500");
    assert_int_equal(find(session).health, CORE_REPLICA_UNHEALTHY);
    says_health(session, "ready", NULL);
    assert_int_equal(find(session).health, CORE_REPLICA_READY);
    assert_audited("create-service", 1, NULL);
    assert_clean();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(created_and_ready),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
