/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_lookup.c - dlsym, dlvsym and cuGetProcAddress, which answer with hooks */
#include "gpu/symbol_lookup.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "gpu/elf.h"
#include "gpu/hooks.h"
#include "gpu/real_driver.h"
#include "gpu/region.h"

__attribute__((visibility("default"))) void *dlsym(void *handle, const char *name);
__attribute__((visibility("default"))) void *dlvsym(void *handle, const char *name,
                                                    const char *version);

/* The entry points keep the arguments, ask aq_symbol_lookup_wants and jump. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n.type dlsym,@function\ndlsym:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  push %rdi\n  push %rsi\n  push %rdx\n"
        "  .cfi_adjust_cfa_offset 24\n"
        "  mov %rsi,%rdi\n  call aq_symbol_lookup_wants\n"
        "  pop %rdx\n  pop %rsi\n  pop %rdi\n"
        "  .cfi_adjust_cfa_offset -24\n"
        "  test %al,%al\n  jne aq_symbol_lookup_dlsym\n"
        "  jmp *gpu_loader(%rip)\n"
        "  .cfi_endproc\n.size dlsym,.-dlsym\n"
        ".globl dlvsym\n.type dlvsym,@function\ndlvsym:\n"
        "  .cfi_startproc\n"
        "  endbr64\n"
        "  push %rdi\n  push %rsi\n  push %rdx\n"
        "  .cfi_adjust_cfa_offset 24\n"
        "  mov %rsi,%rdi\n  call aq_symbol_lookup_wants\n"
        "  pop %rdx\n  pop %rsi\n  pop %rdi\n"
        "  .cfi_adjust_cfa_offset -24\n"
        "  test %al,%al\n  jne aq_symbol_lookup_dlvsym\n"
        "  mov 8+gpu_loader(%rip),%rax\n"
        "  test %rax,%rax\n  je aq_symbol_lookup_dlvsym\n"
        "  jmp *%rax\n"
        "  .cfi_endproc\n.size dlvsym,.-dlvsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl dlsym\n.type dlsym,%function\ndlsym:\n"
        "  stp x29,x30,[sp,#-48]!\n  mov x29,sp\n"
        "  stp x0,x1,[sp,#16]\n"
        "  mov x0,x1\n  bl aq_symbol_lookup_wants\n  mov w9,w0\n"
        "  ldp x0,x1,[sp,#16]\n  ldp x29,x30,[sp],#48\n"
        "  tst w9,#255\n  b.ne aq_symbol_lookup_dlsym\n"
        "  adrp x9,gpu_loader\n  ldr x9,[x9,:lo12:gpu_loader]\n  br x9\n"
        ".size dlsym,.-dlsym\n"
        ".globl dlvsym\n.type dlvsym,%function\ndlvsym:\n"
        "  stp x29,x30,[sp,#-48]!\n  mov x29,sp\n"
        "  stp x0,x1,[sp,#16]\n  str x2,[sp,#32]\n"
        "  mov x0,x1\n  bl aq_symbol_lookup_wants\n  mov w9,w0\n"
        "  ldp x0,x1,[sp,#16]\n  ldr x2,[sp,#32]\n  ldp x29,x30,[sp],#48\n"
        "  tst w9,#255\n  b.ne aq_symbol_lookup_dlvsym\n"
        "  adrp x9,gpu_loader\n  add x9,x9,:lo12:gpu_loader\n  ldr x9,[x9,#8]\n"
        "  cbz x9,aq_symbol_lookup_dlvsym\n  br x9\n"
        ".size dlvsym,.-dlvsym\n");
#else
#error "dlsym needs its few instructions for this processor"
#endif

bool symbol_lookup_wants(const char *name)
{
    gpu_loader_find();
    return name
           && ((name[0] == 'c' && name[1] == 'u') || strncmp(name, "nvml", 4) == 0
               || strcmp(name, "dlsym") == 0 || strcmp(name, "dlvsym") == 0);
}

static bool symbol_lookup_is_ours(const void *address)
{
    struct elf_object object;

    return elf_find_address(address, &object) && (uintptr_t)&gpu_loader >= object.start
           && (uintptr_t)&gpu_loader < object.end;
}

/* 'found' is what the loader gave for a name of hooks.def. A copy of the driver
 * under another path, or in another namespace, leads to the hook as well: the
 * hook calls the one driver that was found first.
 */
static void *symbol_lookup_redirect(const struct gpu_name *name, void *found)
{
    struct elf_object object;

    if (found == gpu_name_real(name))
        return name->hook ? name->hook : found;
    if (symbol_lookup_is_ours(found)) { /* a global lookup: answer as the driver would */
        gpu_resolve(name->api);
        return gpu_name_real(name) ? found : NULL;
    }
    if (elf_find_address(found, &object)) {
        if (!gpu_resolve_at(found, name->api))
            return found; /* a program's own function of that name */
    } else {
        gpu_resolve(name->api);
        if (!gpu_name_real(name) && gpu_loader.dlopen) {
            (void)gpu_loader.dlopen(name->api == GPU_NVML ? "libnvidia-ml.so.1" : "libcuda.so.1",
                                    RTLD_LAZY | RTLD_LOCAL);
            gpu_resolve(name->api);
        }
    }
    return name->hook ? name->hook : found;
}

static void *symbol_lookup_redirect_found(const char *name, void *found)
{
    int saved = errno;
    const struct gpu_name *known = found ? gpu_name_find(name) : NULL;

    if (known)
        found = symbol_lookup_redirect(known, found);
    errno = saved;
    return found;
}

void *symbol_lookup_dlsym(void *handle, const char *name)
{
    if (strcmp(name, "dlsym") == 0 || strcmp(name, "dlvsym") == 0)
        return name[2] == 's' ? (void *)dlsym : (void *)dlvsym;
    return symbol_lookup_redirect_found(name, gpu_loader.dlsym(handle, name));
}

void *symbol_lookup_dlvsym(void *handle, const char *name, const char *version)
{
    if (strcmp(name, "dlsym") == 0 || strcmp(name, "dlvsym") == 0 || !gpu_loader.dlvsym)
        return symbol_lookup_dlsym(handle, name);
    return symbol_lookup_redirect_found(name, gpu_loader.dlvsym(handle, name, version));
}

/* Replace what cuGetProcAddress gave. */
static void symbol_lookup_redirect_proc(const char *name, void **function, int version,
                                        unsigned long long flags)
{
    void *hook = gpu_hook_of(*function);

    if (!hook && name && !symbol_lookup_is_ours(*function))
        hook = gpu_hook_of_base(
            name, version, (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, *function);
    if (hook)
        *function = hook;
    else if (name && !gpu_name_find(name))
        gpu_region_count_unknown();
}

CUresult on_get_proc_address(fn_cuGetProcAddress *real, const char *name, void **function,
                             int version, unsigned long long flags)
{
    CUresult result = real(name, function, version, flags);

    if (result == CUDA_SUCCESS && function && *function)
        symbol_lookup_redirect_proc(name, function, version, flags);
    return result;
}

CUresult on_get_proc_address_v2(fn_cuGetProcAddress_v2 *real, const char *name, void **function,
                                int version, unsigned long long flags, int *status)
{
    CUresult result = real(name, function, version, flags, status);

    if (result == CUDA_SUCCESS && function && *function)
        symbol_lookup_redirect_proc(name, function, version, flags);
    return result;
}
