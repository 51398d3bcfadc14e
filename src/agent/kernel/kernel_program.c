/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_program.c - a kernel's program: where it runs, what it holds, its command line and environment
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accelhost/gpu_variables.h"
#include "agent/kernel/cluster_environ.h"
#include "agent/kernel/bootstrap.h"
#include "agent/kernel/host_network.h"
#include "agent/kernel/kernel_program.h"
#include "alloc/resource_txt.h"
#include "base/json_load.h"
#include "base/memory.h"
#include "base/shell_word.h"
#include "base/strbuf.h"
#include "model/device_variable.h"
#include "model/session.h"

#define LABEL_INTERPRETER "aliquot.interpreter."

static void kernel_program_tell_mounts(const struct kernel_program_resources *held,
                                       struct arena *arena, struct resource_txt *file)
{
    struct resource_mount *told = arena_array(arena, held->mount_count + 1, sizeof(*told));

    for (size_t i = 0; i < held->mount_count; i++) {
        const struct container_mount *m = &held->mounts[i];

        if (!strpbrk(m->source, ",:") && !strpbrk(m->target, ",:"))
            told[file->mount_count++] = (struct resource_mount){
                .source = m->source, .target = m->target, .perm = m->may_write ? "rw" : "ro"
            };
    }
    file->mounts = told;
}

int kernel_program_write_resource(const struct kernel_program_resources *held,
                                  const struct slot_types *types, char **ret, struct aq_error *err)
{
    struct resource_txt file = { .scratch_bytes = held->scratch_bytes,
                                 .slots = *held->slots,
                                 .grant = *held->grant,
                                 .pairs = held->attachment->pairs,
                                 .pair_count = held->attachment->pair_count,
                                 .container_id = held->container_id };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int r;

    kernel_program_tell_mounts(held, &arena, &file);
    r = resource_txt_write(&file, types, &text, err);
    if (r < 0)
        return r;
    *ret = strbuf_steal(&text);
    return 0;
}

struct kernel_program_context kernel_program_host_context(const struct settings *settings,
                                                          const char *work,
                                                          const struct accel_attachment *attachment)
{
    const char *shell = settings->shell                  ? settings->shell
                        : access("/bin/bash", X_OK) == 0 ? "/bin/bash"
                                                         : "/bin/sh";

    return (struct kernel_program_context){
        .settings = settings, .work = work, .shell = shell, .attachment = attachment
    };
}

/* ---- arguments ---- */

static int kernel_program_split_command(const char *command, struct arena *arena,
                                        const char *const **ret, struct aq_error *err)
{
    const char **argv = arena_array(arena, strlen(command) / 2 + 2, sizeof(*argv));
    const char *at = command + strspn(command, " \t\n");
    size_t count = 0;

    while (*at) {
        AQ_CLEANUP(strbuf_donep) struct strbuf word = STRBUF_INIT;

        at = shell_word_take(at, &word);
        if (!at)
            return aq_fail_kind(err, ENOTSUP, "no-shell",
                                "the image has no shell, which '%.100s' needs", command);
        argv[count++] = arena_strdup(arena, word.data);
    }
    *ret = argv;
    return 0;
}

bool kernel_program_has_terminal(const struct session_spec *spec)
{
    return !spec->command || (spec->input && strcmp(spec->input, KERNEL_INPUT_TERMINAL) == 0);
}

bool kernel_program_has_input(const struct session_spec *spec)
{
    return spec->command && spec->input && strcmp(spec->input, KERNEL_INPUT_STREAM) == 0;
}

const char *const *kernel_program_find_own(const struct kernel_spec *spec,
                                           const struct image_config *image, struct arena *arena)
{
    static const char *const none[] = { NULL };
    const char **parts[] = { image ? image->entrypoint : NULL, image ? image->cmd : NULL };
    const char **own = NULL, *end = NULL;
    size_t count = 0;

    if (spec->session.command || !spec->session_type
        || strcmp(spec->session_type, session_type_name(SESSION_INFERENCE)) != 0)
        return NULL;
    for (size_t i = 0; i < AQ_COUNT(parts); i++)
        for (const char **word = parts[i]; word && *word; word++)
            arena_append(arena, &own, &count, word, sizeof(*word));
    if (!own)
        return none;
    arena_append(arena, &own, &count, &end, sizeof(end));
    return own;
}

