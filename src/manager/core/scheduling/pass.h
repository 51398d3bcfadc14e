/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - passes of the groups' schedulers */
#ifndef AQ_MANAGER_CORE_SCHEDULING_PASS_H
#define AQ_MANAGER_CORE_SCHEDULING_PASS_H

struct core;

/* A pass of each group that needs one; what it places is proposed. */
void pass_run_all(struct core *core);

#endif
