/* SPDX-License-Identifier: Apache-2.0 */
/* "admin config": the configuration tree, which Backend.AI keeps in etcd. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define CONFIG_FILE_MAX (8u << 20) /* what the manager takes */

struct config_tree_opts {
    bool prefix, dry_run;
    const char *scope;
};

#define CONFIG_TREE_SCOPE                                                         \
    {                                                                             \
        's', "scope", CLI_STR, offsetof(struct config_tree_opts, scope), "SCOPE", \
            "global (the default), sgroup/RESOURCE-GROUP or node/AGENT", "scope"  \
    }

/* 'body', taken, has the members that are not options. It is NULL for what is not UTF-8. */
static int config_tree_call(struct cli *cli, const char *path, const struct config_tree_opts *opts,
                            json_t *body, json_t **ret, struct aq_error *err)
{
    int r = body ? cli_options_add(cli->verb->opts, opts, body, err) : 0;

    if (r == 0)
        return cli_send(cli, METHOD_POST, path, body, "keys and values are UTF-8", ret, err);
    json_decref(body);
    return r;
}

/* What a change has done: to users a note that nothing looks at its keys. */
static int config_tree_report(const struct cli *cli, const json_t *answer, struct strbuf *text,
                              struct aq_error *err)
{
    const json_t *named = json_object_get(answer, "without_effect");
    size_t count = (size_t)json_integer_value(json_object_get(answer, "kept_without_effect"));
    const char *first = json_string_value(json_array_get(named, 0));

    if (!output_is_human(&cli->output)) {
        strbuf_clear(text);
        output_document(&cli->output, answer, text);
    }
    if (count == 1 && first)
        cli_note(cli, "kept, without effect: Aliquot does nothing with '%s'", first);
    else if (count)
        cli_note(cli, "%zu are kept, without effect: Aliquot does nothing with '%s' and such",
                 count, first ? first : "");
    return text->len ? cli_print(text, err) : 0;
}

/* ---- get, export ---- */

