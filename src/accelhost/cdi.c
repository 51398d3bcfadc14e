/* SPDX-License-Identifier: Apache-2.0 */
/* cdi.c - resolves device names of the Container Device Interface (CDI) */
#include "accelhost/cdi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"

#define ITEMS_MAX 4096 /* of a kind in an attachment */
#define HOOK_SECONDS_MAX 3600

/* ---- what a device needs ---- */

struct edits {
    struct accel_attachment *to;
    struct aq_error *err;
    int r;
};

static const char *cdi_text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static void cdi_reject(struct edits *in, const char *what, const char *name)
{
    if (in->r == 0)
        in->r = aq_fail(in->err, EINVAL, "%s '%.100s' cannot be", what, name ? name : "");
}

static char *cdi_copy(struct edits *in, const char *text)
{
    return text ? arena_strdup(&in->to->arena, text) : NULL;
}

static void cdi_append(struct edits *in, void *items, size_t *count, const void *item, size_t size)
{
    if (*count >= ITEMS_MAX && in->r == 0)
        in->r = aq_fail(in->err, EINVAL, "it needs too much");
    if (in->r == 0)
        arena_append(&in->to->arena, items, count, item, size);
}

static bool cdi_is_path(const char *path)
{
    size_t len = path ? strlen(path) : 0;

    return len > 1 && len < PATH_MAX && path[0] == '/' && !strstr(path, "/../")
           && strcmp(path + len - 3 * (len >= 3), "/..") != 0 && !strpbrk(path, "\n\r");
}

static void cdi_add_node(struct edits *in, const json_t *node)
{
    const char *path = cdi_text_of(node, "path"), *host = cdi_text_of(node, "hostPath");
    const char *rights = cdi_text_of(node, "permissions");

    host = host ? host : path;
    rights = rights ? rights : "rwm";
    if (!cdi_is_path(path) || !cdi_is_path(host) || strspn(rights, "rwm") != strlen(rights)) {
        cdi_reject(in, "device node", path);
        return;
    }
    cdi_append(in, &in->to->devices, &in->to->device_count,
               &(struct container_device){ .source = cdi_copy(in, host),
                                           .target = cdi_copy(in, path),
                                           .may_read = strchr(rights, 'r'),
                                           .may_write = strchr(rights, 'w'),
                                           .may_mknod = strchr(rights, 'm') },
               sizeof(struct container_device));
}

static bool cdi_is_read_only(const json_t *mount)
{
    const json_t *option;
    size_t i;

    json_array_foreach(json_object_get(mount, "options"), i, option)
        if (json_is_string(option) && strcmp(json_string_value(option), "ro") == 0)
            return true;
    return false;
}

static void cdi_add_mount(struct edits *in, const json_t *mount)
{
    const char *host = cdi_text_of(mount, "hostPath"),
               *target = cdi_text_of(mount, "containerPath");
    const char *type = cdi_text_of(mount, "type");

    if (!cdi_is_path(host) || !cdi_is_path(target)
        || (type && type[0] && strcmp(type, "bind") != 0 && strcmp(type, "none") != 0)) {
        cdi_reject(in, "mount", target);
        return;
    }
    cdi_append(in, &in->to->mounts, &in->to->mount_count,
               &(struct container_mount){ cdi_copy(in, host), cdi_copy(in, target),
                                          !cdi_is_read_only(mount) },
               sizeof(struct container_mount));
}

static void cdi_add_variable(struct edits *in, const char *text)
{
    size_t len = text ? strcspn(text, "=") : 0;
    char *name;

    if (len == 0 || text[len] != '=' || strpbrk(text, "\n\r")) {
        cdi_reject(in, "variable", text);
        return;
    }
    name = cdi_copy(in, text);
    if (!name)
        return;
    name[len] = '\0';
    cdi_append(in, &in->to->environ, &in->to->environ_count,
               &(struct text_pair){ name, name + len + 1 }, sizeof(struct text_pair));
}

