/* SPDX-License-Identifier: Apache-2.0 */
/* Entities, by the tables of their members. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "model/accounts.h"

/* Every type of a member, with texts and slots that the row owns. */
static struct keypair_policy make_policy(void)
{
    struct keypair_policy policy;

    entity_init(&keypair_policy_entity, &policy);
    policy.name = strdup("student");
    policy.idle_timeout_sec = INT64_C(1) << 40;
    policy.max_concurrent_sessions = 3;
    assert_int_equal(slots_set(&policy.total_slots, "cpu", 2500000), 0);
    return policy;
}

static struct project make_project(void)
{
    struct project project;

    entity_init(&project_entity, &project);
    assert_int_equal(uuid_parse("2de2b969-1d04-48a6-af16-0bc8adb3c831", &project.id), 0);
    project.name = strdup("lasers");
    project.domain = strdup("physics");
    return project;
}

static void assert_json(const struct entity *entity, const void *row, unsigned without,
                        const char *expected)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    entity_write_json(entity, row, without, NULL, &w);
    jsonw_object_end(&w);
    assert_string_equal(text.data, expected);
}

static void test_new_rows_have_initial_values(void **state)
{
    struct keypair_policy policy;
    struct project project;

    (void)state;
    entity_init(&keypair_policy_entity, &policy);
    entity_init(&project_entity, &project);
    assert_null(policy.name);
    assert_true(policy.is_active);
    assert_false(policy.unlimited_unspecified);
    assert_int_equal(policy.max_concurrent_sftp_sessions, 1);
    assert_int_equal(policy.max_pending_sessions, 100000);
    assert_int_equal(policy.max_priority, 100);
    assert_int_equal(policy.max_concurrent_sessions, 0);
    assert_true(project.is_active);
}

static void test_rows_are_written_as_json(void **state)
{
    struct keypair_policy policy = make_policy();
    struct project project = make_project();

    (void)state;
    assert_json(&keypair_policy_entity, &policy, 0,
                "{\"name\":\"student\",\"is_active\":true,\"unlimited_unspecified\":false,"
                "\"total_slots\":{\"cpu\":\"2.5\"},\"max_session_lifetime_sec\":0,"
                "\"idle_timeout_sec\":1099511627776,\"max_idle_extension_sec\":0,"
                "\"max_concurrent_sessions\":3,"
                "\"max_concurrent_sftp_sessions\":1,\"max_containers_per_session\":0,"
                "\"max_pending_sessions\":100000,\"max_pending_slots\":{},\"max_priority\":100,"
                "\"host_network\":false}");
    assert_json(&project_entity, &project, 0,
                "{\"id\":\"2de2b969-1d04-48a6-af16-0bc8adb3c831\",\"name\":\"lasers\","
                "\"domain\":\"physics\",\"description\":null,\"is_active\":true,"
                "\"total_slots\":{}}");
    assert_json(&project_entity, &project, FIELD_UNAUDITED,
                "{\"name\":\"lasers\",\"domain\":\"physics\",\"description\":null,"
                "\"is_active\":true,\"total_slots\":{}}");
    entity_done(&keypair_policy_entity, &policy);
    entity_done(&project_entity, &project);
    assert_null(project.name);
}

/* What the object lacks is as in a new row. */
static void test_rows_are_read_from_json(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    json_auto_t *object = json_pack("{s:s, s:b, s:s, s:n}", "id",
                                    "2de2b969-1d04-48a6-af16-0bc8adb3c831", "is_active", 0, "name",
                                    "lasers", "description");
    json_auto_t *group = json_pack("{s:i, s:{s:b}}", "pending_timeout_sec", 90, "scheduler_opts",
                                   "backfill", 1);
    struct resource_group read_group;
    struct project read;

    (void)state;
    entity_read_json(&project_entity, object, &arena, &read);
    assert_json(&project_entity, &read, 0,
                "{\"id\":\"2de2b969-1d04-48a6-af16-0bc8adb3c831\",\"name\":\"lasers\","
                "\"domain\":null,\"description\":null,\"is_active\":false,\"total_slots\":{}}");
    entity_read_json(&resource_group_entity, group, &arena, &read_group);
    assert_int_equal(read_group.pending_timeout_usec, 90 * USEC_PER_SEC);
    assert_string_equal(read_group.scheduler_opts, "{\"backfill\":true}");
    assert_string_equal(read_group.driver_opts, "{}");
    assert_true(read_group.is_active);
}

