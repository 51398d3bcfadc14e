/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - named places where a test may kill the process
 *
 *     AQ_FAULT("manager.create.committed");
 *
 * In a build with -Dfaults=true the process dies by SIGKILL at the place
 * named in ALIQUOT_FAULT ("name", "name:3" for the third passage, or "name:any"), and
 * every first passage is appended to the file ALIQUOT_FAULT_LOG, so that the
 * suite can tell which places were never reached. ALIQUOT_FAULT_ONCE names a
 * file that is made before dying: while it exists nothing dies, so a
 * restarted process lives, and a test that removes it chooses the moment.
 * With ALIQUOT_FAULT_SIGNAL=STOP the process is stopped instead, until
 * SIGCONT. In other builds the macro is nothing.
 * tools/fault-points lists all names from the sources.
 */
#ifndef AQ_BASE_FAULT_H
#define AQ_BASE_FAULT_H

#ifdef AQ_FAULTS
void fault_point(const char *name, int *passed);
#define AQ_FAULT(name)               \
    do {                             \
        static int passed_;          \
        fault_point(name, &passed_); \
    } while (0)
#else
#define AQ_FAULT(name) ((void)0)
#endif

#endif
