/* SPDX-License-Identifier: Apache-2.0 */
/* Apps of a session by their names. */
#include "cli/tunnel/service_app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host_port.h"
#include "base/utf8.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/tunnel/forward.h"
#include "cli/verbs.h"
#include "http/url.h"

struct service_app {
    struct forward_job job;
    char address[URL_HOST_MAX + 1];
    bool is_http, open;
};

/* ---- one of them ---- */

/* Its port 'wanted', or with 0 its first; 0 = it has none such. */
static uint16_t service_app_port(const json_t *app, uint16_t wanted)
{
    const json_t *port;
    size_t i;

    json_array_foreach(json_object_get(app, "ports"), i, port) {
        json_int_t number = json_integer_value(port);

        if (number > 0 && number <= UINT16_MAX && (!wanted || number == wanted))
            return (uint16_t)number;
    }
    return 0;
}

static int service_app_find(struct cli *cli, const json_t *apps, const char *name, uint16_t wanted,
                            struct service_app *ret, struct aq_error *err)
{
    const char *session = ret->job.session.name;
    const json_t *app = list_find(apps, "name", name);
    const char *protocol = json_string_value(json_object_get(app, "protocol"));

    if (app) {
        ret->job.ports[0].remote = service_app_port(app, wanted);
        ret->is_http = protocol && strcmp(protocol, "http") == 0;
        if (ret->job.ports[0].remote)
            return 0;
        return aq_fail(err, ENOENT, "app '%s' of session '%s' has no such port", name, session);
    }
    cli_hint(cli, "which it has: aliquot app %s; any port: aliquot port-forward %s PORT", session,
             session);
    return aq_fail(err, ENOENT, "session '%s' has no app '%.64s'", session, name);
}

/* "HOST:PORT", "PORT" or "HOST". */
static int service_app_parse_bind(const char *text, struct service_app *ret, struct aq_error *err)
{
    const char *colon = strrchr(text, ':'), *bracket = strrchr(text, ']');
    bool has_port = colon && (!bracket || bracket < colon);
    bool is_port = text[strspn(text, "0123456789")] == '\0';
    size_t len = has_port ? (size_t)(colon - text) : is_port ? 0 : strlen(text);

    if (len >= sizeof(ret->address))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--bind: the host is too long");
    (void)snprintf(ret->address, sizeof(ret->address), "%.*s", len ? (int)len : 9,
                   len ? text : "127.0.0.1");
    if (!has_port && !is_port)
        return 0;
    return tunnel_parse_port(has_port ? colon + 1 : text, true, &ret->job.ports[0].local, err);
}

/* Is there a browser, or a screen for one? */
static bool service_app_has_browser(void)
{
    static const char *const names[] = { "BROWSER", "DISPLAY", "WAYLAND_DISPLAY" };

    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const char *value = getenv(names[i]);

        if (value && *value)
            return true;
    }
    return false;
}

/* xdg-open(1) knows BROWSER, and where it is not installed, BROWSER is the program. */
static void service_app_run_browser(char *url)
{
    char opener[] = "xdg-open", *browser = getenv("BROWSER");

    (void)setsid();
    (void)execvp(opener, (char *[]){ opener, url, NULL });
    if (errno == ENOENT && browser && *browser)
        (void)execvp(browser, (char *[]){ browser, url, NULL });
    (void)dprintf(STDERR_FILENO, "aliquot: no browser can be started: %s\n", strerror(errno));
    _exit(1);
}

static void service_app_open_url(const struct cli *cli, char *url)
{
    pid_t pid;

    if (strncmp(url, "http", 4) != 0) {
        cli_note(cli, "not opened in a browser: the app does not speak HTTP");
        return;
    }
    if (!service_app_has_browser()) {
        cli_note(cli, "open this address in a browser; none is started here (BROWSER, DISPLAY)");
        return;
    }
    pid = fork();
    if (pid == 0) {
        if (fork() != 0)
            _exit(0);
        service_app_run_browser(url);
    }
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    else
        cli_note(cli, "aliquot: no browser can be started: %s", strerror(errno));
}

/* The address goes to a browser: the manager's word may not open files or run scripts there. */
static int service_app_check_url(const char *address, struct aq_error *err)
{
    struct url url;
    uint32_t code;

    if ((strncmp(address, "http://", 7) == 0 || strncmp(address, "https://", 8) == 0)
        && utf8_is_shown(address, strlen(address), &code) && !strpbrk(address, " \"'<>\\?#@")
        && url_parse(address, &url, NULL) == 0)
        return 0;
    return aq_fail(
        err, EPROTO,
        "the manager's address of the proxy, '%.200s', is not http:// or https:// with a "
        "host; without --open and --url the app is reached by a tunnel",
        address);
}

/* The address by which a browser gets to it through the cluster's proxy, once and within a
 * minute; *ret stays NULL if there is no proxy.
 */
