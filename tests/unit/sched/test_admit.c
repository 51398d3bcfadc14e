/* Admission: every rule with what it says; several at once. */
#include "world.h"

#include "sched/admit.h"

#define BATCH (1u << SESSION_BATCH)
#define INTERACTIVE (1u << SESSION_INTERACTIVE)

/* Agents have CPU, memory and GPUs of one kind. */
static bool serves(const void *data, const char *slot)
{
    (void)data;
    return strcmp(slot, "rocm.devices") != 0;
}

static const struct admit_group groups[] = { { "a", BATCH, serves, NULL },
                                             { "b", INTERACTIVE, serves, NULL },
                                             { "c", BATCH | INTERACTIVE, serves, NULL } };

static struct admission admission(const char *request)
{
    return (struct admission){ .session = session(request), .types = world.types, .groups = groups,
        .group_count = 3, .containers_max = ADMIT_UNLIMITED, .pending_max = ADMIT_UNLIMITED,
        .priority_max = 100 };
}

static void test_groups(void **state)
{
    static const struct {
        enum session_type type;
        const char *group;
        size_t from, count; /* of the groups above */
        const char *found, *says;
    } rows[] = {
        { SESSION_BATCH, "a", 0, 3, "a", NULL },
        { SESSION_BATCH, "b", 0, 3, NULL,
          "The scaling group 'b' does not accept the session type 'batch'. " },
        { SESSION_BATCH, "c", 0, 3, "c", NULL },
        { SESSION_INTERACTIVE, "a", 0, 3, NULL, "does not accept" },
        { SESSION_INTERACTIVE, "x", 0, 3, NULL,
          "You do not have access to the scaling group 'x'." },
        { SESSION_BATCH, NULL, 0, 3, "a", NULL },
        { SESSION_BATCH, NULL, 1, 2, "c", NULL },
        { SESSION_INTERACTIVE, NULL, 0, 3, "b", NULL },
        { SESSION_INTERACTIVE, NULL, 0, 0, NULL,
          "You do not have any scaling groups allowed to use." },
        { SESSION_INTERACTIVE, NULL, 0, 1, NULL,
          "No scaling groups accept the session type 'interactive'." },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_group *found = NULL;
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        a = admission("cpu=1 mem=1024");
        world.sessions[0].type = rows[i].type;
        a.resource_group = rows[i].group;
        a.groups = &groups[rows[i].from];
        a.group_count = rows[i].count;
        r = sched_admit(&a, &found, NULL, &err);
        assert_row((r == 0) == !rows[i].says, "%zu: %s", i, err.text);
        assert_row(rows[i].says || strcmp(found->name, rows[i].found) == 0, "%zu", i);
        assert_row(!rows[i].says || strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
        end();
    }
}

static void test_rules(void **state)
{
    static const struct {
        const char *request, *min, *max, *pending, *pending_max;
        int64_t shmem, containers_max, pending_count, pending_count_max;
        int priority, priority_max;
        const char *field, *says; /* NULL: nothing is wrong */
    } rows[] = {
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 1, .pending_count_max = 1 },
        { "mem=1024", .priority_max = 100, .containers_max = 1, .pending_count_max = 1,
          .field = "cpu", .says = "A session needs some cpu." },
        { "cpu=1 mem=1024", .min = "cpu=2", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "cpu", .says = "at least cpu=2, not 1" },
        { "cpu=4 mem=1024", .max = "cpu=2", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "cpu", .says = "at most cpu=2, not 4" },
        { "cpu=1 mem=1024", .min = "mem=1000", .shmem = 25, .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1, .field = "mem", .says = "at least mem=1 KiB" },
        { "cpu=1 mem=1024", .min = "mem=1000", .shmem = 24, .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1 },
        { "cpu=1 mem=1024", .shmem = 1024, .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "resource_opts", .says = "must be less than memory" },
        { "cpu=1 mem=1024 rocm.devices=1", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1, .field = "rocm.devices", .says = "has the slot 'rocm.devices'" },
        { "cpu=1 mem=1024 rocm.devices=0", .priority_max = 100, .containers_max = 1,
          .pending_count_max = 1 },
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 0, .pending_count_max = 1,
          .field = "clusterSize", .says = "at most 0 containers, not 1" },
        { "cpu=1 mem=1024", .priority = 51, .priority_max = 50, .containers_max = 1,
          .pending_count_max = 1, .field = "priority", .says = "highest priority is 50, not 51" },
        { "cpu=1 mem=1024", .priority_max = 100, .containers_max = 1, .pending_count = 3,
          .pending_count_max = 3, .field = "", .says = "more than 3 pending" },
        { "cpu=2 mem=1024", .pending = "cpu=3", .pending_max = "cpu=4", .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1, .field = "cpu",
          .says = "would ask for cpu=5, more than the limit 4" },
        { "cpu=2 mem=1024", .pending = "cpu=2", .pending_max = "cpu=4", .priority_max = 100,
          .containers_max = 1, .pending_count_max = 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct admit_group *found = NULL;
        struct admit_kernel kernel = { .shmem_bytes = rows[i].shmem };
        struct aq_error err = { 0 };
        struct admission a;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        a = admission(rows[i].request);
        world.sessions[0].priority = rows[i].priority;
        kernel.min = rows[i].min ? own(rows[i].min) : NULL;
        kernel.max = rows[i].max ? own(rows[i].max) : NULL;
        a.kernels = &kernel;
        a.containers_max = rows[i].containers_max;
        a.priority_max = rows[i].priority_max;
        a.pending = rows[i].pending_count;
        a.pending_max = rows[i].pending_count_max;
        a.pending_slots = rows[i].pending ? own(rows[i].pending) : NULL;
        a.pending_slots_max = rows[i].pending_max ? own(rows[i].pending_max) : NULL;
        r = sched_admit(&a, &found, NULL, &err);
        assert_row((r == 0) == !rows[i].says, "%zu: %s", i, err.text);
        if (rows[i].says) {
            assert_row(strstr(err.text, rows[i].says), "%zu: %s", i, err.text);
            assert_row(strcmp(err.field, rows[i].field) == 0, "%zu: %s", i, err.field);
        }
        end();
    }
}

/* Twenty sessions, each with as many things wrong as its number has bits: all are said. */
static void test_all_are_said(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 32; n++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        const struct admit_group *found = NULL;
        struct admission a;
        size_t lines = 0;
        int r;

        begin(&sched_fifo, &sched_concentrated);
        a = admission(n & 1 ? "mem=1024" : "cpu=1 mem=1024");
        a.group_count = n & 2 ? 0 : 3;
        a.containers_max = n & 4 ? 0 : 1;
        a.priority_max = n & 8 ? 9 : 10;
        a.pending_max = n & 16 ? 0 : 1;
        r = sched_admit(&a, &found, &text, NULL);
        for (const char *c = text.data; *c; c++)
            lines += *c == '\n';
        lines += text.len > 0;
        assert_row(lines == (size_t)__builtin_popcount(n), "%u: %s", n, text.data);
        assert_true((r == 0) == (n == 0));
        end();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_all_are_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
