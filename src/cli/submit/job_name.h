/* SPDX-License-Identifier: Apache-2.0 */
/* job_name.h - names and comments of jobs, which may be any text, as a session can have them */
#ifndef AQ_CLI_SUBMIT_JOB_NAME_H
#define AQ_CLI_SUBMIT_JOB_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "model/session.h"

#define JOB_INDEX_MAX 7  /* of "-100000", behind the name of one of several */
#define JOB_CHANCE_MAX 7 /* of "-1a2b3c", behind the name of a session that lives */
#define JOB_TAG_MAX 64   /* bytes, the manager's limit of a tag */

/* The text as the name of a session of at most 'max' bytes: runs of what no name may have become
 * one '-', "x" becomes "job-x". "" if nothing is left.
 */
void job_name_clean(const char *text, size_t max, char ret[SESSION_NAME_MAX + 1]) AQ_UNTRUSTED;

/* The text as a tag, cut where a character ends, in 'out', which is empty before. Returns whether
 * it is another text now.
 */
bool job_tag_clean(const char *text, struct strbuf *out) AQ_UNTRUSTED;

/* What a script at 'path' is called: its last part, "script" if it has no name of its own
 * (standard input, a pipe of the shell).
 */
const char *job_script_name(const char *path) AQ_UNTRUSTED;

/* Jobs of Slurm may share a name, but live sessions may not: if the name of a job is taken, its
 * session gets a random suffix, which Slurm's commands do not show.
 */
#define JOB_SUFFIX_MAX 8 /* of ".j1a2b3c" */
void job_name_with_chance(const char *name, char ret[SESSION_NAME_MAX + 1]);
/* The name of the job: the session's without that suffix. */
void job_name_of_session(const char *name, char ret[SESSION_NAME_MAX + 1]);

#endif
