/* loan_process.h - what one process does with loans, as a module with memory of its own
 *
 * The library's own loan.c, ledger.c and charge.c, so that a test can have several
 * processes in one program (test_loan_model.c), each a module of its own.
 */
#ifndef TESTS_GPU_LOAN_PROCESS_H
#define TESTS_GPU_LOAN_PROCESS_H

#include "gpu/loan.h"
#include "gpu/region.h"

/* The agent's answer; false = nobody answers. */
typedef bool loan_order_fn(uint32_t slot, const struct aq_gpu_loan_order *order,
                           struct aq_gpu_loan_reply *ret);

/* The calls of the headers, of this module's process. */
struct loan_process {
    void (*start)(const struct aq_gpu_limits *limits, struct aq_gpu_usage *usage, uint32_t slot,
                  loan_order_fn *order);
    bool (*reserve)(uint32_t device, uint64_t bytes);
    bool (*add)(enum ledger_kind kind, uint64_t key, uint32_t device, uint64_t bytes, uint64_t link);
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
