/* SPDX-License-Identifier: Apache-2.0 */
/* scancel: end jobs, by their numbers or by what they are. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "cli/client.h"
#include "cli/slurm/job_list.h"
#include "cli/slurm/slurm.h"
#include "cli/verbs.h"

#define AT_ONCE_MAX 1000 /* sessions in one request */

struct scancel_opts {
    bool version, me, is_ignored, batch;
    const char *clusters, *name, *user, *account, *partition, *states, *signal;
};

static const struct cli_opt scancel_opts[] = {
#define AT(member) offsetof(struct scancel_opts, member)
    { 'n', "name", CLI_STR, AT(name), "NAME,...", "jobs of these names" },
    { 'n', "jobname", CLI_STR, AT(name), "NAME,...", "the same" },
    { 'u', "user", CLI_STR, AT(user), "USER,...", "of these users" },
    { 0, "me", CLI_FLAG, AT(me), NULL, "your own" },
    { 'A', "account", CLI_STR, AT(account), "ACCOUNT,...", "of these projects" },
    { 'p', "partition", CLI_STR, AT(partition), "PARTITION,...", "of these resource groups" },
    { 't', "state", CLI_STR, AT(states), "STATE,...", "in these states" },
    { 's', "signal", CLI_STR, AT(signal), "SIGNAL", "only TERM and KILL, which end the job" },
    { 'b', "batch", CLI_FLAG, AT(batch), NULL, "signal the script alone, which is refused" },
    { 'f', "full", CLI_FLAG, AT(is_ignored), NULL, "all of it, as it is in any case" },
    { 'Q', "quiet", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    { 'v', "verbose", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    { 0, "ctld", CLI_FLAG, AT(is_ignored), NULL, "ignored" },
    SLURM_OPT_ROWS(struct scancel_opts),
#undef AT
    CLI_OPT_END,
};

/* A job is ended: nothing sends its program another signal. */
static int scancel_check_signal(const struct scancel_opts *opts, struct aq_error *err)
{
    const char *name = opts->signal ? opts->signal : "TERM";

    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    if (opts->batch
        || (strcasecmp(name, "TERM") != 0 && strcasecmp(name, "KILL") != 0
            && strcmp(name, "15") != 0 && strcmp(name, "9") != 0))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "cannot send signal %.20s to jobs: only -s TERM and -s KILL are "
                            "supported, which end them; for others: aliquot exec SESSION kill",
                            opts->signal ? opts->signal : "to the script alone");
    return 0;
}

/* Of one array these elements, or all that there are. */
static int scancel_end_array(struct cli *cli, const json_t *array, const char *elements,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *body = json_object();
    int r;

    strbuf_addf(&path, "/aliquot/v1/arrays/%s", json_string_value(json_object_get(array, "id")));
    (void)json_object_set(body, "owner_access_key", json_object_get(array, "access_key"));
    if (elements)
        (void)json_object_set_new(body, "elements", json_string(elements));
    r = cli_call(cli, METHOD_DELETE, path.data, body, NULL, err);
    json_decref(body);
    return r == -ENOENT ? 0 : r; /* it has just ended */
}

/* The arrays that are named as a whole, so that no further elements are made; then the elements
 * without a session. Their sessions follow, as those of other jobs.
 */
static int scancel_end_arrays(struct cli *cli, const struct job_ids *ids,
                              const struct job_list *list, struct aq_error *err)
{
    const char *id;
    json_t *array;
    int r = 0;

    json_object_foreach(list->arrays, id, array) {
        bool is_live = json_is_null(json_object_get(array, "terminated_at"));

        for (size_t i = 0; r == 0 && is_live && i < ids->count; i++)
            if (ids->items[i].number == json_integer_value(json_object_get(array, "number"))
                && !ids->items[i].elements.count)
                r = scancel_end_array(cli, array, NULL, err);
    }
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct job *job = &list->jobs[i];
        AQ_CLEANUP(aq_freep) char *elements = NULL;

        if (!job->set || job_state_is_ended(job->state))
            continue;
        elements = aq_format("%.*s", (int)strcspn(job->set, "%"), job->set);
        r = scancel_end_array(cli, job->row, elements, err);
    }
    return r;
}

static int scancel_end(struct cli *cli, const struct job_list *list, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < list->count; i += AT_ONCE_MAX) {
        json_t *ids = json_array(), *body = json_pack("{s:o}", "sessions", ids);
        size_t count = 0;

        for (size_t k = i; k < AQ_MIN(i + AT_ONCE_MAX, list->count); k++)
            if (!list->jobs[k].set && !job_state_is_ended(list->jobs[k].state)) {
                (void)json_array_append(ids, json_object_get(list->jobs[k].row, "id"));
                count++;
            }
        if (count)
            r = cli_call(cli, METHOD_DELETE, "/aliquot/v1/sessions", body, NULL, err);
        json_decref(body);
    }
    return r;
}

static int scancel_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct scancel_opts *opts = data;
    AQ_CLEANUP(job_list_done) struct job_list list = { .rows = NULL };
    AQ_CLEANUP(job_ids_done) struct job_ids numbers = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf ids = STRBUF_INIT;
    struct job_query query = {
        .names = opts->name,
        .users = opts->me ? NULL : opts->user,
        .partitions = opts->partition,
        .accounts = opts->account,
        .states = opts->states,
        .is_all_users = argc > 0,
        .has_ended = argc > 0,
        .must_exist = true,
    };
    int r;

    if (opts->version)
        return slurm_print_version(err);
    if (argc == 0 && !opts->name && !opts->user && !opts->me && !opts->partition && !opts->account
        && !opts->states)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "No job identification provided");
    for (int i = 0; i < argc; i++)
        strbuf_addf(&ids, "%s%s", i ? "," : "", argv[i]);
    query.ids = argc ? ids.data : NULL;
    r = scancel_check_signal(opts, err);
    if (r == 0)
        r = job_list_read(cli, &query, &list, err);
    if (r == -ENOENT)
        return aq_error_wrap(err, "Kill job error");
    if (r == 0)
        r = job_ids_read(opts->states ? NULL : query.ids, &numbers, err);
    if (r == 0)
        r = scancel_end_arrays(cli, &numbers, &list, err);
    return r < 0 ? r : scancel_end(cli, &list, err);
}

const struct cli_verb verb_slurm_scancel = {
    .name = "slurm scancel",
    .args = "[NUMBER[_INDEX]]...",
    .summary = "End jobs, as Slurm's scancel does",
    .examples = "scancel 12 13_4 14_[1-3]\nscancel --me --state=PENDING",
    .opts = scancel_opts,
    .opts_size = sizeof(struct scancel_opts),
    .max_args = -1,
    .flags = SLURM_VERB_FLAGS,
    .run = scancel_run,
};