static const struct cli_opt get_opts[] = {
    { 'p', "prefix", CLI_FLAG, offsetof(struct config_tree_opts, prefix), NULL,
      "all below KEY, as JSON", "prefix" },
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

/* As Backend.AI prints it; YAML where that is wanted. */
static void config_tree_write(const struct cli *cli, const json_t *tree, struct strbuf *out)
{
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (cli->output.format == OUTPUT_YAML) {
        yaml_write(tree, out);
    } else {
        text = json_dumps(tree, JSON_INDENT(4) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
        strbuf_addf(out, "%s\n", text);
    }
}

static int config_tree_get(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct config_tree_opts *opts = data;
    json_auto_t *answer = NULL;
    const json_t *result;
    int r = config_tree_call(cli, "/config/get", opts, json_pack("{s:s}", "key", argv[0]), &answer,
                             err);

    (void)argc;
    if (r < 0)
        return r;
    result = json_object_get(answer, "result");
    if (json_is_null(result)) {
        cli_hint(cli, "see what is below it: aliquot admin config get --prefix '%.100s'", argv[0]);
        return aq_fail(err, ENOENT, "'%.200s' has no value", argv[0]);
    }
    if (json_is_string(result) && output_is_human(&cli->output))
        strbuf_addf(&out, "%s\n", json_string_value(result));
    else
        config_tree_write(cli, result, &out);
    return cli_print(&out, err);
}

const struct cli_verb verb_admin_config_get = {
    .name = "admin config get",
    .args = "KEY",
    .summary = "Print a value of the configuration tree, or all below a key",
    .details =
        "The tree has the keys that Backend.AI keeps in etcd. Of a scope's keys that it has\n"
        "no value for, a node takes those of its resource group, and then the global ones.\n"
        "--prefix prints keys as nested JSON; '' is the whole tree.",
    .examples = "aliquot admin config get manager/status\n"
                "aliquot admin config get --prefix config/docker",
    .opts = get_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .min_args = 1,
    .max_args = 1,
    .run = config_tree_get,
};

static const struct cli_opt export_opts[] = {
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

static int config_tree_export(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_file = argc > 0 && strcmp(argv[0], "-") != 0;
    json_auto_t *answer = NULL;
    int r = config_tree_call(cli, "/config/get", data,
                             json_pack("{s:s, s:b}", "key", "", "prefix", true), &answer, err);

    if (r < 0)
        return r;
    config_tree_write(cli, json_object_get(answer, "result"), &out);
    return is_file ? fs_write_atomic(AT_FDCWD, argv[0], out.data, out.len, 0600, err)
                   : cli_print(&out, err);
}

const struct cli_verb verb_admin_config_export = {
    .name = "admin config export",
    .args = "[FILE]",
    .summary = "Write the whole configuration tree as JSON",
    .details = "'admin config import' and Backend.AI's 'mgr etcd put-json' read it. The file can\n"
               "be read by its owner only, since values may be passwords.",
    .examples = "aliquot admin config export etcd_backup.json",
    .opts = export_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .max_args = 1,
    .run = config_tree_export,
};

/* ---- set, import ---- */

static const struct cli_opt set_opts[] = {
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

static int config_tree_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *answer = NULL;
    int r = config_tree_call(cli, "/config/set", data,
                             json_pack("{s:s, s:s}", "key", argv[0], "value", argv[1]), &answer,
                             err);

    (void)argc;
    return r < 0 ? r : config_tree_report(cli, answer, &out, err);
}

const struct cli_verb verb_admin_config_set = {
    .name = "admin config set",
    .args = "KEY VALUE",
    .summary = "Set a value of the configuration tree",
    .details = "What Aliquot knows is checked, and takes effect at once: manager/status,\n"
               "manager/announcement, config/api/allow-origins and\n"
               "config/plugins/scheduler/fifo/num_retries_to_skip. Other keys are kept, without\n"
               "effect. In a name, '/' is written as %2F and '%' as %25.",
    .examples = "aliquot admin config set manager/announcement 'Maintenance at 18:00'\n"
                "aliquot admin config set config/api/allow-origins https://console.example.org",
    .opts = set_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .min_args = 2,
    .max_args = 2,
    .run = config_tree_set,
};

static const struct cli_opt import_opts[] = {
    { 0, "dry-run", CLI_FLAG, offsetof(struct config_tree_opts, dry_run), NULL,
      "check it and say what would change, and change nothing", "dry_run" },
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

static int config_tree_read_file(const char *name, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_error_t where;
    int r = cli_read_file(name, CONFIG_FILE_MAX, &text, err);

    if (r < 0)
        return r;
    *ret = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(*ret))
        return 0;
    if (*ret)
        return aq_fail(err, EINVAL, "'%.100s' has no JSON object", name);
    return aq_fail(err, EINVAL, "'%.100s' is not JSON: line %d: %s", name, where.line, where.text);
}

static int config_tree_import(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *prefix = argc > 1 ? argv[0] : "";
    const struct config_tree_opts *opts = data;
    json_auto_t *tree = NULL, *answer = NULL;
    int r = config_tree_read_file(argv[argc - 1], &tree, err);

    if (r == 0)
        r = config_tree_call(cli, "/aliquot/v1/config/import", opts,
                             json_pack("{s:s, s:O}", "prefix", prefix, "tree", tree), &answer, err);
    if (r < 0)
        return r;
    strbuf_addf(&out, "%s%lld new, %lld changed, %lld as they were\n",
                opts->dry_run ? "would be: " : "",
                (long long)json_integer_value(json_object_get(answer, "added")),
                (long long)json_integer_value(json_object_get(answer, "changed")),
                (long long)json_integer_value(json_object_get(answer, "unchanged")));
    return config_tree_report(cli, answer, &out, err);
}

const struct cli_verb verb_admin_config_import = {
    .name = "admin config import",
    .args = "[PREFIX] FILE",
    .summary = "Add what a file of JSON says to the configuration tree, all or nothing",
    .details = "The file is of 'admin config export' or of Backend.AI's 'mgr etcd get --prefix';\n"
               "'-' is the standard input. It comes below PREFIX. Keys that it does not have stay\n"
               "as they are. A value that a key cannot have refuses all.",
    .examples = "aliquot admin config import --dry-run etcd_backup.json\n"
                "aliquot admin config import etcd_backup.json",
    .opts = import_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .min_args = 1,
    .max_args = 2,
    .run = config_tree_import,
};

/* ---- rm, move ---- */

static const struct cli_opt rm_opts[] = {
    { 'p', "prefix", CLI_FLAG, offsetof(struct config_tree_opts, prefix), NULL,
      "with all below KEY", "prefix" },
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

static int config_tree_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct config_tree_opts *opts = data;
    json_auto_t *answer = NULL;
    int r = config_tree_call(cli, "/config/delete", opts, json_pack("{s:s}", "key", argv[0]),
                             &answer, err);

    (void)argc;
    if (r < 0)
        return r;
    if (!json_integer_value(json_object_get(answer, "removed")))
        cli_note(cli, "there was nothing at '%s'", argv[0]);
    return config_tree_report(cli, answer, &out, err);
}

const struct cli_verb verb_admin_config_rm = {
    .name = "admin config rm",
    .args = "KEY",
    .summary = "Delete a key of the configuration tree",
    .details =
        "What Aliquot knows is then as if it had never been set. A key that is not there is\n"
        "no error.",
    .examples = "aliquot admin config rm manager/announcement\n"
                "aliquot admin config rm --prefix config/redis",
    .opts = rm_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .min_args = 1,
    .max_args = 1,
    .run = config_tree_rm,
};

static const struct cli_opt move_opts[] = {
    CONFIG_TREE_SCOPE,
    CLI_OPT_END,
};

static int config_tree_move(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *answer = NULL;
    int r = config_tree_call(cli, "/aliquot/v1/config/move", data,
                             json_pack("{s:s, s:s}", "from", argv[0], "to", argv[1]), &answer, err);

    (void)argc;
    return r < 0 ? r : config_tree_report(cli, answer, &out, err);
}

const struct cli_verb verb_admin_config_move = {
    .name = "admin config move",
    .args = "FROM TO",
    .summary = "Move a key of the configuration tree with all below it",
    .details = "What is at the same keys already is replaced.",
    .examples =
        "aliquot admin config move config/plugins/scheduler/old config/plugins/scheduler/new",
    .opts = move_opts,
    .opts_size = sizeof(struct config_tree_opts),
    .min_args = 2,
    .max_args = 2,
    .run = config_tree_move,
};
