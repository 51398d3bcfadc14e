/* SPDX-License-Identifier: Apache-2.0 */
/* architecture.h - the names of processor architectures
 *
 * uname(2), Debian, Docker and OCI call one architecture differently, and tools write any of these
 * names, in either case, into images. Ours are OCI's for images ("amd64", "arm64") and uname(2)'s
 * for machines ("x86_64", "aarch64"). Pure.
 */
#ifndef AQ_MODEL_ARCHITECTURE_H
#define AQ_MODEL_ARCHITECTURE_H

/* OCI's name: static, or 'name' itself where it is not known. NULL for NULL. */
const char *architecture_of_image(const char *name);

/* The same with the name of uname(2), of 64-bit x86 and ARM only; the others have several there. */
const char *architecture_of_machine(const char *name);

#endif
