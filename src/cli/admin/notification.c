/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands of channels and rules share. */
#include "cli/admin/notification.h"

#include <errno.h>
#include <string.h>

#include "base/uuid.h"
#include "cli/request.h"

static json_t *notification_items(struct cli *cli, const char *kind, json_t **ret_answer,
                                  struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    strbuf_addf(&path, "/aliquot/v1/notification-%ss", kind);
    if (cli_call(cli, METHOD_GET, path.data, NULL, ret_answer, err) < 0)
        return NULL;
    return json_object_get(*ret_answer, "items");
}

int notification_ls(struct cli *cli, const char *kind, const struct column *columns,
                    struct aq_error *err)
{
    json_auto_t *answer = NULL;
    const json_t *items = notification_items(cli, kind, &answer, err);

    return answer ? list_print(cli, columns, items, err) : -err->code;
}

int notification_id(struct cli *cli, const char *kind, const char *name, struct strbuf *id,
                    struct aq_error *err)
{
    json_auto_t *answer = NULL;
    const char *found = NULL;
    json_t *items, *row;
    struct uuid uuid;
    size_t i;

    if (uuid_parse(name, &uuid) == 0) {
        strbuf_adds(id, name);
        return 0;
    }
    items = notification_items(cli, kind, &answer, err);
    if (!answer)
        return -err->code;
    json_array_foreach(items, i, row) {
        const char *its = json_string_value(json_object_get(row, "name"));

        if (!its || strcmp(its, name) != 0)
            continue;
        if (found)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "several have the name '%.64s'; give the id of one", name);
        found = json_string_value(json_object_get(row, "id"));
    }
    if (!found)
        return aq_fail(err, ENOENT, "there is no notification %s '%.64s'", kind, name);
    strbuf_adds(id, found);
    return 0;
}

int notification_path(struct cli *cli, const char *kind, const char *name, struct strbuf *path,
                      struct aq_error *err)
{
    strbuf_addf(path, "/notifications/%ss/", kind);
    return notification_id(cli, kind, name, path, err);
}

int notification_info(struct cli *cli, const char *kind, const char *name,
                      const struct column *columns, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *answer = NULL;
    int r = notification_path(cli, kind, name, &path, err);

    if (r == 0)
        r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    return r < 0 ? r : record_print(cli, columns, json_object_get(answer, kind), err);
}

/* ---- changes ---- */

int notification_create(struct cli *cli, const char *kind, const char *name,
                        const struct notification_opts *opts, json_t *body, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *own = body, *answer = NULL;
    const char *id;
    int r = cli_options_add(cli->verb->opts, opts, body, err);

    (void)json_object_set_new(body, "enabled", json_boolean(!opts->disabled));
    if (r == 0 && json_object_set_new(body, "name", json_string(name)) < 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--name is not UTF-8");
    strbuf_addf(&path, "/notifications/%ss", kind);
    if (r == 0)
        r = cli_call(cli, METHOD_POST, path.data, own, &answer, err);
    id = json_string_value(json_object_get(json_object_get(answer, kind), "id"));
    if (r == 0)
        cli_note(cli, "%s %s is made", kind, id ? id : name);
    return r;
}

int notification_set(struct cli *cli, const char *kind, const char *name,
                     const struct notification_opts *opts, json_t *body, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *own = body;
    int r = cli_options_add(cli->verb->opts, opts, body, err);

    if (r == 0 && json_object_size(body) == 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "nothing is to be changed; see --help");
    if (r == 0)
        r = notification_path(cli, kind, name, &path, err);
    return r < 0 ? r : cli_call(cli, METHOD_PATCH, path.data, own, NULL, err);
}

int notification_rm(struct cli *cli, const char *kind, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

        r = notification_path(cli, kind, argv[i], &path, err);
        if (r == 0)
            r = cli_call(cli, METHOD_DELETE, path.data, NULL, NULL, err);
    }
    return r;
}
