/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_spec.c - what a kernel is told: the table of its members, and JSON by it */
#include "model/kernel_spec.h"

#include <errno.h>
#include <jansson.h>

#include "base/json_load.h"
#include "model/spec_fields.h"

#define FIELD(member, kind)                                                      \
    {                                                                            \
#member, NULL, kind, offsetof(struct kernel_spec, member), NULL, 0, true \
    }

static const struct spec_field kernel_spec_fields[] = {
    FIELD(session_name, SPEC_TEXT),
    FIELD(session_type, SPEC_TEXT),
    FIELD(role, SPEC_TEXT),
    FIELD(index, SPEC_NUMBER),
    FIELD(rank, SPEC_NUMBER),
    FIELD(hostname, SPEC_TEXT),
    FIELD(cluster_size, SPEC_NUMBER),
    FIELD(replicas, SPEC_TEXT),
    FIELD(hosts, SPEC_TEXT),
    FIELD(access_key, SPEC_TEXT),
    FIELD(user_id, SPEC_TEXT),
    FIELD(user_email, SPEC_TEXT),
    FIELD(user_name, SPEC_TEXT),
    FIELD(group_id, SPEC_TEXT),
    FIELD(slots, SPEC_JSON),
    FIELD(devices, SPEC_JSON),
    FIELD(cwd, SPEC_TEXT),
    FIELD(ssh_seed, SPEC_TEXT),
    FIELD(ssh_public_key, SPEC_TEXT),
    FIELD(dotfiles, SPEC_JSON),
    FIELD(resource_group, SPEC_TEXT),
    { .key = NULL },
};

/* What is no JSON would poison the whole connection. */
static int kernel_spec_check_json(const char *text, const char *key, struct aq_error *err)
{
    json_auto_t *parsed = text ? json_load_string(text, JSON_REJECT_DUPLICATES) : NULL;

    if (parsed || !text)
        return 0;
    return aq_fail_field(err, EINVAL, key, "'%s' does not hold JSON", key);
}

int kernel_spec_write(const struct kernel_spec *spec, struct jsonw *w, struct aq_error *err)
{
    int r = kernel_spec_check_json(spec->slots, "slots", err);

    if (r == 0)
        r = kernel_spec_check_json(spec->devices, "devices", err);
    if (r == 0)
        r = kernel_spec_check_json(spec->dotfiles, "dotfiles", err);
    if (r < 0)
        return r;
    spec_fields_write(kernel_spec_fields, spec, SESSION_SPEC_ALL, w);
    session_spec_write(&spec->session, SESSION_SPEC_OF_AGENT, w);
    return 0;
}

int kernel_spec_read(const json_t *object, struct arena *arena, struct kernel_spec *ret,
                     struct aq_error *err)
{
    int r = spec_fields_read(kernel_spec_fields, object, SESSION_SPEC_ALL, arena, ret, err);

    if (r == 0 && !ret->slots)
        r = aq_fail_field(err, EINVAL, "slots", "'slots' is missing");
    return r < 0 ? r : session_spec_read(object, SESSION_SPEC_OF_AGENT, arena, &ret->session, err);
}
