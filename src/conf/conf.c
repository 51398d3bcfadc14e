/* SPDX-License-Identifier: Apache-2.0 */
/* conf.c - a program's settings: a table of items over TOML files */
#include "conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "conf/tables.h"
#include "conf/toml.h"
#include "conf/value.h"

struct conf_load {
    const struct conf_item *items;
    const char *file;
    void *target;
};

static bool conf_has_section(const struct conf_item *items, const char *name)
{
    size_t len = strlen(name);

    for (; items->type != CONF_END; items++) {
        if (strncmp(items->section, name, len) == 0
            && (items->section[len] == '\0' || items->section[len] == '.'))
            return true;
    }
    return false;
}

static int conf_refuse_unknown(const struct conf_load *load, const struct conf_place *place,
                               const struct toml_value *value, const char *full,
                               struct aq_error *err)
{
    char name[160], known[160] = "", best[sizeof(known)] = "";
    struct suggest near;

    (void)snprintf(name, sizeof(name), "%s%s%s", place->section, place->section[0] ? "." : "",
                   value->key);
    near = suggest_for(name, strlen(name));
    for (const struct conf_item *item = place->items; item->type != CONF_END; item++) {
        conf_item_name(item, known, sizeof(known));
        suggest_offer(&near, value->kind == TOML_TABLE && item->section[0] ? item->section : known);
        if (near.best == known) {
            memcpy(best, known, sizeof(best));
            near.best = best;
        }
    }
    return aq_fail_field(err, EINVAL, full, "%s:%u: unknown %s '%s'%s%s%s", load->file, value->line,
                         value->kind == TOML_TABLE ? "section" : "key", full,
                         near.best ? ", did you mean '" : "", near.best ? near.best : "",
                         near.best ? "'?" : "");
}

/* By section and key; an element of an array is found as the array. */
static const struct conf_item *conf_find_item(const struct conf_item *items, const char *section,
                                              const char *key)
{
    size_t len = strcspn(key, "[");

    for (; items->type != CONF_END; items++) {
        if (strcmp(items->section, section) == 0 && strncmp(items->key, key, len) == 0
            && items->key[len] == '\0')
            return items;
    }
    return NULL;
}

/* The item whose table the section is: its members have names of their own. */
static const struct conf_item *conf_find_container(const struct conf_item *items,
                                                   const char *section)
{
    for (; items->type != CONF_END; items++) {
        const char *rest = conf_item_follow(items, section);
        bool is_open = items->type == CONF_PAIRS
                       || (items->type == CONF_TABLES && items->table->is_named);

        if (is_open && rest && *rest == '\0')
            return items;
    }
    return NULL;
}

/* A number or truth value as text; NULL if it is none. */
static const char *conf_scalar_text(const struct toml_value *value, char buf[40])
{
    size_t len;

    switch (value->kind) {
    case TOML_STR:
        return value->str;
    case TOML_BOOL:
        return value->boolean ? "true" : "false";
    case TOML_INT:
        (void)snprintf(buf, 40, "%lld", (long long)value->integer);
        return buf;
    case TOML_FLOAT:
        if (!(value->real > -1e15 && value->real < 1e15))
            return NULL;
        len = (size_t)snprintf(buf, 40, "%.9f", value->real);
        while (buf[len - 1] == '0' && buf[len - 2] != '.')
            buf[--len] = '\0';
        return buf;
    default:
        return NULL;
    }
}

/* The value as an environment variable would say it, or NULL if the TOML type
 * does not suit the item.
 */
static const char *conf_value_text(const struct conf_item *item, const struct toml_value *value,
                                   char buf[40])
{
    bool is_number = item->type == CONF_INT || item->type == CONF_SIZE
                     || item->type == CONF_DURATION || item->type == CONF_MICRO;

    if (item->type >= CONF_PAIRS
        || (value->kind == TOML_STR && (item->type == CONF_INT || item->type == CONF_BOOL))
        || (value->kind == TOML_BOOL && item->type != CONF_BOOL)
        || (value->kind == TOML_INT && !is_number)
        || (value->kind == TOML_FLOAT && item->type != CONF_MICRO))
        return NULL;
    return conf_scalar_text(value, buf);
}

