/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h - symbols of loaded objects, found without the dynamic loader's help
 *
 * The library stands in front of dlsym itself, so it cannot ask dlsym where
 * the real one is, and a versioned reference would bind to its own. Reads the
 * objects' dynamic sections where the loader has mapped them.
 */
#ifndef AQ_GPU_ELF_H
#define AQ_GPU_ELF_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct elf_object {
    uintptr_t base;
    uintptr_t start, end; /* of what is mapped */
    const char *path;     /* as the loader names it */
    const char *soname;   /* or NULL */
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash, *hash; /* one may be NULL */
};

/* The first loaded object, in the loader's order, for which 'wanted' says yes. */
bool elf_find(bool (*wanted)(const struct elf_object *object, void *data), void *data,
              struct elf_object *ret);

/* The object that contains 'address'. Not limited to this namespace only where
 * the loader lists others.
 */
bool elf_find_address(const void *address, struct elf_object *ret);

/* A defined function or object, NULL if there is none. Indirect functions are
 * resolved.
 */
void *elf_symbol(const struct elf_object *object, const char *name);

#endif