/* A number, in YAML a text; -1 if it is none. */
static int64_t cdi_number_of(const json_t *value)
{
    const char *text = json_string_value(value);
    char *end = NULL;
    long number = text && text[0] >= '0' && text[0] <= '9' ? strtol(text, &end, 10)
                  : json_is_integer(value)                 ? (long)json_integer_value(value)
                                                           : -1;

    return end && *end ? -1 : number;
}

static void cdi_add_group(struct edits *in, const json_t *group)
{
    int64_t number = cdi_number_of(group);

    if (number <= 0 || number >= INT32_MAX) {
        cdi_reject(in, "additionalGids", json_string_value(group));
        return;
    }
    cdi_append(in, &in->to->groups, &in->to->group_count, &(gid_t){ (gid_t)number }, sizeof(gid_t));
}

/* A list of texts, NULL at its end; NULL if there is none. */
static const char *const *cdi_copy_list(struct edits *in, const json_t *list, const char *what)
{
    size_t count = json_array_size(list);
    const char **texts = count ? arena_array(&in->to->arena, count + 1, sizeof(*texts)) : NULL;

    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text)
            cdi_reject(in, what, "");
        texts[i] = text ? cdi_copy(in, text) : "";
    }
    return texts;
}

static void cdi_add_hook(struct edits *in, const json_t *hook)
{
    const char *kind = cdi_text_of(hook, "hookName"), *path = cdi_text_of(hook, "path");
    const json_t *timeout = json_object_get(hook, "timeout");
    int64_t seconds = timeout ? cdi_number_of(timeout) : 0;

    if (!kind || strcmp(kind, "createContainer") != 0) {
        cdi_reject(in, "a hook other than createContainer:", kind);
        return;
    }
    if (!cdi_is_path(path) || seconds < 0 || seconds > HOOK_SECONDS_MAX) {
        cdi_reject(in, "hook", path);
        return;
    }
    cdi_append(in, &in->to->hooks, &in->to->hook_count,
               &(struct container_hook){
                   .path = cdi_copy(in, path),
                   .args = cdi_copy_list(in, json_object_get(hook, "args"), "argument of a hook"),
                   .env = cdi_copy_list(in, json_object_get(hook, "env"), "variable of a hook"),
                   .timeout = seconds,
               },
               sizeof(struct container_hook));
}

static void cdi_add_edits(struct edits *in, const json_t *edits)
{
    const json_t *item;
    size_t i;

    json_array_foreach(json_object_get(edits, "deviceNodes"), i, item)
        if (in->r == 0)
            cdi_add_node(in, item);
    json_array_foreach(json_object_get(edits, "mounts"), i, item)
        if (in->r == 0)
            cdi_add_mount(in, item);
    json_array_foreach(json_object_get(edits, "env"), i, item)
        if (in->r == 0)
            cdi_add_variable(in, json_string_value(item));
    json_array_foreach(json_object_get(edits, "additionalGids"), i, item)
        if (in->r == 0)
            cdi_add_group(in, item);
    json_array_foreach(json_object_get(edits, "hooks"), i, item)
        if (in->r == 0)
            cdi_add_hook(in, item);
}

/* ---- names ---- */

static bool cdi_is_kind(const json_t *spec, const char *name, size_t len)
{
    const char *kind = cdi_text_of(spec, "kind");

    return kind && strlen(kind) == len && strncmp(kind, name, len) == 0;
}

static const json_t *cdi_find_device(const json_t *spec, const char *name)
{
    size_t len = strcspn(name, "="), i;
    const json_t *device;

    if (name[len] != '=' || !cdi_is_kind(spec, name, len))
        return NULL;
    json_array_foreach(json_object_get(spec, "devices"), i, device) {
        const char *found = cdi_text_of(device, "name");

        if (found && strcmp(found, name + len + 1) == 0)
            return device;
    }
    return NULL;
}

