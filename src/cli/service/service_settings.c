/* SPDX-License-Identifier: Apache-2.0 */
/* "service update", "scale", "rm": what changes without a new revision, and the end. */
#include "cli/service/service_settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/verbs.h"

#define SCALING_MAX (64 << 10) /* bytes of a file; the manager has a limit of its own */
#define SHARE_MAX 1e6          /* devices */
#define END_WATCH_USEC (500 * USEC_PER_MSEC)

static int service_add_replicas(const char *text, const char *what, json_t *body,
                                struct aq_error *err)
{
    json_t *value = service_parse_replicas(text);

    if (!value)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s takes a number such as 2, or a range such as 1-8, not '%.40s'",
                            what, text);
    return json_object_set_new(body, "replicas", value);
}

/* The rule of "in_flight=8", "metric:NAME=4" or "prometheus:QUERY=4"; names and queries may have '='.
 * NULL if it is none of these.
 */
static json_t *service_parse_target(const char *text)
{
    static const struct {
        const char *prefix, *signal, *member;
    } kinds[] = { { "metric:", "metric", "name" }, { "prometheus:", "prometheus", "query" } };
    const char *equals = strrchr(text, '=');
    char *end = NULL;
    double value = equals ? strtod(equals + 1, &end) : 0;

    if (!equals || equals == text || end == equals + 1 || *end)
        return NULL;
    for (size_t i = 0; i < AQ_COUNT(kinds); i++) {
        size_t len = strlen(kinds[i].prefix);

        if (strncmp(text, kinds[i].prefix, len) == 0)
            return json_pack("{s:s, s:s%, s:f}", "signal", kinds[i].signal, kinds[i].member,
                             text + len, (size_t)(equals - text) - len, "target", value);
    }
    return json_pack("{s:s%, s:f}", "signal", text, (size_t)(equals - text), "target", value);
}

/* Each --target; the other members of the rules have their defaults. */
static int service_add_targets(const struct cli_list *targets, json_t *body, struct aq_error *err)
{
    json_t *rules = json_array();
    int r = 0;

    for (size_t i = 0; r == 0 && i < targets->count; i++) {
        json_t *rule = service_parse_target(targets->items[i]);

        if (rule)
            (void)json_array_append_new(rules, rule);
        else
            r = aq_fail_kind(
                err, EINVAL, CLI_KIND_USAGE,
                "--target takes SIGNAL=VALUE, such as in_flight=8, "
                "metric:vllm:num_requests_waiting=4 or prometheus:QUERY=4, not '%.40s'",
                targets->items[i]);
    }
    (void)json_object_set_new(body, "scaling.rules", rules);
    return r;
}

static int service_add_share(const char *member, const char *text, json_t *share,
                             struct aq_error *err)
{
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;

    if (!text)
        return 0;
    if (end == text || *end || !(value > 0 && value <= SHARE_MAX))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--share-%s takes a part of a device such as 0.25, not '%.40s'", member,
                            text);
    return json_object_set_new(share, member, json_real(value));
}

/* "scaling.share"; null = its bounds are taken away. */
static int service_add_shares(const struct service_settings *settings, json_t *body,
                              struct aq_error *err)
{
    bool is_none = settings->share_max && strcmp(settings->share_max, "none") == 0;
    json_t *share;
    int r;

    if (!settings->share_min && !settings->share_max)
        return 0;
    if (is_none && settings->share_min)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--share-max none takes both bounds away; leave --share-min out");
    share = is_none ? json_null() : json_object();
    (void)json_object_set_new(body, "scaling.share", share);
    if (is_none)
        return 0;
    r = service_add_share("min", settings->share_min, share, err);
    return r < 0 ? r : service_add_share("max", settings->share_max, share, err);
}

