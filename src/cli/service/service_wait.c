/* SPDX-License-Identifier: Apache-2.0 */
/* "service wait", and --wait of other commands: until the replicas of a service are ready. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/output/progress.h"
#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/verbs.h"
#include "http/url.h"

#define LOOK_USEC (500 * USEC_PER_MSEC)
#define TICK_USEC (100 * USEC_PER_MSEC)
#define LOG_LINES "20" /* of a replica that failed */

/* What is on the way to being ready, of one answer of the manager. */
struct service_watch {
    json_int_t wanted, goal;
    size_t ready, starting; /* replicas of the goal; starting: with those that were ready once */
    size_t trying;          /* of these, those that have never been ready */
    size_t others;          /* replicas of other revisions that take requests */
    /* the newest replica of the goal that is not ready yet; "" = none */
    char session[SERVICE_SESSION_MAX], name[80];
};

static void service_watch_read(const json_t *service, struct service_watch *w)
{
    const json_t *row;
    size_t i;

    *w = (struct service_watch){
        .wanted = json_integer_value(
            json_object_get(json_object_get(service, "replicas"), "wanted")),
        .goal = json_integer_value(json_object_get(json_object_get(service, "revision"), "number")),
    };
    json_array_foreach(json_object_get(service, "replica_list"), i, row) {
        bool is_of_goal = json_integer_value(json_object_get(row, "revision")) == w->goal;

        if (json_is_true(json_object_get(row, "draining")))
            continue;
        if (!is_of_goal) {
            w->others++;
        } else if (strcmp(output_text(row, "health"), "ready") == 0) {
            w->ready++;
        } else {
            w->starting++;
            w->trying += strcmp(output_text(row, "health"), "starting") == 0;
            (void)snprintf(w->session, sizeof(w->session), "%s", output_text(row, "session"));
            (void)snprintf(w->name, sizeof(w->name), "%s", output_text(row, "session_name"));
        }
    }
}

static const json_t *service_rollout_state(const json_t *service)
{
    return json_object_get(json_object_get(service, "rollout"), "state");
}

/* Will failures of new replicas abort the rollout? Then the manager decides when there were enough. */
static bool service_may_abort(const json_t *service)
{
    const json_t *abort = json_object_get(json_object_get(service, "rollout"), "abort");
    const json_t *state = service_rollout_state(service);

    return service_rollout_is_under_way(service)
           && json_integer_value(json_object_get(state, "from")) > 0
           && json_integer_value(json_object_get(abort, "failures")) > 0;
}

/* Blue-green, without a time after which it is promoted. */
static bool service_awaits_promotion(const json_t *service)
{
    const json_t *rollout = json_object_get(service, "rollout");

    return strcmp(output_text(service_rollout_state(service), "phase"), "ready") == 0
           && !json_is_true(json_object_get(rollout, "auto_promote"));
}

/* "retry_at" is set while the next replica is held back after a failure: there is no point in waiting
 * for that one in silence. While it is tried the service is "failing" still, and it may become ready.
 */
enum service_stage service_get_stage(const json_t *service, int64_t revision)
{
    const char *status = output_text(service, "status");
    const json_t *promoted = json_object_get(service_rollout_state(service), "promoted");
    struct service_watch w;

    service_watch_read(service, &w);
    if (strcmp(status, "ending") == 0 || strcmp(status, "ended") == 0)
        return SERVICE_ENDS;
    if (revision && w.goal != revision)
        return SERVICE_ABANDONED;
    if ((json_int_t)w.ready >= w.wanted && (!w.others || json_is_true(promoted)))
        return SERVICE_IS_READY;
    if (service_awaits_promotion(service))
        return SERVICE_AWAITS_PROMOTION;
    if (service_may_abort(service))
        return SERVICE_COMES;
    if ((strcmp(status, "failing") == 0 && !w.trying)
        || json_is_string(json_object_get(service, "retry_at")))
        return SERVICE_FAILS;
    return SERVICE_COMES;
}

/* Did the replica that was starting end, and is that the problem? The next one may be starting
 * already.
 */
static bool service_has_lost(const json_t *service, const struct service_watch *before)
{
    return before->name[0] && !service_may_abort(service)
           && strstr(output_text(service, "problem"), before->name)
           && !list_find(json_object_get(service, "replica_list"), "session", before->session);
}

