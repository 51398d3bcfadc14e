/* SPDX-License-Identifier: Apache-2.0 */
/* cp_transfer.h - one copy of "aliquot cp": a request that carries an archive, or a file */
#ifndef AQ_CLI_SESSION_CP_TRANSFER_H
#define AQ_CLI_SESSION_CP_TRANSFER_H

#include "cli/cli.h"
#include "cli/output/progress.h"

struct cp_job {
    struct cli *cli;
    const char *id, *name; /* of the session */
    const char *kernel;    /* hostname, NULL = the main one */
    const char *path;      /* in the session */
    int root;              /* the folder here, -1 = standard input or output */
    const char *local;     /* what is copied below it, or where to */
    const char *top;       /* into here: what the names must begin with, NULL = any */
    int64_t total_bytes;   /* into the session: for the bar, 0 = not known */
    size_t failed;         /* what could not be copied; was named on standard error */
};

/* 0 when all is there, but for what job->failed counts; else nothing half is left of the file
 * at hand. -ECANCELED after a signal, -ENOENT and such as the manager says, -ECONNRESET.
 */
int cp_into_session(struct cp_job *job, struct aq_error *err);
int cp_out_of_session(struct cp_job *job, struct aq_error *err);

#endif
