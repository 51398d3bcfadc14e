/* SPDX-License-Identifier: Apache-2.0 */
/* etcd's JSON: what is asked, what is answered, and what of it is the configuration tree. */
#include "testing.h"

#include <errno.h>

#include "base/json_load.h"
#include "manager/etcd/etcd_view.h"
#include "model/config_key.h"

#define HEADER \
    "\"header\":{\"cluster_id\":\"18446744073709551615\",\"revision\":\"7\",\"raft_term\":\"2\"}"
#define PAIR "{\"key\":\"L2E=\",\"mod_revision\":\"3\",\"value\":\"eA==\"}" /* /a = x */

static void test_requests(void **state)
{
    const struct etcd_put puts[] = { { "/a", 2, "x", 3 }, { "/b", 2, NULL, 0 } };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    (void)state;
    etcd_write_txn(&out, puts, 2);
    assert_string_equal(
        out.data,
        "{\"compare\":[{\"key\":\"L2E=\",\"target\":\"MOD\",\"result\":\"EQUAL\","
        "\"mod_revision\":\"3\"},{\"key\":\"L2I=\",\"target\":\"MOD\",\"result\":\"EQUAL\","
        "\"mod_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":\"L2E=\",\"value\":\"eA==\"}},"
        "{\"request_delete_range\":{\"key\":\"L2I=\"}}]}");
    strbuf_clear(&out);
    etcd_write_range(&out, &(struct etcd_range){ .key = "/a",
                                                 .key_len = 2,
                                                 .end = "/b",
                                                 .limit = 5,
                                                 .revision = 9,
                                                 .newer = 4,
                                                 .keys_only = true });
    assert_string_equal(out.data,
                        "{\"key\":\"L2E=\",\"range_end\":\"L2I=\",\"limit\":\"5\","
                        "\"revision\":\"9\",\"min_mod_revision\":\"4\",\"keys_only\":true}");
    strbuf_clear(&out);
    etcd_write_watch(&out, "/a", "/b", 8);
    assert_string_equal(out.data, "{\"create_request\":{\"key\":\"L2E=\",\"range_end\":\"L2I=\","
                                  "\"start_revision\":\"8\"}}");
}

static int read_range(int status, const char *text, struct etcd_range_answer *ret,
                      struct aq_error *err)
{
    return etcd_read_range(status, text, strlen(text), ret, err);
}

static void test_ranges(void **state)
{
    struct etcd_range_answer answer;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(read_range(200,
                                "{" HEADER ",\"kvs\":[" PAIR "],\"more\":true,\"count\":\"2\"}",
                                &answer, &err),
                     0);
    assert_int_equal(answer.header.revision, 7);
    assert_true(answer.header.cluster_id == UINT64_MAX && answer.has_more && answer.count == 2);
    assert_int_equal(answer.pairs.count, 1);
    assert_string_equal(answer.pairs.items[0].key, "/a");
    assert_string_equal(answer.pairs.items[0].value, "x");
    assert_int_equal(answer.pairs.items[0].mod_revision, 3);
    etcd_pairs_done(&answer.pairs);
    assert_int_equal(read_range(200, "{" HEADER "}", &answer, &err), 0);
    assert_int_equal(answer.pairs.count, 0);
}

