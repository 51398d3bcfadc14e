/* SPDX-License-Identifier: Apache-2.0 */
/* session_spec.c - what a session asks for: the table of its members; bounds, JSON and copies by it
 */
#include "model/session_spec.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "model/end_signal.h"
#include "model/rerun.h"
#include "model/service_port.h"
#include "model/session.h"
#include "model/slot.h"
#include "model/wire_copy.h"

#define VARIABLES_BYTES_MAX (64u << 10)

#define AT(member) offsetof(struct session_spec, member)
#define OPTS "resource_opts"
#define SCHEDULING "scheduling"
#define RETRY "retry"

static const struct wire_field spec_fields[] = {
    { "image", WIRE_TEXT, AT(image), WIRE_FOR_AGENT, NULL, "image", 512 },
    { "architecture", WIRE_TEXT, AT(architecture), 0, NULL, "architecture", 32 },
    { "command", WIRE_TEXT, AT(command), WIRE_FOR_AGENT, NULL, "startupCommand",
      SESSION_COMMAND_MAX },
    { "input", WIRE_TEXT, AT(input), WIRE_FOR_AGENT, NULL, "input", 16 },
    { "bootstrap", WIRE_TEXT, AT(bootstrap), WIRE_FOR_AGENT, NULL, "bootstrap_script",
      SESSION_BOOTSTRAP_MAX },
    { "tag", WIRE_TEXT, AT(tag), 0, NULL, "tag", 1024 },
    { "callback_url", WIRE_TEXT, AT(callback_url), 0, NULL, "callback_url", 1024 },
    { "environ", WIRE_PAIRS, AT(environ), WIRE_FOR_AGENT, NULL, "environ", SESSION_VARIABLES_MAX },
    { "shmem", WIRE_AMOUNT, AT(shmem), WIRE_FOR_AGENT, OPTS, "config.resource_opts.shmem", 64 },
    { RESOURCE_OPTS_SPLITTING, WIRE_CHOICE, AT(splitting), WIRE_FOR_AGENT, OPTS },
    { "preopen_ports", WIRE_NUMBERS, AT(ports), WIRE_FOR_AGENT, NULL, "preopen_ports", 1000 },
    { "mounts", WIRE_MOUNTS, AT(mounts), WIRE_FOR_AGENT, NULL, "mounts", FOLDER_MOUNTS_MAX },
    { "cluster_size_min", WIRE_NUMBER, AT(cluster_size_min), WIRE_FOR_AGENT, NULL,
      "clusterSizeMin" },
    { "batch_timeout_usec", WIRE_NUMBER, AT(batch_timeout_usec), WIRE_FOR_AGENT, NULL,
      "batch_timeout" },
    { "agents", WIRE_TEXTS, AT(agents), 0, SCHEDULING, "agent_list", 1000 },
    { "agents_preferred", WIRE_FLAG, AT(agents_preferred), 0, SCHEDULING },
    { "group", WIRE_TEXT, AT(session_group), 0, SCHEDULING, "session_group.name", 64 },
    { "packs", WIRE_FLAG, AT(packs), 0, SCHEDULING },
    { "group_strict", WIRE_FLAG, AT(group_is_strict), 0, SCHEDULING },
    { "job_priority", WIRE_NUMBER, AT(job_priority), 0, SCHEDULING, "job_priority" },
    { "preemptible", WIRE_FLAG, AT(is_preemptible), 0, SCHEDULING },
    { "movable", WIRE_FLAG, AT(is_movable), 0, SCHEDULING },
    { "reservation", WIRE_TEXT, AT(reservation), 0, SCHEDULING, "reservation", SESSION_NAME_MAX },
    { "wait_for_capacity", WIRE_FLAG, AT(waits_for_capacity), 0, SCHEDULING },
    { "limit", WIRE_NUMBER, AT(retry), 0, RETRY, "retry" },
    { "on", WIRE_TEXT, AT(retry_on), 0, RETRY, "retry_on", RERUN_ON_MAX },
    { "delay_usec", WIRE_NUMBER, AT(retry_delay_usec), 0, RETRY, "retry_delay" },
    { "factor", WIRE_NUMBER, AT(retry_factor), 0, RETRY, "retry_factor" },
    { "signal", WIRE_TEXT, AT(signal), WIRE_FOR_AGENT, NULL, "signal", 32 },
    { "checkpoint_signal", WIRE_TEXT, AT(checkpoint_signal), WIRE_FOR_AGENT, NULL,
      "checkpoint_signal", 16 },
    { "grace_usec", WIRE_NUMBER, AT(grace_usec), WIRE_FOR_AGENT, NULL, "grace" },
    { "resume_command", WIRE_TEXT, AT(resume_command), 0, NULL, "resume_command",
      SESSION_COMMAND_MAX },
    { "retry_of", WIRE_TEXT, AT(retry_of), 0, NULL, "retry_of", UUID_TEXT_MAX },
    { "roles", WIRE_JSON, AT(roles), 0, NULL, "roles", SESSION_ROLES_MAX },
    { "on_failure", WIRE_TEXT, AT(on_failure), 0, NULL, "on_failure", 16 },
    { "on_node_loss", WIRE_TEXT, AT(on_node_loss), 0, NULL, "on_node_loss", 16 },
    { "network_mode", WIRE_TEXT, AT(network_mode), WIRE_FOR_AGENT, NULL, "network", 16 },
    { "rdma", WIRE_FLAG, AT(needs_rdma), WIRE_FOR_AGENT, NULL, "rdma" },
    WIRE_FIELDS_END,
};

