/* SPDX-License-Identifier: Apache-2.0 */
/* What may wait: limits of policies and users, what images need, which slots a
 * group serves; and that asking gives the answer that creating would get.
 */
#include "world.h"

#include "manager/core/accounts/login_end.h"

#define SECOND_KEY "AKIASECONDSECONDSECO"
#define GPU_NODE                                                     \
    "{\"cpu\":[\"count\",\"8\"],\"mem\":[\"bytes\",\"8589934592\"]," \
    "\"cuda.shares\":[\"count\",\"2\"]}"

/* ---- settings ---- */

static void save(struct event_batch *batch)
{
    struct answer a = { 0 };

    core_save(world.core, batch, NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

static struct slots amounts(const char *json)
{
    struct slots s = { 0 };
    struct aq_error err = { 0 };
    json_t *tree = json_loads(json, 0, NULL);

    if (slots_from_json(tree, world.core->types, &s, &err) < 0)
        fail_msg("%s: %s", json, err.text);
    json_decref(tree);
    return s;
}

static void save_policy(struct keypair_policy policy)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_POLICY_SAVED, world_wall);

    e->policy = policy;
    e->policy.name = strdup("default");
    e->policy.unlimited_unspecified = true;
    save(batch);
}

/* The user of USER_KEY, with these limits. */
static void limit_user(const char *slots, int max_sessions)
{
    const struct uuid id = core_find_keypair(world.core, USER_KEY)->user_id;
    const struct user *old = core_find_user(world.core, &id);
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_USER_SAVED, world_wall);

    e->user.user = (struct user){ .id = id,
                                  .username = strdup(old->username),
                                  .email = strdup(old->email),
                                  .domain = strdup(old->domain),
                                  .role = old->role,
                                  .status = old->status,
                                  .project_ids = malloc(sizeof(struct uuid)),
                                  .project_count = 1,
                                  .project_cap = 1,
                                  .total_slots = amounts(slots),
                                  .max_concurrent_sessions = max_sessions };
    e->user.user.project_ids[0] = old->project_ids[0];
    save(batch);
}

static void add_second_key(void)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_KEYPAIR_SAVED, world_wall);

    e->keypair = (struct keypair){ .access_key = SECOND_KEY,
                                   .secret_key = "secret-secret-secret-secret-secret-secre",
                                   .is_active = true,
                                   .user_id = core_find_keypair(world.core, USER_KEY)->user_id,
                                   .policy = strdup("default"),
                                   .rate_limit = 30000 };
    save(batch);
}

static void add_group(const char *name)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_RESOURCE_GROUP_SAVED, world_wall);
    struct answer a = { 0 };

    e->resource_group = (struct resource_group){ .name = strdup(name),
                                                 .is_active = true,
                                                 .scheduler = strdup("fifo"),
                                                 .selection = strdup("concentrated"),
                                                 .agent_loss_policy = strdup("wait") };
    save(batch);
    core_change_access(
        world.core,
        &(struct core_access_change){
            .resource_groups = &name, .count = 1, .domain = "default", .is_allowed = true },
        NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
}

/* ---- requests ---- */

struct wanted {
    const char *slots, *key, *image, *shmem, *group;
    uint32_t kernels;
    int priority;
    bool waits; /* for capacity */
};

static void on_tried(void *data, int r, const struct aq_error *err,
                     const struct core_dry_run *trial)
{
    (void)trial;
    on_created(data, r, err, NULL);
}

/* Ask first: the answer has to be the same, and nothing is made by it. */
static struct answer ask(const char *name, struct wanted w)
{
    struct session_request req = { .name = name,
                                   .type = SESSION_BATCH,
                                   .spec.image = w.image ? w.image : "sh",
                                   .spec.command = "true",
                                   .access_key = w.key ? w.key : USER_KEY,
                                   .priority = w.priority ? w.priority : -1,
                                   .cluster_size = w.kernels,
                                   .spec.shmem = w.shmem,
                                   .resource_group = w.group,
                                   .spec.waits_for_capacity = w.waits,
                                   .resources = amounts(w.slots ? w.slots : "{}") };
    size_t before = world.core->sessions_by_id.count;
    struct answer tried = { 0 }, a;

    core_dry_run_session(world.core, &req, 1, on_tried, &tried);
    settle();
    assert_true(tried.came);
    assert_int_equal(world.core->sessions_by_id.count, before);
    a = create(&req);
    assert_int_equal(a.r, tried.r);
    assert_string_equal(a.err.text, tried.err.text);
    assert_string_equal(a.err.field, tried.err.field);
    slots_done(&req.resources);
    return a;
}