static int kernel_program_own_argv(const struct session_spec *spec, const char *const *own,
                                   struct arena *arena, const char *const **ret,
                                   struct aq_error *err)
{
    const char **argv;
    size_t count = 0, n = 0;

    while (own[count])
        count++;
    if (!count)
        return aq_fail_as(err, ENOTSUP, "no-command", "command",
                          "the image has no program of its own; give the session a command");
    *ret = own;
    if (!spec->bootstrap)
        return 0;
    argv = arena_array(arena, count + 6, sizeof(*argv));
    argv[n++] = "/bin/sh";
    argv[n++] = "-c";
    argv[n++] = BOOTSTRAP_COMMAND "shift; exec \"$@\"";
    argv[n++] = "sh";
    argv[n++] = spec->bootstrap;
    memcpy(argv + n, own, count * sizeof(*argv));
    *ret = argv;
    return 0;
}

int kernel_program_argv(const struct session_spec *spec, const struct kernel_program_context *place,
                        struct arena *arena, const char *const **ret, struct aq_error *err)
{
    const char **argv = arena_array(arena, 7, sizeof(*argv));
    size_t n = 0;

    *ret = argv;
    if (!place->shell && spec->bootstrap)
        return aq_fail_as(err, ENOTSUP, "no-shell", "bootstrap",
                          "the image has no shell, which a bootstrap script needs");
    if (place->own)
        return kernel_program_own_argv(spec, place->own, arena, ret, err);
    if (!place->shell)
        return spec->command ? kernel_program_split_command(spec->command, arena, ret, err) : 0;
    if (!spec->command && !spec->bootstrap) {
        argv[0] = place->shell;
        argv[1] = "-l";
        return 0;
    }
    argv[n++] = "/bin/sh";
    argv[n++] = "-c";
    if (!spec->bootstrap) {
        argv[n++] = spec->command;
        return 0;
    }
    argv[n++] = spec->command ? BOOTSTRAP_COMMAND "exec /bin/sh -c \"$2\""
                              : BOOTSTRAP_COMMAND "exec \"$2\" -l";
    argv[n++] = "sh";
    argv[n++] = spec->bootstrap;
    argv[n++] = spec->command ? spec->command : place->shell;
    return 0;
}

/* ---- environment ---- */

struct environ {
    struct arena *arena;
    const char **items;
    size_t count;
};

static void kernel_environ_set_variable(struct environ *env, const char *name, const char *value)
{
    size_t name_len = strlen(name), value_len = strlen(value), at = 0;
    char *item = arena_alloc(env->arena, name_len + value_len + 2);

    memcpy(item, name, name_len);
    item[name_len] = '=';
    memcpy(item + name_len + 1, value, value_len + 1);
    while (at < env->count && strncmp(env->items[at], item, name_len + 1) != 0)
        at++;
    if (at < env->count)
        env->items[at] = item;
    else
        arena_append(env->arena, &env->items, &env->count, &item, sizeof(item));
}

/* NULL if it is not set. */
static const char *kernel_environ_get_variable(const struct environ *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->count; i++)
        if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
            return env->items[i] + len + 1;
    return NULL;
}

static void kernel_environ_set_optional(struct environ *env, const char *name, const char *value)
{
    if (value)
        kernel_environ_set_variable(env, name, value);
}

static void kernel_environ_set_number(struct environ *env, const char *name, int64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    kernel_environ_set_variable(env, name, text);
}