const struct wire_shape session_spec_shape = { .fields = spec_fields };

_Static_assert(sizeof(enum splitting) == sizeof(int), "WIRE_CHOICE is read as an int");

/* ---- bounds ---- */

static int spec_check_text(const struct wire_field *field, const char *text, struct aq_error *err)
{
    size_t len = strlen(text);

    if (len > field->max)
        return aq_fail_field(err, EINVAL, field->name, "%s is longer than %zu bytes", field->name,
                             field->max);
    if (!utf8_is_valid(text, len))
        return aq_fail_field(err, EINVAL, field->name, "%s is not UTF-8", field->name);
    return 0;
}

static int spec_check_count(const struct wire_field *field, size_t count, struct aq_error *err)
{
    return count <= field->max
               ? 0
               : aq_fail_field(err, EINVAL, field->name, "%s has more than %zu elements",
                               field->name, field->max);
}

static int spec_check_variables(const struct pair_list *variables, struct aq_error *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < variables->count; i++) {
        const char *name = variables->items[i].key, *value = variables->items[i].value;

        if (!name[0] || strchr(name, '='))
            return aq_fail_field(err, EINVAL, "environ", "'%s' is not a variable's name", name);
        if (!utf8_is_valid(name, strlen(name)) || !utf8_is_valid(value, strlen(value)))
            return aq_fail_field(err, EINVAL, "environ", "variable '%s' is not UTF-8", name);
        bytes += strlen(name) + strlen(value) + 2;
    }
    return bytes <= VARIABLES_BYTES_MAX
               ? 0
               : aq_fail_field(err, EINVAL, "environ", "environ is longer than %u bytes",
                               VARIABLES_BYTES_MAX);
}

static int spec_check_field(const struct session_spec *spec, const struct wire_field *field,
                            struct aq_error *err)
{
    union wire_place at = wire_place(spec, field);
    int r = 0;

    switch (field->kind) {
    case WIRE_TEXT:
    case WIRE_AMOUNT:
    case WIRE_JSON:
        return *at.text ? spec_check_text(field, *at.text, err) : 0;
    case WIRE_TEXTS:
        return spec_check_count(field, at.texts->count, err);
    case WIRE_NUMBERS:
        return services_add_preopen(&(struct services){ .count = 0 }, at.numbers, err);
    case WIRE_PAIRS:
        r = spec_check_count(field, at.pairs->count, err);
        return r < 0 ? r : spec_check_variables(at.pairs, err);
    case WIRE_MOUNTS:
        return folder_mounts_check(at.mounts, err);
    case WIRE_NUMBER:
        return *at.number >= 0
                   ? 0
                   : aq_fail_field(err, EINVAL, field->name, "%s cannot be negative", field->name);
    default:
        break;
    }
    return 0;
}

