#include "gpuhost/loans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fs.h"

#define FILE_MAGIC 0x6e6c7161u /* "aqln" */
#define FILE_VERSION 1u
#define GRANULES_MAX (((uint64_t)1 << AQ_GPU_CHARGE_GRANULE_BITS) - 1)

/* As it stands in the file, which has one of them in each place of this size; the
 * first place is the head's. None lies across a page, so each is written at once.
 */
struct loan {
    uint64_t token; /* 0 = free */
    uint32_t device, payer; /* slot; 0 = the container */
    uint64_t granules;
    uint32_t count, reserved; /* of holders */
    uint8_t holders[AQ_GPU_SLOTS_MAX / 8];
    uint8_t unused[96];
};
static_assert(sizeof(struct loan) == 256, "goes to a file");

struct head {
    uint32_t magic, version, size, reserved;
};

struct gpu_loans {
    int fd;          /* -1 = not kept */
    uint32_t end;    /* nothing stands from here on */
    struct loan loans[AQ_GPU_LOANS_MAX];
};

int gpu_loans_new(struct gpu_loans **ret, struct aq_error *err)
{
    struct gpu_loans *loans = calloc(1, sizeof(*loans));

    if (!loans)
        return aq_fail(err, ENOMEM, "loans of GPU memory");
    loans->fd = -1;
    *ret = loans;
    return 0;
}

void gpu_loans_free(struct gpu_loans *loans)
{
    if (!loans)
        return;
    aq_closep(&loans->fd);
    free(loans);
}

/* ---- the file ---- */

static void write_loan(const struct gpu_loans *loans, const struct loan *loan)
{
    off_t at = (off_t)sizeof(*loan) * (1 + (loan - loans->loans));

    /* a full disk costs exactness after the next agent's start, no more */
    if (loans->fd >= 0)
        (void)!pwrite(loans->fd, loan, sizeof(*loan), at);
}

static bool holds(const struct loan *loan, uint32_t slot)
{
    return loan->holders[slot / 8] >> (slot % 8) & 1;
}

static uint32_t count_holders(const struct loan *loan)
{
    uint32_t count = 0;

    for (uint32_t slot = 1; slot < AQ_GPU_SLOTS_MAX; slot++)
        count += holds(loan, slot);
    return count;
}

static bool is_sane(const struct loan *loan)
{
    return loan->token && loan->device < AQ_GPU_DEVICES_MAX && loan->payer < AQ_GPU_SLOTS_MAX
           && loan->granules && loan->granules <= GRANULES_MAX && loan->count
           && loan->count == count_holders(loan) && (!loan->payer || holds(loan, loan->payer));
}

static void read_all(struct gpu_loans *loans)
{
    struct head head = { 0 };

    if (pread(loans->fd, &head, sizeof(head), 0) != sizeof(head) || head.magic != FILE_MAGIC
        || head.version != FILE_VERSION || head.size != sizeof(struct loan))
        return;
    for (uint32_t i = 0; i < AQ_GPU_LOANS_MAX; i++) {
        struct loan *loan = &loans->loans[i];

        if (pread(loans->fd, loan, sizeof(*loan), (off_t)sizeof(*loan) * (1 + (off_t)i))
                != sizeof(*loan)
            || !is_sane(loan))
            *loan = (struct loan){ 0 };
        else
            loans->end = i + 1;
    }
}

int gpu_loans_keep(struct gpu_loans *loans, const char *path, struct aq_error *err)
{
    const struct head head = { FILE_MAGIC, FILE_VERSION, sizeof(struct loan), 0 };

    aq_closep(&loans->fd);
    loans->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (loans->fd < 0)
        return aq_fail_errno(err, "open '%s'", path);
    read_all(loans);
    if (pwrite(loans->fd, &head, sizeof(head), 0) != sizeof(head))
        return aq_fail_errno(err, "write '%s'", path);
    for (uint32_t i = 0; i < loans->end; i++)
        write_loan(loans, &loans->loans[i]);
    return 0;
}

/* ---- the books ---- */

static uint32_t place_of(const struct gpu_loans *loans, uint64_t token)
{
    uint32_t i = 0;

    while (i < loans->end && (loans->loans[i].token != token || !token))
        i++;
    return i;
}

bool gpu_loans_has(const struct gpu_loans *loans, uint64_t token)
{
    return place_of(loans, token) < loans->end;
}