static void kernel_environ_set_defaults(struct environ *env, const struct session_spec *session,
                                        const struct kernel_program_context *place)
{
    const char *lang = place->environ ? NULL : getenv("LANG"), *user = place->settings->user;

    kernel_environ_set_variable(env, "PATH", KERNEL_DEFAULT_PATH);
    kernel_environ_set_variable(env, "LANG", lang ? lang : "C.UTF-8");
    for (const char *const *item = place->environ; item && *item; item++) {
        AQ_CLEANUP(aq_freep) char *name = aq_strndup(*item, strcspn(*item, "="));

        if ((*item)[strlen(name)] == '=')
            kernel_environ_set_variable(env, name, *item + strlen(name) + 1);
    }
    kernel_environ_set_variable(env, "HOME", place->work);
    kernel_environ_set_optional(env, "SHELL", place->shell);
    user = user && !place->environ ? user : "work";
    kernel_environ_set_variable(env, "USER", user);
    kernel_environ_set_variable(env, "LOGNAME", user);
    if (kernel_program_has_terminal(session))
        kernel_environ_set_variable(env, "TERM", "xterm-256color");
}

static void kernel_environ_set_groups(struct environ *env,
                                      const struct accel_attachment *attachment)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < attachment->group_count; i++)
        strbuf_addf(&text, "%s%u", i ? "," : "", (unsigned)attachment->groups[i]);
    if (text.len)
        kernel_environ_set_variable(env, "ADDITIONAL_GIDS", text.data);
}

/* OMP_NUM_THREADS and the like, as the image names them. */
static void kernel_environ_set_cores(struct environ *env,
                                     const struct kernel_program_context *place)
{
    for (const char *at = place->core_names; at && *(at += strspn(at, ", "));) {
        AQ_CLEANUP(aq_freep) char *name = aq_strndup(at, strcspn(at, ", "));

        kernel_environ_set_number(env, name, place->cores);
        at += strcspn(at, ", ");
    }
}

/* What images made for Backend.AI start their programs by. */
static void kernel_environ_set_container(struct environ *env,
                                         const struct kernel_program_context *place)
{
    kernel_environ_set_number(env, "LOCAL_USER_ID", place->settings->container_uid);
    kernel_environ_set_number(env, "LOCAL_GROUP_ID", place->settings->container_gid);
    kernel_environ_set_groups(env, place->attachment);
}

/* Directories of libraries come after those that the image or the user wants. */
static void kernel_environ_set_attached(struct environ *env, const struct text_pair *pair)
{
    const char *before = strcmp(pair->key, "LD_LIBRARY_PATH") == 0
                             ? kernel_environ_get_variable(env, pair->key)
                             : NULL;
    AQ_CLEANUP(aq_freep) char *both = before && before[0] ? aq_format("%s:%s", before, pair->value)
                                                          : NULL;

    kernel_environ_set_variable(env, pair->key, both ? both : pair->value);
}

/* How code of further languages is run: what the user says of one comes later, and wins. */
static void kernel_environ_set_interpreters(struct environ *env, const struct image_config *image)
{
    const size_t prefix = sizeof(LABEL_INTERPRETER) - 1;

    for (size_t i = 0; image && i < image->label_count; i++) {
        const struct text_pair *label = &image->labels[i];
        const char *name = label->key + prefix;
        char variable[64];

        if (strncmp(label->key, LABEL_INTERPRETER, prefix) == 0 && *name && strlen(name) <= 16
            && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")]) {
            (void)snprintf(variable, sizeof(variable), "ALIQUOT_INTERPRETER_%s", name);
            kernel_environ_set_variable(env, variable, label->value);
        }
    }
}

static void kernel_environ_set_devices(struct environ *env,
                                       const struct accel_attachment *attachment)
{
    struct text_pair own[GPU_VARIABLES_MAX];
    size_t own_count = gpu_variables_make(attachment, env->arena, own);

    for (size_t i = 0; i < attachment->environ_count; i++)
        kernel_environ_set_attached(env, &attachment->environ[i]);
    for (size_t i = 0; i < own_count; i++)
        kernel_environ_set_variable(env, own[i].key, own[i].value);
}

