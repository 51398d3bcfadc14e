/* SPDX-License-Identifier: Apache-2.0 */
/* doctor.h - does the machine have what an agent needs? For "aliquot doctor"
 *
 * The same code looks as when an agent starts: a container of the node's own
 * root is run, a network is made, plugins describe their devices. All that is
 * made for it is in a directory of the state directory that goes again, in
 * namespaces of a process of its own, or in cgroups of its own.
 */
#ifndef AQ_AGENT_DOCTOR_DOCTOR_H
#define AQ_AGENT_DOCTOR_DOCTOR_H

#include "agent/settings/settings.h"

/* Write the findings about the named parts (count 0 = all) to standard output
 * (check/check.h). Whatever is missing is no error. 'monitor' and 'runner' are
 * programs of ours.
 */
int doctor_run(const struct settings *settings, const char *monitor, const char *runner,
               char *const *parts, int count, struct aq_error *err);

#endif
