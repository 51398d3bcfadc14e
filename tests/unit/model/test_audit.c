/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the audit log: what was before and what is after, within bounds. */
#include "testing.h"

#include <stdlib.h>

#include "base/json_load.h"
#include "model/event.h"

static char *write_detail(const char *before, const char *after)
{
    struct strbuf out = STRBUF_INIT;

    audit_write_detail(&(struct audit_change){ .before = before, .after = after }, &out);
    assert_true(strbuf_ok(&out));
    return strbuf_steal(&out);
}

static void test_sides(void **state)
{
    AQ_CLEANUP(aq_freep) char *both = write_detail("{\"a\":1}", "{\"a\":2}");
    AQ_CLEANUP(aq_freep) char *after = write_detail(NULL, "{}");
    AQ_CLEANUP(aq_freep) char *none = write_detail(NULL, NULL);

    (void)state;
    assert_string_equal(both, "{\"before\":{\"a\":1},\"after\":{\"a\":2}}");
    assert_string_equal(after, "{\"before\":null,\"after\":{}}");
    assert_string_equal(none ? none : "", "");
}

/* An object of 'count' members "m0"..., each a text of 'len' times "é". */
static char *write_large(int count, int len)
{
    struct strbuf out = STRBUF_INIT;

    for (int i = 0; i < count; i++) {
        strbuf_addf(&out, "%s\"m%d\":\"", i ? "," : "{", i);
        for (int n = 0; n < len; n++)
            strbuf_adds(&out, "é");
        strbuf_adds(&out, "\"");
    }
    strbuf_adds(&out, "}");
    assert_true(strbuf_ok(&out));
    return strbuf_steal(&out);
}

/* The cut side as JSON, which is what a reader gets. */
static json_t *cut(const char *side)
{
    AQ_CLEANUP(aq_freep) char *text = write_detail(NULL, side);
    json_auto_t *detail = json_load_string(text, 0);

    assert_non_null(detail);
    assert_in_range(strlen(text), 1, AUDIT_SIDE_MAX + 64);
    return json_incref(json_object_get(detail, "after"));
}

static void test_long_value(void **state)
{
    AQ_CLEANUP(aq_freep) char *large = write_large(1, 5000);
    json_auto_t *after = cut(large);
    const char *value = json_string_value(json_object_get(after, "m0"));

    (void)state;
    assert_non_null(strstr(value, "... cut: 10002 bytes"));
    assert_string_equal(json_string_value(json_object_get(after, "...")), "cut");
    assert_null(json_object_get(after, "members_left_out"));
}

static void test_many_members(void **state)
{
    AQ_CLEANUP(aq_freep) char *large = write_large(1000, 10);
    json_auto_t *after = cut(large);
    json_int_t left_out = json_integer_value(json_object_get(after, "members_left_out"));

    (void)state;
    assert_non_null(json_object_get(after, "m0"));
    assert_int_equal(json_object_size(after) - 2 + (size_t)left_out, 1000);
}

/* Values just below the bound of one, many of them. */
static void test_many_long_values(void **state)
{
    AQ_CLEANUP(aq_freep) char *large = write_large(30, 250);
    json_auto_t *after = cut(large);

    (void)state;
    assert_true(json_object_size(after) > 5);
}

static void test_event_has_copies(void **state)
{
    AQ_CLEANUP(event_batch_freep) struct event_batch *batch = event_batch_new();
    struct audit_who by = { .user_name = "ann@example.com", .access_key = "AKIA" };
    char name[] = "a-name";
    const struct audit_change change = { .action = "modify-user", .object_name = name };

    (void)state;
    event_batch_audit(batch, NULL, &change);
    assert_int_equal(batch->count, 0);
    event_batch_audit(batch, &by, &change);
    name[0] = by.user_name[0] = '?';
    assert_int_equal(batch->count, 1);
    assert_string_equal(batch->events[0].audited.object_name, "a-name");
    assert_string_equal(batch->events[0].audited.user_name, "ann@example.com");
    assert_string_equal(batch->events[0].audited.action, "modify-user");
    assert_null(batch->events[0].audited.address);
    assert_null(batch->events[0].audited.detail);
    by.action = "signup";
    event_batch_audit(batch, &by, &change);
    assert_string_equal(batch->events[1].audited.action, "signup");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_long_value),
        cmocka_unit_test(test_many_members),
        cmocka_unit_test(test_many_long_values),
        cmocka_unit_test(test_event_has_copies),
    };

    return cmocka_run_group_tests_name("model/audit", tests, NULL, NULL);
}