int cdi_apply(const json_t *spec, const char *name, bool with_common, struct accel_attachment *to,
              struct aq_error *err)
{
    struct edits in = { .to = to, .err = err };
    const json_t *device = cdi_find_device(spec, name);

    if (!device)
        return aq_fail_field(err, ENOENT, name, "there is no CDI device '%.100s'", name);
    if (with_common)
        cdi_add_edits(&in, json_object_get(spec, "containerEdits"));
    if (in.r == 0)
        cdi_add_edits(&in, json_object_get(device, "containerEdits"));
    return in.r;
}

/* ---- files ---- */

struct cdi_search {
    struct accel_attachment *to;
    struct aq_error *err;
    bool *is_found; /* of each name */
};

/* All names that the file has and no file of a later directory had. */
static int cdi_apply_file(struct cdi_search *s, const json_t *spec)
{
    bool with_common = true;
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->to->cdi_count; i++) {
        if (s->is_found[i] || !cdi_find_device(spec, s->to->cdi[i]))
            continue;
        r = cdi_apply(spec, s->to->cdi[i], with_common, s->to, s->err);
        with_common = false;
        s->is_found[i] = true;
    }
    return r;
}

static bool cdi_ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* One that is unreadable harms nobody who does not need it. */
static int cdi_look_into(struct cdi_search *s, const char *directory, const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", directory, name);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    bool is_yaml = cdi_ends_with(name, ".yaml") || cdi_ends_with(name, ".yml");
    struct aq_error why = { 0 };
    json_t *spec = NULL;
    int r = 0;

    if (!is_yaml && !cdi_ends_with(name, ".json"))
        return 0;
    if (fs_read(AT_FDCWD, path, CDI_FILE_MAX, &text, &why) == 0)
        spec = cdi_parse(text.data, text.len, is_yaml, &why);
    if (!spec) {
        log_warning("CDI: %s: %s", path, why.text);
        return 0;
    }
    r = cdi_apply_file(s, spec);
    json_decref(spec);
    return r < 0 ? (void)aq_error_wrap(s->err, "%s", path), r : 0;
}

static int cdi_look_through(struct cdi_search *s, const char *directory)
{
    struct dirent **names = NULL;
    int count = scandir(directory, &names, NULL, alphasort), r = 0;

    for (int i = 0; i < count; i++) {
        if (r == 0)
            r = cdi_look_into(s, directory, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    return r;
}

/* They run outside of what holds containers: somebody has to have said so. */
static int cdi_reject_hooks(const struct accel_attachment *attachment, struct aq_error *err)
{
    return aq_fail_field(
        err, EPERM, "accelerators.cdi-hooks",
        "the CDI device '%.100s' needs the hook '%.100s', a program that would run "
        "on the node while the container is made; accelerators.cdi-hooks = true "
        "allows such programs",
        attachment->cdi[0], attachment->hooks[0].path);
}

int cdi_resolve(const struct conf_list *directories, bool may_run_hooks,
                struct accel_attachment *attachment, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) bool *is_found = aq_alloc_array(attachment->cdi_count + 1,
                                                         sizeof(*is_found));
    struct cdi_search s = { .to = attachment, .err = err, .is_found = is_found };
    int r = 0;

    for (size_t i = directories->count; r == 0 && attachment->cdi_count && i-- > 0;)
        r = cdi_look_through(&s, directories->items[i]);
    for (size_t i = 0; r == 0 && i < attachment->cdi_count; i++)
        if (!is_found[i])
            r = aq_fail_field(err, ENOENT, attachment->cdi[i],
                              "no file in the folders of "
                              "accelerators.cdi-folders has the CDI device '%.100s'",
                              attachment->cdi[i]);
    if (r == 0 && attachment->hook_count && !may_run_hooks)
        r = cdi_reject_hooks(attachment, err);
    if (r < 0)
        err->kind = "accelerator-failed";
    return r;
}
