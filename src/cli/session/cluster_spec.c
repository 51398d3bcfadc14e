/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a new session, as options say them. */
#include "cli/session/cluster_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/amounts.h"
#include "model/cluster_role.h"
#include "model/session.h"

struct size_range {
    int64_t min, max;
};

/* ---- --cluster ---- */

/* Parses a number and moves '*at' behind it. */
static bool cluster_take_count(const char **at, int64_t *ret)
{
    char *end;

    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    *ret = strtoll(*at, &end, 10);
    *at = end;
    return errno == 0;
}

static int cluster_parse_range(const char *text, struct size_range *ret, struct aq_error *err)
{
    const char *at = text;
    bool is_read = cluster_take_count(&at, &ret->min);

    ret->max = ret->min;
    if (is_read && *at == '-') {
        at++;
        is_read = cluster_take_count(&at, &ret->max);
    }
    if (!is_read || *at)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--cluster takes a number of kernels, N or MIN-MAX such as 2-8, not "
                            "'%.60s'",
                            text);
    if (ret->min < 1 || ret->max < 1 || AQ_MAX(ret->min, ret->max) > CLUSTER_SIZE_MAX)
        return aq_fail_as(err, EINVAL, CLI_KIND_USAGE, "--cluster",
                          "--cluster: a session has 1 to %d kernels, not %.60s", CLUSTER_SIZE_MAX,
                          text);
    if (ret->min > ret->max)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--cluster %.60s: the minimum comes first: --cluster %" PRId64
                            "-%" PRId64,
                            text, ret->max, ret->min);
    return 0;
}

static int cluster_read_size(const struct spec_opts *spec, struct size_range *ret,
                             struct aq_error *err)
{
    int64_t size = spec->cluster_size.value;

