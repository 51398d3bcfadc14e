/* SPDX-License-Identifier: Apache-2.0 */
/* "session wait": until sessions have ended, with the exit status of their program. */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cli/client.h"
#include "cli/session/array.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

struct wait_opts {
    struct cli_int timeout;
};

static const struct cli_opt wait_opts[] = {
    { 0, "timeout", CLI_DURATION, offsetof(struct wait_opts, timeout), "TIME",
      "give up after this long, with exit status 3" },
    CLI_OPT_END,
};

static bool wait_is_array(struct cli *cli, const char *name)
{
    json_t *array = NULL;
    int r = array_get(cli, name, &array, NULL);

    json_decref(array);
    return r == 0;
}

static int wait_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct wait_opts *opts = data;
    AQ_CLEANUP(aq_freep) struct follow_session *sessions = aq_alloc_array((size_t)argc,
                                                                          sizeof(*sessions));
    AQ_CLEANUP(aq_freep) const char **arrays = aq_alloc_array((size_t)argc, sizeof(*arrays));
    size_t count = 0, array_count = 0;
    int r = 0, status = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        r = session_resolve(cli, argv[i], &sessions[count], err);
        count += r == 0;
        if (r == -ENOENT && wait_is_array(cli, argv[i])) {
            arrays[array_count++] = argv[i];
            r = 0;
        }
    }
    if (r == 0 && count)
        r = follow_sessions(cli, sessions, count, 0, opts->timeout.value, &status, err);
    for (size_t i = 0; r == 0 && i < array_count; i++) {
        int highest;

        r = array_wait(cli, arrays[i], opts->timeout.value, &highest, err);
        status = status ? status : highest;
    }
    if (r == -ETIMEDOUT) {
        cli_note(cli, "aliquot: %s", err->text);
        return CLI_EXIT_TIMEOUT;
    }
    return r < 0 ? r : status;
}

const struct cli_verb verb_session_wait = {
    .name = "session wait",
    .args = "SESSION...",
    .summary = "Wait until sessions have ended and exit as their program did",
    .details = "With several sessions: as the first of them that failed, else 0. Of an array the\n"
               "highest exit status of its elements counts.",
    .examples = "aliquot session wait train-3fa2b1 && echo done\n"
                "aliquot session wait --timeout 10m job-1 job-2",
    .opts = wait_opts,
    .opts_size = sizeof(struct wait_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_RUNS_PROGRAM,
    .run = wait_run,
};