static void service_watch_show(struct progress *p, const json_t *service,
                               const struct service_watch *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *problem = output_text(service, "problem");
    const json_t *state = service_rollout_state(service);

    strbuf_addf(&text, "%s: %zu of %lld ready", output_text(service, "name"), w->ready,
                (long long)w->wanted);
    if (w->starting)
        strbuf_addf(&text, ", %zu starting", w->starting);
    if (w->others)
        strbuf_addf(&text, ", %zu of another revision", w->others);
    if (json_is_integer(json_object_get(state, "step")) && service_rollout_is_under_way(service))
        strbuf_addf(&text, ", step %lld of %lld",
                    (long long)json_integer_value(json_object_get(state, "step")),
                    (long long)json_integer_value(json_object_get(state, "steps")));
    if (*problem) {
        /* A line that ends with a colon introduces a list, which is for 'service info'. */
        size_t len = strcspn(problem, "\n");

        strbuf_addf(&text, ": %.*s", (int)(len && problem[len - 1] == ':' ? len - 1 : len),
                    problem);
    }
    progress_stage(p, text.data);
}

/* Append the last lines that the program of a replica printed; a log that cannot be read says
 * nothing, as its node may be lost.
 */
static void service_write_log(struct cli *cli, const json_t *service, const char *session,
                              struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct client_reply reply = CLIENT_REPLY_INIT;
    char newest[SERVICE_SESSION_MAX];

    if (!*session && service_find_session(cli, service, NULL, newest, NULL) == 0)
        session = newest;
    if (!*session)
        return;
    strbuf_adds(&path, "/aliquot/v1/sessions/");
    url_encode(&path, session);
    strbuf_adds(&path, "/logs?tail=" LOG_LINES);
    if (cli_fetch(cli, METHOD_GET, path.data, NULL, &reply, NULL) == 0 && reply.status == 200
        && reply.body.len) {
        strbuf_adds(out, "last lines of its log:\n");
        utf8_write_printable(reply.body.data, reply.body.len, out);
        if (out->data[out->len - 1] != '\n')
            strbuf_addc(out, '\n');
    }
    client_reply_done(&reply);
}

/* Append how the last replica failed, which the history keeps beside the reason of the abort; a
 * history that cannot be read adds nothing.
 */
static void service_write_last_failure(struct cli *cli, const json_t *service, struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_auto_t *answer = NULL;
    const json_t *row;
    size_t i;

    cli_thing_path(&model_services, output_text(service, "id"), "/history", &path);
    cli_path_query(&path, "limit", "5");
    if (cli_call(cli, METHOD_GET, path.data, NULL, &answer, NULL) < 0)
        return;
    json_array_foreach(json_object_get(answer, "items"), i, row) {
        const char *failure = strstr(output_text(row, "reason"), "last failure: ");

        if (!failure)
            continue;
        utf8_write_printable(failure, strlen(failure), out);
        strbuf_addc(out, '\n');
        return;
    }
}

/* Why 'revision' is not the goal: its rollout was aborted, or another one was deployed. */
static void service_write_abandoned(struct cli *cli, const json_t *service, int64_t revision,
                                    const char *session, struct strbuf *out)
{
    const json_t *state = service_rollout_state(service);
    const char *phase = output_text(state, "phase"), *reason = output_text(state, "reason");
    bool is_aborted = (strcmp(phase, "aborting") == 0 || strcmp(phase, "aborted") == 0)
                      && json_integer_value(json_object_get(state, "from")) == revision;
    long long goal = json_integer_value(
        json_object_get(json_object_get(service, "revision"), "number"));

    if (!is_aborted) {
        strbuf_addf(out, "aliquot: revision %lld of service '%s' was replaced by revision %lld\n",
                    (long long)revision, output_text(service, "name"), goal);
        return;
    }
    strbuf_addf(out, "aliquot: the rollout of revision %lld of service '%s' was aborted%s",
                (long long)revision, output_text(service, "name"), *reason ? ": " : "");
    utf8_write_printable(reason, strlen(reason), out);
    strbuf_addc(out, '\n');
    service_write_last_failure(cli, service, out);
    strbuf_addf(out, "Revision %lld serves; see 'aliquot service history %s'.\n", goal,
                output_text(service, "name"));
    if (*session)
        service_write_log(cli, service, session, out);
}

/* The problem, with the last lines of the log of the replica that failed, on standard error. */
static int service_fail(struct cli *cli, const json_t *service, int64_t revision,
                        const char *session)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const char *name = output_text(service, "name"), *problem = output_text(service, "problem");
    enum service_stage stage = service_get_stage(service, revision);

    if (stage == SERVICE_ABANDONED) {
        service_write_abandoned(cli, service, revision, session, &out);
        (void)fwrite(out.data, 1, out.len, stderr);
        return CLI_EXIT_FAILURE;
    }
    if (stage == SERVICE_ENDS)
        strbuf_addf(&out, "aliquot: service '%s' has ended\n", name);
    else
        strbuf_addf(&out, "aliquot: a replica of service '%s' failed%s", name,
                    *problem ? ": " : "\n");
    utf8_write_printable(problem, strlen(problem), &out);
    if (*problem && problem[strlen(problem) - 1] != '\n')
        strbuf_addc(&out, '\n');
    if (stage != SERVICE_ENDS) {
        if (!strchr(problem, '\n')) /* else it has lines of the log */
            service_write_log(cli, service, session, &out);
        strbuf_addf(&out,
                    "The manager tries again; see 'aliquot service info %s', or change it by "
                    "'aliquot service deploy %s'.\n",
                    name, name);
    }
    (void)fwrite(out.data, 1, out.len, stderr);
    return CLI_EXIT_FAILURE;
}

