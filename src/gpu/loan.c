#include "gpu/loan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu/charge.h"
#include "gpu/lock.h"
#include "gpu/region.h"

#ifndef F_OFD_SETLK
#define F_OFD_SETLK 37
#endif

/* No program locks bytes out here. Below it, of descriptors: size and a random number. */
#define TOKEN_BIT ((uint64_t)1 << 62)
#define SIZE_SHIFT 38
#define SIZE_MASK (((uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS) - 1)
#define OWED_MAX 64 /* that the agent is told of at once */

/* Held while the agent is asked, so that two threads do not join or leave at once. */
static struct gpu_lock lock;
static uint64_t borrowed[AQ_GPU_DEVICES_MAX];

/* ---- tokens ---- */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

uint64_t loan_token_of(const void *handle, size_t len)
{
    const unsigned char *bytes = handle;
    uint64_t token = len;

    for (size_t i = 0; i < len; i++)
        token = mix(token ^ bytes[i]);
    return (token & (TOKEN_BIT - 1)) | TOKEN_BIT;
}

uint64_t loan_token_new(uint64_t bytes)
{
    static uint64_t count;
    struct {
        uint64_t random, number;
        int64_t now_ns;
        uint64_t slot;
    } seed = { 0, __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED), gpu_now_ns(), gpu_region.slot };
    int saved = errno;

    (void)syscall(SYS_getrandom, &seed.random, sizeof(seed.random), 0);
    errno = saved;
    return TOKEN_BIT | (charge_granules(bytes) & SIZE_MASK) << SIZE_SHIFT
           | loan_token_of(&seed, sizeof(seed)) >> (64 - SIZE_SHIFT);
}

uint64_t loan_bytes_of(uint64_t token)
{
    return (token >> SIZE_SHIFT & SIZE_MASK) << AQ_GPU_GRANULE_SHIFT;
}

bool loan_tag(int fd, uint64_t token)
{
    struct flock place = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)token,
                           .l_len = 1 };
    int saved = errno;
    bool tagged = fcntl(fd, F_OFD_SETLK, &place) == 0;

    errno = saved;
    return tagged;
}

/* "lock:	1: OFDLCK ADVISORY  READ -1 00:05:9 4611686018427387905 4611686018427387905" */
static uint64_t read_lock(const char *line)
{
    const char *end = strchr(line, '\n'), *at = strstr(line, "OFDLCK");
    unsigned long long first, last;

    if (!at || (end && at > end) || !(at = strstr(at, " READ ")))
        return 0;
    if (sscanf(at, " READ %*s %*s %llu %llu", &first, &last) != 2 || first != last)
        return 0;
    return first & TOKEN_BIT && first <= INT64_MAX ? first : 0;
}

uint64_t loan_read_tag(int fd)
{
    int saved = errno, info;
    uint64_t token = 0;
    char text[4096];
    ssize_t len;

    (void)snprintf(text, sizeof(text), "/proc/self/fdinfo/%d", fd);
    info = open(text, O_RDONLY | O_CLOEXEC);
    len = info < 0 ? -1 : read(info, text, sizeof(text) - 1);
    if (info >= 0)
        (void)close(info);
    text[len > 0 ? len : 0] = '\0';
    for (const char *line = text; !token && (line = strstr(line, "lock:")); line++)
        token = read_lock(line);
    errno = saved;
    return token;
}

/* ---- the agent's books ---- */

/* 0, or an errno; EAGAIN = nobody answers. */
static int ask(uint32_t kind, uint64_t token, uint32_t device, uint64_t bytes,
               struct aq_gpu_loan_reply *ret)
{
    const struct aq_gpu_loan_order order = { .magic = AQ_GPU_MAGIC, .version = AQ_GPU_VERSION,
                                             .kind = kind, .device = device, .token = token,
                                             .granules = charge_granules(bytes) };

    return gpu_region_order(&order, ret) ? ret->error : EAGAIN;
}

static void end(const struct ledger_entry *loan)
{
    if (loan->bytes)
        ledger_release(loan->device, loan->bytes);
}

struct owed {
    struct ledger_entry list[OWED_MAX];
    int count;
};

static void collect(const struct ledger_entry *entry, void *data)
{
    struct owed *owed = data;

    if (owed->count < OWED_MAX)
        owed->list[owed->count++] = *entry;
}

