/* SPDX-License-Identifier: Apache-2.0 */
/* installed.h - where the other files of this installation are */
#ifndef AQ_BASE_INSTALLED_H
#define AQ_BASE_INSTALLED_H

/* The path of one of our programs, plugins or libraries: beside the running
 * program, as in a build directory, else in bin, libexec/aliquot or lib/aliquot of
 * the tree that the program is in, else of the configured prefix. Caller frees;
 * NULL = it is in none of them (or memory is short).
 */
char *installed_find(const char *name);

#endif
