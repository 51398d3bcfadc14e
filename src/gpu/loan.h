/* loan.h - device memory that this process and others of the container hold together
 *
 * The agent keeps the books (gpuhost/loans.h); here is what this process has to
 * do with them: one entry per memory (LEDGER_LOAN), with what it pays for it, and
 * as many owners as it has objects of it. An object whose entry has a 'link' is
 * charged by its loan. Without an agent nothing is lent: who exports pays on,
 * and who imports pays, too.
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

/* Memory that this process is charged 'bytes' for is lent: its object, then linked to
 * 'token', is charged by the loan, which others may be paying already. False = it is
 * not lent, and nothing has changed.
 */
bool loan_offer(uint64_t token, uint32_t device, uint64_t bytes);

/* This process has one object more of memory that somebody of the container pays
 * for. False = nobody does.
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

/* Bytes that this process holds and others pay for. */
uint64_t loan_borrowed(uint32_t device);

/* In the child after fork. */
void loan_forget(void);

#endif