static void test_copies_are_equal_and_their_own(void **state)
{
    struct keypair_policy policy = make_policy(), copy;

    (void)state;
    entity_copy(&keypair_policy_entity, &copy, &policy);
    assert_true(entity_equal(&keypair_policy_entity, &policy, &copy));
    assert_ptr_not_equal(policy.name, copy.name);
    entity_done(&keypair_policy_entity, &policy);
    assert_string_equal(copy.name, "student");
    assert_int_equal(slots_get(&copy.total_slots, "cpu"), 2500000);
    entity_done(&keypair_policy_entity, &copy);
}

static void test_each_member_makes_a_difference(void **state)
{
    struct project one = make_project(), other;

    (void)state;
    entity_copy(&project_entity, &other, &one);
    other.is_active = false;
    assert_false(entity_equal(&project_entity, &one, &other));
    other.is_active = true;
    other.id.bytes[15] ^= 1;
    assert_false(entity_equal(&project_entity, &one, &other));
    other.id = one.id;
    other.description = strdup("");
    assert_false(entity_equal(&project_entity, &one, &other));
    free(AQ_TAKE(other.description));
    assert_int_equal(slots_set(&other.total_slots, "cpu", 1), 0);
    assert_false(entity_equal(&project_entity, &one, &other));
    entity_done(&project_entity, &one);
    entity_done(&project_entity, &other);
}

/* Members that are not given, or null, stay; an alias is as good as the name. */
static void test_a_request_is_merged(void **state)
{
    struct keypair_policy policy = make_policy();
    const struct keypair_policy decoded = { .max_priority = 5, .unlimited_unspecified = true };
    json_auto_t *given = json_pack("{s:i, s:b, s:{s:s}, s:n}", "max_priority", 5,
                                   "unlimited_unspecified", 1, "total_resource_slots", "mem", "1g",
                                   "max_concurrent_sessions");

    (void)state;
    assert_int_equal(entity_merge(&keypair_policy_entity, &policy, &decoded, given, NULL, NULL), 0);
    assert_int_equal(policy.max_priority, 5);
    assert_true(policy.unlimited_unspecified);
    assert_int_equal(policy.max_concurrent_sessions, 3);
    assert_false(slots_has(&policy.total_slots, "cpu"));
    assert_int_equal(slots_get(&policy.total_slots, "mem"), 1 << 30);
    assert_string_equal(policy.name, "student");
    entity_done(&keypair_policy_entity, &policy);
}

static void test_a_bad_slot_is_named(void **state)
{
    struct project project = make_project();
    char name[] = "optics";
    const struct project decoded = { .name = name };
    json_auto_t *given = json_pack("{s:s, s:{s:s}}", "name", "optics", "total_slots", "cpu",
                                   "many");
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(entity_merge(&project_entity, &project, &decoded, given, NULL, &err), -EINVAL);
    assert_string_equal(err.field, "total_slots.cpu");
    assert_string_equal(err.kind, "invalid-api-params");
    assert_string_equal(project.name, "optics");
    entity_done(&project_entity, &project);
}

/* Tables that are made of the members have room for so many. */
static void test_entities_are_not_too_large(void **state)
{
    const struct entity *const entities[] = { &domain_entity,         &project_entity,
                                              &keypair_policy_entity, &resource_group_entity,
                                              &keypair_entity,        &user_entity };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(entities); i++) {
        size_t count = 0;

        while (entities[i]->fields[count].names)
            count++;
        assert_true(count <= ENTITY_FIELDS_MAX);
    }
    for (size_t i = 0; user_csv_columns[i].names; i++)
        assert_true(i < ENTITY_FIELDS_MAX && user_csv_columns[i].csv);
}

/* A member with a form of its own in requests is a text like others, but is not merged. */
static void test_own_members_are_left_to_the_caller(void **state)
{
    struct domain domain, copy;
    const struct domain decoded = { .is_active = false };
    json_auto_t *given = json_pack("{s:b, s:[]}", "is_active", 0, "registries");

    (void)state;
    entity_init(&domain_entity, &domain);
    domain.name = strdup("physics");
    domain.registries = strdup("registry.example");
    assert_int_equal(entity_merge(&domain_entity, &domain, &decoded, given, NULL, NULL), 0);
    assert_false(domain.is_active);
    assert_string_equal(domain.registries, "registry.example");
    entity_copy(&domain_entity, &copy, &domain);
    assert_true(entity_equal(&domain_entity, &domain, &copy));
    copy.registries[0] = 'R';
    assert_false(entity_equal(&domain_entity, &domain, &copy));
    assert_json(&domain_entity, &domain, FIELD_UNSHOWN,
                "{\"name\":\"physics\",\"description\":null,\"is_active\":false,"
                "\"total_slots\":{}}");
    entity_done(&domain_entity, &domain);
    entity_done(&domain_entity, &copy);
}

