/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays: elements, what is kept of them, names, outcomes. */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "model/session_array.h"

static void add_kernels(struct session *s, const char *role, size_t count, int64_t cores)
{
    for (size_t i = 0; i < count; i++) {
        struct kernel *k = &s->kernels[s->kernel_count];

        *k = (struct kernel){ .rank = (uint32_t)s->kernel_count++, .index = (uint32_t)i + 1 };
        (void)snprintf(k->role, sizeof(k->role), "%s", role);
        assert_int_equal(slots_set(&k->requested, slot_name_intern("cpu", 3), cores * AMOUNT_ONE),
                         0);
    }
}

/* A batch session of main1, worker1 and worker2. */
static struct session make_session(const char *name)
{
    struct session_spec spec = { .image = "sh", .command = "true" };
    struct session s = { .id = uuid_random(), .type = SESSION_BATCH, .priority = 7 };

    (void)snprintf(s.name, sizeof(s.name), "%s", name);
    s.domain = aq_strdup("default");
    s.image = aq_strdup("sh");
    s.spec = session_spec_copy(&spec);
    s.starts_usec = 5;
    s.is_multi_node = true;
    s.kernels = aq_alloc_array(3, sizeof(*s.kernels));
    add_kernels(&s, "main", 1, 1);
    add_kernels(&s, "worker", 2, 4);
    return s;
}

static int init(struct session_array *a, const char *name, const char *indices,
                struct aq_error *err)
{
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    struct session s = make_session(name);
    int r;

    assert_int_equal(array_set_parse(indices, ARRAY_SIZE_DEFAULT, &set, NULL, NULL), 0);
    r = session_array_init(a, &s, &set, 8, err);
    session_done(&s);
    return r;
}

static void test_elements(void **state)
{
    struct session_array a;
    struct session s;

    (void)state;
    assert_int_equal(init(&a, "sweep", "0-9,4000000", NULL), 0);
    assert_int_equal(a.size, 11);
    session_array_make(&a, 4000000, 1000, &s);
    assert_string_equal(s.name, "sweep[4000000]");
    assert_true(uuid_equals(&s.array_id, &a.id) && s.array_index == 4000000);
    assert_true(s.status == SESSION_PENDING && s.priority == 7 && s.created_usec == 1000);
    assert_true(session_spec_equals(s.spec, a.element.spec) && !s.resource_group);
    assert_int_equal(s.kernel_count, 3);
    assert_string_equal(s.kernels[2].role, "worker");
    assert_true(s.kernels[2].index == 2 && s.kernels[2].rank == 2);
    assert_false(uuid_equals(&s.kernels[1].id, &s.kernels[2].id));
    assert_int_equal(session_name_check_any(s.name), 0);
    assert_true(session_name_check(s.name, NULL) < 0);
    session_done(&s);
    session_array_done(&a);
}

static void test_kept(void **state)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct session_array a;
    struct session s = { .row = 0 };

    (void)state;
    assert_int_equal(init(&a, "sweep", "0-9", NULL), 0);
    text = session_array_write_element(&a);
    assert_int_equal(session_array_parse_element(text, &s), 0);
    assert_true(s.starts_usec == 5 && s.is_multi_node && s.kernel_count == 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(s.kernels[i].role, a.element.kernels[i].role);
        assert_int_equal(s.kernels[i].index, a.element.kernels[i].index);
        assert_true(slots_eq(&s.kernels[i].requested, &a.element.kernels[i].requested));
    }
    session_done(&s);
    assert_int_equal(session_array_parse_element("{}", &s), -EINVAL);
    assert_int_equal(session_array_parse_element("[", &s), -EINVAL);
    session_done(&s);
    session_array_done(&a);
}

static void test_names(void **state)
{
    char long_name[] = "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff";
    AQ_CLEANUP(strbuf_donep) struct strbuf label = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct session_array a;
    char set[8];
    size_t len;

    (void)state;
    assert_int_equal(init(&a, long_name, "0-9", NULL), 0);
    session_array_done(&a);
    assert_int_equal(init(&a, long_name, "0-1000", &err), -EINVAL);
    assert_string_equal(err.field, "name");
    session_array_label("sweep", "0-99", 8, &label);
    assert_string_equal(label.data, "sweep[0-99%8]");
    assert_int_equal(session_array_split_name("sweep[0-9]", &len, set, sizeof(set)), 0);
    assert_true(len == 5 && strcmp(set, "0-9") == 0);
    assert_int_equal(session_array_split_name("sweep", &len, set, sizeof(set)), -ENOENT);
    assert_int_equal(session_array_split_name("[0]", &len, set, sizeof(set)), -ENOENT);
    assert_int_equal(session_array_split_name("sweep[]", &len, set, sizeof(set)), -EINVAL);
    assert_int_equal(session_array_split_name("sweep[0123456789]", &len, set, sizeof(set)),
                     -EINVAL);
}

static void test_outcomes(void **state)
{
    static const struct {
        enum session_status status;
        enum session_result result;
        const char *reason;
        enum array_outcome outcome;
    } rows[] = {
        { SESSION_TERMINATED, RESULT_SUCCESS, "task-finished", ARRAY_SUCCEEDED },
        { SESSION_TERMINATED, RESULT_FAILURE, "task-failed", ARRAY_FAILED },
        { SESSION_TERMINATED, RESULT_FAILURE, "user-requested", ARRAY_CANCELLED },
        { SESSION_TERMINATED, RESULT_FAILURE, "force-terminated", ARRAY_CANCELLED },
        { SESSION_CANCELLED, RESULT_UNDEFINED, "dependency-failed", ARRAY_CANCELLED },
        { SESSION_ERROR, RESULT_UNDEFINED, NULL, ARRAY_FAILED },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const struct session s = { .status = rows[i].status,
                                   .result = rows[i].result,
                                   .reason = (char *)(uintptr_t)rows[i].reason };

        assert_int_equal(session_array_outcome(&s), rows[i].outcome);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_outcomes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