static int service_add_scaling(const struct service_settings *settings, json_t *body,
                               struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *rules;
    int r;

    if (!settings->scaling) {
        r = settings->targets.count ? service_add_targets(&settings->targets, body, err) : 0;
        return r < 0 ? r : service_add_shares(settings, body, err);
    }
    if (settings->targets.count || settings->window.is_set || settings->idle.is_set
        || settings->share_min || settings->share_max)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--scaling is given in place of --target, --window, --idle, "
                            "--share-min and --share-max");
    if ((r = cli_read_file(settings->scaling, SCALING_MAX, &text, err)) < 0)
        return aq_error_wrap(err, "--scaling");
    if (!(rules = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL)))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--scaling: '%.100s' is not a JSON object",
                            settings->scaling);
    return json_object_set_new(body, "scaling", rules);
}

int service_settings_add(const struct service_settings *settings, json_t *body,
                         struct aq_error *err)
{
    int r = settings->replicas ? service_add_replicas(settings->replicas, "--replicas", body, err)
                               : 0;

    return r < 0 ? r : service_add_scaling(settings, body, err);
}

static int service_change(struct cli *cli, const char *name, const json_t *body,
                          struct aq_error *err)
{
    json_auto_t *service = NULL;
    int r = cli_thing_call(cli, METHOD_PATCH, &model_services, name, "", body, &service, err);

    return r < 0 ? r : service_print_line(cli, service, err);
}

/* ---- update ---- */

struct service_update_opts {
    struct service_settings settings;
    struct service_rollout_opts rollout;
    int public; /* CLI_CHOICE */
    const char *note;
};

static const struct cli_opt update_opts[] = {
    SERVICE_SETTINGS_ROWS(struct service_update_opts),
    { 0, "public", CLI_CHOICE, offsetof(struct service_update_opts, public), "yes|no",
      "whether requests without a token are accepted", "public" },
    SERVICE_ROLLOUT_ROWS(struct service_update_opts),
    { 0, "note", CLI_STR, offsetof(struct service_update_opts, note), "TEXT",
      "reason of the change; 'service history' shows it", "note" },
    CLI_OPT_END,
};

/* The manager takes rules as a whole: what no option names is as the service has it. */
static int service_complete_scaling(struct cli *cli, const char *name, json_t *body,
                                    struct aq_error *err)
{
    json_t *given = json_object_get(body, "scaling"), *present, *share;
    json_auto_t *service = NULL, *merged = NULL;
    int r = service_get(cli, name, &service, err);

    if (r < 0)
        return r;
    present = json_object_get(service, "scaling");
    merged = json_is_object(present) ? json_copy(present) : json_object();
    share = json_object_get(given, "share");
    if (json_is_object(share) && json_is_object(json_object_get(present, "share")))
        (void)json_object_update_missing(share, json_object_get(present, "share"));
    (void)json_object_update(merged, given);
    if (json_is_null(share))
        (void)json_object_del(merged, "share");
    return json_object_set(body, "scaling", merged);
}

static int service_update(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_update_opts *opts = data;
    json_auto_t *body = json_object();
    int r = cli_options_add(update_opts, opts, body, err);

    (void)argc;
    if (r == 0)
        r = service_settings_add(&opts->settings, body, err);
    if (r == 0)
        r = service_rollout_add(&opts->rollout, body, err);
    if (r == 0 && json_object_size(body) == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "name a change, such as --cap 8; image, model and command are changed "
                            "by 'aliquot service deploy'");
    service_nest(body);
    if (r == 0 && json_object_get(body, "scaling") && !opts->settings.scaling)
        r = service_complete_scaling(cli, argv[0], body, err);
    return r < 0 ? r : service_change(cli, argv[0], body, err);
}

