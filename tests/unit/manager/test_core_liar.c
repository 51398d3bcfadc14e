/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_liar.c - an agent that lies in every message, beside an honest one
 *
 * Messages are made at random as the texts that come over the link: ids of other agents'
 * kernels and sessions, the same one twice, numbers that cannot be, lists without end, in any
 * order, with connections that come and go. Nothing may change but what is the liar's own.
 */
#include "world.h"

#include "random.h"

#define HONEST "i-001"
#define LIAR "i-666"
#define SESSIONS 8 /* half of them are the liar's */
#define ROUNDS 1500

struct victim { /* what is known of a session of the honest agent */
    struct uuid id;
    struct sent command;
    enum session_status status;
    enum fact fact;
    bool is_pulling;
    char alloc[64], ports[64], error[64], violations[64];
};

struct scene {
    struct test_random random;
    struct victim victims[SESSIONS];
    struct sent commands[SESSIONS]; /* of all sessions, the liar's own included */
    size_t victim_count, count;
    size_t heard; /* messages that could be decoded */
    size_t told;  /* events about victims */
    size_t sends; /* messages to the liar since its last one */
    uint64_t beat;
};

static struct scene scene;

static uint64_t pick(uint64_t below)
{
    return random_next(&scene.random) % below;
}

/* ---- what it says ---- */

static const char *say_id(char text[UUID_TEXT_MAX], bool is_session)
{
    const struct sent *command = &scene.commands[pick(scene.count)];
    struct uuid id = pick(8) ? is_session ? command->session_id : command->kernel_id
                             : uuid_random();

    return uuid_format(&id, text);
}

static const char *say_number(void)
{
    /* the last four void a message */
    static const char *const numbers[] = {
        "0",  "1",     "1",     "1",  "1", "2", "255", "256", "4294967296", "9223372036854775807",
        "-1", "1e300", "\"1\"", "{}",
    };

    return numbers[pick(pick(20) ? 10 : AQ_COUNT(numbers))];
}

static const char *say_text(void)
{
    /* the last two void a message */
    static const char *const texts[] = {
        "self-terminated", "gpu-misuse",    "draining", "image-registry",   "ready",
        "failed",          "fetching",      "RUNNING",  "bootstrap-failed", "",
        "x\\n\\u001b[2J",  "docker.io/a:1", "cpu_util", "user-requested",   HONEST,
        "cuda.shares",     "%s%n",          "sh",       "a\\u0000b",        "\\ud800",
    };

    return texts[pick(AQ_COUNT(texts) - (pick(20) ? 2 : 0))];
}

static const char *say_json(void)
{
    static const char *const values[] = {
        "{\"cpu\":{\"0\":\"1\"},\"mem\":{\"root\":\"1\"}}",
        "{\"cpu\":{\"0\":\"-1\",\"99999\":\"9223372036854775808\"}}",
        "{\"cpu\":\"-4\",\"mem\":\"1e99\"}",
        "{\"cuda.shares\":{\"GPU-1\":\"0.0000001\",\"\":\"\"}}",
        "{\"cpu\":[\"count\",\"1000000\"],\"mem\":[\"bytes\",\"9223372036854775807\"]}",
        "{\"cpu\":[\"bytes\",\"1\"]}",
        "{\"cpu\":[\"count\",\"-1\"]}",
        "{\"cpu\":[\"count\"],\"mem\":7}",
        "[{\"id\":\"GPU-1\",\"slot\":\"cuda.shares\",\"amount\":\"1\"},{\"id\":\"GPU-1\"},7,null]",
        "[{\"id\":\"\",\"slot\":\"cpu\",\"amount\":\"-9223372036854775808\"}]",
        "[{\"name\":\"http\",\"protocol\":\"http\",\"ports\":[{\"inside\":-1,\"outside\":99999}]}]",
        "[{\"names\":[\"sh\"],\"labels\":{\"ai.backend.resource.min.cpu\":\"1000000\"}}]",
        "[{\"digest\":7,\"names\":{\"a\":1},\"labels\":[]}]",
        "[[[[[[[[]]]]]]]]",
        "{}",
        "[]",
        "7", /* these two void a message */
        "\"text\"",
    };

    return values[pick(AQ_COUNT(values) - (pick(20) ? 2 : 0))];
}

