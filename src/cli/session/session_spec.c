/* SPDX-License-Identifier: Apache-2.0 */
/* What a new session shall be: the options that "run" and "session create" share. */
#include "cli/session/session_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "cli/amounts.h"
#include "cli/local_date.h"
#include "cli/session/cluster_spec.h"

static int spec_set_resource_opts(const struct cli_list *list, json_t *config, struct aq_error *err)
{
    json_t *opts = json_object();
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = cli_amounts_add(list->items[i], "--resource-opts", opts, err);
    (void)json_object_set_new(config, "resource_opts", opts);
    return r;
}

/* As Kubernetes has it: programs use dots and hyphens, shells cannot. */
static bool spec_is_variable(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isalpha((unsigned char)name[i]) && !strchr("_.-", name[i])
            && (i == 0 || !isdigit((unsigned char)name[i])))
            return false;
    return len > 0;
}

static int spec_add_variable(const char *text, json_t *object, struct aq_error *err)
{
    size_t len = strcspn(text, "=");
    AQ_CLEANUP(aq_freep) char *name = aq_strndup(text, len);
    const char *value = text[len] ? text + len + 1 : getenv(name);

    if (!spec_is_variable(text, len))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--env takes NAME or NAME=VALUE, and a name is of letters, digits and "
                            "'_', '.', '-', with no digit first; not '%.60s'",
                            text);
    if (!value)
        (void)json_object_del(object, name);
    else if (json_object_set_new(object, name, json_string(value)) < 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--env %.60s is not UTF-8", text);
    return 0;
}

int spec_add_environ(const struct cli_list *list, json_t *object, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i++)
        r = spec_add_variable(list->items[i], object, err);
    return r;
}

/* Which one of several it is. From 0, as programs divide work: item i belongs to the session
 * with i % count == index. The same in the words of sbatch(1), for --array=0-(count - 1).
 */
static void spec_add_array(unsigned index, unsigned count, json_t *environ)
{
    const struct {
        const char *name;
        unsigned value;
    } variables[] = {
        { "ALIQUOT_ARRAY_INDEX", index }, { "ALIQUOT_ARRAY_COUNT", count },
        { "SLURM_ARRAY_TASK_ID", index }, { "SLURM_ARRAY_TASK_COUNT", count },
        { "SLURM_ARRAY_TASK_MIN", 0 },    { "SLURM_ARRAY_TASK_MAX", count - 1 },
        { "SLURM_ARRAY_TASK_STEP", 1 },
    };
    char text[16];

    for (size_t i = 0; i < AQ_COUNT(variables); i++) {
        (void)snprintf(text, sizeof(text), "%u", variables[i].value);
        (void)json_object_set_new(environ, variables[i].name, json_string(text));
    }
}

static bool spec_is_shell_safe(const char *word)
{
    if (!*word)
        return false;
    for (; *word; word++)
        if (!isalnum((unsigned char)*word) && !strchr("_-./:=@%+,", *word))
            return false;
    return true;
}

void spec_quote_command(int argc, char *const argv[], struct strbuf *out)
{
    for (int i = 0; i < argc; i++) {
        strbuf_adds(out, i ? " " : "");
        if (spec_is_shell_safe(argv[i])) {
            strbuf_adds(out, argv[i]);
            continue;
        }
        strbuf_addc(out, '\'');
        for (const char *c = argv[i]; *c; c++) {
            if (*c == '\'')
                strbuf_adds(out, "'\\''");
            else
                strbuf_addc(out, *c);
        }
        strbuf_addc(out, '\'');
    }
}

