/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of model services: what proxies report, summed up for services, revisions, replicas and
 * tokens.
 */
#include "world.h"

#include <math.h>

#include "manager/core/serving/service_health.h"
#include "manager/core/services.h"
#include "manager/core/state/model_service_entry.h"
#include "manager/serving/serving_use.h"

static struct serving_use *use;

static int begin(void **state)
{
    int r = world_begin(state);

    use = serving_use_new(world.core);
    return r;
}

static int end(void **state)
{
    serving_use_free(use);
    return world_end(state);
}

/* ---- services ---- */

static struct model_service_spec spec_of(void)
{
    static struct text_pair slots[] = { { "cpu", "1" }, { "mem", "64m" } };

    return (struct model_service_spec){
        .session = { .image = "sh", .command = "serve" },
        .resources = { slots, AQ_COUNT(slots) },
        .runtime = "custom",
        .port = 8000,
    };
}

static const struct model_service *serve(const char *name, int64_t replicas)
{
    const struct keypair *k = core_find_keypair(world.core, USER_KEY);
    const struct user *u = core_find_user(world.core, &k->user_id);
    struct model_service s = { .replicas = replicas,
                               .replicas_max = 8,
                               .project_id = u->project_ids[0] };
    struct model_service_spec spec = spec_of();
    struct answer a = { 0 };

    (void)snprintf(s.name, sizeof(s.name), "%s", name);
    (void)snprintf(s.access_key, sizeof(s.access_key), "%s", USER_KEY);
    s.domain = strdup("default");
    s.revisions = calloc(1, sizeof(*s.revisions));
    s.revisions[0].spec = model_service_spec_copy(&spec);
    s.revision_count = 1;
    core_create_service(world.core, &s, NULL, NULL, &asker, on_answer, &a);
    settle();
    assert_true(a.came && a.r == 0);
    return core_find_service(world.core, name);
}

static struct uuid add_token(const struct model_service *s)
{
    struct model_service_token token = { .label = strdup("bench") };
    struct answer a = { 0 };
    struct uuid id;

    memset(token.hash, 'a', sizeof(token.hash) - 1);
    core_add_service_token(world.core, &s->id, &token, &asker, on_answer, &a);
    id = token.id;
    settle();
    assert_int_equal(a.r, 0);
    return id;
}

