/* SPDX-License-Identifier: Apache-2.0 */
/* What POST /session takes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/folder/folder.h"
#include "manager/image/image.h"
#include "manager/notification/notification.h"
#include "manager/rules/folder_mount.h"
#include "manager/session/session.h"
#include "manager/session/session_params.h"
#include "model/array_range.h"
#include "model/rerun.h"
#include "model/resource_opts.h"

#define AT(member) offsetof(struct session_params, member)

_Static_assert(sizeof(enum maybe) == sizeof(enum splitting)
                   && (int)MAYBE_UNSET == (int)SPLITTING_UNSAID
                   && (int)MAYBE_FALSE == (int)SPLITTING_FORBIDDEN
                   && (int)MAYBE_TRUE == (int)SPLITTING_ALLOWED,
               "a FIELD_MAYBE is read into a splitting");

static const struct field resource_opts_fields[] = {
    { "shmem", FIELD_SCALAR, FIELD_NULLABLE, AT(request.spec.shmem), 1, 64,
      .doc = "shared memory, of what is asked for as mem; a size such as \"64m\", or bytes" },
    { RESOURCE_OPTS_SPLITTING, FIELD_MAYBE, FIELD_NULLABLE, AT(request.spec.splitting),
      .doc = "whether an amount of devices may be split where it does not fit on one; default: as "
             "the resource group says, else false" },
    FIELD_END,
};

static const struct field config_fields[] = {
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, AT(resources),
      .doc = "slots, e.g. {\"cpu\": \"1\", \"mem\": \"1g\"}" },
    { "resource_opts|resourceOpts", FIELD_STRUCT, FIELD_NULLABLE, .sub = resource_opts_fields },
    { "environ", FIELD_PAIRS, FIELD_NULLABLE, AT(request.spec.environ), 0, SESSION_VARIABLES_MAX },
    { "scaling_group|scalingGroup", FIELD_STR, FIELD_NULLABLE, AT(request.resource_group), 1, 64,
      .doc = "resource group; default: the first one allowed" },
    { "agent_list|agentList", FIELD_STR_LIST, FIELD_NULLABLE, AT(request.spec.agents), 0, 1000,
      .doc = "ids of agents to choose from; superadmins only" },
    { "agent_selection_policy|agentSelectionPolicy", FIELD_WORD, FIELD_NULLABLE,
      AT(request.spec.agents_preferred), .words = "strict|preferred",
      .doc = "strict: only those agents; preferred: others if none of them has room" },
    { "mounts", FIELD_STR_LIST, FIELD_NULLABLE, AT(mounts.names), 0, FOLDER_MOUNTS_MAX,
      .doc = "names of folders, each perhaps with a directory in it: \"data/sub\"" },
    { "mount_map|mountMap", FIELD_PAIRS, FIELD_NULLABLE, AT(mounts.targets), 0, FOLDER_MOUNTS_MAX,
      .doc = "where, by what mounts says; relative is below /home/work, default /home/work/NAME" },
    { "mount_ids|mountIds", FIELD_STR_LIST, FIELD_NULLABLE, AT(mounts.ids), 0, FOLDER_MOUNTS_MAX,
      .doc = "the same by ids" },
    { "mount_id_map|mountIdMap", FIELD_PAIRS, FIELD_NULLABLE, AT(mounts.id_targets), 0,
      FOLDER_MOUNTS_MAX },
    { "mount_options|mountOptions", FIELD_OBJECT, FIELD_NULLABLE, AT(mounts.options),
      .doc = "by name or id: {\"permission\": ro or rw, \"subpath\": a directory in it}" },
    { "auto_mount|autoMount", FIELD_BOOL, 0, AT(request.mounts.is_automatic),
      .doc = "whether folders whose names begin with a dot are mounted, too; default true" },
    { "preopen_ports|preopenPorts", FIELD_PORT_LIST, FIELD_NULLABLE, AT(request.spec.ports), 1024,
      65535, .doc = "of the container, to be reached by ports of its node" },
    { "attach_network", FIELD_UNSUPPORTED },
    FIELD_END,
};

static const struct field group_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED | FIELD_LINE, AT(request.spec.session_group), 1, 64,
      .doc = "of the owner's sessions that keep apart or together" },
    { "direction", FIELD_WORD, 0, AT(request.spec.packs), .words = "spread|pack",
      .doc = "spread (default) or pack" },
    { "enforcement", FIELD_WORD, 0, AT(request.spec.group_is_strict), .words = "preferred|strict",
      .doc = "preferred (default), or strict: waits rather" },
    FIELD_END,
};

const struct field session_fields[] = {
    { "template|template_id|templateId", FIELD_IGNORED, 0,
      .doc = "name or id of a template, whose members count where the request says nothing" },
    { "name|clientSessionToken", FIELD_STR, FIELD_REQUIRED, AT(request.name), 1, 64 },
    { "array", FIELD_STR, FIELD_NULLABLE, AT(array), 1, ARRAY_TEXT_MAX,
      .doc = "indices of an array of batch sessions, as in 0-15:4,20, and perhaps how many run at "
             "once: 0-99%8" },
    { "image|lang", FIELD_STR, FIELD_REQUIRED | FIELD_FILLED, AT(request.spec.image), 1, 512 },
    { "architecture|arch", FIELD_STR, FIELD_NULLABLE, AT(request.spec.architecture), 1, 32 },
    { "type|sessionType", FIELD_STR, 0, AT(type), 1, 16, .doc = "interactive or batch" },
    { "group|groupName|group_name", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64,
      .doc = "project; default: \"default\", or the only one" },
    { "domain|domainName|domain_name", FIELD_STR, FIELD_NULLABLE, AT(domain), 1, 64,
      .doc = "default: the owner's" },
    { "config", FIELD_STRUCT, 0, .sub = config_fields },
    { "clusterSize|cluster_size", FIELD_INT, 0, AT(cluster_size), 1, CLUSTER_SIZE_MAX },
    { "clusterSizeMin|cluster_size_min", FIELD_INT, FIELD_NULLABLE,
      AT(request.spec.cluster_size_min), 0, CLUSTER_SIZE_MAX,
      .doc = "starts with as many kernels; the others start when there is room, and give way to "
             "sessions that wait; 0 = all" },
    { "clusterMode|cluster_mode", FIELD_WORD, 0, AT(request.multi_node),
      .words = "single-node|multi-node", .doc = "single-node or multi-node" },
    { "roles", FIELD_JSON, FIELD_NULLABLE, AT(roles),
      .doc = "kernels beside main1 that run something else: a list of {\"role\", \"count\", "
             "\"image\", \"startupCommand\", \"bootstrap_script\", \"environ\", "
             "\"resources\"}" },
    { "on_failure|onFailure", FIELD_STR, FIELD_NULLABLE, AT(request.spec.on_failure), 1, 16,
      .doc = "what the failure of one of several kernels means: end (of the session; default for "
             "batch) or continue" },
    { "on_node_loss|onNodeLoss", FIELD_STR, FIELD_NULLABLE, AT(request.spec.on_node_loss), 1, 16,
      .doc =
          "what the loss of a kernel's node means: end, restart-kernel or restart-all; default: as "
          "the resource group says" },
    { "network", FIELD_STR, FIELD_NULLABLE, AT(request.spec.network_mode), 1, 16,
      .doc = "private (default), or host: that of its nodes, where resource group and keypair "
             "policy allow it" },
    { "rdma", FIELD_BOOL, 0, AT(request.spec.needs_rdma),
      .doc =
          "give it the InfiniBand and RoCE devices of its nodes; requires permission for the host "
          "network" },
    { "retry", FIELD_INT, FIELD_NULLABLE, AT(request.spec.retry), 0, RERUN_RETRIES_MAX,
      .doc = "how often it is run again if it does not succeed; batch only; default 0" },
    { "retry_on|retryOn", FIELD_STR, FIELD_NULLABLE, AT(request.spec.retry_on), 1, RERUN_ON_MAX,
      .doc = "after which ends, each perhaps with a limit of its own (oom:1): failure, "
             "exit=CODE[-CODE], oom, gpu-oom, node-lost, timeout, preempted, start; "
             "default: " RERUN_ON_DEFAULT },
    { "retry_delay|retryDelay", FIELD_DURATION, FIELD_NULLABLE, AT(request.spec.retry_delay_usec),
      0, 86400, .doc = "before the first retry; default 10 seconds" },
    { "retry_factor|retryFactor", FIELD_INT, FIELD_NULLABLE, AT(request.spec.retry_factor), 1,
      RERUN_FACTOR_MAX,
      .doc = "by which each further delay is longer, up to 10 minutes; default 2" },
    { "signal", FIELD_STR, FIELD_NULLABLE, AT(request.spec.signal), 1, 32,
      .doc = "signal to the program before batch_timeout expires: USR1, or USR1@120 for 120 "
             "seconds before; default 60; batch only" },
    { "checkpoint_signal|checkpointSignal", FIELD_STR, FIELD_NULLABLE,
      AT(request.spec.checkpoint_signal), 1, 16,
      .doc = "first signal to the program when the session is preempted, moved or over its time "
             "limit; batch only" },
    { "grace", FIELD_DURATION, FIELD_NULLABLE, AT(request.spec.grace_usec), 0, 86400,
      .doc = "time between checkpoint_signal and SIGTERM, default 30 seconds; without "
             "checkpoint_signal between SIGTERM and SIGKILL; limited by the resource group; batch "
             "only" },
    { "resume_command|resumeCommand", FIELD_STR, FIELD_NULLABLE, AT(request.spec.resume_command), 0,
      SESSION_COMMAND_MAX,
      .doc = "what it runs in place of startupCommand from the second attempt on; batch only" },
    { "enqueueOnly|enqueue_only", FIELD_BOOL, 0, AT(enqueue_only) },
    { "maxWaitSeconds|max_wait_seconds", FIELD_INT, 0, AT(max_wait_sec), 0, 86400 },
    { "reuseIfExists|reuse", FIELD_BOOL, 0, AT(request.reuse) },
    { "startupCommand|startup_command", FIELD_STR, FIELD_NULLABLE, AT(request.spec.command), 0,
      SESSION_COMMAND_MAX, .doc = "what a batch session runs" },
    { "input", FIELD_STR, FIELD_NULLABLE, AT(request.spec.input), 1, 16,
      .doc =
          "standard input of the startupCommand: stream, which comes over .../exec, or terminal; "
          "batch only; default empty" },
    { "bootstrap_script|bootstrapScript", FIELD_STR, FIELD_NULLABLE, AT(request.spec.bootstrap), 0,
      SESSION_BOOTSTRAP_MAX },
    { "starts_at|startsAt", FIELD_STR, FIELD_NULLABLE, AT(starts_at), 1, 64,
      .doc = "a date, or a duration from now; batch only" },
    { "batch_timeout|batchTimeout", FIELD_DURATION, FIELD_NULLABLE,
      AT(request.spec.batch_timeout_usec), 0, INT64_C(31536000),
      .doc = "seconds, or a text such as 1h30m; 0 = no limit; batch only" },
    { "dependencies", FIELD_STR_LIST, FIELD_NULLABLE, AT(dependencies), 0, 256,
      .doc = "sessions, arrays and elements (ARRAY[INDEX]) to wait for, as ID, NAME or "
             "CONDITION:ID, where CONDITION is success (the default), failure, end, start or "
             "corresponding" },
    { "priority", FIELD_INT, FIELD_NULLABLE, AT(priority), 0, 100 },
    { "job_priority|jobPriority", FIELD_INT, FIELD_NULLABLE, AT(request.spec.job_priority), 0, 100,
      .doc = "it may preempt preemptible sessions with a lower one" },
    { "is_movable|isMovable", FIELD_BOOL, 0, AT(request.spec.is_movable),
      .doc = "it may be stopped and started again on another agent" },
    { "is_preemptible|isPreemptible", FIELD_BOOL, 0, AT(request.spec.is_preemptible),
      .doc = "it may be preempted" },
    { "wait_for_capacity|waitForCapacity", FIELD_BOOL, 0, AT(request.spec.waits_for_capacity),
      .doc = "it may ask for more than any agent has, and waits for one" },
    { "reservation", FIELD_STR, FIELD_NULLABLE, AT(request.spec.reservation), 1, SESSION_NAME_MAX,
      .doc =
          "name of the reservation in which it runs: from its start, on its resources, and until "
          "its end at the latest" },
    { "session_group|sessionGroup", FIELD_STRUCT, 0, .sub = group_fields },
    { "tag", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(request.spec.tag), 0, 64 },
    { "callback_url|callbackUrl|callbackURL", FIELD_STR, FIELD_NULLABLE,
      AT(request.spec.callback_url), 0, DELIVERY_URL_MAX,
      .doc = "gets each change of the session, by POST" },
    { "owner_access_key", FIELD_STR, FIELD_NULLABLE, AT(owner_access_key), 1, 64 },
    FIELD_END,
};

static int session_params_read_type(struct session_params *params, struct aq_error *err)
{
    struct session_request *request = &params->request;

    if (params->type && session_type_parse(params->type, &request->type) < 0)
        return api_fail_param(err, "type", "'%s' is no session type: interactive, batch, system",
                              params->type);
    if (request->type == SESSION_INFERENCE)
        return api_fail_param(err, "type", "sessions of type %s are not made by this request",
                              params->type);
    if (request->type == SESSION_SYSTEM)
        request->mounts.is_automatic = false; /* it shows what it was asked for */
    request->cluster_size = (uint32_t)params->cluster_size;
    request->priority = (int)params->priority;
    return 0;
}