static void test_refusals(void **state)
{
    static const struct {
        int status, code;
        const char *text, *kind;
    } cases[] = {
        { 401, EACCES, "{\"error\":\"etcdserver: invalid auth token\",\"code\":16}",
          ETCD_TOKEN_REFUSED },
        { 400, EACCES, "{\"error\":\"etcdserver: revision of auth store is old\",\"code\":3}",
          ETCD_TOKEN_REFUSED },
        { 400, EACCES,
          "{\"error\":\"etcdserver: mvcc: required revision has been compacted\",\"code\":11}",
          ETCD_COMPACTED },
        { 412, EACCES, "{\"error\":\"etcdserver: authentication is not enabled\",\"code\":9}",
          ETCD_NO_USERS },
        { 403, EACCES, "{\"error\":\"etcdserver: permission denied\",\"code\":7}", NULL },
        { 502, EPROTO, "<html>", NULL },
        { 503, EPROTO, "{}", NULL },
        { 200, EPROTO, "", NULL },
        { 200, EPROTO, "[]", NULL },
        { 200, EPROTO, "{}", NULL },
        { 200, EPROTO, "{\"header\":{\"cluster_id\":\"18446744073709551616\"}}", NULL },
        { 200, EPROTO, "{\"header\":{\"revision\":\"-1\"}}", NULL },
        { 200, EPROTO, "{" HEADER ",\"kvs\":[{}]}", NULL },
        { 200, EPROTO, "{" HEADER ",\"kvs\":[\"x\"]}", NULL },
        { 200, EPROTO, "{" HEADER ",\"kvs\":[{\"key\":\"!\",\"mod_revision\":\"1\"}]}", NULL },
        { 200, EPROTO, "{" HEADER ",\"kvs\":[{\"key\":\"L2E=\",\"value\":1}]}", NULL },
        { 200, EPROTO, "{" HEADER ",\"kvs\":[" PAIR ",{\"key\":\"L2E=\",\"mod_revision\":\"x\"}]}",
          NULL },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct etcd_range_answer answer;
        struct aq_error err = { 0 };
        int r = read_range(cases[i].status, cases[i].text, &answer, &err);

        if (r != -cases[i].code || !err.text[0]
            || (cases[i].kind ? !err.kind || strcmp(err.kind, cases[i].kind) : !!err.kind))
            fail_msg("%s: %d, %s", cases[i].text, r, err.text);
    }
}

static int read_watch(const char *text, struct etcd_watch_answer *ret, struct aq_error *err)
{
    return etcd_read_watch(text, strlen(text), ret, err);
}

static void test_watches(void **state)
{
    struct etcd_watch_answer answer;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(read_watch("{\"result\":{" HEADER ",\"created\":true}}", &answer, &err), 0);
    assert_true(answer.is_created);
    assert_int_equal(read_watch("{\"result\":{" HEADER ",\"events\":[{\"kv\":" PAIR "},"
                                "{\"type\":\"DELETE\",\"kv\":" PAIR "}]}}",
                                &answer, &err),
                     0);
    assert_int_equal(answer.pairs.count, 2);
    assert_true(!answer.pairs.items[0].is_gone && answer.pairs.items[1].is_gone);
    etcd_pairs_done(&answer.pairs);
    assert_int_equal(read_watch("{\"result\":{" HEADER
                                ",\"canceled\":true,\"compact_revision\":\"5\"}}",
                                &answer, &err),
                     -EACCES);
    assert_string_equal(err.kind, ETCD_COMPACTED);
    assert_int_equal(read_watch("{\"result\":{" HEADER ",\"created\":true,\"canceled\":true,"
                                "\"cancel_reason\":\"etcdserver: invalid auth token\"}}",
                                &answer, &err),
                     -EACCES);
    assert_string_equal(err.kind, ETCD_TOKEN_REFUSED);
    assert_int_equal(
        read_watch("{\"error\":{\"grpc_code\":14,\"message\":\"gone\"}}", &answer, &err), -EACCES);
    assert_int_equal(read_watch("{}", &answer, &err), -EPROTO);
    assert_int_equal(read_watch("", &answer, &err), -EPROTO);
}

static void test_tokens(void **state)
{
    static const char *const bad[] = { "{}", "{\"token\":\"\"}", "{\"token\":\"a b\"}",
                                       "{\"token\":\"a\\r\\nb\"}", "{\"token\":7}" };
    static const char good[] = "{" HEADER ",\"token\":\"abc.7\"}";
    AQ_CLEANUP(aq_freep) char *token = NULL;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_int_equal(etcd_read_login(200, bad[i], strlen(bad[i]), &token, NULL), -EPROTO);
    assert_int_equal(etcd_read_login(200, good, strlen(good), &token, NULL), 0);
    assert_string_equal(token, "abc.7");
}

/* ---- what is the tree ---- */

static const struct etcd_entry *apply(struct etcd_view *view, const char *raw, size_t raw_len,
                                      const char *value, size_t value_len, int64_t revision)
{
    struct etcd_pair pair = { .key_len = raw_len + 1,
                              .value_len = value_len,
                              .mod_revision = revision };
    const struct etcd_entry *entry;

    pair.key = calloc(1, raw_len + 2);
    memcpy(pair.key + 1, raw, raw_len);
    pair.value = calloc(1, value_len + 1);
    memcpy(pair.value, value, value_len);
    assert_int_equal(etcd_view_apply(view, &pair, 1, &entry, NULL), 0);
    free(pair.key);
    free(pair.value);
    return entry;
}

