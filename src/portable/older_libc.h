/* SPDX-License-Identifier: Apache-2.0 */
/* older_libc.h - naming the first version of a function of the C library */
#ifndef AQ_PORTABLE_OLDER_LIBC_H
#define AQ_PORTABLE_OLDER_LIBC_H

#if defined(__x86_64__)
#define FIRST_VERSION "GLIBC_2.2.5"
#define DLINFO_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define FIRST_VERSION "GLIBC_2.17"
#define DLINFO_VERSION "GLIBC_2.17"
#endif

#define HIDDEN __attribute__((visibility("hidden")))
#define FIRST_AT(name, version) __asm__(".symver first_" #name "," #name "@" version)
#define FIRST(name) FIRST_AT(name, FIRST_VERSION)

#endif