/* What only batch sessions may and must say. */
static int session_params_read_batch(struct session_params *params, struct aq_error *err)
{
    struct session_request *request = &params->request;
    bool is_batch = request->type == SESSION_BATCH;
    int64_t delay;

    if (request->spec.command && !*request->spec.command)
        request->spec.command = NULL;
    if (request->spec.bootstrap && !*request->spec.bootstrap)
        request->spec.bootstrap = NULL;
    if (is_batch && !request->spec.command)
        return api_fail_param(err, "startupCommand", "is required for a batch session");
    if (!is_batch && params->starts_at)
        return api_fail_param(err, "starts_at", "is for batch sessions only");
    if (!is_batch && request->spec.batch_timeout_usec)
        return api_fail_param(err, "batch_timeout", "is for batch sessions only");
    if (!is_batch && request->spec.retry)
        return api_fail_param(err, "retry",
                              "is for batch sessions only: an interactive session has no end by "
                              "which it fails; leave it out, or create a batch session");
    if (request->spec.resume_command && !*request->spec.resume_command)
        request->spec.resume_command = NULL;
    if (!is_batch && (request->spec.signal || request->spec.checkpoint_signal))
        return api_fail_param(err, request->spec.signal ? "signal" : "checkpoint_signal",
                              "is for batch sessions only");
    if (!is_batch && request->spec.grace_usec)
        return api_fail_param(err, "grace", "is for batch sessions only");
    if (!is_batch && request->spec.resume_command)
        return api_fail_param(err, "resume_command", "is for batch sessions only");
    if (!params->starts_at || clock_parse_date(params->starts_at, &request->starts_usec) == 0)
        return 0;
    if (clock_parse_duration(params->starts_at, &delay) < 0
        || delay > INT64_C(3650) * 86400 * USEC_PER_SEC)
        return api_fail_param(err, "starts_at",
                              "'%.40s' is neither a date nor a duration such as 10m",
                              params->starts_at);
    request->starts_usec = clock_realtime_usec() + delay;
    return 0;
}