static struct uuid must(const char *name, struct wanted w)
{
    struct answer a = ask(name, w);

    if (a.r < 0)
        fail_msg("%s: %s", name, a.err.text);
    return a.created.id;
}

static void refused(const char *name, struct wanted w, int error, const char *field,
                    const char *text)
{
    struct answer a = ask(name, w);

    assert_row(a.r == -error, "%s: %d %s", name, a.r, a.err.text);
    assert_string_equal(a.err.field, field);
    assert_string_equal(a.err.text, text);
}

static void assert_waits(const struct uuid *id, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf said = STRBUF_INIT;

    assert_int_equal(status_of(id), SESSION_PENDING);
    assert_int_equal(core_explain(world.core, id, &said, NULL, NULL), 0);
    assert_row(strstr(said.data, text), "%s", said.data);
}

/* ---- tests ---- */

/* Whatever keypair made the sessions; others are not concerned. */
static void a_user_has_limits_of_their_own(void **state)
{
    struct uuid first, second, third, other;

    (void)state;
    agent_comes("a", GPU_NODE);
    add_second_key();
    limit_user("{\"cpu\":\"3\"}", 0);
    first = must("first", (struct wanted){ .slots = "{\"cpu\":\"2\"}" });
    second = must("second", (struct wanted){ .slots = "{\"cpu\":\"2\"}", .key = SECOND_KEY });
    third = must("third", (struct wanted){ .slots = "{\"cpu\":\"1\"}", .key = SECOND_KEY });
    other = must("other", (struct wanted){ .slots = "{\"cpu\":\"4\"}", .key = ADMIN_KEY });
    assert_int_equal(status_of(&first), SESSION_SCHEDULED);
    assert_waits(&second, "The limit of user user@lablup.com is exceeded.\n"
                          "- cpu: used 3 + requested 2 > limit 3");
    assert_int_equal(status_of(&third), SESSION_SCHEDULED); /* who waits is in nobody's way */
    assert_int_equal(status_of(&other), SESSION_SCHEDULED);
    limit_user("{\"cpu\":\"5\"}", 2);
    assert_waits(&second, "You cannot run more than 2 concurrent sessions");
    restart_core();
    agent_comes("a", GPU_NODE);
    limit_user("{}", 3);
    pass(3 * USEC_PER_SEC);
    assert_waits(&second, "no agents passed the 'resource' filter"); /* 7 of 8 are taken */
    assert_int_equal(terminate(&other, true).r, 0);
    agent_reports_exit(find_sent(MSG_KERNEL_CREATE, 2), 0);
    assert_int_equal(status_of(&second), SESSION_SCHEDULED);
    assert_clean();
}

static void what_waits_is_limited_in_number_and_amount(void **state)
{
    struct keypair_policy policy = { .max_pending_sessions = 2, .max_priority = 100 };

    (void)state;
    agent_comes("a", FOUR_CPUS);
    (void)must("full", (struct wanted){ .slots = "{\"cpu\":\"4\"}" });
    save_policy(policy);
    (void)must("first", (struct wanted){ .slots = "{\"cpu\":\"1\"}" });
    (void)must("second", (struct wanted){ .slots = "{\"cpu\":\"1\"}" });
    refused("three", (struct wanted){ .slots = "{\"cpu\":\"1\"}" }, EDQUOT, "",
            "You cannot have more than 2 pending sessions. Wait until some of them have begun, or "
            "end some.");
    policy.max_pending_sessions = 0;
    policy.max_pending_slots = amounts("{\"cpu\":\"4\"}");
    save_policy(policy);
    refused("three", (struct wanted){ .slots = "{\"cpu\":\"3\"}" }, EDQUOT, "cpu",
            "Your pending sessions would ask for cpu=5, more than the limit 4.");
    (void)must("three", (struct wanted){ .slots = "{\"cpu\":\"2\"}" });
    (void)must("others", (struct wanted){ .slots = "{\"cpu\":\"4\"}", .key = ADMIN_KEY });
    assert_clean();
}

static void all_that_is_wrong_is_said(void **state)
{
    (void)state;
    agent_comes("a", FOUR_CPUS);
    save_policy((struct keypair_policy){ .max_containers_per_session = 2, .max_priority = 20 });
    refused("both", (struct wanted){ .kernels = 3, .priority = 21 }, EDQUOT, "clusterSize",
            "A session of yours may have at most 2 containers, not 3.\n"
            "Your highest priority is 20, not 21.");
    (void)must("none", (struct wanted){ .kernels = 2, .priority = 20 });
}