/* JSON is written as it is kept, and times in whole seconds. */
static void test_json_texts_and_times(void **state)
{
    struct resource_group group, copy;

    (void)state;
    entity_init(&resource_group_entity, &group);
    assert_json(&resource_group_entity, &group, 0,
                "{\"name\":null,\"description\":null,\"is_active\":true,\"scheduler\":\"fifo\","
                "\"scheduler_opts\":{},\"driver_opts\":{},\"pending_timeout_sec\":0,"
                "\"selection\":\"concentrated\",\"agent_loss_policy\":\"wait\","
                "\"agent_loss_grace_sec\":300}");
    entity_copy(&resource_group_entity, &copy, &group);
    assert_true(entity_equal(&resource_group_entity, &group, &copy));
    copy.pending_timeout_usec = 1;
    assert_false(entity_equal(&resource_group_entity, &group, &copy));
    free(AQ_TAKE(group.driver_opts));
    group.scheduler_opts[0] = '\0';
    assert_json(&resource_group_entity, &group, FIELD_UNSHOWN,
                "{\"name\":null,\"description\":null,\"is_active\":true,\"scheduler\":\"fifo\","
                "\"scheduler_opts\":null,\"driver_opts\":null}");
    entity_done(&resource_group_entity, &group);
    entity_done(&resource_group_entity, &copy);
}

static void test_json_texts_and_words_are_merged(void **state)
{
    char policy[] = "requeue";
    const struct resource_group decoded = { .agent_loss_policy = policy,
                                            .agent_loss_grace_usec = 7000000 };
    json_auto_t *given = json_pack("{s:s, s:i, s:{s:i}}", "agent_loss_policy", policy,
                                   "agent_loss_grace_sec", 7, "driver_opts", "a", 1);
    struct resource_group group;
    struct aq_error err = { 0 };

    (void)state;
    entity_init(&resource_group_entity, &group);
    assert_int_equal(entity_merge(&resource_group_entity, &group, &decoded, given, NULL, &err), 0);
    assert_string_equal(group.agent_loss_policy, "requeue");
    assert_int_equal(group.agent_loss_grace_usec, 7000000);
    assert_string_equal(group.driver_opts, "{\"a\":1}");
    policy[0] = 'R';
    assert_int_equal(entity_merge(&resource_group_entity, &group, &decoded, given, NULL, &err),
                     -EINVAL);
    assert_string_equal(err.field, "agent_loss_policy");
    assert_string_equal(err.text, "'Requeue' is none of its values");
    assert_string_equal(group.agent_loss_policy, "requeue");
    entity_done(&resource_group_entity, &group);
}

static struct keypair make_keypair(void)
{
    struct keypair keypair;

    entity_init(&keypair_entity, &keypair);
    strcpy(keypair.access_key, "AKIAAAAAAAAAAAAAAAAA");
    strcpy(keypair.secret_key, "a secret");
    assert_int_equal(uuid_parse("2de2b969-1d04-48a6-af16-0bc8adb3c831", &keypair.user_id), 0);
    return keypair;
}

/* A text within the struct differs up to its end, and a secret is written nowhere. */
static void test_texts_within_and_secrets(void **state)
{
    struct keypair keypair = make_keypair(), copy;
    static const char zeroes[sizeof(keypair.secret_key)];

    (void)state;
    assert_json(&keypair_entity, &keypair, 0,
                "{\"access_key\":\"AKIAAAAAAAAAAAAAAAAA\","
                "\"user_id\":\"2de2b969-1d04-48a6-af16-0bc8adb3c831\",\"is_active\":true,"
                "\"is_admin\":false,\"policy\":\"default\",\"rate_limit\":10000,"
                "\"ssh_public_key\":null}");
    assert_json(&keypair_entity, &keypair, FIELD_UNAUDITED,
                "{\"is_active\":true,\"is_admin\":false,\"policy\":\"default\","
                "\"rate_limit\":10000}");
    entity_copy(&keypair_entity, &copy, &keypair);
    copy.secret_key[20] = 'x';
    assert_true(entity_equal(&keypair_entity, &keypair, &copy));
    copy.secret_key[0] = 'A';
    assert_false(entity_equal(&keypair_entity, &keypair, &copy));
    copy.secret_key[0] = 'a';
    copy.access_key[0] = 'B';
    assert_false(entity_equal(&keypair_entity, &keypair, &copy));
    entity_done(&keypair_entity, &copy);
    assert_memory_equal(copy.secret_key, zeroes, sizeof(zeroes));
    entity_done(&keypair_entity, &keypair);
}