static int session_params_read_owner(const struct api *api, struct request *req,
                                     struct session_params *params, struct aq_error *err)
{
    const struct keypair *owner;
    int r;

    if ((r = api_owner(api, req, params->owner_access_key, &owner, err)) < 0)
        return r;
    params->request.access_key = arena_strdup(request_get_arena(req), owner->access_key);
    params->request.group = params->group;
    params->request.domain = params->domain;
    params->request.dependencies = params->dependencies.items;
    params->request.dependency_count = params->dependencies.count;
    if (params->request.spec.agents.count && !principal_is_superadmin(api_principal(req)))
        return aq_fail_kind(err, EPERM, "insufficient-privilege",
                            "only superadmins may choose agents");
    return 0;
}

/* Clients name every slot that they have heard of, mostly with 0: what no
 * agent offers is fine as long as nothing of it is wanted.
 */
static bool session_params_is_unknown_zero(const struct slot_types *types, const char *name,
                                           const json_t *amount)
{
    const char *interned = slot_name_find(name, strlen(name));
    enum slot_type type;

    if (interned && slot_types_find(types, interned, &type) == 0)
        return false;
    return json_is_null(amount) || (json_is_number(amount) && json_number_value(amount) == 0)
           || (json_is_string(amount) && strcmp(json_string_value(amount), "0") == 0);
}