static void join_annex(void)
{
    struct msg_hello hello = { .protocol_min = 1,
                               .protocol_max = 1,
                               .agent_id = "annex-1",
                               .incarnation = uuid_random(),
                               .version = "1",
                               .architecture = "x86_64",
                               .resource_group = "annex",
                               .slots = FOUR_CPUS };
    struct msg_welcome welcome = { 0 };
    struct aq_error err;
    int64_t retry = 0;

    assert_int_equal(inventory_link_ops.on_hello(world.core, &hello, &welcome, &retry, &err), 0);
    inventory_link_ops.on_connected(world.core, "annex-1", &hello.incarnation);
    settle();
    agent_beats("annex-1", NULL, 0);
}

/* A group without the slot is passed over, and refused where it is asked for. */
static void a_group_has_to_serve_what_is_asked_for(void **state)
{
    static const char gpu[] = "{\"cuda.shares\":\"1\"}";
    struct uuid id;

    (void)state;
    agent_comes("a", GPU_NODE);
    add_group("annex");
    id = must("early", (struct wanted){ .slots = gpu, .group = "annex" }); /* nobody is there yet */
    assert_int_equal(status_of(&id), SESSION_PENDING);
    join_annex();
    refused("late", (struct wanted){ .slots = gpu, .group = "annex" }, EINVAL,
            "config.resources.cuda.shares",
            "No agent of the scaling group 'annex' has the slot 'cuda.shares'.");
    id = must("anywhere", (struct wanted){ .slots = gpu });
    assert_string_equal(core_find_session(world.core, &id)->resource_group, "default");
    id = must("cores", (struct wanted){ .slots = "{\"cpu\":\"1\"}" });
    assert_string_equal(core_find_session(world.core, &id)->resource_group, "annex");
}

#define NINE_CPUS "{\"cpu\":\"9\"}"
#define TOO_MANY                                                               \
    "No agent has cpu=9: ask for 8 at most, or let it wait for such an agent " \
    "(--wait-for-capacity)."

/* Whatever has become of the only agent: it is known, and so is what it has. */
static void what_no_agent_has_is_refused(void **state)
{
    static const struct wanted eight = { .slots = "{\"cpu\":\"8\"}" },
                               nine = { .slots = NINE_CPUS };
    struct answer a = { 0 };

    (void)state;
    (void)must("at-first", nine); /* there never was an agent */
    agent_comes("a", GPU_NODE);
    refused("connected", nine, EINVAL, "config.resources.cpu", TOO_MANY);
    drain_agent("a", true, NULL, &a);
    settle();
    assert_int_equal(a.r, 0);
    (void)must("drained-8", eight);
    refused("drained", nine, EINVAL, "config.resources.cpu", TOO_MANY);
    agent_goes("a");
    refused("gone", nine, EINVAL, "config.resources.cpu", TOO_MANY);
    restart_core(); /* it has not come back, and is lost before long */
    (void)must("unseen-8", eight);
    refused("unseen", nine, EINVAL, "config.resources.cpu", TOO_MANY);
    pass(3600 * USEC_PER_SEC);
    assert_int_equal(core_find_agent(world.core, "a")->status, AGENT_LOST);
    (void)must("lost-8", eight);
    refused("lost", nine, EINVAL, "config.resources.cpu", TOO_MANY);
    a = (struct answer){ 0 };
    core_remove_agent(world.core, "a", NULL, on_answer, &a);
    settle();
    assert_int_equal(a.r, 0);
    (void)must("removed", nine);
    assert_clean();
}

/* Strictly first come, first served: what waits for capacity holds up nobody, before and after a
 * restart, and is the first again when it fits.
 */
static void what_waits_for_capacity_waits_aside(void **state)
{
    struct uuid large, small, next;

    (void)state;
    use_options("fifo", "{}");
    agent_comes("a", GPU_NODE);
    large = must("large", (struct wanted){ .slots = NINE_CPUS, .waits = true });
    small = must("small", (struct wanted){ .slots = "{\"cpu\":\"8\"}" });
    assert_int_equal(status_of(&large), SESSION_PENDING);
    assert_int_equal(status_of(&small), SESSION_SCHEDULED);
    assert_waits(&large, "It waits aside");
    restart_core();
    agent_comes("a", GPU_NODE);
    assert_int_equal(status_of(&large), SESSION_PENDING);
    next = must("next", (struct wanted){ .slots = "{\"cpu\":\"8\"}" });
    agent_comes("b", "{\"cpu\":[\"count\",\"16\"],\"mem\":[\"bytes\",\"8589934592\"]}");
    assert_int_equal(status_of(&large), SESSION_SCHEDULED);
    assert_int_equal(status_of(&next), SESSION_PENDING);
    assert_clean();
}

