/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - what is reset in the child after fork */
#include "gpu/fork.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "gpu/elf.h"
#include "gpu/ledger.h"
#include "gpu/shared_alloc.h"
#include "gpu/throttle.h"
#include "gpu/region.h"

static void fork_on_child(void)
{
    gpu_region_after_fork();
    ledger_after_fork();
    shared_alloc_after_fork();
    throttle_after_fork();
}

static bool fork_has_atfork(const struct elf_object *object, void *data)
{
    (void)data;
    return elf_symbol(object, "__register_atfork") || elf_symbol(object, "pthread_atfork");
}

/* glibc has the first inside, behind a static pthread_atfork that would tie
 * the library to it; musl has the second. The handler lives as long as this
 * library, which is never unloaded (linked with -z nodelete).
 */
void gpu_fork_watch(void)
{
    static bool is_watched;
    struct elf_object object;
    int (*glibc)(void (*)(void), void (*)(void), void (*)(void), void *);
    int (*musl)(void (*)(void), void (*)(void), void (*)(void));

    if (__atomic_exchange_n(&is_watched, true, __ATOMIC_ACQ_REL)
        || !elf_find(fork_has_atfork, NULL, &object))
        return;
    *(void **)&glibc = elf_symbol(&object, "__register_atfork");
    *(void **)&musl = elf_symbol(&object, "pthread_atfork");
    if (glibc)
        (void)glibc(NULL, NULL, fork_on_child, NULL);
    else
        (void)musl(NULL, NULL, fork_on_child);
}
