/* SPDX-License-Identifier: Apache-2.0 */
/* "doctor": asks the daemons' programs what they need of this machine. */
#include "cli/admin/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/program.h"
#include "check/check.h"
#include "cli/verbs.h"

#define PROGRAM_MSEC 120000 /* a trial container has 20 s, and is tried three times at most */
#define PARTS_MAX 8

struct doctor_opts {
    const char *config;
};

static const struct cli_opt doctor_opts[] = {
    { 0, "config", CLI_STR, offsetof(struct doctor_opts, config), "FILE",
      "settings of the manager, or of the agent; name its parts" },
    CLI_OPT_END,
};

/* Whose parts these are; the cluster is this program's own. */
static const struct doctor_program {
    const char *name;
    const char *parts[4];
} doctor_programs[] = {
    { "aliquot-manager", { "manager", NULL } },
    { "aliquot-agent", { "agent", "containers", "gpu", NULL } },
    { "aliquot-proxy", { "proxy", NULL } },
    { "aliquot-storage", { "storage", NULL } },
    { "aliquot-web", { "web", NULL } },
};
#define CLUSTER "cluster"

static bool doctor_wants(const char *part, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], part) == 0)
            return true;
    return argc == 0;
}

static bool doctor_knows(const char *part)
{
    for (size_t i = 0; i < AQ_COUNT(doctor_programs); i++)
        for (const char *const *p = doctor_programs[i].parts; *p; p++)
            if (strcmp(*p, part) == 0)
                return true;
    return strcmp(part, CLUSTER) == 0;
}

/* ---- asking ---- */

void doctor_add_lines(json_t *findings, const char *lines)
{
    while (*lines) {
        size_t len = strcspn(lines, "\n");
        json_t *finding = json_loadb(lines, len, 0, NULL);

        if (finding)
            (void)json_array_append_new(findings, finding);
        lines += len + (lines[len] == '\n');
    }
}

/* What is to be said in the place of a program that said nothing, or not all. */
static void doctor_add_failure(const struct doctor_program *program, const char *part,
                               enum check_level level, const char *text, json_t *findings)
{
    json_t *finding = json_pack(
        "{s:s+, s:s, s:s, s:s, s:s, s:s, s:s+}", "id", part, ".program", "part", part, "title",
        program->name, "level", check_level_name(level), "text", text, "meaning",
        "nothing else can be said of this part", "remedy", "apt install ", program->name);

    (void)json_array_append_new(findings, finding);
}

static void doctor_ask(const struct doctor_program *program, const char *config, int argc,
                       char **argv, json_t *findings)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf lines = STRBUF_INIT;
    struct aq_error why = { 0 };
    AQ_CLEANUP(aq_freep) char *path = cli_find_program(program->name, &why);
    const char *args[PARTS_MAX + 5] = { path };
    size_t count = 1, options;

    if (config) {
        args[count++] = "--config";
        args[count++] = config;
    }
    args[count++] = "check";
    options = count;
    for (const char *const *part = program->parts; *part; part++)
        if (doctor_wants(*part, argc, argv))
            args[count++] = *part;
    if (count == options)
        return;
    if (!path) {
        doctor_add_failure(program, args[options], CHECK_ABSENT, why.text, findings);
        return;
    }
    if (program_run((char *const *)(uintptr_t)args, NULL, PROGRAM_MSEC, &lines, &why) < 0) {
        doctor_add_lines(findings, lines.data);
        doctor_add_failure(program, args[options], CHECK_MISSING, why.text, findings);
    } else {
        doctor_add_lines(findings, lines.data);
    }
}

/* ---- the verb ---- */

bool doctor_is_unfit(const json_t *findings, char *const *parts, int count)
{
    json_t *finding;
    size_t i;

    json_array_foreach(findings, i, finding) {
        const char *level = json_string_value(json_object_get(finding, "level"));
        const char *part = json_string_value(json_object_get(finding, "part"));
        bool is_absent = level && strcmp(level, check_level_name(CHECK_ABSENT)) == 0;

        if (level && strcmp(level, check_level_name(CHECK_MISSING)) == 0)
            return true;
        for (int p = 0; is_absent && part && p < count; p++)
            if (strcmp(parts[p], part) == 0)
                return true;
    }
    return false;
}

static int doctor_check_args(const struct doctor_opts *opts, int argc, char **argv,
                             struct aq_error *err)
{
    bool is_manager = doctor_wants("manager", argc, argv), is_agent = false;

    for (int i = 0; i < argc; i++)
        if (!doctor_knows(argv[i]))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "there is no part '%.40s'; there are: manager, agent, containers, "
                                "gpu, proxy, storage, web, cluster",
                                argv[i]);
    for (const char *const *part = doctor_programs[1].parts; *part; part++)
        is_agent |= doctor_wants(*part, argc, argv);
    if (opts->config && is_manager == is_agent)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--config: name the parts that these settings are of: manager, or some "
                            "of agent, containers, gpu");
    return 0;
}

static const struct column doctor_columns[] = {
    { "id", "CHECK", COLUMN_TEXT, COLUMN_IS_NAME },
    { "part", "PART", COLUMN_TEXT, 0 },
    { "title", "TITLE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "level", "LEVEL", COLUMN_TEXT, 0 },
    { "text", "FINDING", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "meaning", "MEANING", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    { "remedy", "REMEDY", COLUMN_TEXT, COLUMN_IS_WIDE | COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static int doctor_print(struct cli *cli, const json_t *findings, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct output *o = &cli->output;
    int r = 0;

    if (o->format == OUTPUT_TABLE && !o->columns && !o->sort)
        doctor_show(o, findings, &out);
    else
        r = output_list(o, doctor_columns, findings, &out, err);
    return r < 0 ? r : cli_print(&out, err);
}

static int doctor_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct doctor_opts *opts = data;
    json_t *findings = json_array();
    int r = doctor_check_args(opts, argc, argv, err);

    for (size_t i = 0; r == 0 && i < AQ_COUNT(doctor_programs); i++)
        doctor_ask(&doctor_programs[i], opts->config, argc, argv, findings);
    if (r == 0 && doctor_wants(CLUSTER, argc, argv))
        r = doctor_look_at_cluster(cli, findings, err);
    if (r == 0)
        r = doctor_print(cli, findings, err);
    if (r == 0 && doctor_is_unfit(findings, argv, argc))
        r = CLI_EXIT_UNFIT;
    json_decref(findings);
    return r;
}

const struct cli_verb verb_doctor = {
    .name = "doctor",
    .args = "[manager|agent|containers|gpu|proxy|storage|web|cluster]...",
    .summary = "Say what works on this machine, and which command mends what does not",
    .details =
        "Tries what the programs try when they start: containers, networks, devices. Changes\n"
        "nothing. Without a part all are looked at, and a machine without a GPU, or without a\n"
        "login, is none the worse for it.",
    .examples = "aliquot doctor\n"
                "sudo aliquot doctor containers\n"
                "aliquot doctor agent --config /etc/aliquot/agent.toml -o json",
    .opts = doctor_opts,
    .opts_size = sizeof(struct doctor_opts),
    .max_args = PARTS_MAX,
    .flags = CLI_NO_CONFIG,
    .run = doctor_run,
};