/* An offer with slots that no two of its messages share. */
static void say_new_slots(struct strbuf *out)
{
    strbuf_adds(out, ",\"slots\":{\"cpu\":[\"count\",\"4\"],\"mem\":[\"bytes\",\"8589934592\"]");
    for (uint64_t i = pick(40); i-- > 0;)
        strbuf_addf(out, ",\"x%llx.shares\":[\"count\",\"1\"]",
                    (unsigned long long)random_next(&scene.random));
    strbuf_adds(out, "}");
}

static void say_kernel(struct strbuf *out)
{
    static const char *const states[] = { "CREATING",    "RUNNING",    "RESTARTING",
                                          "TERMINATING", "TERMINATED", "ERROR" };
    static const char *const texts[] = { "reason", "error_kind", "error_field", "error_text",
                                         "misuse" };
    static const char *const values[] = { "alloc", "service_ports", "slots", "prepared",
                                          "prepared_alloc" };
    static const char *const numbers[] = { "exit_code", "trial", "at_usec" };
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    strbuf_addf(out, "\"kernel_id\":\"%s\",\"session_id\":\"%s\",\"attempt\":%s,\"state\":\"%s\"",
                say_id(kernel, false), say_id(session, true), say_number(),
                states[pick(AQ_COUNT(states))]);
    if (pick(2))
        strbuf_adds(out, ",\"has_exit\":true");
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (pick(4) == 0)
            strbuf_addf(out, ",\"%s\":\"%s\"", texts[i], say_text());
    for (size_t i = 0; i < AQ_COUNT(values); i++)
        if (pick(4) == 0)
            strbuf_addf(out, ",\"%s\":%s", values[i], say_json());
    for (size_t i = 0; i < AQ_COUNT(numbers); i++)
        if (pick(4) == 0)
            strbuf_addf(out, ",\"%s\":%s", numbers[i], say_number());
}

static void say_heartbeat(struct strbuf *out)
{
    char id[UUID_TEXT_MAX];
    struct uuid incarnation = uuid_random();
    uint64_t count = pick(50) ? pick(6) : 400;

    strbuf_addf(out, "{\"type\":\"heartbeat\",\"incarnation\":\"%s\",\"seq\":%llu",
                uuid_format(&incarnation, id), (unsigned long long)++scene.beat);
    if (pick(3) == 0)
        say_new_slots(out);
    else if (pick(3) == 0)
        strbuf_addf(out, ",\"slots\":%s", say_json());
    if (pick(3) == 0)
        strbuf_addf(out, ",\"devices\":%s", say_json());
    if (pick(3) == 0)
        strbuf_addf(out, ",\"plugins\":%s", say_json());
    strbuf_adds(out, ",\"kernels\":[");
    for (uint64_t i = 0; i < count; i++) {
        strbuf_adds(out, i ? ",{" : "{");
        say_kernel(out);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]}");
}