static void kernel_environ_set_cluster(struct environ *env, const struct kernel_spec *spec,
                                       const struct kernel_program_context *place)
{
    const struct cluster_place cluster = {
        .interface = place->interface,
        .host_file = place->host_file,
        .machine_file = place->machine_file,
        .remote_shell = place->remote_shell,
        .devices = (int64_t)gpu_variables_count_devices(place->attachment),
        .host = place->host ? &place->host->network : NULL,
    };
    struct text_pair variables[CLUSTER_VARIABLES_MAX];
    size_t count = cluster_environ_make(spec, &cluster, env->arena, variables);

    for (size_t i = 0; i < count; i++)
        kernel_environ_set_variable(env, variables[i].key, variables[i].value);
}

/* The amount of a slot if it is a whole number; 0 = it is not, or there is none. */
static int64_t kernel_environ_amount(const json_t *slots, const char *slot)
{
    const char *text = json_string_value(json_object_get(slots, slot));
    char *end = NULL;
    int64_t amount = text ? strtoll(text, &end, 10) : 0;

    return text && !*end && amount > 0 ? amount : 0;
}

/* Facts that batch systems give to their jobs: "aliquot submit" makes variables of Slurm of them. */
static void kernel_environ_set_job(struct environ *env, const struct msg_kernel_create *create)
{
    json_auto_t *slots = json_load_string(create->spec.slots, 0);
    int64_t cpus = kernel_environ_amount(slots, "cpu"), mem = kernel_environ_amount(slots, "mem");

    kernel_environ_set_optional(env, "ALIQUOT_RESOURCE_GROUP", create->spec.resource_group);
    if (cpus)
        kernel_environ_set_number(env, "ALIQUOT_CPUS", cpus);
    if (mem)
        kernel_environ_set_number(env, "ALIQUOT_MEMORY", mem);
    if (create->spec.job_number)
        kernel_environ_set_number(env, "ALIQUOT_JOB_NUMBER", create->spec.job_number);
    if (create->spec.session_type
        && strcmp(create->spec.session_type, session_type_name(SESSION_BATCH)) == 0)
        kernel_environ_set_number(env, "ALIQUOT_ATTEMPT", create->spec.attempts);
    if (create->spec.attempts)
        kernel_environ_set_number(env, "ALIQUOT_RESTARTS", create->spec.attempts);
}

/* "=mlx5_0,mlx5_1": "=" makes NCCL match whole names, not prefixes. /sys shows all devices. */
static void kernel_environ_set_rdma(struct environ *env, const struct rdma_devices *rdma)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < rdma->names.count; i++)
        strbuf_addf(&text, "%s%s", i ? "," : "=", rdma->names.items[i]);
    kernel_environ_set_variable(env, "NCCL_IB_HCA", text.data);
}

/* Beside what frameworks are given, a few ports are the program's own. */
static void kernel_environ_set_host(struct environ *env, const struct host_network *host)
{
    char ports[16];

    (void)snprintf(ports, sizeof(ports), "%u-%u", host_network_port(host, CLUSTER_HOST_FREE),
                   host_network_port(host, CLUSTER_HOST_PORTS) - 1u);
    kernel_environ_set_variable(env, "ALIQUOT_NETWORK", SESSION_NETWORK_HOST);
    kernel_environ_set_variable(env, "ALIQUOT_PORTS", ports);
}

