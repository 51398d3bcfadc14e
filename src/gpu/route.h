/* route.h - how a program's look-ups end at the hooks
 *
 * The driver is always asked first, so which version and which stream form a
 * program gets is the driver's choice; then the pointer it gave is replaced
 * by the hook that stands for that very pointer. What is not known passes
 * unchanged. dlsym and dlvsym are asked for everything a program looks up:
 * other names jump to the loader's function with the caller's return address
 * in place, so RTLD_NEXT and RTLD_DEFAULT mean what they mean without us.
 */
#ifndef AQ_GPU_ROUTE_H
#define AQ_GPU_ROUTE_H

#include <stdbool.h>

/* Is it one of the names to look at? Also finds the loader's functions. */
bool gpu_route_wants(const char *name) __asm__("aq_route_wants")
    __attribute__((visibility("hidden")));

/* dlsym and dlvsym for such a name. */
void *gpu_route_dlsym(void *handle, const char *name) __asm__("aq_route_dlsym")
    __attribute__((visibility("hidden")));
void *gpu_route_dlvsym(void *handle, const char *name, const char *version)
    __asm__("aq_route_dlvsym") __attribute__((visibility("hidden")));

#endif