static int spec_check_image(const char *image, struct aq_error *err)
{
    if (!image || !image[0])
        return aq_fail_field(err, EINVAL, "image", "an image is required");
    for (const char *c = image; *c; c++)
        if (*c <= ' ' || *c > '~')
            return aq_fail_field(err, EINVAL, "image",
                                 "an image's name has only printable ASCII characters and no "
                                 "spaces");
    return 0;
}

static int spec_check_input(const char *input, struct aq_error *err)
{
    if (!input || strcmp(input, KERNEL_INPUT_STREAM) == 0
        || strcmp(input, KERNEL_INPUT_TERMINAL) == 0)
        return 0;
    return aq_fail_field(err, EINVAL, "input",
                         "must be " KERNEL_INPUT_STREAM " or " KERNEL_INPUT_TERMINAL ", not '%s'",
                         input);
}

static int spec_check_on_failure(const char *word, struct aq_error *err)
{
    if (!word || strcmp(word, SESSION_ON_FAILURE_END) == 0
        || strcmp(word, SESSION_ON_FAILURE_CONTINUE) == 0)
        return 0;
    return aq_fail_field(
        err, EINVAL, "on_failure",
        "must be " SESSION_ON_FAILURE_END " or " SESSION_ON_FAILURE_CONTINUE ", not '%s'", word);
}

static int spec_check_on_node_loss(const char *word, struct aq_error *err)
{
    if (!word || strcmp(word, SESSION_ON_NODE_LOSS_END) == 0
        || strcmp(word, SESSION_ON_NODE_LOSS_RESTART_KERNEL) == 0
        || strcmp(word, SESSION_ON_NODE_LOSS_RESTART_ALL) == 0)
        return 0;
    return aq_fail_field(err, EINVAL, "on_node_loss",
                         "must be " SESSION_ON_NODE_LOSS_END
                         ", " SESSION_ON_NODE_LOSS_RESTART_KERNEL
                         " or " SESSION_ON_NODE_LOSS_RESTART_ALL ", not '%s'",
                         word);
}

bool session_spec_uses_host_network(const struct session_spec *spec)
{
    return spec->network_mode && strcmp(spec->network_mode, SESSION_NETWORK_HOST) == 0;
}

/* Ports and addresses of the nodes are fixed when the session starts, on all of them at once. */
static int spec_check_network(const struct session_spec *spec, struct aq_error *err)
{
    if (spec->needs_rdma && spec->image && strcmp(spec->image, IMAGE_OF_PROCESSES) == 0)
        return aq_fail_field(err, EINVAL, "rdma",
                             "sessions of the image 'process' can use the devices of the node in "
                             "any case; omit rdma, or name another image");
    if (!spec->network_mode || strcmp(spec->network_mode, SESSION_NETWORK_PRIVATE) == 0)
        return 0;
    if (!session_spec_uses_host_network(spec))
        return aq_fail_field(err, EINVAL, "network",
                             "must be " SESSION_NETWORK_PRIVATE " or " SESSION_NETWORK_HOST
                             ", not '%s'",
                             spec->network_mode);
    if (spec->image && strcmp(spec->image, IMAGE_OF_PROCESSES) == 0)
        return aq_fail_field(err, EINVAL, "network",
                             "processes of the node use its network anyway; leave the network out, "
                             "or name another image");
    if (spec->cluster_size_min)
        return aq_fail_field(err, EINVAL, "network",
                             "a session with the host network starts with all kernels; give "
                             "clusterSize without a minimum");
    if (spec->on_node_loss && strcmp(spec->on_node_loss, SESSION_ON_NODE_LOSS_RESTART_KERNEL) == 0)
        return aq_fail_field(err, EINVAL, "on_node_loss",
                             "a kernel with the host network is not restarted elsewhere alone; "
                             "choose " SESSION_ON_NODE_LOSS_RESTART_ALL
                             " or " SESSION_ON_NODE_LOSS_END);
    return 0;
}