const struct cli_verb verb_service_update = {
    .name = "service update",
    .args = "SERVICE",
    .summary = "Change limits and other settings of a service, at once",
    .details = "Replicas keep running. What they are made from (image, model, command,\n"
               "resources) is changed by 'aliquot service deploy'. --tag '' removes the tag.",
    .examples = "aliquot service update digits --cap 16 --queue-timeout 30s",
    .opts = update_opts,
    .opts_size = sizeof(struct service_update_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_update,
};

/* ---- scale ---- */

struct service_scale_opts {
    const char *note;
    struct service_wait_opts waiting;
};

static const struct cli_opt scale_opts[] = {
    { 0, "note", CLI_STR, offsetof(struct service_scale_opts, note), "TEXT",
      "reason of the change; 'service history' shows it", "note" },
    SERVICE_WAIT_ROWS(offsetof(struct service_scale_opts, waiting)),
    CLI_OPT_END,
};

static int service_scale(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_scale_opts *opts = data;
    json_auto_t *body = json_object();
    int r = service_add_replicas(argv[1], "service scale", body, err);

    (void)argc;
    if (r == 0)
        r = cli_options_add(scale_opts, opts, body, err);
    if (r == 0)
        r = service_change(cli, argv[0], body, err);
    return r < 0 ? r : service_wait_if(cli, &opts->waiting, argv[0], 0, err);
}

const struct cli_verb verb_service_scale = {
    .name = "service scale",
    .args = "SERVICE N|MIN-MAX",
    .summary = "Change how many replicas a service has",
    .details = "With 0 it sleeps. Replicas that are too many take no new requests and end when\n"
               "they have answered those under way.",
    .examples = "aliquot service scale digits 4 --wait",
    .opts = scale_opts,
    .opts_size = sizeof(struct service_scale_opts),
    .min_args = 2,
    .max_args = 2,
    .run = service_scale,
};

/* ---- rm ---- */

struct service_rm_opts {
    bool force, yes, wait;
};

static const struct cli_opt rm_opts[] = {
    { 'f', "force", CLI_FLAG, offsetof(struct service_rm_opts, force), NULL,
      "end replicas now, with the requests that are under way", "force" },
    { 'y', "yes", CLI_FLAG, offsetof(struct service_rm_opts, yes), NULL, "do not ask" },
    { 'w', "wait", CLI_FLAG, offsetof(struct service_rm_opts, wait), NULL,
      "until their replicas have ended" },
    CLI_OPT_END,
};

/* Until it has ended; by its id, as its name may be taken again. */
static int service_rm_await(struct cli *cli, const char *id, struct aq_error *err)
{
    int64_t lost_usec = 0;

    for (;;) {
        json_auto_t *service = NULL;
        int r = service_get(cli, id, &service, err);

        if (r == -ENOENT || (r == 0 && strcmp(output_text(service, "status"), "ended") == 0))
            return 0;
        if (r < 0 && !cli_awaits_manager(cli, err, true, &lost_usec))
            return r;
        if (r == 0)
            lost_usec = 0;
        (void)usleep(END_WATCH_USEC);
    }
}

static int service_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_rm_opts *opts = data;
    json_auto_t *ids = json_array(), *body = json_object();
    int r = argc == 1 ? cli_confirm(opts->yes, err, "End service %s and its replicas?", argv[0])
                      : cli_confirm(opts->yes, err, "End %d services and their replicas?", argc);

    if (r == 0)
        r = cli_options_add(rm_opts, opts, body, err);
    for (int i = 0; r == 0 && opts->wait && i < argc; i++) {
        json_auto_t *service = NULL;

        r = service_get(cli, argv[i], &service, err);
        (void)json_array_append(ids, json_object_get(service, "id"));
    }
    if (r == 0)
        r = cli_things_call(cli, METHOD_DELETE, &model_services, "", body, argc, argv, err);
    for (size_t i = 0; r == 0 && i < json_array_size(ids); i++)
        r = service_rm_await(cli, json_string_value(json_array_get(ids, i)), err);
    return r;
}

const struct cli_verb verb_service_rm = {
    .name = "service rm",
    .args = "SERVICE...",
    .summary = "End services",
    .details = "New requests are refused at once; replicas end when they have answered those\n"
               "under way, after the drain timeout at the latest. Tokens end with their service.",
    .examples = "aliquot service rm --yes --wait digits",
    .opts = rm_opts,
    .opts_size = sizeof(struct service_rm_opts),
    .min_args = 1,
    .max_args = -1,
    .run = service_rm,
};
