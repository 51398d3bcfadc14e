/* SPDX-License-Identifier: Apache-2.0 */
/* Pods as the API server has them, cards as nodes say, and who holds what. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json_load.h"
#include "k8s/scheduler/books.h"

static const struct resource_names names = { "v/memory", "v/compute" };

static int read_pod(const char *text, struct pod *ret)
{
    json_t *object = json_load_string(text, 0);
    struct aq_error err = { 0 };
    int r;

    assert_non_null(object);
    r = pod_read(object, &names, ret, &err);
    assert_int_equal(r < 0, err.text[0] != '\0');
    json_decref(object);
    return r;
}

#define POD(uid, more) \
    "{\"metadata\":{\"namespace\":\"n\",\"name\":\"" uid "\",\"uid\":\"" uid "\"" more "}"
#define ASK(name, memory, compute)                                             \
    "{\"name\":\"" name "\",\"resources\":{\"limits\":{\"v/memory\":\"" memory \
    "\",\"v/compute\":\"" compute "\"}}}"
#define STAYS(name, memory) \
    "{\"name\":\"" name     \
    "\",\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{\"v/memory\":\"" memory "\"}}}"

static void test_amounts(void **state)
{
    static const struct {
        const char *quantity;
        int64_t amount; /* -1 = none */
    } rows[] = {
        { "\"8\"", 8 },
        { "\"1k\"", 1000 },
        { "\"2Ki\"", 2048 },
        { "7", 7 },
        { "\"1G\"", 1000000000 },
        { "\"-1\"", -1 },
        { "\"\"", -1 },
        { "\"x\"", -1 },
        { "\"1.5\"", -1 },
        { "\"500m\"", -1 },
        { "1.5", -1 },
        { "\"2G\"", -1 },
        { "-3", -1 },
        { "\"99999999999\"", -1 },
        { "\"1e3\"", 1000 },
        { "[]", -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char text[400];
        struct pod pod;
        int r;

        (void)snprintf(text, sizeof(text),
                       POD("u", "") ",\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
                                    "\"limits\":{\"v/memory\":%s}}}]}}",
                       rows[i].quantity);
        r = read_pod(text, &pod);
        assert_row(rows[i].amount < 0 ? r == -EINVAL : r == 0, "%s", rows[i].quantity);
        if (r == 0) {
            assert_row(pod.parts[0].memory == rows[i].amount, "%s", rows[i].quantity);
            pod_done(&pod);
        }
    }
}