/* Whatever a request says of keys, it does not change them. */
static void test_keys_are_not_merged(void **state)
{
    const struct keypair_request decoded = {
        .keypair = { .access_key = "B", .secret_key = "b", .rate_limit = 5 }
    };
    json_auto_t *given = json_pack("{s:s, s:s, s:i}", "access_key", "B", "secret_key", "b",
                                   "rate_limit", 5);
    struct keypair keypair = make_keypair();

    (void)state;
    assert_int_equal(entity_merge(&keypair_entity, &keypair, &decoded, given, NULL, NULL), 0);
    assert_string_equal(keypair.access_key, "AKIAAAAAAAAAAAAAAAAA");
    assert_string_equal(keypair.secret_key, "a secret");
    assert_int_equal(keypair.rate_limit, 5);
    assert_null(field_find(keypair_create, "access_key"));
    assert_null(field_find(keypair_change, "user"));
    entity_done(&keypair_entity, &keypair);
}

/* A user who is given no role is no administrator; words are written as they are stored. */
static void test_words_and_memberships(void **state)
{
    const struct user_request decoded = { .role = "superadmin", .user.max_concurrent_sessions = 3 };
    json_auto_t *given = json_pack("{s:s, s:[s], s:i}", "role", "superadmin", "groups", "x",
                                   "max_concurrent_sessions", 3);
    struct user user, copy;
    struct uuid id;

    (void)state;
    entity_init(&user_entity, &user);
    assert_int_equal(user.role, ROLE_USER);
    assert_int_equal(user.status, USER_ACTIVE);
    assert_int_equal(uuid_parse("2de2b969-1d04-48a6-af16-0bc8adb3c831", &user.id), 0);
    user.project_ids = calloc(2, sizeof(*user.project_ids));
    user.project_ids[0] = user.id;
    user.project_count = user.project_cap = 2;
    assert_int_equal(entity_merge(&user_entity, &user, &decoded, given, NULL, NULL), 0);
    assert_int_equal(user.role, ROLE_USER);
    assert_int_equal(user.project_count, 2);
    assert_json(&user_entity, &user, FIELD_UNAUDITED,
                "{\"email\":null,\"username\":null,\"full_name\":null,\"description\":null,"
                "\"domain\":null,\"role\":\"user\",\"status\":\"active\","
                "\"groups\":[\"2de2b969-1d04-48a6-af16-0bc8adb3c831\","
                "\"00000000-0000-0000-0000-000000000000\"],\"total_slots\":{},"
                "\"max_concurrent_sessions\":3}");
    entity_copy(&user_entity, &copy, &user);
    id = copy.project_ids[0];
    copy.project_ids[0] = copy.project_ids[1];
    copy.project_ids[1] = id;
    assert_true(entity_equal(&user_entity, &user, &copy)); /* in whatever order */
    copy.project_ids[0] = id;
    assert_false(entity_equal(&user_entity, &user, &copy));
    copy.project_count = 1;
    assert_false(entity_equal(&user_entity, &user, &copy));
    entity_done(&user_entity, &copy);
    user.status = USER_BEFORE_VERIFICATION;
    entity_copy(&user_entity, &copy, &user);
    copy.status = USER_DELETED;
    assert_false(entity_equal(&user_entity, &user, &copy));
    entity_done(&user_entity, &copy);
    entity_done(&user_entity, &user);
}

static void test_fields_have_names(void **state)
{
    const struct field *field = field_find(keypair_policy_create, "total_resource_slots");
    char name[FIELD_NAME_MAX];

    (void)state;
    assert_string_equal(field_name(field, name), "total_slots");
    assert_string_equal(field_column(field, name), "total_slots");
    assert_string_equal(field_backendai_name(field, name), "total_resource_slots");
    assert_null(field_find(keypair_policy_create, "total_slots|total_resource_slots"));
    assert_null(field_find(keypair_policy_create, "is_active"));
    assert_null(field_find(keypair_policy_change, "name"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_rows_have_initial_values),
        cmocka_unit_test(test_rows_are_written_as_json),
        cmocka_unit_test(test_rows_are_read_from_json),
        cmocka_unit_test(test_copies_are_equal_and_their_own),
        cmocka_unit_test(test_each_member_makes_a_difference),
        cmocka_unit_test(test_a_request_is_merged),
        cmocka_unit_test(test_a_bad_slot_is_named),
        cmocka_unit_test(test_entities_are_not_too_large),
        cmocka_unit_test(test_own_members_are_left_to_the_caller),
        cmocka_unit_test(test_json_texts_and_times),
        cmocka_unit_test(test_json_texts_and_words_are_merged),
        cmocka_unit_test(test_texts_within_and_secrets),
        cmocka_unit_test(test_keys_are_not_merged),
        cmocka_unit_test(test_words_and_memberships),
        cmocka_unit_test(test_fields_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