static void kernel_environ_set_identity(struct environ *env, const struct msg_kernel_create *create,
                                        const struct kernel_program_context *place)
{
    const struct kernel_spec *spec = &create->spec;
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    (void)uuid_format(&create->kernel_id, kernel);
    kernel_environ_set_variable(env, "BACKENDAI_KERNEL_ID", kernel);
    kernel_environ_set_variable(env, "BACKENDAI_SESSION_ID",
                                uuid_format(&create->session_id, session));
    kernel_environ_set_optional(env, "BACKENDAI_SESSION_NAME", spec->session_name);
    kernel_environ_set_optional(env, "BACKENDAI_ACCESS_KEY", spec->access_key);
    kernel_environ_set_optional(env, "BACKENDAI_USER_UUID", spec->user_id);
    kernel_environ_set_optional(env, "BACKENDAI_USER_EMAIL", spec->user_email);
    kernel_environ_set_optional(env, "BACKENDAI_USER_NAME", spec->user_name);
    kernel_environ_set_optional(env, "BACKENDAI_KERNEL_IMAGE", spec->session.image);
    kernel_environ_set_number(env, "BACKENDAI_CLUSTER_SIZE",
                              spec->cluster_size ? spec->cluster_size : 1);
    kernel_environ_set_optional(env, "BACKENDAI_CLUSTER_REPLICAS", spec->replicas);
    kernel_environ_set_optional(env, "BACKENDAI_CLUSTER_HOSTS", spec->hosts);
    kernel_environ_set_optional(env, "BACKENDAI_CLUSTER_HOST", spec->hostname);
    kernel_environ_set_optional(env, "BACKENDAI_CLUSTER_ROLE", spec->role);
    kernel_environ_set_number(env, "BACKENDAI_CLUSTER_IDX", spec->index);
    kernel_environ_set_number(env, "BACKENDAI_CLUSTER_LOCAL_RANK", spec->rank);
    kernel_environ_set_variable(env, "BACKENDAI_PREOPEN_PORTS",
                                place->preopen_ports ? place->preopen_ports : "");
    kernel_environ_set_variable(env, "BACKENDAI_SERVICE_PORTS",
                                place->service_ports ? place->service_ports : "");
    if (spec->session_type && strcmp(spec->session_type, "batch") == 0)
        kernel_environ_set_variable(env, "_BACKEND_BATCH_MODE", "1");
    kernel_environ_set_variable(env, "ALIQUOT_KERNEL_ID", kernel);
    kernel_environ_set_optional(env, "ALIQUOT_OUTPUT", place->output);
    if (place->host)
        kernel_environ_set_host(env, place->host);
    kernel_environ_set_optional(env, "ALIQUOT_RUNTIME_TYPE", place->runtime_type);
    kernel_environ_set_optional(env, "ALIQUOT_RUNTIME_PATH", place->runtime_path);
}

/* Neither image nor user chooses devices that the session was not granted: in a container the
 * program sees no others, on the node itself their numbers mean the node's.
 */
static void kernel_environ_drop_foreign_devices(struct environ *env,
                                                const struct kernel_program_context *place)
{
    size_t count = place->environ ? gpu_variables_count_devices(place->attachment) : 0, kept = 0;

    for (size_t i = 0; i < env->count; i++)
        if (!device_variable_exceeds(env->items[i], count))
            env->items[kept++] = env->items[i];
    env->count = kept;
}

const char *const *kernel_environ_make(const struct msg_kernel_create *create,
                                       const struct kernel_program_context *place,
                                       struct arena *arena)
{
    const struct session_spec *session = &create->spec.session;
    struct environ env = { .arena = arena };
    const char *const end = NULL;

    kernel_environ_set_defaults(&env, session, place);
    kernel_environ_set_cores(&env, place);
    kernel_environ_set_interpreters(&env, place->labels);
    kernel_environ_set_cluster(&env, &create->spec, place);
    if (place->rdma)
        kernel_environ_set_rdma(&env, place->rdma);
    for (size_t i = 0; i < session->environ.count; i++)
        kernel_environ_set_variable(&env, session->environ.items[i].key,
                                    session->environ.items[i].value);
    kernel_environ_drop_foreign_devices(&env, place);
    kernel_environ_set_devices(&env, place->attachment);
    kernel_environ_set_identity(&env, create, place);
    kernel_environ_set_job(&env, create);
    if (place->environ)
        kernel_environ_set_container(&env, place);
    arena_append(arena, &env.items, &env.count, &end, sizeof(end));
    return env.items;
}

char *kernel_environ_write(const char *const *variables)
{
    struct strbuf text = STRBUF_INIT;

    for (; *variables; variables++)
        strbuf_addf(&text, "%s\n", *variables);
    return strbuf_steal(&text);
}