static const struct session *replica_of(const struct model_service *s, size_t n)
{
    const struct session *session = core_next_replica(world.core, s, NULL);

    while (session && n--)
        session = core_next_replica(world.core, s, session);
    return session;
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

static void becomes_ready(const struct session *session)
{
    struct sent order = order_of(session);
    const struct msg_kernel_health health = { .kernel_id = session->kernels[0].id,
                                              .attempt = session->kernels[0].attempt,
                                              .state = "ready" };

    agent_reports(&order, MSG_KERNEL_RUNNING);
    service_note_health(world.core, session->kernels[0].agent_id, &health);
    settle();
}

/* ---- reports ---- */

static void say(const char *proxy, struct msg_serving_service_use report)
{
    const struct msg_serving_use message = { .services = &report, .service_count = 1 };

    serving_use_take(use, proxy, &message);
}

static void say_replica(const char *proxy, const struct model_service *s,
                        struct msg_serving_replica_use replica)
{
    say(proxy, (struct msg_serving_service_use){
                   .id = s->id, .arrived = 1, .replicas = &replica, .replica_count = 1 });
}

static int64_t fifty_ms[] = { 0, 0, 0, 8 }; /* eight between 25 and 50 ms */

static struct msg_serving_replica_use answered(const struct session *session, int64_t revision)
{
    return (struct msg_serving_replica_use){
        .session_id = session->id,
        .revision = revision,
        .in_flight = 3,
        .requests = 12,
        .failures = 1,
        .ok = 6,
        .client_errors = 1,
        .server_errors = 1,
        .broken = 2,
        .duration_usec = 8 * 40000,
        .first_byte_usec = 8 * 30000,
        .duration_buckets = { fifty_ms, AQ_COUNT(fifty_ms) },
        .first_byte_buckets = { fifty_ms, AQ_COUNT(fifty_ms) },
        .prompt_tokens = 100,
        .completion_tokens = 20,
        .cached_tokens = 60,
    };
}

static struct serving_summary of_replica(const struct model_service *s, const struct uuid *session)
{
    struct serving_summary sum;

    serving_use_sum_replica(use, &s->id, session, &sum);
    return sum;
}

static struct serving_summary of_revision(const struct model_service *s, int64_t revision)
{
    struct serving_summary sum;

    serving_use_sum_revision(use, &s->id, revision, &sum);
    return sum;
}

/* ---- tests ---- */

static void test_sums(void **state)
{
    const struct model_service *s;
    const struct session *session;
    struct serving_summary sum;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    session = replica_of(s, 0);
    becomes_ready(session);
    say_replica("proxy:a", s, answered(session, 1));
    say_replica("proxy:b", s, answered(session, 1));
    sum = of_replica(s, &session->id);
    assert_int_equal(sum.all.in_flight, 6);
    assert_int_equal(sum.all.requests, 24);
    assert_int_equal(sum.recent.ok, 12);
    sum = of_revision(s, 1);
    assert_int_equal(sum.all.in_flight, 6);
    assert_int_equal(sum.all.server_errors, 2);
    assert_int_equal(sum.all.cached_tokens, 120);
    assert_int_equal(sum.all.durations[3], 16);
    assert_float_equal(latency_quantile(sum.recent.durations, 0.5), 0.0375, 1e-9);
    serving_use_sum(use, &s->id, &sum);
    assert_int_equal(sum.all.arrived, 2);
    assert_int_equal(sum.all.failures, 2);
    assert_int_equal(sum.recent.first_bytes[3], 16);
    assert_int_equal(of_revision(s, 2).all.requests, 0);
    /* a proxy that has gone has nothing under way, and what it counted stays */
    serving_use_lose(use, "proxy:b");
    assert_int_equal(of_replica(s, &session->id).all.in_flight, 3);
    assert_int_equal(of_revision(s, 1).all.in_flight, 3);
    assert_int_equal(of_replica(s, &session->id).all.requests, 24);
    /* nothing is under way in what a report does not list */
    say("proxy:a", (struct msg_serving_service_use){ .id = s->id });
    assert_int_equal(of_replica(s, &session->id).all.in_flight, 0);
    /* after a minute sums are left, and no memory of the minute */
    pass(70 * USEC_PER_SEC);
    assert_int_equal(of_revision(s, 1).recent.ok, 0);
    assert_int_equal(of_revision(s, 1).all.ok, 12);
    assert_false(serving_use_tick(use));
}

static void test_a_replica_that_has_ended_counts_for_its_revision(void **state)
{
    const struct model_service *s;
    struct msg_serving_replica_use report;
    struct uuid session;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    session = replica_of(s, 0)->id;
    report = answered(replica_of(s, 0), 1);
    {
        struct sent order = order_of(replica_of(s, 0));

        agent_reports_exit(&order, 1);
    }
    say_replica("proxy:a", s, report);
    assert_int_equal(of_revision(s, 1).all.ok, 6);
    assert_int_equal(of_revision(s, 1).all.in_flight, 0);
    assert_int_equal(of_replica(s, &session).all.ok, 0);
    report.revision = 7; /* there is none such */
    say_replica("proxy:a", s, report);
    assert_int_equal(of_revision(s, 7).all.ok, 0);
    assert_int_equal(of_revision(s, 1).all.ok, 6);
}

static void test_reports_that_cannot_be(void **state)
{
    static int64_t negative[] = { -1 }, huge[] = { INT64_MAX }, many[40] = { 1 };
    const struct model_service *s;
    const struct session *session;
    struct msg_serving_replica_use report;
    struct uuid stranger = uuid_random();

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    session = replica_of(s, 0);
    becomes_ready(session);
    report = answered(session, 1);
    report.duration_buckets = (struct int_list){ negative, 1 };
    say_replica("proxy:a", s, report);
    report.duration_buckets = (struct int_list){ huge, 1 };
    say_replica("proxy:a", s, report);
    report = answered(session, 1);
    report.ok = INT64_MAX;
    say_replica("proxy:a", s, report);
    assert_int_equal(of_revision(s, 1).all.requests, 0);
    report = answered(session, 1);
    report.duration_buckets = (struct int_list){ many, AQ_COUNT(many) }; /* of a later version */
    say_replica("proxy:a", s, report);
    assert_int_equal(of_revision(s, 1).all.durations[0], 1);
    say("proxy:a",
        (struct msg_serving_service_use){ .id = s->id, .oldest_usec = INT64_MAX, .arrived = 5 });
    say("proxy:a", (struct msg_serving_service_use){ .id = stranger, .arrived = 5 });
    assert_int_equal(serving_use_get(use, &s->id).arrived, 4);
    assert_int_equal(serving_use_get(use, &stranger).arrived, 0);
}

/* As often as a proxy likes, as much as one report may have. */
static void test_sums_without_an_end(void **state)
{
    static int64_t many[LATENCY_BUCKETS];
    const int64_t most = INT64_C(1000000000000000);
    const struct model_service *s;
    struct msg_serving_replica_use replica;
    struct msg_serving_token_use token;
    struct serving_summary sum;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    for (size_t i = 0; i < AQ_COUNT(many); i++)
        many[i] = most;
    replica = (struct msg_serving_replica_use){ .session_id = replica_of(s, 0)->id,
                                                .revision = 1,
                                                .in_flight = most,
                                                .requests = most,
                                                .failures = most,
                                                .ok = most,
                                                .server_errors = most,
                                                .duration_usec = most,
                                                .prompt_tokens = most,
                                                .duration_buckets = { many, AQ_COUNT(many) } };
    token = (struct msg_serving_token_use){
        .id = add_token(s), .requests = most, .prompt_tokens = most, .completion_tokens = most
    };
    for (int i = 0; i < 9500; i++)
        say("proxy:a", (struct msg_serving_service_use){ .id = s->id,
                                                         .in_flight = most,
                                                         .queued = most,
                                                         .arrived = most,
                                                         .prompt_tokens = most,
                                                         .completion_tokens = most,
                                                         .replicas = &replica,
                                                         .replica_count = 1,
                                                         .tokens = &token,
                                                         .token_count = 1 });
    serving_use_tick(use);
    serving_use_sum(use, &s->id, &sum);
    assert_true(sum.all.arrived > most && sum.recent.arrived > most);
    assert_true(sum.tokens_per_second > 0);
    sum = of_revision(s, 1);
    assert_true(sum.all.durations[3] > most);
}

static void test_a_proxy_of_before(void **state)
{
    const struct model_service *s;
    const struct session *session;
    const struct model_service_entry *entry;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    session = replica_of(s, 0);
    becomes_ready(session);
    say_replica("proxy:a", s,
                (struct msg_serving_replica_use){
                    .session_id = session->id, .in_flight = 1, .requests = 10, .failures = 1 });
    assert_int_equal(of_revision(s, 1).all.ok, 9);
    assert_true(isnan(latency_quantile(of_revision(s, 1).recent.durations, 0.5)));
    assert_true(serving_use_tick(use));
    entry = model_service_entry_find(world.core, &s->id);
    {
        const struct replica_entry *replica = LIST_ENTRY(entry->replicas.next, struct replica_entry,
                                                         link);

        assert_int_equal(replica->figures.requests, 10);
        assert_int_equal(replica->figures.errors, 1);
    }
}

static void test_the_core_gets_the_last_minute(void **state)
{
    const struct model_service_entry *entry;
    const struct replica_entry *replica;
    const struct model_service *s;
    const struct session *session;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    session = replica_of(s, 0);
    becomes_ready(session);
    entry = model_service_entry_find(world.core, &s->id);
    replica = LIST_ENTRY(entry->replicas.next, struct replica_entry, link);
    say_replica("proxy:a", s, answered(session, 1));
    assert_true(serving_use_tick(use));
    assert_int_equal(replica->figures.requests, 9);
    assert_int_equal(replica->figures.errors, 2);
    assert_float_equal(replica->figures.latency_sec, 0.04, 1e-9);
    pass(70 * USEC_PER_SEC);
    assert_false(serving_use_tick(use));
    assert_int_equal(replica->figures.requests, 0);
    assert_int_equal(replica->figures.errors, 0);
}

static void test_tokens(void **state)
{
    const struct model_service *s;
    struct msg_serving_token_use reports[2];
    struct serving_token_figures f;
    struct uuid id;

    (void)state;
    s = serve("digits", 0);
    id = add_token(s);
    reports[0] = (struct msg_serving_token_use){ .id = id,
                                                 .requests = 5,
                                                 .ok = 2,
                                                 .client_errors = 1,
                                                 .server_errors = 1,
                                                 .refused = 4,
                                                 .prompt_tokens = 70,
                                                 .completion_tokens = 30,
                                                 .cached_tokens = 50 };
    reports[1] = (struct msg_serving_token_use){ .id = uuid_random(), .requests = 9 };
    for (int i = 0; i < 2; i++)
        say("proxy:a", (struct msg_serving_service_use){
                           .id = s->id, .tokens = reports, .token_count = AQ_COUNT(reports) });
    f = serving_use_get_token(use, &s->id, &id);
    assert_int_equal(f.requests, 10);
    assert_int_equal(f.refused, 8);
    assert_int_equal(f.cached_tokens, 100);
    assert_int_equal(serving_use_get_token(use, &s->id, &reports[1].id).requests, 0);
    pass(10 * USEC_PER_SEC);
    assert_int_equal(model_service_find_token(s, &id)->used, 200);
    assert_int_equal(model_service_find_token(s, &id)->requests, 10);
}

static void test_cold_starts(void **state)
{
    struct serving_cold_starts cold;
    const struct model_service *s;
    struct answer a = { 0 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 0);
    serving_use_look(use, &s->id);
    say("proxy:a",
        (struct msg_serving_service_use){ .id = s->id, .queued = 1, .oldest_usec = 500000 });
    core_scale_service(world.core, &s->id, 1, 0, -1, "a request waits", on_answer, &a);
    settle();
    serving_use_look(use, &s->id);
    pass(2 * USEC_PER_SEC);
    say("proxy:a", (struct msg_serving_service_use){ .id = s->id, .queued = 3 });
    becomes_ready(replica_of(s, 0));
    serving_use_look(use, &s->id);
    serving_use_look(use, &s->id);
    cold = serving_use_get_cold_starts(use, &s->id);
    assert_int_equal(cold.count, 1);
    assert_int_equal(cold.usec, 2500000);
    /* requests that wait for a replica of a service that is awake wake nothing */
    say("proxy:a", (struct msg_serving_service_use){ .id = s->id, .queued = 3 });
    serving_use_look(use, &s->id);
    assert_int_equal(serving_use_get_cold_starts(use, &s->id).count, 1);
}

static void test_metrics(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    static const char *const lines[] = {
        "aliquot_service_requests_total{service=\"digits\",class=\"refused\"} 7\n",
        "aliquot_service_tokens_total{service=\"digits\",kind=\"prompt\"} 11\n",
        "aliquot_service_revision_requests_total{service=\"digits\",revision=\"1\",class=\"ok\"} 6\n",
        "aliquot_service_duration_seconds_bucket{service=\"digits\",revision=\"1\",le=\"0.05\"} 8\n",
        "aliquot_service_duration_seconds_bucket{service=\"digits\",revision=\"1\",le=\"+Inf\"} 8\n",
        "aliquot_service_duration_seconds_sum{service=\"digits\",revision=\"1\"} 0.32\n",
        "aliquot_service_first_byte_seconds_count{service=\"digits\",revision=\"1\"} 8\n",
        "aliquot_service_cold_starts_total{service=\"digits\"} 0\n",
    };
    struct msg_serving_replica_use replica;
    const struct model_service *s;

    (void)state;
    agent_comes("a", FOUR_CPUS);
    s = serve("digits", 1);
    becomes_ready(replica_of(s, 0));
    replica = answered(replica_of(s, 0), 1);
    say("proxy:a", (struct msg_serving_service_use){ .id = s->id,
                                                     .refused = 7,
                                                     .prompt_tokens = 11,
                                                     .replicas = &replica,
                                                     .replica_count = 1 });
    serving_use_write_metrics(use, world.core, &out);
    for (size_t i = 0; i < AQ_COUNT(lines); i++)
        assert_row(strstr(out.data, lines[i]), "%s not in\n%s", lines[i], out.data);
    serving_use_forget(use, &s->id);
    assert_int_equal(serving_use_get(use, &s->id).refused, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_sums),
        TEST(test_a_replica_that_has_ended_counts_for_its_revision),
        TEST(test_reports_that_cannot_be),
        TEST(test_sums_without_an_end),
        TEST(test_a_proxy_of_before),
        TEST(test_the_core_gets_the_last_minute),
        TEST(test_tokens),
        TEST(test_cold_starts),
        TEST(test_metrics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
