/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c - symbols of loaded libraries, without the loader */
#include "gpu/elf.h"

#include <string.h>

struct elf_search {
    bool (*wanted)(const struct elf_object *object, void *data);
    void *data;
    struct elf_object *found;
};

/* Some loaders relocate the pointers of a dynamic section, some do not. */
static const void *elf_pointer(const struct elf_object *object, ElfW(Addr) value)
{
    return (const void *)(value < object->base ? value + object->base : value);
}

static bool elf_read_dynamic(struct elf_object *object, const ElfW(Dyn) * dynamic)
{
    ElfW(Addr) soname = 0;

    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        ElfW(Addr) value = dynamic->d_un.d_ptr;

        if (dynamic->d_tag == DT_SYMTAB)
            object->symbols = elf_pointer(object, value);
        else if (dynamic->d_tag == DT_STRTAB)
            object->strings = elf_pointer(object, value);
        else if (dynamic->d_tag == DT_GNU_HASH)
            object->gnu_hash = elf_pointer(object, value);
        else if (dynamic->d_tag == DT_HASH)
            object->hash = elf_pointer(object, value);
        else if (dynamic->d_tag == DT_SONAME)
            soname = value;
    }
    if (object->strings && soname)
        object->soname = object->strings + soname;
    return object->symbols && object->strings;
}

static bool elf_read_object(const struct dl_phdr_info *info, struct elf_object *ret)
{
    const ElfW(Dyn) *dynamic = NULL;

    *ret = (struct elf_object){ .base = info->dlpi_addr,
                                .path = info->dlpi_name,
                                .start = UINTPTR_MAX };
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;

        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)start;
        if (header->p_type != PT_LOAD)
            continue;
        if (start < ret->start)
            ret->start = start;
        if (start + header->p_memsz > ret->end)
            ret->end = start + header->p_memsz;
    }
    return dynamic && elf_read_dynamic(ret, dynamic);
}

static int elf_on_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct elf_search *search = data;
    struct elf_object object;

    (void)size;
    if (!elf_read_object(info, &object) || !search->wanted(&object, search->data))
        return 0;
    *search->found = object;
    return 1;
}

bool elf_find(bool (*wanted)(const struct elf_object *object, void *data), void *data,
              struct elf_object *ret)
{
    struct elf_search search = { wanted, data, ret };

    return dl_iterate_phdr(elf_on_object, &search) == 1;
}

static bool elf_contains(const struct elf_object *object, void *address)
{
    return (uintptr_t)address >= object->start && (uintptr_t)address < object->end;
}

bool elf_find_address(const void *address, struct elf_object *ret)
{
    return elf_find(elf_contains, (void *)address, ret);
}

static void *elf_symbol_value(const struct elf_object *object, const ElfW(Sym) * symbol)
{
    void *value = (void *)(object->base + symbol->st_value);

    if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return ((void *(*)(void))value)();
    return value;
}

static bool elf_is_match(const struct elf_object *object, const ElfW(Sym) * symbol,
                         const char *name)
{
    return symbol->st_shndx != SHN_UNDEF && symbol->st_value
           && strcmp(object->strings + symbol->st_name, name) == 0;
}

static void *elf_find_gnu(const struct elf_object *object, const char *name)
{
    const uint32_t *table = object->gnu_hash, buckets = table[0], first = table[1];
    const uint32_t *bucket = table + 4 + (size_t)table[2] * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = 5381, at;

    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    at = buckets ? bucket[hash % buckets] : 0;
    if (at < first || !at)
        return NULL;
    for (;; at++) {
        uint32_t entry = chain[at - first];

        if ((entry | 1) == (hash | 1) && elf_is_match(object, &object->symbols[at], name))
            return elf_symbol_value(object, &object->symbols[at]);
        if (entry & 1)
            return NULL;
    }
}

static void *elf_find_sysv(const struct elf_object *object, const char *name)
{
    const uint32_t *table = object->hash, buckets = table[0], *bucket = table + 2;
    const uint32_t *chain = bucket + buckets;
    uint32_t hash = 0;

    for (const char *c = name; *c; c++) {
        hash = (hash << 4) + (unsigned char)*c;
        hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
    }
    for (uint32_t at = buckets ? bucket[hash % buckets] : 0; at; at = chain[at])
        if (elf_is_match(object, &object->symbols[at], name))
            return elf_symbol_value(object, &object->symbols[at]);
    return NULL;
}

void *elf_symbol(const struct elf_object *object, const char *name)
{
    if (object->gnu_hash)
        return elf_find_gnu(object, name);
    return object->hash ? elf_find_sysv(object, name) : NULL;
}