    *ret = (struct size_range){ 0, 0 };
    if (spec->cluster && spec->cluster_size.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--cluster and --cluster-size exclude each other");
    if (spec->cluster)
        return cluster_parse_range(spec->cluster, ret, err);
    if (!spec->cluster_size.is_set)
        return 0;
    if (size < 1 || size > CLUSTER_SIZE_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--cluster-size: a session has 1 to %d kernels, not %" PRId64,
                            CLUSTER_SIZE_MAX, size);
    *ret = (struct size_range){ size, size };
    return 0;
}

/* ---- --role ---- */

/* The text of one --role, parsed. */
struct cluster_role_text {
    const char *name;
    int64_t count;
    const char *image, *command; /* NULL = not given */
    json_t *resources, *environ;
};

static int cluster_role_fail(const char *text, struct aq_error *err)
{
    return aq_fail_kind(
        err, EINVAL, CLI_KIND_USAGE,
        "--role takes NAME=COUNT, then image=IMAGE, SLOT=AMOUNT, env.NAME=VALUE and "
        "last command=TEXT, such as worker=4,mem=8g; not '%.60s'",
        text);
}

/* "image=IMAGE", "env.NAME=VALUE" or "SLOT=AMOUNT". */
static int cluster_role_add(struct cluster_role_text *role, const char *part, struct aq_error *err)
{
    const char *value = strchr(part, '='), *variable = part + 4;
    const struct cli_list variables = { .items = &variable, .count = 1 };
    int r;

    if (!value || value == part || !value[1])
        return cluster_role_fail(part, err);
    if (strncmp(part, "image=", 6) == 0) {
        role->image = value + 1;
        return 0;
    }
    r = strncmp(part, "env.", 4) == 0 ? spec_add_environ(&variables, role->environ, err)
                                      : cli_amounts_add(part, NULL, role->resources, err);
    return r < 0 ? aq_error_wrap(err, "--role %s", role->name) : 0;
}

/* 'text' is changed, and the role's texts are parts of it. */
static int cluster_role_read(char *text, struct cluster_role_text *role, struct aq_error *err)
{
    char *part = strsep(&text, ",");
    char *equals = strchr(part, '=');
    const char *at = equals ? equals + 1 : "";
    int r = 0;

    if (!cluster_take_count(&at, &role->count) || *at)
        return cluster_role_fail(part, err);
    *equals = '\0';
    role->name = part;
    if (strcmp(part, "main") == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--role main: main1 is the kernel that the session itself describes; "
                            "name the role otherwise");
    if (!cluster_role_is_name(part))
        return aq_fail_kind(
            err, EINVAL, CLI_KIND_USAGE,
            "--role %.60s: a name is up to 15 small letters, digits and '-', with a "
            "letter first and last",
            part);
    if (role->count < 1 || role->count >= CLUSTER_SIZE_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--role %s: a role has 1 to %d kernels, not %" PRId64, part,
                            CLUSTER_SIZE_MAX - 1, role->count);
    while (r == 0 && text) {
        if (strncmp(text, "command=", 8) == 0) {
            role->command = text + 8;
            break;
        }
        r = cluster_role_add(role, strsep(&text, ","), err);
    }
    return r;
}

/* A copy of the session's object, in which the role's own members replace those of the session. */
static json_t *cluster_role_merge(const json_t *config, const char *key, json_t *own)
{
    json_t *all = json_copy(json_object_get(config, key));

    if (!all)
        all = json_object();
    (void)json_object_update(all, own);
    return all;
}

static int cluster_role_write(const struct cluster_role_text *role, const json_t *body,
                              json_t *list, struct aq_error *err)
{
    const json_t *config = json_object_get(body, "config");
    const char *command = json_string_value(json_object_get(body, "startupCommand"));
    const char *image = json_string_value(json_object_get(body, "image"));
    json_t *object = json_object(), *other;
    size_t i;

    json_array_foreach(list, i, other)
        if (strcmp(json_string_value(json_object_get(other, "role")), role->name) == 0) {
            json_decref(object);
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "--role %s is given twice; give it once, with the count of both",
                                role->name);
        }
    image = role->image ? role->image : image;
    command = role->command ? role->command : command;
    (void)json_array_append_new(list, object);
    if (!image)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--role %s needs image=IMAGE, as the session names no image",
                            role->name);
    (void)json_object_set_new(object, "role", json_string(role->name));
    (void)json_object_set_new(object, "count", json_integer(role->count));
    (void)json_object_set_new(object, "resources",
                              cluster_role_merge(config, "resources", role->resources));
    (void)json_object_set_new(object, "environ",
                              cluster_role_merge(config, "environ", role->environ));
    if (json_object_set_new(object, "image", json_string(image)) < 0
        || (command && json_object_set_new(object, "startupCommand", json_string(command)) < 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--role %s is not UTF-8", role->name);
    return 0;
}

static int cluster_add_role(const char *given, const json_t *body, json_t *list, int64_t *kernels,
                            struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = aq_strdup(given);
    json_auto_t *resources = json_object(), *environ = json_object();
    struct cluster_role_text role = { .resources = resources, .environ = environ };
    int r = cluster_role_read(text, &role, err);

    *kernels += role.count;
    return r < 0 ? r : cluster_role_write(&role, body, list, err);
}

static int cluster_add_roles(const struct spec_opts *spec, const struct size_range *range,
                             json_t *body, struct aq_error *err)
{
    json_t *list = json_array();
    int64_t kernels = 1;
    int r = 0;

    for (size_t i = 0; r == 0 && i < spec->roles.count; i++)
        r = cluster_add_role(spec->roles.items[i], body, list, &kernels, err);
    (void)json_object_set_new(body, "roles", list);
    if (r == 0 && range->min < range->max)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--cluster %s and --role exclude each other: a session with roles has "
                            "a fixed number of kernels",
                            spec->cluster);
    if (r == 0 && range->max && range->max != kernels)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--role: the roles and main1 are %" PRId64 " kernels, and --cluster%s "
                            "says %" PRId64 "; leave that out",
                            kernels, spec->cluster ? "" : "-size", range->max);
    if (r == 0 && kernels > CLUSTER_SIZE_MAX)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--role: the roles and main1 are %" PRId64 " kernels; a session has 1 "
                            "to %d",
                            kernels, CLUSTER_SIZE_MAX);
    return r;
}

/* ---- all of it ---- */

int64_t cluster_spec_count(const struct spec_opts *spec)
{
    struct size_range range;
    int64_t kernels = 1;

    for (size_t i = 0; i < spec->roles.count; i++) {
        const char *at = spec->roles.items[i] + strcspn(spec->roles.items[i], "=");
        int64_t count;

        if (*at++ && cluster_take_count(&at, &count))
            kernels += count;
    }
    return cluster_read_size(spec, &range, NULL) < 0 ? kernels : AQ_MAX(range.max, kernels);
}

int cluster_spec_to_json(const struct spec_opts *spec, json_t *body, struct aq_error *err)
{
    /* --cluster-size is the older option, whose kernels are on one node */
    bool is_multi_node = spec->cluster_mode ? spec->cluster_mode == 2
                                            : spec->cluster || spec->roles.count;
    struct size_range range;
    int r = cluster_read_size(spec, &range, err);

    if (r < 0)
        return r;
    if (range.max)
        (void)json_object_set_new(body, "clusterSize", json_integer(range.max));
    if (range.min < range.max)
        (void)json_object_set_new(body, "cluster_size_min", json_integer(range.min));
    if (spec->cluster_mode || is_multi_node)
        (void)json_object_set_new(body, "clusterMode",
                                  json_string(cluster_mode_name(is_multi_node)));
    return spec->roles.count ? cluster_add_roles(spec, &range, body, err) : 0;
}
