/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_lookup.h - make a program's symbol lookups return the hooks
 *
 * The driver is always asked first, so which version and which stream form a
 * program gets is the driver's choice; then the pointer it gave is replaced
 * by the hook of that very pointer. What is not known passes
 * unchanged. dlsym and dlvsym are asked for everything a program looks up:
 * other names jump to the loader's function with the caller's return address
 * in place, so RTLD_NEXT and RTLD_DEFAULT mean what they mean without us.
 */
#ifndef AQ_GPU_SYMBOL_LOOKUP_H
#define AQ_GPU_SYMBOL_LOOKUP_H

#include <stdbool.h>

/* Is it one of the names that may have a hook? Also finds the loader's functions. */
bool symbol_lookup_wants(const char *name) __asm__("aq_symbol_lookup_wants")
    __attribute__((visibility("hidden")));

/* dlsym and dlvsym for such a name. */
void *symbol_lookup_dlsym(void *handle, const char *name) __asm__("aq_symbol_lookup_dlsym")
    __attribute__((visibility("hidden")));
void *symbol_lookup_dlvsym(void *handle, const char *name,
                           const char *version) __asm__("aq_symbol_lookup_dlvsym")
    __attribute__((visibility("hidden")));

#endif
