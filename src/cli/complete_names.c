/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the manager knows, for completion. */
#include "cli/complete_names.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/client.h"
#include "http/url.h"
#include "model/status.h"

#define COMPLETE_PROFILE "PROFILE" /* in usages: a profile of this user */
#define COMPLETE_KERNEL "HOSTNAME" /* of a kernel of a session */

/* The statuses of those that live follow. */
#define COMPLETE_LIVE_PATH "/aliquot/v1/sessions?limit=100&status="

/* Where names come from: a list of the manager, and the members to show. The
 * later rows for a word count if the earlier give nothing; of images all count.
 */
static const struct complete_source {
    const char *word, *path, *list, *name, *meaning;
} complete_sources[] = {
    { "SESSION", COMPLETE_LIVE_PATH, "items", "name", "status" },
    { "SESSION", "/aliquot/v1/sessions?limit=100", "items", "name", "status" },
    { "AGENT", "/aliquot/v1/agents?limit=100", "items", "id", "status" },
    { "MANAGER", "/aliquot/v1/managers", "items", "name", "role" },
    { "IMAGE", "/aliquot/v1/image-aliases", "items", "alias", "image" },
    { "IMAGE", "/aliquot/v1/images?limit=100", "items", "names", "id" },
    { "ALIAS", "/aliquot/v1/image-aliases", "items", "alias", "image" },
    { "RESOURCE-GROUP", "/aliquot/v1/resource-groups?limit=100", "items", "name", "description" },
    { "RESOURCE-GROUP", "/scaling-groups", "scaling_groups", "name", NULL },
    { "FOLDER", "/aliquot/v1/folders?limit=100", "items", "name", "status" },
    { "TEMPLATE", "/aliquot/v1/templates", "items", "name", "kind" },
    { "PIPELINE", "/aliquot/v1/pipelines?limit=100", "items", "name", NULL },
    { "RUN", "/aliquot/v1/pipeline-runs?limit=100", "items", "name", "state" },
    { "SERVICE", "/aliquot/v1/model-services?limit=100", "items", "name", "status" },
    { "INVITATION", "/folders/invitations/list", "invitations", "id", "vfolder_name" },
    { "E-MAIL", "/aliquot/v1/users?limit=100", "items", "email", "full_name" },
    { "ACCESS-KEY", "/aliquot/v1/keypairs?limit=100", "items", "access_key", "user" },
    { "DOMAIN", "/aliquot/v1/domains?limit=100", "items", "name", "description" },
    { "PROJECT", "/aliquot/v1/groups?limit=100", "items", "name", "domain" },
    { "POLICY", "/aliquot/v1/keypair-policies?limit=100", "items", "name", NULL },
    { "CHANNEL", "/aliquot/v1/notification-channels", "items", "name", "channel_type" },
    { "RULE", "/aliquot/v1/notification-rules", "items", "name", "rule_type" },
    { "REGISTRY", "/aliquot/v1/registries", "items", "name", "username" },
    { "SLOT=AMOUNT", "/config/resource-slots", NULL, NULL, NULL },
};

static bool complete_names_is(const struct complete_source *source, const char *word, size_t len)
{
    return strlen(source->word) == len && memcmp(source->word, word, len) == 0;
}

bool complete_names_has(const char *word, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(complete_sources); i++)
        if (complete_names_is(&complete_sources[i], word, len))
            return true;
    return (len == strlen(COMPLETE_PROFILE) && memcmp(word, COMPLETE_PROFILE, len) == 0)
           || (len == strlen(COMPLETE_KERNEL) && memcmp(word, COMPLETE_KERNEL, len) == 0);
}

/* A name with control characters would be taken for several, or steer the terminal; one that begins
 * with '-' for an option.
 */
static void complete_names_offer(const char *prefix, const char *typed, const char *name,
                                 const char *sign, const char *meaning, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf clean = STRBUF_INIT;
    uint32_t code;

    if (!name || strncmp(name, typed, strlen(typed)) != 0 || (name[0] == '-' && !prefix[0])
        || !utf8_is_shown(name, strlen(name), &code))
        return;
    strbuf_addf(out, "%s%s%s\t", prefix, name, sign);
    utf8_write_printable(meaning ? meaning : "", meaning ? strlen(meaning) : 0, &clean);
    for (size_t i = 0; i < clean.len; i++)
        strbuf_addc(out, clean.data[i] == '\n' || clean.data[i] == '\t' ? ' ' : clean.data[i]);
    strbuf_addc(out, '\n');
}