/* "20/60 8/0": memory and compute of each part; then the part of each container. */
static void test_parts(void **state)
{
    static const struct {
        const char *init, *containers, *parts, *of;
    } rows[] = {
        { "", ASK("a", "8", "50") "," ASK("b", "4", "0"), "8/50 4/0", "01" },
        { "", "{\"name\":\"a\"}", "", "" },
        { "", ASK("a", "0", "0"), "", "" },
        { "", ASK("a", "0", "20"), "0/20", "0" },
        /* what an init container had goes on to those that come after */
        { ASK("i", "20", "10"), ASK("a", "8", "60"), "20/60", "00" },
        { ASK("i", "20", "0") "," ASK("j", "5", "0"), ASK("a", "8", "0"), "20/0", "000" },
        { ASK("i", "4", "0") "," ASK("j", "5", "0"), "{\"name\":\"a\"}", "5/0", "00" },
        { ASK("i", "4", "0"), ASK("a", "4", "0") "," ASK("b", "4", "0"), "4/0 4/0", "001" },
        { ASK("i", "4", "0"), ASK("a", "2", "0") "," ASK("b", "4", "0"), "6/0", "000" },
        /* compute goes on where memory is used up */
        { ASK("i", "4", "9"), ASK("a", "4", "0") "," ASK("b", "4", "9"), "8/9", "000" },
        /* one that goes on beside the others keeps what it has */
        { STAYS("i", "12") "," ASK("j", "2", "0"), ASK("a", "20", "0"), "12/0 20/0", "011" },
        { ASK("i", "8", "0") "," STAYS("j", "6"), ASK("a", "4", "0"), "10/0", "000" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        char text[2000], parts[200] = "", of[20] = "";
        struct pod pod;

        (void)snprintf(text, sizeof(text),
                       POD("u", "") ",\"spec\":{\"initContainers\":[%s],\"containers\":[%s]}}",
                       rows[i].init, rows[i].containers);
        assert_int_equal(read_pod(text, &pod), 0);
        for (uint32_t p = 0; p < pod.part_count; p++)
            (void)snprintf(parts + strlen(parts), 20, "%s%d/%d", p ? " " : "", pod.parts[p].memory,
                           pod.parts[p].compute);
        for (uint32_t c = 0; c < pod.container_count; c++)
            (void)snprintf(of + strlen(of), 4, "%u", pod.containers[c].part);
        assert_row(strcmp(parts, rows[i].parts) == 0 && strcmp(of, rows[i].of) == 0, "%zu: %s, %s",
                   i, parts, of);
        pod_done(&pod);
    }
}

static void test_pods_that_are_none(void **state)
{
    static const char *const texts[] = {
        "{}",
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}",
        "{\"metadata\":{\"uid\":\"u\"}}",
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":7}}",
        POD("u", "") ",\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"v/memory\":1}}}]}}",
    };
    struct pod pod;

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        assert_row(read_pod(texts[i], &pod) == -EINVAL, "%s", texts[i]);
}

static void test_placements_and_policies(void **state)
{
    struct pod pod;

    (void)state;
    assert_int_equal(
        read_pod(
            POD("u",
                ",\"annotations\":{\"aliquot/policy\":\"fragmentation\","
                "\"aliquot/placement\":\"{\\\"b\\\":\\\"GPU-1\\\",\\\"x\\\":\\\"y\\\","
                "\\\"a\\\":3}\"}") ",\"spec\":{\"containers\":[" ASK("a", "1",
                                                                     "0") "," ASK("b", "2",
                                                                                  "0") "],\"priority\":7,\"nodeName\":\"here\"},\"status\":{\"phase\":"
                                                                                       "\"Failed\"}}",
            &pod),
        0);
    assert_null(pod.parts[0].placed);
    assert_string_equal(pod.parts[1].placed, "GPU-1");
    assert_int_equal(pod.policy, POLICY_FRAGMENTATION);
    assert_int_equal(pod.priority, 7);
    assert_string_equal(pod.node, "here");
    assert_true(pod.is_finished);
    pod_done(&pod);
    assert_int_equal(
        read_pod(POD("u", "") ",\"spec\":{\"schedulerName\":\"alnair-cost-saving\"}}", &pod), 0);
    assert_int_equal(pod.policy, POLICY_BIN_PACKING);
    pod_done(&pod);
}

static void test_annotations_of_nodes(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"cards\":{}}",
        "{\"cards\":[1]}",
        "{\"cards\":[{\"id\":\"a\",\"memory\":0,\"compute\":1}]}",
        "{\"cards\":[{\"id\":\"a\",\"memory\":1,\"compute\":-1}]}",
        "{\"cards\":[{\"id\":\"a\",\"memory\":10000,\"compute\":1}]}",
        "{\"cards\":[{\"id\":\"a\",\"memory\":1.5,\"compute\":1}]}",
        "{\"cards\":[{\"id\":\"a\",\"memory\":1,\"compute\":1},{\"id\":\"a\",\"memory\":1,"
        "\"compute\":1}]}",
        "{\"cards\":[],\"containers\":3}",
        "{\"cards\":[],\"containers\":[{}]}",
        "{\"cards\":[],\"containers\":[{\"pod\":\"p\",\"container\":\"c\",\"card\":\"a\"}]}",
    };
    struct node_cards cards;
    struct aq_error err = { 0 };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bad); i++) {
        err.text[0] = '\0';
        assert_row(node_cards_read(bad[i], &cards, &err) == -EINVAL && err.text[0], "%s", bad[i]);
        assert_int_equal(cards.count, 0);
    }
    assert_int_equal(
        node_cards_read("{\"cards\":[{\"id\":\"a\",\"memory\":80,\"compute\":100,"
                        "\"healthy\":true}],\"containers\":[{\"pod\":\"p\","
                        "\"container\":\"c\",\"card\":\"b\",\"memory\":1,\"compute\":0},"
                        "{\"pod\":\"p\",\"container\":\"c\",\"card\":\"a\",\"memory\":1,"
                        "\"compute\":0}]}",
                        &cards, &err),
        0);
    assert_int_equal(cards.count, 1);
    assert_int_equal(cards.given_count, 1); /* that of a card that is not there is left out */
    assert_true(cards.cards[0].is_healthy);
    node_cards_done(&cards);
}