/* The only agent that could hold the first one is drained, or has gone: those behind it start. */
static void who_waits_for_an_agent_that_is_gone_holds_up_nobody(void **state)
{
    struct uuid large, small;
    struct answer a = { 0 };

    (void)state;
    for (int is_drained = 0; is_drained < 2; is_drained++) {
        use_options("fifo", "{}");
        agent_comes("a", GPU_NODE);
        agent_comes("b", "{\"cpu\":[\"count\",\"16\"],\"mem\":[\"bytes\",\"8589934592\"]}");
        (void)must("holds", (struct wanted){ .slots = NINE_CPUS });
        large = must("large", (struct wanted){ .slots = NINE_CPUS });
        small = must("small", (struct wanted){ .slots = "{\"cpu\":\"8\"}" });
        assert_int_equal(status_of(&small), SESSION_PENDING);
        if (is_drained) {
            drain_agent("b", true, "new disks", &a);
            settle();
            assert_waits(&large, "take no new sessions now: b (drained: new disks).");
        } else {
            agent_goes("b");
            assert_waits(&large, "take no new sessions now: b (not connected).");
        }
        assert_int_equal(status_of(&small), SESSION_SCHEDULED);
        assert_int_equal(status_of(&large), SESSION_PENDING);
        assert_clean();
        (void)world_end(state);
        (void)world_begin(state);
    }
}

static void take_images(const char *labels)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "[{\"digest\":\"sha256:1\",\"names\":[\"docker.io/library/python:3\"],\"labels\":%s}]",
        labels);
    struct message msg = { .type = MSG_IMAGE_LIST, .image_list = { .images = text } };

    inventory_link_ops.on_message(world.core, "a", &msg);
    settle();
}

static int64_t memory_of(const struct uuid *id)
{
    return slots_get(&core_find_session(world.core, id)->kernels[0].requested,
                     slot_name_find("mem", 3));
}

static void images_get_what_they_need(void **state)
{
    static const char python[] = "python:3";
    struct uuid id;

    (void)state;
    agent_comes("a", GPU_NODE);
    take_images("{\"ai.backend.resource.min.cpu\":\"2\",\"ai.backend.resource.min.mem\":\"1g\","
                "\"ai.backend.resource.min.cuda.shares\":\"0\","
                "\"ai.backend.resource.max.cpu\":\"3\",\"ai.backend.resource.min.tpu\":\"1\","
                "\"ai.backend.resource.min.xpu\":\"many\"}");
    refused("lean-1", (struct wanted){ .slots = "{\"cpu\":\"1\"}", .image = python }, EINVAL, "cpu",
            "The image needs at least cpu=2, not 1.");
    refused("fat-1", (struct wanted){ .slots = "{\"cpu\":\"4\"}", .image = python }, EINVAL, "cpu",
            "The image takes at most cpu=3, not 4.");
    refused("shm-1",
            (struct wanted){ .slots = "{\"mem\":\"1g\"}", .image = python, .shmem = "64m" }, EINVAL,
            "mem", "The image needs at least mem=1.06 GiB, not 1 GiB.");
    id = must("least", (struct wanted){ .slots = "{\"mem\":\"1g\"}", .image = python });
    assert_int_equal(memory_of(&id), INT64_C(1) << 30);
    id = must("filled", (struct wanted){ .image = python, .shmem = "64m" });
    assert_int_equal(memory_of(&id), (INT64_C(1) << 30) + (64 << 20));
    refused("all-shm", (struct wanted){ .slots = "{\"mem\":\"64m\"}", .shmem = "64m" }, EINVAL,
            "resource_opts", "Shared memory (64 MiB) must be less than memory (64 MiB).");
    refused("odd-shm", (struct wanted){ .shmem = "much" }, EINVAL, "config.resource_opts.shmem",
            "shmem: 'much' is not a size such as 512m or 2g");
    id = must("default", (struct wanted){ .image = python });
    assert_int_equal(slots_get(&core_find_session(world.core, &id)->kernels[0].requested,
                               slot_name_find("cpu", 3)),
                     2 * AMOUNT_ONE);
    take_images("{}");
    (void)must("lean-1", (struct wanted){ .slots = "{\"cpu\":\"1\"}", .image = python });
    assert_clean();
}