/* Where in the request the amount is that was refused. */
static void session_params_place_slot(struct aq_error *err)
{
    char slot[sizeof(err->field)];

    if (!err->field[0])
        return;
    memcpy(slot, err->field, sizeof(slot));
    (void)snprintf(err->field, sizeof(err->field), "config.resources.%.60s", slot);
}

int session_params_read_slots(const struct api *api, const json_t *resources, struct slots *ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(slot_types_unrefp) struct slot_types *types = slot_types_ref(
        core_slot_types(api->core));
    json_auto_t *wanted = resources ? json_copy((json_t *)(uintptr_t)resources) : json_object();
    const json_t *amount;
    const char *name;
    void *next;
    int r;

    json_object_foreach_safe(wanted, next, name,
                             amount) if (session_params_is_unknown_zero(types, name, amount))
        json_object_del(wanted, name);
    r = slots_from_json(wanted, types, ret, err);
    if (r == -EINVAL && err) {
        session_params_place_slot(err);
        err->kind = "invalid-api-params";
    }
    return r;
}

/* ---- kernels beside main1 ---- */

struct session_params_role {
    struct cluster_role role;
    const json_t *resources;
};

#define ROLE_AT(member) offsetof(struct session_params_role, member)
static const struct field role_fields[] = {
    { "role", FIELD_STR, FIELD_REQUIRED, ROLE_AT(role.name), 1, 15 },
    { "count", FIELD_INT, 0, ROLE_AT(role.count), 1, 1000 },
    { "image", FIELD_STR, FIELD_REQUIRED, ROLE_AT(role.image), 1, 512 },
    { "startupCommand", FIELD_STR, FIELD_NULLABLE, ROLE_AT(role.command), 1, SESSION_COMMAND_MAX },
    { "bootstrap_script", FIELD_STR, FIELD_NULLABLE, ROLE_AT(role.bootstrap), 1,
      SESSION_BOOTSTRAP_MAX },
    { "environ", FIELD_PAIRS, FIELD_NULLABLE, ROLE_AT(role.environ), 0, SESSION_VARIABLES_MAX },
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, ROLE_AT(resources) },
    FIELD_END,
};

