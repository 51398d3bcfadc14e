/* SPDX-License-Identifier: Apache-2.0 */
/* What etcd answers, and what of it is the configuration tree: keys of the tree are in its one
 * spelling, values are text, and a base that is read is written as it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "manager/etcd/etcd_merge.h"
#include "manager/etcd/etcd_view.h"
#include "model/config_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_view(struct etcd_pairs *pairs)
{
    struct etcd_view view = { .bytes = 0 };
    struct etcd_item *items;
    size_t count;

    for (size_t i = 0; i < pairs->count; i++)
        if (etcd_view_apply(&view, &pairs->items[i], AQ_MIN(pairs->items[i].key_len, 1), NULL, NULL)
            < 0)
            break;
    items = etcd_view_sort(&view, &count);
    require(count <= view.entries.count);
    for (size_t i = 0; i < count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;
        const char *value = items[i].value;

        require(config_key_add(&again, "key", items[i].key, NULL) == 0);
        require(strcmp(again.data, items[i].key) == 0 && etcd_key_is_carried(items[i].key));
        require(!i || strcmp(items[i - 1].key, items[i].key) < 0);
        require(!value
                || (strlen(value) <= CONFIG_VALUE_MAX && utf8_is_valid(value, strlen(value))));
    }
    free(items);
    etcd_view_done(&view);
}

static void check_base(const char *text)
{
    struct etcd_base base, again;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (etcd_base_parse(text, &base) < 0)
        return;
    etcd_base_write(&out, &base);
    require(etcd_base_parse(out.data, &again) == 0 && memcmp(&base, &again, sizeof(base)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = calloc(1, size + 1), *token = NULL;
    struct etcd_range_answer range = { .count = 0 };
    struct etcd_watch_answer watch = { .is_created = false };
    struct etcd_header header;
    struct aq_error err;
    bool is_made;

    memcpy(text, data, size);
    for (int status = 200; status <= 400; status += 200) {
        if (etcd_read_range(status, text, size, &range, &err) == 0) {
            require(status == 200);
            check_view(&range.pairs);
            etcd_pairs_done(&range.pairs);
        }
        (void)etcd_read_txn(status, text, size, &header, &is_made, &err);
    }
    if (etcd_read_watch(text, size, &watch, &err) == 0) {
        check_view(&watch.pairs);
        etcd_pairs_done(&watch.pairs);
    }
    if (etcd_read_login(200, text, size, &token, &err) == 0)
        require(!strpbrk(token, " \r\n"));
    check_base(text);
    return 0;
}