/* Over what the labels say, before an agent has the image and after. */
static void administrators_set_limits(void **state)
{
    static const char python[] = "python:3", canonical[] = "docker.io/library/python:3";
    AQ_CLEANUP(slots_donep) struct slots min = { 0 }, max = { 0 };
    const struct wanted three = { .slots = "{\"cpu\":\"3\"}", .image = python };

    (void)state;
    agent_comes("a", GPU_NODE);
    assert_int_equal(slots_set(&max, "cpu", 2 * AMOUNT_ONE), 0);
    core_set_image_limits(world.core, canonical, &min, &max);
    refused("fat-1", three, EINVAL, "cpu", "The image takes at most cpu=2, not 3.");
    take_images("{\"ai.backend.resource.max.cpu\":\"1\",\"ai.backend.resource.min.mem\":\"1g\"}");
    refused("fat-2", three, EINVAL, "cpu", "The image takes at most cpu=2, not 3.");
    refused("lean-1",
            (struct wanted){ .slots = "{\"cpu\":\"1\",\"mem\":\"64m\"}", .image = python }, EINVAL,
            "mem", "The image needs at least mem=1 GiB, not 64 MiB.");
    slots_done(&max);
    max = (struct slots){ 0 };
    core_set_image_limits(world.core, canonical, &min, &max);
    refused("fat-3", three, EINVAL, "cpu", "The image takes at most cpu=1, not 3.");
    take_images("{\"ai.backend.accelerators\":\"rocm, tpu\"}");
    refused("wrong-card", (struct wanted){ .slots = "{\"cuda.shares\":\"0.5\"}", .image = python },
            EINVAL, "config.resources.cuda.shares",
            "the image is made for other accelerators: rocm, tpu; leave 'cuda.shares' out, or "
            "choose another image");
    (void)must("no-card", three);
    take_images("{\"ai.backend.accelerators\":\"rocm,cuda\"}");
    (void)must("right-card",
               (struct wanted){ .slots = "{\"cuda.shares\":\"0.5\"}", .image = python });
    assert_clean();
}

/* Each change of a keypair comes with its secret, or with none. */
static void logins_end_with_the_right_to_them(void **state)
{
    const struct keypair *now = core_find_keypair(world.core, USER_KEY);
    static char hash[] = "hash";
    struct event user = { .kind = EVENT_USER_SAVED }, key = { .kind = EVENT_KEYPAIR_SAVED };

    (void)state;
    user.user.user.status = USER_ACTIVE;
    assert_false(login_end_is_due(world.core, &user));
    user.user.password_hash = hash;
    assert_true(login_end_is_due(world.core, &user));
    user.user.password_hash = NULL;
    user.user.user.status = USER_INACTIVE;
    assert_true(login_end_is_due(world.core, &user));

    key.keypair = *now;
    assert_false(login_end_is_due(world.core, &key));
    key.keypair.secret_key[0] = '\0';
    assert_false(login_end_is_due(world.core, &key));
    (void)snprintf(key.keypair.secret_key, sizeof(key.keypair.secret_key), "another");
    assert_true(login_end_is_due(world.core, &key));
    key.keypair = *now;
    key.keypair.is_active = false;
    assert_true(login_end_is_due(world.core, &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_user_has_limits_of_their_own, world_begin, world_end),
        cmocka_unit_test_setup_teardown(what_waits_is_limited_in_number_and_amount, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(all_that_is_wrong_is_said, world_begin, world_end),
        cmocka_unit_test_setup_teardown(a_group_has_to_serve_what_is_asked_for, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(what_no_agent_has_is_refused, world_begin, world_end),
        cmocka_unit_test_setup_teardown(what_waits_for_capacity_waits_aside, world_begin,
                                        world_end),
        cmocka_unit_test_setup_teardown(who_waits_for_an_agent_that_is_gone_holds_up_nobody,
                                        world_begin, world_end),
        cmocka_unit_test_setup_teardown(images_get_what_they_need, world_begin, world_end),
        cmocka_unit_test_setup_teardown(administrators_set_limits, world_begin, world_end),
        cmocka_unit_test_setup_teardown(logins_end_with_the_right_to_them, world_begin, world_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
