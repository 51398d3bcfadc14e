/* SPDX-License-Identifier: Apache-2.0 */
/* shared_alloc_process.h - one process that shares allocations, as a module with memory of its own
 *
 * The library's own shared_alloc.c, ledger.c and charge.c, so that a test can have several
 * processes in one program (test_shared_alloc_model.c), each a module of its own.
 */
#ifndef TESTS_GPU_SHARED_ALLOC_PROCESS_H
#define TESTS_GPU_SHARED_ALLOC_PROCESS_H

#include "gpu/shared_alloc.h"
#include "gpu/region.h"

/* The agent's answer; false = nobody answers. */
typedef bool shared_alloc_request_fn(uint32_t slot, const struct aq_gpu_loan_order *order,
                                     struct aq_gpu_loan_reply *ret);

/* The calls of the headers, of this module's process. */
struct shared_alloc_process {
    void (*start)(const struct aq_gpu_limits *limits, struct aq_gpu_usage *usage, uint32_t slot,
                  shared_alloc_request_fn *order);
    bool (*reserve)(uint32_t device, uint64_t bytes);
    bool (*add)(enum ledger_kind kind, uint64_t key, uint32_t device, uint64_t bytes,
                uint64_t link);
    bool (*get)(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret);
    bool (*take)(enum ledger_kind kind, uint64_t key, struct ledger_entry *ret);
    uint64_t (*lend)(enum ledger_kind kind, uint64_t key, uint64_t token);
    bool (*join)(uint64_t token);
    bool (*pay)(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret);
    void (*leave)(uint64_t token);
    void (*release)(const struct ledger_entry *gone);
    void (*settle)(void);
    uint64_t (*borrowed)(uint32_t device);
};

#endif
