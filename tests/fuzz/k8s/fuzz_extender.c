/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to be kube-scheduler: a body for each verb, against books with a node and a pod. */
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "k8s/scheduler/extender.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char cards_text[] = "{\"cards\":[{\"id\":\"A\",\"memory\":8,\"compute\":9,"
                                 "\"healthy\":true},{\"id\":\"B\",\"memory\":8,\"compute\":9,"
                                 "\"healthy\":true}]}";
static const char pod_text[] = "{\"metadata\":{\"name\":\"o\",\"namespace\":\"n\",\"uid\":\"o\"},"
                               "\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"c\","
                               "\"resources\":{\"limits\":{\"m\":\"5\"}}}]}}";

static void make_books(struct extender *extender)
{
    json_t *object = json_load_string(pod_text, 0);
    struct aq_error err = { 0 };
    struct node_cards cards;
    struct pod pod;

    extender->books = books_new();
    if (node_cards_read(cards_text, &cards, &err) < 0
        || pod_read(object, &extender->names, &pod, &err) < 0)
        abort();
    books_set_node(extender->books, "n", &cards);
    books_set_pod(extender->books, &pod, true);
    json_decref(object);
}

/* No card is over, and what is answered is JSON. */
static void check(const struct extender *extender, const struct strbuf *out)
{
    const struct book_node *node = books_find_node(extender->books, "n");
    json_t *answer = json_load_text(out->data, out->len, 0, NULL);

    if (out->len && !answer)
        __builtin_trap();
    json_decref(answer);
    for (uint32_t i = 0; i < node->cards.count; i++)
        if (node->cards.cards[i].used_memory < 0 || node->cards.cards[i].used_memory > 8
            || node->cards.cards[i].used_compute < 0 || node->cards.cards[i].used_compute > 9)
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct extender extender = { .names = { "m", "c" }, .is_complete = true };
    const char *body = (const char *)data + 1;
    struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct bind_ask ask = { .json = NULL };

    if (size == 0)
        return 0;
    make_books(&extender);
    extender.policy = (enum card_policy)(data[0] / 4 % POLICY_COUNT);
    switch (data[0] % 4) {
    case 0:
        extender_filter(&extender, body, size - 1, 1, &out);
        break;
    case 1:
        if (extender_prioritize(&extender, body, size - 1, &out, &err) < 0)
            strbuf_clear(&out);
        break;
    case 2:
        if (extender_preempt(&extender, body, size - 1, &out, &err) < 0)
            strbuf_clear(&out);
        break;
    default:
        extender_filter(&extender, body, size - 1, 1, &out);
        if (extender_read_bind(body, size - 1, &ask, &err) == 0)
            (void)extender_settle(&extender, &ask, 2, &err);
        json_decref(ask.json);
    }
    check(&extender, &out);
    strbuf_done(&out);
    books_free(extender.books);
    return 0;
}