/* "python3 x" of "A=1 B=2 python3 x" */
static const char *spec_skip_variables(const char *line)
{
    for (;;) {
        size_t name = strspn(line,
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
        size_t len = strcspn(line, " \t\n");

        if (name == 0 || line[name] != '=' || !line[len] || memchr(line, '\'', len)
            || memchr(line, '"', len))
            return line;
        line += len;
        line += strspn(line, " \t\n");
    }
}

char *spec_make_name(const struct spec_opts *spec, int argc, char *const argv[])
{
    const char *program = spec_skip_variables(argc ? argv[0] : "session"), *slash;
    size_t len = strcspn(program, " \t\n");
    char stem[17];
    size_t used = 0;
    struct uuid chance = uuid_random();

    if (spec->name)
        return aq_strdup(spec->name);
    slash = memrchr(program, '/', len);
    for (const char *c = slash ? slash + 1 : program; c < program + len && used < 16; c++)
        if (isalnum((unsigned char)*c) || (used && (*c == '-' || *c == '_' || *c == '.')))
            stem[used++] = *c;
    stem[used] = '\0';
    return aq_format("%s-%02x%02x%02x", used ? stem : "run", chance.bytes[0], chance.bytes[1],
                     chance.bytes[2]);
}

static int spec_set_str(json_t *object, const char *key, const char *value)
{
    return value ? json_object_set_new(object, key, json_string(value)) : 0;
}

static int spec_set_int(json_t *object, const char *key, const struct cli_int *value)
{
    return value->is_set ? json_object_set_new(object, key, json_integer(value->value)) : 0;
}

/* In seconds, with a fraction only if there is one. */
static int spec_set_duration(json_t *object, const char *key, const struct cli_int *usec)
{
    bool is_whole = usec->value % USEC_PER_SEC == 0;

    if (!usec->is_set)
        return 0;
    return json_object_set_new(object, key,
                               is_whole ? json_integer(usec->value / USEC_PER_SEC)
                                        : json_real((double)usec->value / (double)USEC_PER_SEC));
}

static json_t *spec_list_to_json(const struct cli_list *list)
{
    json_t *array = json_array();

    for (size_t i = 0; i < list->count; i++)
        (void)json_array_append_new(array, json_string(list->items[i]));
    return array;
}

/* "8080" or "8080,9000" of each; the manager knows which are allowed. */
static int spec_add_ports(const struct cli_list *ports, json_t *config, struct aq_error *err)
{
    json_t *list = json_array();

    for (size_t i = 0; i < ports->count; i++)
        for (const char *at = ports->items[i];; at++) {
            size_t len = strspn(at, "0123456789");

            if (len < 1 || len > 5 || (at[len] && at[len] != ',')) {
                json_decref(list);
                return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                    "--port takes numbers of ports such as 8080, not '%.60s'", at);
            }
            (void)json_array_append_new(list, json_integer(strtol(at, NULL, 10)));
            at += len;
            if (!*at)
                break;
        }
    (void)json_object_set_new(config, "preopen_ports", list);
    return 0;
}

/* "FOLDER[/PATH][:TARGET][:ro]" of each; the manager knows folders. */
static int spec_add_mount(const char *text, json_t *names, json_t *targets, json_t *options,
                          struct aq_error *err)
{
    size_t len = strcspn(text, ":");
    AQ_CLEANUP(aq_freep) char *folder = aq_strndup(text, len);
    const char *target = text[len] ? text + len + 1 : "", *mode = strrchr(target, ':');
    size_t target_len = mode ? (size_t)(mode - target) : strlen(target);

