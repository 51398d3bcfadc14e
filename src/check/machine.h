/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - what every daemon needs of its machine */
#ifndef AQ_CHECK_MACHINE_H
#define AQ_CHECK_MACHINE_H

#include <stdint.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include "check/check.h"

/* Can this be the state directory: made, written, with space left? What had to be
 * made for that is removed. 'owner' is the program that it is for.
 */
void machine_check_folder(const char *path, const char *owner, struct finding *ret);

/* Is the clock kept right by anybody? */
void machine_check_clock(struct finding *ret);

/* How many files the daemon may have open. */
void machine_check_files(struct finding *ret);

/* The sign of a container around us, "/.dockerenv"; NULL = there is none. 'root'
 * is put before the paths that are looked at ("" = none; tests have a tree of
 * their own).
 */
const char *machine_find_container(const char *root);

/* The evaluation of the former on what the kernel said. 'state' is the result
 * of adjtimex(2).
 */
void machine_judge_clock(const struct timex *clock, int state, struct finding *ret);
void machine_judge_space(const char *path, const struct statvfs *fs, const char *fs_name,
                         struct finding *ret);
void machine_judge_files(rlim_t most, struct finding *ret);

/* A certificate that is valid until 'end_usec'; 'remedy' gets another one. */
void machine_judge_certificate(const char *path, int64_t end_usec, int64_t now_usec,
                               const char *remedy, struct finding *ret);

#endif
