/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "conf/conf.h"

struct inner {
    char *name;
    int64_t micro;
};

struct settings {
    char *name;
    int64_t count, wait_usec, size;
    struct conf_list list;
    struct conf_pairs pairs;
    struct conf_tables tables, named;
    bool flag;
    struct conf_listen listen;
};

static const struct conf_item inner_items[] = {
    { "x", "micro", CONF_MICRO, offsetof(struct inner, micro), "0.5", 0, 0, 0, "" },
    CONF_TABLE_END,
};
static const struct conf_table table = { sizeof(struct inner), inner_items, false, false };
static const struct conf_table named = { sizeof(struct inner), inner_items, true, true };

static const struct conf_item items[] = {
    { "", "name", CONF_STR, offsetof(struct settings, name), NULL, 0, 0, 0, "" },
    { "a", "count", CONF_INT, offsetof(struct settings, count), NULL, 1, 9, 0, "" },
    { "a", "wait", CONF_DURATION, offsetof(struct settings, wait_usec), NULL, 0, 0, 0, "" },
    { "a", "size", CONF_SIZE, offsetof(struct settings, size), NULL, 0, 0, 0, "" },
    { "a", "flag", CONF_BOOL, offsetof(struct settings, flag), NULL, 0, 0, 0, "" },
    { "b", "listen", CONF_LISTEN, offsetof(struct settings, listen), NULL, 0, 0, 0, "" },
    { "", "l", CONF_LIST, offsetof(struct settings, list), NULL, 0, 0, 0, "" },
    { "", "p", CONF_PAIRS, offsetof(struct settings, pairs), NULL, 0, 0, 0, "" },
    { "", "t", CONF_TABLES, offsetof(struct settings, tables), NULL, 0, 0, 0, "", &table },
    { "b", "n", CONF_TABLES, offsetof(struct settings, named), NULL, 0, 0, 0, "", &named },
    CONF_TABLE_END,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = strndup((const char *)data, size);
    struct conf_listen address = { .host = NULL };
    struct settings got = { .name = NULL };

    if (conf_load_text(items, "f", (const char *)data, size, &got, NULL) == 0)
        conf_done(items, &got);
    if (!text)
        return 0;
    if (conf_parse_address(text, 1, &address, NULL) == 0)
        free(address.host);
    for (const struct conf_item *item = items; item->type != CONF_END; item++)
        (void)conf_set(item, text, &got, NULL);
    conf_done(items, &got);
    return 0;
}