/* ---- who holds what ---- */

struct scene {
    struct books *books;
    struct aq_error err;
};

static void put_node(struct scene *s, const char *name, const char *given)
{
    char text[1000];
    struct node_cards cards;

    (void)snprintf(text, sizeof(text),
                   "{\"cards\":[{\"id\":\"A\",\"memory\":32,\"compute\":100,\"healthy\":true},"
                   "{\"id\":\"B\",\"memory\":32,\"compute\":100,\"healthy\":true}],"
                   "\"containers\":[%s]}",
                   given);
    assert_int_equal(node_cards_read(text, &cards, &s->err), 0);
    books_set_node(s->books, name, &cards);
}

static struct book_pod *put_pod(struct scene *s, const char *uid, int memory, const char *node,
                                const char *placement)
{
    char text[1000];
    struct pod pod;

    (void)snprintf(text, sizeof(text),
                   "{\"metadata\":{\"namespace\":\"n\",\"name\":\"%s\",\"uid\":\"%s\","
                   "\"annotations\":{\"aliquot/placement\":\"{\\\"c\\\":\\\"%s\\\"}\"}},\"spec\":{"
                   "\"nodeName\":\"%s\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"
                   "\"v/memory\":\"%d\"}}}]}}",
                   uid, uid, placement, node, memory);
    assert_int_equal(read_pod(text, &pod), 0);
    books_set_pod(s->books, &pod, true);
    return books_find_pod(s->books, uid);
}

#define assert_used(s, a, b)                                        \
    do {                                                            \
        struct book_node *node_ = books_find_node((s)->books, "n"); \
        assert_int_equal(node_->cards.cards[0].used_memory, a);     \
        assert_int_equal(node_->cards.cards[1].used_memory, b);     \
    } while (0)

static void test_truth_comes_before_promises(void **state)
{
    struct scene s = { 0 };

    (void)state;
    s.books = books_new();
    put_pod(&s, "p", 20, "n", "A"); /* before its node */
    assert_null(books_find_node(s.books, "n"));
    put_node(&s, "n", "");
    assert_used(&s, 20, 0);
    put_pod(&s, "q", 8, "n", "");
    assert_used(&s, 28, 0); /* the fullest that has room */
    put_node(&s, "n",
             "{\"pod\":\"p\",\"container\":\"c\",\"card\":\"B\",\"memory\":20,\"compute\":0},"
             "{\"pod\":\"z\",\"container\":\"c\",\"card\":\"A\",\"memory\":30,\"compute\":0}");
    assert_used(&s, 30, 28);
    put_pod(&s, "r", 10, "n", "B"); /* said to be there: q has no room any more */
    assert_used(&s, 30, 30);
    books_remove_node(s.books, "n");
    put_node(&s, "n", "");
    assert_used(&s, 28, 10);
    books_remove_pod(s.books, "n/p");
    books_remove_pod(s.books, "n/p");
    assert_used(&s, 0, 18);
    put_pod(&s, "q", 8, "m", ""); /* as if it had moved */
    assert_used(&s, 0, 10);
    books_free(s.books);
}