static void test_foreign_keys(void **state)
{
    static const struct {
        const char *key;
        size_t len;
        bool is_key, is_value;
        const char *value;
        size_t value_len;
    } cases[] = {
        { "config/a", 8, true, true, "x", 1 },
        { "config/a", 8, true, true, "", 0 },
        { "sgroup/default/a", 16, true, true, "x", 1 },
        { "nodes/agents/a1/b", 17, true, true, "x", 1 },
        { "nodes/manager/m1", 16, true, true, "up", 2 },
        { "nodes/redis", 11, false, false, "x", 1 },
        { "nodes", 5, false, false, "x", 1 },
        { "sgroup", 6, false, false, "x", 1 },
        { "sgroup/default", 14, false, false, "x", 1 },
        { "sgroups", 7, true, true, "x", 1 },
        { "", 0, false, false, "x", 1 },
        { "a//b", 4, false, false, "x", 1 },
        { "a\0b", 3, false, false, "x", 1 },
        { "a\xff", 2, false, false, "x", 1 },
        { "a%ff", 4, false, false, "x", 1 },
        { "config/a", 8, true, false, "\xff", 1 },
        { "config/a", 8, true, false, "a\0b", 3 },
    };
    AQ_CLEANUP(aq_freep) char *huge = calloc(1, CONFIG_VALUE_MAX + 2);

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        struct etcd_view view = { .bytes = 0 };
        const struct etcd_entry *entry = apply(&view, cases[i].key, cases[i].len, cases[i].value,
                                               cases[i].value_len, 1);

        if (!!entry->key != cases[i].is_key || !!entry->value != cases[i].is_value
            || !entry->problem != cases[i].is_value)
            fail_msg("%zu: %s", i, entry->problem ? entry->problem : "fine");
        etcd_view_done(&view);
    }
    memset(huge, 'x', CONFIG_VALUE_MAX + 1);
    {
        struct etcd_view view = { .bytes = 0 };

        assert_non_null(apply(&view, "a", 1, huge, CONFIG_VALUE_MAX, 1)->value);
        assert_null(apply(&view, "a", 1, huge, CONFIG_VALUE_MAX + 1, 2)->value);
        assert_true(view.bytes < 10 && view.entries.count == 1);
        etcd_view_done(&view);
    }
}

static void test_spellings(void **state)
{
    struct etcd_view view = { .bytes = 0 };
    size_t count;
    struct etcd_item *items;

    (void)state;
    (void)apply(&view, "r/a:5", 5, "raw", 3, 4);
    (void)apply(&view, "r/a%3A5", 7, "ours", 4, 3);
    (void)apply(&view, "r/%61%3a5", 9, "other", 5, 9);
    (void)apply(&view, "b", 1, "x", 1, 2);
    items = etcd_view_sort(&view, &count);
    assert_int_equal(count, 2);
    assert_string_equal(items[0].key, "b");
    assert_string_equal(items[1].key, "r/a%3A5");
    assert_string_equal(items[1].value, "ours");
    free(items);
    assert_int_equal(((struct etcd_entry *)etcd_view_find_latest(&view)->value)->mod_revision, 9);
    {
        struct etcd_pair gone = { .key = (char[]){ "/r/a%3A5" }, .key_len = 8, .is_gone = true };

        assert_int_equal(etcd_view_apply(&view, &gone, 1, NULL, NULL), 0);
    }
    items = etcd_view_sort(&view, &count);
    assert_string_equal(items[1].raw, "r/%61%3a5"); /* the first of the others */
    free(items);
    etcd_view_done(&view);
    assert_null(etcd_view_find_latest(&view));
}

static void test_too_much(void **state)
{
    struct etcd_view view = { .bytes = 0 };
    struct etcd_pair pair = { .mod_revision = 1 };
    struct aq_error err = { 0 };
    char key[16];
    int r = 0;

    (void)state;
    pair.key = key;
    for (int i = 0; r == 0; i++) {
        pair.value = calloc(1, 1);
        pair.key_len = (size_t)snprintf(key, sizeof(key), "/k%d", i);
        r = etcd_view_apply(&view, &pair, 1, NULL, &err);
        free(pair.value);
    }
    assert_int_equal(r, -E2BIG);
    assert_int_equal(view.entries.count, ETCD_KEYS_MAX + 1);
    etcd_view_done(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),  cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_watches),
        cmocka_unit_test(test_tokens),    cmocka_unit_test(test_foreign_keys),
        cmocka_unit_test(test_spellings), cmocka_unit_test(test_too_much),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
