/* loan.h - device memory that this process and others of the container hold together
 *
 * The agent keeps the books (gpuhost/loans.h); here is what this process has to
 * do with them: one entry per memory (LEDGER_LOAN), with what it pays for it, and
 * as many owners as it has objects of it. An object whose entry has a 'link' is
 * charged by its loan.
 *
 * Of each memory this process is in one of these states; in brackets what it is
 * charged. An order that nobody answers ('?') may have been followed or not.
 *
 *   none          offer: 0 -> pays, "others pay" -> borrows, ? -> untold
 *                 join:  0 -> borrows, "nobody does" -> none, ? -> owes [0]
 *   pays [all]    leave: answered -> none, ? -> owes [all]
 *   borrows [0]   leave: answered -> none, ? -> owes [0]
 *   untold [all]  offer, again and again: 0 -> pays, "others pay" -> borrows
 *                 leave: as one that pays
 *   owes          leave, again and again: answered -> none
 *                 offer: as from none, and what was owed is given back after it
 *
 * The agent says "others pay" only while one of them, or the container, is charged,
 * and it is told of a leave before the charge goes. So somebody pays for what
 * anybody holds, at any moment, and whoever dies anywhere has died for the agent,
 * too. Two pay for the same memory only while an answer is missing: nothing is
 * lost by waiting but room in the slice. Who has such a state asks again when it
 * next allocates, waits for the device or has to do with a loan.
 *
 * Memory is known by a token: of handles that are bytes a hash of those, of file
 * descriptors a number that is written on the open file as a read lock at that
 * place, which costs nobody anything and comes along wherever the file is sent.
 */
#ifndef AQ_GPU_LOAN_H
#define AQ_GPU_LOAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/ledger.h"

/* A token for a handle of 'len' bytes. One for a new descriptor, and the size that is
 * in it, in whole granules. Never 0.
 */
uint64_t loan_token_of(const void *handle, size_t len);
uint64_t loan_token_new(uint64_t bytes);
uint64_t loan_bytes_of(uint64_t token);

/* Write a token on a descriptor; false = it takes none. Read it; 0 = it has none. */
bool loan_tag(int fd, uint64_t token);
uint64_t loan_read_tag(int fd);

/* An object that this process is charged for is lent: from now on it is charged by its
 * loan, 'token', which others may be paying already, or by the one that it has. Returns
 * which; 0 = it is not lent, and nothing has changed.
 */
uint64_t loan_lend(enum ledger_kind kind, uint64_t key, uint64_t token);

/* This process has one object more of memory that somebody of the container pays
 * for. False = nobody does, or nobody says so.
 */
bool loan_join(uint64_t token);

/* Nobody pays for an object that this process has got: charge and offer it ('token' 0:
 * only charge). '*ret': the object's 'bytes' and 'link'. False = past the slice.
 */
bool loan_pay(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret);

/* It has one object fewer. */
void loan_leave(uint64_t token);

/* An object is gone: give back its charge, or leave its loan. */
void loan_release(const struct ledger_entry *gone);

/* Tell the agent what it could not be told before; costs nothing if there is no such
 * thing, or no agent.
 */
extern bool loan_is_unsettled;
void loan_settle_now(void);
static inline void loan_settle(void)
{
    if (__builtin_expect(__atomic_load_n(&loan_is_unsettled, __ATOMIC_RELAXED), 0))
        loan_settle_now();
}

/* Bytes that this process holds and others pay for. */
uint64_t loan_borrowed(uint32_t device);

/* In the child after fork. */
void loan_forget(void);

#endif