static int session_params_read_role(const struct api *api, struct request *req,
                                    const json_t *object, struct session_request_role *ret,
                                    struct aq_error *err)
{
    struct session_params_role role = { .role.count = 1 };
    char field[sizeof(err->field)];
    int r = decode_object(role_fields, object, request_get_arena(req), &role, err);

    if (r < 0) {
        memcpy(field, err->field, sizeof(field));
        (void)snprintf(err->field, sizeof(err->field), "roles.%.60s", field);
        return r;
    }
    role.role.image = image_aliases_resolve(api, role.role.image);
    ret->role = role.role;
    r = session_params_read_slots(api, role.resources, &ret->resources, err);
    if (r < 0)
        cluster_role_set_field(role.role.name, err);
    return r;
}

static int session_params_read_roles(const struct api *api, struct request *req,
                                     struct session_params *params, struct aq_error *err)
{
    size_t count = json_array_size(params->roles);
    struct session_request_role *roles = arena_array(request_get_arena(req), count + 1,
                                                     sizeof(*roles));
    int64_t kernels = 1;
    int r = 0;

    if ((params->roles && !json_is_array(params->roles)) || count > CLUSTER_ROLES_MAX)
        return api_fail_param(err, "roles", "must be a list of at most %d roles",
                              CLUSTER_ROLES_MAX);
    params->request.roles = roles;
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = session_params_read_role(api, req, json_array_get(params->roles, i), &roles[i], err);
        params->request.role_count++;
        kernels += roles[i].role.count;
    }
    if (count && params->cluster_size == 1)
        params->request.cluster_size = (uint32_t)kernels;
    return r;
}

