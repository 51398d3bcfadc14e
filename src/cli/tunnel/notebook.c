/* SPDX-License-Identifier: Apache-2.0 */
/* A notebook in one command: a session, Jupyter in it, its address. */
#include <errno.h>
#include <string.h>

#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/create.h"
#include "cli/tunnel/service_app.h"
#include "cli/verbs.h"
#include "model/service_port.h"
#include "model/session.h"

struct notebook_opts {
    struct spec_opts spec;
};

/* The first of these that is among the apps; NULL = none. */
static const char *notebook_choose(const json_t *apps)
{
    static const char *const names[] = { "jupyterlab", "jupyter" };

    for (size_t n = 0; n < AQ_COUNT(names); n++)
        if (list_find(apps, "name", names[n]))
            return names[n];
    return NULL;
}

/* Which image to take: those whose label names Jupyter. */
static void notebook_hint(struct cli *cli)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf found = STRBUF_INIT;
    json_t *images = NULL, *image;
    size_t i;

    (void)cli_call_list(cli, "/aliquot/v1/images", CLI_PAGE, 0, &images, NULL, NULL);
    json_array_foreach(images, i, image) {
        const json_t *names = json_object_get(image, "names");
        const json_t *labels = json_object_get(image, "labels");
        const char *name = json_string_value(json_array_get(names, 0));
        const char *services = json_string_value(json_object_get(labels, SERVICE_LABEL));

        if (name && services && strstr(services, "jupyter"))
            strbuf_addf(&found, "%s%s", found.len ? ", " : "", name);
    }
    json_decref(images);
    if (found.len)
        cli_hint(cli, "images here that have it: %s", found.data);
    else
        cli_hint(cli, "images have it by 'pip install jupyterlab' or Debian's package "
                      "jupyter-notebook, such as quay.io/jupyter/scipy-notebook");
}

/* Nobody can use the session: it ends. */
static int notebook_fail_missing(struct cli *cli, const struct follow_session *session,
                                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    session_old_path(cli, &path, session->id, "");
    (void)cli_call(cli, METHOD_DELETE, path.data, NULL, NULL, NULL);
    notebook_hint(cli);
    return aq_fail(err, ENOENT,
                   "the image has no Jupyter: neither jupyter-lab nor jupyter-notebook is in its "
                   "PATH");
}

static int notebook_reach(struct cli *cli, const struct follow_session *session,
                          struct aq_error *err)
{
    const struct service_app_opts opts = { .open = true };
    const char *app = NULL;
    json_t *apps = NULL;
    int r = session_apps_get(cli, session->id, NULL, &apps, err);

    if (r == 0 && !(app = notebook_choose(apps)))
        r = notebook_fail_missing(cli, session, err);
    if (r == 0) {
        cli_note(cli,
                 "session %s goes on when you leave; again: aliquot app %s %s --open; its end: "
                 "aliquot rm %s",
                 session->name, session->name, app, session->name);
        r = service_app_reach(cli, session, apps, app, &opts, err);
    }
    json_decref(apps);
    return r;
}

static int notebook_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct notebook_opts *opts = data;
    char *words[] = { (char *)(uintptr_t)cli->verb->name, NULL };
    AQ_CLEANUP(aq_freep) char *name = spec_make_name(&opts->spec, 1, words);
    struct create_request request = { .spec = &opts->spec };
    struct follow_session session;
    json_t *created = NULL;
    int r;

    if (argc && opts->spec.image)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the image is given twice");
    opts->spec.name = name;
    if (argc)
        opts->spec.image = argv[0];
    else if (!opts->spec.image && !opts->spec.template)
        opts->spec.image = cli_config_get(&cli->config, SETTING_IMAGE);
    opts->spec.is_interactive = true;
    if (opts->spec.image
        && strcmp(opts->spec.image, IMAGE_OF_PROCESSES) == 0) { /* it has no apps */
        notebook_hint(cli);
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "name an image that has Jupyter");
    }
    r = create_all(cli, &request, &created, err);
    if (r == 0)
        r = create_await(cli, created, &opts->spec, &session, err);
    json_decref(created);
    if (r == 0)
        create_note_files(cli, &opts->spec);
    return r < 0 ? r : notebook_reach(cli, &session, err);
}

static const struct cli_opt notebook_options[] = {
    SPEC_OPT_ROWS(struct notebook_opts, 't'),
    CLI_OPT_END,
};

const struct cli_verb verb_notebook = {
    .name = "notebook",
    .args = "[IMAGE]",
    .summary = "Open Jupyter in a new session",
    .details = "Creates an interactive session, waits until it runs, starts JupyterLab in it, or\n"
               "else Jupyter Notebook, prints its address and opens that in a browser, by\n"
               "xdg-open or BROWSER. The address is the cluster's proxy's, good once within a\n"
               "minute, and the browser may come back afterwards; without a proxy it is one of\n"
               "this machine, until Ctrl-C. The session goes on until 'aliquot rm'; its home\n"
               "directory is deleted then, what is in folders (-v FOLDER) stays.\n\n"
               "The image has to have the program jupyter-lab or jupyter-notebook.",
    .examples = "aliquot notebook quay.io/jupyter/scipy-notebook\n"
                "aliquot notebook -v work quay.io/jupyter/scipy-notebook\n"
                "aliquot notebook -t lab -r cpu=2 -r mem=8g -r cuda.shares=0.25 IMAGE",
    .opts = notebook_options,
    .opts_size = sizeof(struct notebook_opts),
    .max_args = 1,
    .run = notebook_run,
};