/* One that was asked about and never seen, and one whose name another pod has by now. */
static void test_pods_that_nobody_watches_go(void **state)
{
    static const uint32_t cards[] = { 0 };
    struct scene s = { 0 };
    struct book_pod *pod;
    struct pod asked;

    (void)state;
    s.books = books_new();
    put_node(&s, "n", "");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            read_pod(POD("u", "") ",\"spec\":{\"containers\":[" ASK("c", "4", "0") "]}}", &asked),
            0);
        books_set_pod(s.books, &asked, false);
        pod = books_find_pod(s.books, "u");
        books_assume(s.books, pod, books_find_node(s.books, "n"), cards, 100);
        assert_used(&s, 4, 0);
        books_expire(s.books, 99);
        assert_used(&s, 4, 0);
        if (i == 0) {
            books_expire(s.books, 100);
            assert_null(books_find_pod(s.books, "u"));
        }
    }
    assert_int_equal(read_pod("{\"metadata\":{\"namespace\":\"n\",\"name\":\"u\",\"uid\":\"v\"},"
                              "\"spec\":{\"containers\":[" ASK("c", "4", "0") "]}}",
                              &asked),
                     0);
    books_set_pod(s.books, &asked, true);
    assert_null(books_find_pod(s.books, "u"));
    assert_non_null(books_find_pod(s.books, "v"));
    assert_used(&s, 0, 0);
    books_free(s.books);
}

static void test_assumptions(void **state)
{
    static const uint32_t first[] = { 0 }, second[] = { 1 };
    struct scene s = { 0 };
    struct book_pod *pod, *other;
    struct book_node *node;

    (void)state;
    s.books = books_new();
    put_node(&s, "n", "");
    node = books_find_node(s.books, "n");
    pod = put_pod(&s, "p", 20, "", "");
    books_assume(s.books, pod, node, first, 100);
    assert_used(&s, 20, 0);
    books_assume(s.books, pod, node, second, 100);
    assert_used(&s, 0, 20);
    put_pod(&s, "p", 20, "", ""); /* the watch tells of something else */
    assert_used(&s, 0, 20);
    books_set_leaving(s.books, pod, true);
    assert_used(&s, 0, 0);
    books_set_leaving(s.books, pod, false);
    books_expire(s.books, 99);
    assert_used(&s, 0, 20);
    books_expire(s.books, 100);
    assert_used(&s, 0, 0);
    /* what the kubelet gives comes first: then there is no assumption any more */
    books_assume(s.books, pod, node, first, 100);
    put_node(&s, "n",
             "{\"pod\":\"z\",\"container\":\"c\",\"card\":\"A\",\"memory\":30,\"compute\":0}");
    assert_null(pod->cards);
    assert_used(&s, 30, 0);
    /* but what is bound will be somewhere */
    other = put_pod(&s, "o", 2, "", "");
    books_assume(s.books, other, node, second, 100);
    books_confirm(other, 200);
    books_expire(s.books, 150);
    assert_used(&s, 30, 2);
    put_node(&s, "n",
             "{\"pod\":\"z\",\"container\":\"c\",\"card\":\"B\",\"memory\":31,\"compute\":0}");
    assert_used(&s, 2, 31);
    put_pod(&s, "o", 2, "n", "B"); /* the watch says so: it is there by its annotation */
    assert_used(&s, 2, 31);
    assert_int_equal(other->assumed_usec, 0);
    put_node(&s, "n", "");
    assert_used(&s, 0, 2);
    books_free(s.books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_pods_that_are_none),
        cmocka_unit_test(test_placements_and_policies),
        cmocka_unit_test(test_annotations_of_nodes),
        cmocka_unit_test(test_truth_comes_before_promises),
        cmocka_unit_test(test_pods_that_nobody_watches_go),
        cmocka_unit_test(test_assumptions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
