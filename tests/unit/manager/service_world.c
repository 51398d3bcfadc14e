/* SPDX-License-Identifier: Apache-2.0 */
#include "service_world.h"

#include "manager/core/serving/service_health.h"

struct model_service_spec spec_of(const char *command)
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

struct model_service wish(const char *name, int64_t replicas)
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

struct answer try_create(struct model_service *s)
{
    struct answer a = { 0 };

    core_create_service(world.core, s, NULL, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

const struct model_service *serve(const char *name, int64_t replicas)
{
    struct model_service s = wish(name, replicas);
    struct answer a = try_create(&s);

    if (a.r < 0)
        fail_msg("%s: %s", a.err.field, a.err.text);
    return core_find_service(world.core, name);
}

struct core_replica find(const struct session *s)
{
    struct core_replica replica;

    assert_non_null(s);
    assert_true(core_find_replica(world.core, s, &replica));
    return replica;
}

/* Its n-th replica that lives. */
const struct session *replica_of(const struct model_service *s, size_t n)
{
    const struct session *session = core_next_replica(world.core, s, NULL);

    while (session && n--)
        session = core_next_replica(world.core, s, session);
    return session;
}

size_t count_replicas(const struct model_service *s)
{
    size_t count = 0;

    for (const struct session *r = NULL; (r = core_next_replica(world.core, s, r));)
        count++;
    return count;
}

/* Orders from before the manager started again. */
static struct sent old_orders[32];
static size_t old_order_count;

struct sent order_of(const struct session *session)
{
    for (size_t i = world.sent_count; i-- > 0;)
        if (world.sent[i].type == MSG_KERNEL_CREATE
            && uuid_equals(&world.sent[i].session_id, &session->id))
            return world.sent[i];
    for (size_t i = 0; i < AQ_COUNT(old_orders); i++)
        if (uuid_equals(&old_orders[i].session_id, &session->id))
            return old_orders[i];
    fail_msg("session %s was not started", session->name);
    return (struct sent){ .attempt = 0 };
}

const struct model_service *restarts(const char *name, const char *slots)
{
    const struct model_service *s = core_find_service(world.core, name);
    struct msg_kernel_status reports[16];
    size_t count = 0;

    for (const struct session *r = NULL; (r = core_next_replica(world.core, s, r));)
        if (r->status == SESSION_RUNNING) {
            struct sent *order = &old_orders[old_order_count++ % AQ_COUNT(old_orders)];

            *order = order_of(r);
            reports[count++] = kernel_report(order, MSG_KERNEL_RUNNING);
        }
    restart_core();
    assert_int_equal(agent_greets("a", slots, uuid_random()), 0);
    agent_beats("a", reports, count);
    return core_find_service(world.core, name);
}

void says_health(const struct session *session, const char *state, const char *text)
{
    const struct msg_kernel_health health = { .kernel_id = session->kernels[0].id,
                                              .attempt = session->kernels[0].attempt,
                                              .state = state,
                                              .text = text };

    service_note_health(world.core, session->kernels[0].agent_id, &health);
    settle();
}

/* It runs, and is ready. */
void becomes_ready(const struct session *session)
{
    struct sent order = order_of(session);

    agent_reports(&order, MSG_KERNEL_RUNNING);
    says_health(session, "ready", NULL);
    assert_int_equal(find(session).health, CORE_REPLICA_READY);
}

struct answer change(const struct model_service *s,
                     void (*edit)(struct model_service *s, int64_t value), int64_t value)
{
    struct model_service changed_service;
    struct answer a = { 0 };

    model_service_copy(&changed_service, s);
    edit(&changed_service, value);
    core_change_service(world.core, &changed_service, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came);
    return a;
}

void set_replicas(struct model_service *s, int64_t value)
{
    s->replicas = value;
}

void add_revision(struct model_service *s, int64_t value)
{
    struct model_service_spec spec = spec_of(value ? "serve better" : "serve");

    s->revisions = realloc(s->revisions, (s->revision_count + 1) * sizeof(*s->revisions));
    s->revisions[s->revision_count++] = (struct model_service_revision){
        .spec = model_service_spec_copy(&spec)
    };
    s->goal = 0;
}

void set_goal(struct model_service *s, int64_t value)
{
    s->goal = value;
}

void ends(struct uuid id)
{
    const struct session *session = core_find_session(world.core, &id);
    struct sent order;

    assert_non_null(session);
    assert_int_equal(session->status, SESSION_TERMINATING);
    order = order_of(session);
    agent_reports_end(&order, 0, NULL);
    assert_null(core_find_session(world.core, &id));
}

void exits(const struct session *session, int code)
{
    struct sent order = order_of(session);

    agent_reports_exit(&order, code);
}

const struct session *named(const char *name)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);

    return core_find_session_named(world.core, &k->user_id, name);
}
