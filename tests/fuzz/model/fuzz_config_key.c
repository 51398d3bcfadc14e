/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and trees of the configuration: what is accepted has one spelling, which is accepted
 * again; all leaves of a tree make the same leaves when they are nested and walked again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "model/config_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_key(const char *key)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf again = STRBUF_INIT;

    require(strlen(key) <= CONFIG_KEY_MAX);
    for (const char *c = key; *c; c++)
        require(*c > ' ' && *c < 0x7f);
    require(config_key_add(&again, "key", key, NULL) == 0 && strcmp(again.data, key) == 0);
}

/* Into the tree at 'data'. */
static int nest(void *data, const char *key, const char *value, struct aq_error *err)
{
    (void)err;
    check_key(key);
    require(strlen(value) <= CONFIG_VALUE_MAX);
    config_tree_add(data, key, value);
    return 0;
}

static void check_tree(const char *text, size_t len, bool names_are_keys)
{
    json_t *tree = json_load_text(text, len, 0, NULL), *nested = json_object(),
           *again = json_object();
    struct aq_error err = { 0 };

    if (json_is_object(tree)
        && config_tree_walk(tree, "", names_are_keys, nest, nested, &err) == 0) {
        require(config_tree_walk(nested, "", false, nest, again, &err) == 0);
        require(json_equal(nested, again));
    }
    json_decref(tree);
    json_decref(nested);
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, key = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *value = NULL;
    struct aq_error err = { 0 };
    json_t *json;

    strbuf_add(&text, data, size);
    if (config_key_add(&key, "key", text.data, &err) == 0)
        check_key(key.data);
    else
        require(strcmp(err.field, "key") == 0 && err.text[0]);
    check_tree(text.data, text.len, true);
    check_tree(text.data, text.len, false);
    json = json_load_text(text.data, text.len, JSON_DECODE_ANY, NULL);
    if (json && config_value_read(json, "value", &value, &err) == 0)
        require(value || json_is_null(json));
    json_decref(json);
    return 0;
}
