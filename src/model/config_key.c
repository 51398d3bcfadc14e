/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of the configuration tree, and the tree as JSON. */
#include "model/config_key.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/utf8.h"

/* ---- keys ---- */

static int config_key_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The name that 'text' stands for. A '%' without two digits is itself. */
static void config_name_read(struct strbuf *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && len - i > 2 ? config_key_hex(text[i + 1]) : -1;
        int low = high >= 0 ? config_key_hex(text[i + 2]) : -1;

        strbuf_addc(out, low >= 0 ? (char)(high << 4 | low) : text[i]);
        i += low >= 0 ? 2 : 0;
    }
}

void config_name_write(struct strbuf *out, const char *name)
{
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;

        if (c < 0x80 && (isalnum(c) || strchr("-._~", c)))
            strbuf_addc(out, *name);
        else
            strbuf_addf(out, "%%%02X", c);
    }
}

static int config_key_add_name(struct strbuf *out, const char *field, const char *text, size_t len,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

    if (!len)
        return aq_fail_field(err, EINVAL, field, "has an empty name between two '/'");
    config_name_read(&name, text, len);
    if (memchr(name.data, '\0', name.len) || !utf8_is_valid(name.data, name.len))
        return aq_fail_field(err, EINVAL, field, "a name in it is not UTF-8");
    if (out->len)
        strbuf_addc(out, '/');
    config_name_write(out, name.data);
    if (out->len > CONFIG_KEY_MAX)
        return aq_fail_field(err, EINVAL, field, "is longer than %d bytes", CONFIG_KEY_MAX);
    return 0;
}

int config_key_add(struct strbuf *out, const char *field, const char *text, struct aq_error *err)
{
    size_t names = 0;
    int r = 0;

    for (const char *c = out->data; *c; c++)
        names += *c == '/' || c == out->data;
    text += *text == '/';
    while (r == 0 && *text) {
        size_t len = strcspn(text, "/");

        if (++names > CONFIG_NAMES_MAX)
            return aq_fail_field(err, EINVAL, field, "has more than %d names", CONFIG_NAMES_MAX);
        r = config_key_add_name(out, field, text, len, err);
        text += len;
        text += *text == '/';
    }
    return r;
}

bool config_key_is_within(const char *key, const char *above)
{
    size_t len = strlen(above);

    return strncmp(key, above, len) == 0 && (!len || key[len] == '/' || !key[len]);
}

/* ---- the tree ---- */

/* The object at the member 'name', made if it is missing, or of the value that is there. */
static json_t *config_tree_open(json_t *parent, const char *name)
{
    json_t *there = json_object_get(parent, name), *object;

    if (json_is_object(there))
        return there;
    object = json_object();
    if (there)
        json_object_set(object, "", there);
    json_object_set_new(parent, name, object);
    return object;
}

void config_tree_add(json_t *tree, const char *key, const char *value)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;

    for (;;) {
        size_t len = strcspn(key, "/");

        strbuf_clear(&name);
        config_name_read(&name, key, len);
        if (!key[len])
            break;
        tree = config_tree_open(tree, name.data);
        key += len + 1;
    }
    if (name.len && json_is_object(json_object_get(tree, name.data))) {
        tree = json_object_get(tree, name.data);
        strbuf_clear(&name);
    }
    json_object_set_new(tree, name.data, json_string(value));
}

int config_value_read(const json_t *value, const char *field, char **ret, struct aq_error *err)
{
    char *text;

    if (json_is_null(value)) {
        *ret = NULL;
        return 0;
    }
    if (json_is_array(value) || json_is_object(value))
        return aq_fail_field(err, EINVAL, field, "'%.100s' must be text, not a list", field);
    text = json_is_string(value) ? aq_strdup(json_string_value(value))
                                 : json_dump_text(value, JSON_ENCODE_ANY);
    if (strlen(text) > CONFIG_VALUE_MAX) {
        free(text);
        return aq_fail_field(err, EINVAL, field, "the value of '%.100s' is longer than %d bytes",
                             field, CONFIG_VALUE_MAX);
    }
    *ret = text;
    return 0;
}

struct config_walk {
    bool names_are_keys;
    config_leaf_fn *leaf;
    void *data;
    struct strbuf key; /* of where it is */
};

static int config_tree_walk_object(struct config_walk *w, const json_t *object, int depth,
                                   struct aq_error *err);

static int config_tree_walk_member(struct config_walk *w, const char *name, const json_t *value,
                                   int depth, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf escaped = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    int r;

    if (!w->names_are_keys) {
        config_name_write(&escaped, name);
        name = escaped.data;
    }
    r = config_key_add(&w->key, "key", name, err);
    if (r < 0)
        return aq_error_wrap(err, "below '%.100s'", w->key.data);
    if (json_is_object(value))
        return config_tree_walk_object(w, value, depth + 1, err);
    r = config_value_read(value, w->key.data, &text, err);
    return r == 0 && text ? w->leaf(w->data, w->key.data, text, err) : r;
}

static int config_tree_walk_object(struct config_walk *w, const json_t *object, int depth,
                                   struct aq_error *err)
{
    size_t len = w->key.len;
    const char *name;
    json_t *value;
    int r = 0;

    if (depth > 2 * CONFIG_NAMES_MAX) /* members "" have no name */
        return aq_fail_field(err, EINVAL, "key", "objects are nested too deep below '%.100s'",
                             w->key.data);
    json_object_foreach((json_t *)(uintptr_t)object, name, value) {
        if ((r = config_tree_walk_member(w, name, value, depth, err)) < 0)
            break;
        strbuf_truncate(&w->key, len);
    }
    return r;
}

int config_tree_walk(const json_t *tree, const char *above, bool names_are_keys,
                     config_leaf_fn *leaf, void *data, struct aq_error *err)
{
    struct config_walk w = { names_are_keys, leaf, data, STRBUF_INIT };
    int r;

    strbuf_adds(&w.key, above);
    r = config_tree_walk_object(&w, tree, 0, err);
    strbuf_done(&w.key);
    return r;
}