static void say_image(struct strbuf *out)
{
    char job[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    if (pick(3) == 0) {
        strbuf_addf(out, "{\"type\":\"image.list\",\"images\":%s}", say_json());
        return;
    }
    strbuf_adds(out, "{\"type\":\"image.status\"");
    if (pick(4) == 0)
        strbuf_addf(out, ",\"job_id\":\"%s\"", say_id(job, false));
    strbuf_addf(out,
                ",\"session_id\":\"%s\",\"kernel_id\":\"%s\",\"image\":\"%s\",\"state\":\"%s\","
                "\"done_bytes\":%s,\"error_text\":\"%s\"}",
                say_id(session, true), say_id(kernel, false), say_text(),
                (const char *[]){ "resolving", "fetching", "ready", "failed", "x" }[pick(5)],
                say_number(), say_text());
}

static void say_values(struct strbuf *out)
{
    strbuf_adds(out, "\"values\":[");
    for (uint64_t i = 0, count = pick(4); i < count; i++)
        strbuf_addf(out, "%s[%s,%s%s]", i ? "," : "", say_number(), say_number(),
                    pick(2) ? ",-0.5" : "");
    strbuf_adds(out, "]");
}

static void say_statistics(struct strbuf *out)
{
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    strbuf_addf(out, "{\"type\":\"statistics\",\"at_usec\":%s,\"interval_usec\":%s,\"metrics\":[",
                say_number(), say_number());
    for (uint64_t i = 0, count = pick(5); i < count; i++)
        strbuf_addf(out, "%s{\"key\":\"%s%llx\",\"unit\":%s,\"show\":%s,\"stats\":%s}",
                    i ? "," : "", say_text(), (unsigned long long)random_next(&scene.random),
                    say_number(), say_number(), say_number());
    strbuf_adds(out, "],\"node\":[[0,1]],\"devices\":[{\"device\":\"GPU-1\",");
    say_values(out);
    strbuf_addf(out, "}],\"kernels\":[{\"kernel_id\":\"%s\",\"session_id\":\"%s\",\"attempt\":1,",
                say_id(kernel, false), say_id(session, true));
    say_values(out);
    strbuf_adds(out, "}]}");
}

static void say_anything(struct strbuf *out)
{
    switch (pick(5)) {
    case 0:
        say_heartbeat(out);
        break;
    case 1:
    case 2:
        strbuf_adds(out, "{\"type\":\"kernel.status\",");
        say_kernel(out);
        strbuf_adds(out, "}");
        break;
    case 3:
        say_image(out);
        break;
    default:
        say_statistics(out);
    }
}

/* ---- the honest side ---- */

static void copy_text(char ret[64], const char *text)
{
    (void)snprintf(ret, 64, "%s", text ? text : "-");
}

static struct victim look_at(const struct sent *command)
{
    const struct kernel *k = core_find_kernel(world.core, &command->kernel_id);
    const struct kernel_entry *f = k ? &session_entry_of(k->session)->kernels[k->rank] : NULL;
    struct victim v = { .id = command->session_id, .command = *command };

    assert_non_null(f);
    v.status = k->session->status;
    v.fact = f->fact;
    v.is_pulling = f->is_pulling;
    copy_text(v.alloc, f->alloc);
    copy_text(v.ports, f->service_ports);
    copy_text(v.error, f->error);
    copy_text(v.violations, f->limit_violations);
    return v;
}

static void check_victims(void)
{
    for (size_t i = 0; i < scene.victim_count; i++) {
        struct victim now = look_at(&scene.victims[i].command), *then = &scene.victims[i];

        assert_int_equal(now.status, then->status);
        assert_int_equal(now.fact, then->fact);
        assert_int_equal(now.is_pulling, then->is_pulling);
        assert_string_equal(now.alloc, then->alloc);
        assert_string_equal(now.ports, then->ports);
        assert_string_equal(now.error, then->error);
        assert_string_equal(now.violations, then->violations);
    }
}

static void on_event(void *data, const struct core_event *event)
{
    (void)data;
    for (size_t i = 0; event->session && i < scene.victim_count; i++)
        scene.told += uuid_equals(&event->session->id, &scene.victims[i].id);
}

static int count_sends(struct core *core, const char *agent_id, const struct message *msg,
                       struct aq_error *err)
{
    (void)core;
    (void)msg;
    (void)err;
    assert_string_equal(agent_id, LIAR);
    scene.sends++;
    return 0;
}

static void honest_beats(void)
{
    struct msg_kernel_status reports[SESSIONS];

    for (size_t i = 0; i < scene.victim_count; i++)
        reports[i] = kernel_report(&scene.victims[i].command, MSG_KERNEL_RUNNING);
    agent_beats(HONEST, reports, scene.victim_count);
}

static void set_scene(void)
{
    scene = (struct scene){ .random = random_begin("liar") };
    agent_comes(HONEST, FOUR_CPUS);
    for (size_t i = 0; i < SESSIONS; i++) {
        char name[16];
        struct sent *command;

        if (i == SESSIONS / 2)
            agent_comes(LIAR, FOUR_CPUS);
        (void)snprintf(name, sizeof(name), "s-%zu", i);
        (void)submit(name);
        command = find_sent(MSG_KERNEL_CREATE, i);
        assert_non_null(command);
        assert_string_equal(command->agent_id, i < SESSIONS / 2 ? HONEST : LIAR);
        agent_reports(command, MSG_KERNEL_RUNNING);
        scene.commands[scene.count++] = *command;
    }
    for (size_t i = 0; i < SESSIONS / 2; i++)
        scene.victims[scene.victim_count++] = look_at(&scene.commands[i]);
    world.core->send = count_sends;
    assert_non_null(core_subscribe(world.core, NULL, on_event, NULL));
}

/* ---- the lies ---- */

static void lie_once(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct message msg = { .type = MSG_UNKNOWN };
    size_t kernels;

    say_anything(&text);
    assert_true(strbuf_ok(&text));
    if (message_decode(text.data, text.len, &msg, NULL) < 0)
        return;
    scene.heard++;
    kernels = msg.type == MSG_HEARTBEAT ? msg.heartbeat.kernel_count : 1;
    scene.sends = 0;
    inventory_link_ops.on_message(world.core, LIAR, &msg);
    message_done(&msg);
    settle();
    assert_true(scene.sends <= 2 * kernels + 2 * SESSIONS);
}

static void test_lies(void **state)
{
    size_t types;
    uint64_t rounds = random_scaled(ROUNDS);

    (void)state;
    set_scene();
    types = slot_types_count(core_slot_types(world.core));
    for (uint64_t i = 0; i < rounds; i++) {
        lie_once();
        check_victims();
        assert_int_equal(scene.told, 0);
        if (pick(100) == 0) {
            agent_goes(LIAR);
            (void)agent_greets(LIAR, say_json(), uuid_random());
            (void)agent_greets(LIAR, FOUR_CPUS, uuid_random());
        }
        if (i % 100 == 99) {
            honest_beats();
            pass(USEC_PER_SEC);
        }
    }
    assert_true(scene.heard > rounds / 3);
    assert_int_equal(world.core->agent_count, 2);
    assert_in_range(slot_types_count(core_slot_types(world.core)), types, types + 64);
    assert_true(world.core->statistics.kinds.count <= 512);
    assert_true(world.core->image_requirements.count <= 16);
    assert_clean();
    world.core->send = keep_sent;
    restart_core();
    assert_clean();
}

/* Each kernel that nobody knows is answered, so there is an end to them. */
static void test_endless_list(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct uuid id = uuid_random();
    char name[UUID_TEXT_MAX];
    struct message msg;

    (void)state;
    strbuf_addf(&text, "{\"type\":\"heartbeat\",\"incarnation\":\"%s\",\"seq\":1,\"kernels\":[",
                uuid_format(&id, name));
    for (int i = 0; i <= MSG_KERNELS_MAX; i++)
        strbuf_addf(&text, "%s{\"kernel_id\":\"%s\",\"attempt\":1,\"state\":\"RUNNING\"}",
                    i ? "," : "", name);
    strbuf_adds(&text, "]}");
    assert_true(strbuf_ok(&text));
    assert_int_equal(message_decode(text.data, text.len, &msg, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lies, world_begin, world_end),
        cmocka_unit_test(test_endless_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