static struct loan *find(struct gpu_loans *loans, uint64_t token)
{
    uint32_t place = place_of(loans, token);

    return place < loans->end ? &loans->loans[place] : NULL;
}

static struct loan *find_free(struct gpu_loans *loans)
{
    for (uint32_t i = 0; i < AQ_GPU_LOANS_MAX; i++)
        if (!loans->loans[i].token) {
            loans->end = AQ_MAX(loans->end, i + 1);
            return &loans->loans[i];
        }
    return NULL;
}

static void add_holder(struct gpu_loans *loans, struct loan *loan, uint32_t slot)
{
    if (holds(loan, slot))
        return;
    loan->holders[slot / 8] |= (uint8_t)(1u << (slot % 8));
    loan->count++;
    write_loan(loans, loan);
}

/* The last one takes the loan with it. */
static void remove_holder(struct gpu_loans *loans, struct loan *loan, uint32_t slot)
{
    loan->holders[slot / 8] &= (uint8_t)~(1u << (slot % 8));
    if (loan->payer == slot)
        loan->payer = 0;
    if (--loan->count == 0)
        *loan = (struct loan){ 0 };
    write_loan(loans, loan);
    AQ_FAULT("gpuhost.loans.left");
}

int gpu_loans_offer(struct gpu_loans *loans, uint32_t slot, uint32_t device, uint64_t token,
                    uint64_t granules)
{
    struct loan *loan = find(loans, token);

    if (slot == 0 || slot >= AQ_GPU_SLOTS_MAX || device >= AQ_GPU_DEVICES_MAX || !token
        || !granules || granules > GRANULES_MAX)
        return -EINVAL;
    if (loan) {
        add_holder(loans, loan, slot);
        return loan->payer == slot ? 0 : -EEXIST;
    }
    if (!(loan = find_free(loans)))
        return -ENOSPC;
    *loan = (struct loan){ .token = token, .device = device, .payer = slot, .granules = granules };
    add_holder(loans, loan, slot);
    return 0;
}

int gpu_loans_join(struct gpu_loans *loans, uint32_t slot, uint64_t token, uint32_t *ret_device,
                   uint64_t *ret_granules)
{
    struct loan *loan = find(loans, token);

    if (!loan || slot == 0 || slot >= AQ_GPU_SLOTS_MAX)
        return -ENOENT;
    add_holder(loans, loan, slot);
    *ret_device = loan->device;
    *ret_granules = loan->granules;
    return 0;
}

int gpu_loans_leave(struct gpu_loans *loans, uint32_t slot, uint64_t token)
{
    struct loan *loan = find(loans, token);

    if (!loan || slot >= AQ_GPU_SLOTS_MAX || !holds(loan, slot))
        return -ENOENT;
    remove_holder(loans, loan, slot);
    return 0;
}

bool gpu_loans_end(struct gpu_loans *loans, uint32_t slot)
{
    bool found = false;

    for (uint32_t i = 0; i < loans->end; i++)
        if (loans->loans[i].token && holds(&loans->loans[i], slot)) {
            remove_holder(loans, &loans->loans[i], slot);
            found = true;
        }
    while (loans->end && !loans->loans[loans->end - 1].token)
        loans->end--;
    return found;
}

/* ---- sums ---- */

uint64_t gpu_loans_paid(const struct gpu_loans *loans, uint32_t slot, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < loans->end; i++)
        if (loans->loans[i].token && loans->loans[i].device == device
            && loans->loans[i].payer == slot)
            sum += loans->loans[i].granules;
    return sum;
}

uint64_t gpu_loans_own(const struct gpu_loans *loans, uint32_t device)
{
    return AQ_MIN(gpu_loans_paid(loans, 0, device), GRANULES_MAX);
}

uint64_t gpu_loans_borrowed(const struct gpu_loans *loans, uint32_t slot, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < loans->end; i++)
        if (loans->loans[i].token && loans->loans[i].device == device
            && loans->loans[i].payer != slot && holds(&loans->loans[i], slot))
            sum += loans->loans[i].granules;
    return sum;
}

uint64_t gpu_loans_repeated(const struct gpu_loans *loans, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < loans->end; i++)
        if (loans->loans[i].token && loans->loans[i].device == device)
            sum += loans->loans[i].granules * (loans->loans[i].count - 1);
    return sum;
}
