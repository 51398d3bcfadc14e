/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - files into and out of the container, by the runner itself in place of a program
 *
 * As the container's user, below its work folder, in a process like any command's; so the image
 * needs no program for it, and limits are the container's. Arguments are
 *
 *   get   BYTES ENTRIES PATH...   a tar archive to standard output
 *   cat   BYTES ENTRIES PATH      the bytes of a file
 *   put   BYTES ENTRIES PATH      a tar archive from standard input (transfer/tree_writer.h)
 *   write BYTES ENTRIES PATH      a file's bytes from standard input, to their end
 *   check BYTES ENTRIES PATH...   nothing but whether they are there
 *   list  BYTES ENTRIES PATH      a folder as a JSON list to standard output
 *
 * with the most bytes and files of one transfer, 0 = any number. A path is below the work
 * folder, or begins with it. It ends with 0; or with 1, and on standard error is a kind, a
 * newline and a text. An archive that broke off has a note "error: TEXT" at its end.
 */
#ifndef AQ_RUNNER_FILES_H
#define AQ_RUNNER_FILES_H

#define FILES_WORK "/home/work"

/* Returns the exit status. SIGHUP, SIGTERM and SIGINT mean that the input is cut off. */
int files_run(char **argv);

#endif
