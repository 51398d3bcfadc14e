/* SPDX-License-Identifier: Apache-2.0 */
/* symbol_lookup.c - cuGetProcAddress: what this driver version has; names of errors */
#include <string.h>

#include "cuda.h"

extern const int sim_cuda_version;

static bool symbol_lookup_is_hidden(const char *symbol)
{
    int fd;
    struct sim_card *card = sim_card_to_look(&fd);

    return card && strcmp(card->faults.hidden_symbol, symbol) == 0;
}

static int symbol_lookup_find(const char *name, void **function, int version,
                              unsigned long long flags)
{
    const struct sim_export *best = NULL;
    bool known = false;

    *function = NULL;
    for (const struct sim_export *e = sim_exports; e->name; e++) {
        if (strcmp(e->name, name) != 0 || e->since > sim_cuda_version
            || symbol_lookup_is_hidden(e->symbol))
            continue;
        known = true;
        if (e->since <= version && (!best || e->since > best->since))
            best = e;
    }
    if (!best)
        return known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                     : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && best->per_thread
                    ? best->per_thread
                    : best->function;
    return CU_GET_PROC_ADDRESS_SUCCESS;
}

CUresult cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    return symbol_lookup_find(name, function, version, flags) == CU_GET_PROC_ADDRESS_SUCCESS
               ? CUDA_SUCCESS
               : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                             unsigned long long flags, int *status)
{
    int found;

    if (!name || !function)
        return CUDA_ERROR_INVALID_VALUE;
    found = symbol_lookup_find(name, function, version, flags);
    if (status)
        *status = found;
    return found == CU_GET_PROC_ADDRESS_SUCCESS || status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char **name)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    *name = error == CUDA_SUCCESS               ? "CUDA_SUCCESS"
            : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
                                                : "CUDA_ERROR";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    return cuGetErrorName(error, text);
}