int session_spec_check(const struct session_spec *spec, struct aq_error *err)
{
    int64_t shmem;
    int r = spec_check_image(spec->image, err);

    for (const struct wire_field *field = spec_fields; r == 0 && field->kind != WIRE_END; field++)
        r = spec_check_field(spec, field, err);
    if (r == 0)
        r = spec_check_input(spec->input, err);
    if (r == 0)
        r = spec_check_on_failure(spec->on_failure, err);
    if (r == 0)
        r = spec_check_on_node_loss(spec->on_node_loss, err);
    if (r == 0)
        r = spec_check_network(spec, err);
    if (r == 0)
        r = rerun_check(spec, err);
    if (r == 0)
        r = end_signal_check(spec, err);
    return r < 0 ? r : session_spec_shmem(spec, &shmem, err);
}

/* ---- copies ---- */

size_t session_spec_size(const struct session_spec *spec)
{
    return wire_copy_size(spec_fields, spec, sizeof(*spec));
}

struct session_spec *session_spec_copy(const struct session_spec *spec)
{
    return wire_copy(spec_fields, spec, sizeof(*spec));
}

bool session_spec_is_long(const struct session_spec *spec)
{
    return session_spec_size(spec) > SESSION_SPEC_KEPT_MAX;
}

struct session_spec *session_spec_copy_short(const struct session_spec *spec)
{
    struct session_spec rest = *spec;

    rest.command = rest.bootstrap = rest.roles = rest.resume_command = NULL;
    rest.environ = (struct pair_list){ .count = 0 };
    return session_spec_copy(&rest);
}

/* ---- JSON ---- */

static unsigned spec_flags(enum session_spec_part part)
{
    return part == SESSION_SPEC_OF_AGENT ? WIRE_FOR_AGENT : 0;
}

void session_spec_write(const struct session_spec *spec, enum session_spec_part part,
                        struct jsonw *w)
{
    (void)wire_fields_write(spec_fields, spec, spec_flags(part), w, NULL); /* it was checked */
}

int session_spec_parse(const char *text, struct arena *arena, struct session_spec *ret,
                       struct aq_error *err)
{
    json_auto_t *object = NULL;

    *ret = (struct session_spec){ .image = NULL };
    if (!text)
        return 0;
    object = json_load_string(text, JSON_REJECT_DUPLICATES);
    if (!json_is_object(object))
        return aq_fail_field(err, EINVAL, "spec", "a session's spec is no JSON object");
    return wire_fields_read(spec_fields, object, spec_flags(SESSION_SPEC_ALL), arena, ret, err);
}

bool session_spec_equals(const struct session_spec *a, const struct session_spec *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text_a = STRBUF_INIT, text_b = STRBUF_INIT;
    struct jsonw w_a = jsonw_make(&text_a), w_b = jsonw_make(&text_b);

    session_spec_write(a, SESSION_SPEC_ALL, &w_a);
    session_spec_write(b, SESSION_SPEC_ALL, &w_b);
    return text_a.len == text_b.len && memcmp(text_a.data, text_b.data, text_a.len) == 0;
}

/* ---- resource_opts ---- */

int session_spec_shmem(const struct session_spec *spec, int64_t *ret, struct aq_error *err)
{
    int r;

    *ret = 0;
    if (!spec->shmem)
        return 0;
    r = slot_amount_parse(spec->shmem, strlen(spec->shmem), SLOT_BYTES, false, "shmem", ret, err);
    if (r < 0 && err)
        (void)snprintf(err->field, sizeof(err->field), "config.resource_opts.shmem");
    return r < 0 ? -EINVAL : 0;
}

void session_spec_write_resource_opts(const struct session_spec *spec, struct jsonw *w)
{
    int64_t shmem = 0;

    (void)session_spec_shmem(spec, &shmem, NULL); /* it was checked */
    jsonw_object_begin(w);
    if (spec->shmem)
        jsonw_member_int(w, "shmem", shmem);
    for (const struct wire_field *field = spec_fields; field->kind != WIRE_END; field++)
        if (field->group && strcmp(field->group, OPTS) == 0 && strcmp(field->key, "shmem") != 0)
            (void)wire_field_write(field, spec, w, NULL);
    jsonw_object_end(w);
}