/* The problem is what there was to wait for; it may have lines that progress leaves out. */
static void service_note_timeout(struct cli *cli, const json_t *service, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf problem = STRBUF_INIT;
    const char *text = output_text(service, "problem");

    utf8_write_printable(text, strlen(text), &problem);
    cli_note(cli, "aliquot: service '%s' is not ready after the time given with --timeout%s%s",
             service ? output_text(service, "name") : name, problem.len ? ": " : "",
             problem.len ? problem.data : "");
}

static void service_pause(struct progress *p)
{
    for (int64_t left = LOOK_USEC; left > 0; left -= TICK_USEC) {
        (void)usleep(TICK_USEC);
        progress_tick(p);
    }
}

int service_wait(struct cli *cli, const char *name, int64_t revision, int64_t timeout_usec,
                 bool has_answered, struct aq_error *err)
{
    int64_t begun_usec = clock_monotonic_usec(), lost_usec = 0;
    struct service_watch before = { .session = "" }, now;
    enum service_stage stage = SERVICE_COMES;
    json_auto_t *service = NULL;
    struct progress progress;
    int r = 0;

    progress_init(&progress, cli->globals.quiet, cli->output.ascii);
    for (;;) {
        json_t *answer = NULL;

        r = service_get(cli, name, &answer, err);
        if (r < 0 && !cli_awaits_manager(cli, err, has_answered, &lost_usec))
            break;
        if (r == 0) {
            lost_usec = 0;
            has_answered = true;
            json_decref(service);
            service = answer;
            service_watch_read(service, &now);
            stage = service_get_stage(service, revision);
            if (stage == SERVICE_COMES && service_has_lost(service, &before))
                stage = SERVICE_FAILS;
            if (stage != SERVICE_FAILS) /* else the reason follows, with the log */
                service_watch_show(&progress, service, &now);
            if (now.session[0] && stage == SERVICE_COMES)
                before = now;
        }
        if (stage != SERVICE_COMES)
            break;
        if (timeout_usec && clock_monotonic_usec() - begun_usec >= timeout_usec) {
            r = CLI_EXIT_TIMEOUT;
            break;
        }
        service_pause(&progress);
    }
    progress_clear(&progress);
    if (r == CLI_EXIT_TIMEOUT)
        service_note_timeout(cli, service, name);
    if (r != 0 || stage == SERVICE_IS_READY)
        return r;
    if (stage != SERVICE_AWAITS_PROMOTION)
        return service_fail(cli, service, revision, before.session);
    cli_note(cli,
             "all new replicas of service '%s' are ready; 'aliquot service promote %s' gives them "
             "the requests",
             output_text(service, "name"), output_text(service, "name"));
    return 0;
}

const struct cli_opt service_wait_rows[] = { SERVICE_WAIT_ROWS(0), CLI_OPT_END };

int service_wait_if(struct cli *cli, const struct service_wait_opts *opts, const char *service,
                    int64_t revision, struct aq_error *err)
{
    return opts->wait || opts->timeout.is_set
               ? service_wait(cli, service, revision, opts->timeout.value, true, err)
               : 0;
}

/* ---- the command ---- */

static const struct cli_opt wait_opts[] = {
    { 0, "timeout", CLI_DURATION, offsetof(struct service_wait_opts, timeout), "TIME",
      "give up after this long, with exit status 3" },
    CLI_OPT_END,
};

static int service_wait_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    const struct service_wait_opts *opts = data;
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++)
        r = service_wait(cli, argv[i], 0, opts->timeout.value, false, err);
    return r;
}

const struct cli_verb verb_service_wait = {
    .name = "service wait",
    .args = "SERVICE...",
    .summary = "Wait until the replicas of services are ready",
    .details = "As many as wanted, all of the goal revision. Exits with 1 if a replica fails, and\n"
               "shows why. A manager that restarts meanwhile is waited for.",
    .examples = "aliquot service wait --timeout 10m digits",
    .opts = wait_opts,
    .opts_size = sizeof(struct service_wait_opts),
    .min_args = 1,
    .max_args = -1,
    .run = service_wait_run,
};