static int session_params_check_callback(const struct api *api, struct session_params *params,
                                         struct aq_error *err)
{
    const char **url = &params->request.spec.callback_url;

    if (*url && !**url)
        *url = NULL;
    if (!*url)
        return 0;
    return notification_check_url(api, "callback_url", *url, err);
}

/* ---- folders ---- */

struct session_mount_options {
    const char *type, *permission, *path, *target;
};

#define MOUNT_AT(member) offsetof(struct session_mount_options, member)

static const struct field session_mount_fields[] = {
    { "type", FIELD_STR, FIELD_NULLABLE, MOUNT_AT(type), 0, 32 },
    { "permission|perm", FIELD_STR, FIELD_NULLABLE, MOUNT_AT(permission), 0, 8 },
    { "subpath", FIELD_STR, FIELD_NULLABLE, MOUNT_AT(path), 0, FOLDER_PATH_MAX },
    { "mount_destination|target", FIELD_STR, FIELD_NULLABLE, MOUNT_AT(target), 0, FOLDER_PATH_MAX },
    FIELD_END,
};

static const char *session_mounts_find_target(const struct pair_list *targets, const char *folder)
{
    for (size_t i = 0; i < targets->count; i++)
        if (strcmp(targets->items[i].key, folder) == 0)
            return targets->items[i].value;
    return NULL;
}

static int session_mounts_read_options(const json_t *all, struct arena *arena,
                                       struct named_mount *named, struct aq_error *err)
{
    struct session_mount_options options = { .type = NULL };
    const json_t *given = json_object_get(all, named->folder);

    if (!given || json_is_null(given))
        return 0;
    if (!json_is_object(given))
        return api_fail_param(err, "config.mount_options", "of '%.64s' is no object",
                              named->folder);
    if (decode_object(session_mount_fields, given, arena, &options, err) < 0) {
        (void)snprintf(err->field, sizeof(err->field), "config.mount_options");
        return -err->code;
    }
    if (options.type && strcmp(options.type, "bind") != 0)
        return api_fail_param(err, "config.mount_options",
                              "folders are mounted with the type bind, not '%.32s'", options.type);
    if (options.permission && *options.permission
        && folder_permission_parse(options.permission, &named->permission) < 0)
        return api_fail_param(err, "config.mount_options", "permission must be ro or rw");
    named->path = options.path;
    if (!named->target)
        named->target = options.target;
    return 0;
}

static int session_mounts_add(const struct str_list *folders, const struct pair_list *targets,
                              const json_t *options, struct arena *arena, struct named_mount *named,
                              struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < folders->count; i++) {
        named[i] = (struct named_mount){
            .folder = folders->items[i],
            .target = session_mounts_find_target(targets, folders->items[i]),
        };
        r = session_mounts_read_options(options, arena, &named[i], err);
        if (named[i].target && !*named[i].target)
            named[i].target = NULL;
    }
    return r;
}

static bool session_mounts_has(const struct str_list *folders, const char *folder)
{
    for (size_t i = 0; i < folders->count; i++)
        if (strcmp(folders->items[i], folder) == 0)
            return true;
    return false;
}

/* A target or an option of a folder that is not mounted is a mistake in its name. */
static int session_mounts_check_names(const struct session_mount_params *params,
                                      struct aq_error *err)
{
    const char *name;
    json_t *ignored;