static int conf_refuse_kind(const struct conf_load *load, const struct conf_item *item,
                            const struct toml_value *value, const char *name, struct aq_error *err)
{
    return aq_fail_field(err, EINVAL, name, "%s:%u: %s wants %s", load->file, value->line, name,
                         conf_type_hint(item->type));
}

/* A value that is the item, or an element of it. */
static int conf_take_item(const struct conf_load *load, const struct conf_place *place,
                          const struct conf_item *item, const struct toml_value *value,
                          const char *name, struct aq_error *err)
{
    void *member = (char *)place->target + item->offset;
    bool is_element = strchr(value->key, '[') != NULL;
    size_t outer = (size_t)(place->section - value->section); /* the path of the table, and a '.' */
    char buf[40];
    const char *text;
    int r;

    if (item->type == CONF_LIST && value->kind == TOML_ARRAY && !is_element)
        return conf_list_done(member), 0; /* replaces what an earlier source said */
    if (item->type == CONF_TABLES && item->table->is_named == (value->kind == TOML_TABLE)
        && !is_element && (value->kind == TOML_TABLE || value->kind == TOML_ARRAY))
        return 0;
    if (item->type == CONF_TABLES && is_element && value->kind == TOML_TABLE) {
        conf_tables_add(item->table, member, NULL);
        return 0;
    }
    if (item->type == CONF_PAIRS && value->kind == TOML_TABLE && !is_element)
        return 0;
    if (item->type == CONF_LIST && is_element && value->kind == TOML_STR) {
        conf_list_add(member, value->str, strlen(value->str));
        return 0;
    }
    text = is_element ? NULL : conf_value_text(item, value, buf);
    if (!text)
        return conf_refuse_kind(load, item, value, name, err);
    r = conf_set(item, text, place->target, err);
    if (r < 0)
        (void)aq_error_wrap(err, "%s:%u%s%.*s", load->file, value->line, outer ? ": " : "",
                            (int)(outer && value->section[outer - 1] == '.' ? outer - 1 : outer),
                            value->section);
    return r;
}

/* A member of a table whose members have names of their own. */
static int conf_take_member(const struct conf_load *load, const struct conf_place *place,
                            const struct conf_item *item, const struct toml_value *value,
                            const char *name, struct aq_error *err)
{
    void *member = (char *)place->target + item->offset;
    const char *text;
    char buf[40];

    if (item->type == CONF_TABLES) {
        if (value->kind != TOML_TABLE)
            return conf_refuse_kind(load, item, value, name, err);
        conf_tables_add(item->table, member, value->key);
    } else {
        text = conf_scalar_text(value, buf);
        if (!text)
            return conf_refuse_kind(load, item, value, name, err);
        conf_pairs_set(member, value->key, text);
    }
    return 0;
}

static int conf_on_value(void *data, const struct toml_value *value, struct aq_error *err)
{
    const struct conf_load *load = data;
    struct conf_place place = { .items = load->items,
                                .target = load->target,
                                .section = value->section };
    const struct conf_item *item, *container;
    char name[160], inner[160];

    (void)snprintf(name, sizeof(name), "%s%s%s", value->section, value->section[0] ? "." : "",
                   value->key);
    conf_place_find(&place);
    item = conf_find_item(place.items, place.section, value->key);
    if (item)
        return conf_take_item(load, &place, item, value, name, err);
    container = conf_find_container(place.items, place.section);
    if (container)
        return conf_take_member(load, &place, container, value, name, err);
    (void)snprintf(inner, sizeof(inner), "%s%s%s", place.section, place.section[0] ? "." : "",
                   value->key);
    if ((place.table && place.table->may_have_more)
        || (value->kind == TOML_TABLE && conf_has_section(place.items, inner)))
        return 0;
    return conf_refuse_unknown(load, &place, value, name, err);
}

static int conf_load_file(struct conf_load *load, const char *file, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, file, CONF_FILE_MAX, &text, err);

    if (r < 0)
        return r;
    load->file = file;
    return toml_read(file, text.data, text.len, conf_on_value, load, err);
}