    mode = mode ? mode + 1 : target;
    if (strcmp(mode, "ro") != 0 && strcmp(mode, "rw") != 0)
        mode = NULL;
    else if (mode == target)
        target_len = 0;
    if (text[0] == '/')
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--mount takes a folder of the cluster, not a directory of this "
                            "machine, as '%.60s' is; aliquot folder create NAME makes one, and "
                            "aliquot folder cp -r %.60s NAME: fills it",
                            folder, folder);
    if (len == 0 || memchr(target, ':', target_len) || (!mode && strchr(target, ':'))
        || (!mode && text[len] && !*target))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--mount takes FOLDER, FOLDER:TARGET, FOLDER:ro or FOLDER:TARGET:ro, "
                            "not '%.60s'",
                            text);
    if (json_array_append_new(names, json_string(folder)) < 0
        || (target_len
            && json_object_set_new(targets, folder, json_stringn(target, target_len)) < 0)
        || (mode
            && json_object_set_new(options, folder, json_pack("{s:s}", "permission", mode)) < 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--mount %.60s is not UTF-8", text);
    return 0;
}

static int spec_set_mounts(const struct spec_opts *spec, json_t *config, struct aq_error *err)
{
    json_t *names = json_array(), *targets = json_object(), *options = json_object();
    int r = 0;

    (void)json_object_set_new(config, "mounts", names);
    (void)json_object_set_new(config, "mount_map", targets);
    (void)json_object_set_new(config, "mount_options", options);
    for (size_t i = 0; r == 0 && i < spec->mounts.count; i++)
        r = spec_add_mount(spec->mounts.items[i], names, targets, options, err);
    return r;
}

/* What an option says, else the configuration, which a template comes before. */
static const char *spec_usual(const struct cli *cli, const struct spec_opts *spec, const char *said,
                              enum cli_setting setting)
{
    return said || spec->template ? said : cli_config_get(&cli->config, setting);
}

/* An object of the request; an empty one takes a template's away. */
static int spec_set_object(const struct spec_opts *spec, json_t *config, const char *key,
                           json_t *object)
{
    if (spec->template && json_object_size(object) == 0) {
        json_decref(object);
        return 0;
    }
    return json_object_set_new(config, key, object);
}

static int spec_fail_utf8(struct aq_error *err)
{
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the command and options must be UTF-8");
}

static int spec_make_config(const struct cli *cli, const struct spec_opts *spec, unsigned index,
                            json_t *body, struct aq_error *err)
{
    const char *resource_group = spec_usual(cli, spec, spec->resource_group,
                                            SETTING_RESOURCE_GROUP);
    json_t *resources = json_object(), *environ = json_object(), *config = json_object();
    const char *term = spec->input && strcmp(spec->input, "terminal") == 0 ? getenv("TERM") : NULL;
    int r = 0;

    if (term && term[0])
        (void)json_object_set_new(environ, "TERM", json_string(term));
    if (index && spec->array_count)
        spec_add_array(index - 1, spec->array_count, environ);
    for (size_t i = 0; r == 0 && i < spec->resources.count; i++)
        r = cli_amounts_add(spec->resources.items[i], NULL, resources, err);
    if (r == 0)
        r = spec_add_environ(&spec->environ, environ, err);
    if ((spec_set_object(spec, config, "resources", resources)
         | spec_set_object(spec, config, "environ", environ)
         | spec_set_str(config, "scalingGroup", resource_group)
         | (spec->agents.count
                ? json_object_set_new(config, "agent_list", spec_list_to_json(&spec->agents))
                : 0)
         | (spec->no_auto_mount ? json_object_set_new(config, "auto_mount", json_false()) : 0)
         | spec_set_str(config, "agent_selection_policy", spec->prefer_agents ? "preferred" : NULL)
         | json_object_set_new(body, "config", config))
        < 0)
        return spec_fail_utf8(err);
    if (r == 0 && spec->resource_opts.count)
        r = spec_set_resource_opts(&spec->resource_opts, config, err);
    if (r == 0 && spec->mounts.count)
        r = spec_set_mounts(spec, config, err);
    return r == 0 && spec->ports.count ? spec_add_ports(&spec->ports, config, err) : r;
}

/* Which of the owner's sessions it keeps apart from, or together with. */
static int spec_set_group(const struct spec_opts *spec, json_t *body)
{
    const char *name = spec->pack ? spec->pack : spec->spread;
    json_t *group = name ? json_object() : NULL;

    if (!name)
        return 0;
    return spec_set_str(group, "name", name)
           | spec_set_str(group, "direction", spec->pack ? "pack" : "spread")
           | spec_set_str(group, "enforcement", spec->group_strict ? "strict" : "preferred")
           | json_object_set_new(body, "session_group", group);
}

/* Retries, and signals before the end of an attempt. */
static int spec_set_retry(const struct spec_opts *spec, json_t *body)
{
    return spec_set_int(body, "retry", &spec->retry)
           | spec_set_str(body, "retry_on", spec->retry_on)
           | spec_set_duration(body, "retry_delay", &spec->retry_delay)
           | spec_set_int(body, "retry_factor", &spec->retry_factor)
           | spec_set_str(body, "signal", spec->signal)
           | spec_set_str(body, "checkpoint_signal", spec->checkpoint_signal)
           | spec_set_duration(body, "grace", &spec->grace)
           | spec_set_str(body, "resume_command", spec->resume_command);
}

/* Everything that needs no thought. */
static int spec_set_plain(const struct cli *cli, const struct spec_opts *spec, json_t *body)
{
    const char *group = spec_usual(cli, spec, spec->group, SETTING_GROUP);
    const char *image = spec_usual(cli, spec, spec->image, SETTING_IMAGE);
    char starts[CLOCK_ISO_MAX];

    return spec_set_str(body, "template", spec->template) | spec_set_str(body, "image", image)
           | spec_set_str(body, "group", group)
           | spec_set_str(body, "domain", cli_config_get_chosen(&cli->config, SETTING_DOMAIN))
           | spec_set_str(body, "owner_access_key", cli->globals.owner)
           | spec_set_str(body, "input", spec->input)
           | spec_set_str(body, "starts_at", local_date_resolve(spec->starts_at, starts))
           | spec_set_str(body, "tag", spec->tag)
           | spec_set_str(body, "reservation", spec->reservation)
           | spec_set_str(body, "on_failure", spec->on_failure)
           | spec_set_str(body, "on_node_loss", spec->on_node_loss)
           | spec_set_str(body, "network", spec->network)
           | (spec->needs_rdma ? json_object_set_new(body, "rdma", json_true()) : 0)
           | spec_set_str(body, "callback_url", spec->callback_url) | spec_set_retry(spec, body)
           | spec_set_int(body, "priority", &spec->priority)
           | spec_set_int(body, "job_priority", &spec->job_priority)
           | (spec->is_movable ? json_object_set_new(body, "is_movable", json_true()) : 0)
           | (spec->is_preemptible ? json_object_set_new(body, "is_preemptible", json_true()) : 0)
           | (spec->waits_for_capacity ? json_object_set_new(body, "wait_for_capacity", json_true())
                                       : 0)
           | spec_set_group(spec, body) | spec_set_duration(body, "batch_timeout", &spec->timeout)
           | json_object_set_new(body, "dependencies", spec_list_to_json(&spec->after))
           | spec_set_str(body, "array", spec->array)
           | json_object_set_new(body, "enqueueOnly", json_true())
           | json_object_set_new(body, "reuseIfExists", json_false());
}

static int spec_set_command(json_t *body, int argc, char *const argv[])
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;

    if (argc == 0)
        return 0;
    if (argc == 1)
        return spec_set_str(body, "startupCommand", argv[0]);
    strbuf_adds(&line, "exec "); /* no shell between the session and the program */
    spec_quote_command(argc, argv, &line);
    return spec_set_str(body, "startupCommand", line.data);
}

/* NULL = as the template says. */
static const char *spec_type(const struct spec_opts *spec, bool is_batch)
{
    return is_batch ? "batch" : spec->template && !spec->is_interactive ? NULL : "interactive";
}

int spec_to_json(const struct cli *cli, const struct spec_opts *spec, bool is_batch, int argc,
                 char *const argv[], unsigned index, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *stem = spec_make_name(spec, argc, argv);
    AQ_CLEANUP(aq_freep) char *name = index ? aq_format("%s-%u", stem, index) : NULL;
    json_t *body = json_object();
    int r;

    if (spec->pack && spec->spread)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--pack and --spread exclude each other");
    else if (spec->group_strict && !spec->pack && !spec->spread)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--strict is for --pack and --spread");
    else if ((spec_set_str(body, "name", name ? name : stem)
              | spec_set_str(body, "type", spec_type(spec, is_batch))
              | spec_set_plain(cli, spec, body) | spec_set_command(body, argc, argv))
             < 0)
        r = spec_fail_utf8(err);
    else
        r = spec_make_config(cli, spec, index, body, err);
    if (r == 0)
        r = cluster_spec_to_json(spec, body, err);
    if (r < 0) {
        json_decref(body);
        return r;
    }
    *ret = body;
    return 0;
}