    for (size_t i = 0; i < params->targets.count; i++)
        if (!session_mounts_has(&params->names, params->targets.items[i].key))
            return api_fail_param(err, "config.mount_map", "'%.64s' is not among the mounts",
                                  params->targets.items[i].key);
    for (size_t i = 0; i < params->id_targets.count; i++)
        if (!session_mounts_has(&params->ids, params->id_targets.items[i].key))
            return api_fail_param(err, "config.mount_id_map", "'%.64s' is not among the mount_ids",
                                  params->id_targets.items[i].key);
    json_object_foreach((json_t *)(uintptr_t)params->options, name, ignored) {
        (void)ignored;
        if (!session_mounts_has(&params->names, name) && !session_mounts_has(&params->ids, name))
            return api_fail_param(err, "config.mount_options", "'%.64s' is not mounted", name);
    }
    return 0;
}

static int session_mounts_check_ids(const struct str_list *ids, struct aq_error *err)
{
    struct uuid id;

    for (size_t i = 0; i < ids->count; i++)
        if (uuid_parse(ids->items[i], &id) < 0)
            return api_fail_param(err, "config.mount_ids", "'%.64s' is no folder's id",
                                  ids->items[i]);
    return 0;
}

bool session_may_mount(void *data, const struct session *session, const struct folder *folder)
{
    const struct api *api = data;
    struct principal owner = { .user_id = session->user_id, .domain = session->domain };
    const struct folder_place place = {
        .who = &owner,
        .project = core_find_project(api->core, &folder->project_id),
    };

    memcpy(owner.access_key, session->access_key, sizeof(owner.access_key));
    return folder_rules_allow(api, &place, folder->host, "mount-in-session");
}

/* What is wanted, in the request's arena; is_automatic is looked at and may become false. */
static int session_mounts_read(const struct api *api, struct request *req,
                               const struct session_mount_params *params,
                               struct session_mounts *ret, struct aq_error *err)
{
    struct arena *arena = request_get_arena(req);
    size_t count = params->names.count + params->ids.count;
    struct named_mount *named = arena_array(arena, count + 1, sizeof(*named));
    int r;

    if ((r = session_mounts_check_names(params, err)) < 0
        || (r = session_mounts_check_ids(&params->ids, err)) < 0
        || (r = session_mounts_add(&params->names, &params->targets, params->options, arena, named,
                                   err))
               < 0
        || (r = session_mounts_add(&params->ids, &params->id_targets, params->options, arena,
                                   named + params->names.count, err))
               < 0)
        return r;
    *ret = (struct session_mounts){ .named = named,
                                    .count = count,
                                    .is_automatic = ret->is_automatic
                                                    && folder_mounts_automatic(api),
                                    .may_mount = session_may_mount,
                                    .data = (void *)(uintptr_t)api };
    return 0;
}

/* ---- all of it ---- */

int session_params_read(const struct api *api, struct request *req, const json_t *object,
                        struct session_params *ret, struct aq_error *err)
{
    struct session_params params = { .request = { .reuse = true,
                                                  .mounts = { .is_automatic = true } },
                                     .cluster_size = 1,
                                     .priority = -1 };
    int r;

    if ((r = decode_object(session_fields, object, request_get_arena(req), &params, err)) < 0
        || (r = session_params_read_type(&params, err)) < 0
        || (r = session_params_read_batch(&params, err)) < 0
        || (r = session_params_read_owner(api, req, &params, err)) < 0
        || (r = session_params_check_callback(api, &params, err)) < 0
        || (r = session_mounts_read(api, req, &params.mounts, &params.request.mounts, err)) < 0
        || (r = session_params_read_slots(api, params.resources, &params.request.resources, err))
               < 0)
        return r;
    if ((r = session_params_read_roles(api, req, &params, err)) < 0) {
        session_params_done(&params);
        return r;
    }
    params.request.spec.image = image_aliases_resolve(api, params.request.spec.image);
    params.request.reuse = params.request.reuse && !params.array;
    *ret = params;
    return 0;
}

void session_params_done(struct session_params *params)
{
    slots_done(&params->request.resources);
    for (size_t i = 0; i < params->request.role_count; i++)
        slots_done((struct slots *)(uintptr_t)&params->request.roles[i].resources);
}