static int service_app_find_url(struct cli *cli, const struct follow_session *session,
                                const char *name, const struct service_app_opts *opts, char **ret,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *body = json_pack("{s:s, s:s*, s:s*}", "app", name, "port", opts->port, "kernel",
                             session->kernel);
    json_t *answer = NULL;
    const char *token, *address, *target;
    int r;

    strbuf_addf(&path, "/session/%s/start-service", session->id);
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    r = cli_call(cli, METHOD_POST, path.data, body, &answer, err);
    token = json_string_value(json_object_get(answer, "token"));
    address = json_string_value(json_object_get(answer, "wsproxy_addr"));
    target = json_string_value(json_object_get(answer, "target_id"));
    if (r == 0 && token && address) {
        AQ_CLEANUP(strbuf_donep) struct strbuf url = STRBUF_INIT;

        r = service_app_check_url(address, err);
        strbuf_addf(&url, "%s/v2/proxy/auth?token=", address);
        url_encode(&url, token);
        strbuf_adds(&url, "&session_id=");
        url_encode(&url, target ? target : session->id);
        strbuf_adds(&url, "&app=");
        url_encode(&url, name);
        if (r == 0)
            *ret = strbuf_steal(&url);
    }
    json_decref(body);
    json_decref(answer);
    return r;
}

/* 1 if it was shown by the cluster's proxy, 0 if it has none. */
static int service_app_show(struct cli *cli, const struct follow_session *session, const char *name,
                            const struct service_app_opts *opts, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *url = NULL;
    int r = service_app_find_url(cli, session, name, opts, &url, err);

    if (r < 0 || (!url && !opts->url))
        return r;
    if (!url)
        return aq_fail(err, ENOENT,
                       "no proxy is connected to this cluster (see aliquot-proxy(8)); "
                       "without --url the app is reached by a tunnel");
    if (printf("%s\n", url) < 0 || fflush(stdout) < 0)
        return aq_fail_errno(err, "standard output");
    if (opts->open)
        service_app_open_url(cli, url);
    return 1;
}

static int service_app_on_ready(void *data, struct aq_error *err)
{
    const struct service_app *app = data;
    char address[HOST_PORT_MAX];
    AQ_CLEANUP(aq_freep) char *url = aq_format(
        "%s://%s", app->is_http ? "http" : "tcp",
        host_port_write(app->address, app->job.ports[0].local, address));

    (void)printf("%s\n", url);
    if (fflush(stdout) < 0)
        return aq_fail_errno(err, "standard output");
    if (app->open)
        service_app_open_url(app->job.cli, url);
    return 0;
}

int service_app_reach(struct cli *cli, const struct follow_session *session, const json_t *apps,
                      const char *name, const struct service_app_opts *opts, struct aq_error *err)
{
    struct service_app app = { .job = { .cli = cli, .session = *session, .app = name, .count = 1 },
                               .open = opts->open };
    uint16_t wanted = 0;
    int r = opts->port ? tunnel_parse_port(opts->port, false, &wanted, err) : 0;

    app.job.address = app.address;
    app.job.on_ready = service_app_on_ready;
    app.job.data = &app;
    if (r == 0)
        r = service_app_parse_bind(opts->bind ? opts->bind : "0", &app, err);
    if (r == 0)
        r = service_app_find(cli, apps, name, wanted, &app, err);
    if (r == 0 && (opts->url || (opts->open && !opts->bind)))
        r = service_app_show(cli, session, name, opts, err);
    return r != 0 ? AQ_MIN(r, 0) : forward_run(&app.job, err);
}

static int service_app_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct service_app_opts *opts = data;
    struct follow_session session;
    json_t *apps = NULL;
    int r = session_await(cli, argv[0], &session, err);

    session.kernel = opts->kernel;
    if (r == 0)
        r = session_apps_get(cli, session.id, opts->kernel, &apps, err);
    if (r == 0)
        r = argc == 1 ? session_apps_show(cli, apps, err)
                      : service_app_reach(cli, &session, apps, argv[1], opts, err);
    json_decref(apps);
    return r;
}

static const struct cli_opt service_app_options[] = {
    { 'b', "bind", CLI_STR, offsetof(struct service_app_opts, bind), "[HOST:]PORT",
      "Listen here; default any free port of 127.0.0.1" },
    { 0, "port", CLI_STR, offsetof(struct service_app_opts, port), "PORT",
      "This port of the app, of several" },
    { 0, "open", CLI_FLAG, offsetof(struct service_app_opts, open), NULL,
      "Open its address in a browser, by xdg-open" },
    { 0, "url", CLI_FLAG, offsetof(struct service_app_opts, url), NULL,
      "Show its address at the proxy, good once within a minute" },
    SESSION_KERNEL_OPT_ROW(struct service_app_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_app = {
    .name = "app",
    .args = "SESSION [APP]",
    .summary = "Reach an app of a session from this machine",
    .details = "Apps are the services of a session's container, such as jupyter. Without\n"
               "APP they are listed, as by 'session apps'. With it, the address here is shown at\n"
               "which the app answers, until Ctrl-C; see 'aliquot port-forward --help' for how.\n"
               "An app that does not run is started by the first connection. --open without\n"
               "--bind opens it by the cluster's proxy, if it has one.",
    .examples = "aliquot app notebook\n"
                "aliquot app notebook jupyter --open\n"
                "aliquot app notebook ttyd --open\n"
                "aliquot app notebook jupyter --url\n"
                "aliquot app -b 127.0.0.1:8080 notebook jupyter",
    .opts = service_app_options,
    .opts_size = sizeof(struct service_app_opts),
    .min_args = 1,
    .max_args = 2,
    .run = service_app_run,
};