/* The agent is back: tell it what was let go of meanwhile. */
static void settle(void)
{
    struct owed owed = { .count = 0 };
    struct aq_gpu_loan_reply reply;

    ledger_each(LEDGER_OWED, collect, &owed);
    for (int i = 0; i < owed.count; i++) {
        struct ledger_entry entry = owed.list[i];

        if (ask(AQ_GPU_LOAN_LEAVE, entry.key, 0, 0, &reply) == EAGAIN)
            return;
        if (ledger_take(LEDGER_OWED, entry.key, &entry))
            end(&entry);
    }
}

/* ---- what this process has of it ---- */

/* Memory that was let go of while the agent was away and comes back is a loan again. */
static bool find_again(uint64_t token)
{
    struct ledger_entry entry;

    if (ledger_ref(LEDGER_LOAN, token))
        return true;
    if (!ledger_take(LEDGER_OWED, token, &entry)
        || !ledger_add(LEDGER_LOAN, token, entry.device, entry.bytes, entry.link))
        return false;
    if (!entry.bytes)
        (void)__atomic_add_fetch(&borrowed[entry.device], entry.link, __ATOMIC_RELAXED);
    return true;
}

/* Others pay 'bytes' of it. Under the lock. */
static bool enter_borrowed(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct aq_gpu_loan_reply reply;

    if (device < AQ_GPU_DEVICES_MAX && ledger_add(LEDGER_LOAN, token, device, 0, bytes)) {
        (void)__atomic_add_fetch(&borrowed[device], bytes, __ATOMIC_RELAXED);
        return true;
    }
    (void)ask(AQ_GPU_LOAN_LEAVE, token, 0, 0, &reply);
    return false;
}

bool loan_offer(uint64_t token, uint32_t device, uint64_t bytes)
{
    struct aq_gpu_loan_reply reply;
    bool lent = false;
    int r;

    gpu_lock_take(&lock);
    settle();
    r = ask(AQ_GPU_LOAN_OFFER, token, device, bytes, &reply);
    if (r == EEXIST && (lent = enter_borrowed(token, device, bytes)))
        ledger_release(device, bytes);
    if (r == 0 && !(lent = ledger_add(LEDGER_LOAN, token, device, bytes, 0)))
        (void)ask(AQ_GPU_LOAN_LEAVE, token, 0, 0, &reply);
    gpu_lock_give(&lock);
    return lent;
}

bool loan_join(uint64_t token)
{
    struct aq_gpu_loan_reply reply;
    bool joined;

    gpu_lock_take(&lock);
    joined = find_again(token);
    if (!joined) {
        settle();
        joined = ask(AQ_GPU_LOAN_JOIN, token, 0, 0, &reply) == 0
                 && enter_borrowed(token, reply.device, reply.granules << AQ_GPU_GRANULE_SHIFT);
    }
    gpu_lock_give(&lock);
    return joined;
}

bool loan_pay(uint64_t token, uint32_t device, uint64_t bytes, struct ledger_entry *ret)
{
    if (bytes && !ledger_reserve(device, bytes))
        return false;
    *ret = (struct ledger_entry){ .bytes = bytes, .device = (uint8_t)device };
    if (token && bytes && loan_offer(token, device, bytes))
        ret->link = token;
    return true;
}

/* Who cannot tell the agent keeps the charge until he can: too long, never too short. */
void loan_leave(uint64_t token)
{
    struct aq_gpu_loan_reply reply;
    struct ledger_entry gone;

    gpu_lock_take(&lock);
    if (ledger_unref(LEDGER_LOAN, token, &gone)) {
        if (!gone.bytes)
            (void)__atomic_sub_fetch(&borrowed[gone.device], gone.link, __ATOMIC_RELAXED);
        if (ask(AQ_GPU_LOAN_LEAVE, token, 0, 0, &reply) != EAGAIN)
            end(&gone);
        else
            (void)ledger_add(LEDGER_OWED, token, gone.device, gone.bytes, gone.link);
    }
    gpu_lock_give(&lock);
}

void loan_release(const struct ledger_entry *gone)
{
    if (gone->link)
        loan_leave(gone->link);
    else if (gone->bytes)
        ledger_release(gone->device, gone->bytes);
}

uint64_t loan_borrowed(uint32_t device)
{
    return __atomic_load_n(&borrowed[device], __ATOMIC_RELAXED);
}

void loan_forget(void)
{
    memset(borrowed, 0, sizeof(borrowed));
    lock.taken = 0;
}
