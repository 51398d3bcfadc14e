/* SPDX-License-Identifier: Apache-2.0 */
/* lost_commits.h - commits of former leaders that the database lacks, which agents can prove
 *
 * A standby of the database's server that lagged, or a server that was put back, lacks the last
 * commits of a former leader. Agents keep the epoch and the commit that each order followed.
 */
#ifndef AQ_MANAGER_CORE_NODES_LOST_COMMITS_H
#define AQ_MANAGER_CORE_NODES_LOST_COMMITS_H

#include <stdbool.h>
#include <stdint.h>

struct aq_error;
struct core;

/* Read which commits of former epochs the database has: at the start. */
int lost_commits_load(struct core *core, struct aq_error *err);

/* An agent has an order of 'epoch' that followed the commit 'commit'. True if the database lacks that
 * commit; the highest one is kept for core_get_lost_commits(), and logged at first
 * and when its number doubles. Zeros of older agents are
 * false.
 */
bool lost_commits_note(struct core *core, const char *agent_id, int64_t epoch, int64_t commit);

#endif