/* "names" of an image is a list, everything else a text. */
static void complete_names_offer_row(const struct complete_source *source, const json_t *row,
                                     const char *prefix, const char *typed, struct strbuf *out)
{
    const json_t *name = json_object_get(row, source->name), *item;
    const char *meaning = source->meaning ? json_string_value(json_object_get(row, source->meaning))
                                          : NULL;
    size_t i;

    json_array_foreach(name, i, item)
        complete_names_offer(prefix, typed, json_string_value(item), "", meaning, out);
    complete_names_offer(prefix, typed, json_string_value(name), "", meaning, out);
}

static void complete_names_path(const struct cli *cli, const struct complete_source *source,
                                struct strbuf *path)
{
    strbuf_adds(path, source->path);
    if (strcmp(source->path, "/scaling-groups") == 0)
        cli_path_query(path, "group", cli_config_get(&cli->config, SETTING_GROUP));
    for (int s = 0; strcmp(source->path, COMPLETE_LIVE_PATH) == 0 && s < SESSION_STATUS_COUNT; s++)
        if (!session_is_terminal(s))
            strbuf_addf(path, "%s%s", s ? "," : "", session_status_name(s));
    if (strcmp(source->word, "SESSION") == 0)
        cli_path_query(path, "owner_access_key", cli->globals.owner);
}

static void complete_names_read(struct cli *cli, const struct complete_source *source,
                                const char *prefix, const char *typed, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *answer = NULL, *row;
    const char *key;
    size_t i;

    complete_names_path(cli, source, &path);
    if (cli_call(cli, METHOD_GET, path.data, NULL, &answer, NULL) < 0)
        return;
    if (source->list) {
        json_array_foreach(json_object_get(answer, source->list), i, row)
            complete_names_offer_row(source, row, prefix, typed, out);
    } else {
        json_object_foreach(answer, key, row)
            complete_names_offer(prefix, typed, key, "=", json_string_value(row), out);
    }
    json_decref(answer);
}

static void complete_names_of_profiles(struct cli *cli, const char *prefix, const char *typed,
                                       struct strbuf *out)
{
    json_t *profiles = NULL, *settings;
    const char *name;

    if (cli_profiles_read(&cli->config, &profiles, NULL) < 0)
        return;
    json_object_foreach(profiles, name, settings)
        complete_names_offer(prefix, typed, name, "",
                             json_string_value(json_object_get(settings, "endpoint")), out);
    json_decref(profiles);
}

/* Kernels of several sessions have the same names: each is offered once. */
static void complete_names_offer_kernels(const json_t *session, json_t *offered, const char *prefix,
                                         const char *typed, struct strbuf *out)
{
    const json_t *kernel;
    size_t i;

    json_array_foreach(json_object_get(session, "kernels"), i, kernel) {
        const char *name = json_string_value(json_object_get(kernel, "hostname"));

        if (!name || json_object_get(offered, name))
            continue;
        (void)json_object_set_new(offered, name, json_true());
        complete_names_offer(prefix, typed, name, "",
                             json_string_value(json_object_get(session, "name")), out);
    }
}

static void complete_names_of_kernels(struct cli *cli, const char *session, const char *prefix,
                                      const char *typed, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *offered = json_object();
    json_t *answer = NULL, *row;
    size_t i;

    if (session) {
        strbuf_adds(&path, "/aliquot/v1/sessions/");
        url_encode(&path, session);
        cli_path_query(&path, "owner_access_key", cli->globals.owner);
    } else {
        complete_names_path(cli, &complete_sources[0], &path);
    }
    if (cli_call(cli, METHOD_GET, path.data, NULL, &answer, NULL) < 0)
        return;
    if (session)
        complete_names_offer_kernels(answer, offered, prefix, typed, out);
    json_array_foreach(json_object_get(answer, "items"), i, row)
        complete_names_offer_kernels(row, offered, prefix, typed, out);
    json_decref(answer);
}

void complete_names(struct cli *cli, const char *word, const char *session, const char *prefix,
                    const char *typed, struct strbuf *out)
{
    size_t before = out->len, len = strlen(word);

    if (cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, NULL) < 0)
        return;
    if (strcmp(word, COMPLETE_PROFILE) == 0)
        complete_names_of_profiles(cli, prefix, typed, out);
    if (strcmp(word, COMPLETE_KERNEL) == 0)
        complete_names_of_kernels(cli, session, prefix, typed, out);
    for (size_t i = 0; i < AQ_COUNT(complete_sources); i++)
        if (complete_names_is(&complete_sources[i], word, len)
            && (out->len == before || strcmp(word, "IMAGE") == 0))
            complete_names_read(cli, &complete_sources[i], prefix, typed, out);
}
