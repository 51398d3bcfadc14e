/* SPDX-License-Identifier: Apache-2.0 */
/* number.h - numbers in texts, read by hand
 *
 * With new headers strtoull() and sscanf() would be those of the newest C
 * library, and programs of older images could not load the simulated driver.
 */
#ifndef SIMGPU_NUMBER_H
#define SIMGPU_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Reads digits of a base up to 16 at *text and moves it behind them; false if there are none. */
static inline bool sim_read_number(const char **text, unsigned base, uint64_t *ret)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *start = *text, *found;
    uint64_t value = 0;

    for (; **text && (found = strchr(digits, **text)); (*text)++) {
        unsigned digit = (unsigned)(found - digits) % 16;

        if (digit >= base)
            break;
        value = value * base + digit;
    }
    *ret = value;
    return *text != start;
}

/* The bus of a PCI address, "DOMAIN:BUS:DEVICE.FUNCTION". */
static inline bool sim_read_bus(const char *address, uint64_t *ret)
{
    uint64_t domain;

    return sim_read_number(&address, 16, &domain) && *address++ == ':'
           && sim_read_number(&address, 16, ret);
}

#endif
