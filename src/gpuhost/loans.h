/* loans.h - device memory that several processes of one container hold
 *
 * Whoever exports memory offers it here, whoever imports it joins. While the
 * process that offered it holds it, the charge stays with it; then the
 * container pays for it until nobody holds it any more. Only the agent writes
 * these books, so programs cannot scribble over them; they are told by
 * messages (struct aq_gpu_loan_order) and by their deaths. An order may come
 * again, as its sender may have missed the answer (gpu/loan.h). One thread.
 */
#ifndef AQ_GPUHOST_LOANS_H
#define AQ_GPUHOST_LOANS_H

#include <stdbool.h>
#include <stdint.h>

#include "aliquot/gpu_region.h"
#include "base/error.h"

struct gpu_loans;

int gpu_loans_new(struct gpu_loans **ret, struct aq_error *err);
void gpu_loans_free(struct gpu_loans *loans);
AQ_DEFINE_CLEANUP(struct gpu_loans, gpu_loans_free)

/* Keep the books in a file from now on, and go on with what stands there. A file of
 * another version, or one that makes no sense, counts as empty.
 */
int gpu_loans_keep(struct gpu_loans *loans, const char *path, struct aq_error *err);

/* 'slot' holds and pays 'granules' of a device. -EEXIST: it was known, and now holds it,
 * too; others pay. -ENOSPC: AQ_GPU_LOANS_MAX are there.
 */
int gpu_loans_offer(struct gpu_loans *loans, uint32_t slot, uint32_t device, uint64_t token,
                    uint64_t granules);

/* Somebody holds it. */
bool gpu_loans_has(const struct gpu_loans *loans, uint64_t token);

/* 'slot' holds it, too: its device and size. -ENOENT: nobody does. */
int gpu_loans_join(struct gpu_loans *loans, uint32_t slot, uint64_t token, uint32_t *ret_device,
                   uint64_t *ret_granules);

/* 'slot' holds it no longer. -ENOENT: it did not. */
int gpu_loans_leave(struct gpu_loans *loans, uint32_t slot, uint64_t token);

/* The process of 'slot' has ended. False = it had nothing to do with loans. */
bool gpu_loans_end(struct gpu_loans *loans, uint32_t slot);

/* Granules of a device: that the container pays; that 'slot' pays; that it holds and
 * others pay; and, of all, how much more its holders have by their own count than is
 * charged once.
 */
uint64_t gpu_loans_own(const struct gpu_loans *loans, uint32_t device);
uint64_t gpu_loans_paid(const struct gpu_loans *loans, uint32_t slot, uint32_t device);
uint64_t gpu_loans_borrowed(const struct gpu_loans *loans, uint32_t slot, uint32_t device);
uint64_t gpu_loans_repeated(const struct gpu_loans *loans, uint32_t device);

#endif
