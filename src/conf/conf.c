#include "conf/conf.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/suggest.h"
#include "conf/toml.h"
#include "conf/value.h"

struct load {
    const struct conf_item *items;
    const char *file;
    void *target;
};

static bool has_section(const struct conf_item *items, const char *name)
{
    size_t len = strlen(name);

    for (; items->type != CONF_END; items++) {
        if (strncmp(items->section, name, len) == 0
            && (items->section[len] == '\0' || items->section[len] == '.'))
            return true;
    }
    return false;
}

static int refuse_unknown(const struct load *load, const struct toml_value *value,
                          const char *name, struct aq_error *err)
{
    struct suggest near = suggest_for(name, strlen(name));
    char known[160] = "", best[sizeof(known)] = "";

    for (const struct conf_item *item = load->items; item->type != CONF_END; item++) {
        conf_item_name(item, known, sizeof(known));
        suggest_offer(&near, value->kind == TOML_TABLE ? item->section : known);
        if (near.best == known) {
            memcpy(best, known, sizeof(best));
            near.best = best;
        }
    }
    return aq_fail_field(err, EINVAL, name, "%s:%u: unknown %s '%s'%s%s%s", load->file,
                         value->line, value->kind == TOML_TABLE ? "section" : "key", name,
                         near.best ? ", did you mean '" : "", near.best ? near.best : "",
                         near.best ? "'?" : "");
}

static const struct conf_item *find_item(const struct conf_item *items, const char *section,
                                         const char *key)
{
    for (; items->type != CONF_END; items++) {
        if (strcmp(items->section, section) == 0 && strcmp(items->key, key) == 0)
            return items;
    }
    return NULL;
}

/* The value as an environment variable would say it, or NULL if the TOML type
 * does not suit the item.
 */
static const char *value_text(const struct conf_item *item, const struct toml_value *value,
                              char buf[32])
{
    bool is_number = item->type == CONF_INT || item->type == CONF_SIZE
                     || item->type == CONF_DURATION;

    if (value->kind == TOML_STR && item->type != CONF_INT && item->type != CONF_BOOL)
        return value->str;
    if (value->kind == TOML_BOOL && item->type == CONF_BOOL)
        return value->boolean ? "true" : "false";
    if (value->kind == TOML_INT && is_number) {
        (void)snprintf(buf, 32, "%lld", (long long)value->integer);
        return buf;
    }
    return NULL;
}

static int on_value(void *data, const struct toml_value *value, struct aq_error *err)
{
    const struct load *load = data;
    const struct conf_item *item = find_item(load->items, value->section, value->key);
    char name[160], buf[32];
    const char *text;
    int r;

    (void)snprintf(name, sizeof(name), "%s%s%s", value->section, value->section[0] ? "." : "",
                   value->key);
    if (value->kind == TOML_TABLE && !item)
        return has_section(load->items, name) ? 0 : refuse_unknown(load, value, name, err);
    if (!item)
        return refuse_unknown(load, value, name, err);
    text = value_text(item, value, buf);
    if (!text)
        return aq_fail_field(err, EINVAL, name, "%s:%u: %s wants %s", load->file, value->line,
                             name, conf_type_hint(item->type));
    r = conf_set(item, text, load->target, err);
    if (r < 0)
        (void)aq_error_wrap(err, "%s:%u", load->file, value->line);
    return r;
}

static int load_file(struct load *load, const char *file, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, file, CONF_FILE_MAX, &text, err);

    if (r < 0)
        return r;
    load->file = file;
    return toml_read(file, text.data, text.len, on_value, load, err);
}

static int load_drop_ins(struct load *load, const char *file, struct aq_error *err)
{
    size_t len = strlen(file);
    AQ_CLEANUP(aq_freep) char *pattern = NULL;
    glob_t found = { .gl_pathc = 0 };
    int r = 0;

    if (len < 5 || strcmp(file + len - 5, ".toml") != 0)
        return 0;
    pattern = aq_format("%.*sconf.d/*.toml", (int)(len - 4), file);
    if (!pattern)
        return aq_fail(err, ENOMEM, "%s", file);
    if (glob(pattern, 0, NULL, &found) == GLOB_NOSPACE)
        r = aq_fail(err, ENOMEM, "%s", pattern);
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = load_file(load, found.gl_pathv[i], err);
    globfree(&found);
    return r;
}

static int load_environment(const struct conf_item *items, void *target, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && items->type != CONF_END; items++) {
        char name[128];
        const char *value;

        (void)snprintf(name, sizeof(name), "ALIQUOT_%s%s%s", items->section,
                       items->section[0] ? "_" : "", items->key);
        for (char *at = name; *at; at++)
            *at = *at == '-' || *at == '.' ? '_' : (char)toupper((unsigned char)*at);
        value = getenv(name);
        r = value ? conf_set(items, value, target, err) : 0;
        if (r < 0)
            (void)aq_error_wrap(err, "environment variable %s", name);
    }
    return r;
}

static int set_defaults(const struct conf_item *items, void *target, struct aq_error *err)
{
    int r = 0;

    for (; r == 0 && items->type != CONF_END; items++) {
        conf_clear(items, target);
        if (items->initial)
            r = conf_set(items, items->initial, target, err);
    }
    return r;
}

/* Text and addresses are set when they are not NULL; a number has no "unset". */
static int check_required(const struct conf_item *items, const void *target, struct aq_error *err)
{
    for (; items->type != CONF_END; items++) {
        const void *place = (const char *)target + items->offset;
        char name[80];

        /* the host of a conf_listen comes first, so one look serves all three types */
        if (!(items->flags & CONF_REQUIRED) || *(char *const *)place)
            continue;
        conf_item_name(items, name, sizeof(name));
        return aq_fail_field(err, EINVAL, name, "%s is not set: give it %s", name,
                             conf_type_hint(items->type));
    }
    return 0;
}

int conf_load(const struct conf_item *items, const char *file, bool may_be_missing, void *target,
              struct aq_error *err)
{
    struct load load = { .items = items, .target = target };
    int r = set_defaults(items, target, err);

    if (r == 0 && file && (!may_be_missing || access(file, F_OK) == 0))
        r = load_file(&load, file, err);
    if (r == 0 && file)
        r = load_drop_ins(&load, file, err);
    if (r == 0)
        r = load_environment(items, target, err);
    if (r == 0)
        r = check_required(items, target, err);
    if (r < 0)
        conf_done(items, target);
    return r;
}

int conf_load_text(const struct conf_item *items, const char *name, const char *text, size_t len,
                   void *target, struct aq_error *err)
{
    struct load load = { .items = items, .file = name, .target = target };
    int r = set_defaults(items, target, err);

    if (r == 0)
        r = toml_read(name, text, len, on_value, &load, err);
    if (r == 0)
        r = check_required(items, target, err);
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
    AQ_CLEANUP(aq_freep) char *file = folder ? aq_format("%s/%s.toml", folder, name) : NULL;

    if (!file)
        return NULL;
    return access(file, F_OK) == 0 ? AQ_TAKE(file) : aq_format("/etc/aliquot/%s.toml", name);
}