static int conf_load_drop_ins(struct conf_load *load, const char *file, struct aq_error *err)
{
    size_t len = strlen(file);
    AQ_CLEANUP(aq_freep) char *pattern = NULL;
    glob_t found = { .gl_pathc = 0 };
    int r = 0;

    if (len < 5 || strcmp(file + len - 5, ".toml") != 0)
        return 0;
    pattern = aq_format("%.*sconf.d/*.toml", (int)(len - 4), file);
    if (glob(pattern, 0, NULL, &found) == GLOB_NOSPACE)
        memory_is_short();
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = conf_load_file(load, found.gl_pathv[i], err);
    globfree(&found);
    return r;
}

static int conf_load_environment(const struct conf_item *items, void *target, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && items->type != CONF_END; items++) {
        char name[128];
        const char *value;

        (void)snprintf(name, sizeof(name), "ALIQUOT_%s%s%s", items->section,
                       items->section[0] ? "_" : "", items->key);
        for (char *at = name; *at; at++)
            *at = *at == '-' || *at == '.' ? '_' : (char)toupper((unsigned char)*at);
        value = items->type < CONF_PAIRS ? getenv(name) : NULL;
        r = value ? conf_set(items, value, target, err) : 0;
        if (r < 0)
            (void)aq_error_wrap(err, "environment variable %s", name);
    }
    return r;
}

static int conf_set_defaults(const struct conf_item *items, void *target, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && items->type != CONF_END; items++) {
        conf_clear(items, target);
        if (items->initial)
            r = conf_set(items, items->initial, target, err);
    }
    return r;
}

/* Text, addresses and arrays begin with a pointer that is NULL unless they are
 * set; a number has no "unset".
 */
static int conf_check_required(const struct conf_item *items, const void *target,
                               const char *within, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && items->type != CONF_END; items++) {
        const void *place = (const char *)target + items->offset;
        const struct conf_tables *tables = place;
        char name[80], inner[160];

        conf_item_name(items, name, sizeof(name));
        if ((items->flags & CONF_REQUIRED) && !*(char *const *)place)
            return aq_fail_field(err, EINVAL, name, "%s%s is not set: give it %s", within, name,
                                 conf_type_hint(items->type));
        for (size_t i = 0; r == 0 && items->type == CONF_TABLES && i < tables->count; i++) {
            const char *each = (const char *)tables->items + i * items->table->size;

            if (items->table->is_named)
                (void)snprintf(inner, sizeof(inner), "%s%s.%.40s: ", within, name,
                               *(char *const *)(const void *)each);
            else
                (void)snprintf(inner, sizeof(inner), "%s%s[%zu]: ", within, name, i);
            r = conf_check_required(items->table->items, each, inner, err);
        }
    }
    return r;
}

int conf_load(const struct conf_item *items, const char *file, bool may_be_missing, void *target,
              struct aq_error *err)
{
    struct conf_load load = { .items = items, .target = target };
    int r = conf_set_defaults(items, target, err);

    if (r == 0 && file && (!may_be_missing || access(file, F_OK) == 0))
        r = conf_load_file(&load, file, err);
    if (r == 0 && file)
        r = conf_load_drop_ins(&load, file, err);
    if (r == 0)
        r = conf_load_environment(items, target, err);
    if (r == 0)
        r = conf_check_required(items, target, "", err);
    if (r < 0)
        conf_done(items, target);
    return r;
}

int conf_load_text(const struct conf_item *items, const char *name, const char *text, size_t len,
                   void *target, struct aq_error *err)
{
    struct conf_load load = { .items = items, .file = name, .target = target };
    int r = conf_set_defaults(items, target, err);

    if (r == 0)
        r = toml_read(name, text, len, conf_on_value, &load, err);
    if (r == 0)
        r = conf_check_required(items, target, "", err);
    if (r < 0)
        conf_done(items, target);
    return r;
}

void conf_done(const struct conf_item *items, void *target)
{
    for (; items->type != CONF_END; items++)
        conf_clear(items, target);
}

char *conf_default_file(const char *name)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_user_config_dir();
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/%s.toml", folder, name);

    return access(file, F_OK) == 0 ? AQ_TAKE(file) : aq_format("/etc/aliquot/%s.toml", name);
}
